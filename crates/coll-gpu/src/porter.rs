//! A rank's porter: the thread of the host that carries messages between the device and ranks of other machines.
//!
//! A stream posts a message by a word in pinned memory. The porter copies it to pinned memory a slice at a time, on a stream of
//! its own, and sends slices while further ones are copied; on the other side it receives slices and copies them to the device
//! alike. When a message is carried it writes another word, for which the stream waits. Copies are put on streams only when
//! they can run at once, so nothing that a device does waits for the network but what needs the message.
//!
//! Calls are carried one after the other, in the order in which they are run, which is the same on all ranks. What goes wrong
//! ends all of them: streams are let go on, the other ranks are told, and every call says why.
//!
//! How to read it: `freight` is what one call has carried, `outgoing` and `incoming` are one link's messages, `ring` the
//! memory that they go through.

mod freight;
mod incoming;
mod outgoing;
mod ring;

pub(crate) use freight::{Freight, Seal};

use crate::driver::{Device, HostWords, Pointer, StreamHandle, wait_word};
use crate::{GpuError, GroupError, Network};
use coll_exec::{FINGERPRINT_BYTES, Fault, Header, Place};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Looks that often whether something can be done, before it rests in between.
const LOOKS: u32 = 64;

/// The longest rest while a device is waited for, whose words wake nobody.
const DEVICE_REST_MAX: Duration = Duration::from_millis(1);

/// The longest rest of all: so soon a call that is given up here is seen.
const REST_MAX: Duration = Duration::from_millis(10);

/// The network is asked at least that often whether the job has failed.
const TURNS_MAX: u32 = 256;

/// A rank's porter. Dropping it waits until what has been run is carried, or has failed.
pub(crate) struct Porter {
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
    news: Arc<News>,
    calls: AtomicU64,
}

/// What the porter and its rank tell each other beside commands.
#[derive(Default)]
struct News {
    /// Why the rank gives up.
    gives_up: Mutex<Option<Fault>>,
    has_given_up: AtomicBool,
    /// Runs of all calls that have been asked for, and those that are carried or have failed.
    asked: AtomicU64,
    ended: AtomicU64,
}

enum Command {
    Take(u64, Arc<Waybill>, Box<Freight>),
    Run(u64, u32),
    Leave(u64),
}

/// What a call's rank and its porter both know.
pub(crate) struct Waybill {
    pub(crate) rank: u32,
    pub(crate) name: String,
    pub(crate) device: u32,
    /// For each parcel two: that it is posted, and that it is carried.
    pub(crate) words: HostWords,
    /// Where in the plan each parcel is from.
    pub(crate) places: Vec<Option<Place>>,
    failure: Mutex<Option<GroupError>>,
}

/// A call's hold on the porter.
pub(crate) struct Carriage {
    porter: Arc<Porter>,
    waybill: Arc<Waybill>,
    number: u64,
}

impl Waybill {
    pub(crate) fn new(
        (rank, name, device): (u32, String, u32),
        words: HostWords,
        places: Vec<Option<Place>>,
    ) -> Waybill {
        Waybill { rank, name, device, words, places, failure: Mutex::default() }
    }

