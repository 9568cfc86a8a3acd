//! Reads the text that `print` writes. What was read from a text comes from that text: every transfer's origin is
//! its own line, so messages and plans made of it point there.
//!
//! One line, one function: [`Reader::line`] looks at the first word and calls the method of that name.

use crate::words::{Answer, Words, tokenize};
use crate::{
    Cuts, Kind, Origin, Origins, Place, Program, Scratch, Stage, Step, Transfer, Tune, print::default_class,
};
use coll_base::{DType, FileId, Fraction, Span};
use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract, Ensure, Leaf, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Why a text is not a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ReadError {}

/// Reads a program; `file` is what its spans name.
pub fn read(file: FileId, text: &str) -> Result<Program, ReadError> {
    let mut reader = Reader::new(file);
    let mut offset = 0;
    for (number, line) in text.split('\n').enumerate() {
        let content = line.split(';').next().unwrap_or("").trim_end();
        let indent = content.len() - content.trim_start().len();
        reader.span = Span::new(file, offset + indent, offset + content.len().max(indent));
        let told = |message| ReadError { line: number as u32 + 1, message };
        let tokens = tokenize(content).map_err(told)?;
        if !tokens.is_empty() {
            reader.line(&mut Words::new(&tokens)).map_err(told)?;
        }
        offset += line.len() + 1;
    }
    let lines = text.split('\n').count() as u32;
    reader.finish().map_err(|message| ReadError { line: lines, message })
}

/// Larger programs are made by elaboration, not written down.
const RANKS_MAX: u32 = 65_536;
const BLOCKS_MAX: u32 = 65_536;
const TABLE_MAX: u64 = 1 << 26;

struct Reader {
    program: Program,
    named: bool,
    given: BTreeMap<u32, Blocks>,
    rows: BTreeMap<u32, Vec<u32>>,
    ensures: BTreeMap<(u32, u32, u32), Value>,
    span: Span,
}

impl Reader {
    fn new(file: FileId) -> Reader {
        let contract = Contract {
            collective: String::new(),
            ranks: 0,
            only: None,
            buffers: Vec::new(),
            given: Vec::new(),
            ensures: Vec::new(),
            values: Vec::new(),
            after: Vec::new(),
            classes: Classes { count: 0, table: Vec::new() },
        };
        let program = Program {
            schedule: String::new(),
            params: Vec::new(),
            root: 0,
            rooted: false,
            contract,
            scratch: Vec::new(),
            cuts: Cuts(vec![Fraction::ZERO, Fraction::ONE]),
            steps: Vec::new(),
            transfers: Vec::new(),
            stages: Vec::new(),
            origins: Origins { schedule: Span::new(file, 0, 0), ..Origins::default() },
            tune: Tune::default(),
        };
        Reader {
            program,
            named: false,
            given: BTreeMap::new(),
            rows: BTreeMap::new(),
            ensures: BTreeMap::new(),
            span: Span::new(file, 0, 0),
        }
    }

    fn line(&mut self, words: &mut Words<'_>) -> Answer<()> {
        let word = words.name()?;
        if !self.named && word != "program" {
            return Err(format!("expected `program COLLECTIVE.SCHEDULE for N ranks` first, found `{word}`"));
        }
        match word {
            "program" => self.head(words)?,
            "param" => self.param(words)?,
            "buffer" => self.buffer(words)?,
            "given" => self.given(words)?,
            "class" => self.class(words)?,
            "ensure" => self.ensure(words)?,
            "after" => self.after(words)?,
            "cuts" => self.cuts(words)?,
            "scratch" => self.scratch(words)?,
            "tune" => self.tune(words)?,
            "stage" => self.stage(words)?,
            "step" => self.step(words)?,
            "move" | "reduce" | "signal" | "drop" => self.transfer(word, words)?,
            _ => {
                return Err(format!("expected a line's first word such as `step` or `move`, found `{word}`"));
            }
        }
        words.end()
    }

    fn head(&mut self, words: &mut Words<'_>) -> Answer<()> {
        if self.named {
            return Err("a second `program` line".to_owned());
        }
        self.named = true;
        self.program.contract.collective = words.name()?.to_owned();
        words.expect(".")?;
        self.program.schedule = words.name()?.to_owned();
        words.expect("for")?;
        self.program.contract.ranks = words.number_within(1..RANKS_MAX + 1, "a number of ranks")?;
        words.expect("ranks")?;
        if words.take(",") {
            words.expect("root")?;
            self.program.root = words.number_within(0..self.program.ranks(), "a root")?;
            self.program.rooted = true;
        }
        Ok(())
    }

