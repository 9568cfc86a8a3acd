//! GOAL and Chakra traces say the plan's messages, sizes and order, and nothing else: both are read back by readers of the
//! tests' own, and every rank's work can be done.

mod support;

use coll_interop::{Sizes, chakra, goal};
use coll_plan::{Action, Plan};
use std::collections::BTreeMap;
use support::{examine, text_of};

/// Real schedules: fused, with dependencies, with scratch, with copies.
const FILES: [&str; 4] = [
    "msccl-xml/msccl-tools-generated/allreduce_ring_p5.xml.gz",
    "msccl-xml/msccl-tools-generated/allreduce_allpairs_v2_p8.xml.gz",
    "msccl-xml/msccl-tools-generated/alltoall_twostep_4x4.xml.gz",
    "mscclpp-json/dsl-generated/allreduce_p2.json.gz",
];

fn plan(name: &str) -> Plan {
    examine(name, &text_of(name)).unwrap_or_else(|told| panic!("{name}: {told:#?}")).plan
}

fn sizes(plan: &Plan) -> Sizes {
    let elements = 3 * 720 + 1;
    Sizes { counts: plan.contract.counts(elements).expect("any count is served"), element_size_bytes: 4 }
}

/// A node of a rank as the tests read it.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Send { peer: u32, tag: u64, bytes: u64 },
    Receive { peer: u32, tag: u64, bytes: u64 },
    Work,
}

/// Each rank's nodes, and for each those that come before.
type Graph = Vec<Vec<(Node, Vec<u64>)>>;

/// Every message has its other side, of the same size; sizes are the plan's; and everything can be done.
fn check(what: &str, plan: &Plan, sizes: &Sizes, graph: &Graph) {
    assert_eq!(graph.len() as u32, plan.world(), "{what}");
    let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
    for (rank, nodes) in (0..).zip(graph) {
        for (node, _) in nodes {
            match *node {
                Node::Send { peer, tag, bytes } => {
                    assert_eq!(sent.insert((rank, peer, tag), bytes), None, "{what}")
                }
                Node::Receive { peer, tag, bytes } => {
                    assert_eq!(received.insert((peer, rank, tag), bytes), None, "{what}");
                }
                Node::Work => {}
            }
        }
    }
    assert_eq!(sent, received, "{what}");
    let mut due = 0;
    for part in &plan.ranks {
        for op in part.ops.iter().filter(|op| matches!(op.action, Action::Send { .. })) {
            let elements = part.regions(op.source).iter().map(|region| {
                let count = sizes.counts[region.class as usize];
                plan.cuts[region.high as usize].of(count) - plan.cuts[region.low as usize].of(count)
            });
            let bytes = elements.sum::<u64>() * sizes.element_size_bytes;
            // Neither form has a message without a byte.
            due += bytes.max(1);
        }
    }
    assert_eq!(sent.values().sum::<u64>(), due, "{what}");
    ends(what, graph);
}

/// Takes whatever can be taken until nothing is left.
fn ends(what: &str, graph: &Graph) {
    let mut done: Vec<Vec<bool>> = graph.iter().map(|nodes| vec![false; nodes.len()]).collect();
    let mut on_the_way = std::collections::BTreeSet::new();
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for (rank, nodes) in graph.iter().enumerate() {
            for (at, (node, after)) in nodes.iter().enumerate() {
                let is_ready = !done[rank][at] && after.iter().all(|&id| done[rank][id as usize]);
                let arrives = match *node {
                    Node::Receive { peer, tag, .. } => on_the_way.contains(&(peer, rank as u32, tag)),
                    _ => true,
                };
                if is_ready && arrives {
                    if let Node::Send { peer, tag, .. } = *node {
                        on_the_way.insert((rank as u32, peer, tag));
                    }
                    done[rank][at] = true;
                    moved = true;
                }
            }
        }
    }
    assert!(done.iter().flatten().all(|&done| done), "{what}: it stops");
}

