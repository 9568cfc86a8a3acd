//! A frame: what one run of a schedule sees. Ranks are positions in its group; a block of a buffer is a list of
//! regions of the program's buffers, the same on every rank. In the top frame a block is one region, the whole block;
//! in a call it is what the caller gave.

use super::cutter::{Cut, Cutter};
use crate::eval::{Fault, Values};
use crate::resolved::{Collective, GLOBAL_N, GLOBAL_ROOT, Schedule, Storage};
use coll_base::Span;
use coll_contract::{ClassId, Contract};
use std::rc::Rc;

pub(super) struct Frame<'m> {
    pub(super) schedule: &'m Schedule,
    pub(super) collective: &'m Collective,
    pub(super) globals: Vec<i64>,
    pub(super) locals: Vec<i64>,
    /// The rank of each position.
    pub(super) members: Vec<u32>,
    pub(super) buffers: Vec<FrameBuffer>,
    /// Chunks of each block.
    pub(super) cells: u32,
    /// The position of the rank that is asked for alone, if it is a member.
    pub(super) own: Option<u32>,
    /// In order of the schedule's scratch names; those not yet declared are missing.
    pub(super) scratch: Vec<FrameScratch>,
}

/// A buffer of the frame's collective.
pub(super) struct FrameBuffer {
    pub(super) blocks: Vec<Vec<Region>>,
    /// Extents that a view indexes: the blocks, if it is declared with any, then the grid.
    pub(super) extents: Rc<[u32]>,
}

/// An unbroken part of a block of the program's, cut into the frame's chunks.
#[derive(Clone)]
pub(super) struct Region {
    pub(super) buffer: u32,
    pub(super) block: u32,
    /// Where the frame's chunks begin, and where the last ends.
    pub(super) cuts: Rc<[Cut]>,
}

impl Region {
    pub(super) fn low(&self) -> Cut {
        self.cuts[0]
    }

    pub(super) fn high(&self) -> Cut {
        self.cuts[self.cuts.len() - 1]
    }
}

/// A scratch of the frame's schedule.
pub(super) struct FrameScratch {
    /// Its number among the program's buffers.
    pub(super) buffer: u32,
    pub(super) slots: u32,
    pub(super) extents: Rc<[u32]>,
    /// What each slot holds: by position, then slot.
    pub(super) held: Vec<Held>,
    /// The positions whose slots are followed.
    pub(super) positions: std::ops::Range<u32>,
}

impl FrameScratch {
    /// Where a slot is in `held`, if it is followed.
    pub(super) fn at(&self, position: u32, slot: u32) -> Option<usize> {
        let row = self.positions.contains(&position).then(|| position - self.positions.start)?;
        Some(row as usize * self.slots as usize + slot as usize)
    }
}

/// What a slot holds.
#[derive(Clone)]
pub(super) enum Held {
    Nothing,
    /// The usual: one run of one block.
    One(Part),
    /// A view of several blocks.
    Many(Rc<[Part]>),
}

impl Held {
    /// What it holds, part by part.
    pub(super) fn parts(&self) -> Option<&[Part]> {
        match self {
            Held::Nothing => None,
            Held::One(part) => Some(std::slice::from_ref(part)),
            Held::Many(parts) => Some(parts),
        }
    }
}

/// The shape of a run of a block.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) class: ClassId,
    pub(super) low: Cut,
    pub(super) high: Cut,
}

