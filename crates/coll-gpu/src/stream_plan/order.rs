//! One order in which all operations of all ranks may be put on streams, and which messages meet.
//!
//! A send has two ends: when its source is ready, and when the receiver has read it. Among operations that may go, the one
//! of the earliest step goes first, then that of the lowest rank: streams then fill side by side.

use super::StreamPlanError;
use coll_exec::{Act, Link, Outline};
use coll_plan::OpId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// An operation of a rank.
pub(super) type At = (u32, OpId);

/// Operations in order, each once: a send where it becomes ready.
pub(super) struct Order {
    pub(super) ops: Vec<At>,
    /// For each rank and operation, what it meets: a send its receive, a receive its send.
    meets: Vec<Vec<Option<At>>>,
    /// For each rank and operation, the message `slots` before that of a send, as its receive: its slot is free then.
    frees: Vec<Vec<Option<At>>>,
    /// For each rank and operation, the one before it in its lane.
    before: Vec<Vec<Option<OpId>>>,
    /// For each rank and operation, the one before it on its side of its link.
    ahead: Vec<Vec<Option<OpId>>>,
}

impl Order {
    pub(super) fn new(outlines: &[Outline]) -> Result<Order, StreamPlanError> {
        let mut order = Order::empty(outlines);
        order.pair(outlines)?;
        order.lanes(outlines);
        order.sort(outlines)?;
        Ok(order)
    }

    /// The operation on the other end of a message.
    pub(super) fn meets(&self, (rank, op): At) -> Option<At> {
        self.meets[rank as usize][op as usize]
    }

    /// The receive after which a send's slot is free.
    pub(super) fn frees(&self, (rank, op): At) -> Option<At> {
        self.frees[rank as usize][op as usize]
    }

    /// Operations of the rank itself that must be done before one begins.
    pub(super) fn own(&self, outlines: &[Outline], (rank, op): At) -> impl Iterator<Item = OpId> {
        let waits = outlines[rank as usize].ops[op as usize].waits.clone();
        let lane = self.before[rank as usize][op as usize];
        waits.into_iter().chain(lane).chain(self.ahead[rank as usize][op as usize])
    }

    fn empty(outlines: &[Outline]) -> Order {
        let none = || outlines.iter().map(|outline| vec![None; outline.ops.len()]).collect::<Vec<_>>();
        let before = outlines.iter().map(|outline| vec![None; outline.ops.len()]).collect::<Vec<_>>();
        Order { ops: Vec::new(), meets: none(), frees: none(), ahead: before.clone(), before }
    }

    fn lanes(&mut self, outlines: &[Outline]) {
        for (rank, outline) in outlines.iter().enumerate() {
            for lane in &outline.lanes {
                for op in lane.clone().skip(1) {
                    self.before[rank][op as usize] = Some(op - 1);
                }
            }
        }
    }

    /// The nth send of a link meets its nth receive.
    fn pair(&mut self, outlines: &[Outline]) -> Result<(), StreamPlanError> {
        // By sender, receiver, channel.
        let (mut sends, mut receives) = (BTreeMap::new(), BTreeMap::new());
        for outline in outlines {
            for (op, operation) in (0..).zip(&outline.ops) {
                let (side, key) = match operation.act {
                    Act::Send { link: Link { peer, channel }, .. } => {
                        (&mut sends, (outline.rank, peer, channel))
                    }
                    Act::Receive { link: Link { peer, channel }, .. } => {
                        (&mut receives, (peer, outline.rank, channel))
                    }
                    Act::Copy | Act::Reduce(_) => continue,
                };
                let messages: &mut Vec<At> = side.entry(key).or_default();
                self.ahead[outline.rank as usize][op as usize] = messages.last().map(|&(_, op)| op);
                messages.push((outline.rank, op));
            }
        }
        let slots = outlines[0].slots as usize;
        let count = |side: &BTreeMap<_, Vec<At>>, key| side.get(key).map_or(0, Vec::len);
        for key in sends.keys().chain(receives.keys()) {
            let (sent, received) = (count(&sends, key), count(&receives, key));
            if sent != received {
                let (from, to, channel) = key;
                let what = format!(
                    "rank {from} sends {sent} messages to rank {to} on channel {channel}, which receives {received}"
                );
                return Err(StreamPlanError::Unlike { what });
            }
        }
        for (key, sent) in &sends {
            let received = &receives[key];
            for (number, (&send, &receive)) in sent.iter().zip(received).enumerate() {
                let bytes = |(rank, op): At| outlines[rank as usize].ops[op as usize].bytes;
                if bytes(send) != bytes(receive) {
                    let what = format!(
                        "rank {} sends {} B, and rank {} expects {} B",
                        send.0,
                        bytes(send),
                        receive.0,
                        bytes(receive)
                    );
                    return Err(StreamPlanError::Unlike { what });
                }
                self.meets[send.0 as usize][send.1 as usize] = Some(receive);
                self.meets[receive.0 as usize][receive.1 as usize] = Some(send);
                if slots > 0 && number >= slots {
                    self.frees[send.0 as usize][send.1 as usize] = Some(received[number - slots]);
                }
            }
        }
        Ok(())
    }

