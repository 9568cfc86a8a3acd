//! All that the driver knows, behind one lock. The modules beside this one add what can be done with it, each its theme.

use crate::capture::Capture;
use crate::clock::{Clock, Epoch};
use crate::code::{Answer, Code};
use crate::config::{Config, Stats};
use crate::context::Context;
use crate::event::Event;
use crate::graph::{Graph, Launchable};
use crate::ipc::Exchange;
use crate::kernel::Kernel;
use crate::memory::{Allocation, Memory};
use crate::module::Module;
use crate::races::{Access, Reports};
use crate::random::Random;
use crate::stream::Stream;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A thread of the host, or all of them.
#[derive(Debug)]
pub(crate) struct Host {
    actor: usize,
    clock: Clock,
    /// The same clock, shared with what was enqueued since it last changed.
    told: Option<Arc<Clock>>,
}

/// A call that is to fail.
#[derive(Debug)]
struct Failure {
    function: String,
    after: u64,
    code: Code,
}

/// Messages that are kept.
const LOG_MAX: usize = 256;

/// The driver.
pub(crate) struct Driver {
    pub(crate) config: Config,
    pub(crate) random: Random,
    pub(crate) memory: Memory,
    pub(crate) contexts: BTreeMap<u64, Context>,
    /// For each device its primary context, and how often it is held.
    pub(crate) primaries: BTreeMap<usize, (u64, u64)>,
    /// For each device, which devices may use its pool.
    pub(crate) pools: BTreeMap<usize, BTreeSet<usize>>,
    pub(crate) streams: BTreeMap<u64, Stream>,
    pub(crate) events: BTreeMap<u64, Event>,
    pub(crate) modules: BTreeMap<u64, Module>,
    /// Functions, with their modules.
    pub(crate) functions: BTreeMap<u64, (u64, Arc<Kernel>)>,
    pub(crate) captures: BTreeMap<u64, Capture>,
    pub(crate) graphs: BTreeMap<u64, Graph>,
    pub(crate) launchables: BTreeMap<u64, Launchable>,
    pub(crate) exchange: Option<Exchange>,
    hosts: BTreeMap<usize, Host>,
    /// Threads that have called.
    callers: BTreeSet<usize>,
    tokens: BTreeMap<u64, Clock>,
    /// What streams have told whoever looks at memory of the host, and other processes.
    pub(crate) told_others: Clock,
    pub(crate) reports: Reports,
    pub(crate) log: Vec<String>,
    /// A file that races and errors are added to as they are found.
    report: Option<PathBuf>,
    pub(crate) stats: Stats,
    failures: Vec<Failure>,
    pub(crate) initialised: bool,
    /// A queue holds more than it should.
    pub(crate) full: bool,
    /// The function that is being called.
    pub(crate) calling: &'static str,
    pub(crate) operations: u64,
    actors: usize,
}

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
/// Something has changed that a waiting thread may wait for.
pub(crate) static CHANGED: Condvar = Condvar::new();
/// Handles are never given twice, so that those from before a reset mean nothing after it.
static HANDLES: AtomicU64 = AtomicU64::new(0x1000);
static THREADS: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    static THREAD: Cell<usize> = const { Cell::new(0) };
    /// The contexts of this thread, the current one last.
    pub(crate) static CURRENT: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// The stream whose host function this thread runs.
    pub(crate) static WITHIN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// A number of this thread, from 1.
