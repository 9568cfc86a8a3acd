//! Plans on the stand-in's devices: the CPU's bits, and no access left to chance.

use crate::support::devices::{LIMIT, Memory, check, dealt, machine, prepare, run, stream_plan};
use crate::support::{Call, Case, Random, library, plan, seed};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_gpu::{DeviceBuffer, GpuError, Group, GroupError, Pointer, Stream, StreamHandle, probe};
use std::time::Duration;

/// Seeds of each call: more where code is fast.
const SEEDS: u64 = if cfg!(debug_assertions) { 30 } else { 200 };

#[test]
fn every_schedule_on_any_devices() {
    let seed = seed();
    let mut random = Random(seed);
    let mut calls = 0;
    for ranks in 2..=8 {
        for plan in library(ranks, ranks / 2) {
            for seed in seed..seed + SEEDS {
                let devices = [1, 2, ranks as usize][random.below(3)];
                let (reach, in_place) = (random.below(2) == 0, random.below(2) == 0);
                let elements = [61, 1, 300][random.below(3)];
                let case = Case { in_place, elements, seed, ..Case::any(&mut random) };
                check(&Call::new(&plan, &case), devices, reach, seed);
                calls += 1;
            }
        }
    }
    assert!(calls > 250 * SEEDS, "only {calls} calls were tried");
}

#[test]
fn a_graph_gives_what_launches_give() {
    let seed = seed();
    for (collective, name) in
        [("allreduce", "ring"), ("alltoall", "pairwise"), ("barrier", "dissemination"), ("scan", "chain")]
    {
        let plan = plan(collective, name, 4, 0, &Options::default()).expect("it applies");
        let call = Call::new(&plan, &Case::new(RedOp::Avg, DType::I32));
        let session = machine(2, true, seed);
        {
            let group = Group::new(&dealt(4, 2)).expect("the devices open");
            let mut memory = Memory::new(&group, &call);
            let mut captured = prepare(&group, &call).capture(&memory.pointers()).expect("it is captured");
            for _ in 0..3 {
                memory.refill(&call);
                captured.launch(&memory.handles()).expect("it is put on streams");
                captured.wait(LIMIT).expect("it ends");
                assert!(memory.outputs() == call.on_cpu(), "{}", plan.name);
            }
            assert!(session.stats().graph_launches >= 3);
        }
        session.verdict().unwrap_or_else(|verdict| panic!("{}: {verdict}", plan.name));
    }
}

/// Runs that follow each other without any wait of the host, on other streams each time, and on the same.
#[test]
fn runs_follow_each_other_whatever_their_streams() {
    let seed = seed();
    let plan = plan("allreduce", "recursive_doubling", 4, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case { in_place: true, ..Case::new(RedOp::Max, DType::I64) });
    let session = machine(2, false, seed);
    {
        let group = Group::new(&dealt(4, 2)).expect("the devices open");
        let (memory, other) = (Memory::new(&group, &call), Memory::new(&group, &call));
        let mut prepared = prepare(&group, &call);
        for handles in [memory.handles(), other.handles(), other.handles(), memory.handles()] {
            prepared.launch(&memory.pointers(), &handles).expect("it is put on streams");
        }
        prepared.wait(LIMIT).expect("it ends");
        // A maximum that is taken again stays what it is.
        assert!(memory.outputs() == call.on_cpu());
    }
    session.verdict().expect("nothing is left to chance");
}

/// The default stream is that of the rank's device, whatever context the calling thread has, if any.
#[test]
fn default_streams_are_those_of_the_ranks_devices() {
    let seed = seed();
    let plan = plan("allreduce", "ring", 3, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case { in_place: true, ..Case::new(RedOp::Max, DType::I64) });
    let session = machine(3, true, seed);
    {
        let group = Group::new(&[0, 1, 2]).expect("the devices open");
        let memory = Memory::new(&group, &call);
        let defaults = [StreamHandle::DEFAULT; 3];
        let mut prepared = prepare(&group, &call);
        for handles in [&memory.handles()[..], &defaults, &memory.handles(), &defaults] {
            prepared.launch(&memory.pointers(), handles).expect("it is put on streams");
        }
        prepared.wait(LIMIT).expect("it ends");
        assert!(memory.outputs() == call.on_cpu());
        let mut graph = prepare(&group, &call).capture(&memory.pointers()).expect("it is captured");
        for handles in [&defaults[..], &memory.handles(), &defaults] {
            graph.launch(handles).expect("it is put on streams");
        }
        graph.wait(LIMIT).expect("it ends");
        // A copy that blocks is on the default stream, and comes after what is there.
        assert!(memory.outputs() == call.on_cpu());
    }
    session.verdict().expect("nothing is left to chance");
}

/// What is on the caller's streams before comes before, and what is put there afterwards comes after: the host waits for
/// nothing in between.
#[test]
fn callers_streams_are_respected_on_both_sides() {
    let seed = seed();
    let plan = plan("allreduce", "ring", 3, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case { in_place: true, ..Case::new(RedOp::Sum, DType::I32) });
    // Twice the call: the second one begins with what the first one left.
    let mut twice = Call::new(&plan, &call.case);
    for (before, after) in twice.before.iter_mut().zip(call.on_cpu()) {
        before.iter_mut().zip(after).for_each(|(buffer, output)| buffer[1] = output);
    }
    let session = machine(3, true, seed);
    {
        let group = Group::new(&[0, 1, 2]).expect("the devices open");
        let memory = Memory::new(&group, &call);
        let (mut first, mut second) = (prepare(&group, &call), prepare(&group, &call));
        first.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
        second.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
        assert!(memory.outputs() == twice.on_cpu());
    }
    session.verdict().expect("nothing is left to chance");
}

