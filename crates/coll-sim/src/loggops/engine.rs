//! The events of LogGOPS.

use super::{Blocked, Finish, LogGops, LogGopsError};
use crate::goal::{Goal, GoalKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub(super) fn run(goal: &Goal, params: &LogGops) -> Result<Finish, LogGopsError> {
    let mut run = Run::new(goal, params);
    (0..goal.ranks.len() as u32).for_each(|host| run.start_ready(host, |_, _| 0));
    while let Some(Reverse(event)) = run.events.pop() {
        let touched = match event.what {
            What::Op => run.op(event)?,
            What::Message => run.message(event)?,
        };
        let mut touched: Vec<u32> = touched.into_iter().flatten().collect();
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().for_each(|host| run.start_ready(host, Run::free_from));
    }
    if run.done.iter().any(|done| !done) {
        return Err(LogGopsError::Stuck(run.blocked()));
    }
    let free = |host: &Host| host.cpus.iter().copied().max().unwrap_or(0);
    Ok(Finish { ns: run.hosts.iter().map(free).collect() })
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// An operation of its host is tried.
    Op,
    /// The message of a send is at its receiver.
    Message,
}

/// By time, then by the order of making.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time: u64,
    number: u64,
    what: What,
    /// Of all operations; of a message, its send's.
    op: u32,
}

#[derive(Default)]
struct Host {
    /// From when each processor is free.
    cpus: Vec<u64>,
    /// From when each interface may send, and receive.
    send_nics: Vec<u64>,
    recv_nics: Vec<u64>,
    /// Receives that have no message yet, and sends whose messages have no receive yet.
    receives: VecDeque<u32>,
    messages: VecDeque<u32>,
    /// Operations that have become ready since it was last looked.
    ready: Vec<u32>,
}

struct Run<'g> {
    goal: &'g Goal,
    params: &'g LogGops,
    /// The first operation of each rank among all.
    bases: Vec<u32>,
    owner: Vec<u32>,
    /// What each operation sets off: `(which, by its start)`.
    sets_off: Vec<Vec<(u32, bool)>>,
    missing: Vec<u32>,
    started: Vec<bool>,
    done: Vec<bool>,
    hosts: Vec<Host>,
    events: BinaryHeap<Reverse<Event>>,
    number: u64,
}

/// Hosts on which something may have become ready.
type Touched = Result<[Option<u32>; 2], LogGopsError>;

