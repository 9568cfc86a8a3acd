//! The communicator's operations, against what they should give.

#[path = "comm/world.rs"]
mod ranks;

use coll::{CommError, Communicator, Element, RedOp};
use half::{bf16, f16};
use ranks::{value, well};

/// An element type made from small numbers.
trait Small: Element + PartialEq + std::fmt::Debug {
    fn small(number: u64) -> Self;
}

macro_rules! small {
    ($($type:ty: $from:expr),*) => { $(impl Small for $type { fn small(number: u64) -> $type { $from(number) } })* };
}

small! {
    u8: |x| x as u8, i32: |x| x as i32, i64: |x| x as i64, f32: |x| x as f32, f64: |x| x as f64,
    f16: |x| f16::from_f64(x as f64), bf16: |x| bf16::from_f64(x as f64)
}

/// This rank's input.
fn input<T: Small>(rank: u32, len: usize) -> Vec<T> {
    (0..len).map(|index| T::small(value(rank, index).into())).collect()
}

fn reduced<T: Small>(op: RedOp, ranks: std::ops::Range<u32>, len: usize) -> Vec<T> {
    let of = |index: usize| {
        let values = ranks.clone().map(|rank| u64::from(value(rank, index)));
        match op {
            RedOp::Min => values.min().unwrap_or(0),
            RedOp::Max => values.max().unwrap_or(0),
            _ => values.sum(),
        }
    };
    (0..len).map(|index| T::small(of(index))).collect()
}

const OPS: [RedOp; 3] = [RedOp::Sum, RedOp::Min, RedOp::Max];

fn counts(n: u32) -> Vec<usize> {
    let n = n as usize;
    let mut counts = vec![0, 1, n - 1, n + 1, 1000];
    counts.dedup();
    counts
}

fn every_reduction<T: Small>(comm: &mut Communicator, len: usize, op: RedOp) -> Result<(), CommError> {
    let (rank, n) = (comm.rank(), comm.world());
    let all = n as usize * len;
    let mine = input::<T>(rank, len);
    let mut output = vec![T::small(9); len];
    comm.all_reduce(&mine, &mut output, op)?;
    assert_eq!(output, reduced(op, 0..n, len), "all_reduce");
    let mut data = mine.clone();
    comm.all_reduce_in_place(&mut data, op)?;
    assert_eq!(data, output, "all_reduce_in_place");
    for root in 0..n {
        let mut at_root = vec![T::small(9); len];
        comm.reduce(&mine, (rank == root).then_some(&mut at_root[..]), op, root)?;
        let due = if rank == root { output.clone() } else { vec![T::small(9); len] };
        assert_eq!(at_root, due, "reduce to {root}");
    }
    let wide = input::<T>(rank, all);
    let due = &reduced::<T>(op, 0..n, all)[rank as usize * len..][..len];
    let mut scattered = vec![T::small(9); len];
    comm.reduce_scatter(&wide, &mut scattered, op)?;
    assert_eq!(scattered, due, "reduce_scatter");
    let mut data = wide;
    comm.reduce_scatter_in_place(&mut data, op)?;
    assert_eq!(&data[rank as usize * len..][..len], due, "reduce_scatter_in_place");
    let mut prefix = vec![T::small(9); len];
    comm.scan(&mine, &mut prefix, op)?;
    assert_eq!(prefix, reduced(op, 0..rank + 1, len), "scan");
    let mut before = vec![T::small(9); len];
    comm.exscan(&mine, &mut before, op)?;
    let due = if rank == 0 { vec![T::small(9); len] } else { reduced(op, 0..rank, len) };
    assert_eq!(before, due, "exscan");
    Ok(())
}

