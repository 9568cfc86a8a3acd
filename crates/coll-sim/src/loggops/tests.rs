//! LogGOPSim's own results, 144 of them, and schedules that do not end.

use super::{LogGops, LogGopsError, run};
use crate::goal::Goal;
use std::path::Path;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goal")
}

fn read(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_reference_run_is_reproduced_to_the_nanosecond() {
    let table = read("loggopsim-reference.csv");
    let mut lines = table.lines();
    let head = "file,pattern,ranks,datasize,L,o,g,G,O,S,max_ns,rank_ns";
    assert_eq!(lines.next(), Some(head));
    let mut rows = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse::<u64>().expect("it is a number");
        let [l, o, g, g_byte, o_byte, s] = [4, 5, 6, 7, 8, 9].map(number);
        let params = LogGops { l, o, g, g_byte, o_byte, s };
        let goal = Goal::from_text(cells[0], &read(cells[0])).unwrap_or_else(|error| panic!("{error}"));
        let finish = run(&goal, &params).unwrap_or_else(|error| panic!("{}: {error}", cells[0]));
        let expected: Vec<u64> = cells[11].split(' ').map(|ns| ns.parse().expect("a number")).collect();
        assert_eq!(finish.ns, expected, "{} with {params:?}", cells[0]);
        assert_eq!(finish.ns.iter().max(), Some(&number(10)), "{}", cells[0]);
        rows += 1;
    }
    assert_eq!(rows, 144);
}

#[test]
fn a_binomial_broadcast_of_one_byte_takes_its_depth() {
    // A send holds its processor for o = 1500 and is 1000 from the next; what comes is there at o + L, taken after o.
    let goal = Goal::from_text("b", &read("binary_tree_32.goal")).unwrap();
    let finish = run(&goal, &LogGops::default()).unwrap();
    assert_eq!(finish.ns[0], 5 * 1500);
    assert_eq!(finish.ns[31], 5 * (1500 + 2500 + 1500));
}

#[test]
fn constants_are_read_and_what_is_none_is_named() {
    let params: LogGops = "L=1,o=2,g=3,G=4,O=5,S=6".parse().unwrap();
    assert_eq!(params, LogGops { l: 1, o: 2, g: 3, g_byte: 4, o_byte: 5, s: 6 });
    assert_eq!("L=7".parse::<LogGops>(), Ok(LogGops { l: 7, ..LogGops::default() }));
    for (text, expected) in [
        ("L", "`L` sets nothing"),
        ("L=1.5", "`L=1.5`: `1.5` is no whole number of nanoseconds"),
        ("S=-1", "`S=-1`: `-1` is no whole number of bytes"),
        ("x=1", "LogGOPS has no `x`"),
        ("L=1,L=2", "`L` is set twice"),
    ] {
        assert!(text.parse::<LogGops>().unwrap_err().starts_with(expected), "{text}");
    }
}

#[test]
fn what_is_stuck_is_listed() {
    let text = "num_ranks 2
rank 0 {
l1: send 100000b to 1
l2: calc 5
l2 requires l1
}
rank 1 {
l1: recv 8b from 0 tag 3
a: calc 1
b: calc 1
a requires b
b irequires a
}
";
    let goal = Goal::from_text("x", text).unwrap();
    let Err(LogGopsError::Stuck(blocked)) = run(&goal, &LogGops::default()) else { panic!("it is stuck") };
    let told: Vec<_> = blocked.iter().map(|b| (b.rank, b.label.as_str(), b.why.as_str())).collect();
    assert_eq!(
        told,
        [
            (0, "l1", "`send 100000b to 1 tag 0` waits for a receive on rank 1"),
            (0, "l2", "`calc 5` waits for `l1` (line 3)"),
            (1, "l1", "`recv 8b from 0 tag 3` waits for a message that is never sent"),
            (1, "a", "`calc 1` waits for `b` (line 10)"),
            (1, "b", "`calc 1` waits for the start of `a` (line 9)"),
        ]
    );
    let shown = LogGopsError::Stuck(blocked).to_string();
    assert!(
        shown.starts_with("nothing can go on, and 5 operations are not over:\n  rank 0 l1 (line 3): "),
        "{shown}"
    );
}

#[test]
fn times_beyond_64_bits_are_refused() {
    let goal = Goal::from_text("x", "num_ranks 1\nrank 0 {\ncalc 18446744073709551615\ncalc 1\n}\n").unwrap();
    assert_eq!(run(&goal, &LogGops::default()), Err(LogGopsError::TooLong { rank: 0, line: 4 }));
}

#[test]
fn processors_of_a_rank_work_side_by_side() {
    let text = |cpu| format!("num_ranks 1\nrank 0 {{\ncalc 100\ncalc 50 cpu {cpu}\n}}\n");
    let finish = |cpu| run(&Goal::from_text("x", &text(cpu)).unwrap(), &LogGops::default()).unwrap().ns;
    assert_eq!([finish(0), finish(1)], [vec![150], vec![100]]);
}
