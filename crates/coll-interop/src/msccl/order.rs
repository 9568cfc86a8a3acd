//! An order in which all steps can be taken, if connections hold any number of messages; or the ring of those that wait
//! for each other. What can go on stays able to, so that whoever is quick makes no difference.

use super::model::{Algorithm, Step};
use crate::codes::RING;
use coll_base::Diagnostic;
use std::collections::HashMap;

/// A step: rank, thread block, number.
pub(super) type StepRef = (u32, u32, u32);

/// What a thread block waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Need {
    /// A step of a thread block of its rank.
    Step(u32, u32, u32),
    /// The next message of a connection.
    Message(u32, u32, u32),
}

/// Thread blocks under way; each has a number over all ranks.
struct Course<'a> {
    algorithm: &'a Algorithm,
    first: Vec<u32>,
    at: Vec<u32>,
    /// Messages that were sent and not yet received.
    under_way: HashMap<(u32, u32, u32), u32>,
    sleepers: HashMap<Need, Vec<u32>>,
    awake: Vec<u32>,
    order: Vec<StepRef>,
}

/// All steps, in an order in which they can be taken.
pub(super) fn order(algorithm: &Algorithm) -> Result<Vec<StepRef>, Vec<Diagnostic>> {
    let mut first = vec![0];
    for gpu in &algorithm.gpus {
        first.push(first[first.len() - 1] + gpu.blocks.len() as u32);
    }
    let blocks = first[first.len() - 1];
    let mut course = Course {
        algorithm,
        first,
        at: vec![0; blocks as usize],
        under_way: HashMap::new(),
        sleepers: HashMap::new(),
        awake: (0..blocks).rev().collect(),
        order: Vec::with_capacity(algorithm.steps()),
    };
    while let Some(block) = course.awake.pop() {
        course.advance(block);
    }
    match course.order.len() == algorithm.steps() {
        true => Ok(course.order),
        false => Err(vec![course.ring()]),
    }
}

impl<'a> Course<'a> {
    fn place(&self, block: u32) -> (u32, u32) {
        let rank = self.first.partition_point(|&first| first <= block) as u32 - 1;
        (rank, block - self.first[rank as usize])
    }

    fn head(&self, block: u32) -> Option<&'a Step> {
        let (rank, id) = self.place(block);
        self.algorithm.gpus[rank as usize].blocks[id as usize].steps.get(self.at[block as usize] as usize)
    }

    /// What the step at a thread block's head lacks.
    fn lacks(&self, block: u32) -> Option<Need> {
        let step = self.head(block)?;
        let (rank, id) = self.place(block);
        if let Some((on, number)) = step.depends {
            let other = self.first[rank as usize] + on;
            if self.at[other as usize] <= number {
                return Some(Need::Step(rank, on, number));
            }
        }
        let tb = &self.algorithm.gpus[rank as usize].blocks[id as usize];
        match (step.kind.receives(), tb.receive) {
            (true, Some(peer)) => {
                let link = (peer, rank, tb.channel);
                let is_there = self.under_way.get(&link).is_some_and(|&count| count > 0);
                (!is_there).then_some(Need::Message(link.0, link.1, link.2))
            }
            _ => None,
        }
    }

    fn advance(&mut self, block: u32) {
        let (rank, id) = self.place(block);
        let tb = &self.algorithm.gpus[rank as usize].blocks[id as usize];
        while let Some(step) = self.head(block) {
            if let Some(need) = self.lacks(block) {
                self.sleepers.entry(need).or_default().push(block);
                return;
            }
            let number = self.at[block as usize];
            if let (true, Some(peer)) = (step.kind.receives(), tb.receive) {
                *self.under_way.entry((peer, rank, tb.channel)).or_default() -= 1;
            }
            self.order.push((rank, id, number));
            self.at[block as usize] += 1;
            if let (true, Some(peer)) = (step.kind.sends(), tb.send) {
                *self.under_way.entry((rank, peer, tb.channel)).or_default() += 1;
                self.wake(Need::Message(rank, peer, tb.channel));
            }
            self.wake(Need::Step(rank, id, number));
        }
    }

    fn wake(&mut self, need: Need) {
        if let Some(sleepers) = self.sleepers.remove(&need) {
            self.awake.extend(sleepers);
        }
    }

    /// From any thread block that stands still to the one that it waits for, until it comes round.
    fn ring(&self) -> Diagnostic {
        let stuck = (0..self.at.len() as u32).find(|&block| self.head(block).is_some());
        let mut path: Vec<u32> = Vec::new();
        let mut block = stuck.unwrap_or(0);
        while !path.contains(&block) {
            path.push(block);
            match self.lacks(block).and_then(|need| self.whom(need)) {
                Some(next) => block = next,
                None => break,
            }
        }
        let from = path.iter().position(|&seen| seen == block).unwrap_or(0);
        let ring = &path[from..];
        let name = |block: u32| {
            let (rank, id) = self.place(block);
            format!("step {} of thread block {id} of gpu {rank}", self.at[block as usize])
        };
        let span = |block: u32| self.head(block).map_or(self.algorithm.span, |step| step.span);
        let message = format!("{} steps wait for each other and are never taken", ring.len());
        let mut told = Diagnostic::new(RING, span(ring[0]), message).label(name(ring[0]));
        for &block in &ring[1..] {
            told = told.also(span(block), name(block));
        }
        for &block in ring {
            told = told.note(match self.lacks(block) {
                Some(Need::Step(_, on, number)) => {
                    format!("{} depends on step {number} of thread block {on}", name(block))
                }
                Some(Need::Message(from, _, channel)) => {
                    format!("{} awaits a message of rank {from} on channel {channel}", name(block))
                }
                None => name(block),
            });
        }
        told.expected("an order in which all steps can be taken")
            .found("a ring")
            .help("take one dependency of the ring away, or a send before the receive that it stands behind")
    }

    /// The thread block that would have to go on.
    fn whom(&self, need: Need) -> Option<u32> {
        match need {
            Need::Step(rank, on, _) => Some(self.first[rank as usize] + on),
            Need::Message(from, to, channel) => {
                let blocks = self.algorithm.gpus[from as usize].blocks.iter();
                let sends = |step: &Step| step.kind.sends();
                let id = (0..).zip(blocks).find(|(_, tb)| {
                    tb.send == Some(to) && tb.channel == channel && tb.steps.iter().any(sends)
                });
                id.map(|(id, _): (u32, _)| self.first[from as usize] + id)
            }
        }
    }
}
