//! For each rank, the transfers that begin or end there, by step, message and place in the program. One that stays
//! on its rank is listed once.

use coll_ir::{Kind, Program};

pub(super) struct Agenda {
    /// Where each rank's list starts in `transfers`; one more than there are ranks.
    starts: Vec<usize>,
    transfers: Vec<u32>,
}

impl Agenda {
    pub(super) fn of(program: &Program, message: &[u32]) -> Agenda {
        let mut starts = vec![0usize; program.ranks() as usize + 1];
        let concerned = |id: usize| {
            let transfer = &program.transfers[id];
            let (from, to) = (transfer.source.rank, transfer.target.rank);
            std::iter::once(from).chain((to != from).then_some(to))
        };
        let ids = || (0..program.transfers.len()).filter(|&id| program.transfers[id].kind != Kind::Drop);
        for rank in ids().flat_map(concerned) {
            starts[rank as usize + 1] += 1;
        }
        for rank in 0..program.ranks() as usize {
            starts[rank + 1] += starts[rank];
        }
        let mut next = starts.clone();
        let mut transfers = vec![0u32; starts[program.ranks() as usize]];
        for (id, rank) in ids().flat_map(|id| concerned(id).map(move |rank| (id, rank))) {
            transfers[next[rank as usize]] = id as u32;
            next[rank as usize] += 1;
        }
        let key = |&id: &u32| (program.transfers[id as usize].step, message[id as usize], id);
        for list in starts.windows(2) {
            let list = &mut transfers[list[0]..list[1]];
            if !list.is_sorted_by_key(key) {
                list.sort_unstable_by_key(key);
            }
        }
        Agenda { starts, transfers }
    }

    pub(super) fn of_rank(&self, rank: u32) -> &[u32] {
        &self.transfers[self.starts[rank as usize]..self.starts[rank as usize + 1]]
    }
}
