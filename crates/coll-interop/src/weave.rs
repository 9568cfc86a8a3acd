//! From what another tool's schedule does, chunk by chunk, to a plan.
//!
//! A reader of a foreign format works out an order in which the whole schedule may run, and tells a [`Weaver`] each
//! action in that order: in which lane of which rank, on which cells of memory, after which earlier actions. The weaver
//! keeps what each cell holds, and so finds what foreign formats leave unsaid and a plan must say:
//!
//! - *given or written*: a read of a buffer's cell is one of `.in` until the cell is written, then of `.out` or `.tmp`;
//! - *shapes*: a scratch cell holds a piece of some block, and takes its length. A cell of a buffer holds its own piece
//!   and no other; a schedule that moves chunks across pieces is woven again with every chunk a block
//!   ([`refined`](refine::refined)), and then serves only counts that divide.
//!
//! The order says nothing about races: the proof of the plan finds these, and takes no word from here.

mod cells;
pub(crate) mod finish;
mod refine;
mod safety;

pub(crate) use cells::{Memory, Place};
pub(crate) use refine::refined;
pub(crate) use safety::unsafe_in_place;

use cells::Cells;
use coll_contract::Contract;
use coll_plan::{Action, Region};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Places of buffers, by rank, whose given value is copied away before anything runs.
pub(crate) type Staged = BTreeSet<(u32, Place)>;

/// A cell of a rank, by its number.
pub(crate) type CellId = u32;

/// An action that was told earlier: its lane, and which of the lane's it is.
pub(crate) type OpRef = (u32, u32);

/// Why an action cannot be woven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Snag {
    /// A buffer's cell is read that is neither given nor can be written.
    ReadsNothing(CellId),
    /// A cell is written that may only be read.
    WritesGiven(CellId),
    /// A cell of a buffer would hold what is not its own piece.
    OtherPiece(CellId),
    /// A receive before its send, or of another count. Readers check this first.
    Unmatched,
}

/// What is to be reduced with what comes in.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) cells: &'a [CellId],
    /// What comes in is the left operand.
    pub(crate) left: bool,
}

/// One action.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) rank: u32,
    pub(crate) lane: u32,
    pub(crate) waits: &'a [OpRef],
    /// The line of the file, from 1.
    pub(crate) line: u32,
}

/// Regions that are read, the shape of each, and the copies of staged ones that are waited for.
type Seen = (Vec<Region>, Vec<u32>, Vec<OpRef>);

/// A connection: sender, receiver, channel.
type Connection = (u32, u32, u32);

/// A message under way: the shape of each chunk, and when it was sent.
struct Message {
    shapes: Vec<u32>,
    level: u32,
}

/// An action with its regions.
pub(super) struct Woven {
    pub(super) action: Action,
    pub(super) source: Vec<Region>,
    /// None if it is the target.
    pub(super) operand: Option<Vec<Region>>,
    pub(super) target: Vec<Region>,
    pub(super) waits: Vec<OpRef>,
    /// The receive that a send follows byte by byte.
    pub(super) along: Option<OpRef>,
    pub(super) level: u32,
    pub(super) line: u32,
}

/// One rank's part so far.
pub(super) struct Part {
    pub(super) cells: Cells,
    pub(super) lanes: Vec<Vec<Woven>>,
    /// For staged places the copy that keeps what was given.
    pub(super) staged: BTreeMap<Place, (CellId, OpRef)>,
}

/// Makes a plan of what it is told.
pub(crate) struct Weaver<'a> {
    pub(super) contract: &'a Contract,
    pub(super) pieces: u32,
    pub(super) parts: Vec<Part>,
    under_way: HashMap<Connection, VecDeque<Message>>,
    pub(super) channels: u32,
    /// The own copies that were put in.
    pub(super) own_copies: u32,
}

