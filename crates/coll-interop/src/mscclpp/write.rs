//! From a plan to an execution plan of MSCCL++: a lane becomes a thread block. To receive, a rank signals that it is ready,
//! and waits; the sender waits for that, puts what it has to say right where it belongs, and signals. What is to be reduced
//! is put into scratch first. Waits between lanes are semaphores.
//!
//! This is a plan whose sends wait for their receives, and nothing else. A plan that needs message slots is refused.

use crate::attempt::word;
use crate::collectives::{self, Blocks, Known};
use crate::grid::{Grid, Scratch};
use crate::refusal::{refusal, whole};
use crate::written::{Written, over};
use coll_base::Diagnostic;
use coll_plan::{Action, Op, Plan, RankPlan, Region, Store};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const FORM: &str = "MSCCL++ JSON";

/// A connection: sender, receiver, channel.
type Link = (u32, u32, u32);

/// Writes a proved plan.
///
/// # Errors
/// If the plan needs message slots, its cuts meet no equal chunks, or a connection ends in two lanes.
pub fn write(plan: &Plan) -> Result<Written, Box<Diagnostic>> {
    whole(plan, FORM)?;
    let known = collectives::by_name(&plan.contract.collective).ok_or_else(|| {
        let found = format!("`{}`", plan.contract.collective);
        refusal(plan, FORM, format!("one of {}", collectives::names()), found)
    })?;
    if plan.slots > 0 {
        let found = format!("one that needs {} message slots", plan.slots);
        return Err(refusal(plan, FORM, "a plan whose sends may wait for their receives", found));
    }
    let grid = Grid::of(plan)
        .ok_or_else(|| refusal(plan, FORM, "cuts into equal chunks", "cuts that no such chunks meet"))?;
    let sheet = Sheet::new(plan, known, &grid)?;
    let gpus: Vec<Value> = (0..plan.world()).map(|rank| sheet.gpu(rank)).collect();
    let document = json!({
        "name": word(&plan.name),
        "collective": known.words[0],
        "protocol": "Simple",
        "inplace": false,
        "reuse_resources": false,
        "num_threads_per_block": 1024,
        "use_double_scratch_buffer": false,
        "buffer_alignment": 16,
        "min_message_size": 0,
        "max_message_size": u64::MAX,
        "gpus": gpus,
    });
    let text = serde_json::to_string(&document).expect("invariant: plain data") + "\n";
    Ok(Written { text, beyond: beyond(&document), form: FORM, loaded_by: "MSCCL++'s executor" })
}

/// Limits of the executor (`execution_common.hpp`) that a document exceeds: sizes of its tables.
fn beyond(document: &Value) -> Vec<String> {
    let list = |value: &Value, name: &str| value[name].as_array().map_or(0, Vec::len) as u64;
    let (mut ops, mut channels, mut buffers, mut semaphores) = (0, 0, 0, 0);
    for gpu in document["gpus"].as_array().into_iter().flatten() {
        semaphores = list(gpu, "semaphores").max(semaphores);
        for block in gpu["threadblocks"].as_array().into_iter().flatten() {
            ops = list(block, "ops").max(ops);
            channels = list(&block["channels"][0], "channel_ids").max(channels);
            buffers = list(&block["remote_buffer_refs"][0], "remote_buffer_ids").max(buffers);
        }
    }
    let whose = "MSCCL++'s executor";
    let limits = [
        over(ops, 64, "operations in a thread block", whose),
        over(channels, 16, "channels of a thread block", whose),
        over(buffers, 16, "remote buffers of a thread block", whose),
        over(semaphores, 16, "semaphores on a rank", whose),
    ];
    limits.into_iter().flatten().collect()
}

/// Memory of a rank, as other ranks name it: a letter and the first chunk.
type Spot = (char, u32);

struct Sheet<'a> {
    plan: &'a Plan,
    known: &'static Known,
    grid: &'a Grid,
    scratch: Vec<Scratch>,
    /// Where on the receiver what is to be reduced is put, for each connection that needs it.
    landings: BTreeMap<Link, u32>,
    /// All scratch of each rank.
    scratch_chunks: Vec<u32>,
    /// For each rank, its channels: the peer, and the connection, which has the same place at both ends.
    channels: Vec<Vec<(u32, Link)>>,
    /// For each connection, where each of its messages is to be put: spot and chunks, region by region.
    targets: BTreeMap<Link, Vec<Vec<(Spot, u32)>>>,
}

