//! How a communicator comes about.

use crate::comm::engine::Engine;
use crate::comm::types::Types;
use crate::comm::variables::{Topology, Variables};
use crate::comm::wires::{Host, Meeting, Via, Wires, WiresError};
use crate::comm::{CommError, Communicator};
use crate::select::{Chooser, Ground};
use coll_base::DType;
use coll_cost::Tuning;
use coll_shm::ShmTransport;
use coll_tcp::{Rendezvous, Token};
use coll_topo::Network;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

/// Operations that the flight recorder keeps, unless it is told otherwise.
const RECORDED: usize = 256;

/// The largest world.
const WORLD_MAX: u32 = crate::RANKS_MAX;

/// How to join a communicator. Each rank says who it is and where the ranks meet; rank 0 listens there.
///
/// ```no_run
/// use std::time::Duration;
///
/// let mut comm = coll::Communicator::builder()
///     .rank(1, 4)
///     .rendezvous("10.0.0.1:29500")
///     .token("of this job")
///     .time_limit(Duration::from_secs(60))
///     .build()?;
/// comm.barrier()?;
/// # Ok::<(), coll::CommError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    place: Option<(u32, u32)>,
    rendezvous: Option<String>,
    token: String,
    time_limit: Duration,
    hosts: bool,
    via: Via,
    host: String,
    checksums: bool,
    tls: bool,
    ranks_per_host: Option<u32>,
    settings: Settings,
    /// A network, and where ranks stand on it if not as it lists its devices.
    topology: Option<Topology>,
    /// What is wrong with the environment.
    wrong: Option<String>,
}

/// What a communicator hands on to those that are split off it.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) recorded: usize,
    /// What files of flight records begin with, if they are to be written when a communicator fails.
    pub(crate) record_to: Option<PathBuf>,
    pub(crate) chooser: Arc<Chooser>,
    /// The order of reductions depends on rank numbers alone.
    pub(crate) deterministic: bool,
    pub(crate) types: Types,
}

impl Settings {
    /// The file of a rank's flight record: those of a communicator that was split off bear its name, too.
    pub(crate) fn record_path(&self, rank: u32) -> Option<PathBuf> {
        let mut path = self.record_to.clone()?.into_os_string();
        if let Some((_, split)) = self.name.split_once('/') {
            path.push(format!("{}-", split.replace('/', "-")));
        }
        path.push(rank.to_string());
        Some(path.into())
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Settings({}, {} operations recorded)", self.name, self.recorded)
    }
}

impl Default for Builder {
    fn default() -> Builder {
        // What it finds out is of use to all communicators of the process.
        static SHIPPED: OnceLock<Arc<Chooser>> = OnceLock::new();
        Builder {
            place: None,
            rendezvous: None,
            token: String::new(),
            time_limit: Duration::from_secs(30),
            hosts: true,
            via: Via::default(),
            host: String::new(),
            checksums: false,
            tls: false,
            ranks_per_host: None,
            settings: Settings {
                name: "world".to_string(),
                recorded: RECORDED,
                record_to: None,
                chooser: Arc::clone(SHIPPED.get_or_init(|| Arc::new(Chooser::new(Tuning::shipped())))),
                deterministic: false,
                types: Types::default(),
            },
            topology: None,
            wrong: None,
        }
    }
}

impl Builder {
    /// This rank, and how many there are.
    pub fn rank(mut self, rank: u32, world: u32) -> Builder {
        self.place = Some((rank, world));
        self
    }

    /// Where the ranks meet, as `host:port`. Not needed by a rank alone.
    pub fn rendezvous(mut self, address: impl Into<String>) -> Builder {
        self.rendezvous = Some(address.into());
        self
    }

    /// What the ranks of this job know and others do not. Empty by default, which keeps nobody out.
    pub fn token(mut self, token: impl Into<String>) -> Builder {
        self.token = token.into();
        self
    }

    /// How long joining may take, and how long nothing may move before a call fails. 30 s by default.
    pub fn time_limit(mut self, limit: Duration) -> Builder {
        self.time_limit = limit;
        self
    }

