//! Where everything lies: the byte offset of every block of every store, once counts and placements are known.
//!
//! With an operator that prepares elements, all buffers lie in scratch as if called in place, as working elements;
//! the caller's memory is read when the call begins and written when it ends.

use crate::bind::{Binding, Spread};
use crate::error::BindError;
use crate::memory::{Area, Placement, Segment, name_of};
use coll_contract::Value;
use coll_plan::{RankPlan, Region, Store};

/// Scratch blocks and slots start at multiples of this: a cache line.
const ALIGN: u64 = 64;

/// Bytes of a buffer's memories, as the caller must give them.
pub(crate) struct BufferLayout {
    pub(crate) name: String,
    pub(crate) placement: Placement,
    /// Input and output; in place, the first is unused.
    pub(crate) sizes: [u64; 2],
}

/// A block that is prepared or finished: where it lies with the caller, and where as working elements.
pub(crate) struct Conversion {
    pub(crate) user: Segment,
    pub(crate) working: Segment,
    /// Values that the result is made of.
    pub(crate) leaves: u64,
}

/// Where one rank's blocks and slots lie.
pub(crate) struct Layout {
    pub(crate) buffers: Vec<BufferLayout>,
    pub(crate) scratch_bytes: usize,
    pub(crate) prepares: Vec<Conversion>,
    pub(crate) finishes: Vec<Conversion>,
    /// Blocks before each buffer.
    first_block: Vec<usize>,
    blocks: Vec<BlockPlace>,
    slots: Vec<usize>,
    /// For each class, the byte offset of every cut: a row of `cuts` entries.
    edges: Vec<usize>,
    cuts: usize,
}

/// Where the three stores of a block lie, as far as it has them.
#[derive(Clone, Copy, Default)]
struct BlockPlace {
    input: Option<(usize, Where)>,
    output: Option<(usize, Where)>,
    other: Option<(usize, Where)>,
}

#[derive(Clone, Copy)]
enum Where {
    Input,
    Output,
    Scratch,
}

impl Layout {
    /// The plan has been verified, and there are as many counts and placements as it needs.
    pub(crate) fn new(
        binding: &Binding<'_>,
        spreads: &[Spread<'_>],
        part: &RankPlan,
        working_bytes: Option<u64>,
    ) -> Result<Layout, BindError> {
        let others = other_blocks(part);
        let layout = Layout::empty(binding);
        let mut maker = Maker { binding, spreads, working_bytes, scratch: 0, layout, others };
        maker.edges()?;
        for buffer in 0..binding.plan.contract.buffers.len() {
            maker.buffer(buffer, part.rank)?;
        }
        maker.slots(part)?;
        let needed_bytes = maker.scratch;
        maker.layout.scratch_bytes =
            usize::try_from(needed_bytes).map_err(|_| BindError::Memory { needed_bytes })?;
        Ok(maker.layout)
    }

    fn empty(binding: &Binding<'_>) -> Layout {
        Layout {
            buffers: Vec::new(),
            scratch_bytes: 0,
            prepares: Vec::new(),
            finishes: Vec::new(),
            first_block: Vec::new(),
            blocks: Vec::new(),
            slots: Vec::new(),
            edges: Vec::new(),
            cuts: binding.plan.cuts.len(),
        }
    }

    /// The bytes of a region. `None` if the region's block has no such store, which verification excludes.
    pub(crate) fn segment(&self, region: &Region) -> Option<Segment> {
        let row = region.class as usize * self.cuts;
        let (low, high) = (self.edges[row + region.low as usize], self.edges[row + region.high as usize]);
        let len = high - low;
        let (buffer, place) = match region.store {
            Store::Slot => {
                let offset = *self.slots.get(region.block as usize)?;
                return Some(Segment { area: Area::Scratch, offset, len });
            }
            Store::In(buffer) => (buffer, self.block(buffer, region.block)?.input?),
            Store::Out(buffer) => (buffer, self.block(buffer, region.block)?.output?),
            Store::Tmp(buffer) => (buffer, self.block(buffer, region.block)?.other?),
        };
        Some(Segment { area: place.1.area(buffer), offset: place.0 + low, len })
    }

    fn block(&self, buffer: u32, block: u32) -> Option<&BlockPlace> {
        self.blocks.get(self.first_block.get(buffer as usize)? + block as usize)
    }
}

impl Where {
    fn area(self, buffer: u32) -> Area {
        match self {
            Where::Input => Area::Input(buffer),
            Where::Output => Area::Output(buffer),
            Where::Scratch => Area::Scratch,
        }
    }
}

struct Maker<'a> {
    binding: &'a Binding<'a>,
    spreads: &'a [Spread<'a>],
    /// Bytes of a working element, if elements are prepared.
    working_bytes: Option<u64>,
    scratch: u64,
    layout: Layout,
    /// `(buffer, block)` of every region in memory that nothing is promised about, sorted.
    others: Vec<(u32, u32)>,
}

