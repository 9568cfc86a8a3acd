//! What is changed in the network changes the time, by what the closed form says.

use crate::library::compile;
use crate::network::{Constants, bus, full, full_with_hop, machines, ports};
use coll_sim::{Options, Prediction, Simulator, predict};
use coll_topo::Network;

const BYTES: u64 = 8 * 48_000;

fn run(name: &str, network: &Network, options: &Options) -> Prediction {
    let ranks = network.devices.len() as u32;
    let plan = compile(name, ranks, &[]).expect("it serves them");
    predict(&[&plan], network, options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn ring(network: &Network) -> f64 {
    run("allreduce.ring", network, &Options { bytes: BYTES, ..Options::default() }).time_us
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected, "found {found}, expected {expected}");
}

#[test]
fn half_the_bandwidth_doubles_what_bytes_take() {
    let plain = ring(&full(8, Constants::PLAIN));
    let half = ring(&full(8, Constants { bytes_per_us: 500.0, ..Constants::PLAIN }));
    close(half - plain, 14.0 * (BYTES / 8) as f64 / 1000.0);
}

#[test]
fn a_hop_adds_its_latency_to_every_step() {
    let plain = ring(&full(8, Constants::PLAIN));
    let more = ring(&full_with_hop(8, Constants::PLAIN, 1.5));
    close(more - plain, 14.0 * 1.5);
}

#[test]
fn a_shared_link_is_shared() {
    // All eight messages of a step cross the bus.
    let plain = ring(&full(8, Constants::PLAIN));
    let shared = ring(&bus(8, Constants::PLAIN));
    close(shared - plain, 14.0 * 7.0 * (BYTES / 8) as f64 / 1000.0);
}

/// Where rates are not worked out for every change: all that happens at one time counts at once, so ranks in step are exact.
#[test]
fn hundreds_in_step_follow_their_links_too() {
    let ranks = 300;
    let plan = compile("allreduce.ring", ranks, &[]).expect("it serves 300 ranks");
    let bytes = 300 * 6_000;
    let time = |network: &Network| {
        predict(&[&plan], network, &Options { bytes, ..Options::default() }).expect("it ends").time_us
    };
    let steps = 2.0 * (f64::from(ranks) - 1.0);
    let (one_us, sharing) = (6_000.0 / 1000.0, f64::from(ranks));
    let half = Constants { bytes_per_us: 500.0, ..Constants::PLAIN };
    close(time(&full(ranks, Constants::PLAIN)), steps * (3.0 + one_us));
    close(time(&full_with_hop(ranks, Constants::PLAIN, 1.5)), steps * (3.0 + 1.5 + one_us));
    close(time(&bus(ranks, Constants::PLAIN)), steps * (3.0 + sharing * one_us));
    close(time(&bus(ranks, half)), steps * (3.0 + 2.0 * sharing * one_us));
}

#[test]
fn one_slow_link_slows_a_ring_as_if_all_were() {
    let mut network = full(8, Constants::PLAIN);
    let link = network.links.iter_mut().find(|link| link.name == "d3->d4").expect("it is there");
    link.bytes_per_us = 250.0;
    let slow = ring(&network);
    let all = ring(&full(8, Constants { bytes_per_us: 250.0, ..Constants::PLAIN }));
    assert!(slow <= all && slow > 0.9 * all, "{slow} {all}");
    let found = run("allreduce.ring", &network, &Options { bytes: BYTES, ..Options::default() });
    let busiest =
        found.links.iter().max_by(|a, b| a.busy_fraction.total_cmp(&b.busy_fraction)).expect("links");
    assert_eq!(network.links[busiest.link as usize].name, "d3->d4");
    // And a ring that does not go over it does not notice.
    let order: Vec<u32> = [0, 1, 2, 4, 3, 5, 6, 7].into();
    let around =
        run("allreduce.ring", &network, &Options { bytes: BYTES, order: Some(order), ..Options::default() });
    close(around.time_us, ring(&full(8, Constants::PLAIN)));
}

#[test]
fn what_a_device_does_itself_costs_what_it_says() {
    let plain = ring(&full(8, Constants::PLAIN));
    let message = ring(&full(8, Constants { message_us: 0.5, ..Constants::PLAIN }));
    close(message - plain, 14.0 * 2.0 * 0.5);
    let reduce = ring(&full(8, Constants { reduce_ns: 0.1, ..Constants::PLAIN }));
    close(reduce - plain, 7.0 * (BYTES / 8) as f64 * 0.1 / 1000.0);
    // Out of place a broadcast's root copies, beside its sends.
    let copies = Constants { copy_ns: 100.0, ..Constants::PLAIN };
    close(
        run("broadcast.linear", &full(2, copies), &Options { bytes: BYTES, ..Options::default() }).time_us,
        BYTES as f64 * 0.1,
    );
}

#[test]
fn streams_hide_what_storing_whole_messages_takes() {
    // Down a chain of one chunk the bytes take the time of one link, and latency that of all.
    let constants = Constants { message_us: 0.5, ..Constants::PLAIN };
    let plan = compile("broadcast.chain", 5, &[("c", 1)]).expect("it serves 5 ranks");
    let time = |stream| {
        let options = Options { bytes: BYTES, stream, ..Options::default() };
        predict(&[&plan], &full(5, constants), &options).expect("it runs").time_us
    };
    let (message, latency, bytes) = (0.5, 3.0, BYTES as f64 / 1000.0);
    close(time(false), 4.0 * (2.0 * message + latency + bytes));
    close(time(true), 4.0 * (message + latency) + bytes + message);
    // A reduction on the way goes on byte by byte too, at the pace of what is slower.
    let plan = compile("reduce.chain", 5, &[("c", 1)]).expect("it serves 5 ranks");
    let constants = Constants { reduce_ns: 0.5, ..constants };
    let options = Options { bytes: BYTES, stream: true, ..Options::default() };
    let found = predict(&[&plan], &full(5, constants), &options).expect("it runs").time_us;
    let whole = 4.0 * (message + latency) + bytes + message + BYTES as f64 * 0.5 / 1000.0;
    close(found, whole);
}

/// B046: fewer messages under way than a pipeline is deep make it slower, and never end it.
#[test]
fn b046_slots_hide_latency_and_never_matter_to_the_end() {
    let plan = compile("broadcast.chain", 8, &[("c", 16)]).expect("it serves 8 ranks");
    let constants = Constants { latency_us: 500.0, ..Constants::PLAIN };
    let network = ports(8, constants);
    let time = |slots| {
        let options = Options { bytes: 16 * 16_000, slots: Some(slots), ..Options::default() };
        predict(&[&plan], &network, &options).expect("it runs").time_us
    };
    let times = [0, 1, 2, 4, 16, 64].map(time);
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    // Every message waits for its receive; or all chunks are under way at once.
    close(times[0], (8.0 - 2.0 + 16.0) * (500.0 + 16.0));
    close(times[4], 7.0 * (500.0 + 16.0) + 15.0 * 16.0);
}

#[test]
fn placement_decides_what_crosses_a_nic() {
    let network = machines(16, Constants::PLAIN);
    let near = ring(&network);
    // Neighbours of the ring on different machines: four flows share each NIC.
    let order: Vec<u32> = (0..16).map(|rank| rank % 4 * 4 + rank / 4).collect();
    let far =
        run("allreduce.ring", &network, &Options { bytes: BYTES, order: Some(order), ..Options::default() });
    let piece = BYTES as f64 / 16.0;
    close(near, 30.0 * (3.0 + 12.0 + piece / 250.0));
    close(far.time_us, 30.0 * (3.0 + 12.0 + piece / 62.5));
}

#[test]
fn one_simulator_serves_all_sizes() {
    let plan = compile("allreduce.rabenseifner", 8, &[]).expect("it serves 8 ranks");
    let network = ports(8, Constants::PLAIN);
    let simulator = Simulator::new(vec![&plan], &network, None).expect("it fits");
    let mut last = 0.0;
    for bytes in [0, 1, 7, 1 << 10, 1 << 20, 1 << 40, u64::MAX / 2] {
        let found = simulator.run(&Options { bytes, ..Options::default() }).expect("it runs");
        assert!(found.time_us >= last && found.time_us.is_finite(), "{bytes}: {}", found.time_us);
        assert!(found.bound.us <= found.time_us * (1.0 + 1e-9), "{bytes}: {:?}", found.bound);
        last = found.time_us;
    }
    close(last, 6.0 * 3.0 + 14.0 / 8.0 * (u64::MAX / 2) as f64 / 1000.0);
}

#[test]
fn slices_of_a_plan_are_run_like_the_whole() {
    for name in ["allreduce.ring", "alltoall.pairwise", "alltoall.bruck", "barrier.dissemination"] {
        let plan = compile(name, 6, &[]).expect("it serves 6 ranks");
        let slices: Vec<_> = (0..6).rev().map(|rank| plan.slice(rank).expect("it is there")).collect();
        let network = ports(6, Constants { message_us: 0.5, ..Constants::PLAIN });
        let options = Options { bytes: 6 * 6 * 1000, ..Options::default() };
        let whole = predict(&[&plan], &network, &options).expect("it runs");
        let sliced = predict(&slices.iter().collect::<Vec<_>>(), &network, &options).expect("it runs");
        assert_eq!((whole.time_us, &whole.path, &whole.links), (sliced.time_us, &sliced.path, &sliced.links));
        assert!(sliced.bound.us > 0.0 && sliced.bound.us <= sliced.time_us, "{name}");
    }
}
