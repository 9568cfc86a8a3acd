//! Where and by what means the ranks of a communicator meet.

use coll_shm::ShmTransport;
use coll_tcp::Rendezvous;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What carries the bytes of a communicator's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Via {
    /// Shared memory between ranks of one machine, TCP between others.
    #[default]
    Auto,
    /// TCP between all.
    Tcp,
    /// Shared memory between all, or an error.
    Shm,
    /// Memory of one process, whose threads are the ranks. Only [`Communicator::local`](crate::Communicator::local) makes
    /// such ranks.
    Threads,
}

impl Via {
    /// All of them.
    pub const ALL: [Via; 4] = [Via::Auto, Via::Tcp, Via::Shm, Via::Threads];

    /// The name in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Via::Auto => "auto",
            Via::Tcp => "tcp",
            Via::Shm => "shm",
            Via::Threads => "threads",
        }
    }

    /// What links to ranks of this machine are called.
    pub(crate) fn near_name(self) -> &'static str {
        match self {
            Via::Threads => "threads",
            Via::Tcp => "tcp",
            Via::Auto | Via::Shm => "shm",
        }
    }
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Via {
    type Err = String;

    fn from_str(text: &str) -> Result<Via, String> {
        let known = Via::ALL.into_iter().find(|via| via.name() == text);
        known.ok_or_else(|| format!("no transport `{text}`; there are auto, tcp, shm and threads"))
    }
}

/// What a rank must know to reach the others.
#[derive(Debug)]
pub(crate) struct Meeting {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// `host:port`
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) job: String,
    pub(crate) time_limit: Duration,
    pub(crate) via: Via,
    /// The rank's links to others of its process, if that is what the ranks are.
    pub(crate) threads: Option<ShmTransport>,
}

/// A rendezvous that runs as long as anybody holds it. Nobody locks it: a lock makes it one that threads may share.
pub(crate) type Host = Arc<Mutex<Rendezvous>>;
