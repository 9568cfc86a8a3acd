//! Ranks as threads, and inputs that tell rank and index.

use coll::{Builder, CommError, Communicator, Via};
use std::thread;
use std::time::{Duration, Instant};

/// No call may take longer in any test.
pub(crate) const LIMIT: Duration = Duration::from_secs(5);

/// Runs `each` on every rank of a world and gives what they return, by rank.
#[allow(dead_code, reason = "not every suite looks at what comes back")]
pub(crate) fn world<R: Send + 'static>(
    ranks: u32,
    each: impl Fn(&mut Communicator) -> R + Clone + Send + 'static,
) -> Vec<R> {
    world_by(Via::Fastest, ranks, each)
}

/// Over what is named.
pub(crate) fn world_by<R: Send + 'static>(
    via: Via,
    ranks: u32,
    each: impl Fn(&mut Communicator) -> R + Clone + Send + 'static,
) -> Vec<R> {
    world_of(Communicator::builder().via(via), ranks, each)
}

/// Of communicators that are built so.
pub(crate) fn world_of<R: Send + 'static>(
    builder: Builder,
    ranks: u32,
    each: impl Fn(&mut Communicator) -> R + Clone + Send + 'static,
) -> Vec<R> {
    let threads: Vec<_> = builder
        .local(ranks)
        .unwrap_or_else(|error| panic!("{error}"))
        .into_iter()
        .map(|mut comm| {
            let each = each.clone();
            thread::spawn(move || {
                comm.set_time_limit(LIMIT);
                let result = each(&mut comm);
                (comm, result)
            })
        })
        .collect();
    // Nobody leaves before all are done, so that what one rank finds is not another's leaving.
    let done: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("no rank panics")).collect();
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs `each`, which must not fail, by every way that ranks reach each other.
#[allow(dead_code, reason = "not every suite has one world for every way, or calls that all go well")]
pub(crate) fn well(
    ranks: u32,
    each: impl Fn(&mut Communicator) -> Result<(), CommError> + Clone + Send + 'static,
) {
    for via in [Via::Fastest, Via::Tcp] {
        for result in world_by(via, ranks, each.clone()) {
            result.unwrap_or_else(|error| panic!("{via:?}: {error}"));
        }
    }
}

/// Runs `each`, which must fail on every rank, and in time. Gives the messages.
#[allow(dead_code, reason = "not every suite has failures")]
pub(crate) fn badly(
    ranks: u32,
    each: impl Fn(&mut Communicator) -> Result<(), CommError> + Clone + Send + 'static,
) -> Vec<String> {
    badly_by(Via::Fastest, ranks, each)
}

/// Over what is named.
#[allow(dead_code, reason = "not every suite has failures")]
pub(crate) fn badly_by(
    via: Via,
    ranks: u32,
    each: impl Fn(&mut Communicator) -> Result<(), CommError> + Clone + Send + 'static,
) -> Vec<String> {
    let began = Instant::now();
    let results = world_by(via, ranks, each);
    assert!(began.elapsed() < LIMIT + Duration::from_secs(5), "it took {:?}", began.elapsed());
    let message = |(rank, result): (usize, Result<(), CommError>)| {
        result.expect_err(&format!("rank {rank} finds nothing wrong")).to_string()
    };
    results.into_iter().enumerate().map(message).collect()
}

/// A value that tells rank and index, small enough to be exact in every element type.
#[allow(dead_code, reason = "not every suite has such inputs")]
pub(crate) fn value(rank: u32, index: usize) -> u8 {
    (rank as usize * 7 + index * 3) as u8 % 5 + 1
}
