//! Blocks that lie anywhere in their buffers: in any order and with gaps; overlaps and what lies outside are refused. Known
//! fault B021, as far as it can be written in Rust.

#[path = "comm/world.rs"]
mod world;

use coll::{CommError, Communicator, RedOp, Request};
use world::{badly, value, well};

const GAP: i32 = -77;

fn input(rank: u32, len: usize) -> Vec<i32> {
    (0..len).map(|index| i32::from(value(rank, index))).collect()
}

/// Blocks in reverse, two elements apart, and the length of the buffer.
fn reversed(counts: &[usize]) -> (Vec<usize>, usize) {
    let mut at = vec![0; counts.len()];
    let mut end = 1;
    for block in (0..counts.len()).rev() {
        at[block] = end;
        end += counts[block] + 2;
    }
    (at, end)
}

/// A buffer with these blocks at these places.
fn laid(at: &[usize], len: usize, blocks: &[Vec<i32>]) -> Vec<i32> {
    let mut all = vec![GAP; len];
    for (&at, block) in at.iter().zip(blocks) {
        all[at..at + block.len()].copy_from_slice(block);
    }
    all
}

fn every_call(comm: &mut Communicator, counts: &[usize]) -> Result<(), CommError> {
    let (rank, n) = (comm.rank(), comm.world());
    let r = rank as usize;
    let (at, len) = reversed(counts);
    let mine = input(rank, counts[r]);
    let blocks: Vec<Vec<i32>> = (0..n).map(|q| input(q, counts[q as usize])).collect();
    let mut all = vec![GAP; len];
    comm.run(Request::all_gather_v(&mine, &mut all, counts).at(&at))?;
    assert_eq!(all, laid(&at, len, &blocks), "all_gather_v");
    for root in 0..n {
        let mut all = vec![GAP; len];
        let at_root = (rank == root).then_some((&mut all[..], counts));
        comm.run(Request::gather_v(&mine, at_root, root).at(&at))?;
        let due = if rank == root { laid(&at, len, &blocks) } else { vec![GAP; len] };
        assert_eq!(all, due, "gather_v to {root}");
        let source = laid(&at, len, &blocks);
        let mut block = vec![0; counts[r]];
        let at_root = (rank == root).then_some((&source[..], counts));
        comm.run(Request::scatter_v(at_root, &mut block, root).at(&at))?;
        assert_eq!(block, mine, "scatter_v from {root}");
    }
    let mut block = vec![0; counts[r]];
    let wide: Vec<Vec<i32>> = counts.iter().map(|&count| vec![rank as i32 + 1; count]).collect();
    comm.run(Request::reduce_scatter_v(&laid(&at, len, &wide), &mut block, RedOp::Sum, counts).at(&at))?;
    assert_eq!(block, vec![(n * (n + 1) / 2) as i32; counts[r]], "reduce_scatter_v");
    // An average reads and writes working elements elsewhere than where the caller has them.
    let even: Vec<Vec<i32>> = counts.iter().map(|&count| vec![2 * (rank as i32 + 1); count]).collect();
    comm.run(Request::reduce_scatter_v(&laid(&at, len, &even), &mut block, RedOp::Avg, counts).at(&at))?;
    assert_eq!(block, vec![n as i32 + 1; counts[r]], "reduce_scatter_v, avg");
    Ok(())
}

#[test]
fn blocks_lie_where_they_are_said_to() {
    for n in 1..=5u32 {
        well(n, move |comm| {
            let of = |f: fn(usize) -> usize| (0..n as usize).map(f).collect::<Vec<usize>>();
            let all = [of(|q| [3, 0, 7][q % 3]), of(|_| 0), of(|q| q * 100), of(|_| 2)];
            all.iter().try_for_each(|counts| every_call(comm, counts))
        });
    }
}

#[test]
fn both_sides_of_an_all_to_all() {
    for n in 1..=5u32 {
        well(n, move |comm| {
            let rank = comm.rank();
            let length = |from: u32, to: u32| (from as usize + 2 * to as usize) % 4;
            let block = |from: u32, to: u32| vec![(from * 10 + to) as i32; length(from, to)];
            let send: Vec<usize> = (0..n).map(|to| length(rank, to)).collect();
            let receive: Vec<usize> = (0..n).map(|from| length(from, rank)).collect();
            let ((from, sent_len), (to, received_len)) = (reversed(&send), reversed(&receive));
            let source = laid(&from, sent_len, &(0..n).map(|to| block(rank, to)).collect::<Vec<_>>());
            let mut all = vec![GAP; received_len];
            comm.run(Request::all_to_all_v(&source, &send, &mut all, &receive).at_both(&from, &to))?;
            let due = laid(&to, received_len, &(0..n).map(|from| block(from, rank)).collect::<Vec<_>>());
            assert_eq!(all, due);
            Ok(())
        });
    }
}

#[test]
fn what_is_read_may_overlap_and_calls_are_told_apart() {
    well(2, |comm| {
        let (all, mut block) = ([1, 2, 3], [0; 2]);
        let at_root = || Some((&all[..], &[2, 2][..]));
        for (at, due) in [([0, 1], [[1, 2], [2, 3]]), ([1, 0], [[2, 3], [1, 2]]), ([1, 1], [[2, 3], [2, 3]])]
        {
            comm.run(Request::scatter_v(at_root(), &mut block, 0).at(&at))?;
            assert_eq!(block, due[comm.rank() as usize], "{at:?}");
        }
        Ok(())
    });
}

#[test]
fn what_is_written_must_lie_apart_and_inside() {
    let cases: [(&[usize], &str); 4] = [
        (&[0, 1], "blocks 0 and 1 overlap from element 1 of the output on"),
        (&[1, 0], "blocks 1 and 0 overlap from element 1 of the output on"),
        (&[0, 3], "block 1 has 2 elements from element 3 on, and the buffer has 4"),
        (&[0], "1 displacements are given for 2 ranks"),
    ];
    for (at, due) in cases {
        let messages = badly(2, move |comm| {
            let mut all = [0i32; 4];
            let here: &[usize] = if comm.rank() == 0 { at } else { &[0, 2] };
            let done = comm.run(Request::all_gather_v(&[1i32, 2], &mut all, &[2, 2]).at(here));
            assert!(comm.rank() != 0 || all == [0; 4], "nothing is written");
            done
        });
        assert!(messages[0].contains(due), "{}", messages[0]);
        assert!(messages[1].contains(due), "the other is told: {}", messages[1]);
    }
    let messages = badly(2, |comm| {
        let mut all = [0i32; 4];
        comm.run(Request::all_gather(&[1i32, 2], &mut all).at(&[0, 2]))
    });
    assert!(
        messages[0].contains("displacements are for calls with a count for each rank"),
        "{}",
        messages[0]
    );
}
