//! Graphs, and the callers' streams before and after.

use crate::support::memory::{LIMIT, Memory, prepare};
use crate::support::{Call, Case, devices, group, is_stand_in, plan, seed, spreads};
use coll::Options;
use coll_base::{DType, RedOp};

/// A graph is captured once; its runs give what the CPU gives, also of other inputs than those it was captured with.
#[test]
fn a_graph_is_run_again_on_other_inputs() {
    let Some(found) = devices() else { return };
    let seed = seed();
    let schedules =
        [("allreduce", "ring"), ("allreduce", "two_shot"), ("alltoall", "pairwise"), ("scan", "chain")];
    for (collective, name) in schedules {
        let plan = plan(collective, name, 4, 0, &Options::default()).expect("it applies");
        let calls = [seed, seed + 1, seed + 2].map(|seed| {
            Call::new(&plan, &Case { seed, elements: 5000, ..Case::new(RedOp::Sum, DType::I32) })
        });
        for devices in spreads(&found) {
            let group = group(4, devices);
            let mut memory = Memory::new(&group, &calls[0]);
            let mut graph = prepare(&group, &calls[0]).capture(&memory.pointers()).expect("it is captured");
            for call in &calls {
                memory.refill(call);
                graph.launch(&memory.handles()).expect("it is put on streams");
                graph.wait(LIMIT).expect("it ends");
                assert!(memory.outputs() == call.on_cpu(), "{collective}.{name} on {devices} devices");
            }
        }
    }
}

/// Two calls of their own, one after the other on the callers' streams and in place, without any wait of the host: the second
/// begins with what the first left, and what is read after both streams are done is what the second left. Nothing but the
/// streams orders them.
#[test]
fn callers_streams_are_respected_on_both_sides() {
    let Some(found) = devices() else { return };
    let seed = seed();
    let plan = plan("allreduce", "ring", 4, 0, &Options::default()).expect("it applies");
    // Long enough that calls would overlap if they could.
    let elements = if is_stand_in() { 5000 } else { 1 << 20 };
    let case = Case { in_place: true, elements, seed, ..Case::new(RedOp::Sum, DType::I32) };
    let call = Call::new(&plan, &case);
    let mut twice = Call::new(&plan, &case);
    for (before, after) in twice.before.iter_mut().zip(call.on_cpu()) {
        before.iter_mut().zip(after).for_each(|(buffer, output)| buffer[1] = output);
    }
    let due = twice.on_cpu();
    for devices in spreads(&found) {
        let group = group(4, devices);
        let mut memory = Memory::new(&group, &call);
        let (mut first, mut second) = (prepare(&group, &call), prepare(&group, &call));
        for round in 0..5 {
            memory.refill(&call);
            first.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
            second.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
            assert!(memory.outputs() == due, "round {round} on {devices} devices");
        }
    }
}
