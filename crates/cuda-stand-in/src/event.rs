//! Events: points of streams that streams and the host wait for.
//!
//! A wait is for the point at which the event was recorded last before the wait was enqueued, whatever is recorded later. If it
//! never was, there is nothing to wait for; a program that enqueues in the wrong order has a race then, and no deadlock.

use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::space;
use crate::wait::Wait;
use crate::work::{Record, Work};
use std::sync::Arc;

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: u64,
    pub(crate) flags: u32,
    pub(crate) latest: Option<Latest>,
    /// Of an event that processes share: where it says how often it was recorded, and eight bytes further how many of these
    /// points have been reached.
    pub(crate) shared: Option<u64>,
}

/// Where an event was recorded last.
#[derive(Clone, Debug)]
pub(crate) enum Latest {
    Reached(Arc<Record>),
    /// After these nodes of a capture.
    Captured {
        capture: u64,
        nodes: Vec<usize>,
    },
}

pub(crate) const DISABLE_TIMING: u32 = 2;
pub(crate) const INTERPROCESS: u32 = 4;

impl Driver {
    /// A new event of a context.
    pub(crate) fn create_event(&mut self, context: u64, flags: u32) -> Answer<u64> {
        let shares = flags & INTERPROCESS != 0;
        if flags > 7 || (shares && flags & DISABLE_TIMING == 0) {
            let text = format!("an event of flags {flags}; one of several processes takes no times");
            return Err(self.wrong(Code::INVALID_VALUE, text));
        }
        let shared = if shares { Some(self.shared_word()?) } else { None };
        let handle = self.handle();
        self.events.insert(handle, Event { context, flags, latest: None, shared });
        Ok(handle)
    }

    /// An event by its handle.
    pub(crate) fn event(&mut self, handle: u64) -> Answer<&mut Event> {
        if !self.events.contains_key(&handle) {
            return Err(self.wrong(Code::INVALID_HANDLE, format!("{handle:#x} is no event")));
        }
        self.events.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }

    /// The event is now this point of a stream.
    pub(crate) fn record_event(&mut self, event: u64, stream: u64) -> Answer {
        let (context, shared) = (self.event(event)?.context, self.event(event)?.shared);
        let of_stream = self.streams[&stream].context;
        if of_stream != context && shared.is_none() {
            let text = "the event and the stream are of different contexts";
            return Err(self.wrong(Code::INVALID_HANDLE, text));
        }
        let latest = match self.streams[&stream].capture {
            Some(capture) => {
                let nodes = self.ends_of(capture, stream)?;
                Latest::Captured { capture, nodes }
            }
            None => {
                let record = Arc::new(Record::default());
                let work = match shared {
                    None => Work::Record(record.clone()),
                    Some(word) => {
                        let number = space::add(word, 1) + 1;
                        self.recorded(word, &record);
                        Work::RecordShared { word: word + 8, number, record: record.clone() }
                    }
                };
                self.enqueue(stream, work)?;
                Latest::Reached(record)
            }
        };
        self.event(event)?.latest = Some(latest);
        Ok(())
    }

    /// What a stream does next comes after the event.
    pub(crate) fn wait_event(&mut self, stream: u64, event: u64) -> Answer {
        let Event { latest, shared, .. } = self.event(event)?;
        let (latest, shared) = (latest.clone(), *shared);
        let capturing = self.streams[&stream].capture;
        match (latest, capturing) {
            (Some(Latest::Captured { capture, nodes }), _) => self.join_capture(capture, stream, nodes),
            (None, _) if shared.is_none_or(|word| space::load(word, true) == 0) => {
                self.stats.empty_waits += 1;
                Ok(())
            }
            (_, Some(capture)) => {
                self.invalidate(capture);
                let text = "a stream that is capturing waits for work that is not captured";
                Err(self.wrong(Code::STREAM_CAPTURE_ISOLATION, text))
            }
            (latest, None) => {
                let known = match latest {
                    Some(Latest::Reached(record)) => Some(record),
                    _ => None,
                };
                let work = match (shared, known) {
                    (Some(word), _) => {
                        let (number, known) = (space::load(word, true), self.last_recorded(word));
                        Work::WaitShared { word: word + 8, number, known }
                    }
                    (None, Some(record)) => Work::Wait(record),
                    (None, None) => return Ok(()),
                };
                self.enqueue(stream, work)
            }
        }
    }

    /// What the host has to wait for to know that the event has been reached.
    pub(crate) fn wait_for_event(&mut self, event: u64) -> Answer<Wait> {
        let Event { latest, shared, context, .. } = self.event(event)?;
        let (latest, shared, context) = (latest.clone(), *shared, *context);
        let records = match latest {
            Some(Latest::Captured { capture, .. }) => {
                self.invalidate(capture);
                return Err(self.wrong(Code::CAPTURED_EVENT, "the event is a point of a capture"));
            }
            Some(Latest::Reached(record)) => vec![record],
            None => shared.and_then(|word| self.last_recorded(word)).into_iter().collect(),
        };
        let words = shared.map(|word| (word + 8, space::load(word, true)));
        Ok(Wait { records, words: words.into_iter().collect(), contexts: vec![context], silent: false })
    }

    /// Milliseconds between two events, where a step takes one microsecond.
    pub(crate) fn elapsed(&mut self, start: u64, end: u64) -> Answer<f32> {
        let mut steps = [0u64; 2];
        for (at, handle) in [start, end].into_iter().enumerate() {
            let event = self.event(handle)?;
            let timed = event.flags & DISABLE_TIMING == 0;
            match (&event.latest, timed) {
                (Some(Latest::Reached(record)), true) => match record.done.get() {
                    Some(done) => steps[at] = done.step,
                    None => return Err(Code::NOT_READY),
                },
                (_, true) => return Err(self.wrong(Code::INVALID_HANDLE, "the event was not recorded")),
                _ => return Err(self.wrong(Code::INVALID_HANDLE, "the event takes no times")),
            }
        }
        Ok((steps[1] as f64 - steps[0] as f64) as f32 * 1e-3)
    }
}