impl<'a> Sheet<'a> {
    fn new(plan: &'a Plan, known: &'static Known, grid: &'a Grid) -> Result<Sheet<'a>, Box<Diagnostic>> {
        let scratch: Vec<Scratch> = plan.ranks.iter().map(|part| Scratch::of(part, grid)).collect();
        let scratch_chunks = scratch.iter().map(|scratch| scratch.chunks).collect();
        let mut sheet = Sheet {
            plan,
            known,
            grid,
            scratch,
            landings: BTreeMap::new(),
            scratch_chunks,
            channels: vec![Vec::new(); plan.ranks.len()],
            targets: BTreeMap::new(),
        };
        sheet.one_lane_each()?;
        sheet.land();
        sheet.connect();
        Ok(sheet)
    }

    /// Each end of a connection is in one lane.
    fn one_lane_each(&self) -> Result<(), Box<Diagnostic>> {
        for part in &self.plan.ranks {
            let mut ends: BTreeMap<(Link, bool), usize> = BTreeMap::new();
            for (number, lane) in part.lanes.iter().enumerate() {
                for op in &part.ops[lane.start as usize..lane.end as usize] {
                    let Some(end) = link_of(part.rank, op) else { continue };
                    if *ends.entry(end).or_insert(number) != number {
                        let (from, to, channel) = end.0;
                        let found = format!(
                            "two lanes of rank {} on the one from rank {from} to rank {to}, channel {channel}",
                            part.rank
                        );
                        return Err(refusal(self.plan, FORM, "each end of a connection in one lane", found));
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives scratch to what is put before it is reduced, and notes where every message is to be put.
    fn land(&mut self) {
        for part in &self.plan.ranks {
            for op in &part.ops {
                let Some((peer, channel)) = op.action.receives_from() else { continue };
                let link = (peer, part.rank, channel);
                let regions = part.regions(op.target);
                if matches!(op.action, Action::RecvReduce { .. }) {
                    let needs: u32 = regions.iter().map(|region| self.grid.length(region)).sum();
                    let most = self.landings.entry(link).or_default();
                    *most = needs.max(*most);
                }
            }
        }
        for (&(_, to, _), start) in &mut self.landings {
            let all = &mut self.scratch_chunks[to as usize];
            let needs = std::mem::replace(start, *all);
            *all += needs;
        }
        for part in &self.plan.ranks {
            for op in &part.ops {
                let Some((peer, channel)) = op.action.receives_from() else { continue };
                let link = (peer, part.rank, channel);
                let spots = self.spots(part, op, link);
                self.targets.entry(link).or_default().push(spots);
            }
        }
    }

    /// Where a message is put: its target, or scratch if it is to be reduced.
    fn spots(&self, part: &RankPlan, op: &Op, link: Link) -> Vec<(Spot, u32)> {
        let regions = part.regions(op.target);
        let mut landing = self.landings.get(&link).copied().unwrap_or(0);
        let spot = |region: &Region| {
            let count = self.grid.length(region);
            match op.action {
                Action::RecvReduce { .. } => {
                    let start = landing;
                    landing += count;
                    (('s', start), count)
                }
                _ => (self.spot(part.rank, region), count),
            }
        };
        regions.iter().map(spot).collect()
    }

    fn spot(&self, rank: u32, region: &Region) -> Spot {
        if let Some(start) = self.scratch[rank as usize].start(region, self.grid) {
            return ('s', start);
        }
        let (letter, spans) = match region.store {
            Store::In(_) => ('i', self.known.input),
            _ => ('o', self.known.output),
        };
        let first = if spans == Blocks::All { region.block * self.grid.chunks } else { 0 };
        (letter, first + self.grid.start(region.low))
    }

    fn connect(&mut self) {
        let links: BTreeSet<Link> = self
            .plan
            .ranks
            .iter()
            .flat_map(|part| part.ops.iter().filter_map(|op| link_of(part.rank, op).map(|(link, _)| link)))
            .collect();
        for link in links {
            let (from, to, _) = link;
            self.channels[from as usize].push((to, link));
            self.channels[to as usize].push((from, link));
        }
        // Connections of two ranks stand in one order at both ends, which is how MSCCL++ pairs them.
        self.channels.iter_mut().for_each(|channels| channels.sort_unstable());
    }

    fn gpu(&self, rank: u32) -> Value {
        let part = &self.plan.ranks[rank as usize];
        let blocks = self.plan.contract.buffers.first().map_or(1, |decl| decl.blocks);
        let span = |spans| if spans == Blocks::All { blocks * self.grid.chunks } else { self.grid.chunks };
        let channels = &self.channels[rank as usize];
        let peers: Vec<u32> = channels.iter().map(|&(peer, _)| peer).collect();
        let remote: BTreeSet<(u32, char)> = part
            .ops
            .iter()
            .filter_map(|op| op.action.sends_to())
            .flat_map(|(peer, channel)| {
                let messages = self.targets.get(&(rank, peer, channel)).map_or(&[][..], |list| list);
                messages.iter().flatten().map(move |&((letter, _), _)| (peer, letter))
            })
            .collect();
        let remote: Vec<(u32, char)> = remote.into_iter().collect();
        let edges = edges(part);
        let blocks_of = |(number, _): (usize, &coll_plan::Lane)| self.block(part, number, &remote, &edges);
        json!({
            "id": rank,
            "input_chunks": span(self.known.input),
            "output_chunks": span(self.known.output),
            "scratch_chunks": self.scratch_chunks[rank as usize],
            "channels": [{ "channel_type": "memory", "connected_to": peers }],
            "remote_buffers": remote.iter().map(|(peer, letter)| {
                json!({ "rank": peer, "type": letter.to_string(), "access_channel_types": ["memory"] })
            }).collect::<Vec<_>>(),
            "semaphores": edges.iter().map(|_| json!({ "init_value": 0 })).collect::<Vec<_>>(),
            "threadblocks": part.lanes.iter().enumerate().map(blocks_of).collect::<Vec<_>>(),
        })
    }

    fn block(&self, part: &RankPlan, number: usize, remote: &[(u32, char)], edges: &[(u32, u32)]) -> Value {
        let lane = part.lanes[number];
        let mut page = Page { remote, ..Page::default() };
        let mut sent: BTreeMap<Link, usize> = BTreeMap::new();
        for (id, op) in (lane.start..lane.end).zip(&part.ops[lane.start as usize..lane.end as usize]) {
            let semaphores = |is_own: fn(&(u32, u32), u32) -> bool| -> Vec<usize> {
                edges.iter().enumerate().filter(|(_, edge)| is_own(edge, id)).map(|(at, _)| at).collect()
            };
            page.acquire(&semaphores(|edge, id| edge.1 == id));
            self.op(part, op, &mut sent, &mut page);
            page.release(&semaphores(|edge, id| edge.0 == id));
        }
        let at = |link: &Link| self.channels[part.rank as usize].iter().position(|(_, known)| known == link);
        let channels: Vec<usize> = page.links.iter().filter_map(at).collect();
        json!({
            "id": number,
            "channels": [{ "channel_type": "memory", "channel_ids": channels }],
            "remote_buffer_refs": [{ "access_channel_type": "memory", "remote_buffer_ids": page.buffers }],
            "ops": page.ops,
        })
    }

    fn op(&self, part: &RankPlan, op: &Op, sent: &mut BTreeMap<Link, usize>, page: &mut Page<'_>) {
        let rank = part.rank;
        let here = |region: &Region| local(self.spot(rank, region), self.grid.length(region));
        let (source, operand, target) =
            (part.regions(op.source), part.regions(op.operand), part.regions(op.target));
        let reduce = |operand: &Region, incoming: Value, target: &Region| json!({ "name": "re", "src_buff": [here(operand), incoming], "dst_buff": [here(target)], "reduce_op": "sum" });
        let mut moves = Vec::new();
        match op.action {
            Action::Send { peer, channel } => {
                let link = (rank, peer, channel);
                let nth = sent.entry(link).or_default();
                let spots = self.targets.get(&link).and_then(|messages| messages.get(*nth));
                *nth += 1;
                page.wait(link);
                for (region, &((letter, index), size)) in source.iter().zip(spots.into_iter().flatten()) {
                    let id = page.buffer((peer, letter));
                    moves.push(json!({
                        "name": "put",
                        "src_buff": [here(region)],
                        "dst_buff": [{ "buffer_id": id, "index": index, "size": size }],
                        "channel_type": "memory",
                    }));
                }
                page.moves(moves);
                page.signal(link);
                return;
            }
            Action::Recv { peer, channel } | Action::RecvReduce { peer, channel, .. } => {
                let link = (peer, rank, channel);
                page.signal(link);
                page.wait(link);
                if matches!(op.action, Action::RecvReduce { .. }) {
                    let spots = self.spots(part, op, link);
                    for ((operand, target), &(spot, size)) in operand.iter().zip(target).zip(&spots) {
                        moves.push(reduce(operand, local(spot, size), target));
                    }
                }
            }
            Action::Copy => {
                for (from, to) in source.iter().zip(target) {
                    moves.push(json!({ "name": "copy", "src_buff": [here(from)], "dst_buff": [here(to)] }));
                }
            }
            Action::Reduce { .. } => {
                for ((from, operand), to) in source.iter().zip(operand).zip(target) {
                    moves.push(reduce(operand, here(from), to));
                }
            }
        }
        page.moves(moves);
    }
}

fn local((letter, index): Spot, size: u32) -> Value {
    json!({ "type": letter.to_string(), "index": index, "size": size })
}

/// A thread block, as it is written down. Its threads wait for each other at a `nop` alone: there is one before data is moved
/// that was waited for or moved just before, and before others are told of what was.
#[derive(Default)]
struct Page<'p> {
    /// All of the rank's remote buffers.
    remote: &'p [(u32, char)],
    ops: Vec<Value>,
    /// The connections that it uses, and the remote buffers, each by its place in these lists.
    links: Vec<Link>,
    buffers: Vec<usize>,
    has_moved: bool,
    has_waited: bool,
}

impl Page<'_> {
    fn nop(&mut self) {
        self.ops.push(json!({ "name": "nop" }));
        (self.has_moved, self.has_waited) = (false, false);
    }

    fn moves(&mut self, moves: Vec<Value>) {
        if moves.is_empty() {
            return;
        }
        if self.has_moved || self.has_waited {
            self.nop();
        }
        self.ops.extend(moves);
        self.has_moved = true;
    }

    fn turn(&mut self, name: &str, link: Link) {
        let at = self.links.iter().position(|&known| known == link).unwrap_or_else(|| {
            self.links.push(link);
            self.links.len() - 1
        });
        self.ops.push(json!({ "name": name, "channel_ids": [at], "channel_type": "memory" }));
    }

    fn signal(&mut self, link: Link) {
        if self.has_moved || self.has_waited {
            self.nop();
        }
        self.turn("signal", link);
    }

    fn wait(&mut self, link: Link) {
        self.turn("wait", link);
        self.has_waited = true;
    }

    fn acquire(&mut self, semaphores: &[usize]) {
        if !semaphores.is_empty() {
            self.ops.push(json!({ "name": "sem_acquire", "semaphore_ids": semaphores }));
            self.has_waited = true;
        }
    }

    fn release(&mut self, semaphores: &[usize]) {
        if semaphores.is_empty() {
            return;
        }
        if self.has_moved || self.has_waited {
            self.nop();
        }
        self.ops.push(json!({ "name": "sem_release", "semaphore_ids": semaphores }));
    }

    /// The place of a remote buffer among those of the thread block.
    fn buffer(&mut self, buffer: (u32, char)) -> usize {
        let all = self.remote.iter().position(|&known| known == buffer);
        let all = all.expect("invariant: every target of a message is listed");
        self.buffers.iter().position(|&known| known == all).unwrap_or_else(|| {
            self.buffers.push(all);
            self.buffers.len() - 1
        })
    }
}

/// The connection of an operation, and whether it sends there.
fn link_of(rank: u32, op: &Op) -> Option<(Link, bool)> {
    let sends = op.action.sends_to().map(|(peer, channel)| ((rank, peer, channel), true));
    sends.or(op.action.receives_from().map(|(peer, channel)| ((peer, rank, channel), false)))
}

/// Waits between two lanes: who is waited for, and who waits.
fn edges(part: &RankPlan) -> Vec<(u32, u32)> {
    let lane = |op: u32| part.lanes.partition_point(|lane| lane.end <= op);
    let mut edges = Vec::new();
    for (id, op) in (0..).zip(&part.ops) {
        edges
            .extend(part.waits(op).iter().filter(|wait| lane(wait.op) != lane(id)).map(|wait| (wait.op, id)));
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}
