//! Elaboration: runs a schedule's statements and writes down the transfers that they make.
//!
//! Everything is run in a [`Frame`]: a group of ranks, seen as positions, and for each buffer its blocks
//! as regions of the program's buffers. The top frame is the whole; a call makes a new one (`calls`). While running,
//! places in a block are exact fractions, interned as [`Cut`](cutter::Cut)s; `finish` numbers the pieces once all
//! cuts are known, and judges what can only be judged then.
//!
//! | file | idea |
//! |---|---|
//! | `frame` | whom positions and blocks stand for |
//! | `statements` | control flow, declarations |
//! | `groups` | lists of ranks |
//! | `views` | which chunks a view chooses |
//! | `steps` | a step as a whole: its order, its slots |
//! | `transfers` | one transfer |
//! | `calls` | a schedule as a procedure |
//! | `cutter` | interned fractions |
//! | `trace` | where transfers come from |
//! | `sink` | errors, each statement's once |
//! | `one_rank` | one rank's part without the others' |
//! | `inverse` | whom a step's transfers may concern |
//! | `finish` | pieces, conflicting writes, drops that matter |

mod calls;
mod cutter;
mod finish;
mod frame;
mod groups;
mod inverse;
mod one_rank;
mod sink;
mod statements;
mod steps;
mod trace;
mod transfers;
mod views;

use crate::codes;
use crate::contract::{ClassRule, Facts, contract, contract_of_rank};
use crate::eval::{Fault, Machine};
use crate::module::{Instantiated, Module, Refusal};
use crate::resolved::{Collective, Expr, GLOBAL_N, Schedule};
use coll_base::{Diagnostic, Span};
use coll_contract::ClassId;
use coll_contract::Contract;
use coll_ir::{Place, Scratch, Stage, Step, Transfer, Tune};
use cutter::Cutter;
use frame::{Frame, Held};
use one_rank::Only;
use sink::Sink;
use std::collections::HashMap;
use std::rc::Rc;
use trace::Trace;

/// The most transfers of a program, drops included.
const TRANSFERS_MAX: usize = 64_000_000;
/// The deepest that calls may nest.
const DEPTH_MAX: usize = 48;
/// The deepest that blocks of statements may nest, over all calls.
const NESTING_MAX: usize = 400;

/// Instantiates schedule `id` of a module; its collective is known.
pub(crate) fn elaborate(module: &Module, id: u32, globals: Vec<i64>) -> Result<Instantiated, Refusal> {
    let schedule = &module.schedules[id as usize];
    let collective = collective_of(module, schedule);
    let mut machine = Machine::new(&module.functions);
    let contract =
        contract(collective, &globals, &mut machine).map_err(|fault| Refusal::Errors(vec![*fault]))?;
    let mut elaborator = Elaborator::new(
        module,
        machine,
        contract,
        Running { schedule: id, ranks: globals[GLOBAL_N] as u32, call: schedule.span },
    );
    let mut frame = Frame::top(schedule, collective, globals, &elaborator.contract, &mut elaborator.cutter);
    let ran = elaborator.block(&mut frame, &schedule.body);
    // What is wrong for this number of ranks is told before what is not meant for it.
    if let (Err(Stop::DoesNotApply { span, reason }), true) = (ran, elaborator.sink.is_empty()) {
        return Err(Refusal::DoesNotApply { span, reason });
    }
    elaborator.finish(schedule, collective.rooted, frame.globals)
}

/// How many rounds of loops one rank's part may take; a whole program is the better way to more.
const FUEL_OF_ONE: u64 = 6_000_000;

/// Instantiates a schedule for one rank alone. None if that cannot be done, or would end in errors, which only the
/// whole can tell.
pub(crate) fn elaborate_rank(
    module: &Module,
    id: u32,
    globals: Vec<i64>,
    rank: u32,
) -> Result<Option<Instantiated>, Refusal> {
    let schedule = &module.schedules[id as usize];
    let collective = collective_of(module, schedule);
    let mut machine = Machine::with_fuel(&module.functions, FUEL_OF_ONE);
    let Ok(Some((contract, classes))) = contract_of_rank(collective, &globals, &mut machine, rank) else {
        return Ok(None);
    };
    let running = Running { schedule: id, ranks: globals[GLOBAL_N] as u32, call: schedule.span };
    let mut elaborator = Elaborator::new(module, machine, contract, running);
    elaborator.only = Some(Only::new(rank, classes));
    let mut frame = Frame::top(schedule, collective, globals, &elaborator.contract, &mut elaborator.cutter);
    frame.find(Some(rank));
    let ran = elaborator.block(&mut frame, &schedule.body);
    if !elaborator.sink.is_empty() {
        return Ok(None);
    }
    if let Err(Stop::DoesNotApply { span, reason }) = ran {
        return Err(Refusal::DoesNotApply { span, reason });
    }
    Ok(elaborator.finish(schedule, collective.rooted, frame.globals).ok())
}

