//! Plans as work on streams, without any driver: the same bits as the CPU's executor in every order that is allowed, and
//! nothing left to chance.

use crate::support::machine::Machine;
use crate::support::{Call, Case, library, order, plan, seed};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_gpu::stream_plan::{Deed, Launch, Layout, StreamPlan};

/// One device, two, one for each rank, with and without access to each other's memory; on two machines, and on as many as
/// ranks.
fn layouts(ranks: u32) -> Vec<Layout> {
    let mut layouts = vec![Layout::one_device(ranks), Layout::over(ranks, 2), Layout::over(ranks, ranks)];
    let apart: Vec<Layout> =
        layouts[1..].iter().map(|layout| Layout { reaches: Vec::new(), ..layout.clone() }).collect();
    layouts.extend(apart);
    layouts.push(Layout { streams_per_rank_max: 1, ..Layout::one_device(ranks) });
    let two = (0..ranks).map(|rank| rank % 2).collect();
    layouts.push(Layout { machines: two, ..Layout::over(ranks, ranks) });
    let machines = (0..ranks).collect();
    layouts.push(Layout { machines, streams_per_rank_max: 2, ..Layout::over(ranks, ranks) });
    layouts
}

/// The stream plan of a call, judged.
fn stream_plan(call: &Call<'_>, layout: &Layout) -> StreamPlan {
    let stream_plan = StreamPlan::new(call.outlines(), layout).expect("it makes a stream plan");
    let name = &stream_plan.name;
    if let Some(race) = order::race(&stream_plan) {
        panic!("{name} on {layout:?}, {:?}: {race}", call.case);
    }
    if let Some(late) = order::runs_on(&stream_plan) {
        panic!("{name} on {layout:?}: {late} runs on after the call");
    }
    stream_plan
}

fn check(call: &Call<'_>, layout: &Layout, seeds: std::ops::Range<u64>) {
    let (stream_plan, due) = (stream_plan(call, layout), call.on_cpu());
    for seed in seeds {
        let found = Machine::new(&stream_plan, call).run(seed);
        assert!(found == due, "{} on {layout:?}, {:?}, seed {seed}", stream_plan.name, call.case);
    }
}

#[test]
fn every_schedule_gives_the_bits_of_the_cpu() {
    let seed = seed();
    for ranks in 2..=8 {
        for plan in library(ranks, ranks - 1) {
            for (at, layout) in (0u64..).zip(layouts(ranks)) {
                let in_place = (at + u64::from(ranks)) % 2 == 0;
                let case = Case { in_place, seed: seed + at, ..Case::new(RedOp::Sum, DType::F32) };
                check(&Call::new(&plan, &case), &layout, seed..seed + 2);
            }
        }
    }
}

#[test]
fn every_operator_on_every_type() {
    let seed = seed();
    let options = [
        Options::default(),
        Options { accumulate: Some(DType::F32), ..Options::default() },
        Options { wire: Some(DType::Bf16), ..Options::default() },
        Options { wire: Some(DType::F8E5M2), accumulate: Some(DType::F32), ..Options::default() },
    ];
    for (name, options) in
        ["ring", "recursive_doubling", "two_shot"].iter().flat_map(|n| options.iter().map(move |o| (n, o)))
    {
        let plan = plan("allreduce", name, 4, 0, options).expect("it applies");
        for case in
            RedOp::ALL.into_iter().flat_map(|op| DType::ALL.map(|dtype| Case::of(op, dtype))).flatten()
        {
            let case = Case { seed, in_place: seed.is_multiple_of(2), ..case };
            let layouts = layouts(4);
            for layout in [0, 1, 2, 3, 7].map(|at| &layouts[at]) {
                check(&Call::new(&plan, &case), layout, seed..seed + 1);
            }
        }
    }
}

#[test]
fn counts_that_leave_blocks_empty_or_ragged() {
    let seed = seed();
    for plan in library(5, 1) {
        for elements in [0, 1, 3, 1001] {
            let case = Case { elements, seed, ..Case::new(RedOp::Max, DType::I16) };
            check(&Call::new(&plan, &case), &Layout::over(5, 2), seed..seed + 1);
        }
    }
}

/// A wait that is left out is a race, unless what it orders does not touch.
#[test]
fn a_missing_wait_is_a_race() {
    let mut found = [0; 2];
    for (collective, name) in [
        ("allreduce", "ring"),
        ("allreduce", "recursive_doubling"),
        ("broadcast", "chain"),
        ("alltoall", "pairwise"),
    ] {
        let plan = plan(collective, name, 4, 0, &Options::default()).expect("it applies");
        let call = Call::new(&plan, &Case { in_place: true, ..Case::new(RedOp::Sum, DType::F32) });
        let stream_plan = stream_plan(&call, &Layout::over(4, 4));
        for wait in 0..stream_plan.waits() {
            let less = stream_plan.without_wait(wait).expect("there is such a wait");
            let caught = order::race(&less).or_else(|| order::runs_on(&less)).is_some();
            found[usize::from(caught)] += 1;
        }
        assert!(stream_plan.without_wait(stream_plan.waits()).is_none());
    }
    println!("{} waits are needed, {} order what does not touch", found[1], found[0]);
    // What order a plan's lanes give beyond what its data needs is kept, and harmless to leave out.
    assert!(found[1] > found[0], "{found:?}");
}

