//! The operations of all ranks in one table: what each moves, what each sets off, and which send meets which receive.

use crate::SimError;
use coll_plan::{Action, Op, Plan, RankPlan, Region};
use rustc_hash::FxHashMap;

/// No operation, no rank.
pub(crate) const NONE: u32 = u32::MAX;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Send,
    Recv,
    RecvReduce,
    Copy,
    Reduce,
}

/// A plan's parts, one for each rank in order, each with the plan that its tables belong to: the whole, or slices.
pub(crate) struct Parts<'p>(Vec<(&'p Plan, &'p RankPlan)>);

impl<'p> Parts<'p> {
    /// All ranks' parts of a whole plan or of as many slices as there are ranks.
    pub(crate) fn new(plans: &[&'p Plan]) -> Result<Parts<'p>, SimError> {
        let mut parts: Vec<_> =
            plans.iter().flat_map(|plan| plan.ranks.iter().map(move |part| (*plan, part))).collect();
        parts.sort_by_key(|(_, part)| part.rank);
        let world = plans.first().map_or(0, |plan| plan.world());
        let complete = parts.iter().map(|(_, part)| part.rank).eq(0..world);
        match complete && world > 0 {
            true => Ok(Parts(parts)),
            false => Err(SimError::NotWhole { found: parts.len() as u32, world }),
        }
    }

    /// A plan that tells what all have in common.
    pub(crate) fn lead(&self) -> &'p Plan {
        self.0[0].0
    }

    /// A rank's part.
    pub(crate) fn part(&self, rank: u32) -> &'p RankPlan {
        self.0[rank as usize].1
    }

    /// The plan that a rank's part belongs to.
    pub(crate) fn plan(&self, rank: u32) -> &'p Plan {
        self.0[rank as usize].0
    }

    /// The source line of an operation.
    pub(crate) fn line(&self, rank: u32, op: &Op) -> Option<&'p coll_plan::Line> {
        self.0[rank as usize].0.lines.get(op.line as usize)
    }

    pub(crate) fn world(&self) -> u32 {
        self.0.len() as u32
    }
}

/// All operations.
pub(crate) struct Table {
    /// Where each rank's operations begin, and the end of all.
    pub(crate) bases: Vec<u32>,
    pub(crate) kinds: Vec<Kind>,
    /// Elements that each moves.
    pub(crate) elements: Vec<u64>,
    /// The other end of a message.
    pub(crate) partners: Vec<u32>,
    /// For messages: the connection, and the place of the message on it.
    pub(crate) places: Vec<(u32, u32)>,
    /// Operations that each waits for.
    pub(crate) missing: Vec<u32>,
    /// For each send that follows a receive byte by byte, that receive; empty if none does.
    pub(crate) leaders: FxHashMap<u32, u32>,
    /// For each receive that is followed, its followers.
    pub(crate) followers: FxHashMap<u32, Vec<u32>>,
    starts: Vec<u32>,
    next: Vec<u32>,
    /// Connections in the order in which they first appear.
    pub(crate) connections: Vec<Connection>,
    /// Scratch of the rank that has most, in elements.
    pub(crate) scratch_max: u64,
}

/// One way of one channel between two ranks.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) sends: Vec<u32>,
    receives: Vec<u32>,
}

impl Table {
    /// The table for so many elements of the sized buffer. With `stream`, a send may follow a receive byte by byte where the plan says
    /// so; without, it waits for the receive's end.
    pub(crate) fn new(parts: &Parts, elements: u64, stream: bool) -> Result<Table, SimError> {
        let count: usize = (0..parts.world()).map(|rank| parts.part(rank).ops.len()).sum();
        if count >= NONE as usize {
            return Err(SimError::TooManyOps { found: count as u64 });
        }
        let mut table = Table {
            bases: vec![0],
            kinds: Vec::with_capacity(count),
            elements: Vec::with_capacity(count),
            partners: vec![NONE; count],
            places: vec![(NONE, NONE); count],
            missing: vec![0; count],
            leaders: FxHashMap::default(),
            followers: FxHashMap::default(),
            starts: vec![0; count + 1],
            next: Vec::new(),
            connections: Vec::new(),
            scratch_max: 0,
        };
        let mut known: FxHashMap<(u32, u32, u32), u32> = FxHashMap::default();
        let sizes = Sizes::new(parts, elements)?;
        for &(plan, part) in &parts.0 {
            table.scratch_max = table.scratch_max.max(sizes.scratch(plan, part));
            for op in &part.ops {
                let id = table.kinds.len() as u32;
                table.kinds.push(kind(op.action));
                table.elements.push(sizes.of(plan, part.regions(moved(op))));
                let ends = match op.action {
                    Action::Send { peer, channel } => Some((part.rank, peer, channel)),
                    Action::Recv { peer, channel } | Action::RecvReduce { peer, channel, .. } => {
                        Some((peer, part.rank, channel))
                    }
                    Action::Copy | Action::Reduce { .. } => None,
                };
                if let Some(key) = ends {
                    table.take_place(&mut known, key, id);
                }
            }
            table.bases.push(table.kinds.len() as u32);
        }
        table.pair_up();
        table.link(parts, stream);
        Ok(table)
    }

