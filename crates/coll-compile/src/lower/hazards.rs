//! Who touched a cell last, and so whom the next one must wait for: a reader for the last writer, a writer for the
//! last writer and all who have read since. Cells are those of `memory`, and after them one for each slot. The
//! three stores of a block count as one memory, as they are when a buffer is used in place.

pub(super) const NONE: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Hazards {
    /// For each cell, the operation that wrote it last.
    writer: Vec<u32>,
    /// For each cell, the head of a list in `readers` of those who have read it since.
    reader: Vec<u32>,
    /// `(operation, next)`
    readers: Vec<(u32, u32)>,
    /// What the operation at hand must wait for, with doubles.
    pub(super) waits: Vec<u32>,
}

impl Hazards {
    /// Starts anew with this many cells.
    pub(super) fn start(&mut self, cells: usize) {
        for table in [&mut self.writer, &mut self.reader] {
            table.clear();
            table.resize(cells, NONE);
        }
        self.readers.clear();
    }

    /// One more cell.
    pub(super) fn add_cell(&mut self) {
        self.writer.push(NONE);
        self.reader.push(NONE);
    }

    /// The operation that wrote a cell last, or [`NONE`].
    pub(super) fn writer(&self, cell: usize) -> u32 {
        self.writer[cell]
    }

    /// Operation `op` reads a cell.
    pub(super) fn read(&mut self, cell: usize, op: u32) {
        self.wait(self.writer[cell], op);
        self.readers.push((op, self.reader[cell]));
        self.reader[cell] = self.readers.len() as u32 - 1;
    }

    /// Operation `op` writes a cell, and may read it too.
    pub(super) fn write(&mut self, cell: usize, op: u32) {
        self.wait(self.writer[cell], op);
        let mut at = self.reader[cell];
        while at != NONE {
            let (reader, next) = self.readers[at as usize];
            self.wait(reader, op);
            at = next;
        }
        self.writer[cell] = op;
        self.reader[cell] = NONE;
    }

    fn wait(&mut self, before: u32, op: u32) {
        if before != NONE && before != op && self.waits.last() != Some(&before) {
            self.waits.push(before);
        }
    }
}
