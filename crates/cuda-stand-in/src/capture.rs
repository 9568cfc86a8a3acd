//! Captures: what is enqueued to a stream becomes a graph instead of being done, and so does what is enqueued to streams that
//! wait for events recorded in it.

use crate::code::{Answer, Code};
use crate::driver::{Driver, thread};
use crate::graph::{Graph, Node};
use crate::stream::Role;
use crate::work::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which calls are refused meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Global,
    ThreadLocal,
    Relaxed,
}

/// A capture that is under way.
#[derive(Debug)]
pub(crate) struct Capture {
    origin: u64,
    thread: usize,
    mode: Mode,
    nodes: Vec<Node>,
    /// For each stream that is part of it, the nodes that what comes next comes after.
    ends: BTreeMap<u64, Vec<usize>>,
    /// It cannot be ended well any more.
    broken: bool,
}

impl Driver {
    /// From now on the stream is captured.
    pub(crate) fn begin_capture(&mut self, stream: u64, mode: u32) -> Answer {
        let mode = match mode {
            0 => Mode::Global,
            1 => Mode::ThreadLocal,
            2 => Mode::Relaxed,
            _ => return Err(self.wrong(Code::INVALID_VALUE, format!("there is no capture mode {mode}"))),
        };
        if self.streams[&stream].role == Role::Default {
            return Err(self.wrong(Code::STREAM_CAPTURE_UNSUPPORTED, "stream 0 cannot be captured"));
        }
        if self.streams[&stream].capture.is_some() {
            return Err(self.wrong(Code::ILLEGAL_STATE, "the stream is being captured already"));
        }
        let handle = self.handle();
        let ends = BTreeMap::from([(stream, Vec::new())]);
        let capture =
            Capture { origin: stream, thread: thread(), mode, nodes: Vec::new(), ends, broken: false };
        self.captures.insert(handle, capture);
        self.streams.entry(stream).and_modify(|stream| stream.capture = Some(handle));
        Ok(())
    }

    /// The graph of what was captured since.
    pub(crate) fn end_capture(&mut self, stream: u64) -> Answer<u64> {
        let Some(handle) = self.streams[&stream].capture else {
            return Err(self.wrong(Code::ILLEGAL_STATE, "the stream is not being captured"));
        };
        let capture = self.capture(handle)?;
        if capture.origin != stream {
            capture.broken = true;
            let text = "the capture began in another stream";
            return Err(self.wrong(Code::STREAM_CAPTURE_UNMATCHED, text));
        }
        if capture.mode != Mode::Relaxed && capture.thread != thread() {
            let text = "the capture was begun by another thread";
            return Err(self.wrong(Code::STREAM_CAPTURE_WRONG_THREAD, text));
        }
        let Some(capture) = self.captures.remove(&handle) else { return Err(Code::UNKNOWN) };
        for stream in capture.ends.keys() {
            self.streams.entry(*stream).and_modify(|stream| stream.capture = None);
        }
        if capture.broken {
            return Err(self.wrong(Code::STREAM_CAPTURE_INVALIDATED, "an error broke the capture"));
        }
        let joined = ancestors(&capture.nodes, &capture.ends[&stream]);
        let left = (0..capture.nodes.len()).find(|node| !joined.contains(node));
        if let Some(left) = left {
            let node = &capture.nodes[left];
            let label = self.streams.get(&node.stream).map_or("a stream", |stream| stream.label.as_str());
            let text =
                format!("{} in {label} is not waited for by the stream that ends it", node.work.told());
            return Err(self.wrong(Code::STREAM_CAPTURE_UNJOINED, text));
        }
        let graph = self.handle();
        self.graphs.insert(graph, Graph { nodes: Arc::new(capture.nodes) });
        Ok(graph)
    }

    fn capture(&mut self, handle: u64) -> Answer<&mut Capture> {
        self.captures.get_mut(&handle).ok_or(Code::STREAM_CAPTURE_INVALIDATED)
    }