/// One lane on one device needs no more waits than it has messages, and none of those that streams give by themselves.
#[test]
fn waits_that_order_gives_are_left_out() {
    let plan = plan("allreduce", "ring", 4, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let layout = Layout { streams_per_rank_max: 1, ..Layout::one_device(4) };
    let waits = stream_plan(&call, &layout).waits();
    // Each of 2 (n - 1) messages from each rank: its receiver waits for it, its sender for being read.
    assert!(waits <= 2 * 6 * 4, "{waits} waits");
    // A rank alone waits for nobody.
    let plan = crate::support::plan("allreduce", "ring", 1, 0, &Options::default()).expect("it applies");
    assert_eq!(
        stream_plan(&Call::new(&plan, &Case::new(RedOp::Sum, DType::F32)), &Layout::one_device(1)).waits(),
        0
    );
}

/// Combinations in a row become one kernel of more operands.
#[test]
fn combinations_that_follow_each_other_are_one_kernel() {
    let plan = plan("allreduce", "one_shot", 8, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let stream_plan = stream_plan(&call, &Layout::one_device(8));
    let arity = |work: &coll_gpu::stream_plan::Work| match &work.deed {
        Deed::Launch(Launch::Combine { sources, .. }) => Some(sources.len()),
        _ => None,
    };
    let arities: Vec<usize> = stream_plan.work.iter().filter_map(arity).collect();
    assert!(arities.iter().any(|&arity| arity > 2), "{arities:?}");
    assert!(arities.iter().all(|arity| [2, 3, 4, 8].contains(arity)), "{arities:?}");
}

/// Two ranks that each send two messages before they receive any.
pub(crate) const EAGER: &str = r#"plan 2
name "swap.eager"
slots SLOTS
line 0 "swap.coll" 3

contract "swap"
ranks 2
buffer in input[2]
buffer out output[2]
given input all
classes 1
value 0 = copy r1.input[0]
value 1 = copy r1.input[1]
value 2 = copy r0.input[0]
value 3 = copy r0.input[1]
ensure r0 output[0] = 0
ensure r0 output[1] = 1
ensure r1 output[0] = 2
ensure r1 output[1] = 3

rank 0
  lane 0
    op0 send input.in[0:0..1] to r1 channel 0 ; step 0 line 0
    op1 send input.in[1:0..1] to r1 channel 0 ; step 0 line 0
    op2 recv output.out[0:0..1] from r1 channel 0 ; step 0 line 0
    op3 recv output.out[1:0..1] from r1 channel 0 ; step 0 line 0

rank 1
  lane 0
    op0 send input.in[0:0..1] to r0 channel 0 ; step 0 line 0
    op1 send input.in[1:0..1] to r0 channel 0 ; step 0 line 0
    op2 recv output.out[0:0..1] from r0 channel 0 ; step 0 line 0
    op3 recv output.out[1:0..1] from r0 channel 0 ; step 0 line 0
"#;

/// Plans of other tools count on message slots: they get them, and with fewer it is said what waits.
#[test]
fn plans_that_count_on_slots_have_them() {
    let seed = seed();
    let of =
        |slots: u32| coll_plan::from_text(&EAGER.replace("SLOTS", &slots.to_string())).expect("it is a plan");
    for (slots, wire) in [(2, None), (2, Some(DType::Bf16)), (5, None)] {
        let plan = coll_plan::Plan { wire, ..of(slots) };
        let call = Call::new(&plan, &Case { seed, elements: 62, ..Case::new(RedOp::Sum, DType::F32) });
        for layout in layouts(2) {
            check(&call, &layout, seed..seed + 3);
        }
        crate::support::devices::check(&call, 2, true, seed);
        crate::support::devices::check(&call, 2, false, seed);
    }
    for slots in [0, 1] {
        let plan = of(slots);
        let call = Call::new(&plan, &Case { elements: 62, ..Case::new(RedOp::Sum, DType::F32) });
        let refused =
            StreamPlan::new(call.outlines(), &Layout::one_device(2)).expect_err("it waits for itself");
        let text = refused.to_string();
        assert!(text.contains("swap.eager") && text.contains("rank 0, step 0"), "{text}");
    }
}
