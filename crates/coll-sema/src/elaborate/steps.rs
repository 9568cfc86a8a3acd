//! A step as a whole: runs its statements, then puts its transfers in order (of the sender's position, then as
//! written) and lets its writes into scratch take effect.

use super::frame::Frame;
use super::{Elaborator, Stop};
use crate::codes;
use crate::resolved::{Each, For, Moves, Step, StepStmt};
use coll_base::Span;
use coll_ir::IdleKind;

impl<'m> Elaborator<'m> {
    pub(super) fn step(&mut self, frame: &mut Frame<'m>, step: &'m Step) -> Result<(), Stop> {
        let first = self.transfers.len();
        self.senders.clear();
        let ran = self.step_ranks(frame, step);
        self.end_step(frame, first, step.span);
        ran
    }

    fn step_ranks(&mut self, frame: &mut Frame<'m>, step: &'m Step) -> Result<(), Stop> {
        let Some(each) = &step.each else { return self.step_block(frame, &step.body) };
        if self.only.is_some() {
            return self.step_of_one(frame, step, each);
        }
        let positions = self.group(frame, &each.group).map_err(|fault| self.stop(*fault))?;
        let mut ran = false;
        for position in positions {
            ran |= self.round(frame, step, each, position)?;
        }
        if !ran && step.body.moves() {
            self.trace.idle(IdleKind::Step, step.span, step.whole, self.steps.len() as u32);
        }
        Ok(())
    }

    /// A step for one value of its variable; false if its condition leaves it out.
    pub(super) fn round(
        &mut self,
        frame: &mut Frame<'m>,
        step: &'m Step,
        each: &'m Each,
        position: u32,
    ) -> Result<bool, Stop> {
        let name = self.trace.name(&each.var.name);
        self.trace.push(name, i64::from(position));
        frame.locals[each.var.slot as usize] = i64::from(position);
        let paid = self.machine.spend(step.span);
        let holds = paid.and_then(|()| self.machine.holds(&each.condition, frame.values()));
        let holds = holds.map_err(|fault| self.stop(*fault))?;
        if holds {
            self.step_block(frame, &step.body)?;
        }
        self.trace.pop();
        Ok(holds)
    }

    /// A loop within a step for one value of its variable.
    pub(super) fn round_of_loop(
        &mut self,
        frame: &mut Frame<'m>,
        all: &'m For<StepStmt>,
        value: i64,
    ) -> Result<(), Stop> {
        let name = self.trace.name(&all.var.name);
        self.trace.push(name, value);
        frame.locals[all.var.slot as usize] = value;
        let paid = self.machine.spend(all.range.span);
        let holds = paid.and_then(|()| self.machine.holds(&all.condition, frame.values()));
        if holds.map_err(|fault| self.stop(*fault))? {
            self.step_block(frame, &all.body)?;
        }
        self.trace.pop();
        Ok(())
    }

    fn step_block(&mut self, frame: &mut Frame<'m>, statements: &'m [StepStmt]) -> Result<(), Stop> {
        statements.iter().try_for_each(|stmt| self.step_stmt(frame, stmt))
    }

    fn step_stmt(&mut self, frame: &mut Frame<'m>, stmt: &'m StepStmt) -> Result<(), Stop> {
        match stmt {
            // A faulty transfer is told and left out: the others may be faulty too.
            StepStmt::Transfer(transfer) => match self.transfer(frame, transfer) {
                Ok(()) => Ok(()),
                Err(fault) if fault.code == codes::TOO_LARGE => Err(self.stop(*fault)),
                Err(fault) => {
                    self.report(*fault);
                    if self.sink.is_full() {
                        return Err(Stop::Failed);
                    }
                    Ok(())
                }
            },
            StepStmt::Let(slot, value) => self.assign(frame, *slot, value).map_err(|fault| self.stop(*fault)),
            StepStmt::For(all) if self.only.is_some() => self.loop_of_one(frame, all),
            StepStmt::For(all) => self.for_loop(frame, all, |this, frame| this.step_block(frame, &all.body)),
            StepStmt::If(condition, yes, no) => match self.eval(frame, condition) {
                Ok(holds) => self.step_block(frame, if holds != 0 { yes } else { no }),
                Err(fault) => Err(self.stop(*fault)),
            },
        }
    }

    /// Closes the step whose transfers start at `first`. A step without transfers is none.
    fn end_step(&mut self, frame: &mut Frame<'m>, first: usize, span: Span) {
        for (scratch, at, held) in self.written.drain(..) {
            frame.scratch[scratch as usize].held[at] = held;
        }
        let elsewhere = self.only.as_mut().is_some_and(|only| std::mem::take(&mut only.moves));
        if self.transfers.len() == first && !elsewhere {
            return;
        }
        if !self.senders.is_sorted() {
            let mut order: Vec<usize> = (0..self.senders.len()).collect();
            order.sort_by_key(|&at| self.senders[at]);
            let sorted: Vec<_> = order.into_iter().map(|at| self.transfers[first + at]).collect();
            self.transfers[first..].copy_from_slice(&sorted);
        }
        let origin = self.trace.origin(span);
        self.steps.push(coll_ir::Step { origin });
    }
}
