//! What messages between two ranks take, pair after pair.
//!
//! Latency is half of a round trip of eight bytes, the least of some batches. What a message costs its ranks, however long it
//! travels, is what each of many takes that are sent one after the other without waiting (as in LogP: Culler et al. 1993); the
//! rest of the latency is the link's. Bandwidth is that of each direction by itself: of the fastest of some trips of a long message
//! one way and a short one back, less what two short ones take. A latency of each direction no clock of two ranks can tell.

use super::shape::is_lopsided;
use super::together::{self, Together};
use coll::{CommError, Communicator};
use coll_base::{DType, RedOp};
use coll_kernel::Reducer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

/// Batches, of which the fastest counts.
const BATCHES: usize = 12;
/// Round trips of a batch.
const TRIPS: usize = 16;
/// Messages that are sent one after the other.
const BURST: usize = 64;
/// Trips of long messages each way, and how often they are made where one way seems to be slower.
const LONG_TRIPS: usize = 6;
const ROUNDS: usize = 4;
/// Bytes of a copy and a reduction.
const WORK_BYTES: usize = 4 << 20;
/// A host's name is cut to this.
const NAME_BYTES: usize = 64;

/// What was measured of one pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Pair {
    /// Half of a round trip of eight bytes.
    pub(super) latency_us: f64,
    /// A message of many.
    pub(super) message_us: f64,
    /// A byte of a long message, in nanoseconds: from the first to the second, and back.
    pub(super) byte_ns: [f64; 2],
}

/// What was measured of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// The machines, as a topology names them, in the order of their first ranks.
    pub(super) names: Vec<String>,
    /// Each rank's machine.
    pub(super) machines: Vec<usize>,
    /// Pairs `(0, 1)`, `(0, 2)`, …, `(1, 2)`, ….
    pub(super) pairs: Vec<Pair>,
    /// What pairs that send at once get.
    pub(super) together: Vec<Together>,
    /// Of rank 0.
    pub(super) copy_ns: f64,
    /// Of rank 0: sums of `f32`.
    pub(super) reduce_ns: f64,
}

/// Measures every pair; rank 0 has the answer.
pub(super) fn measure(
    comm: &mut Communicator,
    bytes: usize,
    ranks_per_host: Option<u32>,
) -> Result<Option<Measured>, CommError> {
    let (rank, world) = (comm.rank(), comm.world());
    let (names, machines) = machines(comm, ranks_per_host)?;
    let mut mine = Vec::new();
    let mut own = BTreeMap::new();
    for a in 0..world {
        for b in a + 1..world {
            comm.barrier()?;
            let mut pair = Pair::default();
            if rank == a || rank == b {
                pair = measure_pair(comm, rank == a, a + b - rank, bytes)?;
            }
            // The first of two keeps what it measured.
            let kept = if rank == a { pair } else { Pair::default() };
            mine.extend([kept.latency_us, kept.message_us, kept.byte_ns[0], kept.byte_ns[1]]);
            own.insert((a, b), kept.latency_us);
        }
    }
    let together = together::measure(comm, &machines, bytes, &own)?;
    comm.barrier()?;
    let (copy_ns, reduce_ns) = if rank == 0 { work() } else { (0.0, 0.0) };
    let mut all = vec![0.0; mine.len() * world as usize];
    comm.all_gather(&mine, &mut all)?;
    if rank != 0 {
        return Ok(None);
    }
    let mut pairs = Vec::new();
    let mut number = 0;
    for a in 0..world as usize {
        for _ in a + 1..world as usize {
            let at = a * mine.len() + 4 * number;
            let byte_ns = [all[at + 2], all[at + 3]];
            pairs.push(Pair { latency_us: all[at], message_us: all[at + 1], byte_ns });
            number += 1;
        }
    }
    Ok(Some(Measured { names, machines, pairs, together, copy_ns, reduce_ns }))
}

/// The machines' names, and each rank's machine. Ranks that are to be as on several machines have their hosts numbered.
fn machines(
    comm: &mut Communicator,
    ranks_per_host: Option<u32>,
) -> Result<(Vec<String>, Vec<usize>), CommError> {
    let mut name = host();
    if let Some(ranks) = ranks_per_host {
        name += &format!("-{}", comm.rank() / ranks.max(1));
    }
    let mut name = name.into_bytes();
    name.resize(NAME_BYTES, 0);
    let mut all = vec![0u8; NAME_BYTES * comm.world() as usize];
    comm.all_gather(&name, &mut all)?;
    let mut names: Vec<String> = Vec::new();
    let mut machines = Vec::new();
    for bytes in all.chunks(NAME_BYTES) {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let name = machine_name(&String::from_utf8_lossy(&bytes[..end]));
        let known = names.iter().position(|known| *known == name);
        machines.push(known.unwrap_or(names.len()));
        if known.is_none() {
            names.push(name);
        }
    }
    Ok((names, machines))
}