impl<'a> Maker<'a> {
    fn edges(&mut self) -> Result<(), BindError> {
        let element_bytes = self.working_bytes.unwrap_or(self.binding.element_size_bytes);
        for (class, &count) in self.binding.counts.iter().enumerate() {
            let whole = self.bytes(count, element_bytes, || format!("a block of class {class}"))?;
            usize::try_from(whole).map_err(|_| too_large(format!("a block of class {class}")))?;
            let cuts = self.binding.plan.cuts.iter();
            self.layout.edges.extend(cuts.map(|cut| (cut.of(count) * element_bytes) as usize));
        }
        Ok(())
    }

    fn buffer(&mut self, index: usize, rank: u32) -> Result<(), BindError> {
        let contract = &self.binding.plan.contract;
        let placement = self.binding.placements[index];
        let buffer = index as u32;
        self.layout.first_block.push(self.layout.blocks.len());
        let mut sizes = [0u64; 2];
        for block in 0..contract.buffers[index].blocks {
            let count = self.binding.counts[contract.class(rank, buffer, block) as usize];
            let given = contract.is_given(rank, buffer, block);
            let ensured = contract.ensured(rank, buffer, block);
            let name = || format!("buffer `{}`", name_of(&contract.buffers, index));
            let bytes = self.bytes(count, self.binding.element_size_bytes, name)?;
            // Where the block starts in the caller's input and in its output.
            let mut at = sizes;
            for (side, has) in [(0, given), (1, ensured.is_some())] {
                if let Some(spread) = self.spread(index, side).filter(|_| has) {
                    at[side] = self.start(spread, block, count)?;
                }
            }
            match placement {
                Placement::InPlace => sizes[1] = add(sizes[1], bytes, name)?,
                Placement::Separate => {
                    sizes[0] = add(sizes[0], if given { bytes } else { 0 }, name)?;
                    sizes[1] = add(sizes[1], if ensured.is_some() { bytes } else { 0 }, name)?;
                }
            }
            let user = UserBlock { buffer, at: at.map(|at| at as usize), len: bytes as usize, placement };
            let other = self.others.binary_search(&(buffer, block)).is_ok();
            let place = match self.working_bytes {
                Some(_) if !(given || ensured.is_some() || other) => BlockPlace::default(),
                Some(size) => self.working_block(user, count, size, given, ensured)?,
                None => self.direct_block(user, given, ensured.is_some(), other)?,
            };
            self.layout.blocks.push(place);
        }
        for (side, size) in sizes.iter_mut().enumerate() {
            if let Some(spread) = self.spread(index, side) {
                self.check_apart(spread, rank)?;
                let name = || format!("buffer `{}`", name_of(&contract.buffers, index));
                *size = self.bytes(spread.len, self.binding.element_size_bytes, name)?;
            }
        }
        sizes.iter().try_for_each(|&size| match usize::try_from(size) {
            Ok(_) => Ok(()),
            Err(_) => Err(too_large(format!("buffer `{}`", name_of(&contract.buffers, index)))),
        })?;
        let name = name_of(&contract.buffers, index);
        self.layout.buffers.push(BufferLayout { name, placement, sizes });
        Ok(())
    }

