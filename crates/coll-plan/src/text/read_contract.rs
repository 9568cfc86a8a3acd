//! Reads the contract of a plan's text.

use super::token::{Cursor, Read};
use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract, Ensure, Leaf, Value};

/// No table that a few words stand for may be longer: 256 MiB of classes.
const TABLE_MAX: u64 = 1 << 26;

/// The same row of numbers for a run of ranks.
struct TableLine {
    /// First, and after the last.
    ranks: (u32, u32),
    buffer: u32,
    /// Blocks, each with its number.
    numbers: Vec<(u32, u32)>,
}

/// A contract as far as it was read.
#[derive(Default)]
pub(super) struct ContractText {
    collective: Option<String>,
    ranks: Option<u32>,
    only: Option<u32>,
    buffers: Vec<BufferDecl>,
    given: Vec<Option<Blocks>>,
    class_count: u32,
    classes: Option<Vec<u32>>,
    values: Vec<Value>,
    ensures: Vec<Ensure>,
    after: Vec<(u32, u32)>,
}

impl ContractText {
    pub(super) fn begun(&self) -> bool {
        self.collective.is_some()
    }

    /// Reads a line; of the first, the word `contract` has been read.
    pub(super) fn line(&mut self, cursor: &mut Cursor) -> Read<()> {
        if !self.begun() {
            self.collective = Some(cursor.text("the collective's name in quotes")?);
        } else if cursor.eat("ranks") {
            self.ranks = Some(cursor.u32("a number of ranks")?);
        } else if cursor.eat("only") {
            self.only = Some(cursor.u32("a rank")?);
        } else if cursor.eat("buffer") {
            self.buffer(cursor)?;
        } else if cursor.eat("given") {
            self.given(cursor)?;
        } else if cursor.eat("classes") {
            self.class_count = cursor.u32("a number of classes")?;
        } else if cursor.eat("class") {
            self.class(cursor)?;
        } else if cursor.eat("value") {
            self.value(cursor)?;
        } else if cursor.eat("ensure") {
            let TableLine { ranks, buffer, numbers } = self.table_line(cursor)?;
            self.bounded(cursor, self.ensures.len(), u64::from(ranks.1 - ranks.0) * numbers.len() as u64)?;
            for rank in ranks.0..ranks.1 {
                let row = numbers.iter().map(|&(block, value)| Ensure { rank, buffer, block, value });
                self.ensures.extend(row);
            }
        } else if cursor.eat("after") {
            self.after(cursor)?;
        } else {
            let words = "`ranks`, `only`, `buffer`, `given`, `classes`, `class`, `value`, `ensure`, `after` or `rank`";
            return Err(cursor.wrong(words));
        }
        Ok(())
    }

    /// The contract, at the line of the first rank.
    pub(super) fn finish(mut self, cursor: &Cursor) -> Read<Contract> {
        let Some(collective) = self.collective.take() else {
            return Err(cursor.refuse("`contract` before the first rank", "`rank`"));
        };
        let Some(ranks) = self.ranks else {
            return Err(cursor.refuse("a line `ranks N` in the contract", "`rank`"));
        };
        let table = match self.classes.take() {
            Some(table) => table,
            None => self.empty_classes(cursor)?,
        };
        self.ensures.sort_by_key(|e| (e.rank, e.buffer, e.block));
        Ok(Contract {
            collective,
            ranks,
            only: self.only,
            buffers: self.buffers,
            given: self.given.into_iter().map(|blocks| blocks.unwrap_or(Blocks::None)).collect(),
            ensures: self.ensures,
            values: self.values,
            after: self.after,
            classes: Classes { count: self.class_count, table },
        })
    }

    fn bounded(&self, cursor: &Cursor, there: usize, more: u64) -> Read<()> {
        let total = (there as u64).saturating_add(more);
        if total <= TABLE_MAX {
            Ok(())
        } else {
            Err(cursor.refuse(format!("at most {TABLE_MAX} entries"), total))
        }
    }

