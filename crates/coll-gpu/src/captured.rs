//! A call captured into a graph: buffers and all, put on a stream as one.

use crate::driver::{Current, Event, Graph, Stream, StreamHandle};
use crate::prepared::{BufferPointers, Prepared, located};
use crate::{GpuError, GroupError};
use std::time::{Duration, Instant};

/// A call on fixed buffers, as a graph. Runs of it follow each other.
#[derive(Debug)]
pub struct Captured {
    graph: Graph,
    /// On each rank, that the caller's stream has come so far.
    begins: Vec<Event>,
    /// That the graph is done, and the stream that it was put on last.
    end: Event,
    last: Option<StreamHandle>,
    operation: u64,
    // After the graph, which uses what it has.
    prepared: Prepared,
}

impl Prepared {
    /// Captures a run on these buffers.
    ///
    /// # Errors
    /// Buffers that are not as they were bound, and what the driver does not capture.
    pub fn capture(mut self, buffers: &[Vec<BufferPointers>]) -> Result<Captured, GroupError> {
        self.begin(buffers)?;
        let make = |prepared: &Prepared| -> Result<_, GpuError> {
            let devices = || prepared.devices.iter();
            let streams = devices().map(Stream::new).collect::<Result<Vec<_>, _>>()?;
            let begins = devices().map(Event::new).collect::<Result<Vec<_>, _>>()?;
            Ok((streams, begins, devices().map(Event::new).collect::<Result<Vec<_>, _>>()?))
        };
        let (streams, begins, ends) = make(&self)?;
        self.take_streams(&streams);
        let mut current = Current::caller()?;
        current.switch(&self.devices[0])?;
        let origin = streams[0].handle();
        let graph = Graph::capture(&self.devices[0], origin, || -> Result<(), GroupError> {
            let on_rank = |rank, error| located(&self.stream_plan, 0, rank, None, error);
            begins[0].record(origin).map_err(|error| on_rank(0, error))?;
            for (rank, stream) in streams.iter().enumerate().skip(1) {
                stream.handle().wait(&begins[0]).map_err(|error| on_rank(rank, error))?;
            }
            self.enqueue(0, &mut current)?;
            for (rank, stream) in streams.iter().enumerate().skip(1) {
                let joined = current
                    .switch(&self.devices[rank])
                    .and_then(|()| ends[rank].record(stream.handle()))
                    .and_then(|()| origin.wait(&ends[rank]));
                joined.map_err(|error| on_rank(rank, error))?;
            }
            current.switch(&self.devices[0])?;
            Ok(())
        })?;
        let end = Event::new(&self.devices[0])?;
        Ok(Captured { graph, begins, end, last: None, operation: 0, prepared: self })
    }
}

impl Captured {
    /// Puts a run on streams, one for each rank, and returns at once: as [`Prepared::launch`], but that every rank begins when
    /// all callers' streams have come so far, and ends when all ranks are done.
    pub fn launch(&mut self, streams: &[StreamHandle]) -> Result<(), GroupError> {
        self.prepared.check_streams(streams)?;
        self.operation += 1;
        let done = self.put(streams);
        let done = done
            .map_err(|(rank, error)| located(&self.prepared.stream_plan, self.operation, rank, None, error));
        self.prepared.note(done)
    }

    fn put(&mut self, streams: &[StreamHandle]) -> Result<(), (usize, GpuError)> {
        let Captured { graph, begins, end, last, prepared, .. } = self;
        let mut current = Current::caller().map_err(|error| (0, error))?;
        let others = || streams.iter().zip(&prepared.devices).zip(begins.iter()).enumerate().skip(1);
        for (rank, ((stream, device), begin)) in others() {
            let waits = current
                .switch(device)
                .and_then(|()| begin.record(*stream))
                .and_then(|()| current.switch(&prepared.devices[0]))
                .and_then(|()| streams[0].wait(begin));
            waits.map_err(|error| (rank, error))?;
        }
        let mut run = || -> Result<(), GpuError> {
            current.switch(&prepared.devices[0])?;
            if last.is_some_and(|last| last != streams[0]) {
                streams[0].wait(end)?;
            }
            graph.launch(streams[0])?;
            end.record(streams[0])
        };
        run().map_err(|error| (0, error))?;
        *last = Some(streams[0]);
        for (rank, ((stream, device), _)) in others() {
            current.switch(device).and_then(|()| stream.wait(end)).map_err(|error| (rank, error))?;
        }
        Ok(())
    }

    /// Waits until the last run is done.
    ///
    /// # Errors
    /// It takes longer than `limit`; where it stands cannot be told of a graph.
    pub fn wait(&mut self, limit: Duration) -> Result<(), GroupError> {
        let stream_plan = &self.prepared.stream_plan;
        let (start, device) = (Instant::now(), self.prepared.devices[0].number());
        while self.last.is_some() {
            let done = self.end.is_done();
            if done.map_err(|error| located(stream_plan, self.operation, 0, None, error))? {
                break;
            }
            if start.elapsed() >= limit {
                let (name, operation) = (stream_plan.name.clone(), self.operation);
                return Err(GroupError::TimedOut { rank: 0, operation, name, place: None, device, limit });
            }
            std::thread::sleep(Duration::from_micros(50).min(limit));
        }
        Ok(())
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = self.end.synchronize();
        }
    }
}
