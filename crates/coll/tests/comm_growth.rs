//! Memory does not grow with the number of different lengths. Known fault B086. Alone in its process, whose memory it looks at.

use coll::{CommError, Communicator, RedOp};
use std::thread;

/// The known fault's numbers.
const CALLS: usize = 20_000;
const LENGTHS: usize = 100_000;
const GROWTH_MAX_BYTES: u64 = 10 << 20;

/// Calls before memory is first looked at: bound calls are kept up to a limit, which is reached by then.
const WARM_UP: usize = 4_000;

/// Memory of this process that is in use, in bytes.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("the system tells");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("it is there");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
    kib << 10
}

fn calls(
    comm: &mut Communicator,
    buffers: [&mut [u8]; 2],
    numbers: std::ops::Range<usize>,
) -> Result<(), CommError> {
    let [input, output] = buffers;
    for number in numbers {
        // The same on every rank, and any of the lengths.
        let hash = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let len = (hash >> 33) as usize % LENGTHS + 1;
        comm.all_reduce(&input[..len], &mut output[..len], RedOp::Sum)?;
        assert_eq!((output[0], output[len - 1]), (2, 2), "call {number} of {len} elements");
    }
    Ok(())
}

#[test]
fn b086_memory_does_not_grow_with_lengths() {
    let ranks = Communicator::local(2).unwrap().into_iter().map(|mut comm| {
        thread::spawn(move || {
            let (mut input, mut output) = (vec![1u8; LENGTHS], vec![0u8; LENGTHS]);
            calls(&mut comm, [&mut input, &mut output], 0..WARM_UP)?;
            comm.barrier()?;
            let before = resident_bytes();
            calls(&mut comm, [&mut input, &mut output], WARM_UP..CALLS)?;
            comm.barrier()?;
            Ok::<_, CommError>(resident_bytes().saturating_sub(before))
        })
    });
    for rank in ranks.collect::<Vec<_>>() {
        let growth = rank.join().unwrap().unwrap_or_else(|error| panic!("{error}"));
        assert!(growth < GROWTH_MAX_BYTES, "{growth} B more after {CALLS} calls than after {WARM_UP}");
    }
}