    /// Nothing comes of a capture any more.
    pub(crate) fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.broken = true;
        }
    }

    /// The end of a capture whose streams go.
    pub(crate) fn abandon(&mut self, capture: u64) {
        let Some(Capture { ends, .. }) = self.captures.remove(&capture) else { return };
        for stream in ends.keys() {
            self.streams.entry(*stream).and_modify(|stream| stream.capture = None);
        }
    }

    /// Whether a capture was broken.
    pub(crate) fn is_broken(&self, capture: u64) -> bool {
        self.captures.get(&capture).is_none_or(|capture| capture.broken)
    }

    /// What comes next in a stream of a capture comes after these nodes.
    pub(crate) fn ends_of(&mut self, capture: u64, stream: u64) -> Answer<Vec<usize>> {
        if self.is_broken(capture) {
            return Err(self.wrong(Code::STREAM_CAPTURE_INVALIDATED, "an error broke the capture"));
        }
        Ok(self.capture(capture)?.ends.get(&stream).cloned().unwrap_or_default())
    }

    /// Work of a stream that is captured.
    pub(crate) fn add_to_capture(&mut self, handle: u64, stream: u64, work: Work) -> Answer {
        let after = self.ends_of(handle, stream)?;
        if matches!(work, Work::Allocate { .. } | Work::Free { .. }) {
            self.invalidate(handle);
            let text = "memory in the order of a stream is not captured by the stand-in";
            return Err(self.wrong(Code::STREAM_CAPTURE_UNSUPPORTED, text));
        }
        let context = self.streams[&stream].context;
        let label = self.streams[&stream].label.clone();
        let capture = self.capture(handle)?;
        capture.nodes.push(Node { stream, context, label, work, after });
        let node = capture.nodes.len() - 1;
        capture.ends.insert(stream, vec![node]);
        Ok(())
    }

    /// A stream waits for an event that was recorded in a capture, and is part of it from now on.
    pub(crate) fn join_capture(&mut self, handle: u64, stream: u64, nodes: Vec<usize>) -> Answer {
        match self.streams[&stream].capture {
            _ if !self.captures.contains_key(&handle) => {
                let text = "the event was recorded in a capture that has ended";
                return Err(self.wrong(Code::CAPTURED_EVENT, text));
            }
            Some(other) if other != handle => {
                self.invalidate(other);
                self.invalidate(handle);
                let text = "the event was recorded in another capture";
                return Err(self.wrong(Code::STREAM_CAPTURE_MERGE, text));
            }
            None if self.streams[&stream].role == Role::Default => {
                self.invalidate(handle);
                return Err(self.wrong(Code::STREAM_CAPTURE_IMPLICIT, "stream 0 cannot be captured"));
            }
            _ => {}
        }
        self.streams.entry(stream).and_modify(|stream| stream.capture = Some(handle));
        let ends = self.capture(handle)?.ends.entry(stream).or_default();
        ends.extend(nodes);
        ends.sort_unstable();
        ends.dedup();
        Ok(())
    }

    /// An error if a call that may wait for streams is made while this thread captures in a mode that refuses it.
    pub(crate) fn no_capture_minds(&mut self) -> Answer {
        let minds = |capture: &Capture| match capture.mode {
            Mode::Global => true,
            Mode::ThreadLocal => capture.thread == thread(),
            Mode::Relaxed => false,
        };
        let Some((&handle, _)) = self.captures.iter().find(|(_, capture)| minds(capture)) else {
            return Ok(());
        };
        self.invalidate(handle);
        Err(self.wrong(Code::STREAM_CAPTURE_UNSUPPORTED, "a stream is being captured"))
    }
}

/// All that comes before some nodes, themselves included.
fn ancestors(nodes: &[Node], ends: &[usize]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = ends.to_vec();
    while let Some(node) = open.pop() {
        if found.insert(node) {
            open.extend(&nodes[node].after);
        }
    }
    found
}
