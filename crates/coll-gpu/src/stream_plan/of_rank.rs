//! One rank's part, where each rank is a process: what crosses from one to another goes by words in memory.

use super::{Deed, StreamPlan, Work};

impl StreamPlan {
    /// One rank's part, where each rank is a process: events that cross from one to another are told by words. A rank waits
    /// for a word once, and has an event behind that for others of its streams, so that a word can be set back when it is
    /// heard.
    pub fn of_rank(mut self, rank: u32) -> StreamPlan {
        let rank_of = |stream: u32| self.streams[stream as usize].rank;
        let mut recorders = vec![rank; self.events as usize];
        let mut waiters: Vec<Vec<u32>> = vec![Vec::new(); self.events as usize];
        let mut own_waits = vec![0u32; self.events as usize];
        for work in &self.work {
            match work.deed {
                Deed::Record(event) => recorders[event as usize] = rank_of(work.stream),
                Deed::Wait(event) => {
                    let (waiters, waiter) = (&mut waiters[event as usize], rank_of(work.stream));
                    own_waits[event as usize] += u32::from(waiter == rank);
                    if !waiters.contains(&waiter) {
                        waiters.push(waiter);
                    }
                }
                _ => {}
            }
        }
        let mut heard = vec![false; self.events as usize];
        let mut own = Vec::new();
        for work in self.work.iter().filter(|work| rank_of(work.stream) == rank) {
            match work.deed {
                Deed::Record(event) => {
                    for &waiter in &waiters[event as usize] {
                        let deed = if waiter == rank {
                            Deed::Record(event)
                        } else {
                            Deed::Signal { event, rank: waiter }
                        };
                        own.push(Work { deed, ..*work });
                    }
                }
                Deed::Wait(event) if recorders[event as usize] != rank && !heard[event as usize] => {
                    heard[event as usize] = true;
                    own.push(Work { deed: Deed::Await(event), ..*work });
                    if own_waits[event as usize] > 1 {
                        own.push(Work { deed: Deed::Record(event), ..*work });
                    }
                }
                _ => own.push(work.clone()),
            }
        }
        self.work = own;
        self
    }
}