    /// Kahn's algorithm. A node is an operation; of a send that waits for its receive there is one more for its end.
    fn sort(&mut self, outlines: &[Outline]) -> Result<(), StreamPlanError> {
        let slots = outlines[0].slots;
        let firsts: Vec<usize> = outlines
            .iter()
            .scan(0, |next, outline| Some(std::mem::replace(next, *next + outline.ops.len())))
            .collect();
        let total: usize = outlines.iter().map(|outline| outline.ops.len()).sum();
        let begin = |(rank, op): At| firsts[rank as usize] + op as usize;
        let is_send = |(rank, op): At| {
            slots == 0 && matches!(outlines[rank as usize].ops[op as usize].act, Act::Send { .. })
        };
        let end = |at: At| begin(at) + if is_send(at) { total } else { 0 };
        let mut graph = Graph::new(2 * total);
        let all = || {
            let ops = |outline: &Outline| (0..outline.ops.len() as OpId).collect::<Vec<_>>();
            outlines.iter().flat_map(move |outline| ops(outline).into_iter().map(|op| (outline.rank, op)))
        };
        for at in all() {
            self.own(outlines, at).for_each(|op| graph.edge(end((at.0, op)), begin(at)));
            if is_send(at) {
                graph.edge(begin(at), end(at));
                self.meets(at).into_iter().for_each(|receive| graph.edge(begin(receive), end(at)));
            } else if let (Act::Receive { .. }, Some(send)) =
                (outlines[at.0 as usize].ops[at.1 as usize].act, self.meets(at))
            {
                graph.edge(begin(send), begin(at));
            }
            self.frees(at).into_iter().for_each(|receive| graph.edge(begin(receive), begin(at)));
        }
        let of_node: Vec<At> = all().collect();
        let key = |node: usize| {
            let (rank, op) = of_node[node % total.max(1)];
            (outlines[rank as usize].ops[op as usize].step, rank, op, node >= total)
        };
        let is_node = |node: usize| node < total || is_send(of_node[node - total]);
        let mut ready: BinaryHeap<_> = (0..2 * total)
            .filter(|&node| is_node(node) && graph.missing[node] == 0)
            .map(|node| Reverse((key(node), node)))
            .collect();
        while let Some(Reverse((_, node))) = ready.pop() {
            if node < total {
                self.ops.push(of_node[node]);
            }
            for next in std::mem::take(&mut graph.next[node]) {
                graph.missing[next] -= 1;
                if graph.missing[next] == 0 {
                    ready.push(Reverse((key(next), next)));
                }
            }
        }
        if self.ops.len() == total {
            return Ok(());
        }
        let stuck = (0..total).filter(|&node| graph.missing[node] > 0).min_by_key(|&node| key(node));
        let (rank, op) = stuck.map_or((0, 0), |node| of_node[node]);
        let place = outlines[rank as usize].place(op);
        let waits = place.map_or_else(String::new, |place| format!("rank {rank}, {place}"));
        Err(StreamPlanError::Stuck { name: outlines[0].name.clone(), waits, slots })
    }
}

struct Graph {
    next: Vec<Vec<usize>>,
    missing: Vec<u32>,
}

impl Graph {
    fn new(nodes: usize) -> Graph {
        Graph { next: vec![Vec::new(); nodes], missing: vec![0; nodes] }
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.next[from].push(to);
        self.missing[to] += 1;
    }
}