    /// Somebody else listens at the rendezvous, such as a launcher with a [`coll_tcp::Rendezvous`]: rank 0 does not.
    pub fn rendezvous_is_hosted(mut self) -> Builder {
        self.hosts = false;
        self
    }

    /// How many operations the flight recorder keeps: 256 by default, 0 for none.
    pub fn recorded(mut self, operations: usize) -> Builder {
        self.settings.recorded = operations;
        self
    }

    /// Has every rank write its flight record when the communicator ends with an error, into a file whose name is this and the rank's
    /// number: `/tmp/record` has rank 3 write `/tmp/record3`, as [`Communicator::flight_record_pickle`] has it. A file that cannot
    /// be written is told in the log. None by default. Communicators that are split off put the split's number before
    /// the rank's.
    pub fn record_to(mut self, path: impl Into<PathBuf>) -> Builder {
        self.settings.record_to = Some(path.into());
        self
    }

    /// What log lines and flight records call the communicator: `world` by default.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.settings.name = name.into();
        self
    }

    /// How ranks may reach each other: by default the fastest way that there is between any two. Equal on all ranks.
    pub fn via(mut self, via: Via) -> Builder {
        self.via = via;
        self
    }

    /// Calls this rank's machine by a name, beside what the machine says of itself: ranks that give another name share no
    /// memory with this one, even where they could. For containers that are to be kept apart, and to try on one machine what
    /// several do. Not for [`Builder::local`], whose ranks are told apart by [`Builder::ranks_per_host`].
    pub fn host(mut self, name: impl Into<String>) -> Builder {
        self.host = name.into();
        self
    }

    /// Takes each so many ranks, one after the other, for those of a machine of its own: memory is shared among them alone,
    /// and others are reached over TCP. The last machine may have fewer. At least 1; equal on all ranks.
    pub fn ranks_per_host(mut self, ranks: u32) -> Builder {
        self.ranks_per_host = Some(ranks);
        self
    }

    /// Gives what goes over TCP checksums, CRC-32C, which the receiver compares: damage that the network's own checksums let
    /// pass then ends the call with an error. Off by default. What goes through memory needs none, and what leads a message
    /// is always compared with what is due. Equal on all ranks.
    pub fn checksums(mut self, checksums: bool) -> Builder {
        self.checksums = checksums;
        self
    }

    /// What goes over TCP goes within TLS 1.3, and so does all that ranks and rendezvous say to each other: nobody else reads it
    /// or changes it unnoticed. The key is made from the [token](Builder::token), which it needs; there are no certificates. Off
    /// by default. What goes through memory that ranks share stays on its machine as it is. Equal on all ranks: where it is not,
    /// all of them end with an error. Communicators that are split off have it as well.
    pub fn tls(mut self, tls: bool) -> Builder {
        self.tls = tls;
        self
    }

    /// What schedules are chosen by: other constants of the cost model, or schedules that are to be taken whatever they cost.
    /// Equal on all ranks: ranks that choose differently end with an error.
    pub fn chooser(mut self, chooser: Arc<Chooser>) -> Builder {
        self.settings.chooser = chooser;
        self
    }

    /// Has schedules chosen by what they take on a network: rank r stands on its device r, or on the device that `order` has for
    /// it. Candidates of up to 64 ranks are simulated there, and schedules that go node by node are told its nodes, be they of
    /// unlike sizes. Ranks run where they were started: this says where that is. Communicators that are split off know where
    /// their ranks stand. Equal on all ranks; [`coll_topo::load`] reads topologies.
    pub fn topology(mut self, network: Network, order: Option<Vec<u32>>) -> Builder {
        self.topology = Some((network, order));
        self
    }

    /// The order in which ranks' values are reduced depends on rank numbers alone, not on sizes, on how ranks reach each
    /// other, or on where they are: equal inputs give equal bits, one by one or joined, on every machine. Off by default, as
    /// one schedule has to serve all sizes then; `collc explain-choice --deterministic` shows what that costs. Equal on all
    /// ranks. [`Communicator::set_deterministic`] switches it later, and communicators that are split off begin with it.
    ///
    /// It is about the library's own schedules. One of your own ([`Communicator::load`]) reduces as it is written.
    pub fn deterministic(mut self, deterministic: bool) -> Builder {
        self.settings.deterministic = deterministic;
        self
    }

    /// Narrow floats are reduced in `f32`, the one type that this can be, and rounded once at the end: no small term is lost in a
    /// long sum, and what travels is as wide. Nothing by default: they are rounded after each reduction. It changes nothing
    /// for other types, and for what reduces nothing. Equal on all ranks. [`Request::accumulate`](crate::Request::accumulate)
    /// says it for one call, [`Communicator::set_accumulate`] switches it later, and communicators that are split off begin
    /// with it.
    ///
    /// It is about the library's own schedules. One of your own ([`Communicator::load`]) says it by its `tune`.
    pub fn accumulate(mut self, dtype: impl Into<Option<DType>>) -> Builder {
        self.settings.types.accumulate = dtype.into();
        self
    }

    /// Floats that are wider than this type travel as it, as complex numbers' parts do: `bf16`, `f16`, `f8e4m3`, `f8e5m2` or `f32`.
    /// Fewer bytes move, and results are right up to its rounding; ranks may differ in them, so reductions cannot be
    /// [deterministic](Builder::deterministic) as well. Nothing by default. It is for messages between two ranks too. Equal
    /// on all ranks. [`Request::wire`](crate::Request::wire) says it for one call, [`Communicator::set_wire`] switches
    /// it later, and communicators that are split off begin with it.
    ///
    /// It is about the library's own schedules. One of your own ([`Communicator::load`]) says it by its `tune`.
    pub fn wire(mut self, dtype: impl Into<Option<DType>>) -> Builder {
        self.settings.types.wire = dtype.into();
        self
    }

    /// Takes rank, world and rendezvous from the variables that launchers set: RANK, WORLD_SIZE, MASTER_ADDR and
    /// MASTER_PORT. Of its own variables COLLC_TOKEN is the [token](Builder::token), COLLC_TLS (`1` or `0`) says what
    /// [`Builder::tls`] says, COLLC_CHECKSUM what [`Builder::checksums`] does and COLLC_DETERMINISTIC what [`Builder::deterministic`] does, COLLC_ACCUMULATE and COLLC_WIRE name
    /// the types of [`Builder::accumulate`] and [`Builder::wire`], COLLC_RECORD is the path of [`Builder::record_to`],
    /// COLLC_TOPOLOGY names a topology and COLLC_DEVICES the devices of ranks, `0,2,1,3`, as [`Builder::topology`] takes them,
    /// COLLC_TUNE names a file of constants and COLLC_SCHEDULE schedules to take whatever they cost, as a [`Builder::chooser`] has them. Nothing else in
    /// this library reads the environment.
    pub fn from_env(mut self) -> Builder {
        match Variables::read(|name| std::env::var(name).ok()) {
            Ok(found) => {
                self.place = Some(found.place);
                self.rendezvous = found.rendezvous.or(self.rendezvous);
                self.token = found.token.unwrap_or(self.token);
                self.tls = found.tls.unwrap_or(self.tls);
                self.checksums = found.checksums.unwrap_or(self.checksums);
                self.settings.deterministic = found.deterministic.unwrap_or(self.settings.deterministic);
                self.settings.record_to = found.record_to.or(self.settings.record_to);
                let Types { accumulate, wire } = found.types;
                self.settings.types.accumulate = accumulate.or(self.settings.types.accumulate);
                self.settings.types.wire = wire.or(self.settings.types.wire);
                self.settings.chooser = found.chooser.map(Arc::new).unwrap_or(self.settings.chooser);
                self.topology = found.topology.or(self.topology);
            }
            Err(what) => self.wrong = Some(what),
        }
        self
    }

    /// Meets the other ranks and connects to them. Returns when all have, or with the reason why not.
    pub fn build(self) -> Result<Communicator, CommError> {
        let setup = |what: &str| Err(CommError::Setup { what: what.to_string() });
        if let Some(wrong) = self.wrong.clone().or(self.settings.types.fault()) {
            return setup(&wrong);
        }
        let Some((rank, world)) = self.place else {
            return setup("which rank is this, of how many? `rank(0, 4)` says so, and so does `from_env()`");
        };
        if world == 0 || world > WORLD_MAX {
            return setup(&format!("{world} ranks; 1 to {WORLD_MAX} are possible"));
        }
        if rank >= world {
            return setup(&format!("rank {rank} is none of the {world} ranks 0..={}", world - 1));
        }
        if self.ranks_per_host == Some(0) {
            return setup("0 ranks on each machine; there is at least 1");
        }
        let address = match (&self.rendezvous, world) {
            (Some(address), _) => address.clone(),
            (None, 1) => String::new(),
            (None, _) => return setup("where do the ranks meet? `rendezvous(\"host:port\")` says so"),
        };
        let settings = settled(&self.settings, &self.topology, world)?;
        let host = match rank == 0 && world > 1 && self.hosts {
            true => Some(Host::new(
                Rendezvous::bind_tls(&address, Token::from(self.token.clone()), self.tls)?.into(),
            )),
            false => None,
        };
        let meeting = Meeting {
            rank,
            world,
            address,
            token: self.token,
            tls: self.tls,
            job: String::new(),
            time_limit: self.time_limit,
            via: self.via,
            host: host_name(&self.host, self.ranks_per_host, rank),
            checksums: self.checksums,
            fingerprint: fingerprint(&settings),
        };
        open(meeting, host, None, settings)
    }

    /// Ranks of this process, each for a thread of its own, in order of rank. Rank and rendezvous need not be said.
    pub fn local(self, ranks: u32) -> Result<Vec<Communicator>, CommError> {
        local(ranks, &self)
    }
}