    fn param(&mut self, words: &mut Words<'_>) -> Answer<()> {
        let name = words.name()?.to_owned();
        words.expect("=")?;
        let sign = if words.take("-") { "-" } else { "" };
        let digits = words.next("a number")?;
        let value = format!("{sign}{digits}").parse();
        self.program.params.push((name, value.map_err(|_| format!("expected a number, found `{digits}`"))?));
        Ok(())
    }

    fn buffer(&mut self, words: &mut Words<'_>) -> Answer<()> {
        let name = words.name()?.to_owned();
        let mut blocks = 1;
        if words.take("[") {
            blocks = words.number_within(0..BLOCKS_MAX + 1, "a number of blocks")?;
            words.expect("]")?;
        }
        words.expect(":")?;
        let role = match words.name()? {
            "in" => BufferRole::In,
            "out" => BufferRole::Out,
            "inout" => BufferRole::InOut,
            other => return Err(format!("expected `in`, `out` or `inout`, found `{other}`")),
        };
        if !self.rows.is_empty() || !self.program.scratch.is_empty() || !self.program.steps.is_empty() {
            return Err("buffers stand before classes, scratch and steps".to_owned());
        }
        let cells =
            (self.program.contract.blocks_per_rank() as u64 + blocks as u64) * self.program.ranks() as u64;
        if cells > TABLE_MAX {
            return Err(format!("{cells} blocks on all ranks together; at most {TABLE_MAX} are read"));
        }
        self.program.contract.buffers.push(BufferDecl { name, role, blocks });
        Ok(())
    }

    fn given(&mut self, words: &mut Words<'_>) -> Answer<()> {
        let buffer = self.contract_buffer(words)?;
        words.expect(":")?;
        let blocks = self.program.block_count(buffer);
        let given = if words.take("all") {
            Blocks::All
        } else if words.take("none") {
            Blocks::None
        } else {
            let mut pairs = Vec::new();
            while !words.is_empty() {
                let rank = words.number_within(0..self.program.ranks(), "a rank")?;
                words.expect("[")?;
                pairs.push((rank, words.number_within(0..blocks, "a block")?));
                words.expect("]")?;
            }
            pairs.sort_unstable();
            pairs.dedup();
            Blocks::Listed(pairs)
        };
        self.given.insert(buffer, given);
        Ok(())
    }

    fn class(&mut self, words: &mut Words<'_>) -> Answer<()> {
        self.before_steps("classes")?;
        words.expect("on")?;
        let ranks = words.range_within(0..self.program.ranks(), "ranks")?;
        words.expect(":")?;
        let width = self.program.contract.blocks_per_rank();
        let mut row = Vec::new();
        while !words.is_empty() {
            row.extend(words.range_within(0..width.saturating_mul(self.program.ranks()), "classes")?);
            if row.len() > width as usize {
                break;
            }
        }
        if row.len() != width as usize {
            return Err(format!(
                "expected {width} classes, one for each block of a rank, found {}",
                row.len()
            ));
        }
        for rank in ranks {
            self.rows.insert(rank, row.clone());
        }
        Ok(())
    }

    fn ensure(&mut self, words: &mut Words<'_>) -> Answer<()> {
        let (buffer, block, ranks) = self.blocks_on(words)?;
        words.expect("==")?;
        let word = words.name()?;
        let mut leaves = Vec::new();
        loop {
            let (buffer, block, ranks) = self.blocks_on(words)?;
            leaves.extend(ranks.map(|rank| Leaf { rank, buffer, block }));
            if !words.take(",") {
                break;
            }
        }
        let value = match (word, leaves.as_slice()) {
            ("copy", [leaf]) => Value::Copy(*leaf),
            ("reduce", [_, ..]) => Value::Reduce(leaves),
            _ => return Err("expected `copy` of one block or `reduce` of some".to_owned()),
        };
        for rank in ranks {
            if self.ensures.insert((rank, buffer, block), value.clone()).is_some() {
                return Err(format!("block {block} on rank {rank} is ensured twice"));
            }
        }
        Ok(())
    }

