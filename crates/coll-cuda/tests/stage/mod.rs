//! Where a kernel's operands lie: in one memory, each at a chosen or random distance from a multiple of 16, with bytes around
//! them that must not change.
#![allow(dead_code)]

use crate::native::{Argument, HostModule, Memory};
use crate::random::Random;
use coll_base::DType;
use std::ops::Range;

/// Bytes between operands.
const GAP_BYTES: usize = 48;

/// A launch in the making.
pub(crate) struct Stage {
    bytes: Vec<u8>,
    /// Distances of operands from multiples of 16, taken in turn.
    offsets: Vec<usize>,
    placed: usize,
    element_bytes: usize,
    launch: (u32, u32),
}

impl Stage {
    /// Operands of elements of such parts all aligned, all as far from being aligned, or each at a distance of its own.
    pub(crate) fn new(random: &mut Random, parts: &[DType]) -> Stage {
        let align = parts.iter().map(|part| part.size_bytes() as usize).max().unwrap_or(1);
        let places = 16 / align;
        let same = random.below(places) * align;
        let offsets = match random.below(3) {
            0 => vec![0],
            1 => vec![same],
            _ => (0..9).map(|_| random.below(places) * align).collect(),
        };
        let launch = [(1, 1), (2, 3), (1, 32), (5, 64)][random.below(4)];
        Stage::with(parts, offsets, launch)
    }

    /// All aligned or, if `apart`, as no vector can be read.
    pub(crate) fn aligned(parts: &[DType], apart: bool) -> Stage {
        let align = parts.iter().map(|part| part.size_bytes() as usize).max().unwrap_or(1);
        Stage::with(parts, if apart { vec![0, align % 16] } else { vec![0] }, (3, 32))
    }

    fn with(parts: &[DType], offsets: Vec<usize>, launch: (u32, u32)) -> Stage {
        let element_bytes = parts.iter().map(|part| part.size_bytes() as usize).sum();
        Stage { bytes: vec![0xee; GAP_BYTES], offsets, placed: 0, element_bytes, launch }
    }

    /// A place for an operand.
    fn place(&mut self, content: &[u8]) -> usize {
        let offset = self.offsets[self.placed % self.offsets.len()];
        self.placed += 1;
        let start = self.bytes.len().next_multiple_of(16) + offset;
        self.bytes.resize(start, 0xee);
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len() + GAP_BYTES, 0xee);
        start
    }

    pub(crate) fn input(&mut self, content: &[u8]) -> usize {
        self.place(content)
    }

    pub(crate) fn output(&mut self, bytes: usize) -> usize {
        self.place(&vec![0xdd; bytes])
    }

    /// Arguments of a combination, and where its result lies.
    pub(crate) fn combine(
        &self,
        target: usize,
        sources: &[usize],
        count: usize,
    ) -> (Vec<Argument>, Range<usize>) {
        let bytes = count * self.element_bytes;
        let mut arguments = vec![Argument::At(target..target + bytes)];
        arguments.extend(sources.iter().map(|&source| Argument::At(source..source + bytes)));
        arguments.push(Argument::Count(count as u64));
        (arguments, target..target + bytes)
    }

    /// Arguments of what is made of elements one by one.
    pub(crate) fn map(
        &self,
        target: usize,
        target_bytes: usize,
        source: usize,
        source_bytes: usize,
        count: usize,
        rest: &[Argument],
    ) -> (Vec<Argument>, Range<usize>) {
        let output = target..target + target_bytes;
        let mut arguments = vec![Argument::At(output.clone()), Argument::At(source..source + source_bytes)];
        arguments.push(Argument::Count(count as u64));
        arguments.extend_from_slice(rest);
        (arguments, output)
    }

    /// Runs a kernel, and returns its result; nothing else may have changed.
    pub(crate) fn launch(
        self,
        module: &HostModule,
        name: &str,
        arguments: &[Argument],
        output: Range<usize>,
    ) -> Vec<u8> {
        let mut memory = Memory::new(self.bytes.len());
        memory.bytes_mut()[..self.bytes.len()].copy_from_slice(&self.bytes);
        module.launch(name, &mut memory, arguments, self.launch);
        let after = &memory.bytes()[..self.bytes.len()];
        assert!(after[..output.start] == self.bytes[..output.start], "{name} wrote before its target");
        assert!(after[output.end..] == self.bytes[output.end..], "{name} wrote behind its target");
        after[output].to_vec()
    }
}
