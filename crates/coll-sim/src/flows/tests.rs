//! Rates of flows that share links, against shares worked out by hand.

use super::*;
use coll_topo::{Link, Network, Routes};
use std::sync::Arc;

#[derive(Debug)]
struct Nowhere;

impl Routes for Nowhere {
    fn route(&self, _: u32, _: u32, way: &mut Vec<LinkId>) {
        way.clear();
    }
}

fn flows(bandwidths: &[f64]) -> Flows {
    let link =
        |(at, &bytes_per_us): (usize, &f64)| Link { name: format!("l{at}"), bytes_per_us, latency_us: 0.0 };
    let links = bandwidths.iter().enumerate().map(link).collect();
    Flows::new(&Network { name: "test".into(), devices: Vec::new(), links, routes: Arc::new(Nowhere) })
}

fn add(flows: &mut Flows, bandwidths: &[f64], owner: u32, way: &[LinkId], bytes: u64, now: f64) {
    let peak = way.iter().map(|&link| bandwidths[link as usize]).fold(f64::INFINITY, f64::min);
    flows.add(owner, way, peak, u128::from(bytes), now);
}

/// Runs all flows to their ends: `(owner, when)`, in order.
fn run(flows: &mut Flows) -> Vec<(u32, f64)> {
    let mut ends: Vec<End> = Vec::new();
    let mut ended = Vec::new();
    flows.settle(0.0, &mut ends);
    while !ends.is_empty() {
        ends.sort_by(|a, b| b.at.total_cmp(&a.at).then(b.flow.cmp(&a.flow)));
        let next = ends.pop().expect("there is one");
        match flows.end(next.flow, next.version, next.at) {
            Ending::OutOfDate => {}
            Ending::Later(later) => ends.push(later),
            Ending::Ended(owner) => ended.push((owner, next.at)),
        }
        // Those that end at the same time end together.
        ends.sort_by(|a, b| b.at.total_cmp(&a.at).then(b.flow.cmp(&a.flow)));
        if !flows.is_settled() && ends.last().is_none_or(|other| other.at > next.at) {
            flows.settle(next.at, &mut ends);
        }
    }
    ended
}

#[test]
fn a_flow_alone_moves_at_the_rate_of_its_slowest_link() {
    let bandwidths = [10.0, 4.0, 8.0];
    let mut all = flows(&bandwidths);
    add(&mut all, &bandwidths, 7, &[0, 1, 2], 400, 0.0);
    assert_eq!(run(&mut all), [(7, 100.0)]);
}

#[test]
fn flows_of_one_link_share_it_and_the_last_has_it_alone() {
    let bandwidths = [6.0];
    let mut all = flows(&bandwidths);
    for (owner, bytes) in [(0, 60), (1, 120), (2, 180)] {
        add(&mut all, &bandwidths, owner, &[0], bytes, 0.0);
    }
    // 2 each until 30, then 3 each until 50, then 6.
    assert_eq!(run(&mut all), [(0, 30.0), (1, 50.0), (2, 60.0)]);
}

#[test]
fn rates_are_max_min_fair() {
    // The textbook's line: one flow over both links, one on each; the second link is wide.
    let bandwidths = [10.0, 40.0];
    let mut all = flows(&bandwidths);
    add(&mut all, &bandwidths, 0, &[0, 1], 500, 0.0);
    add(&mut all, &bandwidths, 1, &[0], 500, 0.0);
    add(&mut all, &bandwidths, 2, &[1], 3500, 0.0);
    // 5, 5 and 35: all end together.
    assert_eq!(run(&mut all), [(0, 100.0), (1, 100.0), (2, 100.0)]);
}

#[test]
fn a_link_that_cannot_be_full_joins_nobody() {
    // A wide core behind two narrow links: what comes on one changes nothing on the other.
    let bandwidths = [1.0, 1.0, 100.0];
    let mut all = flows(&bandwidths);
    add(&mut all, &bandwidths, 0, &[0, 2], 10, 0.0);
    let mut ends = Vec::new();
    all.settle(0.0, &mut ends);
    assert_eq!(ends.len(), 1);
    add(&mut all, &bandwidths, 1, &[1, 2], 10, 3.0);
    all.settle(3.0, &mut ends);
    assert_eq!(ends.iter().map(|end| (end.flow, end.at)).collect::<Vec<_>>(), [(0, 10.0), (1, 13.0)]);
}

