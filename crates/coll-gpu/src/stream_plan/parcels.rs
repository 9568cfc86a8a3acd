//! Messages between machines, and one rank's part of a stream plan.
//!
//! No stream of one machine waits for one of another, nor reads its memory. Such a message is two parcels, one of the sender and
//! one of the receiver, which a thread of the host carries: the rank's porter. A stream posts a parcel when its bytes may be read,
//! or written, and waits for it where it needs that to be done.

use super::{Deed, Spot, StreamPlan, Work};
use coll_exec::Link;
use coll_plan::OpId;

/// One side of a message between machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Parcel {
    /// The rank whose porter carries it.
    pub rank: u32,
    /// The operation that it is of.
    pub op: OpId,
    /// The step that it comes from.
    pub step: u32,
    /// Whether it goes out or comes in.
    pub heading: Heading,
    /// The other rank, and the channel.
    pub link: Link,
    /// The message's number on its link in that direction, from 0.
    pub message: u32,
    /// Where its bytes lie in the rank's memory, in order, and how many there are of each.
    pub parts: Vec<(Spot, u64)>,
    /// All its bytes, as they travel.
    pub bytes: u64,
}

/// Where a parcel goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heading {
    /// To the other rank.
    Out,
    /// From the other rank.
    In,
}

impl StreamPlan {
    /// One rank's part, where each rank is a process: events that cross from one to another are told by words, and parcels are
    /// those of the rank, numbered anew. A rank waits for a word once, and has an event behind that for others of its streams, so that
    /// a word can be set back when it is heard.
    pub fn of_rank(mut self, rank: u32) -> StreamPlan {
        let mut heard = vec![false; self.events as usize];
        let crossing = Crossing::of(&self, rank);
        let mut own_parcels = vec![None; self.parcels.len()];
        let own = (0..self.parcels.len()).filter(|&at| self.parcels[at].rank == rank);
        (0u32..).zip(own).for_each(|(number, at)| own_parcels[at] = Some(number));
        let mut own = Vec::new();
        for work in self.work.iter().filter(|work| self.streams[work.stream as usize].rank == rank) {
            let renumbered =
                |at: u32| own_parcels[at as usize].expect("invariant: a rank posts parcels of its own");
            let deed = match work.deed {
                Deed::Record(event) => {
                    own.extend(crossing.told(event).map(|deed| Work { deed, ..*work }));
                    continue;
                }
                Deed::Wait(event) if crossing.recorders[event as usize] != rank && !heard[event as usize] => {
                    heard[event as usize] = true;
                    own.push(Work { deed: Deed::Await(event), ..*work });
                    if crossing.own_waits[event as usize] > 1 {
                        own.push(Work { deed: Deed::Record(event), ..*work });
                    }
                    continue;
                }
                Deed::Post(at) => Deed::Post(renumbered(at)),
                Deed::Collect(at) => Deed::Collect(renumbered(at)),
                _ => work.deed.clone(),
            };
            own.push(Work { deed, ..*work });
        }
        self.work = own;
        self.parcels.retain(|parcel| parcel.rank == rank);
        self
    }
}

/// Who records each event, and who waits for it.
struct Crossing {
    rank: u32,
    recorders: Vec<u32>,
    waiters: Vec<Vec<u32>>,
    /// How often streams of the rank wait for it.
    own_waits: Vec<u32>,
}

impl Crossing {
    fn of(stream_plan: &StreamPlan, rank: u32) -> Crossing {
        let mut recorders = vec![rank; stream_plan.events as usize];
        let mut waiters: Vec<Vec<u32>> = vec![Vec::new(); stream_plan.events as usize];
        let mut own_waits = vec![0u32; stream_plan.events as usize];
        for work in &stream_plan.work {
            let other = stream_plan.streams[work.stream as usize].rank;
            match work.deed {
                Deed::Record(event) => recorders[event as usize] = other,
                Deed::Wait(event) => {
                    own_waits[event as usize] += u32::from(other == rank);
                    if !waiters[event as usize].contains(&other) {
                        waiters[event as usize].push(other);
                    }
                }
                _ => {}
            }
        }
        Crossing { rank, recorders, waiters, own_waits }
    }

    /// How those who wait for an event of this rank are told of it.
    fn told(&self, event: u32) -> impl Iterator<Item = Deed> {
        self.waiters[event as usize].iter().map(move |&waiter| match waiter == self.rank {
            true => Deed::Record(event),
            false => Deed::Signal { event, rank: waiter },
        })
    }
}