/// What ranks compare to know whether they may share memory.
pub(crate) fn host_name(name: &str, ranks_per_host: Option<u32>, rank: u32) -> String {
    match ranks_per_host {
        None => name.to_string(),
        Some(ranks) => format!("{name}#{}", rank / ranks.max(1)),
    }
}

fn local(ranks: u32, options: &Builder) -> Result<Vec<Communicator>, CommError> {
    if ranks == 0 || ranks > WORLD_MAX {
        return Err(CommError::Setup { what: format!("{ranks} ranks; 1 to {WORLD_MAX} are possible") });
    }
    if let Some(what) = options.settings.types.fault() {
        return Err(CommError::Setup { what });
    }
    if options.ranks_per_host == Some(0) {
        return Err(CommError::Setup { what: "0 ranks on each machine; there is at least 1".to_string() });
    }
    let settings = settled(&options.settings, &options.topology, ranks)?;
    let token = Token::random()
        .map_err(|error| CommError::Setup { what: format!("cannot draw a token: {error}") })?;
    let host = Rendezvous::bind_tls("127.0.0.1:0", token.clone(), options.tls)?;
    let address = host.address().to_string();
    let host = Host::new(host.into());
    let memories = match options.via {
        Via::Fastest | Via::Shm => {
            let shared = coll_shm::Options { ranks_per_host: options.ranks_per_host, ..Default::default() };
            let memories = coll_shm::threads::world_with(ranks, &shared);
            memories.map_err(|error| CommError::Setup { what: format!("no shared memory: {error}") })?
        }
        Via::Tcp => Vec::new(),
    };
    let memories = memories.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
    let join = |(rank, memory): (u32, Option<ShmTransport>)| {
        let meeting = Meeting {
            rank,
            world: ranks,
            address: address.clone(),
            token: token.reveal().to_string(),
            tls: options.tls,
            job: String::new(),
            time_limit: options.time_limit,
            via: options.via,
            host: host_name(&options.host, options.ranks_per_host, rank),
            checksums: options.checksums,
            fingerprint: fingerprint(&settings),
        };
        let (host, settings) = (Host::clone(&host), settings.clone());
        // Joining waits for the others, so each does it in a thread of its own.
        thread::Builder::new()
            .name(format!("coll-join-{rank}"))
            .spawn(move || open(meeting, Some(host), memory, settings))
            .map_err(|error| CommError::Setup { what: format!("cannot start a thread: {error}") })
    };
    let joining = (0..ranks).zip(memories).map(join).collect::<Result<Vec<_>, CommError>>()?;
    let joined = joining.into_iter().map(|thread| thread.join());
    let joined = joined.map(|joined| {
        let panicked = |_| Err(CommError::Setup { what: "a joining thread panicked".to_string() });
        joined.unwrap_or_else(panicked)
    });
    joined.collect()
}

