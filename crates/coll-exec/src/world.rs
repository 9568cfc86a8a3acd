//! All ranks of a plan in one process and on one thread: a seed decides who goes on next, how far, and into how many
//! pieces every message falls. What goes wrong once goes wrong again with the same seed.
//!
//! Links hold few bytes (one, if asked to), reads and writes are cut at random, and a rank can be made to die after a
//! number of messages, or a [`Mishap`] can befall a message. A world in which nobody can go on ends with an error on every rank that says who waits for what.

mod mishap;
mod random;
mod wires;

use crate::bind::Bound;
use crate::frame::FINGERPRINT_BYTES;
use crate::memory::BufferMemory;
use crate::run::{Progress, RunOptions};
use crate::{Fault, RunError};
pub use mishap::Mishap;
use random::Random;
use std::ops::Range;
use wires::{Port, Wires};

/// A world of ranks. Links keep their bytes from one call of [`World::run`] to the next.
#[derive(Debug)]
pub struct World {
    random: Random,
    wires: Wires,
    generation: u32,
    /// Messages after which a rank dies.
    deaths: Vec<(u32, u64)>,
    /// Of ranks whose call is not the one of all others.
    fingerprints: Vec<(u32, [u8; FINGERPRINT_BYTES])>,
    /// The first end that was not a good one.
    failure: Option<Fault>,
}

/// Where a rank is.
enum Stand {
    /// Before the start of this operation.
    Between(u64),
    /// Within this operation.
    Within(u64),
    Ended(Result<(), RunError>),
}

impl World {
    /// A world with links of 4,096 bytes and pieces of any size up to that.
    pub fn new(seed: u64) -> World {
        World {
            random: Random::new(seed),
            wires: Wires::new(4096, 4096),
            generation: 0,
            deaths: Vec::new(),
            fingerprints: Vec::new(),
            failure: None,
        }
    }

    /// How many bytes a link holds: at least 1.
    pub fn link_bytes(mut self, bytes: usize) -> World {
        self.wires.link_bytes = bytes.max(1);
        self
    }

    /// The largest piece that one read or write moves: at least 1.
    pub fn piece_bytes_max(mut self, bytes: usize) -> World {
        self.wires.piece_bytes_max = bytes.max(1);
        self
    }

    /// Gives payloads checksums.
    pub fn checksums(mut self) -> World {
        self.wires.checks = true;
        self
    }

    /// Lends messages of so many bytes and more, as far as an executor lends any.
    pub fn lend_bytes(mut self, bytes: u64) -> World {
        self.wires.lend_bytes = Some(bytes);
        self
    }

    /// Has buffers lie in memory that peers cannot read: of messages that may be lent, those are that several peers read.
    pub fn ordinary_memory(mut self) -> World {
        self.wires.ordinary = true;
        self
    }

    /// Only each so many ranks, one after the other, lend to each other: at least 1.
    pub fn ranks_per_host(mut self, ranks: u32) -> World {
        self.wires.ranks_per_host = ranks.max(1);
        self
    }

    /// Messages that are staged and will be lent to further peers: none when every rank has come to a good end.
    pub fn open_stages(&self) -> u32 {
        self.wires.open_stages
    }

    /// Makes a rank die once it has sent so many messages of an operation; 0 is at once.
    pub fn drop_rank(mut self, rank: u32, after_messages: u64) -> World {
        self.deaths.push((rank, after_messages));
        self
    }

    /// Has something befall a message that a rank sends: its `number`th, from 0, over all links and operations. Not where
    /// messages are lent.
    pub fn mishap(mut self, rank: u32, number: u64, mishap: Mishap) -> World {
        self.wires.fates.expect(rank, number, mishap);
        self
    }

    /// Gives a rank's calls another fingerprint than zeros.
    pub fn fingerprint(mut self, rank: u32, fingerprint: [u8; FINGERPRINT_BYTES]) -> World {
        self.fingerprints.push((rank, fingerprint));
        self
    }