#[test]
fn the_door_tells_what_there_is() {
    let session = machine(3, true, 1);
    let found = probe().expect("there is a stand-in");
    assert_eq!(found.devices.len(), 3);
    assert_eq!(found.reaches.len(), 6);
    assert!(found.devices.iter().all(|device| device.memory_bytes > 0 && !device.name.is_empty()));
    assert!(matches!(Group::new(&[0, 3]), Err(GpuError::InvalidDevice { device: 3, found: 3 })));
    drop(session);
    let _session = machine(2, false, 1);
    assert_eq!(probe().expect("there is a stand-in").reaches, []);
    let group = Group::new(&[0, 1]).expect("the devices open");
    assert!(matches!(group.require_peer_access(), Err(GpuError::PeerAccess { from: 0, to: 1, .. })));
}

/// What the driver refuses is told with rank, step and device, and the call stays refused.
#[test]
fn errors_say_where_they_were() {
    const OUT_OF_MEMORY: u32 = 2;
    const LAUNCH_FAILED: u32 = 719;
    let plan = plan("allreduce", "ring", 4, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let session = machine(2, true, 5);
    let group = Group::new(&dealt(4, 2)).expect("the devices open");
    let memory = Memory::new(&group, &call);
    let device = group.device(1).expect("there is a rank 1");
    session.fail_next("cuMemAlloc_v2", 0, OUT_OF_MEMORY).expect("it will");
    let refused = DeviceBuffer::new(device, 1000).expect_err("there is no memory");
    assert!(matches!(refused, GpuError::OutOfMemory { device: 1, wanted_bytes: 1000, .. }), "{refused}");
    assert!(matches!(DeviceBuffer::new(device, 1 << 40), Err(GpuError::OutOfMemory { .. })));

    let mut prepared = prepare(&group, &call);
    session.fail_next("cuLaunchKernel", 2, LAUNCH_FAILED).expect("it will");
    let failed = prepared.launch(&memory.pointers(), &memory.handles()).expect_err("a kernel fails");
    let GroupError::Enqueue { ref name, place: Some(ref place), .. } = failed else { panic!("{failed}") };
    assert_eq!((name.as_str(), place.peer.is_some()), ("allreduce.ring", true), "{failed}");
    assert!(failed.to_string().contains("cuLaunchKernel"), "{failed}");
    let again = prepared.launch(&memory.pointers(), &memory.handles()).expect_err("it stays so");
    assert_eq!(again, failed);
}

/// Buffers that are not as they were bound are refused before anything moves, and the next call goes on.
#[test]
fn buffers_are_looked_at() {
    let plan = plan("allreduce", "ring", 2, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let _session = machine(1, true, 5);
    let group = Group::new(&[0, 0]).expect("the device opens");
    let memory = Memory::new(&group, &call);
    let mut prepared = prepare(&group, &call);
    let right = memory.pointers();
    let mut wrong = right.clone();
    wrong[1][0].input = Pointer::NOWHERE;
    let refused = prepared.launch(&wrong, &memory.handles()).expect_err("nothing is there");
    assert!(matches!(refused, GroupError::Buffer { rank: 1, .. }), "{refused}");
    assert!(prepared.launch(&right[..1], &memory.handles()).is_err());
    assert!(prepared.launch(&right, &memory.handles()[..1]).is_err());
    prepared.launch(&right, &memory.handles()).expect("it is put on streams");
    prepared.wait(LIMIT).expect("it ends");
    assert!(memory.outputs() == call.on_cpu());
    let three = crate::support::plan("allreduce", "ring", 3, 0, &Options::default()).expect("it applies");
    let call = Call::new(&three, &Case::new(RedOp::Sum, DType::F32));
    assert!(matches!(stream_plan(&group, &call), Err(GroupError::Ranks { found: 3, ranks: 2, .. })));
}

/// A wait that is not over in time says which rank is not done, and the run goes on.
#[test]
fn a_deadline_names_who_is_late() {
    let plan = plan("allreduce", "ring", 3, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let _session = machine(1, true, 5);
    let group = Group::new(&[0; 3]).expect("the device opens");
    let memory = Memory::new(&group, &call);
    let mut prepared = prepare(&group, &call);
    prepared.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
    let late = prepared.wait(Duration::ZERO).expect_err("nothing has run");
    assert!(matches!(late, GroupError::TimedOut { rank: 0, operation: 1, .. }), "{late}");
    prepared.wait(LIMIT).expect("it ends");
    assert!(memory.outputs() == call.on_cpu());
}

/// In steady state nothing is made: no memory, no stream, no event.
#[test]
fn running_again_makes_nothing() {
    let plan = plan("allreduce", "two_shot", 4, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let session = machine(2, true, 5);
    let group = Group::new(&dealt(4, 2)).expect("the devices open");
    let memory = Memory::new(&group, &call);
    let mut prepared = prepare(&group, &call);
    let counted = || {
        let stats = session.stats();
        (stats.allocations, stats.allocated_bytes, stats.streams, stats.events)
    };
    let before = counted();
    for _ in 0..3 {
        prepared.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
        prepared.wait(LIMIT).expect("it ends");
        assert_eq!(counted(), before);
    }
    drop(prepared);
    let stream = Stream::new(group.device(0).expect("there is a rank 0")).expect("a stream");
    assert!(session.stats().streams < before.2 + 1);
    drop(stream);
    assert_eq!(run(&group, &call), call.on_cpu());
}
