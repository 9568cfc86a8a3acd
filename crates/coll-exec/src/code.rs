//! A plan made ready to run on one rank: regions have become segments, and waits have become tables of who is woken
//! by whom, so that the loop looks nothing up and scans nothing.

use crate::Link;
use crate::error::BindError;
use crate::layout::Layout;
use crate::memory::{Area, Segment};
use crate::share::{self, Share};
use coll_kernel::Cast;
use coll_plan::{Action, Lane, OpId, Plan, RankPlan, Region, Run};

/// Where ranks of a machine touch more than this, what they store is not in its last cache any more when their callers read it,
/// and to write it through the caches only fetches it first. Measured on two cores with 32 MiB: all-gathers of 16 MiB on 2, 4 and
/// 8 ranks in 0.70, 0.64 and 0.75 of the time, of 4 MiB on 8 ranks in half; where all fits it takes up to 1.8 times as long.
const PAST_CACHE_BYTES: u64 = 36 << 20;

/// The same of one rank of an operation with a root, whose other ranks may have little.
const PAST_CACHE_ROOTED_BYTES: u64 = 12 << 20;

/// No more ranks than these are taken to share a cache: how many do is not known here.
const SHARERS_MAX: u32 = 8;

/// Every operation of a rank, bound.
pub(crate) struct Code {
    pub(crate) ops: Vec<BoundOp>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) links: Vec<BoundLink>,
    /// The lane of each operation.
    pub(crate) lane_of: Vec<u32>,
    /// For each operation, how many others it waits for to be done.
    pub(crate) missing: Vec<u32>,
    /// Who waits for an operation to be done.
    pub(crate) dependents: Targets,
    /// Which sends follow a receive.
    pub(crate) followers: Targets,
    /// Lanes whose first operation waits for none.
    pub(crate) starts: Vec<u32>,
    /// What makes elements those of messages and back, if they are others.
    pub(crate) cast: Option<Cast>,
    /// Messages that several sends have in common.
    pub(crate) shares: Vec<Share>,
}

/// One operation.
#[derive(Clone, Copy)]
pub(crate) struct BoundOp {
    pub(crate) kind: Kind,
    pub(crate) source: Run,
    /// As long as the target, or empty if it is the target.
    pub(crate) operand: Run,
    pub(crate) target: Run,
    /// Bytes that move.
    pub(crate) bytes: u64,
    pub(crate) step: u32,
    /// The receive that a send follows.
    pub(crate) leader: Option<OpId>,
    /// What it stores is written past the caches.
    pub(crate) past_cache: bool,
    /// The message that a send has in common with others.
    pub(crate) share: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Message `message` of the link, outwards.
    Send {
        link: u32,
        message: u32,
    },
    /// Message `message` of the link, inwards, reduced if `reduces`.
    Recv {
        link: u32,
        message: u32,
        reduces: Option<Side>,
    },
    Copy,
    Reduce(Side),
}

/// The side of the operator that comes in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A link and its messages in order.
#[derive(Default)]
pub(crate) struct Messages {
    pub(crate) ops: Vec<OpId>,
}

/// One of the rank's links.
pub(crate) struct BoundLink {
    pub(crate) link: Link,
    pub(crate) sends: Messages,
    pub(crate) receives: Messages,
}

/// For each operation, a list of operations.
#[derive(Default)]
pub(crate) struct Targets {
    starts: Vec<u32>,
    all: Vec<OpId>,
}

impl Targets {
    #[inline]
    pub(crate) fn run(&self, op: OpId) -> std::ops::Range<usize> {
        self.starts[op as usize] as usize..self.starts[op as usize + 1] as usize
    }

    #[inline]
    pub(crate) fn at(&self, index: usize) -> OpId {
        self.all[index]
    }

