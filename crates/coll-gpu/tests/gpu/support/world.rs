//! Ranks of several machines as threads of one process, each with a device of the stand-in, over a network of the test's.

use super::Call;
use super::devices::LIMIT;
use super::network::{Mesh, Port};
use coll::trial::placements;
use coll_gpu::stream_plan::StreamPlan;
use coll_gpu::{BufferPointers, DeviceBuffer, GroupError, Shared, SharedCall, Stream};
use cuda_stand_in::control::Session;
use cuda_stand_in::{Config, control};
use std::sync::Arc;

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The machine of each rank.
    pub machines: Vec<u32>,
    pub slice_bytes: usize,
    pub seed: u64,
    /// What one thread of the host knows of a device, others know only by way of the device. Only where ranks share no memory.
    pub threads_apart: bool,
}

impl Setup {
    /// Every rank on a machine of its own.
    pub fn apart(ranks: u32, seed: u64) -> Setup {
        Setup { machines: (0..ranks).collect(), slice_bytes: 16, seed, threads_apart: true }
    }

    pub fn ranks(&self) -> u32 {
        self.machines.len() as u32
    }

    pub fn session(&self) -> Session {
        let patience_ms = LIMIT.as_millis() as u64;
        let devices = self.machines.len();
        let (seed, threads_apart, device_bytes) = (self.seed, self.threads_apart, 16 << 20);
        let config = Config { devices, seed, patience_ms, device_bytes, threads_apart, ..Config::default() };
        control::session(&config).expect("the stand-in opens")
    }

    /// Runs each rank on a thread, and gives what they give.
    pub fn run<T: Send>(
        &self,
        session: &Session,
        mesh: &Arc<Mesh>,
        body: impl Fn(Shared, u32) -> T + Sync,
    ) -> Vec<T> {
        let (body, witness) = (&body, session.witness());
        std::thread::scope(|scope| {
            let start = |rank: u32| {
                let port = || mesh.port(rank, self.ranks(), self.seed, witness);
                let (exchange, network): (Port, Port) = (port(), port());
                scope.spawn(move || {
                    let _guard = Guard { mesh, rank };
                    let shared = Shared::join(rank, self.ranks(), rank, Box::new(exchange));
                    let shared = shared.expect("the device opens");
                    let shared = shared.across(self.machines.clone(), Box::new(network));
                    body(shared.expect("there are threads").slice_bytes(self.slice_bytes), rank)
                })
            };
            let threads: Vec<_> = (0..self.ranks()).map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends well")).collect()
        })
    }
}

/// A rank whose test fails ends the others' as well.
struct Guard<'m> {
    mesh: &'m Mesh,
    rank: u32,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.mesh.fail(self.rank);
        }
    }
}

/// One rank's memory and stream.
pub struct Own {
    pub buffers: Vec<[DeviceBuffer; 2]>,
    pub pointers: Vec<BufferPointers>,
    pub stream: Stream,
}

impl Own {
    pub fn new(shared: &Shared, call: &Call<'_>, rank: u32) -> Own {
        let buffer = |bytes: &Vec<u8>| DeviceBuffer::of(shared.device(), bytes).expect("there is memory");
        let before = &call.before[rank as usize];
        let buffers: Vec<[DeviceBuffer; 2]> = before.iter().map(|[a, b]| [buffer(a), buffer(b)]).collect();
        let pointers = buffers.iter().map(|[a, b]| BufferPointers::new(a.pointer(), b.pointer())).collect();
        Own { buffers, pointers, stream: Stream::new(shared.device()).expect("a stream") }
    }

    pub fn refill(&mut self, call: &Call<'_>, rank: u32) {
        for ([input, output], [before, after]) in self.buffers.iter_mut().zip(&call.before[rank as usize]) {
            input.write(before).expect("a copy");
            output.write(after).expect("a copy");
        }
    }

    /// Whoever still reads a buffer finds that it has changed.
    pub fn spoil(&mut self) {
        for buffer in self.buffers.iter_mut().flatten() {
            buffer.fill(0x3c).expect("it is filled");
        }
    }

    pub fn outputs(&self) -> Vec<Vec<u8>> {
        self.buffers.iter().map(|[_, output]| output.to_vec().expect("a copy")).collect()
    }
}

/// The stream work of a call, of all ranks.
pub fn stream_plan(shared: &Shared, call: &Call<'_>) -> StreamPlan {
    let placements = placements(&call.plan.contract, call.case.in_place);
    let asked = call.asked(&placements);
    shared.stream_plan(&asked).expect("it makes a stream plan")
}

pub fn prepare(shared: &mut Shared, call: &Call<'_>, own: &Own) -> Result<SharedCall, GroupError> {
    let whole = stream_plan(shared, call);
    shared.prepare_stream_plan(whole, &own.pointers)
}

/// Runs a call `times` on a world, and compares each with the CPU's executor bit by bit; no access is left to chance.
pub fn check(call: &Call<'_>, setup: &Setup, times: u32) {
    let session = setup.session();
    let what = || {
        let (name, case) = (&call.plan.name, &call.case);
        format!("{name} on {setup:?}, {case:?}, COLLC_TEST_SEED={}", setup.seed)
    };
    let due = call.on_cpu();
    let mesh = Arc::new(Mesh::default());
    setup.run(&session, &mesh, |mut shared, rank| {
        let mut own = Own::new(&shared, call, rank);
        let mut ready =
            prepare(&mut shared, call, &own).unwrap_or_else(|error| panic!("{}: {error}", what()));
        for round in 0..times {
            if round > 0 {
                own.refill(call, rank);
                shared.meet().expect("all come");
            }
            ready.launch(own.stream.handle()).expect("it is put on a stream");
            ready.wait(LIMIT).unwrap_or_else(|error| panic!("{}: {error}", what()));
            assert!(own.outputs() == due[rank as usize], "{}: other bits on rank {rank}", what());
            shared.meet().expect("all come");
        }
        shared.close(ready).expect("all come");
    });
    if let Err(verdict) = session.verdict() {
        panic!("{}: {verdict}", what());
    }
}
