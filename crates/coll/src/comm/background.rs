//! The thread that runs calls while the caller computes. It has the engine as long as there is something to do, and gives
//! it back then: who only makes blocking calls never pays for a hand-over.

use crate::comm::CommError;
use crate::comm::engine::Engine;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A call with its buffers, which gives the engine back.
pub(crate) type Job = Box<dyn FnOnce(Box<Engine>) -> Box<Engine> + Send>;

/// The communicator's end of the thread.
#[derive(Debug)]
pub(crate) struct Background {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Here between two jobs, and until it is taken back.
    engine: Option<Box<Engine>>,
    jobs: VecDeque<Job>,
    closing: bool,
}

impl Background {
    /// Starts the thread.
    pub(crate) fn start(rank: u32) -> Result<Background, CommError> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let started =
            thread::Builder::new().name(format!("coll-pending-{rank}")).spawn(move || theirs.work());
        match started {
            Ok(_) => Ok(Background { shared }),
            Err(error) => Err(CommError::Setup { what: format!("cannot start a thread: {error}") }),
        }
    }

    /// Hands a job over, and the engine, if the thread does not have it. Jobs run in the order in which they come.
    pub(crate) fn push(&self, job: Job, engine: Option<Box<Engine>>) {
        let mut state = self.shared.lock();
        if engine.is_some() {
            state.engine = engine;
        }
        state.jobs.push_back(job);
        self.shared.changed.notify_all();
    }

    /// Takes the engine back, once all jobs are done.
    pub(crate) fn recall(&self) -> Box<Engine> {
        let mut state = self.shared.lock();
        loop {
            let State { engine, jobs, .. } = &mut *state;
            if let Some(engine) = engine.take_if(|_| jobs.is_empty()) {
                return engine;
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Background {
    /// The thread does what it was asked to do, and ends.
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            let State { engine, jobs, closing } = &mut *state;
            match (engine.take_if(|_| !jobs.is_empty()), *closing) {
                (Some(engine), _) => {
                    let job = jobs.pop_front().expect("invariant: the engine is taken if there is a job");
                    drop(state);
                    let engine = job(engine);
                    state = self.lock();
                    state.engine = Some(engine);
                    self.changed.notify_all();
                }
                (None, true) => {
                    // Leaving takes a moment, in which nobody need wait for the lock.
                    let engine = engine.take();
                    drop(state);
                    drop(engine);
                    return;
                }
                (None, false) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({} jobs)", self.lock().jobs.len())
    }
}