    fn buffer(&mut self, cursor: &mut Cursor) -> Read<()> {
        let role = if cursor.eat("in") {
            BufferRole::In
        } else if cursor.eat("out") {
            BufferRole::Out
        } else if cursor.eat("inout") {
            BufferRole::InOut
        } else {
            return Err(cursor.wrong("`in`, `out` or `inout`"));
        };
        if self.classes.is_some() {
            return Err(cursor.refuse("every `buffer` before the first `class`", "one after it"));
        }
        let name = cursor.word("the buffer's name")?;
        cursor.expect("[")?;
        let blocks = cursor.u32("a number of blocks")?;
        cursor.expect("]")?;
        self.buffers.push(BufferDecl { name, role, blocks });
        self.given.push(None);
        Ok(())
    }

    fn named(&self, cursor: &mut Cursor) -> Read<u32> {
        let name = cursor.word("a buffer")?;
        match self.buffers.iter().position(|buffer| buffer.name == name) {
            Some(at) => Ok(at as u32),
            None => Err(cursor.refuse("a buffer that a `buffer` line above declares", format!("`{name}`"))),
        }
    }

    fn given(&mut self, cursor: &mut Cursor) -> Read<()> {
        let buffer = self.named(cursor)? as usize;
        let whole = if cursor.eat("all") {
            Some(Blocks::All)
        } else if cursor.eat("none") {
            Some(Blocks::None)
        } else {
            None
        };
        let mut pairs = match (self.given[buffer].take(), &whole) {
            (None, _) => Vec::new(),
            (Some(Blocks::Listed(pairs)), None) => pairs,
            _ => return Err(cursor.refuse("one of `all`, `none` and a list for each buffer", "two")),
        };
        while !cursor.is_at_end() && whole.is_none() {
            let rank = cursor.numbered("r", "a rank with its blocks, such as `r0[0..4]`")?;
            let (low, high) = bracketed(cursor)?;
            self.bounded(cursor, pairs.len(), u64::from(high - low))?;
            pairs.extend((low..high).map(|block| (rank, block)));
        }
        self.given[buffer] = Some(whole.unwrap_or(Blocks::Listed(pairs)));
        Ok(())
    }

    fn empty_classes(&self, cursor: &Cursor) -> Read<Vec<u32>> {
        let rows = if self.only.is_some() { 1 } else { u64::from(self.ranks.unwrap_or(0)) };
        let width: u64 = self.buffers.iter().map(|buffer| u64::from(buffer.blocks)).sum();
        let total = rows.saturating_mul(width);
        self.bounded(cursor, 0, total)?;
        Ok(vec![0; total as usize])
    }

    fn class(&mut self, cursor: &mut Cursor) -> Read<()> {
        let TableLine { ranks, buffer, numbers } = self.table_line(cursor)?;
        let mut table = match self.classes.take() {
            Some(table) => table,
            None => self.empty_classes(cursor)?,
        };
        let width: usize = self.buffers.iter().map(|buffer| buffer.blocks as usize).sum();
        let before: usize = self.buffers[..buffer as usize].iter().map(|buffer| buffer.blocks as usize).sum();
        for rank in ranks.0..ranks.1 {
            let row = match self.only {
                Some(only) if only == rank => 0,
                None if rank < self.ranks.unwrap_or(0) => rank as usize * width,
                _ => return Err(cursor.refuse("a rank that the contract speaks of", rank)),
            };
            for &(block, class) in &numbers {
                if block >= self.buffers[buffer as usize].blocks {
                    return Err(cursor.refuse("a block of the buffer", block));
                }
                table[row + before + block as usize] = class;
            }
        }
        self.classes = Some(table);
        Ok(())
    }

