//! What is told of a run: its path in source terms, its links, its bound, its trace, its pictures.

use crate::library::compile;
use crate::network::{Constants, full, machines, ports};
use coll_sim::{Options, by_line, dot, drawing, predict, trace};

const COSTS: Constants =
    Constants { message_us: 0.5, reduce_ns: 0.25, copy_ns: 0.0, bytes_per_us: 1000.0, latency_us: 2.0 };

#[test]
fn the_path_goes_back_to_the_start_line_by_line() {
    let plan = compile("allreduce.ring", 4, &[]).expect("it serves 4 ranks");
    let options = Options { bytes: 4000, ..Options::default() };
    let found = predict(&[&plan], &full(4, COSTS), &options).expect("it runs");
    // A send and a receive in each of six steps, each one rank further round.
    let steps: Vec<(u32, u32)> = found.path.iter().map(|step| (step.rank, step.step)).collect();
    let last = found.path.last().expect("it is not empty").rank;
    let expected = (0..6).flat_map(|step| [(last + 2 + step, step), (last + 3 + step, step)]);
    assert_eq!(steps, expected.map(|(rank, step)| (rank % 4, step)).collect::<Vec<_>>());
    let sum: f64 = found.path.iter().map(|step| step.took_us).sum();
    assert!((sum - found.time_us).abs() < 1e-9);
    let lines = by_line(&found.path);
    let lines: Vec<(u32, usize)> = lines.iter().map(|(line, _, count)| (line.line, *count)).collect();
    assert_eq!(lines, [(14, 6), (19, 6)], "both loops, the one that reduces first");
    assert!(found.path.iter().all(|s| s.line.as_ref().is_some_and(|l| l.file.ends_with("ring.coll"))));
}

#[test]
fn a_slow_rank_is_on_the_path() {
    let plan = compile("allreduce.ring", 6, &[]).expect("it serves 6 ranks");
    let mut network = full(6, COSTS);
    network.devices[4].reduce_ns = 50.0;
    let found =
        predict(&[&plan], &network, &Options { bytes: 60_000, ..Options::default() }).expect("it runs");
    let slow: f64 = found.path.iter().filter(|step| step.rank == 4).map(|step| step.took_us).sum();
    assert!(slow > 0.5 * found.time_us, "rank 4 has {slow} of {}", found.time_us);
}

#[test]
fn links_carry_what_the_plan_sends() {
    let plan = compile("allreduce.ring", 4, &[]).expect("it serves 4 ranks");
    let found = predict(
        &[&plan],
        &ports(4, Constants { latency_us: 0.0, ..Constants::PLAIN }),
        &Options { bytes: 4000, ..Options::default() },
    )
    .expect("it runs");
    assert_eq!(found.messages, 24);
    assert_eq!((found.peers_max, found.scratch_max_bytes), (2, 0));
    // Each of four links out and four in carries six pieces of 1,000 bytes, and does nothing else.
    let links: Vec<(u128, f64)> = found.links.iter().map(|link| (link.bytes, link.busy_fraction)).collect();
    assert_eq!(links, vec![(6000, 1.0); 8]);
}

#[test]
fn bounds_are_met_by_what_is_optimal_and_kept_by_all() {
    let bound = |name: &str, ranks, network: &_, bytes| {
        let plan = compile(name, ranks, &[]).expect("it serves them");
        let found = predict(&[&plan], network, &Options { bytes, ..Options::default() }).expect("it runs");
        (found.bound, found.time_us)
    };
    let (found, time) =
        bound("allreduce.ring", 8, &ports(8, Constants { latency_us: 0.0, ..Constants::PLAIN }), 800_000);
    assert!(
        (found.us - 2.0 * 7.0 / 8.0 * 800.0).abs() < 1e-6 && (time - found.us).abs() < 1e-6,
        "{found:?} {time}"
    );
    // Between two machines all that an all-reduce needs is one buffer each way, through a NIC of 250 bytes a microsecond.
    let (found, _) =
        bound("allreduce.ring", 8, &machines(8, Constants { latency_us: 0.0, ..Constants::PLAIN }), 800_000);
    assert!((found.bytes_us - 800_000.0 / 250.0).abs() < 1e-6, "{found:?}");
    // Word of a root is with seven others after three rounds, at best.
    let (found, _) = bound("broadcast.binomial", 8, &full(8, COSTS), 8);
    assert!(found.latency_us >= 3.0 && found.latency_us <= 3.0 * 3.0, "{found:?}");
}

