//! Reads a plan's text: header and ranks here, the contract in its own file.
//!
//! The reader asks whether lines can be read, not whether they fit each other: that is [`crate::verify`]'s to say,
//! and it says it better.

use super::read_contract::ContractText;
use super::token::{Cursor, Read, TextError};
use super::write::class_of;
use crate::bytes::{FORMAT_VERSION, READABLE_VERSION_MIN};
use crate::{
    Action, Claims, Lane, Line, Op, OpId, Placement, Plan, Proof, RankPlan, Reference, Region, Run, Shape,
    SlotDecl, Store, Wait,
};
use coll_base::{DType, Fraction};
use coll_contract::Contract;

/// More equal cuts than this are a slip of the pen.
const CUTS_MAX: u64 = 1 << 24;

/// Reads a plan's text form. The result is in normal form, and has yet to be verified.
///
/// # Errors
/// The first line that cannot be read.
pub fn from_text(text: &str) -> Result<Plan, TextError> {
    let mut reader = Reader::default();
    let mut number = 0;
    for line in text.lines() {
        number += 1;
        let mut cursor = Cursor::new(number, line)?;
        if !cursor.is_at_end() {
            reader.line(&mut cursor)?;
            cursor.end()?;
        }
    }
    reader.finish(number.max(1))
}

#[derive(Default)]
struct Reader {
    begun: bool,
    name: Option<String>,
    params: Vec<(String, i64)>,
    root: Option<u32>,
    channels: Option<u32>,
    slots: Option<u32>,
    slices: Option<u32>,
    accumulate: Option<DType>,
    wire: Option<DType>,
    cuts: Vec<Fraction>,
    reduces: bool,
    claims: Claims,
    origin: Option<String>,
    proof: Option<Proof>,
    placement: Option<Placement>,
    lines: Vec<Line>,
    contract: ContractText,
    /// The contract, read to its end: there is one from the first rank on.
    settled: Option<Contract>,
    ranks: Vec<RankPlan>,
}

impl Reader {
    fn line(&mut self, cursor: &mut Cursor) -> Read<()> {
        if !self.begun {
            cursor.expect("plan")?;
            let version = cursor.u32("a version")?;
            self.begun = true;
            return if (READABLE_VERSION_MIN..=FORMAT_VERSION).contains(&version) {
                Ok(())
            } else {
                Err(cursor.refuse(format!("`plan {FORMAT_VERSION}`"), format!("version {version}")))
            };
        }
        if self.settled.is_some() {
            return self.rank_line(cursor);
        }
        if cursor.eat("rank") {
            self.settled = Some(std::mem::take(&mut self.contract).finish(cursor)?);
            return self.rank(cursor);
        }
        if self.contract.begun() || cursor.eat("contract") {
            return self.contract.line(cursor);
        }
        self.header_line(cursor)
    }

    fn header_line(&mut self, cursor: &mut Cursor) -> Read<()> {
        if cursor.eat("name") {
            self.name = Some(cursor.text("the plan's name in quotes")?);
        } else if cursor.eat("param") {
            let name = cursor.text("a parameter's name in quotes")?;
            self.params.push((name, cursor.signed("a value")?));
        } else if cursor.eat("root") {
            self.root = Some(cursor.u32("a rank")?);
        } else if cursor.eat("channels") {
            self.channels = Some(cursor.u32("a number of channels")?);
        } else if cursor.eat("slots") {
            self.slots = Some(cursor.u32("a number of slots")?);
        } else if cursor.eat("reduces") {
            self.reduces = true;
        } else if cursor.eat("claim") {
            self.claim(cursor)?;
        } else if cursor.eat("origin") {
            self.origin = Some(cursor.text("a hash in quotes")?);
        } else if cursor.eat("proof") {
            self.proof = Some(proof(cursor)?);
        } else if cursor.eat("placement") {
            self.placement = Some(placement(cursor)?);
        } else if cursor.eat("slices") {
            self.slices = Some(cursor.u32("a number of slices")?);
        } else if cursor.eat("accumulate") {
            cursor.expect("f32")?;
            self.accumulate = Some(DType::F32);
        } else if cursor.eat("wire") {
            let known = DType::WIRE.into_iter().find(|dtype| cursor.eat(dtype.name()));
            self.wire =
                Some(known.ok_or_else(|| cursor.wrong("`f8e4m3`, `f8e5m2`, `f16`, `bf16` or `f32`"))?);
        } else if cursor.eat("cuts") {
            self.cuts = cuts(cursor)?;
        } else if cursor.eat("line") {
            let at = cursor.u32("the line's number in this list")?;
            if at as usize != self.lines.len() {
                return Err(
                    cursor.refuse(format!("`line {}`, as lines are listed in order", self.lines.len()), at)
                );
            }
            let file = cursor.text("a file's name in quotes")?;
            self.lines.push(Line { file, line: cursor.u32("a line")? });
        } else {
            let words = "`name`, `param`, `root`, `channels`, `slots`, `slices`, `accumulate`, `wire`, `cuts`, `reduces`, `claim`, \
                         `placement`, `origin`, `proof`, `line`, `contract` or `rank`";
            return Err(cursor.wrong(words));
        }
        Ok(())
    }

