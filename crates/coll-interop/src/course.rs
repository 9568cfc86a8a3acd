//! An order in which a plan's operations can be done, with the messages under way that it asks for. A send stands right
//! before its receive where sends wait for receives, so whoever takes operations in this order needs one slot alone.

use coll_plan::{OpId, Plan};
use std::collections::{HashMap, VecDeque};

/// An operation: its rank and its number there.
pub(crate) type OpAt = (u32, OpId);

struct Lane {
    rank: u32,
    at: OpId,
    end: OpId,
}

/// The state of a connection.
#[derive(Default)]
struct Link {
    /// A lane whose send is due, or whose receive is.
    offers: Option<usize>,
    asks: Option<usize>,
    under_way: u32,
}

struct Course<'a> {
    plan: &'a Plan,
    lanes: Vec<Lane>,
    done: Vec<Vec<bool>>,
    sleepers: HashMap<OpAt, Vec<usize>>,
    links: HashMap<(u32, u32, u32), Link>,
    awake: Vec<usize>,
    order: Vec<OpAt>,
}

/// All operations in such an order; none if the plan stops, which its proof would have told.
pub(crate) fn running_order(plan: &Plan) -> Option<Vec<OpAt>> {
    let lanes = plan.ranks.iter().flat_map(|part| {
        part.lanes.iter().map(|lane| Lane { rank: part.rank, at: lane.start, end: lane.end })
    });
    let lanes: Vec<Lane> = lanes.collect();
    let ops = plan.ranks.iter().map(|part| part.ops.len()).sum();
    let mut course = Course {
        plan,
        done: plan.ranks.iter().map(|part| vec![false; part.ops.len()]).collect(),
        sleepers: HashMap::new(),
        links: HashMap::new(),
        awake: (0..lanes.len()).rev().collect(),
        lanes,
        order: Vec::with_capacity(ops),
    };
    while let Some(lane) = course.awake.pop() {
        course.advance(lane);
    }
    (course.order.len() == ops).then_some(course.order)
}

/// The same operations by levels: how many messages come one after the other before each. On a level all sends and local
/// work stand before all receives, so that each rank sends before it waits, and connections hold what is under way.
pub(crate) fn by_levels(plan: &Plan, order: &[OpAt]) -> Vec<OpAt> {
    let mut levels: Vec<Vec<u32>> = plan.ranks.iter().map(|part| vec![0; part.ops.len()]).collect();
    let mut sent: HashMap<(u32, u32, u32), VecDeque<u32>> = HashMap::new();
    for &(rank, id) in order {
        let part = &plan.ranks[rank as usize];
        let op = &part.ops[id as usize];
        let lane = part.lanes.partition_point(|lane| lane.end <= id);
        let previous = (id > part.lanes[lane].start).then(|| id - 1);
        let after = |cause: OpId| {
            let brings = part.ops[cause as usize].action.receives_from().is_some();
            levels[rank as usize][cause as usize] + u32::from(brings)
        };
        let causes = part.waits(op).iter().map(|wait| wait.op).chain(previous);
        let mut level = causes.map(after).max().unwrap_or(0);
        if let Some((peer, channel)) = op.action.sends_to() {
            sent.entry((rank, peer, channel)).or_default().push_back(level);
        } else if let Some((peer, channel)) = op.action.receives_from() {
            let message = sent.get_mut(&(peer, rank, channel)).and_then(VecDeque::pop_front);
            level = level.max(message.unwrap_or(0));
        }
        levels[rank as usize][id as usize] = level;
    }
    let mut order = order.to_vec();
    order.sort_by_key(|&(rank, id)| {
        let receives = plan.ranks[rank as usize].ops[id as usize].action.receives_from().is_some();
        (levels[rank as usize][id as usize], receives)
    });
    order
}

impl Course<'_> {
    fn advance(&mut self, lane: usize) {
        loop {
            let Lane { rank, at, end } = self.lanes[lane];
            if at == end {
                return;
            }
            let part = &self.plan.ranks[rank as usize];
            let op = &part.ops[at as usize];
            let is_open = |wait: &&coll_plan::Wait| !self.done[rank as usize][wait.op as usize];
            if let Some(wait) = part.waits(op).iter().find(is_open) {
                self.sleepers.entry((rank, wait.op)).or_default().push(lane);
                return;
            }
            if let Some((peer, channel)) = op.action.sends_to() {
                if !self.send(lane, (rank, peer, channel)) {
                    return;
                }
            } else if let Some((peer, channel)) = op.action.receives_from() {
                if !self.receive(lane, (peer, rank, channel)) {
                    return;
                }
            } else {
                self.complete(lane);
            }
        }
    }

    /// The operation at a lane's head is done.
    fn complete(&mut self, lane: usize) {
        let Lane { rank, at, .. } = self.lanes[lane];
        self.order.push((rank, at));
        self.done[rank as usize][at as usize] = true;
        self.lanes[lane].at += 1;
        self.awake.extend(self.sleepers.remove(&(rank, at)).unwrap_or_default());
    }

    fn send(&mut self, lane: usize, link: (u32, u32, u32)) -> bool {
        let slots = self.plan.slots;
        let state = self.links.entry(link).or_default();
        let asks = state.asks.take();
        if asks.is_none() && state.under_way >= slots {
            state.offers = Some(lane);
            return false;
        }
        state.under_way += 1;
        self.complete(lane);
        if let Some(receiver) = asks {
            self.links.entry(link).or_default().under_way -= 1;
            self.complete(receiver);
            self.awake.push(receiver);
        }
        true
    }

    fn receive(&mut self, lane: usize, link: (u32, u32, u32)) -> bool {
        let state = self.links.entry(link).or_default();
        let offers = state.offers.take();
        if state.under_way == 0 && offers.is_none() {
            state.asks = Some(lane);
            return false;
        }
        if state.under_way > 0 {
            // What is under way came first; who offers may go on afterwards.
            state.under_way -= 1;
            self.complete(lane);
            self.awake.extend(offers);
            return true;
        }
        let sender = offers.expect("invariant: one of both is there");
        self.complete(sender);
        self.complete(lane);
        self.awake.push(sender);
        true
    }
}
