//! Ways that are searched for.
//!
//! A tree of ways to one node is found by going backwards from it, level by level, and kept: most ways that are asked for
//! share their ends. Devices that hang on one node have that node's ways, so trees are of the other nodes alone; with them
//! ten thousand hosts on a thousand switches have a thousand small trees. Trees that would take too much room are forgotten and
//! found again.

use super::graph::Graph;
use crate::network::{Link, LinkId, Routes};
use crate::topology::Topology;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// So many steps of trees are kept.
const KEPT_MAX: usize = 16 << 20;
/// No step.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Searched {
    graph: Graph,
    /// Steps into each node: where from, over which link.
    into: Vec<Vec<(u32, LinkId)>>,
    widths: Vec<f64>,
    forwards: Vec<bool>,
    /// Each device's node.
    devices: Vec<u32>,
    /// The only neighbour of a node that has one, if that passes things on.
    hangs_on: Vec<u32>,
    /// Places of nodes that do not hang on another, in trees.
    places: Vec<u32>,
    inner: usize,
    trees: Mutex<Trees>,
}

/// For each inner node the link of the first step, and where it leads.
type Tree = Arc<Vec<(LinkId, u32)>>;

#[derive(Debug, Default)]
struct Trees {
    by_end: HashMap<u32, Tree>,
    /// Ends that were asked for once.
    asked: HashSet<u32>,
    kept: usize,
}

impl Searched {
    pub(super) fn new(topology: &Topology, graph: Graph, links: &[Link], devices: Vec<u32>) -> Searched {
        let count = graph.len();
        let mut into = vec![Vec::new(); count];
        for from in 0..count as u32 {
            for step in graph.out(from) {
                into[step.to as usize].push((from, step.link));
            }
        }
        let forwards: Vec<bool> = topology.nodes.iter().map(|node| node.forwards).collect();
        let hangs_on: Vec<u32> = (0..count as u32)
            .map(|node| {
                let mut near = graph.out(node).iter().map(|step| step.to);
                let mut near = near.by_ref().chain(into[node as usize].iter().map(|&(from, _)| from));
                let Some(first) = near.next() else { return NONE };
                // Of two nodes that hang on each other neither may be left out of the trees.
                let other = &graph.out(first);
                let is_alone = near.all(|other| other == first);
                let is_pair = other.iter().all(|step| step.to == node);
                if is_alone && !is_pair && forwards[first as usize] { first } else { NONE }
            })
            .collect();
        let mut places = vec![NONE; count];
        let mut inner = 0;
        for node in (0..count).filter(|&node| hangs_on[node] == NONE) {
            places[node] = inner;
            inner += 1;
        }
        Searched {
            widths: links.iter().map(|link| link.bytes_per_us).collect(),
            trees: Mutex::new(Trees::default()),
            inner: inner as usize,
            graph,
            into,
            forwards,
            devices,
            hangs_on,
            places,
        }
    }

    /// The tree of ways to an inner node, as far as it is needed for the way from another. It is whole and kept from the second
    /// time on that its end is asked for: many ends are asked for by one neighbour only.
    fn tree(&self, end: u32, from: u32) -> Tree {
        // A tree is whole before it is kept, so a panic elsewhere leaves none damaged.
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = trees.by_end.get(&end) {
            return tree.clone();
        }
        if trees.asked.insert(end) {
            drop(trees);
            return Arc::new(self.grow(end, Some(from)));
        }
        let tree = Arc::new(self.grow(end, None));
        if trees.kept + self.inner > KEPT_MAX {
            *trees = Trees::default();
        }
        trees.kept += self.inner;
        trees.by_end.insert(end, tree.clone());
        tree
    }

    /// Goes backwards from the end, as far as to a node if one is given. A node's step is settled when all nodes that are one
    /// wire nearer are.
    fn grow(&self, end: u32, until: Option<u32>) -> Vec<(LinkId, u32)> {
        let mut tree = vec![(NONE, NONE); self.inner];
        let mut width = vec![0.0f64; self.inner];
        let mut level_of = vec![NONE; self.inner];
        let place = |node: u32| self.places[node as usize] as usize;
        width[place(end)] = f64::INFINITY;
        level_of[place(end)] = 0;
        let mut level = vec![end];
        let mut distance = 0;
        while !level.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for &node in &level {
                // What does not pass things on is the end of a way or its beginning.
                if node != end && !self.forwards[node as usize] {
                    continue;
                }
                let limit = match self.graph.limit(node) {
                    Some(limit) if node != end => self.widths[limit as usize],
                    _ => f64::INFINITY,
                };
                let beyond = width[place(node)].min(limit);
                for &(from, link) in &self.into[node as usize] {
                    if self.places[from as usize] == NONE {
                        continue;
                    }
                    let at = place(from);
                    if level_of[at] == NONE {
                        level_of[at] = distance;
                        next.push(from);
                    } else if level_of[at] != distance {
                        continue;
                    }
                    let wide = self.widths[link as usize].min(beyond);
                    if tree[at].0 == NONE || wide > width[at] || (wide == width[at] && link < tree[at].0) {
                        width[at] = wide;
                        tree[at] = (link, node);
                    }
                }
            }
            if until.is_some_and(|node| level_of[place(node)] != NONE) {
                break;
            }
            level = next;
        }
        tree
    }
}

impl Routes for Searched {
    fn route(&self, from: u32, to: u32, way: &mut Vec<LinkId>) {
        way.clear();
        if from == to {
            return;
        }
        let [from, to] = [from, to].map(|device| self.devices[device as usize]);
        self.graph.begin(from, way);
        if let Some(link) = self.graph.link(from, to) {
            self.graph.follow(link, to, way);
            return;
        }
        let near = |node: u32| Some(self.hangs_on[node as usize]).filter(|&on| on != NONE);
        let mut at = from;
        if let Some(on) = near(from) {
            self.graph.step(from, on, way);
            at = on;
        }
        let end = near(to).unwrap_or(to);
        let tree = if at == end { None } else { Some(self.tree(end, at)) };
        while at != end
            && let Some(tree) = &tree
        {
            let (link, next) = tree[self.places[at as usize] as usize];
            // A topology has a way between any two devices; without one it would be none.
            if link == NONE {
                way.clear();
                return;
            }
            self.graph.follow(link, next, way);
            at = next;
        }
        if end != to {
            self.graph.step(end, to, way);
        }
    }
}
