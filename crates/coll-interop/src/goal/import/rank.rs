//! One rank: in what order its operations can be posted, and which messages each end of a message waits for.

use super::{Schedule, TOLD_MAX, is_message};
use crate::codes::{RING, UNSUPPORTED};
use coll_base::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// The most waits of one rank, once computations are left out.
const WAITS_MAX: usize = 1 << 22;

/// What a rank's messages wait for.
pub(super) struct Needs {
    /// Sends and receives in the order in which they are posted: that of the file, where nothing is required.
    pub(super) posted: Vec<u32>,
    /// For each of them, those that have to be over before.
    pub(super) after: BTreeMap<u32, Vec<u32>>,
}

impl Schedule {
    /// Works out what a rank's messages wait for, or which operations wait for each other.
    pub(super) fn needs(&self, rank: u32) -> Result<Needs, Box<Diagnostic>> {
        let part = &self.goal.ranks[rank as usize];
        let count = part.ops.len();
        let (mut on, mut behind) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for edge in &part.edges {
            on[edge.op as usize].push((edge.on, edge.start));
            behind[edge.on as usize].push(edge.op);
        }
        let mut due: Vec<usize> = on.iter().map(Vec::len).collect();
        let mut ready: BTreeSet<u32> = (0..count as u32).filter(|&op| due[op as usize] == 0).collect();
        // For each operation that was posted, the messages that are over when it starts.
        let mut started: Vec<Vec<u32>> = vec![Vec::new(); count];
        let mut needs = Needs { posted: Vec::new(), after: BTreeMap::new() };
        let (mut posted, mut waits) = (0, 0);
        while let Some(op) = ready.pop_first() {
            posted += 1;
            let mut after: BTreeSet<u32> = BTreeSet::new();
            for &(on, start) in &on[op as usize] {
                match is_message(&part.ops[on as usize].kind) && !start {
                    true => drop(after.insert(on)),
                    false => after.extend(&started[on as usize]),
                }
            }
            let after: Vec<u32> = after.into_iter().collect();
            waits += after.len();
            if waits > WAITS_MAX {
                return Err(Box::new(
                    Diagnostic::new(UNSUPPORTED, self.span((rank, op)), "too many dependencies for one plan")
                        .expected(format!("at most {WAITS_MAX} on a rank, once computations are left out"))
                        .found("more")
                        .help("simulate it with `collc sim`, which needs no plan"),
                ));
            }
            if is_message(&part.ops[op as usize].kind) {
                needs.posted.push(op);
                needs.after.insert(op, after.clone());
            }
            started[op as usize] = after;
            for &next in &behind[op as usize] {
                due[next as usize] -= 1;
                if due[next as usize] == 0 {
                    ready.insert(next);
                }
            }
        }
        match posted == count {
            true => Ok(needs),
            false => Err(Box::new(self.own_ring(rank, &on, &due))),
        }
    }

    /// Operations of one rank that require each other.
    fn own_ring(&self, rank: u32, on: &[Vec<(u32, bool)>], due: &[usize]) -> Diagnostic {
        let stands = |op: u32| due[op as usize] > 0;
        let mut way: Vec<u32> = (0..due.len() as u32).find(|&op| stands(op)).into_iter().collect();
        let ring = loop {
            let last = way.last().copied().unwrap_or(0);
            let Some(&(next, _)) = on[last as usize].iter().find(|(on, _)| stands(*on)) else { break way };
            if let Some(at) = way.iter().position(|&known| known == next) {
                break way.split_off(at);
            }
            way.push(next);
        };
        let first = (rank, ring.first().copied().unwrap_or(0));
        let message = format!("{} operations of rank {rank} wait for each other", ring.len());
        let mut told = Diagnostic::new(RING, self.span(first), message)
            .expected("an order in which all operations can be taken")
            .found("none");
        for &op in ring.iter().take(TOLD_MAX) {
            told = told.note(format!("{} requires the next", self.words((rank, op))));
        }
        told.help("take one of these `requires` away")
    }
}
