//! Messages that go to several peers as they are: such a message is written once into memory of the transport's own, its
//! **stage**, and every peer reads it there. Through the links it would be copied once for each.
//!
//! It is lent like any other (see [`crate::lend`]), but what is lent is a copy: a send is done as soon as all of its
//! message is staged and told of, and what waits for it may overwrite the source.

use crate::code::{BoundOp, Code};
use crate::memory::Segment;
use crate::run::{Engine, Turn};
use crate::state::State;
use crate::transport::{LOAN_BYTES, Link};
use crate::{Fault, Interest, Transport, short};
use coll_plan::RankPlan;

/// Bytes that are staged before the first of them is told of: while a peer reads these, the next are written.
const PIECE_BYTES: u64 = 64 << 10;

/// A message that several sends have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// How many sends.
    pub(crate) sends: u32,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShareState {
    /// Where it is staged, if it is.
    at: Option<u64>,
    /// Bytes that are staged.
    staged: u64,
    /// Sends that are done.
    done: u32,
    /// There was no room: its sends go as others do.
    refused: bool,
}

/// Finds the messages of a part that several sends have in common, and notes which.
pub(crate) fn find(part: &RankPlan, code: &mut Code) {
    let groups = coll_plan::shared_sends(part);
    // Whoever runs straight through knows of no stage.
    let is_large = |op: &BoundOp| op.bytes > short::BYTES_MAX;
    for (op, group) in code.ops.iter_mut().zip(groups) {
        let Some(group) = group.filter(|_| is_large(op)) else { continue };
        if code.shares.len() <= group as usize {
            code.shares.resize(group as usize + 1, Share { sends: 0 });
        }
        code.shares[group as usize].sends += 1;
        op.share = Some(group);
    }
}

impl<T: Transport> Engine<'_, '_, '_, T> {
    /// Whether a message that has not begun goes by the stage: if others send it too, and there is room.
    #[inline]
    pub(crate) fn may_share(&mut self, op: &BoundOp, link: Link) -> bool {
        let Some(share) = op.share else { return false };
        let Some(least_bytes) = self.transport.lends(link) else { return false };
        let is_worth_it = coll_plan::is_worth_sharing(self.code.shares[share as usize].sends, op.bytes);
        if op.bytes < least_bytes
            || !is_worth_it
            || self.code.cast.is_some()
            || !self.state.inboxes.is_empty()
        {
            return false;
        }
        let state = &mut self.state.shares[share as usize];
        if state.at.is_none() && !state.refused {
            state.at = self.transport.stage(op.bytes);
            state.refused = state.at.is_none();
        }
        state.at.is_some()
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
        if !self.lend_header(lane, op, link, message)? {
            return Ok(Turn::Blocked(Interest::writable(to)));
        }
        self.state.lanes[lane as usize].shared = true;
        while self.state.lanes[lane as usize].cursor.moved < op.bytes {
            let moved = self.state.lanes[lane as usize].cursor.moved;
            if self.state.lanes[lane as usize].loan.lends == 0 {
                let Some(bytes) = self.staged_piece(op, share, at, moved) else { return Ok(Turn::Parked) };
                let loan = self.transport.lend_staged(at + moved, bytes).to_bytes();
                let state = &mut self.state.lanes[lane as usize].loan;
                (state.bytes, state.lends, state.moved) = (loan, bytes as usize, 0);
            }
            let loan = &mut self.state.lanes[lane as usize].loan;
            let taken = self.transport.try_send(to, &[&loan.bytes[loan.moved..]])?;
            if taken == 0 {
                return Ok(Turn::Blocked(Interest::writable(to)));
            }
            loan.moved += taken;
            if loan.moved >= LOAN_BYTES {
                self.state.lanes[lane as usize].cursor.moved += std::mem::take(&mut loan.lends) as u64;
            }
        }
        let state = &mut self.state.shares[share];
        state.done += 1;
        let last = state.done == self.code.shares[share].sends;
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
