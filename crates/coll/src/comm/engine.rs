//! What runs calls: the connections, the bound calls, and the counters that all ranks keep in step. It lives with the
//! communicator, or with its background thread while that has something to do.

use crate::comm::abort::Order;
use crate::comm::builder::Settings;
use crate::comm::cache::Cache;
use crate::comm::entry::Entry;
use crate::comm::error::{CommError, Failure, Refusal};
use crate::comm::record::Record;
use crate::comm::request::{Request, What};
use crate::comm::resolve::{Key, Resolved};
use crate::comm::wires::{self, Wires};
use coll_exec::{BufferMemory, Fault, RunError, RunOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes that bound calls may hold before the oldest are forgotten.
const CACHE_BYTES: u64 = 64 << 20;

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// Runs calls, one after the other.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Tells communicators of this process apart.
    pub(crate) id: u64,
    pub(crate) rank: u32,
    pub(crate) world: u32,
    pub(crate) settings: Settings,
    pub(crate) wires: Wires,
    /// Time without progress after which an operation fails.
    pub(crate) limit: Duration,
    pub(crate) cache: Cache,
    pub(crate) record: Record,
    /// The number of the next collective operation.
    operations: u64,
    /// For each peer, messages sent and received.
    messages: Vec<[u64; 2]>,
    /// Splits so far.
    pub(crate) splits: u64,
    ended: Option<Arc<CommError>>,
    /// What another thread has ordered meanwhile.
    pub(crate) order: Arc<Order>,
}

impl Engine {
    pub(crate) fn new(wires: Wires, settings: Settings) -> Engine {
        let meeting = wires.meeting();
        let (rank, world, limit) = (meeting.rank, meeting.world, meeting.time_limit);
        log::info!("{}: rank {rank} of {world} is connected", settings.name);
        Engine {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            rank,
            world,
            record: Record::new(settings.recorded),
            settings,
            wires,
            limit,
            cache: Cache::new(CACHE_BYTES),
            operations: 0,
            messages: Vec::new(),
            splits: 0,
            ended: None,
            order: Arc::default(),
        }
    }

    /// Runs one call.
    #[inline]
    pub(crate) fn run(&mut self, request: Request<'_>) -> Result<(), CommError> {
        self.check_alive()?;
        let mut resolved = self.resolve(request)?;
        let place = self.place(&resolved)?;
        self.run_at(place, resolved.memory.as_mut_slice())
    }

