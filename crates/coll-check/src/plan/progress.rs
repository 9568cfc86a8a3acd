//! Does it run to its end, and with how many message slots?
//!
//! Whether a plan ends does not depend on who is quick: what can go on stays able to, until it does. So one run
//! settles it for a number of slots, and more slots never hurt, so the least is found by bisection. A run moves
//! lanes along; a lane that cannot go on sleeps on the one event that it needs, which makes a run linear in the
//! plan, and makes the ring of a deadlock readable off the sleepers.

use super::codes::DEADLOCK;
use super::pairing::Messages;
use super::whole::{NONE, OpKey, Whole, lane_of};
use coll_base::Diagnostic;
use coll_plan::Action;

/// What is known of a plan's course.
pub(super) struct Progress {
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) min_slots: u32,
    pub(super) rendezvous: bool,
    /// All operations in an order in which they may run; empty if they cannot all. A send stands where its bytes are
    /// taken over, which is before its receive.
    pub(super) order: Vec<OpKey>,
}

/// How connections are thought to work.
#[derive(Clone, Copy)]
struct Machine {
    /// Message slots of each connection; 0 is rendezvous.
    slots: u32,
    /// A receive keeps its message until the send that follows it has its slot.
    fused: bool,
}

const UNBOUNDED: u32 = u32::MAX;

/// Finds out how a plan runs.
pub(super) fn progress(whole: &Whole, messages: &Messages) -> Progress {
    let followers = whole.followers();
    let try_with = |slots, fused| {
        let mut course = Course::new(whole, messages, &followers, Machine { slots, fused });
        course.run();
        course
    };
    let rendezvous = try_with(0, false);
    if rendezvous.ended() {
        return Progress { diagnostics: Vec::new(), min_slots: 1, rendezvous: true, order: rendezvous.order };
    }
    let fused = try_with(UNBOUNDED, true).ended();
    if !fused {
        let unbounded = try_with(UNBOUNDED, false);
        if !unbounded.ended() {
            let diagnostics = vec![unbounded.ring(None)];
            return Progress { diagnostics, min_slots: 0, rendezvous: false, order: Vec::new() };
        }
    }
    let mut enough = 1;
    while !try_with(enough, fused).ended() {
        enough *= 2;
    }
    let mut short = enough / 2;
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        if try_with(middle, fused).ended() { enough = middle } else { short = middle }
    }
    let slots = whole.plan.slots;
    let diagnostics = match slots {
        _ if enough <= slots => Vec::new(),
        0 => vec![rendezvous.ring(Some(enough))],
        _ => vec![try_with(slots, fused).ring(Some(enough))],
    };
    Progress { diagnostics, min_slots: enough, rendezvous: false, order: try_with(enough, fused).order }
}

/// `2·op` is the start of an operation, `2·op + 1` its end.
type Event = u32;

fn start(key: OpKey) -> Event {
    2 * key
}

fn end(key: OpKey) -> Event {
    2 * key + 1
}

/// A lane under way.
struct Lane {
    rank: u32,
    /// Where it stands, and where it ends.
    at: OpKey,
    end: OpKey,
    /// The wait to look at next.
    wait: u32,
    /// The event it sleeps on.
    needs: Event,
    /// The next lane that sleeps on it.
    next: u32,
}

struct Course<'a> {
    whole: &'a Whole<'a>,
    messages: &'a Messages,
    followers: &'a [(OpKey, OpKey)],
    machine: Machine,
    lanes: Vec<Lane>,
    /// The first lane of each rank.
    first_lane: Vec<u32>,
    happened: Vec<bool>,
    /// The first lane that sleeps on each event.
    sleeper: Vec<u32>,
    awake: std::collections::VecDeque<u32>,
    order: Vec<OpKey>,
}

