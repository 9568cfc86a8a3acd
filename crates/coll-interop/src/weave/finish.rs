//! The plan of what was woven: lanes one behind the other, tables of regions and waits, slots and lines.

use super::{OpRef, Part, Told, Weaver, Woven};
use coll_base::Fraction;
use coll_plan::{Action, Claims, Lane, Line, Op, Plan, RankPlan, Region, Run, Store, Wait};
use std::collections::BTreeMap;

/// What the plan is called, and where it comes from.
pub(crate) struct Title<'t> {
    pub(crate) name: String,
    pub(crate) root: Option<u32>,
    /// The file, as it was named.
    pub(crate) file: &'t str,
}

impl Weaver<'_> {
    /// Copies each piece that is promised, was given, and nothing has written: what lies in place already, for calls in
    /// which it does not. In place such a copy does nothing.
    pub(crate) fn copy_what_stays(&mut self) {
        for rank in 0..self.contract.ranks {
            let mut copies: Vec<(Region, Region)> = Vec::new();
            self.parts[rank as usize].cells.what_stays().for_each(|copy| add_copy(&mut copies, copy));
            if copies.is_empty() {
                continue;
            }
            self.own_copies += copies.len() as u32;
            let lane = self.lane(rank);
            for (from, to) in copies {
                let told = Told { rank, lane, waits: &[], line: 1 };
                let woven = Woven {
                    action: Action::Copy,
                    source: vec![from],
                    operand: None,
                    target: vec![to],
                    waits: Vec::new(),
                    along: None,
                    level: 0,
                    line: told.line,
                };
                self.push(told, woven);
            }
        }
    }

    /// How many copies [`Weaver::copy_what_stays`] and staging put in.
    pub(crate) fn copies(&self) -> u32 {
        self.own_copies + self.parts.iter().map(|part| part.staged.len() as u32).sum::<u32>()
    }

    /// The plan, still without the number of slots that it needs.
    pub(crate) fn finish(self, title: Title<'_>) -> Plan {
        let mut lines: BTreeMap<u32, u32> = BTreeMap::new();
        for op in self.parts.iter().flat_map(|part| &part.lanes).flatten() {
            lines.insert(op.line, 0);
        }
        lines.values_mut().zip(0..).for_each(|(number, at)| *number = at);
        let line = |&line: &u32| Line { file: title.file.to_string(), line };
        let pieces = u64::from(self.pieces);
        let ranks = (0..).zip(&self.parts).map(|(rank, part)| part.finish(rank, &lines)).collect();
        Plan {
            name: title.name,
            params: Vec::new(),
            root: title.root,
            reduces: self.contract.reduces(),
            contract: self.contract.clone(),
            claims: Claims::default(),
            cuts: (0..=pieces).map(|i| Fraction::new(i, pieces)).collect(),
            channels: self.channels,
            slices: 1,
            slots: 0,
            lines: lines.keys().map(line).collect(),
            ranks,
            origin: None,
            proof: None,
            placement: None,
            accumulate: None,
            wire: None,
        }
    }
}

/// Adds a copy of one piece, to the one before it where both sides go on.
fn add_copy(copies: &mut Vec<(Region, Region)>, (from, to): (Region, Region)) {
    let goes_on = |a: &Region, b: &Region| a.store == b.store && a.block == b.block && a.high == b.low;
    match copies.last_mut() {
        Some((f, t)) if goes_on(f, &from) && goes_on(t, &to) => (f.high, t.high) = (from.high, to.high),
        _ => copies.push((from, to)),
    }
}

impl Part {
    fn finish(&self, rank: u32, lines: &BTreeMap<u32, u32>) -> RankPlan {
        let mut part = RankPlan {
            rank,
            slots: self.cells.declare(),
            lanes: Vec::new(),
            ops: Vec::with_capacity(self.lanes.iter().map(Vec::len).sum()),
            regions: Vec::new(),
            waits: Vec::new(),
        };
        // Lanes in which nothing happens are left out.
        let mut starts = Vec::with_capacity(self.lanes.len());
        let mut next = 0;
        for lane in &self.lanes {
            starts.push(next);
            next += lane.len() as u32;
            if !lane.is_empty() {
                part.lanes.push(Lane { start: next - lane.len() as u32, end: next });
            }
        }
        for (number, lane) in (0..).zip(&self.lanes) {
            for woven in lane {
                let op = add(&mut part, woven, number, &starts, lines[&woven.line]);
                part.ops.push(op);
            }
        }
        part
    }
}

fn add(part: &mut RankPlan, woven: &Woven, lane: u32, starts: &[u32], line: u32) -> Op {
    let source = regions(part, &woven.source);
    let (operand, target) = match &woven.operand {
        None => (Run::default(), regions(part, &woven.target)),
        Some(own) if *own == woven.target => {
            let target = regions(part, &woven.target);
            (target, target)
        }
        Some(own) => (regions(part, own), regions(part, &woven.target)),
    };
    let start = part.waits.len() as u32;
    // Of one lane the last alone matters, and of its own none.
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    for &(on, index) in woven.waits.iter().filter(|&&(on, _)| on != lane) {
        let known = last.entry(on).or_insert(index);
        *known = (*known).max(index);
    }
    if let Some((on, index)) = woven.along {
        // It follows what it would else wait for, and what comes before that in its lane.
        last.remove(&on).filter(|&known| known > index).map(|known| last.insert(on, known));
    }
    let id = |(on, index): OpRef| starts[on as usize] + index;
    part.waits.extend(last.into_iter().map(|wait| Wait { op: id(wait), along: false }));
    part.waits.extend(woven.along.map(|wait| Wait { op: id(wait), along: true }));
    let end = part.waits.len() as u32;
    let waits = if start == end { Run::default() } else { Run { start, end } };
    Op { action: woven.action, source, operand, target, waits, step: woven.level, line }
}

fn regions(part: &mut RankPlan, list: &[Region]) -> Run {
    if list.is_empty() {
        return Run::default();
    }
    let start = part.regions.len() as u32;
    // Slots are numbered from 1 while they are woven.
    part.regions.extend(list.iter().map(|region| match region.store {
        Store::Slot => Region { block: region.block - 1, ..*region },
        _ => *region,
    }));
    Run { start, end: part.regions.len() as u32 }
}
