//! A rank that is a process of its own, with a device: how it meets the others, and waits for them no longer than they live.
//!
//! They meet over TCP, which also tells what becomes of them, and carries what goes to other machines; all else goes between devices.

use super::dealt;
use super::machines::{Machine, Machines};
use crate::failure::Failure;
use coll_exec::Link;
use coll_gpu::{
    BufferPointers, Call, Device, Exchange, GroupError, Network, OverTcp, Shared, SharedCall, StreamHandle,
};
use coll_plan::Plan;
use coll_tcp::{JoinOptions, Watch};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// This process's rank among the others.
pub(crate) struct Apart {
    rank: u32,
    shared: Shared,
    machines: Machines,
    meeting: Meeting,
    watch: Watch,
}

/// The connection over which ranks meet, and how long they wait for each other there.
#[derive(Clone)]
struct Meeting {
    tcp: OverTcp,
    limit: Duration,
}

impl Exchange for Meeting {
    fn exchange(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        self.tcp.begin(self.limit);
        self.tcp.exchange(bytes)
    }
}

impl Apart {
    /// Meets the others, who wait for each other so long at most, and takes hold of a device: that which it has in `order`, if there
    /// is one.
    pub(crate) fn join(
        options: JoinOptions,
        limit: Duration,
        (machine, order): (Machine, Option<&[u32]>),
    ) -> Result<Apart, Failure> {
        let (rank, world) = (options.rank, options.world);
        let tcp = coll_tcp::join(options).map_err(|error| Failure::wrong(error.to_string()))?;
        let watch = tcp.watch();
        let mut meeting = Meeting { tcp: OverTcp::new(tcp), limit };
        let told = meeting.exchange(machine.to_bytes());
        let told = told.map_err(|what| Failure::wrong(format!("rank {rank}: {what}")));
        let joined = told.and_then(|all| {
            let machines = Machines::of(rank, &all);
            let (place, count) = machines.place();
            // A topology's numbers of devices are those of one machine.
            let order = order.filter(|_| count == world);
            let device = dealt(count, order)?.0[place as usize];
            let shared = Shared::join(rank, world, device, Box::new(meeting.clone()));
            let shared = shared.map_err(|error| Failure::unusable(error.to_string()))?;
            if machines.are_one() {
                return Ok((shared, machines));
            }
            let shared = shared.across(machines.numbers(), Box::new(meeting.tcp.clone()));
            Ok((shared.map_err(|error| Failure::unusable(error.to_string()))?, machines))
        });
        match joined {
            Ok((shared, machines)) => Ok(Apart { rank, shared, machines, meeting, watch }),
            Err(failure) => {
                meeting.tcp.give_up(failure.message());
                Err(failure)
            }
        }
    }

    /// Its device.
    pub(crate) fn device(&self) -> &Arc<Device> {
        self.shared.device()
    }

    /// Makes a call ready, and the links to other machines that it needs.
    pub(crate) fn prepare(
        &mut self,
        call: &Call<'_>,
        buffers: &[BufferPointers],
    ) -> Result<SharedCall, GroupError> {
        let links = self.links(call.plan);
        let connected = self.meeting.tcp.connect(&links);
        connected.map_err(|error| GroupError::Exchange { rank: self.rank, what: error.to_string() })?;
        self.shared.prepare(call, buffers)
    }

    /// A plan's links to other machines.
    fn links(&self, plan: &Plan) -> Vec<Link> {
        let ops = plan.ranks.iter().filter(|part| part.rank == self.rank).flat_map(|part| &part.ops);
        let ends = ops.filter_map(|op| op.action.sends_to().or(op.action.receives_from()));
        let far = ends.filter(|&(peer, _)| !self.machines.is_near(peer));
        let links: BTreeSet<Link> = far.map(|(peer, channel)| Link { peer, channel }).collect();
        links.into_iter().collect()
    }

    /// Gives a call back.
    pub(crate) fn close(&mut self, call: SharedCall) -> Result<(), GroupError> {
        self.shared.close(call)
    }

    /// Comes back when all ranks have come here, and are done with what they ran.
    pub(crate) fn meet(&mut self) -> Result<(), Failure> {
        self.shared.meet().map_err(|error| Failure::wrong(error.to_string()))
    }

    /// Gives bytes to all ranks, and takes those of each, once all calls are given back.
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
    pub(crate) fn abort(&mut self, reason: &str) {
        self.meeting.tcp.give_up(reason);
    }
}