    fn claim(&mut self, cursor: &mut Cursor) -> Read<()> {
        if cursor.eat("ordered") {
            self.claims.ordered = true;
        } else if cursor.eat("same_reduction_tree") {
            self.claims.same_reduction_tree = true;
        } else {
            return Err(cursor.wrong("`ordered` or `same_reduction_tree`"));
        }
        Ok(())
    }

    fn rank(&mut self, cursor: &mut Cursor) -> Read<()> {
        let rank = cursor.u32("a rank")?;
        let (slots, lanes, ops, regions, waits) = Default::default();
        self.ranks.push(RankPlan { rank, slots, lanes, ops, regions, waits });
        Ok(())
    }

    fn rank_line(&mut self, cursor: &mut Cursor) -> Read<()> {
        if cursor.eat("rank") {
            return self.rank(cursor);
        }
        let (Some(contract), Some(part)) = (&self.settled, self.ranks.last_mut()) else {
            return Err(cursor.wrong("`rank`"));
        };
        if cursor.eat("slot") {
            let at = cursor.u32("the slot's number")?;
            if at as usize != part.slots.len() {
                return Err(
                    cursor.refuse(format!("`slot {}`, as slots are listed in order", part.slots.len()), at)
                );
            }
            cursor.expect(":")?;
            let mut shapes = Vec::new();
            while !cursor.is_at_end() {
                shapes.push(shape(cursor)?);
            }
            part.slots.push(SlotDecl { shapes });
        } else if cursor.eat("lane") {
            let at = cursor.u32("the lane's number")?;
            if at as usize != part.lanes.len() {
                return Err(
                    cursor.refuse(format!("`lane {}`, as lanes are listed in order", part.lanes.len()), at)
                );
            }
            let start = part.ops.len() as OpId;
            part.lanes.push(Lane { start, end: start });
        } else {
            operation(cursor, contract, part)?;
        }
        Ok(())
    }

    fn finish(self, last: u32) -> Read<Plan> {
        let found = "the end of the text".to_string();
        let missing =
            |what: &str| TextError { line: last, column: 1, expected: what.into(), found: found.clone() };
        if !self.begun {
            return Err(missing(&format!("`plan {FORMAT_VERSION}`")));
        }
        let contract = self.settled.ok_or_else(|| missing("`contract` and then `rank 0`"))?;
        Ok(Plan {
            name: self.name.ok_or_else(|| missing("a line `name \"NAME\"` above the contract"))?,
            params: self.params,
            root: self.root,
            reduces: self.reduces || contract.reduces(),
            contract,
            claims: self.claims,
            cuts: if self.cuts.is_empty() { vec![Fraction::ZERO, Fraction::ONE] } else { self.cuts },
            channels: self.channels.unwrap_or(1),
            slices: self.slices.unwrap_or(1),
            accumulate: self.accumulate,
            wire: self.wire,
            slots: self.slots.unwrap_or(0),
            lines: self.lines,
            ranks: self.ranks,
            origin: self.origin,
            proof: self.proof,
            placement: self.placement,
        })
    }
}

/// `whole "HASH"`, or `reference "HASH" on 15 root 0, 16 root 0`.
fn proof(cursor: &mut Cursor) -> Read<Proof> {
    if cursor.eat("whole") {
        return Ok(Proof::Whole(cursor.text("a hash in quotes")?));
    }
    if !cursor.eat("reference") {
        return Err(cursor.wrong("`whole` or `reference`"));
    }
    let hash = cursor.text("a hash in quotes")?;
    cursor.expect("on")?;
    let mut counts = Vec::new();
    loop {
        let ranks = cursor.u32("a rank count")?;
        cursor.expect("root")?;
        counts.push((ranks, cursor.u32("a root")?));
        if !cursor.eat(",") {
            return Ok(Proof::Reference(Reference { hash, counts }));
        }
    }
}

