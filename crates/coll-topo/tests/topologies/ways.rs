//! Ways: whole, of fewest links, the same each time; by formula as by search.

use super::{network, topology, way};
use coll_topo::{Network, Shape, Topology};
use std::collections::VecDeque;

/// Fewest wires between two devices, by a search of its own.
fn fewest(topology: &Topology, from: u32, to: u32) -> usize {
    let mut near = vec![Vec::new(); topology.nodes.len()];
    for wire in &topology.wires {
        let [a, b] = wire.ends;
        near[a as usize].push(b);
        near[b as usize].push(a);
    }
    let mut distance = vec![usize::MAX; near.len()];
    distance[from as usize] = 0;
    let mut open = VecDeque::from([from]);
    while let Some(at) = open.pop_front() {
        if at != from && !topology.nodes[at as usize].forwards {
            continue;
        }
        for &next in &near[at as usize] {
            if distance[next as usize] == usize::MAX {
                distance[next as usize] = distance[at as usize] + 1;
                open.push_back(next);
            }
        }
    }
    distance[to as usize]
}

/// Every way is a chain of links from the one to the other.
fn check_chains(topology: &Topology, network: &Network) {
    let devices = topology.devices();
    for from in 0..devices.len() as u32 {
        for to in 0..devices.len() as u32 {
            let links = way(network, from, to);
            if from == to {
                assert!(links.is_empty());
                continue;
            }
            let mut at = network.devices[from as usize].name.clone();
            for link in &links {
                let link = link.split('#').next().expect("it has a name");
                let (here, there) = link.split_once("->").expect("all wires are full duplex");
                assert_eq!(here, at, "{links:?}");
                at = there.to_string();
            }
            assert_eq!(at, network.devices[to as usize].name);
            let least = fewest(topology, devices[from as usize], devices[to as usize]);
            assert_eq!(links.len(), least, "{}: {links:?}", topology.name);
        }
    }
}

#[test]
fn ways_are_whole_and_shortest() {
    for text in [
        "ring:7",
        "ring:8",
        "torus:4x4",
        "torus:3x5",
        "torus:2x2x3",
        "torus:1x4",
        "mesh:3x4",
        "full:5",
        "switch:5",
        "fat-tree:k=2",
        "fat-tree:k=4",
        "fat-tree:3x4,spines=3",
        "fat-tree:1x4",
        "dragonfly:2x3x1",
        "dgx-a100:3",
        "nvswitch:4",
    ] {
        let mut topology = topology(text);
        check_chains(&topology, &topology.network());
        topology.shape = Shape::Searched;
        check_chains(&topology, &topology.network());
    }
}

#[test]
fn grids_go_dimension_by_dimension() {
    let torus = network("torus:4x4");
    assert_eq!(way(&torus, 0, 6), ["host0->host1", "host1->host2", "host2->host6"]);
    assert_eq!(way(&torus, 0, 15), ["host0->host3", "host3->host15"]);
    assert_eq!(way(&network("mesh:4x4"), 0, 3).len(), 3);
}

#[test]
fn trees_spread_receivers_over_their_spines() {
    let tree = network("fat-tree:2x8,spines=4");
    let spines: std::collections::BTreeSet<String> = (8..16).map(|to| way(&tree, 0, to)[1].clone()).collect();
    assert_eq!(spines.len(), 4);
    let tree = network("fat-tree:k=4");
    let cores: std::collections::BTreeSet<String> = (12..16).map(|to| way(&tree, 0, to)[2].clone()).collect();
    assert_eq!(cores.len(), 4, "{cores:?}");
}

#[test]
fn of_equally_short_ways_the_widest_is_taken_and_then_the_first() {
    let text = |wide: &str| {
        let link = |a: &str, b: &str, rate: &str| {
            format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nbandwidth = \"{rate}GB/s\"\n")
        };
        let mut text =
            "[[device]]\nname = \"d\"\ncount = 2\n[[switch]]\nname = \"s\"\ncount = 3\n".to_string();
        for switch in ["s0", "s1", "s2"] {
            let rate = if switch == wide { "2" } else { "1" };
            text += &link("d0", switch, rate);
            text += &link(switch, "d1", rate);
        }
        text
    };
    assert_eq!(way(&network(&text("")), 0, 1), ["d0->s0", "s0->d1"]);
    assert_eq!(way(&network(&text("s1")), 0, 1), ["d0->s1", "s1->d1"]);
    assert_eq!(way(&network(&text("s2")), 1, 0), ["d1->s2", "s2->d0"]);
    // Of parallel wires the widest.
    let parallel = "[[device]]\nname = \"d\"\ncount = 2\n[[link]]\nbetween = [\"d0\", \"d1\"]\nbandwidth = \"1GB/s\"\n\
                    [[link]]\nbetween = [\"d0\", \"d1\"]\nbandwidth = \"2GB/s\"\n";
    assert_eq!(way(&network(parallel), 0, 1), ["d0->d1#2"]);
}

/// Ways to an end are kept from the second question on; nobody can tell.
#[test]
fn what_is_kept_is_what_was_found() {
    let text = "dgx-h100:3";
    let fresh = |from, to| way(&network(text), from, to);
    let kept = network(text);
    for _ in 0..3 {
        for (from, to) in [(0, 1), (0, 9), (8, 1), (23, 1), (1, 23), (2, 23), (7, 23), (16, 23)] {
            assert_eq!(way(&kept, from, to), fresh(from, to));
        }
    }
}

#[test]
fn the_same_question_has_the_same_answer() {
    let (one, other) = (network("dragonfly:2x4x2"), network("dragonfly:2x4x2"));
    assert_eq!(one.links, other.links);
    for from in (0..72).rev() {
        for to in 0..72 {
            assert_eq!(way(&one, from, to), way(&other, 71 - (71 - from), to));
        }
    }
}
