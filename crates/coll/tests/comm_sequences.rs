//! Many calls one after the other, and many threads. Known faults B043 and B111.

#[path = "comm/world.rs"]
mod world;

use coll::{CommError, Communicator, RedOp};
use world::{LIMIT, well};

/// Operations that follow each other.
const KINDS: usize = 12;
/// Small and large.
const LENGTHS: [usize; 2] = [3, 5_000];

/// One call, and whether its result is right. Inputs tell the call's number.
fn call(comm: &mut Communicator, kind: usize, len: usize, number: u64) -> Result<bool, CommError> {
    let (rank, n) = (u64::from(comm.rank()), comm.world() as usize);
    let term = |rank: u64| number * 100 + rank;
    let sum_to = |end: u64| (0..end).map(term).sum::<u64>();
    let total = sum_to(n as u64);
    let root = (number % n as u64) as u32;
    let at_root = comm.rank() == root;
    let (mine, mut out) = (vec![term(rank); len], vec![0u64; len]);
    let (wide, mut all) = (vec![term(rank); len * n], vec![0u64; len * n]);
    let gathered =
        |all: &[u64]| all.chunks(len).zip(0..).all(|(block, q)| block.iter().all(|&x| x == term(q)));
    let is = |out: &[u64], due: u64| out.iter().all(|&x| x == due);
    Ok(match kind {
        0 => {
            out.fill(term(rank));
            comm.broadcast(&mut out, root)?;
            is(&out, term(root.into()))
        }
        1 => {
            comm.reduce(&mine, at_root.then_some(&mut out[..]), RedOp::Sum, root)?;
            is(&out, if at_root { total } else { 0 })
        }
        2 => {
            comm.all_reduce(&mine, &mut out, RedOp::Sum)?;
            is(&out, total)
        }
        3 => {
            comm.gather(&mine, at_root.then_some(&mut all[..]), root)?;
            if at_root { gathered(&all) } else { is(&all, 0) }
        }
        4 => {
            comm.scatter(at_root.then_some(&wide[..]), &mut out, root)?;
            is(&out, term(root.into()))
        }
        5 => {
            comm.all_gather(&mine, &mut all)?;
            gathered(&all)
        }
        6 => {
            comm.reduce_scatter(&wide, &mut out, RedOp::Sum)?;
            is(&out, total)
        }
        7 => {
            comm.all_to_all(&wide, &mut all)?;
            gathered(&all)
        }
        8 => {
            comm.scan(&mine, &mut out, RedOp::Sum)?;
            is(&out, sum_to(rank + 1))
        }
        9 => {
            comm.exscan(&mine, &mut out, RedOp::Sum)?;
            is(&out, sum_to(rank))
        }
        10 => {
            comm.all_gather_v(&mine, &mut all, &vec![len; n])?;
            gathered(&all)
        }
        _ => {
            comm.barrier()?;
            true
        }
    })
}

#[test]
fn b111_every_call_after_every_other() {
    for n in [2, 3, 4] {
        well(n, |comm| {
            let mut number = 0;
            for pair in 0..KINDS * KINDS {
                for lengths in 0..4 {
                    for (kind, len) in [(pair / KINDS, lengths / 2), (pair % KINDS, lengths % 2)] {
                        number += 1;
                        let right = call(comm, kind, LENGTHS[len], number)?;
                        assert!(
                            right,
                            "call {number}: kind {kind} in pair {pair}, {} elements",
                            LENGTHS[len]
                        );
                    }
                }
            }
            Ok(())
        });
    }
}

#[test]
fn b111_random_sequences() {
    const SEED: u64 = 0x5eed;
    well(4, |comm| {
        let mut state = SEED;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for number in 0..200 * 10 {
            // A few lengths, so that calls are found bound by others' work.
            let (kind, len) = (next(KINDS), 1 + 37 * next(8));
            assert!(
                call(comm, kind, len, number)?,
                "call {number}: kind {kind}, {len} elements, seed {SEED}"
            );
        }
        Ok(())
    });
}

#[test]
fn b043_threads_have_a_communicator_each() {
    const THREADS: usize = 8;
    const CALLS: u64 = 10_000 / (4 * THREADS as u64) + 1;
    let ranks =
        Communicator::builder().time_limit(6 * LIMIT).local(4).unwrap().into_iter().map(|mut comm| {
            std::thread::spawn(move || {
                let own = (0..THREADS).map(|_| comm.duplicate()).collect::<Result<Vec<_>, _>>();
                let threads = own.unwrap().into_iter().zip(0..).map(|(mut comm, thread)| {
                    std::thread::spawn(move || {
                        (0..CALLS).all(|number| {
                            let number = number + 1000 * thread;
                            call(&mut comm, number as usize % KINDS, 1 + thread as usize, number).unwrap()
                        })
                    })
                });
                threads.collect::<Vec<_>>().into_iter().all(|thread| thread.join().unwrap())
            })
        });
    assert!(ranks.collect::<Vec<_>>().into_iter().all(|rank| rank.join().unwrap()), "a wrong result");
}