/// `"cluster" order 0 2 1 3`
fn placement(cursor: &mut Cursor) -> Read<Placement> {
    let topology = cursor.text("a topology's name in quotes")?;
    cursor.expect("order")?;
    let mut order = Vec::new();
    while !cursor.is_at_end() {
        order.push(cursor.u32("a device's number")?);
    }
    Ok(Placement { topology, order })
}

fn cuts(cursor: &mut Cursor) -> Read<Vec<Fraction>> {
    if cursor.eat("equal") {
        let parts = cursor.int("a number of pieces")?;
        if !(1..=CUTS_MAX).contains(&parts) {
            return Err(cursor.refuse(format!("1 to {CUTS_MAX} pieces"), parts));
        }
        return Ok((0..=parts).map(|i| Fraction::new(i, parts)).collect());
    }
    let mut cuts = Vec::new();
    while !cursor.is_at_end() {
        let top = cursor.int("a fraction")?;
        let bottom = if cursor.eat("/") { cursor.int("a denominator")? } else { 1 };
        if bottom == 0 {
            return Err(cursor.refuse("a denominator above 0", bottom));
        }
        cuts.push(Fraction::new(top, bottom));
    }
    if cuts.is_empty() { Err(cursor.wrong("fractions from 0 to 1, or `equal`")) } else { Ok(cuts) }
}

fn pieces(cursor: &mut Cursor) -> Read<(u32, u32)> {
    let low = cursor.u32("a first piece")?;
    cursor.expect("..")?;
    Ok((low, cursor.u32("the piece after the last")?))
}

fn shape(cursor: &mut Cursor) -> Read<Shape> {
    let class = cursor.numbered("c", "a class such as `c0`")?;
    cursor.expect("[")?;
    let (low, high) = pieces(cursor)?;
    cursor.expect("]")?;
    Ok(Shape { class, low, high })
}

fn operation(cursor: &mut Cursor, contract: &Contract, part: &mut RankPlan) -> Read<()> {
    let due = part.ops.len();
    let id = cursor.numbered("op", "`rank`, `slot`, `lane` or an operation such as `op0`")?;
    if id as usize != due || due >= OpId::MAX as usize {
        return Err(
            cursor.refuse(format!("`op{due}`, as operations are numbered in order"), format!("`op{id}`"))
        );
    }
    let Some(lane) = part.lanes.last_mut() else {
        return Err(cursor.refuse("`lane 0` before the first operation", format!("`op{id}`")));
    };
    lane.end += 1;
    let mut sides = Sides { contract, part };
    let mut op = sides.action(cursor)?;
    op.waits = waits(cursor, &mut sides.part.waits)?;
    cursor.expect(";")?;
    cursor.expect("step")?;
    op.step = cursor.u32("a step")?;
    cursor.expect("line")?;
    op.line = cursor.u32("the number of a line")?;
    part.ops.push(op);
    Ok(())
}

fn waits(cursor: &mut Cursor, waits: &mut Vec<Wait>) -> Read<Run> {
    let start = waits.len();
    loop {
        let along = cursor.eat("along");
        if !along && !cursor.eat("after") {
            if waits.len() == start {
                return Ok(Run::default());
            }
            return Err(cursor.wrong("`after` or `along`"));
        }
        waits.push(Wait { op: cursor.numbered("op", "an operation such as `op0`")?, along });
        if !cursor.eat(",") {
            return run(cursor, start, waits.len());
        }
    }
}

fn run(cursor: &Cursor, start: usize, end: usize) -> Read<Run> {
    let full = |_| cursor.refuse("fewer than 2^32 entries on a rank", end);
    Ok(if start == end {
        Run::default()
    } else {
        Run { start: start as u32, end: u32::try_from(end).map_err(full)? }
    })
}

/// Reads the sides of operations into a rank's table.
struct Sides<'a> {
    contract: &'a Contract,
    part: &'a mut RankPlan,
}