fn every_movement<T: Small>(comm: &mut Communicator, len: usize) -> Result<(), CommError> {
    let (rank, n) = (comm.rank(), comm.world());
    let (r, all) = (rank as usize, n as usize * len);
    comm.barrier()?;
    let mine = input::<T>(rank, len);
    let gathered: Vec<T> = (0..n).flat_map(|q| input::<T>(q, len)).collect();
    let mut output = vec![T::small(9); all];
    comm.all_gather(&mine, &mut output)?;
    assert_eq!(output, gathered, "all_gather");
    let mut data = vec![T::small(9); all];
    data[r * len..][..len].copy_from_slice(&mine);
    comm.all_gather_in_place(&mut data)?;
    assert_eq!(data, gathered, "all_gather_in_place");
    let wide = input::<T>(rank, all);
    let mut output = vec![T::small(9); all];
    comm.all_to_all(&wide, &mut output)?;
    let due: Vec<T> = (0..n).flat_map(|q| input::<T>(q, all)[r * len..][..len].to_vec()).collect();
    assert_eq!(output, due, "all_to_all");
    for root in 0..n {
        let mut data = mine.clone();
        comm.broadcast(&mut data, root)?;
        assert_eq!(data, input::<T>(root, len), "broadcast from {root}");
        let mut output = vec![T::small(9); all];
        comm.gather(&mine, (rank == root).then_some(&mut output[..]), root)?;
        let due = if rank == root { gathered.clone() } else { vec![T::small(9); all] };
        assert_eq!(output, due, "gather to {root}");
        let mut block = vec![T::small(9); len];
        comm.scatter((rank == root).then_some(&wide[..]), &mut block, root)?;
        assert_eq!(block, &input::<T>(root, all)[r * len..][..len], "scatter from {root}");
    }
    Ok(())
}

fn everything<T: Small>(comm: &mut Communicator, len: usize) -> Result<(), CommError> {
    every_movement::<T>(comm, len)?;
    OPS.into_iter().try_for_each(|op| every_reduction::<T>(comm, len, op))
}

#[test]
fn every_operation_with_every_root_and_count() {
    for n in 1..=8 {
        well(n, move |comm| counts(n).into_iter().try_for_each(|len| everything::<i64>(comm, len)));
    }
}

#[test]
fn every_element_type() {
    for n in [1, 3, 4] {
        well(n, |comm| {
            everything::<u8>(comm, 5)?;
            everything::<i32>(comm, 5)?;
            everything::<i64>(comm, 5)?;
            everything::<f16>(comm, 5)?;
            everything::<bf16>(comm, 5)?;
            everything::<f32>(comm, 5)?;
            everything::<f64>(comm, 5)
        });
    }
}

#[test]
fn large_counts() {
    for n in [2, 3] {
        well(n, |comm| everything::<f32>(comm, 300_000));
    }
}

#[test]
fn averages_and_products() {
    well(3, |comm| {
        let mut output = [0.0f64; 2];
        comm.all_reduce(&[f64::from(comm.rank()), 3.0], &mut output, RedOp::Avg)?;
        assert_eq!(output, [1.0, 3.0]);
        let mut output = [0i32; 1];
        comm.all_reduce(&[comm.rank() as i32 + 1], &mut output, RedOp::Prod)?;
        assert_eq!(output, [6]);
        Ok(())
    });
}

/// The counts of the issue, and others with zeros at the ends and all zeros.
fn uneven(n: u32) -> Vec<Vec<usize>> {
    let n = n as usize;
    let of = |f: fn(usize) -> usize| (0..n).map(f).collect::<Vec<usize>>();
    vec![of(|q| [3, 0, 7][q % 3]), of(|q| q % 2), of(|_| 0), of(|q| 1 + q * 100)]
}

fn every_uneven_operation(comm: &mut Communicator, counts: &[usize]) -> Result<(), CommError> {
    let (rank, n) = (comm.rank(), comm.world());
    let (r, all) = (rank as usize, counts.iter().sum::<usize>());
    let start = |q: usize| counts[..q].iter().sum::<usize>();
    let mine = input::<i32>(rank, counts[r]);
    let gathered: Vec<i32> = (0..n).flat_map(|q| input::<i32>(q, counts[q as usize])).collect();
    let mut output = vec![-1; all];
    comm.all_gather_v(&mine, &mut output, counts)?;
    assert_eq!(output, gathered, "all_gather_v");
    let wide = input::<i32>(rank, all);
    let mut block = vec![-1; counts[r]];
    comm.reduce_scatter_v(&wide, &mut block, RedOp::Sum, counts)?;
    assert_eq!(block, &reduced::<i32>(RedOp::Sum, 0..n, all)[start(r)..][..counts[r]], "reduce_scatter_v");
    for root in 0..n {
        let mut output = vec![-1; all];
        let at_root = (rank == root).then_some((&mut output[..], counts));
        comm.gather_v(&mine, at_root, root)?;
        let due = if rank == root { gathered.clone() } else { vec![-1; all] };
        assert_eq!(output, due, "gather_v to {root}");
        let mut block = vec![-1; counts[r]];
        comm.scatter_v((rank == root).then_some((&wide[..], counts)), &mut block, root)?;
        assert_eq!(block, &input::<i32>(root, all)[start(r)..][..counts[r]], "scatter_v from {root}");
    }
    Ok(())
}