/// What ranks compare as they meet, of what they were told.
fn fingerprint(settings: &Settings) -> Vec<(String, String)> {
    let ground = settings.chooser.ground();
    let ground = ground.map_or("none".to_string(), |g| format!("{} {}", g.network().name, g.fingerprint()));
    let Types { accumulate, wire } = settings.types;
    let type_or = |dtype: Option<DType>, none: &'static str| dtype.map_or(none, DType::name).to_string();
    vec![
        ("deterministic".to_string(), settings.deterministic.to_string()),
        ("accumulated in".to_string(), type_or(accumulate, "its own type")),
        ("travel as".to_string(), type_or(wire, "what they are")),
        ("topology".to_string(), ground),
    ]
}

/// Settings with a chooser that knows where ranks stand, if that was said.
fn settled(settings: &Settings, topology: &Option<Topology>, world: u32) -> Result<Settings, CommError> {
    let Some((network, order)) = topology else { return Ok(settings.clone()) };
    let ground = Ground::new(network.clone(), world, order.clone());
    let ground = ground.map_err(|error| CommError::Setup { what: error.to_string() })?;
    log::info!("{world} ranks stand on {}, on devices {:?}", network.name, ground.devices());
    Ok(Settings { chooser: Arc::new(settings.chooser.moved(ground)), ..settings.clone() })
}

