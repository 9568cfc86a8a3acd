//! A call that runs in the background, with the buffers that it owns meanwhile.

use crate::comm::CommError;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A call that runs in the background. It owns the buffers until it is done, so nobody can read or write them meanwhile;
/// [`Pending::wait`] hands them back.
///
/// It is a [`Future`] too, for any executor. **Dropping it does not cancel the call**: the other ranks take part in it, so
/// it runs to its end, and the buffers are freed then. What cancels is [`Communicator::abort`](crate::Communicator::abort),
/// on all ranks, once the calls before it are through; and the time limit.
#[derive(Debug)]
#[must_use = "the buffers come back with `wait`"]
pub struct Pending<B> {
    slot: Arc<Slot<B>>,
}

/// Where the outcome is left.
#[derive(Debug)]
pub(crate) struct Slot<B> {
    state: Mutex<State<B>>,
    done: Condvar,
}

#[derive(Debug)]
struct State<B> {
    outcome: Option<(B, Result<(), CommError>)>,
    finished: bool,
    waker: Option<Waker>,
}

impl<B> Pending<B> {
    pub(crate) fn new() -> (Pending<B>, Arc<Slot<B>>) {
        let state = Mutex::new(State { outcome: None, finished: false, waker: None });
        let slot = Arc::new(Slot { state, done: Condvar::new() });
        (Pending { slot: Arc::clone(&slot) }, slot)
    }

    /// Waits until the call is done. Blocks at most as long as the calls before it and itself may take; with an error the
    /// buffers are gone: [`Pending::outcome`] keeps them.
    pub fn wait(self) -> Result<B, CommError> {
        let (buffers, result) = self.outcome();
        result.map(|()| buffers)
    }

    /// Waits until the call is done, and hands the buffers back also if it failed. What is in an output then is anything.
    pub fn outcome(self) -> (B, Result<(), CommError>) {
        let mut state = self.slot.lock();
        loop {
            match state.outcome.take() {
                Some(outcome) => return outcome,
                None => state = self.slot.done.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits for at most `limit`. Says whether the call is done.
    pub fn wait_for(&self, limit: Duration) -> bool {
        let until = Instant::now().checked_add(limit);
        let mut state = self.slot.lock();
        while !state.finished {
            let left = until.map_or(limit, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            let waited = self.slot.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Whether the call is done. Does not wait.
    pub fn test(&self) -> bool {
        self.slot.lock().finished
    }
}

impl<B> Future for Pending<B> {
    type Output = Result<B, CommError>;

    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.lock();
        assert!(!state.finished || state.outcome.is_some(), "a pending call is polled after it was ready");
        match state.outcome.take() {
            Some((buffers, result)) => Poll::Ready(result.map(|()| buffers)),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<B> Slot<B> {
    /// Leaves the outcome, and wakes who waits for it.
    pub(crate) fn fill(&self, buffers: B, result: Result<(), CommError>) {
        let mut state = self.lock();
        state.outcome = Some((buffers, result));
        state.finished = true;
        let waker = state.waker.take();
        drop(state);
        self.done.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
