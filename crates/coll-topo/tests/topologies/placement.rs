//! Placement: slow links are crossed least, and it says how it was found.

use super::{network, topology};
use coll_topo::Network;
use coll_topo::place::{Method, PlaceError, Placement, Traffic, cost, nodes, place};

fn ring(order: &[u32], bytes: u64) -> Traffic {
    let mut traffic = Traffic::new(order.len() as u32);
    for (at, &rank) in order.iter().enumerate() {
        traffic.add(rank, order[(at + 1) % order.len()], bytes).unwrap();
    }
    traffic
}

/// How many bytes go from machine to machine.
fn between_machines(network: &Network, traffic: &Traffic, device_of: &[u32]) -> u64 {
    let machine = |rank: u32| network.devices[device_of[rank as usize] as usize].machine;
    traffic.flows().filter(|&(from, to, _)| machine(from) != machine(to)).map(|(.., bytes)| bytes).sum()
}

#[track_caller]
fn is_arrangement(placement: &Placement, network: &Network) {
    let mut devices = placement.device_of.clone();
    devices.sort_unstable();
    devices.dedup();
    assert_eq!(devices.len(), placement.device_of.len(), "each rank has a device of its own");
    assert!(devices.iter().all(|&device| (device as usize) < network.devices.len()));
    assert!(placement.after.bottleneck_us <= placement.before.bottleneck_us * (1.0 + 1e-9));
}

const TWO_BOXES: &str = "[[machine]]\nname = \"box\"\ncount = 2\n[[machine.device]]\nname = \"d\"\ncount = 4\n\
                         [[machine.switch]]\nname = \"bus\"\n\
                         [[machine.link]]\nbetween = [\"d*\", \"bus\"]\nbandwidth = \"10GB/s\"\n\
                         [[link]]\nbetween = [\"box0.bus\", \"box1.bus\"]\nbandwidth = \"1GB/s\"\n";

#[test]
fn a_ring_over_a_scrambled_order_crosses_slow_links_least() {
    let network = network(TWO_BOXES);
    let traffic = ring(&[0, 4, 1, 5, 2, 6, 3, 7], 1 << 20);
    let placement = place(&network, &traffic).unwrap();
    is_arrangement(&placement, &network);
    assert_eq!(placement.method, Method::Exact);
    assert_eq!(between_machines(&network, &traffic, &[0, 1, 2, 3, 4, 5, 6, 7]), 8 << 20);
    assert_eq!(between_machines(&network, &traffic, &placement.device_of), 2 << 20);
    assert!((placement.before.bottleneck_us / placement.after.bottleneck_us - 4.0).abs() < 1e-9);
    let busiest = placement.after.bottleneck.expect("something crosses a link");
    assert!(network.links[busiest as usize].name.starts_with("box"), "the slow link bounds it");
    assert_eq!(place(&network, &traffic).unwrap(), placement, "the same each time");
}

#[test]
fn many_ranks_are_placed_by_search() {
    let network = network("dgx-h100:4");
    // Ranks that differ by eight are neighbours.
    let order: Vec<u32> = (0..32).map(|at| at % 4 * 8 + at / 4).collect();
    let traffic = ring(&order, 1 << 20);
    let placement = place(&network, &traffic).unwrap();
    is_arrangement(&placement, &network);
    assert_eq!(placement.method, Method::Searched);
    assert_eq!(
        between_machines(&network, &traffic, &placement.device_of),
        4 << 20,
        "one message leaves each machine"
    );
    assert!(placement.after.total_us < placement.before.total_us);
    assert_eq!(place(&network, &traffic).unwrap(), placement);
}

#[test]
fn pairs_that_exchange_much_come_to_one_machine() {
    let network = network(TWO_BOXES);
    let mut traffic = Traffic::new(8);
    for rank in 0..4 {
        traffic.add(rank, rank + 4, 1000).unwrap();
        traffic.add(rank + 4, rank, 1000).unwrap();
    }
    let placement = place(&network, &traffic).unwrap();
    assert_eq!(between_machines(&network, &traffic, &placement.device_of), 0);
}

#[test]
fn an_order_that_is_right_stays() {
    for (text, ranks) in [(TWO_BOXES, 8), ("torus:4x4", 16), ("dgx-h100:2", 16)] {
        let network = network(text);
        let order: Vec<u32> = (0..ranks).collect();
        let mut traffic = Traffic::new(ranks);
        for rank in 0..ranks {
            traffic.add(rank, (rank + 1) % ranks, 100).unwrap();
        }
        let placement = place(&network, &traffic).unwrap();
        is_arrangement(&placement, &network);
        if placement.method == Method::Exact {
            assert_eq!(placement.device_of, order, "{text}");
        }
    }
    let silent = place(&network("ring:12"), &Traffic::new(12)).unwrap();
    assert_eq!((silent.method, silent.after.bottleneck), (Method::AsGiven, None));
    assert_eq!(silent.device_of, (0..12).collect::<Vec<u32>>());
}