impl<'m> Frame<'m> {
    /// The frame of a schedule that is not called.
    pub(super) fn top(
        schedule: &'m Schedule,
        collective: &'m Collective,
        globals: Vec<i64>,
        contract: &Contract,
        cutter: &mut Cutter,
    ) -> Frame<'m> {
        let whole = cutter.whole();
        let blocks = contract.buffers.iter().zip(0..).map(|(decl, buffer)| {
            (0..decl.blocks).map(|block| vec![Region { buffer, block, cuts: whole.clone() }]).collect()
        });
        let members = (0..contract.ranks).collect();
        Frame::new(schedule, collective, globals, members, blocks.collect())
    }

    /// A frame for a group. If the schedule never names the root it is written for root 0, and turned: position i is
    /// member i + root, and block i of a buffer with a block for each rank is that member's.
    pub(super) fn new(
        schedule: &'m Schedule,
        collective: &'m Collective,
        globals: Vec<i64>,
        mut members: Vec<u32>,
        mut blocks: Vec<Vec<Vec<Region>>>,
    ) -> Frame<'m> {
        if collective.rooted && !schedule.names_root {
            let root = globals[GLOBAL_ROOT] as usize;
            members.rotate_left(root);
            for (blocks, _) in blocks.iter_mut().zip(&collective.buffers).filter(|(_, buffer)| buffer.by_rank)
            {
                blocks.rotate_left(root);
            }
        }
        let buffers = blocks.into_iter().map(|blocks| FrameBuffer { blocks, extents: Rc::new([]) }).collect();
        let locals = vec![0; schedule.locals.len()];
        let mut frame = Frame {
            schedule,
            collective,
            globals,
            locals,
            members,
            buffers,
            cells: 1,
            own: None,
            scratch: Vec::new(),
        };
        frame.index_by(&[1]);
        frame
    }

    /// Looks up the position of the rank that is asked for alone.
    pub(super) fn find(&mut self, only: Option<u32>) {
        let position = only.and_then(|rank| self.members.iter().position(|&member| member == rank));
        self.own = position.map(|position| position as u32);
    }

    pub(super) fn ranks(&self) -> i64 {
        self.globals[GLOBAL_N]
    }

    pub(super) fn values(&self) -> Values<'_> {
        Values { globals: &self.globals, locals: &self.locals }
    }

    /// Cuts every block into a grid.
    pub(super) fn cut(
        &mut self,
        grid: &[u32],
        cells: u32,
        cutter: &mut Cutter,
        span: Span,
    ) -> Result<(), Fault> {
        self.cells = cells;
        for region in self.buffers.iter_mut().flat_map(|buffer| buffer.blocks.iter_mut().flatten()) {
            region.cuts = cutter.table(region.low(), region.high(), cells, span)?;
        }
        self.index_by(grid);
        Ok(())
    }

    fn index_by(&mut self, grid: &[u32]) {
        for (buffer, declared) in self.buffers.iter_mut().zip(&self.collective.buffers) {
            let blocks = declared.blocks.is_some().then_some(buffer.blocks.len() as u32);
            buffer.extents = blocks.into_iter().chain(grid.iter().copied()).collect();
        }
    }

    /// Extents that a view indexes.
    pub(super) fn extents(&self, storage: Storage) -> Rc<[u32]> {
        match storage {
            Storage::Buffer(buffer) => self.buffers[buffer as usize].extents.clone(),
            Storage::Scratch(scratch) => self.scratch[scratch as usize].extents.clone(),
        }
    }

    /// The name of what is stored.
    pub(super) fn name(&self, storage: Storage) -> &'m str {
        match storage {
            Storage::Buffer(buffer) => &self.collective.buffers[buffer as usize].name,
            Storage::Scratch(scratch) => &self.schedule.scratch[scratch as usize],
        }
    }

    /// A chunk or slot as the schedule would write it: `data[2, 1]`, or the bare name if there is but one.
    pub(super) fn shown(&self, storage: Storage, mut cell: u64) -> String {
        let mut index = Vec::new();
        if *self.extents(storage) == [1] {
            return self.name(storage).to_string();
        }
        for &extent in self.extents(storage).iter().rev() {
            index.push((cell % u64::from(extent)).to_string());
            cell /= u64::from(extent);
        }
        index.reverse();
        format!("{}[{}]", self.name(storage), index.join(", "))
    }
}
