//! Counter-examples: a broken contract told so that a person can mend the schedule.
//!
//! What is in a value that should not be there is blamed on the transfer that brought it. What is *not* there is harder:
//! the last write to the place may be quite right. It is blamed on the last message that carried the missing
//! contribution at all, for one more step like it was needed; failing that, on the write that destroyed it; failing
//! that, it was never sent: a loop that ran zero times is blamed if there is one, or else the last write to the place.

use super::idle;
use super::leaf_sets::LeafSet;
use super::names::{self, LeafNames};
use super::run::Outcome;
use super::trace::{NONE, Trace, Version, VersionId, trace};
use super::values::{NodeId, Values};
use super::verdict::{Fault, Violation};
use crate::codes;
use coll_base::Diagnostic;
use coll_contract::Leaf;
use coll_ir::{Kind, Place, Program};

/// Tells of one kind of violation.
pub(super) fn explain(program: &Program, outcome: &mut Outcome, violation: Violation) -> Diagnostic {
    let ensure = program.contract.ensures[violation.ensure as usize];
    let place = Place { rank: ensure.rank, buffer: ensure.buffer, block: ensure.block };
    let wanted = program.contract.values[ensure.value as usize].leaves();
    let values = &mut outcome.values;
    let mut trace = trace(program, values, violation.low);
    let last = trace.at(program, values, place);
    let found = values.set(violation.found);
    let found: Vec<u32> = values.sets.elements(found);
    let numbers: Vec<u32> = wanted.iter().map(|&leaf| values.leaves.number(leaf)).collect();
    let every: Vec<Leaf> = found.iter().chain(&numbers).map(|&number| values.leaves.leaf(number)).collect();
    let names = LeafNames::new(program, &every, violation.low, violation.high);
    let mut wanted_sorted = numbers;
    wanted_sorted.sort_unstable();
    let mut case =
        Case { program, values, trace, names, violation, place, last, found, wanted: wanted_sorted };
    let diagnostic = case.told();
    let diagnostic = match case.names.legend() {
        Some(legend) => diagnostic.note(legend),
        None => diagnostic,
    };
    match names::others(violation.count - 1, "place", "places") {
        Some(others) => diagnostic.note(others),
        None => diagnostic,
    }
}

/// One place that breaks the contract, and all that is known of it.
struct Case<'p> {
    program: &'p Program,
    values: &'p mut Values,
    trace: Trace,
    names: LeafNames<'p>,
    violation: Violation,
    place: Place,
    /// What it holds at the end.
    last: VersionId,
    /// The leaves that are there and those that should be, by number.
    found: Vec<u32>,
    wanted: Vec<u32>,
}

