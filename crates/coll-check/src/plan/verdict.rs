//! What a block ends with against what it was promised: each leaf of the promise once, and no other.

use super::codes::{COUNTED_TWICE, WRONG_END};
use super::sums::{Sums, Symbol};
use super::whole::{NONE, OpKey, Whole};
use coll_base::Diagnostic;
use coll_contract::{Ensure, Value};
use std::collections::{BTreeSet, HashMap};

/// Compares values with promises, each pair once.
pub(super) struct Judge {
    /// For each leaf, in which comparison it was last promised, and in which seen.
    promised: Vec<u32>,
    seen: Vec<u32>,
    comparisons: u32,
    /// False once a reduction was right but in another order than the promise's.
    ordered: bool,
    known: HashMap<(Symbol, u32), bool>,
    last: Option<(Symbol, u32)>,
}

impl Judge {
    pub(super) fn new(leaves: u32) -> Judge {
        let (promised, seen) = (vec![0; leaves as usize], vec![0; leaves as usize]);
        Judge { promised, seen, comparisons: 0, ordered: true, known: HashMap::new(), last: None }
    }

    pub(super) fn is_right(&mut self, whole: &Whole, sums: &Sums, symbol: Symbol, value: u32) -> bool {
        let promise = &whole.plan.contract.values[value as usize];
        if let &[leaf] = promise.leaves() {
            return symbol == whole.leaf(leaf);
        }
        if symbol == NONE {
            return false;
        }
        if self.last == Some((symbol, value)) {
            return true;
        }
        if let Some(&known) = self.known.get(&(symbol, value)) {
            return known;
        }
        let right = self.compare(whole, sums, symbol, promise);
        self.known.insert((symbol, value), right);
        self.last = Some((symbol, value)).filter(|_| right);
        right
    }

    /// Walks down the sum; stops at the first leaf that is not promised or comes again, so that no walk is longer
    /// than the promise.
    fn compare(&mut self, whole: &Whole, sums: &Sums, symbol: Symbol, promise: &Value) -> bool {
        self.comparisons += 1;
        let now = self.comparisons;
        for &leaf in promise.leaves() {
            self.promised[whole.leaf(leaf) as usize] = now;
        }
        let (mut count, mut in_order, mut rest) = (0, true, vec![symbol]);
        while let Some(symbol) = rest.pop() {
            if let Some((a, b)) = sums.parts(symbol) {
                // The left part is looked at first.
                rest.extend([b, a]);
                // Each of those has a leaf at least.
                if count + rest.len() > promise.leaves().len() {
                    return false;
                }
                continue;
            }
            let leaf = symbol as usize;
            if self.promised[leaf] != now || std::mem::replace(&mut self.seen[leaf], now) == now {
                return false;
            }
            in_order &= whole.leaf(promise.leaves()[count]) == symbol;
            count += 1;
        }
        let right = count == promise.leaves().len();
        self.ordered &= in_order || !right;
        right
    }

    /// Whether every reduction so far keeps the order of its promise, so that operators that do not commute are served.
    pub(super) fn ordered(&self) -> bool {
        self.ordered
    }
}

pub(super) fn wrong_end(
    whole: &Whole,
    sums: &Sums,
    ensure: &Ensure,
    (low, high): (u32, u32),
    symbol: Symbol,
    writer: OpKey,
) -> Diagnostic {
    let Ensure { rank, buffer, block, value } = *ensure;
    let place = format!("{}.out[{block}:{low}..{high}]", whole.plan.contract.buffers[buffer as usize].name);
    let due: BTreeSet<u32> =
        whole.plan.contract.values[value as usize].leaves().iter().map(|&leaf| whole.leaf(leaf)).collect();
    let expected = sum_words(whole, &due.iter().map(|&leaf| (leaf, 1)).collect::<Vec<_>>());
    if symbol == NONE {
        return Diagnostic::unplaced(WRONG_END, format!("rank {rank} ends with nothing in {place}"))
            .expected(expected)
            .found("no operation writes it; out of place it holds nothing, in place what it held before")
            .help("copy or receive the value into it");
    }
    let there = sums.unfold(symbol);
    let found = sum_words(whole, &there);
    let twice = there.iter().find(|&&(leaf, count)| count > 1 && due.contains(&leaf));
    let foreign = there.iter().find(|(leaf, _)| !due.contains(leaf));
    let told = match (twice, foreign) {
        (Some(&(leaf, count)), _) => {
            let leaf_words = whole.leaf_words(leaf);
            let message = format!("rank {rank} ends with {leaf_words} counted {count} times in {place}");
            let told = Diagnostic::unplaced(COUNTED_TWICE, message)
                .help("leave out the operation that adds it again");
            match sums.doubled_by(symbol, leaf) {
                Some(by) => told.note(format!("{leaf_words} came in again with {}", whole.words(by))),
                None => told,
            }
        }
        (None, Some(&(leaf, _))) => {
            let message = format!(
                "rank {rank} ends with {} in {place}, which was not promised",
                whole.leaf_words(leaf)
            );
            Diagnostic::unplaced(WRONG_END, message)
                .help("let another value arrive there, or send this one elsewhere")
        }
        (None, None) => {
            let lacks = due.iter().find(|leaf| there.binary_search_by_key(*leaf, |entry| entry.0).is_err());
            let lacks = lacks.map_or("a contribution".into(), |&leaf| whole.leaf_words(leaf));
            Diagnostic::unplaced(WRONG_END, format!("rank {rank} ends without {lacks} in {place}"))
                .help("let the missing contribution arrive before the end")
        }
    };
    told.expected(expected).found(found).note(format!("written last by {}", whole.words(writer)))
}

/// `r0.data[0] + 2·r1.data[0] + …`
fn sum_words(whole: &Whole, leaves: &[(u32, u32)]) -> String {
    const TERMS_MAX: usize = 8;
    let words = leaves.iter().take(TERMS_MAX).map(|&(leaf, count)| match count {
        1 => whole.leaf_words(leaf),
        _ => format!("{count}·{}", whole.leaf_words(leaf)),
    });
    let mut text = words.collect::<Vec<_>>().join(" + ");
    if leaves.len() > TERMS_MAX {
        text += &format!(" + … ({} in all)", leaves.len());
    }
    text
}
