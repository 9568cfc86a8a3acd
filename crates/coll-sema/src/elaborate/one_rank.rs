//! One rank's part of a program, without the others': transfers that neither begin nor end at that rank are not
//! written down. A step is run only for those values of its variable that [`inverse`](super::inverse) names, and
//! then, until it is known that the step moves something at all and which of its statements do, for others.
//!
//! Loops within a step are gone through likewise: of another rank's loop over all receivers the one round that sends here.
//!
//! What may not be left out, as it shows in every rank's part: the numbers of steps, the cuts, the lines that
//! transfers come from. What others hold in scratch is not followed. What arrives from there in a block of the contract
//! must have the block's own shape; where it arrives in scratch its shape is not known, the schedule ends in a fault, and
//! whoever asked takes the whole. Drops are not written down: of a right program none is left.

use super::frame::Frame;
use super::inverse::concerned;
use super::{Elaborator, Stop};
use crate::contract::ClassRule;
use crate::eval::Fault;
use crate::resolved::{Each, For, Group, Step, StepStmt, Transfer};
use coll_base::Span;
use std::collections::{HashMap, HashSet};

/// The rank that is asked for, and what is known of the others.
pub(super) struct Only {
    pub(super) rank: u32,
    /// How other ranks' blocks get their classes.
    pub(super) classes: ClassRule,
    /// Whether the step being run has transfers anywhere.
    pub(super) moves: bool,
    /// Transfer statements that have been run for some rank.
    seen: HashSet<Span>,
    /// For each step, the position that was last found to transfer something.
    hints: HashMap<Span, u32>,
}

impl Only {
    pub(super) fn new(rank: u32, classes: ClassRule) -> Only {
        Only { rank, classes, moves: false, seen: HashSet::new(), hints: HashMap::new() }
    }
}

impl<'m> Elaborator<'m> {
    /// Whether a transfer between two positions is to be written down.
    pub(super) fn concerns(&self, frame: &Frame<'m>, from: u32, to: u32) -> bool {
        self.only.is_none() || frame.own.is_some_and(|own| own == from || own == to)
    }

    /// A statement has been run, and makes transfers or not.
    pub(super) fn saw(&mut self, transfer: &Transfer, moves: bool) {
        if let Some(only) = &mut self.only {
            only.moves |= moves;
            if only.seen.insert(transfer.span) {
                self.trace.origin(transfer.span);
            }
        }
    }

    /// Whether a statement between other ranks has nothing more to tell.
    pub(super) fn is_known(&self, transfer: &Transfer) -> bool {
        self.only.as_ref().is_some_and(|only| only.moves && only.seen.contains(&transfer.span))
    }

    /// A step for the values of its variable that concern the rank, and for others as long as that tells anything.
    pub(super) fn step_of_one(
        &mut self,
        frame: &mut Frame<'m>,
        step: &'m Step,
        each: &'m Each,
    ) -> Result<(), Stop> {
        let members = self.members(frame, &each.group).map_err(|fault| self.stop(*fault))?;
        let found = match frame.own {
            Some(own) => {
                let functions = &self.module.functions;
                concerned(&step.body, each.var.slot, own, members.hull(), functions, frame.values())
            }
            None => Some(Vec::new()),
        };
        let Some(found) = found else {
            return (0..members.len())
                .try_for_each(|at| self.round(frame, step, each, members.at(at)).map(drop));
        };
        match &members {
            Members::Range(..) => {
                for &position in &found {
                    self.round(frame, step, each, position as u32)?;
                }
            }
            Members::Listed(list) => {
                for &position in list.iter().filter(|&&p| found.binary_search(&i64::from(p)).is_ok()) {
                    self.round(frame, step, each, position)?;
                }
            }
        }
        // What concerns the rank has been written down.
        let own = frame.own.take();
        let looked = self.look_around(frame, step, each, &members);
        frame.own = own;
        looked
    }

    /// Runs the step for other positions until all is known that shows in the rank's part.
    fn look_around(
        &mut self,
        frame: &mut Frame<'m>,
        step: &'m Step,
        each: &'m Each,
        members: &Members,
    ) -> Result<(), Stop> {
        let count = members.len();
        let hint = self.only.as_ref().and_then(|only| only.hints.get(&step.span)).copied().unwrap_or(0);
        for turn in 0..count {
            if self.is_told(&step.body) {
                return Ok(());
            }
            let at = (hint.min(count - 1) + turn) % count;
            let before = self.only.as_ref().is_some_and(|only| only.moves);
            self.round(frame, step, each, members.at(at))?;
            if let Some(only) = self.only.as_mut().filter(|only| only.moves && !before) {
                only.hints.insert(step.span, at);
            }
        }
        Ok(())
    }

    /// A loop within a step for the rounds that concern the rank, and for others as long as that tells anything.
    pub(super) fn loop_of_one(&mut self, frame: &mut Frame<'m>, all: &'m For<StepStmt>) -> Result<(), Stop> {
        let bounds = self.machine.bounds(&all.range, frame.values());
        let group = bounds.map_err(|fault| self.stop(*fault))?;
        let found = match frame.own {
            Some(own) => {
                let functions = &self.module.functions;
                concerned(&all.body, all.var.slot, own, group, functions, frame.values())
            }
            None => Some(Vec::new()),
        };
        let Some(found) = found else {
            return (group.0..group.1).try_for_each(|value| self.round_of_loop(frame, all, value));
        };
        found.iter().try_for_each(|&value| self.round_of_loop(frame, all, value))?;
        let own = frame.own.take();
        let mut others = group.0..group.1;
        let looked = loop {
            let Some(value) = others.next().filter(|_| !self.is_told(&all.body)) else { break Ok(()) };
            if let Err(stop) = self.round_of_loop(frame, all, value) {
                break Err(stop);
            }
        };
        frame.own = own;
        looked
    }

    fn is_told(&self, body: &[StepStmt]) -> bool {
        body.iter().all(|statement| match statement {
            StepStmt::Transfer(transfer) => self.is_known(transfer),
            StepStmt::For(all) => self.is_told(&all.body),
            StepStmt::If(_, yes, no) => self.is_told(yes) && self.is_told(no),
            StepStmt::Let(..) => true,
        })
    }

    fn members(&mut self, frame: &mut Frame<'m>, group: &Option<Group>) -> Result<Members, Fault> {
        match group {
            None => Ok(Members::Range(0, frame.ranks() as u32)),
            Some(Group::Range(range)) => {
                let (low, end) = self.range_of_ranks(frame, range)?;
                Ok(Members::Range(low, end))
            }
            Some(_) => Ok(Members::Listed(self.group(frame, group)?)),
        }
    }
}

/// The positions that a step is run for.
enum Members {
    Range(u32, u32),
    Listed(Vec<u32>),
}

impl Members {
    fn len(&self) -> u32 {
        match self {
            Members::Range(low, end) => end - low,
            Members::Listed(list) => list.len() as u32,
        }
    }

    fn at(&self, i: u32) -> u32 {
        match self {
            Members::Range(low, _) => low + i,
            Members::Listed(list) => list[i as usize],
        }
    }

    /// The least run of positions that holds them.
    fn hull(&self) -> (i64, i64) {
        match self {
            Members::Range(low, end) => (i64::from(*low), i64::from(*end)),
            Members::Listed(list) => {
                let low = list.iter().min().map_or(0, |&low| i64::from(low));
                (low, list.iter().max().map_or(low, |&high| i64::from(high) + 1))
            }
        }
    }
}