fn collective_of<'m>(module: &'m Module, schedule: &Schedule) -> &'m Collective {
    let id = schedule
        .collective
        .expect("invariant: a schedule without a collective is broken, and never elaborated");
    &module.collectives[id as usize]
}

/// Why elaboration ends early.
enum Stop {
    /// The sink knows why.
    Failed,
    /// A `require` at the top.
    DoesNotApply { span: Span, reason: String },
}

/// A schedule being run.
struct Running {
    schedule: u32,
    /// The size of its group.
    ranks: u32,
    /// The call.
    call: Span,
}

struct Elaborator<'m> {
    module: &'m Module,
    machine: Machine<'m>,
    contract: Contract,
    /// The rank that is asked for alone, if one is.
    only: Option<Only>,
    /// Of the contract, for quick look-ups: blocks before each buffer, and of all.
    first_blocks: Vec<u32>,
    width: u32,
    cutter: Cutter,
    trace: Trace,
    sink: Sink,
    /// The calls being run, outermost first. The first is the schedule itself.
    running: Vec<Running>,
    /// How many blocks of statements are open, over all calls.
    nesting: usize,
    facts: HashMap<(u32, Vec<i64>), Rc<Facts>>,
    /// `low` and `high` of these are cuts until `finish`.
    transfers: Vec<Transfer>,
    /// The senders' positions of the transfers of the step being run.
    senders: Vec<u32>,
    /// Slots written by the step being run: which scratch, which of its places, and what it will hold.
    written: Vec<(u32, usize, Held)>,
    steps: Vec<Step>,
    stages: Vec<Stage>,
    scratch: Vec<Scratch>,
    /// For each scratch, the most parts that a slot holds.
    scratch_parts: Vec<u32>,
    tune: Tune,
    warnings: Sink,
}

impl<'m> Elaborator<'m> {
    fn new(module: &'m Module, machine: Machine<'m>, contract: Contract, running: Running) -> Elaborator<'m> {
        Elaborator {
            module,
            machine,
            first_blocks: (0..contract.buffers.len()).map(|at| contract.first_block(at as u32)).collect(),
            width: contract.blocks_per_rank(),
            contract,
            only: None,
            cutter: Cutter::new(),
            trace: Trace::new(running.call),
            sink: Sink::new(),
            running: vec![running],
            nesting: 0,
            facts: HashMap::new(),
            transfers: Vec::new(),
            senders: Vec::new(),
            written: Vec::new(),
            steps: Vec::new(),
            stages: Vec::new(),
            scratch: Vec::new(),
            scratch_parts: Vec::new(),
            tune: Tune::default(),
            warnings: Sink::new(),
        }
    }

    /// The count class of a place in one of the contract's buffers.
    fn class_of(&self, place: Place) -> ClassId {
        if let Some(Only { classes: ClassRule::Transposed(rule), .. }) = &self.only {
            return rule.class(place.rank, place.buffer, place.block);
        }
        let row = if self.contract.only.is_some() { 0 } else { place.rank as usize * self.width as usize };
        self.contract.classes.table[row + (self.first_blocks[place.buffer as usize] + place.block) as usize]
    }

    fn eval(&mut self, frame: &Frame<'m>, expr: &Expr) -> Result<i64, Fault> {
        self.machine.eval(expr, frame.values())
    }

    /// Reports a fault after which nothing can go on.
    fn stop(&mut self, fault: Diagnostic) -> Stop {
        self.report(fault);
        Stop::Failed
    }

    /// Reports a fault with the variables in force.
    fn report(&mut self, mut fault: Diagnostic) {
        let bindings = self.trace.describe();
        if let Some(label) = fault.primary.as_mut().filter(|_| !bindings.is_empty()) {
            label.text =
                if label.text.is_empty() { bindings } else { format!("{}, with {bindings}", label.text) };
        }
        let (statement, fault) = self.with_calls(fault);
        self.sink.push(statement, fault);
    }

    /// Adds the calls being run; also gives where the fault itself stands, which may not be whom it is blamed on.
    fn with_calls(&self, fault: Diagnostic) -> (Option<Span>, Diagnostic) {
        let statement = fault.primary.as_ref().map(|label| label.span);
        (statement, fault.called_by(self.trace.calls()).blame_call(self.running[0].call.file))
    }

    /// A number that counts something: at least 1, at most `most`.
    fn count(&mut self, frame: &Frame<'m>, expr: &Expr, what: &str, most: u64) -> Result<u32, Fault> {
        let value = self.eval(frame, expr)?;
        if value < 1 {
            let message = format!("{value} {what}: there must be at least 1");
            let diagnostic = Diagnostic::new(codes::NOT_A_COUNT, expr.span, message);
            return Err(Box::new(diagnostic.expected("at least 1").found(value.to_string())));
        }
        match u32::try_from(value).ok().filter(|&count| u64::from(count) <= most) {
            Some(count) => Ok(count),
            None => {
                let message = format!("{value} {what} are more than {most}");
                Err(Box::new(Diagnostic::new(codes::TOO_LARGE, expr.span, message)))
            }
        }
    }
}
