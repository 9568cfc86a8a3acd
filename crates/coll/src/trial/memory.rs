//! One rank's memory for a run: what its buffers hold before, and which of it is the result after.

use crate::trial::Inputs;
use coll_contract::{BufferRole, Contract, Leaf};
use coll_exec::{BufferMemory, Placement};
use std::borrow::Cow;

/// What is in memory that holds no value yet, so that an element which is never written shows.
const NO_VALUE: u8 = 0xA5;

/// The buffers of one rank.
pub struct RunMemory<'a> {
    contract: &'a Contract,
    rank: u32,
    /// Bytes of a block by its count class.
    sizes: Vec<usize>,
    placements: Vec<Placement>,
    buffers: Vec<Buffer>,
}

/// A buffer's memory: input and output, or in place output alone.
struct Buffer {
    input: Vec<u8>,
    output: Vec<u8>,
}

/// The system gave no memory for so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMemory {
    /// What was asked for.
    pub bytes: u64,
}

/// Where each buffer of a contract lies when its collective is called in place, or out of place.
pub fn placements(contract: &Contract, in_place: bool) -> Vec<Placement> {
    let placement = |role| match role {
        BufferRole::InOut if in_place => Placement::InPlace,
        _ => Placement::Separate,
    };
    contract.buffers.iter().map(|buffer| placement(buffer.role)).collect()
}

impl Buffer {
    fn bound(&mut self, placement: Placement) -> BufferMemory<'_> {
        match placement {
            Placement::Separate => BufferMemory::Separate { input: &self.input, output: &mut self.output },
            Placement::InPlace => BufferMemory::InPlace(&mut self.output),
        }
    }
}

impl<'a> RunMemory<'a> {
    /// Memory for `rank`, not yet filled; `counts` are elements by count class.
    ///
    /// # Errors
    /// If there is not so much memory.
    pub fn new(
        contract: &'a Contract,
        rank: u32,
        counts: &[u64],
        element_size_bytes: u64,
        in_place: bool,
    ) -> Result<RunMemory<'a>, NoMemory> {
        let too_much = |count: u64| NoMemory { bytes: count.saturating_mul(element_size_bytes) };
        let size = |&count: &u64| {
            let bytes = count.checked_mul(element_size_bytes).and_then(|bytes| usize::try_from(bytes).ok());
            bytes.ok_or(too_much(count))
        };
        let sizes = counts.iter().map(size).collect::<Result<_, _>>()?;
        let placements = placements(contract, in_place);
        let mut memory = RunMemory { contract, rank, sizes, placements, buffers: Vec::new() };
        for buffer in 0..contract.buffers.len() as u32 {
            let [input, output] = memory.sizes_of(buffer);
            memory.buffers.push(Buffer { input: allocate(input)?, output: allocate(output)? });
        }
        Ok(memory)
    }

    /// Bytes of a buffer's input and output. Out of place the one holds given blocks and the other ensured ones; in place
    /// all blocks are output.
    fn sizes_of(&self, buffer: u32) -> [u64; 2] {
        let in_place = self.placements[buffer as usize] == Placement::InPlace;
        let mut sizes = [0u64; 2];
        for block in 0..self.contract.buffers[buffer as usize].blocks {
            let size = self.size(buffer, block) as u64;
            let given = self.contract.is_given(self.rank, buffer, block);
            let ensured = self.contract.ensured(self.rank, buffer, block).is_some();
            sizes[0] = sizes[0].saturating_add(if given && !in_place { size } else { 0 });
            sizes[1] = sizes[1].saturating_add(if ensured || in_place { size } else { 0 });
        }
        sizes
    }

    fn size(&self, buffer: u32, block: u32) -> usize {
        self.sizes[self.contract.class(self.rank, buffer, block) as usize]
    }

    /// Puts in what is given, and takes results of earlier runs away. `again` says that it has been filled with the same
    /// inputs before: out of place they are still there.
    pub fn fill(&mut self, inputs: &Inputs, again: bool) {
        let elements = |bytes: usize| bytes as u64 / inputs.dtype.size_bytes();
        for at in 0..self.buffers.len() {
            let in_place = self.placements[at] == Placement::InPlace;
            let Buffer { mut input, mut output } = self.take(at);
            output.fill(NO_VALUE);
            let filled = if in_place { &mut output } else { &mut input };
            if in_place || !again {
                let total = filled.len();
                filled.clear();
                for block in 0..self.contract.buffers[at].blocks {
                    let (rank, buffer, size) = (self.rank, at as u32, self.size(at as u32, block));
                    if self.contract.is_given(rank, buffer, block) {
                        inputs.fill(Leaf { rank, buffer, block }, 0, elements(size), filled);
                    } else if in_place {
                        filled.resize(filled.len() + size, NO_VALUE);
                    }
                }
                debug_assert_eq!(filled.len(), total, "buffers are filled as they were made");
            }
            self.buffers[at] = Buffer { input, output };
        }
    }

    fn take(&mut self, at: usize) -> Buffer {
        std::mem::replace(&mut self.buffers[at], Buffer { input: Vec::new(), output: Vec::new() })
    }

    /// What a run is given, buffer by buffer.
    pub fn bound(&mut self) -> Vec<BufferMemory<'_>> {
        self.buffers
            .iter_mut()
            .zip(&self.placements)
            .map(|(buffer, &placement)| buffer.bound(placement))
            .collect()
    }

    /// The inputs as they are now, buffer by buffer; empty in place.
    pub fn inputs(&self) -> impl Iterator<Item = &[u8]> {
        self.buffers.iter().map(|buffer| &buffer.input[..])
    }

    /// The ensured blocks of each buffer, one after the other.
    pub fn outputs(&self) -> Vec<Cow<'_, [u8]>> {
        (0..self.buffers.len()).map(|at| self.output(at)).collect()
    }

    fn output(&self, at: usize) -> Cow<'_, [u8]> {
        let all = &self.buffers[at].output;
        if self.placements[at] == Placement::Separate {
            return Cow::Borrowed(all);
        }
        let (mut kept, mut offset) = (Vec::new(), 0);
        for block in 0..self.contract.buffers[at].blocks {
            let size = self.size(at as u32, block);
            if self.contract.ensured(self.rank, at as u32, block).is_some() {
                kept.extend_from_slice(&all[offset..offset + size]);
            }
            offset += size;
        }
        Cow::Owned(kept)
    }
}

fn allocate(bytes: u64) -> Result<Vec<u8>, NoMemory> {
    let size = usize::try_from(bytes).map_err(|_| NoMemory { bytes })?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(size).map_err(|_| NoMemory { bytes })?;
    memory.resize(size, 0);
    Ok(memory)
}
