//! Ranks of several machines: messages through pinned memory and a network, with the CPU's bits; and what is left out of it is
//! caught.

use crate::support::devices::LIMIT;
use crate::support::network::Mesh;
use crate::support::order::{race, runs_on};
use crate::support::world::{Own, Setup, check, prepare, stream_plan};
use crate::support::{Call, Case, Random, library, plan, seed};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_exec::Link;
use coll_gpu::{OverTcp, Shared};
use coll_tcp::{JoinOptions, Rendezvous, join};
use cuda_stand_in::{Config, control};
use std::sync::Arc;

/// Seeds of each call: more where code is fast.
const SEEDS: u64 = if cfg!(debug_assertions) { 10 } else { 50 };

#[test]
fn every_schedule_between_machines() {
    let seed = seed();
    let mut random = Random(seed);
    let mut calls = 0;
    for ranks in 2..=5u32 {
        for plan in library(ranks, ranks / 2) {
            for seed in seed..seed + SEEDS {
                let machines: Vec<u32> = match random.below(3) {
                    0 => (0..ranks).map(|rank| rank % 2).collect(),
                    _ => (0..ranks).collect(),
                };
                let threads_apart = machines == (0..ranks).collect::<Vec<u32>>();
                let elements = [61, 1, 0, 300][random.below(4)];
                let slice_bytes = [16, 1, 1000][random.below(3)];
                let case = Case { in_place: random.below(2) == 0, elements, seed, ..Case::any(&mut random) };
                check(&Call::new(&plan, &case), &Setup { machines, slice_bytes, seed, threads_apart }, 1);
                calls += 1;
            }
        }
    }
    assert!(calls > 100 * SEEDS, "only {calls} calls were tried");
}

/// What travels as another type, narrow floats accumulated in `f32`, operators that change what is put in, and types of all
/// sizes; each twice, so that a run meets the words of the one before.
#[test]
fn operators_and_types_between_machines() {
    let seed = seed();
    let options = [
        Options::default(),
        Options { accumulate: Some(DType::F32), ..Options::default() },
        Options { wire: Some(DType::F16), ..Options::default() },
    ];
    let ops = [RedOp::Sum, RedOp::Avg, RedOp::Max, RedOp::PremulSum];
    for (at, options) in options.iter().enumerate() {
        let plan = plan("allreduce", "ring", 3, 0, options).expect("it applies");
        let pairs = ops.into_iter().flat_map(|op| DType::ALL.map(|dtype| Case::of(op, dtype)));
        for (number, case) in pairs.flatten().enumerate() {
            let case = Case { seed, in_place: number % 2 == 0, ..case };
            let machines = if (number + at) % 3 == 0 { vec![0, 0, 1] } else { vec![0, 1, 2] };
            let setup = Setup { machines, slice_bytes: 24, seed, threads_apart: false };
            check(&Call::new(&plan, &case), &setup, 2);
        }
    }
}

/// Two ranks that each send two messages before they receive any.
#[test]
fn plans_that_count_on_slots_have_them_between_machines() {
    let seed = seed();
    for (slots, wire) in [(2, None), (2, Some(DType::Bf16)), (5, None)] {
        let text = crate::stream_plan::EAGER.replace("SLOTS", &slots.to_string());
        let plan = coll_plan::Plan { wire, ..coll_plan::from_text(&text).expect("it is a plan") };
        let call = Call::new(&plan, &Case { seed, elements: 62, ..Case::new(RedOp::Sum, DType::F32) });
        check(&call, &Setup::apart(2, seed), 3);
    }
}

/// Runs that follow each other without any wait of the host, of two calls in turn.
#[test]
fn runs_follow_each_other() {
    let seed = seed();
    let plan = plan("allreduce", "recursive_doubling", 4, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case { in_place: true, ..Case::new(RedOp::Max, DType::I64) });
    for machines in [vec![0, 1, 2, 3], vec![0, 0, 1, 1]] {
        let setup = Setup { machines, slice_bytes: 32, seed, threads_apart: false };
        let session = setup.session();
        let due = call.on_cpu();
        setup.run(&session, &Arc::new(Mesh::default()), |mut shared, rank| {
            let own = Own::new(&shared, &call, rank);
            let mut first = prepare(&mut shared, &call, &own).expect("it is made ready");
            let mut second = prepare(&mut shared, &call, &own).expect("it is made ready");
            for _ in 0..3 {
                first.launch(own.stream.handle()).expect("it is put on a stream");
                second.launch(own.stream.handle()).expect("it is put on a stream");
            }
            second.wait(LIMIT).expect("it ends");
            // A maximum that is taken again stays what it is.
            assert!(own.outputs() == due[rank as usize]);
            shared.close(first).expect("all come");
            shared.close(second).expect("all come");
        });
        session.verdict().expect("nothing is left to chance");
    }
}

