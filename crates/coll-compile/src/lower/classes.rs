//! Count classes of the plan. A schedule that moves one block onto another serves equal blocks only; so the plan's
//! contract makes the classes of two such blocks one, and whoever binds other counts is told.

use coll_contract::{ClassId, Classes};
use coll_ir::Program;

pub(crate) struct United {
    pub(super) classes: Classes,
    /// How many classes went into another.
    pub(super) united: u64,
    /// For each class of the program, that of the plan.
    new: Vec<ClassId>,
}

impl United {
    pub(super) fn of(&self, class: ClassId) -> ClassId {
        self.new.get(class as usize).copied().unwrap_or(class)
    }
}

pub(super) fn unite(program: &Program) -> United {
    let contract = &program.contract;
    let mut parent: Vec<ClassId> = (0..contract.classes.count).collect();
    let mut united = 0;
    let width = contract.blocks_per_rank() as usize;
    let first: Vec<usize> =
        (0..contract.buffers.len() as u32).map(|b| contract.first_block(b) as usize).collect();
    for transfer in program.transfers.iter().filter(|t| t.carries_data()) {
        for place in [transfer.source, transfer.target] {
            let Some(first) = first.get(place.buffer as usize) else { continue };
            let own = contract.classes.table[place.rank as usize * width + first + place.block as usize];
            if own != transfer.class && unite_two(&mut parent, own, transfer.class) {
                united += 1;
            }
        }
    }
    if united == 0 {
        return United { classes: contract.classes.clone(), united, new: parent };
    }
    let mut count = 0;
    let mut new = vec![ClassId::MAX; parent.len()];
    let mut number = |class: ClassId, parent: &mut [ClassId]| {
        let root = root(parent, class) as usize;
        if new[root] == ClassId::MAX {
            new[root] = count;
            count += 1;
        }
        new[root]
    };
    let table = contract.classes.table.iter().map(|&class| number(class, &mut parent)).collect();
    let new = (0..contract.classes.count).map(|class| number(class, &mut parent)).collect();
    United { classes: Classes { count, table }, united, new }
}

/// The classes of one rank's part of a program, if it makes none one with another.
pub(super) fn of_rank(program: &Program, rank: u32) -> Option<United> {
    let contract = &program.contract;
    let kept = program.transfers.iter().filter(|t| t.carries_data()).all(|transfer| {
        [transfer.source, transfer.target].into_iter().all(|place| {
            place.rank != rank
                || program.is_scratch(place.buffer)
                || contract.class(rank, place.buffer, place.block) == transfer.class
        })
    });
    kept.then(|| United { classes: contract.classes.clone(), united: 0, new: Vec::new() })
}

fn root(parent: &mut [ClassId], mut class: ClassId) -> ClassId {
    while parent[class as usize] != class {
        let above = parent[parent[class as usize] as usize];
        parent[class as usize] = above;
        class = above;
    }
    class
}

/// True if they were two.
fn unite_two(parent: &mut [ClassId], a: ClassId, b: ClassId) -> bool {
    let (a, b) = (root(parent, a), root(parent, b));
    parent[a.max(b) as usize] = a.min(b);
    a != b
}
