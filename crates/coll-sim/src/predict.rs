//! From a plan, a network and a size to what a run would take.

use crate::bound::{Bound, Limits};
use crate::engine::Engine;
use crate::path::{self, PathStep};
use crate::table::{Parts, Table};
use crate::ways::{self, Ways};
use crate::{SimError, stuck};
use coll_plan::Plan;
use coll_topo::Network;

/// Bytes of an element: plans may hold and send it as another type than the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// In the caller's buffers.
    pub given_bytes: u64,
    /// While it is copied and reduced.
    pub held_bytes: u64,
    /// In messages.
    pub sent_bytes: u64,
}

impl Default for Element {
    /// One byte, everywhere.
    fn default() -> Element {
        Element { given_bytes: 1, held_bytes: 1, sent_bytes: 1 }
    }
}

/// What a run is to be like.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Size of the buffer that `--bytes` sizes, on each rank.
    pub bytes: u64,
    /// What it is made of; bytes that make no whole element are left out.
    pub element: Element,
    /// The device of each rank; devices in the network's order if there is none.
    pub order: Option<Vec<u32>>,
    /// Messages of a connection that may be under way or lie with the receiver before their receives are there; the plan's
    /// own number if there is none.
    pub slots: Option<u32>,
    /// Sends follow receives byte by byte where the plan says that they may.
    pub stream: bool,
    /// However many flows share links, work all their rates out whenever one comes or goes; far slower for many.
    pub exact: bool,
    /// Keep when each operation began and ended.
    pub timeline: bool,
}

/// What a link carried.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkUse {
    /// Index into the network's links.
    pub link: u32,
    /// Bytes of all messages that crossed it.
    pub bytes: u128,
    /// The share of its capacity that they took, over the time of the run.
    pub busy_fraction: f64,
}

/// What a run takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// From the start on all ranks to the end on the last, in microseconds.
    pub time_us: f64,
    /// What no schedule of this contract can beat on this network.
    pub bound: Bound,
    /// Messages that were sent.
    pub messages: u64,
    /// Other ranks that the one with most of them sends to or receives from.
    pub peers_max: u32,
    /// Scratch of the rank that has most.
    pub scratch_max_bytes: u64,
    /// The operations that waited for each other, from the first to the one that ended last.
    pub path: Vec<PathStep>,
    /// Links that carried anything, in the network's order.
    pub links: Vec<LinkUse>,
    /// When operations began and ended, if that was asked for: by rank, then operation.
    pub timeline: Vec<Vec<(f64, f64)>>,
    /// The device of each rank.
    pub devices: Vec<u32>,
}

/// A plan that is ready to be run on a network, at any size.
pub struct Simulator<'p> {
    plans: Vec<&'p Plan>,
    network: &'p Network,
    devices: Vec<u32>,
    limits: Limits,
}

impl<'p> Simulator<'p> {
    /// Takes a whole plan, or all of its slices in any order, and a network with a device for each rank; `order` gives each
    /// rank's, if it is not the network's own order.
    ///
    /// # Errors
    /// Ranks or devices that are missing or taken twice, constants that are none.
    pub fn new(
        plans: Vec<&'p Plan>,
        network: &'p Network,
        order: Option<&[u32]>,
    ) -> Result<Simulator<'p>, SimError> {
        let parts = Parts::new(&plans)?;
        ways::check(network)?;
        let devices = ways::devices(network, order, parts.world())?;
        let limits = Limits::new(&parts, network, &devices);
        Ok(Simulator { plans, network, devices, limits })
    }

    /// Runs it in virtual time. The order of `options` is that which was given before.
    ///
    /// # Errors
    /// A size that the contract does not take, devices without a way between them, a plan that is stuck.
    pub fn run(&self, options: &Options) -> Result<Prediction, SimError> {
        let parts = Parts::new(&self.plans)?;
        let elements = options.bytes / options.element.given_bytes.max(1);
        let table = Table::new(&parts, elements, options.stream)?;
        let ways = Ways::new(&table, self.network, self.devices.clone())?;
        let slots = options.slots.unwrap_or(parts.lead().slots);
        let mut engine = Engine::new(&table, self.network, &ways, slots, options);
        if !engine.run() {
            return Err(SimError::Stuck(stuck::blocked(&parts, &table, &engine)));
        }
        let time_us = engine.end.get(engine.last as usize).copied().unwrap_or(0.0);
        let links = (0..).zip(&engine.carried).filter(|(_, bytes)| **bytes > 0);
        let links = links.map(|(link, &bytes)| {
            let capacity = self.network.links[link as usize].bytes_per_us * time_us;
            LinkUse { link, bytes, busy_fraction: (bytes as f64 / capacity).min(1.0) }
        });
        Ok(Prediction {
            time_us,
            bound: self.limits.at(elements, options.element.sent_bytes),
            messages: engine.messages,
            peers_max: peers_max(&table, parts.world()),
            scratch_max_bytes: table.scratch_max.saturating_mul(options.element.held_bytes),
            path: path::critical(&parts, &table, &engine),
            links: links.collect(),
            timeline: timeline(&table, &engine),
            devices: self.devices.clone(),
        })
    }
}

/// A run of a plan, or of all slices of one.
///
/// # Errors
/// As [`Simulator::new`] and [`Simulator::run`].
pub fn predict(plans: &[&Plan], network: &Network, options: &Options) -> Result<Prediction, SimError> {
    Simulator::new(plans.to_vec(), network, options.order.as_deref())?.run(options)
}

fn timeline(table: &Table, engine: &Engine) -> Vec<Vec<(f64, f64)>> {
    let Some(begin) = &engine.begin else { return Vec::new() };
    let times =
        |from: u32, to: u32| (from..to).map(|op| (begin[op as usize], engine.end[op as usize])).collect();
    table.bases.windows(2).map(|bases| times(bases[0], bases[1])).collect()
}

fn peers_max(table: &Table, world: u32) -> u32 {
    let ends = table.connections.iter().flat_map(|c| [(c.from, c.to), (c.to, c.from)]);
    let mut ends: Vec<(u32, u32)> = ends.collect();
    ends.sort_unstable();
    ends.dedup();
    let mut counts = vec![0; world as usize];
    ends.into_iter().for_each(|(rank, _)| counts[rank as usize] += 1);
    counts.into_iter().max().unwrap_or(0)
}
