//! Leaves out what nobody needs: transfers whose result reaches neither an ensured place nor, through other
//! transfers, one that does; signals that no `after` asks for. Drops have told what they had to, and go too.
//!
//! One sweep from the last step to the first, with a flag for each cell (a piece of a block, or a slot): *is what
//! it holds now read later?*

use super::{Grouped, renumber, steps};
use coll_ir::{Cells, Kind, Place, Program, Transfer};

/// What was left out.
pub(crate) struct Dropped {
    /// Transfers of data and signals.
    pub(crate) transfers: u64,
    /// Drops.
    pub(crate) drops: u64,
}

pub(crate) fn run(grouped: &mut Grouped<'_>) -> Dropped {
    let alive = Liveness::of(&grouped.program);
    let mut dropped = Dropped { transfers: 0, drops: 0 };
    for (transfer, _) in grouped.program.transfers.iter().zip(&alive).filter(|(_, alive)| !**alive) {
        match transfer.kind {
            Kind::Drop => dropped.drops += 1,
            _ => dropped.transfers += 1,
        }
    }
    if dropped.transfers + dropped.drops > 0 {
        let mut flags = alive.iter();
        grouped.program.to_mut().transfers.retain(|_| flags.next() == Some(&true));
        let mut flags = alive.iter();
        grouped.message.retain(|_| flags.next() == Some(&true));
        renumber(&mut grouped.message);
    }
    dropped
}

struct Liveness<'p> {
    cells: Cells,
    /// For each cell, whether what it holds is read later.
    wanted: Vec<bool>,
    /// For each rank, whether its token is asked for or passed on later.
    token_wanted: Vec<bool>,
    transfers: &'p [Transfer],
    alive: Vec<bool>,
}

impl Liveness<'_> {
    fn of(program: &Program) -> Vec<bool> {
        let cells = Cells::of(program);
        let mut wanted = vec![false; cells.count()];
        for ensure in &program.contract.ensures {
            let place = Place { rank: ensure.rank, buffer: ensure.buffer, block: ensure.block };
            wanted[cells.block(place)].fill(true);
        }
        let mut token_wanted = vec![false; program.ranks() as usize];
        for &(rank, _) in &program.contract.after {
            token_wanted[rank as usize] = true;
        }
        let alive = vec![false; program.transfers.len()];
        let mut liveness = Liveness { cells, wanted, token_wanted, transfers: &program.transfers, alive };
        for step in steps(&program.transfers).rev() {
            liveness.step(step);
        }
        liveness.alive
    }

    fn step(&mut self, step: std::ops::Range<usize>) {
        for id in step.clone() {
            let transfer = &self.transfers[id];
            self.alive[id] = match transfer.kind {
                Kind::Drop => false,
                Kind::Signal => self.token_wanted[transfer.target.rank as usize],
                _ => self.cells.target(transfer).any(|cell| self.wanted[cell]),
            };
        }
        // What is written anew was not wanted before; a dead write wrote nothing that is wanted.
        for transfer in self.transfers[step.clone()].iter() {
            if matches!(transfer.kind, Kind::Move | Kind::Drop) {
                self.wanted[self.cells.target(transfer)].fill(false);
            }
        }
        for id in step.filter(|&id| self.alive[id]) {
            let transfer = &self.transfers[id];
            match transfer.kind {
                Kind::Signal => self.token_wanted[transfer.source.rank as usize] = true,
                _ => self.wanted[self.cells.source(transfer)].fill(true),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_base::FileId;

    #[test]
    fn a_chain_of_dead_transfers_goes_as_a_whole_and_tokens_are_followed() {
        let text = "program test.t for 3 ranks\nbuffer data[2]: inout\nensure data[0] on 1 == copy data[0] on 0\n\
                    after 2: 0\nstep\nmove 0.data[1] to 1.data[1]\nsignal 0 to 1\nsignal 2 to 1\n\
                    step\nmove 1.data[1] to 2.data[1]\nmove 0.data[0] to 1.data[0]\nsignal 1 to 2\nsignal 1 to 0\n";
        let program = coll_ir::read(FileId(0), text).unwrap();
        let mut grouped = Grouped::new(&program);
        let dropped = run(&mut grouped);
        assert_eq!((dropped.transfers, dropped.drops), (3, 0));
        let kept: Vec<_> =
            grouped.program.transfers.iter().map(|t| (t.kind, t.source.rank, t.target.rank)).collect();
        let signal = |from, to| (Kind::Signal, from, to);
        assert_eq!(kept, [signal(0, 1), signal(2, 1), (Kind::Move, 0, 1), signal(1, 2)]);
    }
}
