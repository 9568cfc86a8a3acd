//! Where the chunks of a rank's foreign buffers lie in the contract's blocks, and which cells of the weaver they are.
//!
//! Where input and output of a call in place are one memory, a chunk of both is one cell. A collective that is not known
//! here has a block for each chunk, two buffers that lie apart, and no promise.

use crate::collectives::{Blocks, Known};
use crate::weave::{CellId, Memory, Place};
use coll_contract::{BufferDecl, BufferRole, Classes, Contract};

/// A buffer of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    Input,
    Output,
    Scratch,
}

impl Buffer {
    /// Its letter, the same in all forms.
    pub(crate) fn word(self) -> &'static str {
        ["i", "o", "s"][self as usize]
    }

    /// The buffer of a letter.
    pub(crate) fn of(word: &str) -> Option<Buffer> {
        [Buffer::Input, Buffer::Output, Buffer::Scratch].into_iter().find(|buffer| buffer.word() == word)
    }
}

/// The way from chunks to places.
pub(crate) struct Layout {
    pub(crate) known: Option<&'static Known>,
    ranks: u32,
    /// Chunks of a block.
    pub(crate) chunks: u32,
    /// Each chunk is a block.
    pub(crate) refined: bool,
    /// Chunks of the three buffers on each rank, as they are addressed.
    sizes: Vec<[u32; 3]>,
    /// Input and output are one memory.
    pub(crate) is_one: bool,
    /// The contract has one buffer for both.
    shares: bool,
}

impl Layout {
    /// The layout of a collective whose blocks have so many chunks, if it is known.
    pub(crate) fn new(
        known: Option<&'static Known>,
        contract: &Contract,
        chunks: u32,
        is_one: bool,
        declared: &[[u32; 3]],
    ) -> Layout {
        let mut layout = Layout {
            known,
            ranks: contract.ranks,
            chunks,
            refined: known.is_none(),
            sizes: Vec::new(),
            is_one: is_one && known.is_some(),
            shares: contract.buffers.len() == 1,
        };
        let spans = known.map(|known| layout.spans(known));
        let size = |&own: &[u32; 3]| spans.map_or(own, |[input, output]| [input, output, own[2]]);
        layout.sizes = declared.iter().map(size).collect();
        layout
    }

    /// Chunks of the input and the output of a known collective.
    pub(crate) fn spans(&self, known: &Known) -> [u32; 2] {
        let own = known.input == Blocks::Own || known.output == Blocks::Own;
        let blocks = if own || !self.shares { self.ranks } else { 1 };
        let span = |spans| match spans {
            Blocks::All => blocks * self.chunks,
            Blocks::Own => self.chunks,
        };
        [span(known.input), span(known.output)]
    }

    /// Chunks of a buffer of a rank.
    pub(crate) fn size(&self, rank: u32, buffer: Buffer) -> u32 {
        self.sizes[rank as usize][buffer as usize]
    }

    fn place(&self, buffer: u32, block: u32, piece: u32) -> Place {
        match self.refined {
            true => Place { buffer, block: block * self.chunks + piece, piece: 0 },
            false => Place { buffer, block, piece },
        }
    }

    /// The place of a chunk.
    fn place_of(&self, rank: u32, buffer: Buffer, chunk: u32) -> Place {
        let number = u32::from(buffer == Buffer::Output && !self.shares);
        let spans = self.known.map_or(Blocks::All, |known| match buffer {
            Buffer::Input => known.input,
            _ => known.output,
        });
        match spans {
            Blocks::All => self.place(number, chunk / self.chunks, chunk % self.chunks),
            Blocks::Own => self.place(number, rank, chunk),
        }
    }

    /// The cells of a rank: those of the input, those of the output, those of the scratch. Where both buffers are one
    /// memory, those of the larger, and of the scratch.
    pub(crate) fn memory(&self, rank: u32) -> Vec<Memory> {
        let [input, output, scratch] = self.sizes[rank as usize];
        let mut cells = Vec::new();
        if self.is_one {
            let larger = if input > output { Buffer::Input } else { Buffer::Output };
            for chunk in 0..input.max(output) {
                let kept = self.place_of(rank, if self.shares { larger } else { Buffer::Output }, chunk);
                let given = if self.shares { kept } else { self.place_of(rank, Buffer::Input, chunk) };
                cells.push(Memory::Buffer { given: Some(given), kept: Some(kept) });
            }
        } else {
            let given = (0..input).map(|chunk| self.place_of(rank, Buffer::Input, chunk));
            // What nothing is promised of may be written as well.
            let may_write = self.known.is_none();
            cells.extend(given.map(|p| Memory::Buffer { given: Some(p), kept: may_write.then_some(p) }));
            let kept = (0..output).map(|chunk| self.place_of(rank, Buffer::Output, chunk));
            cells.extend(kept.map(|place| Memory::Buffer { given: None, kept: Some(place) }));
        }
        cells.extend((0..scratch).map(|_| Memory::Scratch));
        cells
    }

    /// The cell of a chunk, which is in bounds; the chunks behind it have the cells behind it.
    pub(crate) fn cell(&self, rank: u32, buffer: Buffer, chunk: u32) -> CellId {
        let [input, output, _] = self.sizes[rank as usize];
        let (own, buffers) = match self.is_one {
            true => (rank * self.chunks, input.max(output)),
            false => (0, input + output),
        };
        let offset = chunk as CellId;
        match buffer {
            // The smaller buffer lies within the larger, where the rank's own block is.
            Buffer::Input if self.is_one && input < output => own + offset,
            Buffer::Output if self.is_one && output < input => own + offset,
            Buffer::Input => offset,
            Buffer::Output if self.is_one => offset,
            Buffer::Output => input + offset,
            Buffer::Scratch => buffers + offset,
        }
    }
}

/// The contract of a collective that is not known here: each chunk a block, all alike, and nothing promised.
pub(crate) fn without_promise(collective: &str, declared: &[[u32; 3]]) -> Contract {
    let most = |at: usize| declared.iter().map(|chunks| chunks[at]).max().unwrap_or(0).max(1);
    let buffer = |name: &str, role, blocks| BufferDecl { name: name.into(), role, blocks };
    let (input, output) = (most(0), most(1));
    Contract {
        collective: collective.to_string(),
        ranks: declared.len() as u32,
        only: None,
        buffers: vec![buffer("input", BufferRole::InOut, input), buffer("output", BufferRole::Out, output)],
        given: vec![coll_contract::Blocks::All, coll_contract::Blocks::None],
        ensures: Vec::new(),
        values: Vec::new(),
        after: Vec::new(),
        classes: Classes { count: 1, table: vec![0; (input + output) as usize * declared.len()] },
    }
}