    fn after(&mut self, words: &mut Words<'_>) -> Answer<()> {
        let ranks = self.program.ranks();
        let rank = words.number_within(0..ranks, "a rank")?;
        words.expect(":")?;
        while !words.is_empty() {
            let others = words.range_within(0..ranks, "ranks")?;
            self.program
                .contract
                .after
                .extend(others.filter(|&other| other != rank).map(|other| (rank, other)));
        }
        Ok(())
    }

    fn cuts(&mut self, words: &mut Words<'_>) -> Answer<()> {
        self.before_steps("cuts")?;
        let mut cuts = Vec::new();
        while !words.is_empty() {
            let top: u64 = words.parse("a fraction")?;
            let bottom: u64 = if words.take("/") { words.parse("a denominator")? } else { 1 };
            if bottom == 0 {
                return Err("a fraction's denominator is not 0".to_owned());
            }
            cuts.push(Fraction::new(top, bottom));
        }
        let ascend = cuts.is_sorted_by(|a, b| a < b);
        if cuts.first() != Some(&Fraction::ZERO) || cuts.last() != Some(&Fraction::ONE) || !ascend {
            return Err("cuts ascend from 0 to 1, such as `cuts 0 1/2 1`".to_owned());
        }
        self.program.cuts = Cuts(cuts);
        Ok(())
    }

    fn scratch(&mut self, words: &mut Words<'_>) -> Answer<()> {
        self.before_steps("scratch")?;
        let name = words.name()?.to_owned();
        let (mut extents, mut slots) = (Vec::new(), 1u64);
        if words.take("[") {
            loop {
                let extent = words.number_within(0..BLOCKS_MAX + 1, "a number of slots")?;
                slots = slots.saturating_mul(extent as u64);
                extents.push(extent);
                if !words.take(",") {
                    break;
                }
            }
            words.expect("]")?;
        }
        if slots * self.program.ranks() as u64 > TABLE_MAX {
            return Err(format!("{slots} slots on each rank are more than are read"));
        }
        self.program.scratch.push(Scratch { name, slots: slots as u32, extents });
        Ok(())
    }

    fn tune(&mut self, words: &mut Words<'_>) -> Answer<()> {
        while !words.is_empty() {
            let word = words.name()?;
            if word == "accumulate" {
                self.program.tune.accumulate = match words.name()? {
                    "f32" => Some(DType::F32),
                    found => return Err(format!("expected `f32`, found `{found}`")),
                };
                continue;
            }
            if word == "wire" {
                let name = words.name()?;
                let known = DType::WIRE.into_iter().find(|dtype| dtype.name() == name);
                let wire = known.ok_or_else(|| format!("expected a narrow float, found `{name}`"))?;
                self.program.tune.wire = Some(wire);
                continue;
            }
            let value = words.number_within(1..u32::MAX, "a number from 1")?;
            match word {
                "lanes" => self.program.tune.lanes = Some(value),
                "slices" => self.program.tune.slices = Some(value),
                _ => {
                    return Err(format!(
                        "expected `lanes`, `slices`, `accumulate` or `wire`, found `{word}`"
                    ));
                }
            }
        }
        Ok(())
    }

    fn stage(&mut self, words: &mut Words<'_>) -> Answer<()> {
        let name = words.name()?.to_owned();
        let range = words.range_within(0..u32::MAX, "steps")?;
        self.program.stages.push(Stage { name, start: range.start, end: range.end });
        Ok(())
    }

    fn step(&mut self, words: &mut Words<'_>) -> Answer<()> {
        let number = self.program.steps.len() as u32;
        if !words.is_empty() {
            let written: u32 = words.parse("a step's number")?;
            if written != number {
                return Err(format!("this is step {number}, not {written}"));
            }
        }
        let origin = self.origin();
        self.program.steps.push(Step { origin });
        Ok(())
    }