fn read_goal(text: &str) -> Graph {
    let mut graph: Graph = Vec::new();
    let mut lines = text.lines();
    let ranks: usize = lines
        .next()
        .and_then(|line| line.strip_prefix("num_ranks "))
        .expect("a head")
        .parse()
        .expect("a number");
    for line in lines.filter(|line| !line.is_empty() && *line != "}") {
        if let Some(rank) = line.strip_prefix("rank ") {
            assert_eq!(rank, format!("{} {{", graph.len()));
            graph.push(Vec::new());
            continue;
        }
        let nodes = graph.last_mut().expect("a rank");
        let number = |text: &str| text.trim_start_matches('l').parse::<u64>().expect("a label");
        if let Some((later, earlier)) = line.split_once(" requires ") {
            nodes[number(later) as usize].1.push(number(earlier));
            continue;
        }
        let (label, work) = line.split_once(": ").expect("a label");
        assert_eq!(number(label), nodes.len() as u64);
        let words: Vec<&str> = work.split(' ').collect();
        let node = match words[..] {
            ["send", bytes, "to", peer, "tag", tag] => Node::Send {
                peer: peer.parse().expect("a rank"),
                tag: tag.parse().expect("a tag"),
                bytes: bytes.trim_end_matches('b').parse().expect("bytes"),
            },
            ["recv", bytes, "from", peer, "tag", tag] => Node::Receive {
                peer: peer.parse().expect("a rank"),
                tag: tag.parse().expect("a tag"),
                bytes: bytes.trim_end_matches('b').parse().expect("bytes"),
            },
            ["calc", ns] => {
                ns.parse::<u64>().expect("nanoseconds");
                Node::Work
            }
            _ => panic!("{line}"),
        };
        nodes.push((node, Vec::new()));
    }
    assert_eq!(graph.len(), ranks);
    graph
}

/// A field of a message: its number, and a number or bytes.
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let size = varint(&mut bytes) as usize;
                let (one, rest) = bytes.split_at(size);
                bytes = rest;
                Field::Bytes(one)
            }
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, field));
    }
    all
}

fn read_chakra(mut trace: &[u8]) -> Vec<(Node, Vec<u64>)> {
    let mut messages = Vec::new();
    while !trace.is_empty() {
        let size = varint(&mut trace) as usize;
        let (message, rest) = trace.split_at(size);
        messages.push(message);
        trace = rest;
    }
    let version = fields(messages[0]);
    assert!(matches!(version[..], [(1, Field::Bytes(_))]), "the metadata names a version");
    let node = |(id, message): (u64, &&[u8])| {
        let (mut kind, mut after, mut attributes) = (0, Vec::new(), BTreeMap::new());
        for (number, field) in fields(message) {
            match (number, field) {
                (1, Field::Number(found)) => assert_eq!(found, id),
                (2, Field::Bytes(name)) => assert!(std::str::from_utf8(name).is_ok()),
                (3, Field::Number(found)) => kind = found,
                (5, Field::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        after.push(varint(&mut packed));
                    }
                }
                (10, Field::Bytes(attribute)) => match &fields(attribute)[..] {
                    [(1, Field::Bytes(name)), (_, Field::Number(value))] => {
                        attributes.insert(String::from_utf8_lossy(name).into_owned(), *value);
                    }
                    _ => panic!("an attribute of another form"),
                },
                (other, _) => panic!("field {other}"),
            }
        }
        let of = |name: &str| attributes[name];
        let node = match kind {
            4 => Node::Work,
            5 => Node::Send { peer: of("comm_dst") as u32, tag: of("comm_tag"), bytes: of("comm_size") },
            6 => Node::Receive { peer: of("comm_src") as u32, tag: of("comm_tag"), bytes: of("comm_size") },
            other => panic!("a node of type {other}"),
        };
        (node, after)
    };
    (0..).zip(&messages[1..]).map(node).collect()
}

#[test]
fn goal_says_what_the_plan_does() {
    for name in FILES {
        let plan = plan(name);
        let sizes = sizes(&plan);
        let text = goal::write(&plan, &sizes).expect("it is whole");
        check(&format!("goal of {name}"), &plan, &sizes, &read_goal(&text));
    }
}

#[test]
fn chakra_traces_say_what_the_plan_does() {
    for name in FILES {
        let plan = plan(name);
        let sizes = sizes(&plan);
        let traces = chakra::write(&plan, &sizes).expect("it is whole");
        let graph = traces.iter().map(|trace| read_chakra(trace)).collect();
        check(&format!("chakra of {name}"), &plan, &sizes, &graph);
    }
}

#[test]
fn one_ranks_part_is_refused() {
    let plan = plan(FILES[0]);
    let sizes = sizes(&plan);
    let part = plan.slice(1).expect("it has a rank 1");
    let code = coll_interop::codes::INEXPRESSIBLE;
    assert_eq!(goal::write(&part, &sizes).expect_err("a part").code, code);
    assert_eq!(chakra::write(&part, &sizes).expect_err("a part").code, code);
    assert_eq!(coll_interop::msccl::write(&part, &Default::default()).expect_err("a part").code, code);
}