    fn failure(&self) -> MutexGuard<'_, Option<GroupError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Porter {
    /// Begins to carry over a network.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn new(rank: u32, network: Box<dyn Network>) -> std::io::Result<Porter> {
        let (commands, receiver) = channel();
        let news = Arc::new(News::default());
        let worker =
            Worker { network, news: news.clone(), fault: None, operation: 0, loads: BTreeMap::new() };
        let thread = std::thread::Builder::new().name(format!("collc-porter-{rank}"));
        let thread = thread.spawn(move || worker.work(receiver))?;
        Ok(Porter { commands: Some(commands), thread: Some(thread), news, calls: AtomicU64::new(0) })
    }

    /// Takes what a call has carried.
    pub(crate) fn take(self: &Arc<Self>, waybill: Arc<Waybill>, freight: Freight) -> Carriage {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        self.say(Command::Take(number, waybill.clone(), Box::new(freight)));
        Carriage { porter: self.clone(), waybill, number }
    }

    /// Waits until all that has been run is carried, or has failed.
    pub(crate) fn settle(&self) {
        let is_open = || self.news.ended.load(Ordering::Acquire) < self.news.asked.load(Ordering::Acquire);
        // A thread that has come to grief carries nothing any more.
        while is_open() && self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Gives up for good, as soon as the porter sees it.
    fn give_up(&self, fault: Fault) {
        self.news.gives_up.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        self.news.has_given_up.store(true, Ordering::Release);
    }

    fn say(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // The thread ends after the last sender is gone.
            let _ = commands.send(command);
        }
    }
}

impl Drop for Porter {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Carriage {
    /// Has a run carried. It is said before its work is put on streams, which may have to wait for room.
    pub(crate) fn run(&self, run: u32) {
        self.porter.news.asked.fetch_add(1, Ordering::AcqRel);
        self.porter.say(Command::Run(self.number, run));
    }

    /// Why the call has failed, if it has.
    pub(crate) fn failure(&self) -> Option<GroupError> {
        self.waybill.failure().clone()
    }

    /// Gives up, on this rank's behalf: nothing more is carried, and streams that wait for it go on.
    pub(crate) fn give_up(&self, limit: Duration, run: u32) {
        self.porter.give_up(Fault::TimedOut { limit_s: limit.as_secs_f64() });
        self.waybill.words.let_go(run);
    }
}

impl Drop for Carriage {
    fn drop(&mut self) {
        // Nothing is copied from the call's memory, nor to it, when it goes.
        self.porter.settle();
        self.porter.say(Command::Leave(self.number));
    }
}

/// Why a message cannot be carried.
#[derive(Debug)]
enum Trouble {
    Network(Fault),
    Device(GpuError),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Network(fault)
    }
}

impl From<GpuError> for Trouble {
    fn from(error: GpuError) -> Trouble {
        Trouble::Device(error)
    }
}

/// One message, on one side.
struct Message {
    /// Which parcel of the rank's it is.
    parcel: usize,
    message: u32,
    step: u32,
    bytes: u64,
    /// Where its bytes lie on the device.
    parts: Vec<(Pointer, u64)>,
}

/// What messages are carried with, in one run.
struct Tools<'a> {
    network: &'a mut dyn Network,
    words: &'a HostWords,
    device: &'a Device,
    out_stream: StreamHandle,
    in_stream: StreamHandle,
    run: u32,
    operation: u64,
    prepared: bool,
    fingerprint: [u8; FINGERPRINT_BYTES],
}

impl Tools<'_> {
    fn is_posted(&self, message: &Message) -> bool {
        self.words.has_come(2 * message.parcel, self.run)
    }

    /// Whether a message is posted. If so, a stream that copies it comes after whatever came before that.
    fn opens(&self, message: &Message, stream: StreamHandle) -> Result<bool, GpuError> {
        let is_posted = self.is_posted(message);
        if is_posted && message.bytes > 0 {
            wait_word(stream, posted_word(self.words, message.parcel), self.run, self.device)?;
        }
        Ok(is_posted)
    }

    /// A message is carried: its stream goes on.
    fn carried(&self, message: &Message) {
        self.words.raise(2 * message.parcel + 1, self.run);
    }

    fn header(&self, message: &Message) -> Header {
        Header {
            prepared: self.prepared,
            operation: self.operation,
            message: message.message,
            step: message.step,
            payload_bytes: message.bytes,
            fingerprint: self.fingerprint,
            ..Header::default()
        }
    }
}

/// Where the word lies that says that a parcel is posted.
fn posted_word(words: &HostWords, parcel: usize) -> Pointer {
    words.pointer().moved(8 * parcel as u64)
}