    /// How the blocks of a buffer's input (0) or output (1) lie, if not one after the other.
    fn spread(&self, buffer: usize, side: usize) -> Option<Spread<'a>> {
        self.spreads.iter().find(|spread| spread.buffer == buffer && spread.output == (side == 1)).copied()
    }

    /// The byte at which a block starts.
    fn start(&self, spread: Spread<'_>, block: u32, count: u64) -> Result<u64, BindError> {
        let start = spread.starts.get(block as usize).copied();
        match start.and_then(|start| start.checked_add(count)) {
            Some(end) if end <= spread.len => {
                let name = || format!("block {block}");
                self.bytes(end - count, self.binding.element_size_bytes, name)
            }
            _ => Err(BindError::Outside { block, start, count, len: spread.len }),
        }
    }

    /// Refuses blocks of an output that overlap.
    fn check_apart(&self, spread: Spread<'_>, rank: u32) -> Result<(), BindError> {
        let contract = &self.binding.plan.contract;
        let buffer = spread.buffer as u32;
        if !spread.output {
            return Ok(());
        }
        let blocks = (0..contract.buffers[spread.buffer].blocks).zip(spread.starts);
        let written = blocks.filter(|&(block, _)| contract.ensured(rank, buffer, block).is_some());
        let count = |block| self.binding.counts[contract.class(rank, buffer, block) as usize];
        let mut runs: Vec<(u64, u64, u32)> = written
            .map(|(block, &start)| (start, start.saturating_add(count(block)), block))
            .filter(|(start, end, _)| start < end)
            .collect();
        runs.sort_unstable();
        match runs.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            Some(pair) => Err(BindError::Overlap { blocks: [pair[0].2, pair[1].2], at: pair[1].0 }),
            None => Ok(()),
        }
    }

    fn direct_block(
        &mut self,
        user: UserBlock,
        given: bool,
        ensured: bool,
        other: bool,
    ) -> Result<BlockPlace, BindError> {
        let output = (user.at[1], Where::Output);
        if user.placement == Placement::InPlace {
            return Ok(BlockPlace { input: Some(output), output: Some(output), other: Some(output) });
        }
        let other = if other { Some((self.take(user.len as u64)?, Where::Scratch)) } else { None };
        Ok(BlockPlace {
            input: given.then_some((user.at[0], Where::Input)),
            output: ensured.then_some(output),
            other,
        })
    }

    fn working_block(
        &mut self,
        user: UserBlock,
        count: u64,
        working_bytes: u64,
        given: bool,
        ensured: Option<&Value>,
    ) -> Result<BlockPlace, BindError> {
        let bytes = self.bytes(count, working_bytes, || "a block of working elements".into())?;
        let offset = self.take(bytes)?;
        let working = Segment { area: Area::Scratch, offset, len: bytes as usize };
        if given {
            let user = user.segment(Where::Input);
            self.layout.prepares.push(Conversion { user, working, leaves: 1 });
        }
        if let Some(value) = ensured {
            let leaves = value.leaves().len() as u64;
            let user = user.segment(Where::Output);
            self.layout.finishes.push(Conversion { user, working, leaves });
        }
        let place = Some((offset, Where::Scratch));
        Ok(BlockPlace { input: place, output: place, other: place })
    }

    fn slots(&mut self, part: &RankPlan) -> Result<(), BindError> {
        for slot in &part.slots {
            let shapes = slot.shapes.iter().map(|shape| {
                let row = shape.class as usize * self.layout.cuts;
                let edge = |cut: u32| self.layout.edges[row + cut as usize];
                edge(shape.high) - edge(shape.low)
            });
            let bytes = shapes.max().unwrap_or(0) as u64;
            let offset = self.take(bytes)?;
            self.layout.slots.push(offset);
        }
        Ok(())
    }

    /// Takes scratch.
    fn take(&mut self, bytes: u64) -> Result<usize, BindError> {
        let start =
            self.scratch.checked_next_multiple_of(ALIGN).ok_or_else(|| too_large("scratch".into()))?;
        self.scratch = add(start, bytes, || "scratch".into())?;
        usize::try_from(start).map_err(|_| too_large("scratch".into()))
    }

    fn bytes(&self, count: u64, element_bytes: u64, what: impl FnOnce() -> String) -> Result<u64, BindError> {
        count.checked_mul(element_bytes).ok_or_else(|| too_large(what()))
    }
}

/// A block as it lies with the caller.
struct UserBlock {
    buffer: u32,
    /// In the input and in the output.
    at: [usize; 2],
    len: usize,
    placement: Placement,
}

impl UserBlock {
    fn segment(&self, side: Where) -> Segment {
        match (side, self.placement) {
            (Where::Input, Placement::Separate) => {
                Segment { area: Area::Input(self.buffer), offset: self.at[0], len: self.len }
            }
            _ => Segment { area: Area::Output(self.buffer), offset: self.at[1], len: self.len },
        }
    }
}

/// Blocks of which only what a plan uses takes memory.
fn other_blocks(part: &RankPlan) -> Vec<(u32, u32)> {
    let others = part.regions.iter().filter_map(|region| match region.store {
        Store::Tmp(buffer) => Some((buffer, region.block)),
        _ => None,
    });
    let mut others: Vec<(u32, u32)> = others.collect();
    others.sort_unstable();
    others.dedup();
    others
}

fn add(a: u64, b: u64, what: impl FnOnce() -> String) -> Result<u64, BindError> {
    a.checked_add(b).ok_or_else(|| too_large(what()))
}

fn too_large(what: String) -> BindError {
    BindError::TooLarge { what }
}
