//! Flows that share links: max–min fair rates, kept up as flows come and go (D. Bertsekas, R. Gallager, *Data networks*,
//! 1992, 6.5.2: progressive filling).
//!
//! Most links of a network are never full: what all their flows could take at most, each bound by the slowest link of its
//! way, is less than they have. Such a link binds nobody and joins no flows. When flows come and go, rates are worked
//! out anew for those alone that are joined to them by links that may bind; an unchanged rate is not touched, so that a
//! flow that is alone ends exactly at its bytes over its bandwidth.
//!
//! Where more than [`JOINED_MAX`] flows are joined and one of them comes or goes, the others' rates hardly change, and to work
//! them out for each would take forever. So they wait until a [`TURNOVER`]th of all flows has changed: what is new has its
//! fair share of each link until then, what has gone leaves its share unused, and a link that was found to join too many is not
//! tried again. What comes and goes at one time counts at once, so that ranks in step are exact at any number.
//! [`Flows::exact`] does without.
//!
//! A flow whose end moves to a later time has an [`End`] already, at the earlier one; when that comes it is told of the later. So
//! where more and more flows come, which is when each slows down all others, ends are not told again and again.

use coll_topo::LinkId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Rates of so many flows that are joined are worked out anew whenever one of them comes or goes.
const JOINED_MAX: usize = 256;

/// Of more, when one in so many of all flows has.
const TURNOVER: usize = 16;

/// A flow's place in the table.
pub(crate) type FlowId = u32;

/// Rates are summed in whole units of this share of a byte a microsecond, so that sums do not depend on their order.
const UNITS_PER_BYTE: f64 = 65_536.0;

struct Link {
    bytes_per_us: f64,
    capacity: u128,
    /// What its flows could take at most.
    demand: u128,
    /// Its flows, and ones that have ended since they were last gone through.
    flows: Vec<(FlowId, u32)>,
    live: u32,
    /// In the round of filling that is under way: what is left, for how many.
    rest: f64,
    open: u32,
    round: u32,
    /// The round in which its flows were last gone through.
    reached: u32,
    /// The era in which it was found to join too many.
    late: u32,
}

impl Link {
    fn may_bind(&self) -> bool {
        self.demand > self.capacity
    }
}

struct Flow {
    /// What it belongs to; the caller's.
    owner: u32,
    way: Vec<LinkId>,
    peak: f64,
    units: u128,
    left: f64,
    rate: f64,
    since: f64,
    /// Counts up when it ends, so that a link knows an old entry.
    life: u32,
    /// When it ends, as things are.
    end: f64,
    /// When an end of it is told, which is no later.
    told: f64,
    /// Counts up with each end that is told, so that one that was told before counts no more.
    version: u32,
    round: u32,
    fixed: bool,
    lives: bool,
}

/// When a flow will end, if nothing changes.
pub(crate) struct End {
    pub(crate) at: f64,
    pub(crate) flow: FlowId,
    pub(crate) version: u32,
}

/// What an end that was told is when it comes.
pub(crate) enum Ending {
    /// Of a flow that is gone, or had another end told.
    OutOfDate,
    /// The flow has slowed down since.
    Later(End),
    /// The owner of what has ended.
    Ended(u32),
}

/// All flows.
pub(crate) struct Flows {
    links: Vec<Link>,
    flows: Vec<Flow>,
    free: Vec<FlowId>,
    /// Flows that are new, and links that may have bound others and lost a flow.
    new: Vec<FlowId>,
    eased: Vec<LinkId>,
    /// Those of them that wait; a flow with its life, for it may have ended since.
    late_new: Vec<(FlowId, u32)>,
    late_eased: Vec<LinkId>,
    live: usize,
    round: u32,
    /// Counts up whenever all that has changed is made good.
    era: u32,
    /// Rates of so many joined flows are worked out anew whenever one comes or goes.
    joined_max: usize,
}

