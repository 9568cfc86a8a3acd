//! Every schedule ends, under any assumption, not before its bound, the same each time; and what cannot end says so.

use crate::library::{all, compile};
use crate::network::{Constants, machines, ports};
use coll_sim::{Options, SimError, predict};

const COSTS: Constants =
    Constants { message_us: 0.5, reduce_ns: 0.125, copy_ns: 0.0625, bytes_per_us: 1000.0, latency_us: 2.0 };

/// B115: with a report of what is blocked if one did not.
#[test]
fn b115_every_schedule_ends_on_up_to_33_ranks_and_on_65() {
    let mut runs = 0;
    for name in all() {
        for ranks in (2..=33).chain([65]) {
            let Some(plan) = compile(&name, ranks, &[]) else { continue };
            let options = Options { bytes: u64::from(ranks) * 960, ..Options::default() };
            let found = predict(&[&plan], &ports(ranks, COSTS), &options)
                .unwrap_or_else(|error| panic!("{name} on {ranks}: {error}"));
            let (bound, time) = (found.bound.us, found.time_us);
            assert!(
                bound > 0.0 && bound <= time * (1.0 + 1e-9),
                "{name} on {ranks}: bound {bound}, time {time}"
            );
            let last = found.path.last().expect("something bounds the time");
            assert_eq!(last.end_us, time, "{name} on {ranks}");
            runs += 1;
        }
    }
    assert!(runs > 1000, "{runs}");
}

/// Streams, slots, machines: whatever is assumed, the same operations end, each after what it waits for (B118).
#[test]
fn b118_nothing_begins_before_what_it_waits_for_is_over() {
    for name in all() {
        for ranks in [2, 5, 8, 12] {
            let Some(plan) = compile(&name, ranks, &[]) else { continue };
            let network = machines(ranks, COSTS);
            for (slots, stream) in [(0, false), (0, true), (1, false), (2, true), (100, false)] {
                let bytes = u64::from(ranks) * 96_000;
                let options =
                    Options { bytes, slots: Some(slots), stream, timeline: true, ..Options::default() };
                let found = predict(&[&plan], &network, &options)
                    .unwrap_or_else(|error| panic!("{name} on {ranks}, {slots} slots: {error}"));
                for (part, times) in plan.ranks.iter().zip(&found.timeline) {
                    assert!(times.iter().all(|(begin, end)| begin <= end && *end <= found.time_us));
                    for lane in &part.lanes {
                        let lane = &times[lane.start as usize..lane.end as usize];
                        assert!(
                            lane.windows(2).all(|two| two[1].0 >= two[0].1),
                            "{name}: a lane is in order"
                        );
                    }
                    for (op, &(begin, _)) in part.ops.iter().zip(times) {
                        for wait in part.waits(op).iter().filter(|wait| !(stream && wait.along)) {
                            assert!(begin >= times[wait.op as usize].1, "{name}: a wait holds");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bits() {
    let plan = compile("allreduce.double_tree", 13, &[]).expect("it serves 13 ranks");
    let network = machines(13, COSTS);
    let options = Options { bytes: 1_000_003, stream: true, timeline: true, ..Options::default() };
    let first = predict(&[&plan], &network, &options).expect("it runs");
    assert_eq!(first, predict(&[&plan], &network, &options).expect("it runs"));
}

/// Two ranks that each send twice before they receive: it takes a slot.
const EXCHANGE: &str = r#"plan 2
name "alltoall.exchange"
channels 1
slots 1
cuts equal 1
line 0 "exchange.coll" 3

contract "alltoall"
ranks 2
buffer in input[2]
buffer out output[2]
given input all
given output none
classes 1
class r0..2 input[0..2] = 0
class r0..2 output[0..2] = 0
value 0 = copy r0.input[0]
value 1 = copy r1.input[0]
value 2 = copy r0.input[1]
value 3 = copy r1.input[1]
ensure r0 output[0..2] = 0 step 1
ensure r1 output[0..2] = 2 step 1

rank 0
  lane 0
    op0 copy input.in[0:0..1] to output.out[0:0..1] ; step 0 line 0
    op1 send input.in[1:0..1] to r1 channel 0 ; step 0 line 0
    op2 recv output.out[1:0..1] from r1 channel 0 ; step 0 line 0

rank 1
  lane 0
    op0 copy input.in[1:0..1] to output.out[1:0..1] ; step 0 line 0
    op1 send input.in[0:0..1] to r0 channel 0 ; step 0 line 0
    op2 recv output.out[0:0..1] from r0 channel 0 ; step 0 line 0
"#;

#[test]
fn a_stuck_run_lists_what_is_blocked() {
    let plan = coll_plan::from_text(EXCHANGE).unwrap_or_else(|error| panic!("{error:?}"));
    let network = ports(2, COSTS);
    let run = |slots| predict(&[&plan], &network, &Options { bytes: 2000, slots, ..Options::default() });
    // With the slot that the plan asks for: a message, and the copy out of the slot at the end.
    let free = run(None).expect("one slot is enough");
    // Copied out of place, sent, under way, copied from the slot.
    let expected = 0.0625 + 0.5 + 1.0 + 2.0 + 0.5;
    assert!((free.time_us - expected).abs() < 1e-9, "{}", free.time_us);
    let Err(SimError::Stuck(blocked)) = run(Some(0)) else { panic!("it is stuck") };
    let told: Vec<String> = blocked.iter().map(ToString::to_string).collect();
    let one = |rank, peer| {
        format!(
            "rank {rank}, lane 0, op 1, step 0 (exchange.coll:3): its message waits for rank {peer}'s op 2, which has not begun"
        )
    };
    assert_eq!(told, [one(0, 1), one(1, 0)]);
    let shown = SimError::Stuck(blocked).to_string();
    assert!(
        shown.starts_with("nothing can go on, and 2 lanes are blocked:\n  rank 0, lane 0, op 1"),
        "{shown}"
    );
}

#[test]
fn what_does_not_fit_is_named() {
    let plan = compile("allreduce.ring", 4, &[]).expect("it serves 4 ranks");
    let network = ports(3, COSTS);
    let options = Options { bytes: 64, ..Options::default() };
    let error = predict(&[&plan], &network, &options).expect_err("one device is missing");
    assert_eq!(error.to_string(), "`ports` gives 3 devices to 4 ranks");
    let error = |order: &[u32]| {
        let options = Options { order: Some(order.to_vec()), ..options.clone() };
        predict(&[&plan], &ports(5, COSTS), &options).expect_err("it is no order").to_string()
    };
    assert_eq!(error(&[0, 1, 1, 2]), "two ranks are placed on `d1`");
    assert_eq!(error(&[0, 1, 2, 7]), "rank 3 is placed on device 7; there are devices 0 to 4");
    let slice = plan.slice(2).expect("it is there");
    let error = predict(&[&slice], &ports(4, COSTS), &options).expect_err("three are missing");
    assert_eq!(error.to_string(), "the plan is for 4 ranks, and the parts of 1 are here");
    let mut broken = ports(4, COSTS);
    broken.links[2].bytes_per_us = 0.0;
    let error = predict(&[&plan], &broken, &options).expect_err("a link carries nothing");
    assert_eq!(error.to_string(), "the bandwidth of `d2->switch` is 0");
    let alltoall = compile("reduce_scatter.ring", 3, &[]).expect("it serves 3 ranks");
    if let Err(error) = predict(&[&alltoall], &ports(3, COSTS), &Options { bytes: 64, ..options.clone() }) {
        assert!(error.to_string().contains("64 elements do not divide"), "{error}");
    }
}