/// B084: a tree keeps the peers of its root few.
#[test]
fn b084_a_root_of_thousands_has_few_peers() {
    let peers = |name: &str| {
        let plan = compile(name, 4096, &[]).expect("it serves 4096 ranks");
        let found =
            predict(&[&plan], &ports(4096, COSTS), &Options { bytes: 4096 * 64, ..Options::default() });
        let found = found.expect("it runs");
        (found.peers_max, found.scratch_max_bytes)
    };
    let (few, scratch) = peers("gather.binomial");
    assert!(few <= 64 && scratch <= 4096 * 64, "{few} {scratch}");
    assert_eq!(peers("gather.linear").0, 4095);
}

#[test]
fn a_trace_has_the_numbers_of_the_plan() {
    let plan = compile("broadcast.binomial", 4, &[]).expect("it serves 4 ranks");
    let network = full(4, COSTS);
    let options = Options { bytes: 1000, timeline: true, ..Options::default() };
    let found = predict(&[&plan], &network, &options).expect("it runs");
    let text = trace(&[&plan], &network, &found).expect("it is the same plan");
    let document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let events = document["traceEvents"].as_array().expect("a list");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let ops: usize = plan.ranks.iter().map(|part| part.ops.len()).sum();
    assert_eq!(of("X").len(), ops);
    assert_eq!((of("s").len(), of("f").len()), (3, 3));
    for event in of("X") {
        let [rank, lane, op] =
            ["rank", "lane", "op"].map(|key| event["args"][key].as_u64().expect("a number"));
        assert_eq!((event["pid"].as_u64(), event["tid"].as_u64()), (Some(rank), Some(lane)));
        let part = &plan.ranks[rank as usize];
        let what = &part.ops[op as usize];
        assert!((part.lanes[lane as usize].start..part.lanes[lane as usize].end).contains(&(op as u32)));
        assert_eq!(event["args"]["step"].as_u64(), Some(u64::from(what.step)));
        assert_eq!(event["args"]["line"].as_u64(), Some(u64::from(plan.lines[what.line as usize].line)));
        let (begin, end) = found.timeline[rank as usize][op as usize];
        assert_eq!((event["ts"].as_f64(), event["dur"].as_f64()), (Some(begin), Some(end - begin)));
    }
    let names = of("M").iter().filter(|event| event["name"] == "process_name").count();
    assert_eq!(names, 4);
}

#[test]
fn a_drawing_has_an_arrow_for_each_message() {
    let plan = compile("allreduce.ring", 4, &[]).expect("it serves 4 ranks");
    let picture = drawing(&plan).expect("it is small");
    assert_eq!(picture.matches("marker-end").count(), 24);
    // The first half is reduced where it comes, and so is the line in the legend.
    assert_eq!(picture.matches("stroke-dasharray").count(), 13);
    assert!(picture.contains("ring.coll:14") && picture.contains("step 5") && !picture.contains("step 6"));
    let large = compile("alltoall.linear", 160, &[]).expect("it serves 160 ranks");
    assert!(dot(&large).is_err());
    let error = drawing(&large).expect_err("it is too much").to_string();
    assert!(error.starts_with("the picture would have 25600 arrows and dots"), "{error}");
}

/// The same numbers and words as in a trace.
#[test]
fn a_plan_for_graphviz_has_its_operations_lanes_waits_and_messages() {
    for (name, ranks) in [("allreduce.ring", 4), ("allreduce.double_tree", 5)] {
        let plan = compile(name, ranks, &[]).expect("it serves them");
        let text = dot(&plan).expect("it is small");
        let parts = || plan.ranks.iter();
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        let ops: usize = parts().map(|part| part.ops.len()).sum();
        let sends = parts().flat_map(|part| &part.ops).filter(|op| op.action.sends_to().is_some()).count();
        let waits: usize = parts().flat_map(|part| part.ops.iter().map(|op| part.waits(op).len())).sum();
        let in_lanes: usize = parts()
            .flat_map(|part| &part.lanes)
            .map(|lane| (lane.end - lane.start).saturating_sub(1) as usize)
            .sum();
        assert_eq!(count(" [label = \"op"), ops, "{name}");
        assert_eq!(count("color = blue"), sends, "{name}");
        assert_eq!(count("color = grey"), in_lanes, "{name}");
        assert_eq!(count(" -> "), sends + waits + in_lanes, "{name}");
        assert!(text.contains(r"op0 send to r1\nstep 0 ") || name != "allreduce.ring", "{text}");
        let lines = parts().flat_map(|part| &part.ops).map(|op| &plan.lines[op.line as usize]);
        let mut places = lines.map(|line| format!("{}:{}\"", line.file, line.line));
        assert!(places.all(|place| text.contains(&place)), "{name}: every source line is told");
    }
}