/// A host's name as a machine's.
fn machine_name(host: &str) -> String {
    host.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

fn measure_pair(comm: &mut Communicator, is_first: bool, peer: u32, bytes: usize) -> Result<Pair, CommError> {
    let (mut short, mut other) = ([0u8; 8], [0u8; 8]);
    let mut latency_us = f64::INFINITY;
    for batch in 0..BATCHES {
        let us = trips(comm, is_first, peer, [&mut short, &mut other], TRIPS)?;
        // The first batch makes connections.
        if batch > 0 {
            latency_us = latency_us.min(us / 2.0);
        }
    }
    let mut message_us = f64::INFINITY;
    for _ in 0..BATCHES / 2 {
        let start = Instant::now();
        for _ in 0..BURST {
            if is_first { comm.send(&short, peer)? } else { comm.receive(&mut short, peer)? }
        }
        if is_first {
            comm.receive(&mut short, peer)?
        } else {
            comm.send(&short, peer)?
        }
        let us = start.elapsed().as_secs_f64() * 1e6 - latency_us;
        message_us = message_us.min(us / BURST as f64);
    }
    let mut long = vec![1u8; bytes];
    let mut least_us = [f64::INFINITY; 2];
    for round in 0..ROUNDS {
        for (back, least_us) in least_us.iter_mut().enumerate() {
            for trip in 0..LONG_TRIPS {
                let us = one_way(comm, is_first, peer, (&mut long, &mut short), back == 1)?;
                if trip > 0 {
                    *least_us = least_us.min(us);
                }
            }
        }
        // What was disturbed looks as if the directions were unlike: the first rank has it looked at again.
        let mut again = [u8::from(round + 1 < ROUNDS && is_lopsided(least_us))];
        if is_first {
            comm.send(&again, peer)?
        } else {
            comm.receive(&mut again, peer)?
        }
        if again[0] == 0 {
            break;
        }
    }
    let byte_ns = least_us.map(|us| without_latency(us, latency_us) * 1e3 / bytes as f64);
    // More than half of the way is no rank's.
    Ok(Pair { latency_us, message_us: message_us.clamp(0.0, latency_us / 2.0), byte_ns })
}

/// What the bytes of a long message take of a trip with it one way and a short one back: half of it at least, for where latencies are
/// more the message is too short, or the machine too busy, to tell them from bytes.
pub(super) fn without_latency(trip_us: f64, latency_us: f64) -> f64 {
    (trip_us - 2.0 * latency_us).max(trip_us / 2.0)
}

/// Microseconds of a trip with a long message from the first to the second and a short one back, or the other way round.
pub(super) fn one_way(
    comm: &mut Communicator,
    is_first: bool,
    peer: u32,
    (long, short): (&mut [u8], &mut [u8]),
    back: bool,
) -> Result<f64, CommError> {
    let data = if back { [short, long] } else { [long, short] };
    trips(comm, is_first, peer, data, 1)
}

/// Microseconds of a round trip, in the mean of some: the first message goes to the second rank, the other one comes back.
fn trips(
    comm: &mut Communicator,
    is_first: bool,
    peer: u32,
    [there, back]: [&mut [u8]; 2],
    count: usize,
) -> Result<f64, CommError> {
    let start = Instant::now();
    for _ in 0..count {
        if is_first {
            comm.send(there, peer)?;
            comm.receive(back, peer)?;
        } else {
            comm.receive(there, peer)?;
            comm.send(back, peer)?;
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / count as f64)
}

/// Nanoseconds a byte of a copy and of a sum.
fn work() -> (f64, f64) {
    let (source, mut target) = (vec![0u8; WORK_BYTES], vec![0u8; WORK_BYTES]);
    let mut least = |work: &mut dyn FnMut(&mut [u8], &[u8])| {
        let mut least = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            work(&mut target, &source);
            least = least.min(start.elapsed().as_secs_f64());
        }
        least * 1e9 / WORK_BYTES as f64
    };
    let copy_ns = least(&mut |target, source| target.copy_from_slice(source));
    let reduce_ns = match Reducer::builtin(RedOp::Sum, DType::F32) {
        Ok(reducer) => least(&mut |target, source| reducer.combine_into(target, None, source, false)),
        Err(_) => copy_ns,
    };
    (copy_ns, reduce_ns)
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().take(NAME_BYTES / 4).collect();
    if name.is_empty() { "host".to_string() } else { name }
}