    /// Notes a message's end as the next of its connection.
    fn take_place(&mut self, known: &mut FxHashMap<(u32, u32, u32), u32>, key: (u32, u32, u32), id: u32) {
        let connections = &mut self.connections;
        let connection = *known.entry(key).or_insert_with(|| {
            connections.push(Connection { from: key.0, to: key.1, ..Connection::default() });
            connections.len() as u32 - 1
        });
        let ends = &mut connections[connection as usize];
        let list = if self.kinds[id as usize] == Kind::Send { &mut ends.sends } else { &mut ends.receives };
        self.places[id as usize] = (connection, list.len() as u32);
        list.push(id);
    }

    fn pair_up(&mut self) {
        for connection in &mut self.connections {
            for (&send, &receive) in connection.sends.iter().zip(&connection.receives) {
                self.partners[send as usize] = receive;
                self.partners[receive as usize] = send;
            }
            connection.receives = Vec::new();
        }
    }

    /// What each operation sets off: the next of its lane, and those that wait for it.
    fn link(&mut self, parts: &Parts, stream: bool) {
        for pass in 0..2 {
            let mut free = self.starts.clone();
            for rank in 0..parts.world() {
                let (part, base) = (parts.part(rank), self.bases[rank as usize]);
                let mut edge = |from: u32, to: u32| match pass {
                    0 => self.starts[(base + from) as usize + 1] += 1,
                    _ => {
                        let at = &mut free[(base + from) as usize];
                        self.next[*at as usize] = base + to;
                        self.missing[(base + to) as usize] += 1;
                        *at += 1;
                    }
                };
                for lane in &part.lanes {
                    (lane.start + 1..lane.end).for_each(|op| edge(op - 1, op));
                }
                for (op, what) in (0..).zip(&part.ops) {
                    for wait in part.waits(what).iter().filter(|wait| !(stream && wait.along)) {
                        edge(wait.op, op);
                    }
                }
            }
            if pass == 0 {
                (1..self.starts.len()).for_each(|at| self.starts[at] += self.starts[at - 1]);
                self.next = vec![0; self.starts.last().copied().unwrap_or(0) as usize];
            }
        }
        if stream {
            self.follow(parts);
        }
    }

    fn follow(&mut self, parts: &Parts) {
        for rank in 0..parts.world() {
            let (part, base) = (parts.part(rank), self.bases[rank as usize]);
            for (op, what) in (base..).zip(&part.ops) {
                for wait in part.waits(what).iter().filter(|wait| wait.along) {
                    self.leaders.insert(op, base + wait.op);
                    self.followers.entry(base + wait.op).or_default().push(op);
                    self.missing[op as usize] += 1;
                }
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// What an operation's end sets off.
    pub(crate) fn next(&self, op: u32) -> &[u32] {
        &self.next[self.starts[op as usize] as usize..self.starts[op as usize + 1] as usize]
    }

    /// The rank of an operation.
    pub(crate) fn rank(&self, op: u32) -> u32 {
        self.bases.partition_point(|&base| base <= op) as u32 - 1
    }

    /// The number of an operation within its rank.
    pub(crate) fn local(&self, op: u32) -> u32 {
        op - self.bases[self.rank(op) as usize]
    }
}

/// The regions whose lengths are the bytes that an operation moves.
fn moved(op: &Op) -> coll_plan::Run {
    if op.target.is_empty() { op.source } else { op.target }
}

fn kind(action: Action) -> Kind {
    match action {
        Action::Send { .. } => Kind::Send,
        Action::Recv { .. } => Kind::Recv,
        Action::RecvReduce { .. } => Kind::RecvReduce,
        Action::Copy => Kind::Copy,
        Action::Reduce { .. } => Kind::Reduce,
    }
}

/// Elements of blocks by class.
struct Sizes {
    counts: Vec<u64>,
}

impl Sizes {
    /// A slice knows the lengths of its rank's own blocks alone, and others pass through it: so they are put together from all.
    fn new(parts: &Parts, elements: u64) -> Result<Sizes, SimError> {
        let mut counts: Vec<u64> = Vec::new();
        for &(plan, _) in &parts.0 {
            let elements = if plan.contract.buffers.is_empty() { 0 } else { elements };
            let known = plan.contract.counts(elements).map_err(SimError::Bytes)?;
            if plan.is_whole() || counts.is_empty() {
                counts = known;
            } else {
                counts.iter_mut().zip(known).for_each(|(count, known)| *count = known.max(*count));
            }
            if plan.is_whole() {
                break;
            }
        }
        Ok(Sizes { counts })
    }

    fn of(&self, plan: &Plan, regions: &[Region]) -> u64 {
        regions.iter().map(|region| self.pieces(plan, region.class, region.low, region.high)).sum()
    }

    fn pieces(&self, plan: &Plan, class: u32, low: u32, high: u32) -> u64 {
        let count = self.counts.get(class as usize).copied().unwrap_or(0);
        let cut = |piece: u32| plan.cuts[piece as usize].of(count);
        cut(high) - cut(low)
    }

    /// A slot is as large as the largest of its shapes.
    fn scratch(&self, plan: &Plan, part: &RankPlan) -> u64 {
        let slot = |slot: &coll_plan::SlotDecl| {
            slot.shapes.iter().map(|shape| self.pieces(plan, shape.class, shape.low, shape.high)).max()
        };
        part.slots.iter().filter_map(slot).fold(0, u64::saturating_add)
    }
}
