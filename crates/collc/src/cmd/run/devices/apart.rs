//! A rank that is a process of its own, with a device: how it meets the others, and waits for them no longer than they live.
//!
//! They meet over TCP, which also tells what becomes of them; all else goes between devices.

use super::dealt;
use crate::failure::Failure;
use coll_gpu::{Device, Exchange, GroupError, Shared, SharedCall, StreamHandle};
use coll_tcp::{JoinOptions, TcpTransport, Watch};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// This process's rank among the others.
pub(crate) struct Apart {
    rank: u32,
    shared: Shared,
    meeting: Meeting,
    watch: Watch,
}

/// The connection over which ranks meet, and how long they wait for each other there.
#[derive(Clone)]
struct Meeting {
    tcp: Arc<Mutex<TcpTransport>>,
    limit: Duration,
}

impl Meeting {
    fn held(&self) -> MutexGuard<'_, TcpTransport> {
        self.tcp.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange for Meeting {
    fn exchange(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        let mut tcp = self.held();
        tcp.begin(self.limit);
        tcp.exchange(bytes).map_err(|fault| fault.to_string())
    }
}

impl Apart {
    /// Meets the others, who wait for each other so long at most, and takes hold of a device: that which it has in `order`, if there
    /// is one.
    pub(crate) fn join(
        options: JoinOptions,
        limit: Duration,
        order: Option<&[u32]>,
    ) -> Result<Apart, Failure> {
        let (rank, world) = (options.rank, options.world);
        let tcp = coll_tcp::join(options).map_err(|error| Failure::wrong(error.to_string()))?;
        let watch = tcp.watch();
        let mut meeting = Meeting { tcp: Arc::new(Mutex::new(tcp)), limit };
        let shared = on_one_machine(rank, &mut meeting).and_then(|()| {
            let device = dealt(world, order)?.0[rank as usize];
            let shared = Shared::join(rank, world, device, Box::new(meeting.clone()));
            shared.map_err(|error| Failure::unusable(error.to_string()))
        });
        match shared {
            Ok(shared) => Ok(Apart { rank, shared, meeting, watch }),
            Err(failure) => {
                meeting.held().abort(failure.message());
                Err(failure)
            }
        }
    }

    /// Its device.
    pub(crate) fn device(&self) -> &Arc<Device> {
        self.shared.device()
    }

    /// What calls are made ready with.
    pub(crate) fn shared(&mut self) -> &mut Shared {
        &mut self.shared
    }

    /// Gives bytes to all ranks, and takes those of each: a barrier, too.
    pub(crate) fn exchange(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure> {
        let rank = self.rank;
        self.meeting.exchange(bytes).map_err(|what| Failure::wrong(format!("rank {rank}: {what}")))
    }

    /// Runs a call to its end, or until the limit, or until another rank is known not to come.
    pub(crate) fn run(
        &self,
        call: &mut SharedCall,
        stream: StreamHandle,
        limit: Duration,
    ) -> Result<(), GroupError> {
        let fault = || self.watch.fault().map(|fault| fault.to_string());
        call.launch(stream)?;
        call.wait_unless(limit, &mut || if self.watch.has_failed() { fault() } else { None })
    }

    /// Tells the others that this rank gives up.
    pub(crate) fn abort(&self, reason: &str) {
        self.meeting.held().abort(reason);
    }
}

/// Devices open each other's memory on one machine alone.
fn on_one_machine(rank: u32, meeting: &mut Meeting) -> Result<(), Failure> {
    let machine = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let all = meeting.exchange(machine.clone());
    let all = all.map_err(|what| Failure::wrong(format!("rank {rank}: {what}")))?;
    match all.iter().position(|other| *other != machine) {
        None => Ok(()),
        Some(other) => {
            let message =
                format!("rank {rank}: rank {other} is on another machine, and ranks on devices share one");
            Err(Failure::unusable(message).help("start them all on one machine, or take `--transport auto`"))
        }
    }
}