impl Flows {
    pub(crate) fn new(network: &coll_topo::Network) -> Flows {
        let link = |link: &coll_topo::Link| Link {
            bytes_per_us: link.bytes_per_us,
            capacity: (link.bytes_per_us * UNITS_PER_BYTE).floor() as u128,
            demand: 0,
            flows: Vec::new(),
            live: 0,
            rest: 0.0,
            open: 0,
            round: 0,
            reached: 0,
            late: 0,
        };
        Flows {
            links: network.links.iter().map(link).collect(),
            flows: Vec::new(),
            free: Vec::new(),
            new: Vec::new(),
            eased: Vec::new(),
            late_new: Vec::new(),
            late_eased: Vec::new(),
            live: 0,
            round: 0,
            era: 1,
            joined_max: JOINED_MAX,
        }
    }

    /// Works all rates out anew whenever a flow comes or goes, however many are joined.
    pub(crate) fn exact(self) -> Flows {
        Flows { joined_max: usize::MAX, ..self }
    }

    /// Adds a flow of `bytes` over `way`, whose slowest link gives `peak`. It moves from the next [`Flows::settle`] on.
    pub(crate) fn add(&mut self, owner: u32, way: &[LinkId], peak: f64, bytes: u128, now: f64) {
        let units = (peak * UNITS_PER_BYTE).ceil() as u128;
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow {
                owner: 0,
                way: Vec::new(),
                peak: 0.0,
                units: 0,
                left: 0.0,
                rate: 0.0,
                since: 0.0,
                life: 0,
                end: f64::INFINITY,
                told: f64::INFINITY,
                version: 0,
                round: 0,
                fixed: false,
                lives: false,
            });
            self.flows.len() as u32 - 1
        });
        let flow = &mut self.flows[id as usize];
        flow.owner = owner;
        flow.way.clear();
        flow.way.extend_from_slice(way);
        (flow.peak, flow.units, flow.left, flow.rate, flow.since) = (peak, units, bytes as f64, 0.0, now);
        (flow.end, flow.told, flow.lives) = (f64::INFINITY, f64::INFINITY, true);
        let life = flow.life;
        for &link in way {
            let link = &mut self.links[link as usize];
            link.demand += units;
            link.live += 1;
            // Ended flows are dropped before they are more than those that live.
            if link.flows.len() >= 8 && link.flows.len() > 2 * link.live as usize {
                let flows = &self.flows;
                link.flows.retain(|&(flow, life)| flows[flow as usize].life == life);
            }
            link.flows.push((id, life));
        }
        self.new.push(id);
        self.live += 1;
    }

    /// What has come of an end that was told for now: the flow has ended, and is taken out, or will later.
    pub(crate) fn end(&mut self, flow: FlowId, version: u32, now: f64) -> Ending {
        let ended = &mut self.flows[flow as usize];
        if ended.version != version {
            return Ending::OutOfDate;
        }
        ended.version += 1;
        if ended.end > now {
            ended.told = ended.end;
            return Ending::Later(End { at: ended.end, flow, version: ended.version });
        }
        ended.life += 1;
        ended.lives = false;
        let (owner, units, way) = (ended.owner, ended.units, std::mem::take(&mut ended.way));
        for &id in &way {
            let link = &mut self.links[id as usize];
            if link.may_bind() {
                self.eased.push(id);
            }
            link.demand -= units;
            link.live -= 1;
        }
        self.flows[flow as usize].way = way;
        self.free.push(flow);
        self.live -= 1;
        Ending::Ended(owner)
    }

    /// True if flows have come or gone since rates were last worked out.
    pub(crate) fn is_settled(&self) -> bool {
        self.new.is_empty() && self.eased.is_empty()
    }

    /// Works rates out anew where they may have changed, and gives the ends that follow.
    pub(crate) fn settle(&mut self, now: f64, ends: &mut Vec<End>) {
        let (new, eased) = (std::mem::take(&mut self.new), std::mem::take(&mut self.eased));
        let changed = new.len() + self.late_new.len() + (eased.len() + self.late_eased.len()) / 2;
        if self.live > self.joined_max && changed * TURNOVER >= self.live {
            self.era += 1;
            self.late_new.clear();
            self.late_eased.clear();
            let (joined, binding) = self.all();
            return self.rate(joined, &binding, now, ends);
        }
        if self.live <= self.joined_max {
            self.round += 1;
            self.era += 1;
            let mut joined: Vec<FlowId> = Vec::new();
            for (flow, life) in std::mem::take(&mut self.late_new) {
                if self.flows[flow as usize].life == life {
                    self.reach(flow, &mut joined);
                }
            }
            new.into_iter().for_each(|flow| self.reach(flow, &mut joined));
            let late = std::mem::take(&mut self.late_eased);
            late.into_iter().chain(eased).for_each(|link| self.reach_all(link, &mut joined));
            let binding = self.join(&mut joined, usize::MAX).unwrap_or_default();
            return self.rate(joined, &binding, now, ends);
        }
        for flow in new {
            // What was reached from another that came at the same time has its rate.
            if self.flows[flow as usize].rate > 0.0 {
                continue;
            }
            self.round += 1;
            let mut joined = Vec::new();
            self.reach(flow, &mut joined);
            match self.join(&mut joined, self.joined_max) {
                Some(binding) => self.rate(joined, &binding, now, ends),
                None => {
                    self.late_new.push((flow, self.flows[flow as usize].life));
                    let share = self.share(flow);
                    self.set(flow, share, now, ends);
                }
            }
        }
        for link in eased {
            // It joins too many by itself, or did a moment ago.
            let Link { live, late, .. } = self.links[link as usize];
            let is_wide = self.links[link as usize].may_bind() && live as usize > self.joined_max;
            if is_wide || late == self.era {
                self.late_eased.push(link);
                continue;
            }
            self.round += 1;
            let mut joined = Vec::new();
            self.reach_all(link, &mut joined);
            match self.join(&mut joined, self.joined_max) {
                Some(binding) => self.rate(joined, &binding, now, ends),
                None => {
                    self.links[link as usize].late = self.era;
                    self.late_eased.push(link);
                }
            }
        }
    }

    /// All flows, and all links that may bind: of very many joined flows these are nearly those that are joined, and gone through
    /// as they lie in memory.
    fn all(&mut self) -> (Vec<FlowId>, Vec<LinkId>) {
        self.round += 1;
        let (mut joined, mut binding) = (Vec::with_capacity(self.live), Vec::new());
        for (id, flow) in (0..).zip(&mut self.flows).filter(|(_, flow)| flow.lives) {
            (flow.round, flow.fixed) = (self.round, false);
            joined.push(id);
        }
        for (id, link) in (0..).zip(&mut self.links).filter(|(_, link)| link.live > 0 && link.may_bind()) {
            link.round = self.round;
            (link.rest, link.open) = (link.bytes_per_us, link.live);
            binding.push(id);
        }
        (joined, binding)
    }

    /// Adds all flows that those given are joined to, and gives the links that join them. None if they are more than `most`.
    fn join(&mut self, joined: &mut Vec<FlowId>, most: usize) -> Option<Vec<LinkId>> {
        let mut binding: Vec<LinkId> = Vec::new();
        let mut at = 0;
        while at < joined.len() {
            let flow = joined[at] as usize;
            at += 1;
            for step in 0..self.flows[flow].way.len() {
                let id = self.flows[flow].way[step];
                let link = &mut self.links[id as usize];
                if link.may_bind() && link.round != self.round {
                    link.round = self.round;
                    (link.rest, link.open) = (link.bytes_per_us, link.live);
                    if joined.len() + link.live as usize > most.saturating_add(1) {
                        return None;
                    }
                    binding.push(id);
                    self.reach_all(id, joined);
                }
            }
        }
        Some(binding)
    }

    /// Rates of flows that are joined to no others.
    fn rate(&mut self, joined: Vec<FlowId>, binding: &[LinkId], now: f64, ends: &mut Vec<End>) {
        match binding.is_empty() {
            true => joined.iter().for_each(|&flow| {
                let peak = self.flows[flow as usize].peak;
                self.set(flow, peak, now, ends);
            }),
            false => self.fill(joined, binding, now, ends),
        }
    }

    /// An equal share of each link of a flow's way.
    fn share(&self, flow: FlowId) -> f64 {
        let Flow { way, peak, .. } = &self.flows[flow as usize];
        let of_link = |&link: &LinkId| {
            let link = &self.links[link as usize];
            link.bytes_per_us / f64::from(link.live)
        };
        way.iter().map(of_link).fold(*peak, f64::min)
    }

    fn reach(&mut self, flow: FlowId, joined: &mut Vec<FlowId>) {
        let reached = &mut self.flows[flow as usize];
        if reached.round != self.round {
            (reached.round, reached.fixed) = (self.round, false);
            joined.push(flow);
        }
    }

    /// All flows of a link that live; once in a round.
    fn reach_all(&mut self, link: LinkId, joined: &mut Vec<FlowId>) {
        if std::mem::replace(&mut self.links[link as usize].reached, self.round) == self.round {
            return;
        }
        let mut flows = std::mem::take(&mut self.links[link as usize].flows);
        flows.retain(|&(flow, life)| self.flows[flow as usize].life == life);
        flows.iter().for_each(|&(flow, _)| self.reach(flow, joined));
        self.links[link as usize].flows = flows;
    }

    /// Progressive filling: all rates rise together; a flow stops at its peak, or when a link of its way is full.
    fn fill(&mut self, mut joined: Vec<FlowId>, binding: &[LinkId], now: f64, ends: &mut Vec<End>) {
        // Rates are positive, so their bits are ordered as they are.
        let share = |link: &Link| (link.rest.max(0.0) / f64::from(link.open)).to_bits();
        let mut full: BinaryHeap<Reverse<(u64, LinkId)>> =
            binding.iter().map(|&id| Reverse((share(&self.links[id as usize]), id))).collect();
        // Where the slowest link of a way may bind, it stops the flow before its peak does.
        joined.retain(|&flow| {
            let Flow { way, peak, .. } = &self.flows[flow as usize];
            let mut binding =
                way.iter().map(|&link| &self.links[link as usize]).filter(|l| l.round == self.round);
            binding.all(|link| link.bytes_per_us > *peak)
        });
        joined.sort_by(|&a, &b| {
            self.flows[a as usize].peak.total_cmp(&self.flows[b as usize].peak).then(a.cmp(&b))
        });
        let mut by_peak = joined.into_iter().peekable();
        let mut level = 0.0_f64;
        loop {
            while by_peak.next_if(|&flow| self.flows[flow as usize].fixed).is_some() {}
            let lowest = by_peak.peek().copied();
            let peak = lowest.map_or(f64::INFINITY, |flow| self.flows[flow as usize].peak);
            let next = full.peek().map(|&Reverse((bits, id))| (f64::from_bits(bits), id));
            match next {
                Some((at, id)) if at < peak => {
                    let link = &self.links[id as usize];
                    full.pop();
                    if link.open == 0 {
                        continue;
                    }
                    // Shares only grow as others stop; an old one is put back with what it is now.
                    let current = share(link);
                    if current != at.to_bits() {
                        full.push(Reverse((current, id)));
                        continue;
                    }
                    level = level.max(at);
                    let flows = std::mem::take(&mut self.links[id as usize].flows);
                    for &(flow, life) in &flows {
                        // An entry may be of a flow that has ended, and its place be another's.
                        let Flow { fixed, life: lives, .. } = self.flows[flow as usize];
                        if lives == life && !fixed {
                            self.fix(flow, level, now, ends);
                        }
                    }
                    self.links[id as usize].flows = flows;
                }
                _ => {
                    let Some(lowest) = lowest else { return };
                    by_peak.next();
                    level = level.max(peak);
                    self.fix(lowest, peak, now, ends);
                }
            }
        }
    }

    fn fix(&mut self, flow: FlowId, rate: f64, now: f64, ends: &mut Vec<End>) {
        self.flows[flow as usize].fixed = true;
        for step in 0..self.flows[flow as usize].way.len() {
            let link = &mut self.links[self.flows[flow as usize].way[step] as usize];
            if link.round == self.round {
                link.rest -= rate;
                link.open -= 1;
            }
        }
        self.set(flow, rate, now, ends);
    }

    /// Gives a flow its rate, if it is another, and says when it will end.
    fn set(&mut self, id: FlowId, rate: f64, now: f64, ends: &mut Vec<End>) {
        let flow = &mut self.flows[id as usize];
        if flow.rate == rate {
            return;
        }
        flow.left = (flow.left - flow.rate * (now - flow.since)).max(0.0);
        (flow.rate, flow.since) = (rate, now);
        flow.end = now + flow.left / rate;
        if flow.end < flow.told {
            flow.told = flow.end;
            flow.version += 1;
            ends.push(End { at: flow.end, flow: id, version: flow.version });
        }
    }
}

#[cfg(test)]
mod tests;
