//! Runs a program on symbols: in each step first all reads, then all writes in the order of the list.
//!
//! A piece that holds nothing and is read anyway is noted once, and what is made of it is poisoned, so that one fault
//! is told once.

use super::by_statement::ByStatement;
use super::measure::Scale;
use super::memory::{Cell, Memory};
use super::sets::{SetId, Sets};
use super::values::{NOTHING, POISON, Values};
use coll_ir::{Kind, Program, Transfer};

/// What a run left behind.
pub(super) struct Outcome {
    pub(super) values: Values,
    pub(super) memory: Memory,
    /// Which ranks each rank knows to have entered, at the end.
    pub(super) tokens: Vec<Token>,
    /// Every set of `tokens`.
    pub(super) token_sets: Sets,
    /// Transfers that read a source that holds nothing.
    pub(super) empty_sources: ByStatement,
    /// Transfers that reduce into what holds nothing.
    pub(super) empty_targets: ByStatement,
    /// Messages that brought what was there already, and had come with a message.
    pub(super) resent: Vec<u32>,
    /// What each rank sent and received.
    pub(super) traffic: Vec<Traffic>,
    /// Messages on the longest path.
    pub(super) depth: u32,
    /// The first transfer between blocks whose counts may differ.
    pub(super) crosses_classes: Option<u32>,
}

/// Which ranks are known to have entered, and after how many messages that was known.
#[derive(Clone, Copy)]
pub(super) struct Token {
    pub(super) ranks: SetId,
    depth: u32,
}

/// What a rank sends and receives, in units of the program's [`Scale`].
#[derive(Clone, Copy, Default)]
pub(super) struct Traffic {
    pub(super) sent: u128,
    pub(super) received: u128,
    pub(super) messages_sent: u32,
    pub(super) messages_received: u32,
}

/// Runs a program.
pub(super) fn run(program: &Program, scale: &Scale) -> Outcome {
    let values = Values::new(&program.contract);
    let memory = Memory::new(program, &values);
    let mut token_sets = Sets::new();
    let token = |rank| Token { ranks: token_sets.single(rank), depth: 0 };
    let tokens = (0..program.ranks()).map(token).collect();
    let outcome = Outcome {
        values,
        memory,
        tokens,
        token_sets,
        empty_sources: ByStatement::default(),
        empty_targets: ByStatement::default(),
        resent: Vec::new(),
        traffic: vec![Traffic::default(); program.ranks() as usize],
        depth: 0,
        crosses_classes: None,
    };
    let mut runner = Runner { program, scale, outcome, cells: Vec::new(), reads: Vec::new() };
    let mut start = 0;
    for step in program.transfers.chunk_by(|a, b| a.step == b.step) {
        runner.step(start, step);
        start += step.len() as u32;
    }
    runner.outcome
}

struct Runner<'p> {
    program: &'p Program,
    scale: &'p Scale,
    outcome: Outcome,
    /// What this step has read.
    cells: Vec<Cell>,
    reads: Vec<Read>,
}

#[derive(Clone, Copy)]
enum Read {
    /// A run of [`Runner::cells`].
    Cells(usize, usize),
    Token(Token),
    Nothing,
}