/// In steady state nothing is made: no memory, no stream, no event.
#[test]
fn running_again_makes_nothing() {
    let plan = plan("allreduce", "ring", 2, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case { in_place: true, ..Case::new(RedOp::Max, DType::F32) });
    let setup = Setup::apart(2, 5);
    let session = setup.session();
    let counted = || {
        let stats = session.stats();
        (stats.allocations, stats.allocated_bytes, stats.streams, stats.events)
    };
    setup.run(&session, &Arc::new(Mesh::default()), |mut shared, rank| {
        let own = Own::new(&shared, &call, rank);
        let mut ready = prepare(&mut shared, &call, &own).expect("it is made ready");
        shared.meet().expect("all come");
        let before = counted();
        for _ in 0..3 {
            ready.launch(own.stream.handle()).expect("it is put on a stream");
            ready.wait(LIMIT).expect("it ends");
            shared.meet().expect("all come");
            assert_eq!(counted(), before);
            shared.meet().expect("all come");
        }
    });
    session.verdict().expect("nothing is left to chance");
}

/// A wait for an event or a parcel that is left out, where the judge of stream plans says that it matters: the stand-in reports
/// a race, or the bits are others.
#[test]
fn every_missing_wait_is_caught() {
    let seed = seed();
    let (mut caught, mut missed, mut harmless) = (0, Vec::new(), 0);
    for (collective, name, in_place) in
        [("allreduce", "ring", true), ("allgather", "bruck", false), ("broadcast", "chain", true)]
    {
        let plan = plan(collective, name, 3, 0, &Options::default()).expect("it applies");
        let call = Call::new(&plan, &Case { in_place, seed, ..Case::new(RedOp::Avg, DType::I32) });
        let setup = Setup::apart(3, seed);
        let whole = {
            let session = setup.session();
            let plans =
                setup.run(&session, &Arc::new(Mesh::default()), |shared, _| stream_plan(&shared, &call));
            plans.into_iter().next().expect("there is a rank 0")
        };
        for wait in 0..whole.waits() {
            let less = whole.without_wait(wait).expect("there is such a wait");
            let matters = race(&less).is_some();
            // The caller's stream joins all others of its rank in the end, whatever the plan has it wait for.
            let is_made_up_for = !matters && runs_on(&less).is_some();
            let tries = if matters { 60 } else { 2 };
            let is_caught =
                (seed..seed + tries).any(|seed| differs(&call, &Setup { seed, ..setup.clone() }, &less));
            let what = || format!("{} without wait {wait} of {}", plan.name, whole.waits());
            match (matters, is_caught) {
                (false, true) if is_made_up_for => caught += 1,
                (true, true) => caught += 1,
                (true, false) => missed.push(what()),
                (false, true) => panic!("{}: the judge finds no race", what()),
                (false, false) => harmless += 1,
            }
        }
    }
    println!("{caught} waits left out are caught, {harmless} order what does not touch; missed: {missed:?}");
    // What only an order shows in which one stream lags behind all other machines is seldom met.
    assert!(caught > 50 && missed.len() * 10 <= caught, "{missed:?}");
}

/// Whether a changed stream plan gives other bits than the CPU, or a race.
fn differs(call: &Call<'_>, setup: &Setup, changed: &coll_gpu::StreamPlan) -> bool {
    let session = setup.session();
    let due = call.on_cpu();
    let right = setup.run(&session, &Arc::new(Mesh::default()), |mut shared, rank| {
        let mut own = Own::new(&shared, call, rank);
        let ready = shared.prepare_stream_plan(changed.clone(), &own.pointers);
        let mut ready = ready.expect("it is made ready");
        // The second run writes where the first may still be read, and gives what the first gave.
        for _ in 0..2 {
            ready.launch(own.stream.handle()).expect("it is put on a stream");
        }
        ready.wait(LIMIT).expect("it ends");
        own.stream.synchronize().expect("it ends");
        let found = own.outputs();
        own.spoil();
        shared.close(ready).expect("all come");
        found == due[rank as usize]
    });
    session.race_count() > 0 || right.contains(&false)
}

