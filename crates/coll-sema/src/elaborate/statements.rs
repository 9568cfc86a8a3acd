//! Statements outside steps: control flow, declarations, `require`, stages.

use super::frame::{Frame, FrameScratch, Held};
use super::{Elaborator, NESTING_MAX, Stop};
use crate::codes;
use crate::eval::Fault;
use crate::module::values;
use crate::resolved::{Expr, For, Moves, Stmt, Tuned, Tuning};
use coll_base::{Diagnostic, Span};
use coll_ir::{IdleKind, Scratch, Stage};

/// The most chunks of one block.
const CHUNKS_MAX: u64 = 1 << 20;
/// The most slots of one scratch on all ranks together.
const SLOTS_MAX: u64 = 1 << 26;

impl<'m> Elaborator<'m> {
    pub(super) fn block(&mut self, frame: &mut Frame<'m>, statements: &'m [Stmt]) -> Result<(), Stop> {
        if self.nesting >= NESTING_MAX {
            let call = self.running[self.running.len() - 1].call;
            let message = format!("calls and blocks nest deeper than {NESTING_MAX}");
            self.trace.leave();
            return Err(self.stop(Diagnostic::new(codes::ENDLESS_CALL, call, message)));
        }
        self.nesting += 1;
        let ran = statements.iter().try_for_each(|stmt| self.stmt(frame, stmt));
        self.nesting -= 1;
        ran
    }

    fn stmt(&mut self, frame: &mut Frame<'m>, stmt: &'m Stmt) -> Result<(), Stop> {
        match stmt {
            Stmt::Step(step) => self.step(frame, step),
            Stmt::Call(call) => self.call(frame, call),
            Stmt::For(all) => self.for_loop(frame, all, |this, frame| this.block(frame, &all.body)),
            Stmt::If(condition, yes, no) => match self.eval(frame, condition) {
                Ok(holds) => self.block(frame, if holds != 0 { yes } else { no }),
                Err(fault) => Err(self.stop(*fault)),
            },
            Stmt::Stage(name, body) => self.stage(frame, name, body),
            Stmt::Require(condition, reason) => self.require(frame, condition, reason),
            Stmt::Let(slot, value) => self.assign(frame, *slot, value).map_err(|fault| self.stop(*fault)),
            Stmt::Chunks(extents) => self.chunks(frame, extents).map_err(|fault| self.stop(*fault)),
            Stmt::Scratch(id, extents, span) => {
                self.declare_scratch(frame, *id, extents, *span).map_err(|fault| self.stop(*fault))
            }
            Stmt::Tune(entries) => {
                entries.iter().try_for_each(|tuned| self.tune(frame, tuned)).map_err(|f| self.stop(*f))
            }
        }
    }

    pub(super) fn assign(&mut self, frame: &mut Frame<'m>, slot: u32, value: &Expr) -> Result<(), Fault> {
        frame.locals[slot as usize] = self.eval(frame, value)?;
        Ok(())
    }