    fn transfer(&mut self, word: &str, words: &mut Words<'_>) -> Answer<()> {
        let step = (self.program.steps.len() as u32).checked_sub(1).ok_or("a transfer stands in a step")?;
        let origin = self.origin();
        if word == "signal" {
            let ranks = 0..self.program.ranks();
            let at = |rank| Place { rank, buffer: 0, block: 0 };
            let source = at(words.number_within(ranks.clone(), "a rank")?);
            words.expect("to")?;
            let target = at(words.number_within(ranks, "a rank")?);
            let kind = Kind::Signal;
            self.program.transfers.push(Transfer {
                kind,
                step,
                source,
                target,
                low: 0,
                high: 0,
                class: 0,
                origin,
            });
            return Ok(());
        }
        let kind = match word {
            "move" => Kind::Move,
            "drop" => Kind::Drop,
            _ if words.take("left") => Kind::ReduceLeft,
            _ => Kind::Reduce,
        };
        let source = self.place(words)?;
        let mut pieces = 0..self.program.cuts.pieces();
        if words.take("{") {
            pieces = words.range_within(pieces, "pieces")?;
            words.expect("}")?;
        }
        let target = match kind {
            Kind::Drop => source,
            _ => {
                words.expect(if kind == Kind::Move { "to" } else { "into" })?;
                self.place(words)?
            }
        };
        let class = if words.take("class") { words.parse("a class")? } else { self.class_of(source)? };
        let Range { start: low, end: high } = pieces;
        self.program.transfers.push(Transfer { kind, step, source, target, low, high, class, origin });
        Ok(())
    }

    fn class_of(&mut self, place: Place) -> Answer<u32> {
        self.fill_classes();
        default_class(&self.program, place).ok_or_else(|| {
            "a scratch has no class of its own: add `class N`, that of what it holds".to_owned()
        })
    }

    fn fill_classes(&mut self) {
        let (ranks, contract) = (self.program.ranks(), &mut self.program.contract);
        let width = contract.blocks_per_rank();
        if contract.classes.table.len() != ranks as usize * width as usize {
            let default: Vec<u32> = (0..width).collect();
            let rows = (0..ranks).flat_map(|rank| self.rows.get(&rank).unwrap_or(&default).iter().copied());
            contract.classes.table = rows.collect();
            contract.classes.count = contract.classes.table.iter().max().map_or(0, |&last| last + 1);
        }
    }

    fn before_steps(&self, what: &str) -> Answer<()> {
        match self.program.steps.is_empty() {
            true => Ok(()),
            false => Err(format!("{what} stand before the steps")),
        }
    }

    fn origin(&mut self) -> u32 {
        self.program.origins.origins.push(Origin {
            span: self.span,
            binding: Origins::NO_BINDING,
            call: Origins::NO_CALL,
        });
        self.program.origins.origins.len() as u32 - 1
    }

    /// `3.data[2]`
    fn place(&mut self, words: &mut Words<'_>) -> Answer<Place> {
        let rank = words.number_within(0..self.program.ranks(), "a rank")?;
        words.expect(".")?;
        let name = words.name()?;
        let buffers = self.program.contract.buffers.len() + self.program.scratch.len();
        let buffer = (0..buffers as u32)
            .find(|&buffer| self.program.buffer_name(buffer) == name)
            .ok_or_else(|| format!("no buffer and no scratch is called `{name}`"))?;
        let block = self.block(words, buffer)?;
        Ok(Place { rank, buffer, block })
    }

    /// `data[2] on 0..4`
    fn blocks_on(&mut self, words: &mut Words<'_>) -> Answer<(u32, u32, Range<u32>)> {
        let buffer = self.contract_buffer(words)?;
        let block = self.block(words, buffer)?;
        words.expect("on")?;
        Ok((buffer, block, words.range_within(0..self.program.ranks(), "ranks")?))
    }

    fn contract_buffer(&self, words: &mut Words<'_>) -> Answer<u32> {
        let name = words.name()?;
        let found = self.program.contract.buffers.iter().position(|buffer| buffer.name == name);
        Ok(found.ok_or_else(|| format!("no buffer is called `{name}`"))? as u32)
    }

    fn block(&self, words: &mut Words<'_>, buffer: u32) -> Answer<u32> {
        let blocks = 0..self.program.block_count(buffer);
        if !words.take("[") {
            return match blocks.end {
                1 => Ok(0),
                count => Err(format!("say which of {count} blocks, as in `[0]`")),
            };
        }
        let block = words.number_within(blocks, "a block")?;
        words.expect("]")?;
        Ok(block)
    }

