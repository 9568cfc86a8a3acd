//! Graphs: work on streams, captured once and put on a stream as one.

use super::{Device, StreamHandle, said};
use crate::GpuError;
use cudarc::driver::sys::{self, CUgraph, CUgraphExec, CUstreamCaptureMode};
use std::sync::Arc;

/// A graph that can be put on streams of a device. Not to be used by two threads at once, which `&mut` keeps.
#[derive(Debug)]
pub(crate) struct Graph {
    device: Arc<Device>,
    graph: CUgraph,
    exec: CUgraphExec,
}

// SAFETY: the driver wants calls on a graph one after the other, from whichever thread.
unsafe impl Send for Graph {}

impl Graph {
    /// Captures what `enqueue` puts on a stream, and on others that wait for it and that it waits for in the end. The
    /// context of its device is current.
    pub(crate) fn capture<E: From<GpuError>>(
        device: &Arc<Device>,
        stream: StreamHandle,
        enqueue: impl FnOnce() -> Result<(), E>,
    ) -> Result<Graph, E> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is vouched for.
        let begun = unsafe { sys::cuStreamBeginCapture_v2(stream.0, mode) };
        said(begun, "cuStreamBeginCapture", device.number())?;
        let enqueued = enqueue();
        let mut graph = std::ptr::null_mut();
        // SAFETY: a capture of this stream has begun here.
        let ended = unsafe { sys::cuStreamEndCapture(stream.0, &mut graph) };
        let captured = enqueued.and_then(|()| Ok(said(ended, "cuStreamEndCapture", device.number())?));
        let mut made = Graph { device: device.clone(), graph, exec: std::ptr::null_mut() };
        captured?;
        // SAFETY: the graph was just captured; it writes one handle.
        let instantiated = unsafe { sys::cuGraphInstantiateWithFlags(&mut made.exec, graph, 0) };
        said(instantiated, "cuGraphInstantiate", device.number())?;
        Ok(made)
    }

    /// Puts it on a stream.
    pub(crate) fn launch(&mut self, stream: StreamHandle) -> Result<(), GpuError> {
        // SAFETY: the graph is held, and the stream vouched for.
        said(unsafe { sys::cuGraphLaunch(self.exec, stream.0) }, "cuGraphLaunch", self.device.number())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: each was made once, if it is not null; the driver keeps what is still running.
        unsafe {
            if !self.exec.is_null() {
                let _ = sys::cuGraphExecDestroy(self.exec);
            }
            if !self.graph.is_null() {
                let _ = sys::cuGraphDestroy(self.graph);
            }
        }
    }
}