    /// Runs operations with these numbers, one after the other on each rank and without a barrier between them.
    /// `bounds` and `buffers` are those of ranks `0..`, in order. Says how each rank ended.
    pub fn run(
        &mut self,
        bounds: &mut [Bound],
        buffers: &mut [Vec<BufferMemory<'_>>],
        operations: Range<u64>,
    ) -> Vec<Result<(), RunError>> {
        let mut stands: Vec<Stand> = bounds.iter().map(|_| Stand::Between(operations.start)).collect();
        loop {
            self.bury(bounds, &mut stands);
            let able: Vec<usize> =
                (0..stands.len()).filter(|&rank| self.is_able(&bounds[rank], &stands[rank])).collect();
            if let Some(at) = self.random.index(able.len()) {
                let rank = able[at];
                self.turn(&mut bounds[rank], &mut buffers[rank], &mut stands[rank], &operations);
            } else if self.wires.release() {
                // What was held back has come.
            } else if stands.iter().all(|stand| matches!(stand, Stand::Ended(_))) {
                break;
            } else {
                self.end_waiting(bounds, &mut stands);
            }
        }
        stands.into_iter().map(Stand::into_result).collect()
    }

    fn turn(
        &mut self,
        bound: &mut Bound,
        buffers: &mut [BufferMemory<'_>],
        stand: &mut Stand,
        operations: &Range<u64>,
    ) {
        let step = match *stand {
            Stand::Between(operation) if operation >= operations.end => {
                *stand = Stand::Ended(Ok(()));
                return;
            }
            Stand::Between(operation) => {
                let of_rank = self.fingerprints.iter().find(|(rank, _)| *rank == bound.rank());
                let fingerprint = of_rank.map_or([0; FINGERPRINT_BYTES], |(_, fingerprint)| *fingerprint);
                let options = RunOptions { generation: self.generation, operation, fingerprint };
                *stand = Stand::Within(operation);
                bound.start(buffers, options).map(|()| Progress::Blocked)
            }
            Stand::Within(_) => {
                let mut port = Port::new(&mut self.wires, &mut self.random, bound.rank());
                bound.step(&mut port, buffers)
            }
            Stand::Ended(_) => return,
        };
        match (step, &*stand) {
            (Ok(Progress::Done), Stand::Within(operation)) => *stand = Stand::Between(operation + 1),
            (Err(error), _) => {
                self.note_failure(bound.rank(), &error);
                *stand = Stand::Ended(Err(error));
            }
            _ => {}
        }
    }

    /// A rank is able if it has not begun waiting, or if something that it waits for has come.
    fn is_able(&self, bound: &Bound, stand: &Stand) -> bool {
        match stand {
            Stand::Between(_) => true,
            Stand::Within(_) => {
                let interests = &bound.state.interests;
                interests.is_empty()
                    || interests.iter().any(|interest| self.wires.meets(bound.rank(), interest))
            }
            Stand::Ended(_) => false,
        }
    }

    /// Ends ranks whose time has come.
    fn bury(&mut self, bounds: &[Bound], stands: &mut [Stand]) {
        for &(rank, after_messages) in &self.deaths {
            let (Some(bound), Some(stand)) = (bounds.get(rank as usize), stands.get_mut(rank as usize))
            else {
                continue;
            };
            let sent = if matches!(stand, Stand::Within(_)) { bound.state.sent_messages } else { 0 };
            if !matches!(stand, Stand::Ended(_)) && sent >= after_messages {
                let fault = Fault::PeerLost { peer: rank, detail: "it was dropped".into() };
                *stand = Stand::Ended(Err(bound.error(None, fault.clone())));
                self.wires.lose(rank);
                self.failure.get_or_insert(fault);
            }
        }
    }

    /// Nobody can go on: a failure has spread to everybody, or else they wait in a ring.
    fn end_waiting(&mut self, bounds: &[Bound], stands: &mut [Stand]) {
        let waiting = |stand: &Stand| !matches!(stand, Stand::Ended(_));
        let fault = self.failure.clone().unwrap_or_else(|| {
            let ranks = bounds.iter().zip(&*stands).filter(|(_, stand)| waiting(stand));
            let waits: Vec<String> = ranks.flat_map(|(bound, _)| bound.waits()).collect();
            Fault::Stuck { waits: waits.join("; ") }
        });
        for (bound, stand) in bounds.iter().zip(stands) {
            if waiting(stand) {
                *stand = Stand::Ended(Err(bound.wait_error(fault.clone())));
            }
        }
    }

    fn note_failure(&mut self, origin: u32, error: &RunError) {
        // What follows from another's failure is no reason of its own.
        if self.failure.is_none() {
            self.failure = Some(Fault::Aborted { origin, reason: error.to_string() });
        }
    }
}

impl Stand {
    fn into_result(self) -> Result<(), RunError> {
        match self {
            Stand::Ended(result) => result,
            Stand::Between(_) | Stand::Within(_) => Ok(()),
        }
    }
}