    /// From `(from, to)` pairs.
    fn new(ops: usize, pairs: impl Iterator<Item = (OpId, OpId)> + Clone) -> Targets {
        let mut starts = vec![0u32; ops + 1];
        pairs.clone().for_each(|(from, _)| starts[from as usize + 1] += 1);
        (0..ops).for_each(|op| starts[op + 1] += starts[op]);
        let (mut next, mut all) = (starts.clone(), vec![0; starts[ops] as usize]);
        for (from, to) in pairs {
            all[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        Targets { starts, all }
    }
}

impl Code {
    /// Binds a verified plan's part.
    pub(crate) fn new(
        plan: &Plan,
        part: &RankPlan,
        layout: &Layout,
        cast: Option<Cast>,
    ) -> Result<Code, BindError> {
        let mut code = Code {
            ops: Vec::with_capacity(part.ops.len()),
            lanes: part.lanes.clone(),
            segments: Vec::new(),
            links: links(part),
            lane_of: Vec::with_capacity(part.ops.len()),
            missing: Vec::with_capacity(part.ops.len()),
            dependents: Targets::default(),
            followers: Targets::default(),
            starts: Vec::new(),
            cast,
            shares: Vec::new(),
        };
        for (lane, run) in part.lanes.iter().enumerate() {
            code.lane_of.extend((run.start..run.end).map(|_| lane as u32));
        }
        for op in 0..part.ops.len() as OpId {
            code.op(plan, part, layout, op)?;
        }
        code.waits(part);
        share::find(part, &mut code);
        let own_bytes: u64 = layout.buffers.iter().flat_map(|buffer| buffer.sizes).sum();
        if match plan.root {
            Some(_) => own_bytes >= PAST_CACHE_ROOTED_BYTES,
            None => own_bytes.saturating_mul(plan.world().min(SHARERS_MAX).into()) >= PAST_CACHE_BYTES,
        } {
            code.past_caches();
        }
        code.starts = (0..code.lanes.len() as u32).filter(|&lane| code.may_start(lane)).collect();
        Ok(code)
    }

    fn op(&mut self, plan: &Plan, part: &RankPlan, layout: &Layout, id: OpId) -> Result<(), BindError> {
        let op = &part.ops[id as usize];
        let damaged = |what: &str| BindError::Plan {
            what: format!("rank {}, op {id} of {}: {what}", part.rank, plan.name),
        };
        let side = |left| if left { Side::Left } else { Side::Right };
        let kind = match op.action {
            Action::Send { peer, channel } => {
                let (link, messages) = self.link(peer, channel, |link| &mut link.sends);
                Kind::Send { link, message: messages.push(id) }
            }
            Action::Recv { peer, channel } => {
                let (link, messages) = self.link(peer, channel, |link| &mut link.receives);
                Kind::Recv { link, message: messages.push(id), reduces: None }
            }
            Action::RecvReduce { peer, channel, left } => {
                let (link, messages) = self.link(peer, channel, |link| &mut link.receives);
                Kind::Recv { link, message: messages.push(id), reduces: Some(side(left)) }
            }
            Action::Copy => Kind::Copy,
            Action::Reduce { left } => Kind::Reduce(side(left)),
        };
        let missing = || damaged("a region lies nowhere");
        let segments = |run| -> Result<Vec<Segment>, BindError> {
            let regions: &[Region] = part.regions(run);
            let all = regions.iter().map(|region| layout.segment(region).ok_or_else(missing));
            // Empty pieces go: every side of an operation has them at the same places.
            all.filter(|segment| segment.as_ref().map_or(true, |segment| segment.len > 0)).collect()
        };
        let (source, mut operand, target) =
            (segments(op.source)?, segments(op.operand)?, segments(op.target)?);
        if target.iter().any(|segment| matches!(segment.area, Area::Input(_))) {
            return Err(damaged("it writes an input"));
        }
        if !(apart(&target, &operand) && apart(&target, &source)) {
            return Err(damaged("it reads and writes pieces that overlap and are not the same"));
        }
        if operand == target {
            operand.clear();
        }
        let bytes = source.iter().map(|segment| segment.len as u64).sum::<u64>();
        let bytes = bytes.max(target.iter().map(|segment| segment.len as u64).sum());
        let (source, operand, target) = (self.push(source), self.push(operand), self.push(target));
        self.ops.push(BoundOp {
            kind,
            source,
            operand,
            target,
            bytes,
            step: op.step,
            leader: None,
            past_cache: false,
            share: None,
        });
        Ok(())
    }

    /// Notes which operations store what no other one reads: it need not stay in the caches.
    fn past_caches(&mut self) {
        let read = self.ops.iter().flat_map(|op| [op.source, op.operand]);
        let mut read: Vec<Segment> = read.flat_map(|run| self.segments(run)).copied().collect();
        read.sort_unstable();
        let longest = read.iter().map(|segment| segment.len).max().unwrap_or(0);
        let is_read = |target: &Segment| {
            let low = Segment { offset: target.offset.saturating_sub(longest), len: 0, ..*target };
            let near = &read[read.partition_point(|segment| *segment < low)..];
            let end = (target.area, target.end());
            near.iter()
                .take_while(|segment| (segment.area, segment.offset) < end)
                .any(|segment| segment.overlaps(*target))
        };
        let stores = |op: &BoundOp| matches!(op.kind, Kind::Copy | Kind::Recv { reduces: None, .. });
        let past = |op: &BoundOp| stores(op) && !self.segments(op.target).iter().any(is_read);
        let past: Vec<bool> = self.ops.iter().map(past).collect();
        self.ops.iter_mut().zip(past).for_each(|(op, past)| op.past_cache = past);
    }

    fn waits(&mut self, part: &RankPlan) {
        let waits = |along: bool| {
            part.ops.iter().enumerate().flat_map(move |(id, op)| {
                let waits = part.waits(op).iter().filter(move |wait| wait.along == along);
                waits.map(move |wait| (wait.op, id as OpId))
            })
        };
        self.dependents = Targets::new(self.ops.len(), waits(false));
        self.followers = Targets::new(self.ops.len(), waits(true));
        self.missing = vec![0; self.ops.len()];
        waits(false).for_each(|(_, id)| self.missing[id as usize] += 1);
        waits(true).for_each(|(leader, id)| self.ops[id as usize].leader = Some(leader));
    }

    /// Whether a lane has an operation, and that needs no other: a message that is not its link's first does.
    fn may_start(&self, lane: u32) -> bool {
        let Lane { start, end } = self.lanes[lane as usize];
        start < end
            && self.missing[start as usize] == 0
            && match self.ops[start as usize].kind {
                Kind::Send { message, .. } | Kind::Recv { message, .. } => message == 0,
                Kind::Copy | Kind::Reduce(_) => true,
            }
    }

    fn link(
        &mut self,
        peer: u32,
        channel: u32,
        side: impl FnOnce(&mut BoundLink) -> &mut Messages,
    ) -> (u32, &mut Messages) {
        let link = Link { peer, channel };
        let at = self.links.partition_point(|other| other.link < link);
        (at as u32, side(&mut self.links[at]))
    }

    fn push(&mut self, segments: Vec<Segment>) -> Run {
        let start = self.segments.len() as u32;
        self.segments.extend(segments);
        Run { start, end: self.segments.len() as u32 }
    }

    /// Bytes that so many bytes of memory have in a message.
    #[inline]
    pub(crate) fn message_bytes(&self, memory_bytes: u64) -> u64 {
        match self.cast {
            None => memory_bytes,
            Some(cast) => memory_bytes / cast.memory_size_bytes() as u64 * cast.wire_size_bytes() as u64,
        }
    }

    /// Segments of a run.
    #[inline]
    pub(crate) fn segments(&self, run: Run) -> &[Segment] {
        &self.segments[run.start as usize..run.end as usize]
    }
}

impl Messages {
    fn push(&mut self, op: OpId) -> u32 {
        self.ops.push(op);
        self.ops.len() as u32 - 1
    }
}

/// All links of a part, sorted.
fn links(part: &RankPlan) -> Vec<BoundLink> {
    let ends = part.ops.iter().filter_map(|op| op.action.sends_to().or(op.action.receives_from()));
    let mut links: Vec<Link> = ends.map(|(peer, channel)| Link { peer, channel }).collect();
    links.sort_unstable();
    links.dedup();
    let bound = |link| BoundLink { link, sends: Messages::default(), receives: Messages::default() };
    links.into_iter().map(bound).collect()
}

/// True if no target overlaps what is read, other than a target that is read at its own place in the list.
fn apart(targets: &[Segment], read: &[Segment]) -> bool {
    if targets == read || read.is_empty() {
        return true;
    }
    let mut order: Vec<usize> = (0..targets.len()).collect();
    order.sort_unstable_by_key(|&at| targets[at]);
    if order.windows(2).any(|pair| targets[pair[0]].overlaps(targets[pair[1]])) {
        return false;
    }
    read.iter().enumerate().all(|(index, segment)| {
        let after = order.partition_point(|&at| targets[at] < *segment);
        let near = &order[after.saturating_sub(1)..];
        let overlapping = near.iter().take_while(|&&at| {
            let target = targets[at];
            (target.area, target.offset) < (segment.area, segment.end()) || target.overlaps(*segment)
        });
        overlapping
            .filter(|&&at| targets[at].overlaps(*segment))
            .all(|&at| at == index && targets[at] == *segment)
    })
}
