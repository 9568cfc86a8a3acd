//! The memory that operations work on: the caller's buffers and the executor's scratch, addressed by segments.

use coll_contract::BufferDecl;

/// Where a buffer's three stores lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Input and output are different memory.
    Separate,
    /// One memory holds every block; for `inout` buffers.
    InPlace,
}

/// One buffer of a call, as it was bound.
#[derive(Debug)]
pub enum BufferMemory<'a> {
    /// For [`Placement::Separate`].
    Separate {
        /// The rank's given blocks, one after the other in block order.
        input: &'a [u8],
        /// The rank's ensured blocks, one after the other in block order.
        output: &'a mut [u8],
    },
    /// For [`Placement::InPlace`]: all blocks, one after the other.
    InPlace(&'a mut [u8]),
}

impl<'a> BufferMemory<'a> {
    /// An `in` buffer.
    pub fn input(input: &'a [u8]) -> BufferMemory<'a> {
        BufferMemory::Separate { input, output: &mut [] }
    }

    /// An `out` buffer.
    pub fn output(output: &'a mut [u8]) -> BufferMemory<'a> {
        BufferMemory::Separate { input: &[], output }
    }
}

/// A memory that segments lie in; numbers are buffers of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Area {
    /// The input of a separate buffer.
    Input(u32),
    /// The output of a separate buffer, or all of one in place.
    Output(u32),
    /// The executor's own.
    Scratch,
}

/// A run of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Segment {
    pub(crate) area: Area,
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

impl Segment {
    /// The part that starts `skip` bytes in, of at most `len` bytes.
    #[inline]
    pub(crate) fn part(self, skip: usize, len: usize) -> Segment {
        let skip = skip.min(self.len);
        Segment { area: self.area, offset: self.offset + skip, len: len.min(self.len - skip) }
    }

    #[inline]
    pub(crate) fn end(self) -> usize {
        self.offset + self.len
    }

    pub(crate) fn overlaps(self, other: Segment) -> bool {
        self.area == other.area && self.offset < other.end() && other.offset < self.end()
    }
}

/// All memory of a rank during a call. Lengths were checked against the binding when the call began.
pub(crate) struct Memory<'m, 'a> {
    pub(crate) buffers: &'m mut [BufferMemory<'a>],
    pub(crate) scratch: &'m mut [u8],
}

impl Memory<'_, '_> {
    #[inline]
    pub(crate) fn bytes(&self, segment: Segment) -> &[u8] {
        &self.area(segment.area)[segment.offset..segment.end()]
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self, segment: Segment) -> &mut [u8] {
        let area = match segment.area {
            Area::Scratch => &mut *self.scratch,
            Area::Input(buffer) | Area::Output(buffer) => written(&mut self.buffers[buffer as usize]),
        };
        &mut area[segment.offset..segment.end()]
    }

    /// A target and a source that do not overlap.
    #[inline]
    pub(crate) fn pair(&mut self, target: Segment, source: Segment) -> (&mut [u8], &[u8]) {
        let (written, read) = match (target.area, source.area) {
            (a, b) if a == b => return self.apart(target, source),
            (Area::Scratch, from) => {
                let (Area::Input(from) | Area::Output(from)) = from else { return (&mut [], &[]) };
                (&mut *self.scratch, read(&self.buffers[from as usize], source.area))
            }
            (Area::Input(to) | Area::Output(to), Area::Scratch) => {
                (written(&mut self.buffers[to as usize]), &*self.scratch)
            }
            (Area::Input(to) | Area::Output(to), Area::Input(from) | Area::Output(from)) if to == from => {
                match &mut self.buffers[to as usize] {
                    BufferMemory::Separate { input, output } => (&mut **output, *input),
                    BufferMemory::InPlace(_) => unreachable!("in place there is one area"),
                }
            }
            (Area::Input(to) | Area::Output(to), Area::Input(from) | Area::Output(from)) => {
                let pair = self.buffers.get_disjoint_mut([to as usize, from as usize]);
                let [to, from] = pair.expect("invariant: two different buffers of the binding");
                (written(to), read(from, source.area))
            }
        };
        (&mut written[target.offset..target.end()], &read[source.offset..source.end()])
    }

    /// `target := source` for segments that may be one, and are not copied then.
    #[inline]
    pub(crate) fn copy(&mut self, target: Segment, source: Segment, past_cache: bool) {
        if target != source && target.len > 0 {
            let (to, from) = self.pair(target, source);
            match past_cache {
                true => coll_kernel::copy_past_cache(to, from),
                false => to.copy_from_slice(from),
            }
        }
    }

    #[inline]
    fn area(&self, area: Area) -> &[u8] {
        match area {
            Area::Scratch => self.scratch,
            Area::Input(buffer) | Area::Output(buffer) => read(&self.buffers[buffer as usize], area),
        }
    }

    /// Two segments of one area, which do not overlap.
    fn apart(&mut self, target: Segment, source: Segment) -> (&mut [u8], &[u8]) {
        let area = match target.area {
            Area::Scratch => &mut *self.scratch,
            Area::Input(buffer) | Area::Output(buffer) => written(&mut self.buffers[buffer as usize]),
        };
        if target.offset < source.offset {
            let (low, high) = area.split_at_mut(source.offset);
            (&mut low[target.offset..target.end()], &high[..source.len])
        } else {
            let (low, high) = area.split_at_mut(target.offset);
            (&mut high[..target.len], &low[source.offset..source.end()])
        }
    }
}

#[inline]
fn read<'b>(buffer: &'b BufferMemory<'_>, area: Area) -> &'b [u8] {
    match (buffer, area) {
        (BufferMemory::Separate { input, .. }, Area::Input(_)) => input,
        (BufferMemory::Separate { output, .. }, _) => output,
        (BufferMemory::InPlace(all), _) => all,
    }
}

/// Binding refuses plans that write an input, so that what is written is an output.
#[inline]
fn written<'b>(buffer: &'b mut BufferMemory<'_>) -> &'b mut [u8] {
    match buffer {
        BufferMemory::Separate { output, .. } => output,
        BufferMemory::InPlace(all) => all,
    }
}

/// How a buffer is called in messages.
pub(crate) fn name_of(buffers: &[BufferDecl], index: usize) -> String {
    buffers.get(index).map_or_else(|| format!("number {index}"), |buffer| buffer.name.clone())
}