    /// A loop; `body` runs one round.
    pub(super) fn for_loop<S: Moves>(
        &mut self,
        frame: &mut Frame<'m>,
        all: &'m For<S>,
        mut body: impl FnMut(&mut Self, &mut Frame<'m>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let bounds = self.machine.bounds(&all.range, frame.values());
        let (low, end) = bounds.map_err(|fault| self.stop(*fault))?;
        let name = self.trace.name(&all.var.name);
        let mut ran = false;
        for value in low..end {
            self.trace.push(name, value);
            frame.locals[all.var.slot as usize] = value;
            let paid = self.machine.spend(all.range.span);
            let holds = paid.and_then(|()| self.machine.holds(&all.condition, frame.values()));
            if holds.map_err(|fault| self.stop(*fault))? {
                ran = true;
                body(self, frame)?;
            }
            self.trace.pop();
        }
        if !ran && all.body.moves() {
            self.trace.idle(IdleKind::Loop, all.range.span, all.span, self.steps.len() as u32);
        }
        Ok(())
    }

    fn stage(&mut self, frame: &mut Frame<'m>, name: &str, body: &'m [Stmt]) -> Result<(), Stop> {
        let start = self.steps.len() as u32;
        let at = self.stages.len();
        self.stages.push(Stage { name: name.to_string(), start, end: start });
        let ran = self.block(frame, body);
        self.stages[at].end = self.steps.len() as u32;
        ran
    }

    fn require(&mut self, frame: &Frame<'m>, condition: &Expr, reason: &str) -> Result<(), Stop> {
        if self.eval(frame, condition).map_err(|fault| self.stop(*fault))? != 0 {
            return Ok(());
        }
        let [_, .., running] = self.running.as_slice() else {
            return Err(Stop::DoesNotApply { span: condition.span, reason: reason.to_string() });
        };
        let full = format!("{}.{}", frame.schedule.collective_name, frame.schedule.name);
        let values = coll_base::named_values(&values(frame.schedule, &frame.globals));
        let values = values.into_iter().map(|value| format!(", {value}")).collect::<String>();
        let message = format!("`{full}` is not for n = {}{values}: {reason}", frame.ranks());
        let diagnostic = Diagnostic::new(codes::REQUIRE_IN_CALL, running.call, message);
        let diagnostic = diagnostic.also(condition.span, "this does not hold");
        // What is at fault is the call, as its caller sees it.
        self.trace.leave();
        let help =
            "state the same `require` in the schedule that calls it, or call it on a group that it serves";
        Err(self.stop(diagnostic.help(help)))
    }

    fn chunks(&mut self, frame: &mut Frame<'m>, extents: &[Expr]) -> Result<(), Fault> {
        let mut grid = Vec::new();
        let mut cells = 1;
        for extent in extents {
            let count = self.count(frame, extent, "chunks", CHUNKS_MAX / cells)?;
            cells *= u64::from(count);
            grid.push(count);
        }
        let span = extents.first().map(|extent| extent.span).unwrap_or_default();
        frame.cut(&grid, cells as u32, &mut self.cutter, span)
    }

    fn declare_scratch(
        &mut self,
        frame: &mut Frame<'m>,
        id: u32,
        extents: &[Expr],
        span: Span,
    ) -> Result<(), Fault> {
        let mut written = Vec::new();
        let mut slots = 1;
        let most = SLOTS_MAX / frame.ranks() as u64;
        for extent in extents {
            let count = self.count(frame, extent, "slots", most / slots)?;
            slots *= u64::from(count);
            written.push(count);
        }
        debug_assert_eq!(id as usize, frame.scratch.len(), "scratch is declared once, at the top, in order");
        if self.scratch.len() >= CHUNKS_MAX as usize {
            let message = format!("more than {CHUNKS_MAX} calls with scratch");
            return Err(Box::new(Diagnostic::new(codes::TOO_LARGE, span, message)));
        }
        let positions = match (&self.only, frame.own) {
            (None, _) => 0..frame.ranks() as u32,
            (Some(_), Some(own)) => own..own + 1,
            (Some(_), None) => 0..0,
        };
        frame.scratch.push(FrameScratch {
            buffer: (self.contract.buffers.len() + self.scratch.len()) as u32,
            slots: slots as u32,
            extents: if written.is_empty() { [1].into() } else { written.as_slice().into() },
            held: vec![Held::Nothing; slots as usize * positions.len()],
            positions,
        });
        let name = frame.schedule.scratch[id as usize].clone();
        self.scratch.push(Scratch { name, slots: slots as u32, extents: written });
        self.scratch_parts.push(1);
        Ok(())
    }

    /// Tuning is of the whole: what a called schedule says of itself does not count.
    fn tune(&mut self, frame: &Frame<'m>, tuned: &Tuned) -> Result<(), Fault> {
        let called = self.running.len() > 1;
        match tuned {
            Tuned::Type(Tuning::Wire, _, span) if called => self.tuned_in_call("wire", *span),
            Tuned::Type(_, _, span) if called => self.tuned_in_call("accumulate", *span),
            Tuned::Type(Tuning::Wire, dtype, _) => self.tune.wire = Some(*dtype),
            Tuned::Type(_, dtype, span) => {
                self.tune.accumulate = Some(*dtype);
                if !self.contract.reduces() {
                    let name = &self.contract.collective;
                    let message = format!("`accumulate` means nothing here: {name} reduces nothing");
                    let diagnostic = Diagnostic::new(codes::NOTHING_ACCUMULATED, *span, message);
                    let help = "leave it out: elements arrive as they were sent";
                    let (statement, warning) = self.with_calls(diagnostic.help(help));
                    self.warnings.push(statement, warning);
                }
            }
            Tuned::Number(tuning, value) => {
                let (name, most) = match tuning {
                    Tuning::Slices => ("slices", 1024),
                    _ => ("lanes", 64),
                };
                let number = self.eval(frame, value)?;
                if !(1..=most).contains(&number) {
                    let message = format!("`{name}` is {number}, and goes from 1 to {most}");
                    let diagnostic = Diagnostic::new(codes::TUNE_RANGE, value.span, message);
                    let diagnostic = diagnostic.expected(format!("1 to {most}"));
                    return Err(Box::new(diagnostic.found(number.to_string())));
                }
                match tuning {
                    _ if called => self.tuned_in_call(name, value.span),
                    Tuning::Slices => self.tune.slices = Some(number as u32),
                    _ => self.tune.lanes = Some(number as u32),
                }
            }
        }
        Ok(())
    }

    fn tuned_in_call(&mut self, name: &str, span: Span) {
        let message = format!("`{name}` of a called schedule does not count");
        let diagnostic = Diagnostic::new(codes::TUNE_IN_CALL, span, message);
        let help = "state it in the schedule that calls, whose tuning governs all it does";
        let (statement, warning) = self.with_calls(diagnostic.help(help));
        self.warnings.push(statement, warning);
    }
}
