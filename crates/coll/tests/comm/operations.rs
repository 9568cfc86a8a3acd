//! Every operation once, at one size, with the results that it must have.

use coll::{CommError, Communicator, RedOp};
use std::ops::DerefMut;

/// A rank's buffer, wherever it lies.
pub(crate) type Memory = Box<dyn DerefMut<Target = [i64]>>;

/// Gives a rank a buffer of so many elements.
pub(crate) type Make<'m> = &'m mut dyn FnMut(&mut Communicator, usize) -> Memory;

/// What a rank puts in at an index: no two ranks and no two indices alike.
fn value(rank: u32, index: usize) -> i64 {
    i64::from(rank + 1) * 1_000_003 + index as i64 * 7
}

fn filled(comm: &mut Communicator, len: usize, make: Make<'_>) -> Memory {
    let (rank, mut memory) = (comm.rank(), make(comm, len));
    memory.iter_mut().enumerate().for_each(|(index, element)| *element = value(rank, index));
    memory
}

/// The sum over some ranks.
fn sum(ranks: impl Iterator<Item = u32>, index: usize) -> i64 {
    ranks.map(|rank| value(rank, index)).sum()
}

fn check(what: &str, comm: &Communicator, found: &[i64], due: impl Fn(usize) -> i64) {
    let wrong = found.iter().enumerate().find(|&(index, &element)| element != due(index));
    assert!(wrong.is_none(), "{what} on rank {}: {wrong:?} of {}", comm.rank(), found.len());
}

/// All operations on blocks of `len` elements.
pub(crate) fn all_at(comm: &mut Communicator, len: usize, make: Make<'_>) -> Result<(), CommError> {
    let (rank, world) = (comm.rank(), comm.world());
    let n = world as usize;
    let (first, last) = (1 % world, world - 1);
    comm.barrier()?;

    let mut data = filled(comm, len, make);
    comm.broadcast(&mut data, first)?;
    check("broadcast", comm, &data, |index| value(first, index));

    let (input, mut output) = (filled(comm, len, make), make(comm, len));
    comm.all_reduce(&input, &mut output, RedOp::Sum)?;
    check("all-reduce", comm, &output, |index| sum(0..world, index));
    check("an all-reduce's input", comm, &input, |index| value(rank, index));

    let mut data = filled(comm, len, make);
    comm.all_reduce_in_place(&mut data, RedOp::Max)?;
    check("all-reduce in place", comm, &data, |index| value(last, index));

    let mut output = make(comm, len);
    output.fill(-1);
    comm.reduce(&input, (rank == last).then_some(&mut output[..]), RedOp::Sum, last)?;
    check("reduce", comm, &output, |index| if rank == last { sum(0..world, index) } else { -1 });

    let mut all = make(comm, if rank == first { len * n } else { 0 });
    comm.gather(&input, (rank == first).then_some(&mut all[..]), first)?;
    check("gather", comm, &all, |index| value((index / len) as u32, index % len));

    let all = filled(comm, if rank == first { len * n } else { 0 }, make);
    let mut mine = make(comm, len);
    comm.scatter((rank == first).then_some(&all[..]), &mut mine, first)?;
    check("scatter", comm, &mine, |index| value(first, rank as usize * len + index));

    let mut all = make(comm, len * n);
    comm.all_gather(&input, &mut all)?;
    check("all-gather", comm, &all, |index| value((index / len) as u32, index % len));

    let all = filled(comm, len * n, make);
    let mut mine = make(comm, len);
    comm.reduce_scatter(&all, &mut mine, RedOp::Sum)?;
    check("reduce-scatter", comm, &mine, |index| sum(0..world, rank as usize * len + index));

    let mut output = make(comm, len * n);
    comm.all_to_all(&all, &mut output)?;
    let due = |index: usize| value((index / len) as u32, rank as usize * len + index % len);
    check("all-to-all", comm, &output, due);

    let mut output = make(comm, len);
    comm.scan(&input, &mut output, RedOp::Sum)?;
    check("scan", comm, &output, |index| sum(0..rank + 1, index));

    // Round a ring.
    let (next, before) = ((rank + 1) % world, (rank + world - 1) % world);
    if next != rank {
        let mut theirs = make(comm, len);
        comm.group(|group| {
            group.send(&input[..], next).receive(&mut theirs[..], before);
        })?;
        check("a message", comm, &theirs, |index| value(before, index));
    }
    Ok(())
}