    fn finish(mut self) -> Answer<Program> {
        if !self.named {
            return Err("expected `program COLLECTIVE.SCHEDULE for N ranks`, found nothing".to_owned());
        }
        self.fill_classes();
        let buffers = self.program.contract.buffers.len() as u32;
        let given = (0..buffers).map(|buffer| match self.given.remove(&buffer) {
            Some(given) => given,
            None if self.program.contract.buffers[buffer as usize].role == BufferRole::Out => Blocks::None,
            None => Blocks::All,
        });
        self.program.contract.given = given.collect();
        let contract = &mut self.program.contract;
        let mut ids: BTreeMap<Vec<Leaf>, [Option<u32>; 2]> = BTreeMap::new();
        for ((rank, buffer, block), value) in self.ensures {
            let id = &mut ids.entry(value.leaves().to_vec()).or_default()[value.is_reduction() as usize];
            let value = *id.get_or_insert_with(|| {
                contract.values.push(value);
                contract.values.len() as u32 - 1
            });
            contract.ensures.push(Ensure { rank, buffer, block, value });
        }
        contract.after.sort_unstable();
        contract.after.dedup();
        let steps = self.program.steps.len() as u32;
        if let Some(stage) = self.program.stages.iter().find(|stage| stage.end > steps) {
            return Err(format!("stage `{}` ends at step {} of {steps}", stage.name, stage.end));
        }
        crate::verify(&self.program)?;
        Ok(self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, line: u32, part: &str) {
        let error = read(FileId(0), text).unwrap_err();
        assert!(error.line == line && error.message.contains(part), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let head = "program a.b for 2 ranks\nbuffer data[2]: inout\n";
        check("", 1, "found nothing");
        check("step\n", 1, "expected `program");
        check("program a.b for 0 ranks\n", 1, "0 is not a number of ranks");
        check("program a.b for 99999999999 ranks\n", 1, "expected a number of ranks");
        check(&format!("{head}move 0.data[0] to 1.data[0]\n"), 3, "stands in a step");
        check(&format!("{head}step 1\n"), 3, "this is step 0");
        check(&format!("{head}step\nmove 0.data to 1.data[0]\n"), 4, "say which of 2 blocks");
        check(&format!("{head}step\nmove 0.data[0] into 1.data[0]\n"), 4, "expected `to`, found `into`");
        check(
            &format!("{head}step\nmove 0.data[0]{{1..1}} to 1.data[0]\n"),
            4,
            "1..1 is not a run of pieces",
        );
        check(&format!("{head}step\nmove 2.data[0] to 1.data[0]\n"), 4, "2 is not a rank in 0..2");
        check(&format!("{head}cuts 0 1 1/2\n"), 3, "cuts ascend");
        check(&format!("{head}cuts 0 1/0 1\n"), 3, "denominator is not 0");
        check(&format!("{head}scratch tmp[65536, 65536, 65536]\n"), 3, "more than are read");
        check(&format!("{head}ensure data[0] on 0 == copy data[0] on 0..2\n"), 3, "`copy` of one block");
        check(&format!("{head}stage s 0..3\n"), 4, "ends at step 3 of 0");
        check(&format!("{head}tune lanes 0\n"), 3, "not a number from 1");
        check(&format!("{head}tune accumulate f64\n"), 3, "expected `f32`, found `f64`");
        check(&format!("{head}tune wire i8\n"), 3, "expected a narrow float, found `i8`");
        check(&format!("{head}step\nmove 0.data[0] to 1.data[0] !\n"), 4, "`!` has no meaning");
    }

    #[test]
    fn every_truncation_of_a_program_is_a_program_or_an_error() {
        let text = "program a.b for 2 ranks, root 1\nparam k = -2\nbuffer data: inout\ngiven data: 0[0]\nclass on 0..2: 0\n\
                    ensure data on 0..2 == reduce data on 0..2\nafter 0: 1\ncuts 0 1/2 1\nscratch tmp[2, 1]\n\
                    step 0\nreduce left 0.data{0} into 1.data class 0\nsignal 0 to 1\nstep\ndrop 0.tmp[1] class 0\n";
        let good = (0..=text.len()).filter(|&end| read(FileId(0), &text[..end]).is_ok()).count();
        assert!(good > 10 && good < text.len(), "{good} of {} are programs", text.len());
    }
}