#[test]
fn blocks_of_any_lengths() {
    for n in 1..=6 {
        well(n, move |comm| {
            uneven(n).into_iter().try_for_each(|counts| every_uneven_operation(comm, &counts))
        });
    }
}

#[test]
fn all_to_all_with_a_matrix_of_lengths() {
    for n in 1..=6u32 {
        well(n, move |comm| {
            for salt in 0..4usize {
                // Asymmetric, with zeros.
                let length =
                    move |from: u32, to: u32| (from as usize * 3 + to as usize * 5 + salt) % 4 * salt;
                let rank = comm.rank();
                let send: Vec<usize> = (0..n).map(|to| length(rank, to)).collect();
                let receive: Vec<usize> = (0..n).map(|from| length(from, rank)).collect();
                let all = input::<f32>(rank, send.iter().sum());
                let mut output = vec![-1.0; receive.iter().sum()];
                comm.all_to_all_v(&all, &send, &mut output, &receive)?;
                let from = |from: u32| {
                    let lengths: Vec<usize> = (0..n).map(|to| length(from, to)).collect();
                    let start: usize = lengths[..rank as usize].iter().sum();
                    let all = input::<f32>(from, lengths.iter().sum());
                    all[start..][..lengths[rank as usize]].to_vec()
                };
                assert_eq!(output, (0..n).flat_map(from).collect::<Vec<f32>>());
            }
            Ok(())
        });
    }
}

#[test]
fn messages_keep_their_order_and_do_not_mind_collectives() {
    well(3, |comm| {
        let mut sum = [0];
        // The first message makes the link, over TCP, and waits for it.
        match comm.rank() {
            0 => comm.send(&[7], 2)?,
            2 => comm.receive(&mut [0], 0)?,
            _ => {}
        }
        match comm.rank() {
            0 => {
                (0..10).try_for_each(|i| comm.send(&[i, i * i], 2))?;
                comm.all_reduce(&[1], &mut sum, RedOp::Sum)?;
            }
            2 => {
                // The messages wait while a collective passes by.
                comm.all_reduce(&[1], &mut sum, RedOp::Sum)?;
                for i in 0..10 {
                    let mut got = [0; 2];
                    comm.receive(&mut got, 0)?;
                    assert_eq!(got, [i, i * i]);
                }
            }
            _ => comm.all_reduce(&[1], &mut sum, RedOp::Sum)?,
        }
        assert_eq!(sum, [3]);
        Ok(())
    });
}

#[test]
fn large_messages_that_cross_do_not_deadlock_in_a_group() {
    const LEN: usize = 3 << 20;
    well(2, |comm| {
        let peer = 1 - comm.rank();
        let (mine, mut theirs, mut more) = (vec![comm.rank(); LEN], vec![9; LEN], vec![9; 5]);
        let mine: Vec<i32> = mine.iter().map(|&rank| rank as i32).collect();
        let mut sum = vec![0; LEN];
        comm.group(|group| {
            group.send(&mine, peer).send(&mine[..5], peer);
            group.all_reduce(&mine, &mut sum, RedOp::Sum);
            group.receive(&mut theirs, peer).receive(&mut more, peer);
        })?;
        assert!(theirs.iter().chain(&more).all(|&rank| rank == peer as i32));
        assert!(sum.iter().all(|&sum| sum == 1));
        Ok(())
    });
}

#[test]
fn a_group_of_many_collectives() {
    well(5, |comm| {
        let rank = comm.rank();
        for _ in 0..2 {
            let mine: Vec<Vec<i64>> = (0..12).map(|i| input(rank, 40 * i)).collect();
            let mut sums: Vec<Vec<i64>> = (0..12).map(|i| vec![0; 40 * i]).collect();
            let (mut equal, mut data) = ([[0i64; 3]; 4], [f32::from(rank as u8); 3]);
            comm.group(|group| {
                for (mine, sum) in mine.iter().zip(&mut sums) {
                    group.all_reduce(mine, sum, RedOp::Sum);
                }
                group.broadcast(&mut data, 4);
                for sum in &mut equal {
                    group.all_reduce(&[7; 3], sum, RedOp::Sum);
                }
            })?;
            for (i, sum) in sums.iter().enumerate() {
                assert_eq!(*sum, reduced::<i64>(RedOp::Sum, 0..5, 40 * i));
            }
            assert_eq!((data, equal), ([4.0; 3], [[35; 3]; 4]));
        }
        comm.group(|_| {})
    });
}