#[test]
fn a_flow_that_comes_later_slows_the_first_and_is_slowed() {
    let bandwidths = [2.0];
    let mut all = flows(&bandwidths);
    let mut ends = Vec::new();
    add(&mut all, &bandwidths, 0, &[0], 20, 0.0);
    all.settle(0.0, &mut ends);
    add(&mut all, &bandwidths, 1, &[0], 20, 5.0);
    all.settle(5.0, &mut ends);
    // The first has 10 left at rate 1; its end was told for 10, and is put off when that comes.
    let told: Vec<f64> = ends.iter().map(|end| end.at).collect();
    assert_eq!(told, [10.0, 25.0]);
    let Ending::Later(later) = all.end(0, ends[0].version, 10.0) else { panic!("it has slowed down") };
    assert_eq!(later.at, 15.0);
    assert!(matches!(all.end(0, ends[0].version, 10.0), Ending::OutOfDate));
    assert!(matches!(all.end(0, later.version, 15.0), Ending::Ended(0)));
    all.settle(15.0, &mut ends);
    assert_eq!(ends.last().map(|end| end.at), Some(20.0));
}

#[test]
fn every_byte_is_carried_whatever_comes_and_goes() {
    // Many flows over a line of links, ends checked against the capacity of each link.
    let bandwidths: Vec<f64> = (0..12).map(|at| 1.0 + f64::from(at % 5)).collect();
    let mut all = flows(&bandwidths);
    let mut carried = vec![0.0; bandwidths.len()];
    for owner in 0..200u32 {
        let first = owner * 7 % 12;
        let way: Vec<LinkId> = (first..(first + 1 + owner % 4).min(12)).collect();
        let bytes = u64::from(1 + owner * 37 % 101);
        way.iter().for_each(|&link| carried[link as usize] += bytes as f64);
        add(&mut all, &bandwidths, owner, &way, bytes, 0.0);
    }
    let ended = run(&mut all);
    assert_eq!(ended.len(), 200);
    let last = ended.last().expect("there are some").1;
    let busiest = carried.iter().zip(&bandwidths).map(|(bytes, rate)| bytes / rate).fold(0.0, f64::max);
    assert!(last >= busiest * (1.0 - 1e-12), "{last} is before the busiest link could be done, at {busiest}");
    assert!(last <= busiest * 1.5, "{last} leaves the busiest link, done at {busiest}, idle for long");
}

#[test]
fn rates_of_many_that_come_one_by_one_are_near_and_all_end() {
    let bandwidths = [1000.0];
    let mut all = flows(&bandwidths);
    let (count, mut come, mut ended, mut last) = (900u32, 0u32, 0u32, 0.0_f64);
    let mut ends: Vec<End> = Vec::new();
    while ended < count {
        ends.sort_by(|a, b| b.at.total_cmp(&a.at).then(b.flow.cmp(&a.flow)));
        let comes_at = f64::from(come) * 0.5;
        let comes_first = come < count && ends.last().is_none_or(|end| comes_at < end.at);
        if comes_first {
            add(&mut all, &bandwidths, come, &[0], 1000, comes_at);
            come += 1;
            all.settle(comes_at, &mut ends);
        } else {
            let next = ends.pop().expect("what has come will end");
            match all.end(next.flow, next.version, next.at) {
                Ending::OutOfDate => {}
                Ending::Later(later) => ends.push(later),
                Ending::Ended(_) => {
                    (ended, last) = (ended + 1, next.at);
                    all.settle(next.at, &mut ends);
                }
            }
        }
    }
    // 900,000 bytes; a link that is busy all the time takes 900 µs.
    assert!((last - 900.0).abs() < 0.05 * 900.0, "{last}");
}

#[test]
fn what_has_ended_takes_no_share_from_who_has_its_place() {
    // Many flows over two links; those of the first end, and others take their places in the table, on the second.
    let bandwidths = [1000.0, 500.0];
    let mut all = flows(&bandwidths);
    (0..400).for_each(|owner| add(&mut all, &bandwidths, owner, &[0], 100, 0.0));
    let ended = run(&mut all);
    assert!(ended.len() == 400 && ended.iter().all(|(_, at)| (at - 40.0).abs() < 1e-9), "{ended:?}");
    (0..400).for_each(|owner| add(&mut all, &bandwidths, owner, &[owner % 2], 100, 0.0));
    let ended = run(&mut all);
    let last = |link: u32| {
        ended.iter().filter(|(owner, _)| owner % 2 == link).map(|&(_, at)| at).fold(0.0, f64::max)
    };
    assert!((last(0) - 20.0).abs() < 1e-9 && (last(1) - 40.0).abs() < 1e-9, "{} {}", last(0), last(1));
}