impl Runner<'_> {
    fn step(&mut self, start: u32, step: &[Transfer]) {
        self.cells.clear();
        self.reads.clear();
        for (index, transfer) in (start..).zip(step) {
            let read = match transfer.kind {
                Kind::Drop => Read::Nothing,
                Kind::Signal => Read::Token(self.outcome.tokens[transfer.source.rank as usize]),
                Kind::Move | Kind::Reduce | Kind::ReduceLeft => self.read(index, transfer),
            };
            self.reads.push(read);
        }
        for (at, (index, transfer)) in (start..).zip(step).enumerate() {
            match self.reads[at] {
                Read::Token(token) => self.unite(transfer, token),
                Read::Cells(from, to) => self.write(index, transfer, from, to),
                Read::Nothing => self.empty(transfer),
            }
        }
    }

    fn read(&mut self, index: u32, transfer: &Transfer) -> Read {
        let from = self.cells.len();
        self.outcome.memory.read(transfer.source, transfer.low, transfer.high, &mut self.cells);
        for (piece, cell) in
            (transfer.low..).zip(&mut self.cells[from..]).filter(|(_, cell)| cell.value == NOTHING)
        {
            self.outcome.empty_sources.add(self.program, index, piece);
            cell.value = POISON;
        }
        Read::Cells(from, self.cells.len())
    }

    fn write(&mut self, index: u32, transfer: &Transfer, from: usize, to: usize) {
        self.count(index, transfer);
        let Outcome { memory, values, .. } = &mut self.outcome;
        let arriving = &self.cells[from..to];
        let sent = !transfer.is_local();
        let range = (transfer.low, transfer.high);
        let targets = memory.write(transfer.target, range, transfer.class, arriving.len() == 1);
        let (mut all_there, mut hollow, mut deepest) = (true, None, 0);
        for (at, target) in targets.iter_mut().enumerate() {
            let cell = arriving[at.min(arriving.len() - 1)];
            let depth = cell.depth() + u32::from(sent);
            let written = if transfer.kind == Kind::Move {
                all_there &= target.value == cell.value && target.arrived() && cell.value != POISON;
                Cell::new(cell.value, depth, sent || cell.arrived())
            } else {
                if target.value == NOTHING {
                    hollow.get_or_insert(transfer.low + at as u32);
                }
                let value = match (target.value, transfer.kind) {
                    (NOTHING, _) => POISON,
                    (value, Kind::Reduce) => values.reduce(value, cell.value),
                    (value, _) => values.reduce(cell.value, value),
                };
                Cell::new(value, depth.max(target.depth()), sent || target.arrived())
            };
            deepest = deepest.max(written.depth());
            *target = written;
        }
        self.outcome.depth = self.outcome.depth.max(deepest);
        if let Some(piece) = hollow {
            self.outcome.empty_targets.add(self.program, index, piece);
        }
        if transfer.kind == Kind::Move && sent && all_there {
            self.outcome.resent.push(index);
        }
    }

    fn unite(&mut self, transfer: &Transfer, token: Token) {
        self.count_message(transfer);
        let Outcome { tokens, token_sets, depth, .. } = &mut self.outcome;
        let own = &mut tokens[transfer.target.rank as usize];
        let sent_depth = token.depth + u32::from(!transfer.is_local());
        *own = Token { ranks: token_sets.union(own.ranks, token.ranks).0, depth: own.depth.max(sent_depth) };
        *depth = (*depth).max(own.depth);
    }

    fn empty(&mut self, transfer: &Transfer) {
        let range = (transfer.low, transfer.high);
        let nothing = Cell::initial(NOTHING);
        self.outcome.memory.write(transfer.target, range, transfer.class, true).fill(nothing);
    }

    fn count(&mut self, index: u32, transfer: &Transfer) {
        let class = |place: coll_ir::Place| {
            if self.program.is_scratch(place.buffer) {
                self.outcome.memory.slot_class(place)
            } else {
                Some(self.program.contract.class(place.rank, place.buffer, place.block))
            }
        };
        let takes_shape = self.program.is_scratch(transfer.target.buffer) && transfer.kind == Kind::Move;
        if !takes_shape
            && self.outcome.crosses_classes.is_none()
            && class(transfer.target).is_some_and(|class| class != transfer.class)
        {
            self.outcome.crosses_classes = Some(index);
        }
        self.count_message(transfer);
        if !transfer.is_local() {
            let length = self.scale.length(transfer.low, transfer.high) as u128;
            self.outcome.traffic[transfer.source.rank as usize].sent += length;
            self.outcome.traffic[transfer.target.rank as usize].received += length;
        }
    }

    fn count_message(&mut self, transfer: &Transfer) {
        if !transfer.is_local() {
            self.outcome.traffic[transfer.source.rank as usize].messages_sent += 1;
            self.outcome.traffic[transfer.target.rank as usize].messages_received += 1;
        }
    }
}
