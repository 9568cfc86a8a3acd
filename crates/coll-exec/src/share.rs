//! Messages that go to several peers as they are: such a message is written once into memory of the transport's own, its
//! **stage**, and every peer reads it there. Through the links it would be copied once for each.
//!
//! It is lent like any other (see [`crate::lend`]), but what is lent is a copy: a send is done as soon as all of its
//! message is staged and told of, and what waits for it may overwrite the source.

use crate::code::{BoundOp, Code, Kind};
use crate::memory::Segment;
use crate::run::{Engine, Turn};
use crate::state::State;
use crate::transport::Link;
use crate::{Fault, Interest, Transport, short};
use coll_plan::RankPlan;

/// Bytes that are staged before the first of them is told of: while a peer reads these, the next are written.
const PIECE_BYTES: u64 = 64 << 10;

/// A message that several sends have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// For each of the sends, its link.
    links: Vec<u32>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShareState {
    /// Where it is staged, if it is.
    at: Option<u64>,
    /// Bytes that are staged.
    staged: u64,
    /// Sends by the stage that are not done.
    open: u32,
    /// It is not worth it, or there was no room: its sends go as others do.
    refused: bool,
}

/// Finds the messages of a part that several sends have in common, and notes which.
pub(crate) fn find(part: &RankPlan, code: &mut Code) {
    let groups = coll_plan::shared_sends(part);
    // Whoever runs straight through knows of no stage.
    let is_large = |op: &BoundOp| op.bytes > short::BYTES_MAX;
    for (op, group) in code.ops.iter_mut().zip(groups) {
        let (Some(group), Kind::Send { link, .. }) = (group.filter(|_| is_large(op)), op.kind) else {
            continue;
        };
        if code.shares.len() <= group as usize {
            code.shares.resize(group as usize + 1, Share::default());
        }
        code.shares[group as usize].links.push(link);
        op.share = Some(group);
    }
}

impl<T: Transport> Engine<'_, '_, '_, T> {
    /// Whether a message that has not begun goes by the stage: if enough peers can read it there, and there is room. It was
    /// asked before whether it can be lent where it lies.
    #[inline]
    pub(crate) fn may_share(&mut self, op: &BoundOp, link: Link) -> bool {
        let Some(share) = op.share else { return false };
        if !self.reads_stages(op, link) {
            return false;
        }
        let state = self.state.shares[share as usize];
        if state.at.is_none() && !state.refused {
            self.take_stage(op, share as usize);
        }
        self.state.shares[share as usize].at.is_some()
    }

    /// Whether the peer of a link reads such a message in a stage.
    fn reads_stages(&self, op: &BoundOp, link: Link) -> bool {
        // What goes over the wire as another type is no copy of what lies in memory; slots hold payloads.
        let as_it_is = self.code.cast.is_none() && self.state.inboxes.is_empty();
        as_it_is && self.transport.lends(link).is_some_and(|least_bytes| op.bytes >= least_bytes)
    }

    /// Takes room for a message, if it is worth it.
    fn take_stage(&mut self, op: &BoundOp, share: usize) {
        let links = self.code.shares[share].links.iter();
        let sends =
            links.filter(|&&link| self.reads_stages(op, self.code.links[link as usize].link)).count() as u32;
        let at = match coll_plan::is_worth_sharing(sends, op.bytes) {
            true => self.transport.stage(op.bytes),
            false => None,
        };
        self.state.shares[share] = ShareState { at, staged: 0, open: sends, refused: at.is_none() };
    }

    /// Sends a message by the stage.
    pub(crate) fn send_shared(
        &mut self,
        lane: u32,
        op: &BoundOp,
        link: u32,
        message: u32,
    ) -> Result<Turn, Fault> {
        let to = self.code.links[link as usize].link;
        let share = op.share.expect("invariant: it was asked before the message began") as usize;
        let at = self.state.shares[share].at.expect("invariant: as above");
        // From here on, even if not all of the header goes at once.
        self.state.lanes[lane as usize].shared = true;
        if !self.lend_header(lane, op, link, message)? {
            return Ok(Turn::Blocked(Interest::writable(to)));
        }
        while self.state.lanes[lane as usize].cursor.moved < op.bytes {
            let moved = self.state.lanes[lane as usize].cursor.moved;
            if self.state.lanes[lane as usize].loan.lends == 0 {
                let Some(bytes) = self.staged_piece(op, share, at, moved) else { return Ok(Turn::Parked) };
                let loan = self.transport.lend_staged(at + moved, bytes).to_bytes();
                let state = &mut self.state.lanes[lane as usize].loan;
                (state.bytes, state.lends, state.moved) = (loan, bytes as usize, 0);
            }
            let Some(told) = self.tell_of_loan(lane, to)? else {
                return Ok(Turn::Blocked(Interest::writable(to)));
            };
            self.state.lanes[lane as usize].cursor.moved += told as u64;
        }
        let state = &mut self.state.shares[share];
        state.open -= 1;
        let last = state.open == 0;
        self.transport.lent_staged(to, at, last);
        Ok(Turn::Done)
    }

    /// How many bytes from `moved` on are staged, after the next piece was if none was; nothing if a receive that is
    /// followed must come further first.
    fn staged_piece(&mut self, op: &BoundOp, share: usize, at: u64, moved: u64) -> Option<u64> {
        let staged = self.state.shares[share].staged;
        if staged > moved {
            return Some(staged - moved);
        }
        let there = op.leader.map_or(op.bytes, |leader| self.state.progress(self.code, leader).min(op.bytes));
        let end = there.min(staged + PIECE_BYTES);
        if end == staged || end < op.bytes && end - staged < PIECE_BYTES {
            return None;
        }
        let (mut start, mut to) = (0, staged);
        for &segment in self.code.segments(op.source) {
            let part: Segment = segment.part((to - start.min(to)) as usize, (end - to) as usize);
            start += segment.len as u64;
            if start > to && to < end {
                self.transport.write_staged(at + to, self.memory.bytes(part));
                to += part.len as u64;
            }
        }
        self.state.shares[share].staged = end;
        Some(end - moved)
    }
}

impl State {
    /// Sends that several have in common start anew.
    #[inline]
    pub(crate) fn begin_shares(&mut self) {
        self.shares.fill(ShareState::default());
    }
}
