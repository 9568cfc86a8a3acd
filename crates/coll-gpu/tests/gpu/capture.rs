//! A call that is put on streams while their owner captures them into a graph of its own.
//!
//! Unsafe, for streams that another library made are vouched for here.
#![allow(unsafe_code)]

use crate::support::devices::{Memory, machine, prepare};
use crate::support::{Call, Case, plan, seed};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_gpu::{Group, StreamHandle};
use cudarc::driver::CudaContext;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

#[test]
fn a_call_is_captured_with_the_streams_it_is_put_on() {
    let plan = plan("allreduce", "recursive_doubling", 2, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case { in_place: true, ..Case::new(RedOp::Sum, DType::F32) });
    let session = machine(1, true, seed());
    {
        let group = Group::new(&[0, 0]).expect("the device opens");
        let mut memory = Memory::new(&group, &call);
        let mut prepared = prepare(&group, &call);
        let context = CudaContext::new(0).expect("the device opens");
        let streams = [context.new_stream().expect("a stream"), context.new_stream().expect("a stream")];
        let handles: Vec<StreamHandle> = streams
            .iter()
            // SAFETY: the stream is of the device's primary context, and lives until the end of this block.
            .map(|stream| unsafe { StreamHandle::new(stream.cu_stream() as u64) })
            .collect();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        streams[0].begin_capture(mode).expect("a capture");
        streams[1].join(&streams[0]).expect("it takes part");
        prepared.launch(&memory.pointers(), &handles).expect("it is captured");
        streams[0].join(&streams[1]).expect("it comes back");
        let graph = streams[0].end_capture(CUgraphInstantiate_flags(0)).expect("it is whole");
        let graph = graph.expect("it holds work");
        for _ in 0..2 {
            memory.refill(&call);
            graph.launch().expect("it is put on a stream");
            streams[0].synchronize().expect("it ends");
            assert!(memory.outputs() == call.on_cpu());
        }
    }
    session.verdict().expect("nothing is left to chance");
}