impl<'a> Weaver<'a> {
    /// A weaver for a contract whose blocks are cut into so many equal pieces. `memory` says what each rank's cells are.
    pub(crate) fn new(
        contract: &'a Contract,
        pieces: u32,
        memory: impl Fn(u32) -> Vec<Memory>,
        staged: &Staged,
    ) -> Weaver<'a> {
        let part = |rank| Part {
            cells: Cells::new(contract, pieces, rank, memory(rank)),
            lanes: Vec::new(),
            staged: BTreeMap::new(),
        };
        let parts = (0..contract.ranks).map(part).collect();
        let mut weaver =
            Weaver { contract, pieces, parts, under_way: HashMap::new(), channels: 1, own_copies: 0 };
        for &(rank, place) in staged {
            weaver.stage(rank, place);
        }
        weaver
    }

    /// A new lane of a rank.
    pub(crate) fn lane(&mut self, rank: u32) -> u32 {
        let lanes = &mut self.parts[rank as usize].lanes;
        lanes.push(Vec::new());
        lanes.len() as u32 - 1
    }

    /// So many new scratch cells of a rank.
    pub(crate) fn scratch(&mut self, rank: u32, count: u32) -> CellId {
        self.parts[rank as usize].cells.add_scratch(count)
    }

    /// Sends cells; along a receive if one is named, whose target they are.
    pub(crate) fn send(
        &mut self,
        told: Told<'_>,
        (peer, channel): (u32, u32),
        cells: &[CellId],
        along: Option<OpRef>,
    ) -> Result<OpRef, Snag> {
        let (source, shapes, mut waits) = self.read(told, cells)?;
        waits.extend(told.waits);
        let level = self.level(told, &waits, along);
        let message = Message { shapes, level };
        self.under_way.entry((told.rank, peer, channel)).or_default().push_back(message);
        self.channels = self.channels.max(channel + 1);
        let action = Action::Send { peer, channel };
        let none = Vec::new;
        Ok(self.push(
            told,
            Woven { action, source, operand: None, target: none(), waits, along, level, line: told.line },
        ))
    }

    /// Stores a message in cells, reduced with the operand's if there is one.
    pub(crate) fn receive(
        &mut self,
        told: Told<'_>,
        (peer, channel): (u32, u32),
        cells: &[CellId],
        operand: Option<Operand<'_>>,
    ) -> Result<OpRef, Snag> {
        let queue = self.under_way.get_mut(&(peer, told.rank, channel));
        let message = queue.and_then(VecDeque::pop_front).ok_or(Snag::Unmatched)?;
        if message.shapes.len() != cells.len() {
            return Err(Snag::Unmatched);
        }
        self.channels = self.channels.max(channel + 1);
        let mut waits = told.waits.to_vec();
        let (operand, action) = match operand {
            None => (None, Action::Recv { peer, channel }),
            Some(Operand { cells, left }) => {
                let regions = self.read_as(told, cells, &message.shapes, &mut waits)?;
                (Some(regions), Action::RecvReduce { peer, channel, left })
            }
        };
        let target = self.write(told, cells, &message.shapes, &mut waits)?;
        let level = self.level(told, &waits, None).max(message.level);
        let source = Vec::new();
        let woven = Woven { action, source, operand, target, waits, along: None, level, line: told.line };
        Ok(self.push(told, woven))
    }

    /// Copies cells, or reduces them with the operand's into the target.
    pub(crate) fn local(
        &mut self,
        told: Told<'_>,
        from: &[CellId],
        to: &[CellId],
        operand: Option<Operand<'_>>,
    ) -> Result<OpRef, Snag> {
        let (source, shapes, mut waits) = self.read(told, from)?;
        waits.extend(told.waits);
        let (operand, action) = match operand {
            None => (None, Action::Copy),
            Some(Operand { cells, left }) => {
                (Some(self.read_as(told, cells, &shapes, &mut waits)?), Action::Reduce { left })
            }
        };
        let target = self.write(told, to, &shapes, &mut waits)?;
        let level = self.level(told, &waits, None);
        let woven = Woven { action, source, operand, target, waits, along: None, level, line: told.line };
        Ok(self.push(told, woven))
    }

    fn push(&mut self, told: Told<'_>, woven: Woven) -> OpRef {
        let lane = &mut self.parts[told.rank as usize].lanes[told.lane as usize];
        lane.push(woven);
        (told.lane, lane.len() as u32 - 1)
    }

    /// Regions and shapes of cells that are read, and the copies that staged ones wait for.
    fn read(&mut self, told: Told<'_>, cells: &[CellId]) -> Result<Seen, Snag> {
        let part = &mut self.parts[told.rank as usize];
        let (mut regions, mut shapes, mut waits) =
            (Vec::with_capacity(cells.len()), Vec::with_capacity(cells.len()), Vec::new());
        for &cell in cells {
            let staged = part.cells.given_place(cell).and_then(|place| part.staged.get(&place));
            let cell = match staged {
                Some(&(copy, op)) => {
                    if !waits.contains(&op) {
                        waits.push(op);
                    }
                    copy
                }
                None => cell,
            };
            let (region, shape) = part.cells.read(cell)?;
            regions.push(region);
            shapes.push(shape);
        }
        Ok((regions, shapes, waits))
    }

    /// Regions of an operand, whose shapes must be those of what comes in.
    fn read_as(
        &mut self,
        told: Told<'_>,
        cells: &[CellId],
        due: &[u32],
        waits: &mut Vec<OpRef>,
    ) -> Result<Vec<Region>, Snag> {
        if cells.len() != due.len() {
            return Err(Snag::Unmatched);
        }
        let (regions, shapes, more) = self.read(told, cells)?;
        waits.extend(more);
        match shapes.iter().zip(due).position(|(a, b)| a != b) {
            None => Ok(regions),
            Some(at) => Err(Snag::OtherPiece(cells[at])),
        }
    }

    fn write(
        &mut self,
        told: Told<'_>,
        cells: &[CellId],
        shapes: &[u32],
        waits: &mut Vec<OpRef>,
    ) -> Result<Vec<Region>, Snag> {
        if cells.len() != shapes.len() {
            return Err(Snag::Unmatched);
        }
        let part = &mut self.parts[told.rank as usize];
        let mut regions = Vec::with_capacity(cells.len());
        for (&cell, &shape) in cells.iter().zip(shapes) {
            // In place, what is written lies where the staged value was given.
            let staged = part.cells.kept_place(cell).and_then(|place| part.staged.get(&place));
            if let Some(&(_, op)) = staged.filter(|(_, op)| !waits.contains(op)) {
                waits.push(op);
            }
            regions.push(part.cells.write(cell, shape)?);
        }
        Ok(regions)
    }

    /// How many messages come one after the other before this action, at the most.
    fn level(&self, told: Told<'_>, waits: &[OpRef], along: Option<OpRef>) -> u32 {
        let lanes = &self.parts[told.rank as usize].lanes;
        let after = |&(lane, index): &OpRef| {
            let op = &lanes[lane as usize][index as usize];
            op.level + u32::from(op.action.receives_from().is_some())
        };
        let before = lanes[told.lane as usize].len().checked_sub(1).map(|last| (told.lane, last as u32));
        waits.iter().chain(&before).chain(&along).map(after).max().unwrap_or(0)
    }

    fn stage(&mut self, rank: u32, place: Place) {
        let lane = match self.parts[rank as usize].staged.values().next() {
            Some(&(_, (lane, _))) => lane,
            None => self.lane(rank),
        };
        let copy = self.scratch(rank, 1);
        let part = &mut self.parts[rank as usize];
        let (region, shape) = part.cells.given_region(place);
        let target = part.cells.write(copy, shape).expect("invariant: scratch takes any shape");
        let woven = Woven {
            action: Action::Copy,
            source: vec![region],
            operand: None,
            target: vec![target],
            waits: Vec::new(),
            along: None,
            level: 0,
            line: 1,
        };
        let op = self.push(Told { rank, lane, waits: &[], line: 1 }, woven);
        self.parts[rank as usize].staged.insert(place, (copy, op));
    }
}