/// Joins, and makes the communicator.
pub(crate) fn open(
    meeting: Meeting,
    host: Option<Host>,
    threads: Option<ShmTransport>,
    settings: Settings,
) -> Result<Communicator, CommError> {
    let wires = Wires::join(meeting, host, threads).map_err(|error| match error {
        WiresError::Start(error) => CommError::Start(error),
        other => CommError::Setup { what: other.to_string() },
    })?;
    Ok(Communicator::with_engine(Box::new(Engine::new(wires, settings))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_splits_are_files_apart() {
        let settings = Builder::default().record_to("/tmp/record").settings;
        assert_eq!(settings.record_path(3), Some("/tmp/record3".into()));
        let split = Settings { name: "world/2.0/1.7".into(), ..settings.clone() };
        assert_eq!(split.record_path(12), Some("/tmp/record2.0-1.7-12".into()));
        assert_eq!(Settings { record_to: None, ..settings }.record_path(0), None);
    }

    #[test]
    fn contradictions_are_refused_before_anything_is_opened() {
        let message = |builder: Builder| builder.build().unwrap_err().to_string();
        assert!(message(Builder::default()).contains("which rank"));
        assert!(message(Builder::default().rank(4, 4)).contains("none of the 4 ranks"));
        assert!(message(Builder::default().rank(0, 0)).contains("0 ranks"));
        assert!(message(Builder::default().rank(0, 2)).contains("where do the ranks meet"));
        let none_on_each = Builder::default().rank(0, 2).ranks_per_host(0);
        assert!(message(none_on_each.clone()).contains("0 ranks on each machine"));
        let in_f64 = Builder::default().rank(0, 1).accumulate(DType::F64);
        assert!(message(in_f64.clone()).contains("accumulated in f64"));
        assert!(in_f64.local(2).unwrap_err().to_string().contains("accumulated in f64"));
        assert!(message(Builder::default().rank(0, 1).wire(DType::I8)).contains("travel as i8"));
        assert!(none_on_each.local(2).unwrap_err().to_string().contains("0 ranks on each machine"));
    }
}