/// The thread.
struct Worker {
    network: Box<dyn Network>,
    news: Arc<News>,
    /// What ended it.
    fault: Option<Fault>,
    /// Runs so far, of all calls: what headers tell.
    operation: u64,
    loads: BTreeMap<u64, (Arc<Waybill>, Box<Freight>)>,
}

impl Worker {
    fn work(mut self, commands: Receiver<Command>) {
        while let Ok(command) = commands.recv() {
            match command {
                Command::Take(number, waybill, freight) => {
                    self.loads.insert(number, (waybill, freight));
                }
                Command::Run(number, run) => {
                    self.run(number, run);
                    self.news.ended.fetch_add(1, Ordering::AcqRel);
                }
                Command::Leave(number) => {
                    self.loads.remove(&number);
                }
            }
        }
    }

    fn run(&mut self, number: u64, run: u32) {
        self.operation += 1;
        let Some((waybill, mut freight)) = self.loads.remove(&number) else { return };
        let carried = match self.fault.clone() {
            Some(fault) => Err(Trouble::Network(fault)),
            None => self.carry(&waybill, &mut freight, run),
        };
        if let Err(trouble) = carried {
            self.fail(&waybill, &freight, trouble);
            waybill.words.let_go(run);
        }
        self.loads.insert(number, (waybill, freight));
    }

    /// Carries a call's messages until they are done.
    fn carry(&mut self, waybill: &Waybill, freight: &mut Freight, run: u32) -> Result<(), Trouble> {
        freight.begin();
        let (mut looks, mut turns) = (0u32, 0u32);
        loop {
            if self.news.has_given_up.load(Ordering::Acquire) {
                let given_up = self.news.gives_up.lock().unwrap_or_else(PoisonError::into_inner).clone();
                return Err(Trouble::Network(given_up.unwrap_or(Fault::TimedOut { limit_s: 0.0 })));
            }
            let turn = freight.step(&mut *self.network, &waybill.words, (run, self.operation))?;
            if turn.is_done {
                return Ok(());
            }
            looks = if turn.moved { 0 } else { looks.saturating_add(1) };
            turns += 1;
            if looks <= LOOKS && turns < TURNS_MAX {
                std::thread::yield_now();
                continue;
            }
            turns = 0;
            let rest = match turn.awaits_device {
                _ if looks == 0 => Duration::ZERO,
                true => Duration::from_micros(u64::from(looks - LOOKS.min(looks))).min(DEVICE_REST_MAX),
                false => REST_MAX,
            };
            self.network.rest(freight.interests(), rest)?;
        }
    }

    /// The first failure ends all calls; copies on their way are waited for, so that memory may go.
    fn fail(&mut self, waybill: &Waybill, freight: &Freight, trouble: Trouble) {
        freight.synchronize();
        let Waybill { rank, name, device, .. } = waybill;
        let (rank, operation, name, device) = (*rank, self.operation, name.clone(), *device);
        let at = freight.stands_at(match &trouble {
            Trouble::Network(Fault::PeerLost { peer, .. }) => Some(*peer),
            _ => None,
        });
        let place = at.and_then(|at| waybill.places[at].clone()).map(Box::new);
        let (fault, error) = match trouble {
            Trouble::Network(fault) => {
                let error = GroupError::Network {
                    rank,
                    operation,
                    name,
                    place,
                    device,
                    fault: Box::new(fault.clone()),
                };
                (fault, error)
            }
            Trouble::Device(error) => {
                let reason = error.to_string();
                let error =
                    GroupError::Enqueue { rank, operation, name, place, device, fault: Box::new(error) };
                (Fault::Aborted { origin: rank, reason }, error)
            }
        };
        if self.fault.is_none() {
            self.network.give_up(&error.to_string());
            self.fault = Some(fault);
        }
        waybill.failure().get_or_insert(error);
    }
}
