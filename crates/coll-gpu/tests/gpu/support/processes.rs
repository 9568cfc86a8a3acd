//! Ranks that are processes, on whatever devices: they meet by files of a folder, and each runs its part of a call.

use super::Call;
use super::memory::LIMIT;
use coll::trial::placements;
use coll_gpu::{BufferPointers, DeviceBuffer, Exchange, Shared, Stream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bytes by way of files in a folder.
pub struct ByFiles {
    pub folder: PathBuf,
    pub rank: u32,
    pub ranks: u32,
    pub round: u32,
}

impl Exchange for ByFiles {
    fn exchange(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        self.round += 1;
        let at = |rank: u32, ending: &str| self.folder.join(format!("{}-{rank}.{ending}", self.round));
        std::fs::write(at(self.rank, "new"), bytes).map_err(|error| error.to_string())?;
        std::fs::rename(at(self.rank, "new"), at(self.rank, "told")).map_err(|error| error.to_string())?;
        let start = Instant::now();
        let read = |rank| loop {
            if let Ok(bytes) = std::fs::read(at(rank, "told")) {
                return Ok(bytes);
            }
            if start.elapsed() > LIMIT {
                return Err(format!("rank {rank} does not answer"));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        (0..self.ranks).map(read).collect()
    }
}

pub struct Own {
    pub buffers: Vec<[DeviceBuffer; 2]>,
    pub pointers: Vec<BufferPointers>,
    pub stream: Stream,
}

impl Own {
    /// What was there before.
    pub fn refill(&mut self, call: &Call<'_>, rank: u32) {
        for ([input, output], [before, after]) in self.buffers.iter_mut().zip(&call.before[rank as usize]) {
            input.write(before).expect("a copy");
            output.write(after).expect("a copy");
        }
    }

    pub fn outputs(&self) -> Vec<Vec<u8>> {
        self.buffers.iter().map(|[_, output]| output.to_vec().expect("a copy")).collect()
    }
}

pub fn own(shared: &Shared, call: &Call<'_>, rank: u32) -> Own {
    let buffer = |bytes: &Vec<u8>| DeviceBuffer::of(shared.device(), bytes).expect("there is memory");
    let before = &call.before[rank as usize];
    let buffers: Vec<[DeviceBuffer; 2]> = before.iter().map(|[a, b]| [buffer(a), buffer(b)]).collect();
    let pointers = buffers.iter().map(|[a, b]| BufferPointers::new(a.pointer(), b.pointer())).collect();
    Own { buffers, pointers, stream: Stream::new(shared.device()).expect("a stream") }
}

pub fn prepare(shared: &mut Shared, call: &Call<'_>, own: &Own) -> coll_gpu::SharedCall {
    let placements = placements(&call.plan.contract, call.case.in_place);
    let asked = call.asked(&placements);
    shared.prepare(&asked, &own.pointers).expect("it is made ready")
}

/// Twice, so that a run meets the words of the one before, and then as a graph.
pub fn run(shared: &mut Shared, call: &Call<'_>, rank: u32) {
    let mut own = own(shared, call, rank);
    let mut ready = prepare(shared, call, &own);
    let due = &call.on_cpu()[rank as usize];
    for round in 0..2 {
        own.refill(call, rank);
        ready.launch(own.stream.handle()).expect("it is put on a stream");
        ready.wait(LIMIT).expect("it ends");
        assert!(own.outputs() == *due, "{} on rank {rank}, round {round}", call.plan.name);
        shared_barrier(shared);
    }
    let mut graph = shared.capture(ready, LIMIT).expect("it is captured");
    let other = Stream::new(shared.device()).expect("a stream");
    let streams = [&own.stream, &own.stream, &other].map(Stream::handle);
    for (round, stream) in streams.into_iter().enumerate() {
        own.refill(call, rank);
        // One more than is waited for: runs of one graph follow each other.
        for _ in 0..=round % 2 {
            graph.launch(stream).expect("it is put on a stream");
        }
        graph.wait(LIMIT).expect("it ends");
        let once = round % 2 == 0 || !call.case.in_place;
        assert!(!once || own.outputs() == *due, "{} on rank {rank}, replay {round}", call.plan.name);
        shared_barrier(shared);
    }
    shared.close(graph).expect("all come");
}

/// Nobody refills a buffer, or gives it back, that another may still read.
pub fn shared_barrier(shared: &mut Shared) {
    shared.meet().expect("all come");
}