pub(crate) fn thread() -> usize {
    THREAD.with(|thread| {
        if thread.get() == 0 {
            thread.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        thread.get()
    })
}

/// The driver, for this thread alone.
pub(crate) struct Held(MutexGuard<'static, Option<Driver>>);

impl Held {
    pub(crate) fn take() -> Held {
        Held(DRIVER.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The driver; of the machine that the environment says if none was set up.
    pub(crate) fn driver(&mut self) -> Answer<&mut Driver> {
        if self.0.is_none() {
            let (config, report) = Config::of_environment().ok_or(Code::INVALID_VALUE)?;
            *self.0 = Some(Driver { report, ..Driver::new(config)? });
        }
        self.0.as_mut().ok_or(Code::UNKNOWN)
    }

    /// Another machine takes the place of this one.
    pub(crate) fn replace(&mut self, config: Config) -> Answer {
        let driver = Driver::new(config)?;
        *self.0 = Some(driver);
        CHANGED.notify_all();
        Ok(())
    }

    /// Lets others have it until something changes, or for a moment.
    pub(crate) fn pause(self) -> Held {
        let moment = std::time::Duration::from_micros(200);
        let waited = CHANGED.wait_timeout(self.0, moment).unwrap_or_else(PoisonError::into_inner);
        Held(waited.0)
    }
}

impl Driver {
    fn new(config: Config) -> Answer<Driver> {
        let memory = Memory::new(config.devices, config.device_bytes).map_err(|_| Code::OPERATING_SYSTEM)?;
        let mut random = Random::new(config.seed);
        random.next();
        Ok(Driver {
            config,
            random,
            memory,
            contexts: BTreeMap::new(),
            primaries: BTreeMap::new(),
            pools: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            captures: BTreeMap::new(),
            graphs: BTreeMap::new(),
            launchables: BTreeMap::new(),
            exchange: None,
            hosts: BTreeMap::new(),
            callers: BTreeSet::new(),
            tokens: BTreeMap::new(),
            told_others: Clock::default(),
            reports: Reports::default(),
            log: Vec::new(),
            report: None,
            stats: Stats::default(),
            failures: Vec::new(),
            initialised: false,
            full: false,
            calling: "",
            operations: 0,
            actors: 0,
        })
    }

    /// A handle that was never given before.
    pub(crate) fn handle(&self) -> u64 {
        HANDLES.fetch_add(0x10, Ordering::Relaxed)
    }

    /// Someone new who does things one after the other.
    pub(crate) fn actor(&mut self) -> usize {
        self.actors += 1;
        self.actors - 1
    }

    /// An error, with what is wrong in words.
    pub(crate) fn wrong(&mut self, code: Code, text: impl AsRef<str>) -> Code {
        let name = code.told().map_or("?".into(), |(name, _)| name.to_string_lossy());
        let text = format!("{}: {}: {}", self.calling, text.as_ref(), name);
        self.report(&text);
        if self.log.len() < LOG_MAX {
            self.log.push(text);
        }
        code
    }

    /// Adds a line to the file of what is found, if there is one.
    fn report(&self, line: &str) {
        let Some(path) = &self.report else { return };
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // Who reads it finds it missing if it cannot be written.
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }

    /// The call of a function is to fail, after so many that do not.
    pub(crate) fn fail_next(&mut self, function: &str, after: u64, code: Code) {
        self.failures.push(Failure { function: function.into(), after, code });
    }

    /// What a function is to fail with now.
    pub(crate) fn fails(&mut self, function: &str) -> Option<Code> {
        let at = self.failures.iter().position(|failure| failure.function == function)?;
        if self.failures[at].after > 0 {
            self.failures[at].after -= 1;
            return None;
        }
        Some(self.failures.remove(at).code)
    }

    /// A thread calls.
    pub(crate) fn called_from(&mut self, thread: usize) {
        self.callers.insert(thread);
    }

    /// How many threads have called.
    pub(crate) fn hosts_seen(&self) -> usize {
        self.callers.len()
    }

    /// The host as this thread is.
    fn host(&mut self) -> &mut Host {
        let thread = if self.config.threads_apart { thread() } else { 0 };
        if !self.hosts.contains_key(&thread) {
            let actor = self.actor();
            self.hosts.insert(thread, Host { actor, clock: Clock::default(), told: None });
        }
        self.hosts.get_mut(&thread).expect("invariant: it has just been put there")
    }

    /// What this thread knows, for what it enqueues.
    pub(crate) fn host_clock(&mut self) -> Arc<Clock> {
        let host = self.host();
        host.told.get_or_insert_with(|| Arc::new(host.clock.clone())).clone()
    }

    /// This thread learns something.
    pub(crate) fn host_learns(&mut self, clock: &Clock) {
        let host = self.host();
        host.clock.join(clock);
        host.told = None;
    }

    /// All threads learn something.
    pub(crate) fn hosts_learn(&mut self, clock: &Clock) {
        for host in self.hosts.values_mut() {
            host.clock.join(clock);
            host.told = None;
        }
    }

    /// What all threads know: whoever of them changed a word may have been told of it.
    pub(crate) fn all_hosts(&self) -> Clock {
        let mut all = Clock::default();
        self.hosts.values().for_each(|host| all.join(&host.clock));
        all
    }

    /// The host, or the host function that this thread runs, does something now.
    fn host_acts(&mut self) -> (Epoch, Clock, String) {
        if let Some(stream) = WITHIN.get().and_then(|handle| self.streams.get_mut(&handle)) {
            let epoch = stream.clock.tick(stream.actor);
            return (epoch, stream.clock.clone(), format!("a host function in {}", stream.label));
        }
        let host = self.host();
        let epoch = host.clock.tick(host.actor);
        host.told = None;
        (epoch, host.clock.clone(), "the host".into())
    }

    /// The host says that it reads or writes memory now.
    pub(crate) fn host_touches(&mut self, at: u64, bytes: u64, writes: bool) -> Answer {
        let (epoch, clock, what) = self.host_acts();
        if self.memory.within(at, bytes).ok().flatten().is_none() {
            return Err(
                self.wrong(Code::INVALID_VALUE, format!("{at:#x} is no memory that the driver knows"))
            );
        }
        self.note(at, bytes, writes, epoch, &clock, &what.into());
        Ok(())
    }

    /// The host says that it has seen the value which a stream wrote to a word.
    pub(crate) fn host_saw(&mut self, at: u64) -> Answer {
        let Some(allocation) = self.memory.find(at) else {
            return Err(
                self.wrong(Code::INVALID_VALUE, format!("{at:#x} is no memory that the driver knows"))
            );
        };
        let releases = allocation.releases.get(&(at - allocation.base));
        if let Some(clock) = releases.and_then(|releases| releases.last().cloned()) {
            self.host_learns(&clock);
        }
        Ok(())
    }

    /// This thread tells, under a number, what it knows, or learns what was told.
    pub(crate) fn hands_over(&mut self, token: u64, gives: bool) {
        if gives {
            let clock = self.host_clock();
            self.tokens.entry(token).or_default().join(&clock);
        } else if let Some(clock) = self.tokens.get(&token).cloned() {
            self.host_learns(&clock);
        }
    }

    /// Notes an access of bytes that lie in one allocation, and reports what it races with.
    pub(crate) fn note(
        &mut self,
        at: u64,
        bytes: u64,
        writes: bool,
        epoch: Epoch,
        clock: &Clock,
        what: &Arc<str>,
    ) {
        if bytes == 0 {
            return;
        }
        let Some(allocation) = self.memory.find_mut(at) else { return };
        let from = at - allocation.base;
        if writes {
            // What was written as words is there no more.
            let gone = from.saturating_sub(7)..from + bytes;
            allocation.releases.retain(|place, _| !gone.contains(place));
        }
        let access = Access { from, to: from + bytes, writes, epoch, what: what.clone() };
        let rivals = allocation.history.note(access.clone(), clock);
        if rivals.is_empty() {
            return;
        }
        let place = allocation.to_string();
        for rival in rivals {
            if let Some(text) = self.reports.add(&rival, &access, &place) {
                self.report(&text);
            }
        }
    }

    /// Whether work of a context may use memory.
    pub(crate) fn may_use(&self, context: u64, allocation: &Allocation) -> bool {
        use crate::memory::Kind;
        let Some(mine) = self.contexts.get(&context) else { return false };
        match allocation.kind {
            Kind::Pinned | Kind::Registered => true,
            _ if allocation.device == mine.device => true,
            Kind::Device => mine.peers.contains(&allocation.context),
            Kind::Pool => {
                self.pools.get(&allocation.device).is_some_and(|devices| devices.contains(&mine.device))
            }
            Kind::Imported => allocation.context == context,
        }
    }

    /// What is counted, as it is now.
    pub(crate) fn stats(&self) -> Stats {
        use crate::memory::Kind;
        let of_devices = || self.memory.all().filter(|a| matches!(a.kind, Kind::Device | Kind::Pool));
        Stats {
            pending: self.streams.values().map(|stream| stream.queue.len() as u64).sum(),
            streams: self.streams.values().filter(|stream| stream.is_callers()).count() as u64,
            events: self.events.len() as u64,
            allocations: of_devices().count() as u64,
            allocated_bytes: of_devices().map(|allocation| allocation.bytes).sum(),
            ..self.stats
        }
    }
}
