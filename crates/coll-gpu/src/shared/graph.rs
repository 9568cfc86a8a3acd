//! A call of ranks that are processes, captured into a graph: each rank has its own part as one.
//!
//! A graph does the same in every run, so words cannot hold the number of a run: whoever was waiting sets a word back when
//! it has heard it ([`Words::Flag`]).

use super::{Shared, SharedCall};
use crate::commands::Words;
use crate::driver::{Current, Event, Graph, Stream, StreamHandle};
use crate::prepared::located;
use crate::stream_plan::StreamPlan;
use crate::{GpuError, GroupError};
use std::time::Duration;

/// A call on fixed buffers of all ranks, as a graph of this rank's part. Runs of it follow each other.
pub struct SharedGraph {
    graph: Graph,
    // After the graph, which uses what it has.
    call: SharedCall,
}

impl Shared {
    /// Captures a call. All ranks do so for the same call, in the same order; runs of it that are under way are waited for.
    ///
    /// # Errors
    /// What the driver does not capture; runs that are not over in time; a rank that does not answer. A rank that fails tells
    /// the others, and all fail.
    pub fn capture(&mut self, mut call: SharedCall, limit: Duration) -> Result<SharedGraph, GroupError> {
        // What others tell of their last runs is there when those are over, and nothing of a graph before all are ready.
        let over = match call.carriage {
            None => call.wait(limit),
            // What the host carries goes by the number of the run.
            Some(_) => {
                let what = "a call that goes between machines is not captured into a graph".to_string();
                Err(GroupError::Exchange { rank: self.rank, what })
            }
        };
        self.agree(over)?;
        let captured = call.record();
        let graph = self.agree(captured)?;
        Ok(SharedGraph { graph, call })
    }
}

impl SharedCall {
    /// The graph of a run; words are as they are before the first.
    fn record(&mut self) -> Result<Graph, GroupError> {
        let at = self.rank as usize;
        let make = |call: &mut SharedCall| -> Result<_, GpuError> {
            call.words.fill(0)?;
            let (begin, stream) = (Event::new(&call.device)?, Stream::new(&call.device)?);
            Ok((stream, begin, Current::of(&call.device)?))
        };
        let made = make(self);
        let made = made.map_err(|error| located(&self.stream_plan, 0, at, None, error));
        let (stream, begin, mut current) = made?;
        let origin = stream.handle();
        let first = self.stream_plan.ranks[at].streams.start as usize;
        self.handles[first] = origin;
        let on_rank = |error| located(&self.stream_plan, 0, at, None, error);
        Graph::capture(&self.device, origin, || {
            // A lane may wait for another rank's word before it waits for anything of this one.
            begin.record(origin).map_err(on_rank)?;
            for (lane, _) in &self.joins {
                self.handles[*lane].wait(&begin).map_err(on_rank)?;
            }
            self.enqueue(Words::Flag, &mut current)?;
            self.join(origin).map_err(on_rank)?;
            Ok(())
        })
    }
}

/// A rank's streams that have work, beside the caller's.
pub(super) fn lanes(stream_plan: &StreamPlan, rank: usize) -> Vec<usize> {
    let streams = stream_plan.ranks[rank].streams.clone().skip(1);
    let works = |stream: &u32| stream_plan.work.iter().any(|work| work.stream == *stream);
    streams.filter(works).map(|stream| stream as usize).collect()
}

impl From<SharedGraph> for SharedCall {
    /// To be given back; its words are those of a graph.
    fn from(graph: SharedGraph) -> SharedCall {
        graph.call
    }
}

impl SharedGraph {
    /// Puts a run of this rank's part on a stream, and returns at once, as [`SharedCall::launch`]. Every rank runs it as
    /// often.
    ///
    /// # Errors
    /// The device refuses it; every later call then gives that error again.
    pub fn launch(&mut self, stream: StreamHandle) -> Result<(), GroupError> {
        let call = &mut self.call;
        call.failed.clone().map_or(Ok(()), Err)?;
        call.operation += 1;
        let put = |call: &SharedCall, graph: &mut Graph| -> Result<(), GpuError> {
            let _current = Current::of(&call.device)?;
            if call.last.is_some_and(|last| last != stream) {
                stream.wait(&call.end)?;
            }
            graph.launch(stream)?;
            call.end.record(stream)
        };
        let put = put(call, &mut self.graph);
        let put =
            put.map_err(|error| located(&call.stream_plan, call.operation, call.rank as usize, None, error));
        match &put {
            Ok(()) => call.last = Some(stream),
            Err(error) => call.failed = Some(error.clone()),
        }
        put
    }

    /// Waits until this rank's part of the last run is done: see [`SharedCall::wait`].
    ///
    /// # Errors
    /// As there.
    pub fn wait(&mut self, limit: Duration) -> Result<(), GroupError> {
        self.call.wait(limit)
    }

    /// The same, but it ends early where `ended` says so: see [`SharedCall::wait_unless`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_unless(
        &mut self,
        limit: Duration,
        ended: &mut dyn FnMut() -> Option<String>,
    ) -> Result<(), GroupError> {
        self.call.wait_unless(limit, ended)
    }
}