impl<'a> Course<'a> {
    fn new(
        whole: &'a Whole<'a>,
        messages: &'a Messages,
        followers: &'a [(OpKey, OpKey)],
        machine: Machine,
    ) -> Course<'a> {
        let (mut lanes, mut first_lane) = (Vec::new(), Vec::new());
        for part in &whole.plan.ranks {
            first_lane.push(lanes.len() as u32);
            let base = whole.base(part.rank);
            lanes.extend(part.lanes.iter().map(|lane| Lane {
                rank: part.rank,
                at: base + lane.start,
                end: base + lane.end,
                wait: 0,
                needs: NONE,
                next: NONE,
            }));
        }
        let ops = whole.op_count();
        Course {
            whole,
            messages,
            followers,
            machine,
            awake: (0..lanes.len() as u32).collect(),
            lanes,
            first_lane,
            happened: vec![false; 2 * ops],
            sleeper: vec![NONE; 2 * ops],
            order: Vec::with_capacity(ops),
        }
    }

    fn ended(&self) -> bool {
        self.lanes.iter().all(|lane| lane.at == lane.end)
    }

    fn run(&mut self) {
        while let Some(lane) = self.awake.pop_front() {
            while self.lanes[lane as usize].at < self.lanes[lane as usize].end {
                if let Err(event) = self.step(lane as usize) {
                    let sleeper = &mut self.sleeper[event as usize];
                    self.lanes[lane as usize].needs = event;
                    self.lanes[lane as usize].next = std::mem::replace(sleeper, lane);
                    break;
                }
                let state = &mut self.lanes[lane as usize];
                let key = state.at;
                state.at += 1;
                state.wait = 0;
                self.happens(end(key));
            }
        }
    }

    fn happens(&mut self, event: Event) {
        if std::mem::replace(&mut self.happened[event as usize], true) {
            return;
        }
        let mut lane = std::mem::replace(&mut self.sleeper[event as usize], NONE);
        while lane != NONE {
            self.awake.push_back(lane);
            lane = std::mem::replace(&mut self.lanes[lane as usize].next, NONE);
        }
    }

    fn needs(&self, event: Event) -> Result<(), Event> {
        if self.happened[event as usize] { Ok(()) } else { Err(event) }
    }

    /// Carries a lane's operation to its end, or says what it lacks.
    fn step(&mut self, lane: usize) -> Result<(), Event> {
        let Lane { rank, at: key, wait: mut looked, .. } = self.lanes[lane];
        let (part, base) = (&self.whole.plan.ranks[rank as usize], self.whole.base(rank));
        let op = &part.ops[(key - base) as usize];
        for wait in &part.waits(op)[looked as usize..] {
            if !wait.along {
                self.needs(end(base + wait.op))?;
            }
            looked += 1;
            self.lanes[lane].wait = looked;
        }
        match op.action {
            Action::Send { .. } => self.send(key),
            Action::Recv { .. } | Action::RecvReduce { .. } => self.receive(key),
            Action::Copy | Action::Reduce { .. } => {
                self.order.push(key);
                Ok(())
            }
        }
    }

    fn send(&mut self, key: OpKey) -> Result<(), Event> {
        let at = self.messages.at(key);
        let message = self.messages.list[at];
        let slots = self.machine.slots;
        if slots > 0 && at as u32 - message.first >= slots {
            self.needs(end(self.messages.list[at - slots as usize].receive))?;
        }
        self.happens(start(key));
        self.filled(key)?;
        if slots == 0 {
            // The receive writes both into the order.
            return self.needs(end(message.receive));
        }
        self.order.push(key);
        Ok(())
    }

    /// A send that follows a receive has nothing more to send before that receive has ended.
    fn filled(&self, send: OpKey) -> Result<(), Event> {
        match self.whole.along(send) {
            NONE => Ok(()),
            receive => self.needs(end(receive)),
        }
    }

    fn receive(&mut self, key: OpKey) -> Result<(), Event> {
        let send = self.messages.of(key).send;
        if self.machine.slots == 0 {
            self.needs(start(send))?;
            self.filled(send)?;
            self.order.push(send);
        } else {
            self.needs(end(send))?;
            if self.machine.fused {
                let from = self.followers.partition_point(|&(receive, _)| receive < key);
                for &(_, follower) in
                    self.followers[from..].iter().take_while(|&&(receive, _)| receive == key)
                {
                    self.needs(start(follower))?;
                }
            }
        }
        self.order.push(key);
        Ok(())
    }

    fn lane_at(&self, key: OpKey) -> usize {
        let rank = self.whole.rank_of(key);
        let local = lane_of(&self.whole.plan.ranks[rank as usize], self.whole.local(key));
        self.first_lane[rank as usize] as usize + local
    }

    /// The ring of those who wait for each other: from any sleeper to what it needs, until it comes round.
    fn ring(&self, enough: Option<u32>) -> Diagnostic {
        let mut seen = vec![NONE; self.lanes.len()];
        let mut path = Vec::new();
        let mut lane = self.lanes.iter().position(|lane| lane.at < lane.end).unwrap_or(0);
        while seen[lane] == NONE {
            seen[lane] = path.len() as u32;
            path.push(lane);
            lane = self.lane_at(self.lanes[lane].needs / 2);
        }
        let ring = &path[seen[lane] as usize..];
        let heads: Vec<String> = ring.iter().map(|&lane| self.whole.name(self.lanes[lane].at)).collect();
        let count = heads.len();
        let told = Diagnostic::unplaced(
            DEADLOCK,
            format!("{count} operations wait for each other and stop for ever"),
        )
        .found(format!("a ring: {}, and again {}", heads.join("; "), heads[0]));
        let told = ring.iter().fold(told, |told, &lane| told.note(self.reason(lane)));
        let slots = self.whole.plan.slots;
        match enough {
            Some(enough) => told
                .expected(format!("a plan that ends with {slots} message slots for each connection"))
                .help(format!("it ends with `slots {enough}`; or put receives into a lane of their own")),
            None => told.expected("a plan that ends, if each connection has message slots enough").help(
                "take one wait of the ring away, or move a receive before the send that it stands behind",
            ),
        }
    }

    /// Why a lane sleeps, in words.
    fn reason(&self, lane: usize) -> String {
        let Lane { at: key, needs, .. } = self.lanes[lane];
        let on = needs / 2;
        let head = self.lanes[self.lane_at(on)].at;
        let name = match self.whole.name(on) {
            name if head == on => name,
            name => format!("{name} (behind op {} in its lane)", self.whole.local(head)),
        };
        let waited = self.whole.part(key).waits(self.whole.op(key)).iter();
        let is_wait = self.whole.rank_of(on) == self.whole.rank_of(key)
            && waited.clone().any(|wait| wait.op == self.whole.local(on));
        let is_send = self.whole.op(key).action.sends_to().is_some();
        let partner = if self.whole.op(key).action.receives_from().is_some() || is_send {
            let message = self.messages.of(key);
            if is_send { message.receive } else { message.send }
        } else {
            NONE
        };
        let why = match () {
            _ if is_wait => format!("waits for {name}"),
            _ if on == partner && is_send => format!("waits until {name} takes its message"),
            _ if on == partner => format!("waits for its message from {name}"),
            _ if is_send => format!("waits for a slot, until {name} has taken an earlier message"),
            _ => format!("waits for the slot of {name}, which passes the message on"),
        };
        format!("{} {why}", self.whole.words(key))
    }
}
