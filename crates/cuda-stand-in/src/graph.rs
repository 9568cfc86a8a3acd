//! Graphs: captured work that is launched as one. Each stream that was captured becomes a branch with a queue of its own, so
//! that a graph's branches run in any order that its edges allow, and race where these leave it open.

use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::stream::Role;
use crate::work::{Record, Work};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One thing to do.
#[derive(Debug)]
pub(crate) struct Node {
    /// The stream that it was captured in.
    pub(crate) stream: u64,
    pub(crate) context: u64,
    /// That stream, for reports.
    pub(crate) label: String,
    pub(crate) work: Work,
    /// Nodes before it, by their places.
    pub(crate) after: Vec<usize>,
}

/// What was captured.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Arc<Vec<Node>>,
}

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct Launchable {
    nodes: Arc<Vec<Node>>,
    /// For each stream that was captured, the branch that does its work.
    branches: BTreeMap<u64, u64>,
    /// The end of its latest launch; the next one comes after it.
    last: Option<Arc<Record>>,
}

impl Launchable {
    /// What it does.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}

impl Driver {
    /// Makes a graph one that can be launched.
    pub(crate) fn instantiate(&mut self, graph: u64, flags: u64) -> Answer<u64> {
        let Some(graph) = self.graphs.get(&graph) else {
            return Err(self.wrong(Code::INVALID_VALUE, format!("{graph:#x} is no graph")));
        };
        let nodes = graph.nodes.clone();
        // Of these, launches from devices cannot be, and one that frees memory frees nothing here.
        const AUTO_FREE: u64 = 1;
        const UPLOAD: u64 = 2;
        const USE_NODE_PRIORITY: u64 = 8;
        if flags & !(AUTO_FREE | UPLOAD | USE_NODE_PRIORITY) != 0 {
            let text = format!("flags {flags:#x}: graphs are not launched from devices here");
            return Err(self.wrong(Code::INVALID_VALUE, text));
        }
        let handle = self.handle();
        let mut branches = BTreeMap::new();
        for node in nodes.iter() {
            if branches.contains_key(&node.stream) {
                continue;
            }
            let branch = self.create_stream(node.context, Role::Branch, 0)?;
            let label = format!("{} as captured in graph {handle:#x}", node.label);
            self.streams.entry(branch).and_modify(|stream| stream.label = label);
            branches.insert(node.stream, branch);
        }
        self.launchables.insert(handle, Launchable { nodes, branches, last: None });
        Ok(handle)
    }

    /// Enqueues all of a graph in a stream.
    pub(crate) fn launch_graph(&mut self, handle: u64, stream: u64) -> Answer {
        let Some(graph) = self.launchables.get(&handle) else {
            return Err(
                self.wrong(Code::INVALID_VALUE, format!("{handle:#x} is no graph that can be launched"))
            );
        };
        let (nodes, branches, last) = (graph.nodes.clone(), graph.branches.clone(), graph.last.clone());
        if let Some(capture) = self.streams[&stream].capture {
            self.invalidate(capture);
            let text = "a graph within a graph is not captured by the stand-in";
            return Err(self.wrong(Code::STREAM_CAPTURE_UNSUPPORTED, text));
        }
        self.may_enqueue(stream)?;
        self.order_with_default(stream);
        if let Some(last) = last {
            self.push(stream, Work::Wait(last));
        }
        let start = self.mark(stream);
        branches.values().for_each(|&branch| self.push(branch, Work::Wait(start.clone())));
        let mut records: Vec<Option<Arc<Record>>> = vec![None; nodes.len()];
        for (place, node) in nodes.iter().enumerate() {
            let branch = branches[&node.stream];
            for &before in node.after.iter().filter(|&&before| nodes[before].stream != node.stream) {
                if let Some(record) = records[before].clone() {
                    self.push(branch, Work::Wait(record));
                }
            }
            self.push(branch, node.work.clone());
            let heard = |later: &Node| later.stream != node.stream && later.after.contains(&place);
            let ends = !nodes.iter().any(|later| later.after.contains(&place));
            if ends || nodes.iter().any(heard) {
                records[place] = Some(self.mark(branch));
            }
            if ends && let Some(record) = records[place].clone() {
                self.push(stream, Work::Wait(record));
            }
        }
        // A launch counts as work of the stream, for stream 0 to wait for.
        let end = Arc::new(Record::default());
        self.enqueue(stream, Work::Record(end.clone()))?;
        if let Some(graph) = self.launchables.get_mut(&handle) {
            graph.last = Some(end);
        }
        self.stats.graph_launches += 1;
        Ok(())
    }

    /// The end of a graph that could be launched. What was launched is still done.
    pub(crate) fn destroy_launchable(&mut self, handle: u64) -> Answer {
        let Some(graph) = self.launchables.remove(&handle) else {
            return Err(
                self.wrong(Code::INVALID_VALUE, format!("{handle:#x} is no graph that can be launched"))
            );
        };
        for branch in graph.branches.into_values() {
            self.streams.entry(branch).and_modify(|stream| stream.dying = true);
            self.bury(branch);
        }
        Ok(())
    }
}
