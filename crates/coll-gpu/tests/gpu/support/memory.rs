//! A call on devices, whatever they are: buffers there, and a stream for each rank.

use super::{Bytes, Call};
use coll::trial::placements;
use coll_gpu::stream_plan::StreamPlan;
use coll_gpu::{BufferPointers, DeviceBuffer, Group, GroupError, Prepared, Stream, StreamHandle};
use std::time::Duration;

/// Longer than any run takes.
pub const LIMIT: Duration = Duration::from_secs(120);

/// The device of each rank, dealt out in turn.
pub fn dealt(ranks: u32, devices: usize) -> Vec<u32> {
    (0..ranks).map(|rank| rank % devices as u32).collect()
}

/// Buffers and streams of all ranks.
pub struct Memory {
    pub buffers: Vec<Vec<[DeviceBuffer; 2]>>,
    pub streams: Vec<Stream>,
}

impl Memory {
    pub fn new(group: &Group, call: &Call<'_>) -> Memory {
        let buffer = |rank: u32, bytes: &Bytes| {
            let device = group.device(rank).expect("there is such a rank");
            [0, 1].map(|side| DeviceBuffer::of(device, &bytes[side]).expect("there is memory"))
        };
        let ranks = (0u32..).zip(&call.before);
        let buffers =
            ranks.map(|(rank, all)| all.iter().map(|bytes| buffer(rank, bytes)).collect()).collect();
        let stream = |rank| Stream::new(group.device(rank).expect("there is such a rank")).expect("a stream");
        Memory { buffers, streams: (0..group.ranks()).map(stream).collect() }
    }

    /// Puts in again what was there before.
    pub fn refill(&mut self, call: &Call<'_>) {
        for (rank, before) in self.buffers.iter_mut().zip(&call.before) {
            for (buffers, bytes) in rank.iter_mut().zip(before) {
                buffers
                    .iter_mut()
                    .zip(bytes)
                    .for_each(|(buffer, bytes)| buffer.write(bytes).expect("a copy"));
            }
        }
    }

    pub fn pointers(&self) -> Vec<Vec<BufferPointers>> {
        let of = |[input, output]: &[DeviceBuffer; 2]| BufferPointers::new(input.pointer(), output.pointer());
        self.buffers.iter().map(|rank| rank.iter().map(of).collect()).collect()
    }

    pub fn handles(&self) -> Vec<StreamHandle> {
        self.streams.iter().map(Stream::handle).collect()
    }

    /// For each rank and buffer, its output, when all streams are done.
    pub fn outputs(&self) -> Vec<Vec<Vec<u8>>> {
        self.streams.iter().for_each(|stream| stream.synchronize().expect("it ends"));
        let output = |[_, output]: &[DeviceBuffer; 2]| output.to_vec().expect("a copy");
        self.buffers.iter().map(|rank| rank.iter().map(output).collect()).collect()
    }
}

/// A call as a group takes it.
pub fn stream_plan(group: &Group, call: &Call<'_>) -> Result<StreamPlan, GroupError> {
    let placements = placements(&call.plan.contract, call.case.in_place);
    group.stream_plan(&call.asked(&placements))
}

pub fn prepare(group: &Group, call: &Call<'_>) -> Prepared {
    group
        .prepare_stream_plan(stream_plan(group, call).expect("it makes a stream plan"))
        .expect("it is made ready")
}

/// Runs a call once, and gives its outputs.
pub fn run(group: &Group, call: &Call<'_>) -> Vec<Vec<Vec<u8>>> {
    let memory = Memory::new(group, call);
    let mut prepared = prepare(group, call);
    prepared.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
    prepared.wait(LIMIT).expect("it ends");
    memory.outputs()
}