    /// `r0..4 data[0..4] = 0 step 1`: ranks, buffer, and a number for each block.
    fn table_line(&self, cursor: &mut Cursor) -> Read<TableLine> {
        let first = cursor.numbered("r", "a rank such as `r0`, or `r0..4`")?;
        let ranks = cursor.range_from(first, "the rank after the last")?;
        let buffer = self.named(cursor)?;
        let (low, high) = bracketed(cursor)?;
        cursor.expect("=")?;
        let first = cursor.u32("a number")?;
        let step = if cursor.eat("step") { cursor.signed("a step")? } else { 0 };
        self.bounded(cursor, 0, u64::from(high - low))?;
        let number = |i: u32| {
            let value = i128::from(first) + i128::from(step) * i128::from(i);
            u32::try_from(value).map_err(|_| cursor.refuse("numbers from 0 to below 2^32", value))
        };
        let numbers = (low..high).map(|block| Ok((block, number(block - low)?))).collect::<Read<_>>()?;
        Ok(TableLine { ranks, buffer, numbers })
    }

    fn value(&mut self, cursor: &mut Cursor) -> Read<()> {
        let first = cursor.u32("the value's number")?;
        let (low, high) = cursor.range_from(first, "the number after the last")?;
        if low as usize != self.values.len() {
            let expected = format!("`value {}`, as values are listed in order", self.values.len());
            return Err(cursor.refuse(expected, low));
        }
        cursor.expect("=")?;
        if cursor.eat("reduce") && high == low + 1 {
            let mut leaves = Vec::new();
            while !cursor.is_at_end() {
                self.leaves(cursor, &mut leaves)?;
            }
            self.values.push(Value::Reduce(leaves));
            return Ok(());
        }
        cursor.expect("copy")?;
        let mut leaves = Vec::new();
        self.leaves(cursor, &mut leaves)?;
        let [leaf] = leaves[..] else {
            return Err(cursor.refuse("one leaf such as `r0.data[0]`", format!("{} leaves", leaves.len())));
        };
        let next = cursor.eat("next");
        let (rank, block) = (next && cursor.eat("rank"), next && cursor.eat("block"));
        self.bounded(cursor, self.values.len(), u64::from(high - low))?;
        for i in 0..high - low {
            let up = |from: u32, goes: bool| if goes { from.checked_add(i) } else { Some(from) };
            let (Some(rank), Some(block)) = (up(leaf.rank, rank), up(leaf.block, block)) else {
                return Err(cursor.refuse("ranks and blocks below 2^32", "more"));
            };
            self.values.push(Value::Copy(Leaf { rank, block, ..leaf }));
        }
        Ok(())
    }

    /// `r0.data[0]`, or `r0..4.data[0]` for four.
    fn leaves(&self, cursor: &mut Cursor, leaves: &mut Vec<Leaf>) -> Read<()> {
        let first = cursor.numbered("r", "a leaf such as `r0.data[0]`")?;
        let (low, high) = cursor.range_from(first, "the rank after the last")?;
        cursor.expect(".")?;
        let buffer = self.named(cursor)?;
        cursor.expect("[")?;
        let block = cursor.u32("a block")?;
        cursor.expect("]")?;
        self.bounded(cursor, leaves.len(), u64::from(high - low))?;
        leaves.extend((low..high).map(|rank| Leaf { rank, buffer, block }));
        Ok(())
    }

    fn after(&mut self, cursor: &mut Cursor) -> Read<()> {
        let rank = cursor.numbered("r", "a rank such as `r0`")?;
        cursor.expect(":")?;
        while !cursor.is_at_end() {
            let first = cursor.numbered("r", "a rank such as `r1`, or `r1..4`")?;
            let (low, high) = cursor.range_from(first, "the rank after the last")?;
            self.bounded(cursor, self.after.len(), u64::from(high - low))?;
            self.after.extend((low..high).map(|other| (rank, other)));
        }
        Ok(())
    }
}

fn bracketed(cursor: &mut Cursor) -> Read<(u32, u32)> {
    cursor.expect("[")?;
    let low = cursor.u32("a block")?;
    let range = cursor.range_from(low, "the block after the last")?;
    cursor.expect("]")?;
    Ok(range)
}