/// A copy that is taken for done before it is: its slot is sent, or filled again, too early. The driver is made to say so once,
/// at each of its answers in turn.
#[test]
fn every_slot_that_is_taken_too_early_is_caught() {
    let seed = seed();
    let plan = plan("allreduce", "ring", 2, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case { seed, in_place: true, ..Case::new(RedOp::Sum, DType::F32) });
    let due = call.on_cpu();
    let mut found = [0; 2];
    for answer in 0..60 {
        let setup = Setup::apart(2, seed + answer);
        let session = setup.session();
        let mesh = Arc::new(Mesh::default());
        session.fail_next("cuEventQuery", answer, 0).expect("it will");
        let right = setup.run(&session, &mesh, |mut shared, rank| {
            let own = Own::new(&shared, &call, rank);
            let mut ready = prepare(&mut shared, &call, &own).expect("it is made ready");
            ready.launch(own.stream.handle()).expect("it is put on a stream");
            let ended = ready.wait(LIMIT);
            let found = own.outputs();
            let _ = shared.meet();
            drop(ready);
            ended.is_ok() && found == due[rank as usize]
        });
        let is_caught = session.race_count() > 0 || right.contains(&false);
        found[usize::from(is_caught)] += 1;
    }
    println!("{} answers too early are caught, {} came true before it mattered", found[1], found[0]);
    assert!(found[1] > 10, "{found:?}");
}

/// The transport that ships, on loopback: ranks join, connect, run and leave.
#[test]
fn over_tcp() {
    let seed = seed();
    const RANKS: u32 = 3;
    for (collective, name) in [("allreduce", "ring"), ("alltoall", "pairwise"), ("barrier", "dissemination")]
    {
        let plan = plan(collective, name, RANKS, 0, &Options::default()).expect("it applies");
        let case = Case { elements: 5000, seed, ..Case::new(RedOp::Sum, DType::F32) };
        let call = Call::new(&plan, &case);
        let due = call.on_cpu();
        let patience_ms = LIMIT.as_millis() as u64;
        let config = Config { devices: RANKS as usize, seed, patience_ms, ..Config::default() };
        let session = control::session(&config).expect("the stand-in opens");
        let server = Rendezvous::bind("127.0.0.1:0", "sesame").expect("a port");
        std::thread::scope(|scope| {
            for rank in 0..RANKS {
                let (call, due, address) = (&call, &due, server.address().to_string());
                scope.spawn(move || {
                    let mut options = JoinOptions::new(rank, RANKS, address);
                    options.token = "sesame".into();
                    options.time_limit = LIMIT;
                    let tcp = OverTcp::new(join(options).expect("it joins"));
                    let peers = (0..RANKS).filter(|&peer| peer != rank);
                    let links: Vec<Link> = peers.map(|peer| Link { peer, channel: 0 }).collect();
                    tcp.connect(&links).expect("all are there");
                    let shared = Shared::join(rank, RANKS, rank, Box::new(tcp.clone()));
                    let machines = (0..RANKS).collect();
                    let shared = shared.expect("the device opens").across(machines, Box::new(tcp.clone()));
                    let mut shared = shared.expect("there are threads").slice_bytes(1000);
                    let mut own = Own::new(&shared, call, rank);
                    let mut ready = prepare(&mut shared, call, &own).expect("it is made ready");
                    for _ in 0..3 {
                        own.refill(call, rank);
                        ready.launch(own.stream.handle()).expect("it is put on a stream");
                        ready.wait(LIMIT).unwrap_or_else(|error| panic!("{error}"));
                        assert!(own.outputs() == due[rank as usize], "{name} on rank {rank}");
                        shared.meet().expect("all come");
                    }
                    shared.close(ready).expect("all come");
                    drop(shared);
                    assert!(tcp.shutdown(), "somebody still holds the transport");
                });
            }
        });
        session.verdict().expect("nothing is left to chance");
    }
}