    /// An error if the communicator has ended.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<(), CommError> {
        match &self.ended {
            None if !self.order.is_given() => Ok(()),
            None => Err(CommError::Ended { first: Arc::new(self.order.error(self.rank)) }),
            Some(first) => Err(CommError::Ended { first: Arc::clone(first) }),
        }
    }

    #[inline]
    pub(crate) fn resolve<'a>(&mut self, request: Request<'a>) -> Result<Resolved<'a>, CommError> {
        let asked = request.types;
        match request.resolve(self.rank, self.world) {
            Ok(mut resolved) => {
                self.settle(&mut resolved.key, asked)?;
                Ok(resolved)
            }
            Err((refusal, call)) => Err(self.refuse(refusal, call)),
        }
    }

    /// Where the call is bound; it is bound there if it was nowhere.
    #[inline]
    pub(crate) fn place(&mut self, resolved: &Resolved<'_>) -> Result<usize, CommError> {
        match self.cache.find(resolved) {
            Some(place) => Ok(place),
            None => self.bind(resolved),
        }
    }

    #[cold]
    fn bind(&mut self, resolved: &Resolved<'_>) -> Result<usize, CommError> {
        let entry = Entry::new(resolved, self.rank, self.world, &self.settings.chooser, self.wires.place())
            .map_err(|refusal| {
            let words = crate::comm::words::CallWords::new(resolved, "", "");
            self.refuse(refusal, words.text)
        })?;
        Ok(self.cache.insert(Box::new(entry)))
    }

    /// Runs a bound call.
    #[inline]
    pub(crate) fn run_at(&mut self, place: usize, memory: &mut [BufferMemory<'_>]) -> Result<(), CommError> {
        let begun = self.begin(place)?;
        if !begun.connected {
            self.connect(&[place], Some(begun))?;
        }
        let Some(entry) = self.cache.get_mut(place) else { return Err(not_bound()) };
        match entry.bound.run(&mut self.wires, memory, begun.options) {
            Ok(()) => {
                self.record.end(begun.noted);
                if begun.counted {
                    self.wires.end();
                }
                Ok(())
            }
            Err(error) => {
                let call = entry.call.text.clone();
                Err(self.fail_run(error, call, begun.noted))
            }
        }
    }

    /// Begins a bound call: from here on the other ranks can know that this one is in it.
    #[inline]
    pub(crate) fn begin(&mut self, place: usize) -> Result<Begun, CommError> {
        let Some(entry) = self.cache.get_mut(place) else { return Err(not_bound()) };
        let operation = next(&mut self.operations, &mut self.messages, &entry.key);
        let counted = !entry.key.what.is_between_two();
        let options = self.wires.begin(self.limit, operation, &entry.call.call, counted);
        let noted = self.record.begin(&entry.call, entry.key, operation);
        Ok(Begun { options, noted, counted, connected: entry.connected })
    }

    /// Makes the links of bound calls, all at once. `begun` is the first of them that has begun, if they have.
    #[cold]
    pub(crate) fn connect(&mut self, places: &[usize], begun: Option<Begun>) -> Result<(), CommError> {
        let mut links = Vec::new();
        for &place in places {
            if let Some(entry) = self.cache.get_mut(place).filter(|entry| !entry.connected) {
                links.extend(entry.links());
            }
        }
        links.sort_unstable();
        links.dedup();
        if let Err(fault) = self.wires.connect(&links, self.limit) {
            let call = places.first().and_then(|&place| self.cache.get_mut(place)).map(|entry| &*entry.call);
            let text = call.map_or_else(String::new, |call| call.text.clone());
            let schedule = call.map(|call| call.schedule.clone());
            let operation = begun.map(|begun| begun.options.operation);
            let failure = Failure { operation, schedule, ..self.failure(text, fault) };
            return Err(self.fail(failure, begun.map(|begun| begun.noted)));
        }
        for &place in places {
            if let Some(entry) = self.cache.get_mut(place) {
                entry.connected = true;
            }
        }
        Ok(())
    }

    pub(crate) fn failure(&self, call: String, fault: Fault) -> Failure {
        let rank = self.rank;
        Failure {
            rank,
            operation: None,
            call,
            schedule: None,
            place: None,
            other_call_of: None,
            call_before: None,
            fault,
        }
    }

    /// Gives every rank a blob and takes one of each.
    pub(crate) fn exchange(&mut self, what: &str, blob: Vec<u8>) -> Result<Vec<Vec<u8>>, CommError> {
        self.check_alive()?;
        let gathered = self.wires.exchange(self.limit, blob);
        gathered.map_err(|fault| self.fail(self.failure(what.to_string(), fault), None))
    }

    /// Ends the communicator, on all ranks, with the error of an operation.
    #[cold]
    pub(crate) fn fail_run(&mut self, mut error: RunError, call: String, noted: u64) -> CommError {
        let other_call_of = wires::other_call(&error.fault);
        error.fault = self.wires.explain(error.fault);
        self.fail(Failure::of_run(error, call, other_call_of), Some(noted))
    }

    /// Ends the communicator, on all ranks, with what failed.
    #[cold]
    pub(crate) fn fail(&mut self, mut failure: Failure, noted: Option<u64>) -> CommError {
        if self.order.explains(self.rank, &failure.fault) {
            let error = self.order.error(self.rank);
            if let Some(noted) = noted {
                self.record.fail(noted, error.to_string());
            }
            self.end(error.clone(), &error.to_string());
            return error;
        }
        if failure.other_call_of.is_some() {
            failure.call_before = noted.and_then(|noted| self.record.before(noted));
        }
        let error = CommError::Failed(Arc::new(failure));
        let words = error.to_string();
        if let Some(noted) = noted {
            self.record.fail(noted, words.clone());
        }
        self.end(error.clone(), &words);
        error
    }

    /// Ends the communicator on all ranks.
    pub(crate) fn end(&mut self, error: CommError, reason: &str) {
        log::warn!("{}: {reason}", self.settings.name);
        if self.ended.is_none() {
            self.ended = Some(Arc::new(error));
            self.wires.abort(reason);
            self.write_record();
        }
    }

    /// Writes the flight record to the file that was named, if one was. Whether that can be done changes nothing of what failed.
    fn write_record(&self) {
        let Some(path) = self.settings.record_path(self.rank) else { return };
        let timeout_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let record = self.record.to_pickle(self.rank, self.world, &self.settings.name, timeout_ms);
        match std::fs::write(&path, record) {
            Ok(()) => log::warn!("{}: the flight record is in {}", self.settings.name, path.display()),
            Err(error) => {
                log::warn!("{}: no flight record in {}: {error}", self.settings.name, path.display())
            }
        }
    }

    /// What a call that is refused comes back with. If the others cannot know of it, they are told.
    #[cold]
    pub(crate) fn refuse(&mut self, refusal: Refusal, call: String) -> CommError {
        let rank = self.rank;
        match refusal {
            Refusal::Everywhere(reason) => CommError::Refused { rank, call, reason },
            Refusal::Here(reason) => {
                let error = CommError::Misused { rank, call, reason };
                self.end(error.clone(), &error.to_string());
                error
            }
        }
    }
}

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) options: RunOptions,
    /// Its number in the record.
    pub(crate) noted: u64,
    /// Whether all ranks count it.
    pub(crate) counted: bool,
    /// Whether its links are there.
    connected: bool,
}

#[cold]
fn not_bound() -> CommError {
    CommError::Setup { what: "the prepared call belongs to another communicator".to_string() }
}

/// Collective operations are counted on all ranks alike; messages, which only two ranks know of, for each peer.
#[inline]
fn next(operations: &mut u64, messages: &mut Vec<[u64; 2]>, key: &Key) -> u64 {
    let counter = match key.what {
        What::Send | What::Receive => {
            let peer = key.root as usize;
            if messages.len() <= peer {
                messages.resize(peer + 1, [0; 2]);
            }
            &mut messages[peer][usize::from(key.what == What::Receive)]
        }
        _ => operations,
    };
    let number = *counter;
    *counter += 1;
    number
}