impl Case<'_> {
    fn told(&mut self) -> Diagnostic {
        let place = names::place(self.program, self.place, self.violation.low, self.violation.high);
        let rank = self.place.rank;
        let sum = self.names.sum(self.values, self.violation.found);
        let head = format!("rank {rank} ends with {place} = {sum}");
        let told = match self.violation.fault {
            Fault::Nothing => {
                self.absent(codes::NOTHING_THERE, format!("rank {rank} ends with nothing in {place}"))
            }
            Fault::Twice => self.twice(head),
            Fault::Foreign => self.foreign(head),
            Fault::Missing => self.missing(head),
            Fault::Other => self.other(head),
        };
        let expected = self.sum_of(&self.wanted);
        told.expected(format!("{place} = {expected}")).found(format!("{place} = {sum}"))
    }

    fn twice(&mut self, head: String) -> Diagnostic {
        let Some((at, leaf)) = self.doubling() else {
            return self.place_of(codes::COUNTED_TWICE, self.last, head);
        };
        let version = self.trace.version(at);
        let rank = self.values.leaves.leaf(leaf).rank;
        let times = self.values.multiplicities(self.violation.found).get(&leaf).copied().unwrap_or(2);
        let often = if times == 2 { "twice".to_owned() } else { format!("{times} times") };
        let told = self.place_of(codes::COUNTED_TWICE, at, format!("{head}: rank {rank} is counted {often}"));
        let told = told.label(format!("the second time came with {}", self.transfer(version.transfer)));
        let mut first = version.before;
        while self.trace.version(first).before != NONE && self.has(self.trace.version(first).before, leaf) {
            first = self.trace.version(first).before;
        }
        let first = self.trace.version(first);
        let told = if first.transfer == NONE {
            told.note(format!("the first time is what rank {} held from the start", first.place.rank))
        } else {
            let text = format!("the first time came with {}", self.transfer(first.transfer));
            self.also(told, first.transfer, text)
        };
        told.help(match self.is_library(version.transfer) {
            true => format!("give this call values that rank {rank} is not in yet"),
            false => format!(
                "send what rank {rank} is not in yet, or leave out `reduce` where what arrives is already complete"
            ),
        })
    }

    /// The reduction that first had a leaf on both sides, and that leaf.
    fn doubling(&mut self) -> Option<(VersionId, u32)> {
        let mut at = self.last;
        loop {
            let version = self.trace.version(at);
            if version.source == NONE {
                return None;
            }
            let source = self.trace.version(version.source).value;
            if !self.is_reduction(version) || self.values.is_twice(source) {
                at = version.source;
            } else if self.values.is_twice(self.trace.version(version.before).value) {
                at = version.before;
            } else {
                let before = self.trace.version(version.before).value;
                return self.first_common(before, source).map(|leaf| (at, leaf));
            }
        }
    }

    fn foreign(&mut self, head: String) -> Diagnostic {
        let strange = self.found.iter().copied().find(|number| self.wanted.binary_search(number).is_err());
        let Some(leaf) = strange else { return self.place_of(codes::FOREIGN, self.last, head) };
        let name = self.names.leaf(self.values.leaves.leaf(leaf));
        let (at, from_start) = self.bringer(leaf);
        let told = self.place_of(codes::FOREIGN, at, format!("{head}: {name} does not belong"));
        match self.trace.version(at).transfer {
            NONE => told,
            transfer if from_start => told
                .label(format!(
                    "{name} was there from the start, and is added to by {}",
                    self.transfer(transfer)
                ))
                .help("let the first value to come replace it: a send without `reduce`"),
            transfer => told.label(format!("{name} came with {}", self.transfer(transfer))).help(
                "check the indices on both sides of this transfer: what it reduces belongs to another place",
            ),
        }
    }

    /// The write that first put a leaf among those of the place it ended in; or, if it was there from the start (then
    /// true), the first write that kept it.
    fn bringer(&mut self, leaf: u32) -> (VersionId, bool) {
        let (mut at, mut later) = (self.last, self.last);
        loop {
            let version = self.trace.version(at);
            if version.source == NONE {
                return (later, true);
            }
            let source = self.trace.version(version.source).place;
            let crosses = (source.buffer, source.block) != (version.place.buffer, version.place.block);
            let keeps = self.is_reduction(version) && self.has(version.before, leaf);
            if !keeps && (crosses || self.is_reduction(version)) {
                return (at, false);
            }
            later = at;
            at = if keeps { version.before } else { version.source };
        }
    }

    fn missing(&mut self, head: String) -> Diagnostic {
        let missing = self.absent_leaves();
        let mut ranks: Vec<u32> =
            missing.iter().map(|&number| self.values.leaves.leaf(number).rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let verb = if ranks.len() == 1 { "is" } else { "are" };
        self.absent(codes::MISSING, format!("{head}: {} {verb} missing", names::ranks(&ranks)))
    }

    fn other(&mut self, head: String) -> Diagnostic {
        let expected = self.sum_of(&self.wanted);
        let message = format!("{head} and not {expected}");
        let version = self.trace.version(self.last);
        if version.transfer == NONE {
            return self.absent(codes::OTHER_VALUE, message);
        }
        let (at, from_start) = match self.found.first() {
            Some(&leaf) => self.bringer(leaf),
            None => (self.last, true),
        };
        let at = if from_start { self.last } else { at };
        let told = self.place_of(codes::OTHER_VALUE, at, message);
        let told = told.label(format!("put there by {}", self.transfer(self.trace.version(at).transfer)));
        let told = self.lost_label(told, self.wanted[0]);
        let told = self.holders_note(told, self.wanted[0]);
        told.help("check what this transfer reads and where it writes")
    }

    fn absent_leaves(&self) -> Vec<u32> {
        self.wanted.iter().copied().filter(|number| self.found.binary_search(number).is_err()).collect()
    }

    /// Blames what is not there.
    fn absent(&mut self, code: coll_base::Code, message: String) -> Diagnostic {
        let missing = self.absent_leaves();
        let set = self.values.sets.of(&missing);
        if let Some((at, leaf)) = self.last_carried(set) {
            let version = self.trace.version(at);
            let name = self.names.leaf(self.values.leaves.leaf(leaf));
            let told = self.place_of(code, at, message);
            let told = told.label(format!("{name} gets no further than {}", self.transfer(version.transfer)));
            let rank = self.place.rank;
            let step = self.program.transfers[version.transfer as usize].step;
            let told = idle::after(self.program, told, step, &name);
            let told = self.lost_label(told, leaf);
            let what = match self.is_library(version.transfer) {
                true => "another call or a send",
                false => "one more step of this kind, or another send,",
            };
            return self.holders_note(told, leaf).help(format!("{what} has to bring {name} to rank {rank}"));
        }
        if let Some((at, leaf)) = self.last_destroyed(set) {
            let version = self.trace.version(at);
            let name = self.names.leaf(self.values.leaves.leaf(leaf));
            let told = self.place_of(code, at, message);
            let rank = version.place.rank;
            let told =
                told.label(format!("{name} is lost on rank {rank} by {}", self.transfer(version.transfer)));
            return told.help(format!("add to it with `reduce`, or send {name} on before it is replaced"));
        }
        let leaf = missing.first().copied().unwrap_or(self.wanted[0]);
        self.never_sent(code, message, leaf)
    }

    fn never_sent(&mut self, code: coll_base::Code, message: String, leaf: u32) -> Diagnostic {
        let Leaf { rank, .. } = self.values.leaves.leaf(leaf);
        let name = self.names.leaf(self.values.leaves.leaf(leaf));
        let lacking = format!("no transfer takes {name} away from rank {rank}");
        if let Some(told) = idle::blame(self.program, code, &message, &lacking) {
            return told;
        }
        let told = self.place_of(code, self.last, message);
        let transfer = self.trace.version(self.last).transfer;
        let told = if transfer == NONE {
            told.note(format!("nothing is ever written there, and rank {rank} never sends {name}"))
        } else {
            told.label(format!("the last write is {}", self.transfer(transfer)))
                .note(format!("rank {rank} never sends {name}"))
        };
        told.help(format!("send {name} from rank {rank} on its way to rank {}", self.place.rank))
    }

    /// The first message of the last step in which one of these leaves was carried, and the leaf.
    fn last_carried(&mut self, leaves: LeafSet) -> Option<(VersionId, u32)> {
        let mut best: Option<(u32, VersionId, u32)> = None;
        for at in (0..self.trace.versions.len() as VersionId).rev() {
            let version = self.trace.version(at);
            if version.source == NONE {
                continue;
            }
            let transfer = &self.program.transfers[version.transfer as usize];
            if best.is_some_and(|(step, ..)| step > transfer.step) {
                break;
            }
            let source = self.trace.version(version.source).value;
            if !transfer.is_local()
                && let Some(leaf) = self.first_common_with(source, leaves)
            {
                best = Some((transfer.step, at, leaf));
            }
        }
        best.map(|(_, at, leaf)| (at, leaf))
    }

    /// The last write that replaced one of these leaves by something without it, and the leaf.
    fn last_destroyed(&mut self, leaves: LeafSet) -> Option<(VersionId, u32)> {
        for at in (0..self.trace.versions.len() as VersionId).rev() {
            let version = self.trace.version(at);
            if version.before == NONE {
                continue;
            }
            let before = self.trace.version(version.before).value;
            if let Some(leaf) = self.first_common_with(before, leaves).filter(|&leaf| !self.has(at, leaf)) {
                return Some((at, leaf));
            }
        }
        None
    }

    /// Says who holds a leaf at the end.
    fn holders_note(&mut self, told: Diagnostic, leaf: u32) -> Diagnostic {
        let holders = self.holders(leaf);
        let name = self.names.leaf(self.values.leaves.leaf(leaf));
        let Some(&first) = holders.first() else {
            return told.note(format!("no rank holds {name} at the end"));
        };
        let at = names::place(self.program, first, self.violation.low, self.violation.high);
        let alike = holders.iter().filter(|p| (p.buffer, p.block) == (first.buffer, first.block));
        let ranks: Vec<u32> = alike.map(|place| place.rank).collect();
        let verb = if ranks.len() == 1 { "holds" } else { "hold" };
        told.note(format!("{} {verb} {name} at the end, in {at}", names::ranks(&ranks)))
    }

    /// Who holds a leaf at the end: places of the same block if there are any.
    fn holders(&mut self, leaf: u32) -> Vec<Place> {
        let Leaf { rank, buffer, block } = self.values.leaves.leaf(leaf);
        self.trace.at(self.program, self.values, Place { rank, buffer, block });
        let mut places: Vec<Place> = Vec::new();
        for at in 0..self.trace.versions.len() as VersionId {
            if self.trace.is_last(at) && self.has(at, leaf) {
                places.push(self.trace.version(at).place);
            }
        }
        let same = |place: &Place| (place.buffer, place.block) == (self.place.buffer, self.place.block);
        if places.iter().any(same) {
            places.retain(same);
        }
        places.sort_unstable_by_key(|place| (place.buffer, place.block, place.rank));
        places
    }

    /// If no rank holds a leaf at the end, points at what destroyed it last.
    fn lost_label(&mut self, told: Diagnostic, leaf: u32) -> Diagnostic {
        if !self.holders(leaf).is_empty() {
            return told;
        }
        let set = self.values.sets.single(leaf);
        match self.last_destroyed(set) {
            Some((at, _)) => {
                let version = self.trace.version(at);
                let rank = version.place.rank;
                let text =
                    format!("what rank {rank} has of it is replaced by {}", self.transfer(version.transfer));
                self.also(told, version.transfer, text)
            }
            None => told,
        }
    }

    /// `this send, in step 4 (s = 3), from rank 0 to rank 1`
    fn transfer(&self, index: u32) -> String {
        names::this(self.program, &self.program.transfers[index as usize])
    }

    fn is_library(&self, transfer: u32) -> bool {
        names::is_library(self.program, &self.program.transfers[transfer as usize])
    }

    fn also(&self, told: Diagnostic, transfer: u32, text: String) -> Diagnostic {
        names::also(self.program, told, &self.program.transfers[transfer as usize], text)
    }

    fn place_of(&self, code: coll_base::Code, at: VersionId, message: String) -> Diagnostic {
        match self.trace.version(at).transfer {
            NONE => names::at_the_end(self.program, code, message),
            transfer => {
                names::at(self.program, code, self.program.transfers[transfer as usize].origin, message)
            }
        }
    }

    fn is_reduction(&self, version: Version) -> bool {
        version.transfer != NONE
            && matches!(
                self.program.transfers[version.transfer as usize].kind,
                Kind::Reduce | Kind::ReduceLeft
            )
    }

    fn has(&mut self, at: VersionId, leaf: u32) -> bool {
        let set = self.values.set(self.trace.version(at).value);
        self.values.sets.contains(set, leaf)
    }

    fn first_common(&mut self, a: NodeId, b: NodeId) -> Option<u32> {
        let b = self.values.set(b);
        self.first_common_with(a, b)
    }

    fn first_common_with(&mut self, node: NodeId, set: LeafSet) -> Option<u32> {
        let node = self.values.set(node);
        self.values.sets.first_common(node, set)
    }

    fn sum_of(&self, numbers: &[u32]) -> String {
        let terms: Vec<String> =
            numbers.iter().map(|&number| self.names.leaf(self.values.leaves.leaf(number))).collect();
        names::shortened(&terms, terms.len() as u64)
    }
}