impl Sides<'_> {
    fn action(&mut self, cursor: &mut Cursor) -> Read<Op> {
        let none = Run::default();
        let op = |action, source, operand, target| Op {
            action,
            source,
            operand,
            target,
            waits: none,
            step: 0,
            line: 0,
        };
        if cursor.eat("send") {
            let source = self.regions(cursor)?;
            let (peer, channel) = link(cursor, "to")?;
            return Ok(op(Action::Send { peer, channel }, source, none, none));
        }
        if cursor.eat("recv") {
            let target = self.regions(cursor)?;
            let (peer, channel) = link(cursor, "from")?;
            return Ok(op(Action::Recv { peer, channel }, none, none, target));
        }
        if cursor.eat("copy") {
            let source = self.regions(cursor)?;
            cursor.expect("to")?;
            return Ok(op(Action::Copy, source, none, self.regions(cursor)?));
        }
        let left = cursor.eat("recv_reduce_left");
        if left || cursor.eat("recv_reduce") {
            let target = self.list(cursor)?;
            let (peer, channel) = link(cursor, "from")?;
            let (operand, target) = self.operand_and_target(cursor, target)?;
            return Ok(op(Action::RecvReduce { peer, channel, left }, none, operand, target));
        }
        let left = cursor.eat("reduce_left");
        if left || cursor.eat("reduce") {
            let source = self.regions(cursor)?;
            cursor.expect("into")?;
            let target = self.list(cursor)?;
            let (operand, target) = self.operand_and_target(cursor, target)?;
            return Ok(op(Action::Reduce { left }, source, operand, target));
        }
        Err(cursor.wrong("`send`, `recv`, `recv_reduce`, `copy` or `reduce`"))
    }

    /// In the table the operand comes first, and shares the target's run if it is the same.
    fn operand_and_target(&mut self, cursor: &mut Cursor, target: Vec<Region>) -> Read<(Run, Run)> {
        let operand = if cursor.eat("with") { Some(self.list(cursor)?) } else { None };
        let operand = operand.filter(|operand| *operand != target);
        let own = operand.map(|operand| self.store(cursor, operand)).transpose()?;
        let target = self.store(cursor, target)?;
        Ok((own.unwrap_or(target), target))
    }

    fn regions(&mut self, cursor: &mut Cursor) -> Read<Run> {
        let list = self.list(cursor)?;
        self.store(cursor, list)
    }

    fn store(&mut self, cursor: &Cursor, regions: Vec<Region>) -> Read<Run> {
        let start = self.part.regions.len();
        self.part.regions.extend(regions);
        run(cursor, start, self.part.regions.len())
    }

    fn list(&self, cursor: &mut Cursor) -> Read<Vec<Region>> {
        let mut regions = Vec::new();
        if !cursor.is_followed_by(".") && cursor.eat("nothing") {
            return Ok(regions);
        }
        loop {
            regions.push(self.region(cursor)?);
            if !cursor.eat(",") {
                return Ok(regions);
            }
        }
    }

    fn region(&self, cursor: &mut Cursor) -> Read<Region> {
        if cursor.is_followed_by("[") {
            let block = cursor.numbered("slot", "a slot such as `slot0`, or a buffer with its store")?;
            cursor.expect("[")?;
            let class = cursor.numbered("c", "a class such as `c0`")?;
            cursor.expect(":")?;
            let (low, high) = pieces(cursor)?;
            cursor.expect("]")?;
            return Ok(Region { store: Store::Slot, block, low, high, class });
        }
        let name = cursor.word("a region such as `data.in[0:0..1]`, a slot, or `nothing`")?;
        let buffer = self.contract.buffers.iter().position(|buffer| buffer.name == name);
        let Some(buffer) = buffer.map(|at| at as u32) else {
            let known: Vec<_> =
                self.contract.buffers.iter().map(|buffer| format!("`{}`", buffer.name)).collect();
            return Err(
                cursor.refuse(format!("a buffer of the contract: {}", known.join(", ")), format!("`{name}`"))
            );
        };
        cursor.expect(".")?;
        let store = if cursor.eat("in") {
            Store::In(buffer)
        } else if cursor.eat("out") {
            Store::Out(buffer)
        } else if cursor.eat("tmp") {
            Store::Tmp(buffer)
        } else {
            return Err(cursor.wrong("`in`, `out` or `tmp`"));
        };
        cursor.expect("[")?;
        let block = cursor.u32("a block")?;
        cursor.expect(":")?;
        let (low, high) = pieces(cursor)?;
        let own = || class_of(self.contract, self.part.rank, buffer, block).unwrap_or(0);
        let class = if cursor.eat("class") { cursor.u32("a class")? } else { own() };
        cursor.expect("]")?;
        Ok(Region { store, block, low, high, class })
    }
}

fn link(cursor: &mut Cursor, word: &str) -> Read<(u32, u32)> {
    cursor.expect(word)?;
    let peer = cursor.numbered("r", "a rank such as `r0`")?;
    cursor.expect("channel")?;
    Ok((peer, cursor.u32("a channel")?))
}
