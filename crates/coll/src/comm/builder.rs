//! How a communicator comes about.

use crate::comm::engine::Engine;
use crate::comm::wires::{Host, Meeting, Via, Wires, WiresError};
use crate::comm::{CommError, Communicator};
use crate::select::Chooser;
use coll_cost::Tuning;
use coll_shm::ShmTransport;
use coll_tcp::{Rendezvous, Token};
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
    settings: Settings,
    /// What is wrong with the environment.
    wrong: Option<String>,
}

/// What a communicator hands on to those that are split off it.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) recorded: usize,
    pub(crate) chooser: Arc<Chooser>,
    /// The order of reductions depends on rank numbers alone.
    pub(crate) deterministic: bool,
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
            settings: Settings {
                name: "world".to_string(),
                recorded: RECORDED,
                chooser: Arc::clone(SHIPPED.get_or_init(|| Arc::new(Chooser::new(Tuning::shipped())))),
                deterministic: false,
            },
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

    /// What schedules are chosen by: other constants of the cost model, or schedules that are to be taken whatever they cost.
    /// Equal on all ranks: ranks that choose differently end with an error.
    pub fn chooser(mut self, chooser: Arc<Chooser>) -> Builder {
        self.settings.chooser = chooser;
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

    /// Takes rank, world and rendezvous from the variables that launchers set: RANK, WORLD_SIZE, MASTER_ADDR and
    /// MASTER_PORT; the token from COLLC_TOKEN, if it is set; and from COLLC_DETERMINISTIC, `1` or `0`, what
    /// [`Builder::deterministic`] says. Nothing else in this library reads the environment.
    pub fn from_env(mut self) -> Builder {
        match variables(|name| std::env::var(name).ok()) {
            Ok(Variables { place, rendezvous, token, deterministic }) => {
                self.place = Some(place);
                self.rendezvous = rendezvous.or(self.rendezvous);
                self.token = token.unwrap_or(self.token);
                self.settings.deterministic = deterministic.unwrap_or(self.settings.deterministic);
            }
            Err(what) => self.wrong = Some(what),
        }
        self
    }

    /// Meets the other ranks and connects to them. Returns when all have, or with the reason why not.
    pub fn build(self) -> Result<Communicator, CommError> {
        let setup = |what: &str| Err(CommError::Setup { what: what.to_string() });
        if let Some(wrong) = &self.wrong {
            return setup(wrong);
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
        let address = match (&self.rendezvous, world) {
            (Some(address), _) => address.clone(),
            (None, 1) => String::new(),
            (None, _) => return setup("where do the ranks meet? `rendezvous(\"host:port\")` says so"),
        };
        let host = match rank == 0 && world > 1 && self.hosts {
            true => Some(Host::new(Rendezvous::bind(&address, Token::from(self.token.clone()))?.into())),
            false => None,
        };
        let meeting = Meeting {
            rank,
            world,
            address,
            token: self.token,
            job: String::new(),
            time_limit: self.time_limit,
            via: self.via,
            fingerprint: fingerprint(&self.settings),
        };
        open(meeting, host, None, self.settings)
    }

    /// Ranks of this process, each for a thread of its own, in order of rank. Rank and rendezvous need not be said.
    pub fn local(self, ranks: u32) -> Result<Vec<Communicator>, CommError> {
        local(ranks, &self)
    }
}

fn local(ranks: u32, options: &Builder) -> Result<Vec<Communicator>, CommError> {
    if ranks == 0 || ranks > WORLD_MAX {
        return Err(CommError::Setup { what: format!("{ranks} ranks; 1 to {WORLD_MAX} are possible") });
    }
    let token = Token::random()
        .map_err(|error| CommError::Setup { what: format!("cannot draw a token: {error}") })?;
    let host = Rendezvous::bind("127.0.0.1:0", token.clone())?;
    let address = host.address().to_string();
    let host = Host::new(host.into());
    let memories = match options.via {
        Via::Fastest | Via::Shm => {
            let memories = coll_shm::threads::world(ranks);
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
            job: String::new(),
            time_limit: options.time_limit,
            via: options.via,
            fingerprint: fingerprint(&options.settings),
        };
        let (host, settings) = (Host::clone(&host), options.settings.clone());
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
    vec![("deterministic".to_string(), settings.deterministic.to_string())]
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

/// What the environment says.
#[derive(Debug, PartialEq)]
struct Variables {
    /// Rank and world.
    place: (u32, u32),
    rendezvous: Option<String>,
    token: Option<String>,
    deterministic: Option<bool>,
}

fn variables(variable: impl Fn(&str) -> Option<String>) -> Result<Variables, String> {
    let number = |name: &str| {
        let text = variable(name).ok_or_else(|| format!("the environment has no {name}"))?;
        let number = text.trim().parse::<u32>();
        number.map_err(|_| format!("the environment's {name} is `{text}`, which is no number of ranks"))
    };
    let place = (number("RANK")?, number("WORLD_SIZE")?);
    let rendezvous = match (variable("MASTER_ADDR"), variable("MASTER_PORT")) {
        (Some(host), Some(port)) => Some(format!("{}:{port}", bracketed(&host))),
        (Some(_), None) => return Err("the environment has MASTER_ADDR and no MASTER_PORT".to_string()),
        (None, Some(_)) => return Err("the environment has MASTER_PORT and no MASTER_ADDR".to_string()),
        (None, None) => None,
    };
    let deterministic = match variable("COLLC_DETERMINISTIC").as_deref().map(str::trim) {
        None | Some("") => None,
        Some("1") => Some(true),
        Some("0") => Some(false),
        Some(found) => {
            return Err(format!("the environment's COLLC_DETERMINISTIC is `{found}`; 1 or 0 it can be"));
        }
    };
    Ok(Variables { place, rendezvous, token: variable("COLLC_TOKEN"), deterministic })
}

/// An IPv6 address is bracketed before a port.
fn bracketed(host: &str) -> String {
    let bare = host.contains(':') && !host.starts_with('[');
    if bare { format!("[{host}]") } else { host.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Variables, String> {
        variables(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn launchers_variables_are_read() {
        let found =
            from(&[("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "::1"), ("MASTER_PORT", "29500")]);
        let rendezvous = Some("[::1]:29500".to_string());
        let expected = Variables { place: (1, 4), rendezvous, token: None, deterministic: None };
        assert_eq!(found, Ok(expected));
        let alone = [("RANK", "0"), ("WORLD_SIZE", "1"), ("COLLC_TOKEN", "x"), ("COLLC_DETERMINISTIC", "1")];
        let expected = Variables {
            place: (0, 1),
            rendezvous: None,
            token: Some("x".to_string()),
            deterministic: Some(true),
        };
        assert_eq!(from(&alone), Ok(expected));
    }

    #[test]
    fn what_is_missing_or_no_number_is_named() {
        assert_eq!(from(&[("WORLD_SIZE", "4")]), Err("the environment has no RANK".to_string()));
        let half = [("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "a")];
        assert!(from(&half).unwrap_err().contains("no MASTER_PORT"));
        assert!(from(&[("RANK", "-1"), ("WORLD_SIZE", "4")]).unwrap_err().contains("`-1`"));
        let unclear = [("RANK", "0"), ("WORLD_SIZE", "1"), ("COLLC_DETERMINISTIC", "perhaps")];
        assert!(from(&unclear).unwrap_err().contains("`perhaps`"));
    }

    #[test]
    fn contradictions_are_refused_before_anything_is_opened() {
        let message = |builder: Builder| builder.build().unwrap_err().to_string();
        assert!(message(Builder::default()).contains("which rank"));
        assert!(message(Builder::default().rank(4, 4)).contains("none of the 4 ranks"));
        assert!(message(Builder::default().rank(0, 0)).contains("0 ranks"));
        assert!(message(Builder::default().rank(0, 2)).contains("where do the ranks meet"));
    }
}