/// Every arrangement of few ranks, the plain way.
#[test]
fn no_arrangement_costs_less_than_an_exact_one() {
    fn arrangements(ranks: usize, devices: u32) -> Vec<Vec<u32>> {
        if ranks == 0 {
            return vec![Vec::new()];
        }
        let longer = |shorter: Vec<u32>| {
            let free: Vec<u32> = (0..devices).filter(|device| !shorter.contains(device)).collect();
            free.into_iter().map(move |device| [&shorter[..], &[device]].concat())
        };
        arrangements(ranks - 1, devices).into_iter().flat_map(longer).collect()
    }
    let mut seed = 7u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for text in ["ring:5", "mesh:2x3", "switch:5", "fat-tree:2x3,spines=1"] {
        let network = network(text);
        for _ in 0..5 {
            let mut traffic = Traffic::new(5);
            for _ in 0..8 {
                traffic.add(draw(5) as u32, draw(5) as u32, draw(1000)).unwrap();
            }
            let placement = place(&network, &traffic).unwrap();
            is_arrangement(&placement, &network);
            let all = arrangements(5, network.devices.len() as u32);
            let least = all
                .iter()
                .map(|order| cost(&network, &traffic, order).unwrap().bottleneck_us)
                .fold(f64::MAX, f64::min);
            assert!(placement.after.bottleneck_us <= least * (1.0 + 1e-9), "{text}: {placement:?}, {least}");
        }
    }
}

#[test]
fn b051_ranks_keep_their_numbers_whatever_the_order_of_devices() {
    // Rank r runs on device [2, 0, 3, 1][r]; a placement maps ranks to devices and changes no block.
    let network = network("ring:4");
    let traffic = ring(&[0, 1, 2, 3], 100);
    let pinned = cost(&network, &traffic, &[2, 0, 3, 1]).unwrap();
    assert!(pinned.total_us > cost(&network, &traffic, &[0, 1, 2, 3]).unwrap().total_us);
    assert_eq!(nodes(&network, &[2, 0, 3, 1]), [[0], [1], [2], [3]], "groups are of ranks, in their order");
    let boxes = super::network(TWO_BOXES);
    assert_eq!(nodes(&boxes, &[4, 0, 5, 1]), [vec![0, 2], vec![1, 3]]);
}

#[test]
fn groups_of_ranks_may_differ_in_size() {
    let machine = |name: &str, count: u32| {
        format!(
            "[[machine]]\nname = \"{name}\"\n[[machine.device]]\nname = \"d\"\ncount = {count}\n[[machine.switch]]\nname = \"s\"\n\
             [[machine.link]]\nbetween = [\"d*\", \"s\"]\nbandwidth = \"9GB/s\"\n[[link]]\nbetween = [\"{name}.s\", \"core\"]\nbandwidth = \"1GB/s\"\n"
        )
    };
    let text =
        format!("[[switch]]\nname = \"core\"\n{}{}{}", machine("a", 3), machine("b", 1), machine("c", 2));
    let network = topology(&text).network();
    let order: Vec<u32> = (0..6).collect();
    assert_eq!(nodes(&network, &order), [vec![0, 1, 2], vec![3], vec![4, 5]]);
    assert_eq!(nodes(&network, &order[..4]), [vec![0, 1, 2], vec![3]]);
}

#[test]
fn more_ranks_than_devices_are_refused() {
    let network = network("ring:4");
    let error = place(&network, &Traffic::new(5)).unwrap_err();
    assert_eq!(error, PlaceError::TooFewDevices { ranks: 5, devices: 4 });
    assert!(error.to_string().contains("5 ranks are to be placed, and the topology has 4 devices"));
    let mut traffic = Traffic::new(2);
    assert_eq!(traffic.add(0, 2, 1), Err(PlaceError::NoSuchRank { rank: 2, ranks: 2 }));
    // Fewer ranks than devices take the near ones.
    let mut traffic = Traffic::new(2);
    traffic.add(0, 1, 1000).unwrap();
    let placement = place(&super::network(TWO_BOXES), &traffic).unwrap();
    assert!(placement.device_of.iter().all(|&device| device < 4));
}

#[test]
fn a_thousand_ranks_are_placed_within_bounds() {
    let network = network("dgx-h100:128");
    let order: Vec<u32> = (0..1024).map(|at| at % 128 * 8 + at / 128).collect();
    let traffic = ring(&order, 1 << 20);
    let placement = place(&network, &traffic).unwrap();
    is_arrangement(&placement, &network);
    let (before, after) = [&(0..1024).collect::<Vec<u32>>(), &placement.device_of]
        .map(|order| between_machines(&network, &traffic, order))
        .into();
    assert!(after * 4 < before, "{before} bytes between machines become {after}");
}