impl<'g> Run<'g> {
    fn new(goal: &'g Goal, params: &'g LogGops) -> Run<'g> {
        let mut bases = Vec::new();
        let mut owner = Vec::new();
        for (rank, part) in (0..).zip(&goal.ranks) {
            bases.push(owner.len() as u32);
            owner.extend(part.ops.iter().map(|_| rank));
        }
        let count = owner.len();
        let mut run = Run {
            goal,
            params,
            bases,
            owner,
            sets_off: vec![Vec::new(); count],
            missing: vec![0; count],
            started: vec![false; count],
            done: vec![false; count],
            hosts: goal.ranks.iter().map(|_| Host::default()).collect(),
            events: BinaryHeap::new(),
            number: 0,
        };
        for (rank, part) in goal.ranks.iter().enumerate() {
            let host = &mut run.hosts[rank];
            let cpus = part.ops.iter().map(|op| op.cpu + 1).max().unwrap_or(1).max(1);
            let nics = part.ops.iter().map(|op| op.nic + 1).max().unwrap_or(1).max(1);
            host.cpus = vec![0; cpus as usize];
            host.send_nics = vec![0; nics as usize];
            host.recv_nics = host.send_nics.clone();
            let base = run.bases[rank];
            for edge in &part.edges {
                run.sets_off[(base + edge.on) as usize].push((base + edge.op, edge.start));
                run.missing[(base + edge.op) as usize] += 1;
            }
            let ready = (base..base + part.ops.len() as u32).filter(|&op| run.missing[op as usize] == 0);
            run.hosts[rank].ready = ready.collect();
        }
        run
    }

    fn what(&self, op: u32) -> &'g crate::goal::GoalOp {
        let rank = self.owner[op as usize] as usize;
        &self.goal.ranks[rank].ops[(op - self.bases[rank]) as usize]
    }

    fn push(&mut self, time: u64, what: What, op: u32) {
        self.number += 1;
        self.events.push(Reverse(Event { time, number: self.number, what, op }));
    }

    /// Takes what has become ready on a host into the queue, sends first.
    fn start_ready(&mut self, host: u32, from: impl Fn(&Self, u32) -> u64) {
        let mut ready = std::mem::take(&mut self.hosts[host as usize].ready);
        ready.sort_by_key(|&op| match self.what(op).kind {
            GoalKind::Send { .. } => 0,
            GoalKind::Recv { .. } => 1,
            GoalKind::Calc { .. } => 2,
        });
        for op in ready {
            self.push(from(self, op), What::Op, op);
        }
    }

    /// From when an operation's processor, and a send's interface, are free.
    fn free_from(&self, op: u32) -> u64 {
        let host = &self.hosts[self.owner[op as usize] as usize];
        let what = self.what(op);
        let cpu = host.cpus[what.cpu as usize];
        match what.kind {
            GoalKind::Send { .. } => cpu.max(host.send_nics[what.nic as usize]),
            _ => cpu,
        }
    }

    /// `at + fixed + (bytes - 1) · each`
    fn after(&self, op: u32, at: u64, fixed: u64, bytes: u64, each: u64) -> Result<u64, LogGopsError> {
        let more = bytes.saturating_sub(1).checked_mul(each);
        let time = more.and_then(|more| at.checked_add(fixed)?.checked_add(more));
        let (rank, line) = (self.owner[op as usize], self.what(op).line);
        time.ok_or(LogGopsError::TooLong { rank, line })
    }

    fn op(&mut self, event: Event) -> Touched {
        let (op, at) = (event.op, event.time);
        let host = self.owner[op as usize];
        let what = self.what(op);
        let (cpu, nic) = (what.cpu as usize, what.nic as usize);
        let LogGops { l, o, g, g_byte, o_byte, s } = *self.params;
        let free = self.free_from(op);
        match what.kind {
            GoalKind::Recv { .. } => {
                self.start(op);
                Ok([Some(host), self.meet(op, at)])
            }
            _ if free > at => {
                self.events.push(Reverse(Event { time: free, ..event }));
                Ok([None, None])
            }
            GoalKind::Calc { ns } => {
                self.hosts[host as usize].cpus[cpu] = self.after(op, at, ns, 0, 0)?;
                self.start(op);
                self.end(op);
                Ok([Some(host), None])
            }
            GoalKind::Send { bytes, .. } => {
                self.hosts[host as usize].cpus[cpu] = self.after(op, at, o, bytes, o_byte)?;
                self.hosts[host as usize].send_nics[nic] = self.after(op, at, g, bytes, g_byte)?;
                let arrives = self.after(op, self.after(op, at, o, 0, 0)?, l, 0, 0)?;
                self.push(arrives, What::Message, op);
                self.start(op);
                if bytes <= s {
                    self.end(op);
                }
                Ok([Some(host), None])
            }
        }
    }

    /// A receive begins: takes the oldest message that fits, or waits for one. Gives the sender if that may go on.
    fn meet(&mut self, receive: u32, at: u64) -> Option<u32> {
        let host = self.owner[receive as usize] as usize;
        let found = self.hosts[host].messages.iter().position(|&send| self.fits(send, receive));
        let Some(found) = found else {
            self.hosts[host].receives.push_back(receive);
            return None;
        };
        let send = self.hosts[host].messages.remove(found).expect("invariant: it was found there");
        self.end(receive);
        self.release(send, at)
    }

    /// A message comes.
    fn message(&mut self, event: Event) -> Touched {
        let (send, at) = (event.op, event.time);
        let what = self.what(send);
        let GoalKind::Send { to, bytes, .. } = what.kind else {
            unreachable!("invariant: messages are made by sends")
        };
        let LogGops { o, g, g_byte, o_byte, .. } = *self.params;
        let (cpu, nic) = self.taken_by(send, to);
        let host = &self.hosts[to as usize];
        let free = host.cpus[cpu].max(host.recv_nics[nic]);
        if free > at {
            self.events.push(Reverse(Event { time: free, ..event }));
            return Ok([None, None]);
        }
        self.hosts[to as usize].cpus[cpu] = self.after(send, at, o, bytes, o_byte.max(g_byte))?;
        self.hosts[to as usize].recv_nics[nic] = self.after(send, at, g, bytes, g_byte)?;
        let found = self.hosts[to as usize].receives.iter().position(|&receive| self.fits(send, receive));
        let Some(found) = found else {
            self.hosts[to as usize].messages.push_back(send);
            return Ok([None, None]);
        };
        let receive = self.hosts[to as usize].receives.remove(found).expect("invariant: it was found there");
        self.end(receive);
        Ok([Some(to), self.release(send, at)])
    }

    /// The processor and interface of the receiver that a message takes: those that the send names, as far as there are.
    fn taken_by(&self, send: u32, to: u32) -> (usize, usize) {
        let (what, host) = (self.what(send), &self.hosts[to as usize]);
        let among = |wanted: u32, count: usize| (wanted as usize).min(count - 1);
        (among(what.cpu, host.cpus.len()), among(what.nic, host.recv_nics.len()))
    }

    fn fits(&self, send: u32, receive: u32) -> bool {
        let (GoalKind::Send { tag: sent, .. }, GoalKind::Recv { from, tag, .. }) =
            (self.what(send).kind, self.what(receive).kind)
        else {
            return false;
        };
        from.is_none_or(|from| from == self.owner[send as usize]) && tag.is_none_or(|tag| tag == sent)
    }

    /// Ends a send that waited for its receive: the sender's processor and interface were held until now.
    fn release(&mut self, send: u32, at: u64) -> Option<u32> {
        if self.done[send as usize] {
            return None;
        }
        let host = self.owner[send as usize];
        let (cpu, nic) = (self.what(send).cpu as usize, self.what(send).nic as usize);
        let state = &mut self.hosts[host as usize];
        state.cpus[cpu] = state.cpus[cpu].max(at);
        state.send_nics[nic] = state.send_nics[nic].max(at);
        self.end(send);
        Some(host)
    }

    fn start(&mut self, op: u32) {
        self.started[op as usize] = true;
        self.set_off(op, true);
    }

    fn end(&mut self, op: u32) {
        self.done[op as usize] = true;
        self.set_off(op, false);
    }

    fn set_off(&mut self, op: u32, start: bool) {
        for at in 0..self.sets_off[op as usize].len() {
            let (next, by_start) = self.sets_off[op as usize][at];
            if by_start == start {
                self.missing[next as usize] -= 1;
                if self.missing[next as usize] == 0 {
                    self.hosts[self.owner[next as usize] as usize].ready.push(next);
                }
            }
        }
    }

    fn blocked(&self) -> Vec<Blocked> {
        let left = (0..self.done.len() as u32).filter(|&op| !self.done[op as usize]);
        let one = |op: u32| {
            let (rank, what) = (self.owner[op as usize], self.what(op));
            let why = format!("`{}` {}", what.kind, self.waits_for(op));
            Blocked { rank, label: what.label.clone(), line: what.line, why }
        };
        left.map(one).collect()
    }

    /// What an operation that is left waits for, in words.
    fn waits_for(&self, op: u32) -> String {
        let (rank, what) = (self.owner[op as usize] as usize, self.what(op));
        if self.started[op as usize] {
            return match what.kind {
                GoalKind::Send { to, .. } => format!("waits for a receive on rank {to}"),
                _ => "waits for a message that is never sent".into(),
            };
        }
        let base = self.bases[rank];
        let part = &self.goal.ranks[rank];
        let open = |on: u32, start: bool| {
            let on = (base + on) as usize;
            if start { !self.started[on] } else { !self.done[on] }
        };
        let edge = part.edges.iter().find(|edge| base + edge.op == op && open(edge.on, edge.start));
        edge.map_or("can go on".into(), |edge| {
            let on = &part.ops[edge.on as usize];
            let what = if edge.start { "the start of " } else { "" };
            format!("waits for {what}`{}` (line {})", on.label, on.line)
        })
    }
}
