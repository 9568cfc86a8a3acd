//! `collc topo probe`: what messages between the ranks of a job take, as a topology.
//!
//! Each pair of ranks is measured alone (`measure`), then several at once (`together`), so that what they share is seen; `shape`
//! makes a topology of both. Ranks are started here, or one by one as those of `collc run` are; either way they speak through a communicator.

mod gpus;
mod measure;
mod report;
mod shape;
mod together;

use crate::args::{TopoProbeArgs, TransportKind};
use crate::failure::Failure;
use crate::output;
use crate::processes::{self, Heard, Processes};
use coll::{Communicator, Via};
use coll_tcp::{Rendezvous, Token};
use measure::Measured;
use serde::{Deserialize, Serialize};
use std::env;
use std::process::ExitCode;
use std::time::Duration;

/// The most ranks: pairs grow with their square.
const RANKS_MAX: u32 = 64;
/// The largest message.
const BYTES_MAX: u64 = 256 << 20;

/// What a rank is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Settings {
    rank: u32,
    world: u32,
    rendezvous: String,
    token: String,
    tls: bool,
    /// `auto`, `tcp` or `shm`.
    transport: String,
    bytes: u64,
    time_limit_s: f64,
    /// Somebody else listens at the rendezvous.
    is_hosted: bool,
    /// Only each so many ranks share memory, as if on machines of their own.
    ranks_per_host: Option<u32>,
}

/// What a rank says.
#[derive(Serialize, Deserialize)]
enum Word {
    Measured(Measured),
    Failed(String),
}

/// Starts ranks, or is one, and writes what was measured.
pub(super) fn run(args: &TopoProbeArgs) -> Result<ExitCode, Failure> {
    if args.transport == TransportKind::Threads {
        return Err(Failure::unusable("ranks that are threads of one process are not probed")
            .help("take `--transport auto`, `tcp` or `shm`"));
    }
    if args.transport == TransportKind::Cuda {
        return Err(Failure::unusable("ranks on devices are streams of one process, and are not probed")
            .help("`--gpus` measures the devices themselves"));
    }
    if args.bytes.0 == 0 || args.bytes.0 > BYTES_MAX {
        return Err(Failure::unusable(format!("messages of {} are not measured", args.bytes))
            .help("take 1 to 256MiB"));
    }
    if args.gpus {
        output::print(&gpus::write(args.bytes.0, &args.output)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = settings(args)?;
    let measured = match &settings {
        Some(settings) => match job(settings)? {
            Some(measured) => measured,
            None => return Ok(ExitCode::SUCCESS),
        },
        None => launched(args)?,
    };
    let told = report::write(&measured, args.transport.name(), args.bytes.0, &args.output)?;
    output::print(&told)?;
    Ok(ExitCode::SUCCESS)
}

/// Who this rank is, if ranks are started one by one. Options win over the environment; `--ranks` starts all.
fn settings(args: &TopoProbeArgs) -> Result<Option<Settings>, Failure> {
    if args.ranks.is_some() {
        return Ok(None);
    }
    let number = |given: Option<u32>, variable: &str| match (given, env::var(variable)) {
        (Some(number), _) => Ok(Some(number)),
        (None, Err(_)) => Ok(None),
        (None, Ok(text)) => text.trim().parse().map(Some).map_err(|_| {
            Failure::unusable(format!(
                "the environment's {variable} is `{text}`, which is no rank count or rank"
            ))
        }),
    };
    let rank = number(args.rank, "RANK")?;
    let world = number(args.world_size, "WORLD_SIZE")?;
    let (rank, world) = match (rank, world) {
        (None, None) => {
            return Err(Failure::unusable("which ranks are probed?")
                .help("`--ranks N` starts N ranks on this machine; `--rank`, `--world-size` and `--rendezvous` join a job"));
        }
        (Some(rank), Some(world)) => (rank, world),
        (None, Some(_)) => {
            return Err(Failure::unusable("a world size is given, and no rank").help("add `--rank R`"));
        }
        (Some(_), None) => {
            return Err(Failure::unusable("a rank is given, and no world size").help("add `--world-size N`"));
        }
    };
    if !(2..=RANKS_MAX).contains(&world) {
        return Err(Failure::unusable(format!("a world of {world} ranks; 2 to {RANKS_MAX} are probed")));
    }
    if rank >= world {
        return Err(Failure::unusable(format!("rank {rank} is none of the {world} ranks 0..={}", world - 1)));
    }
    let rendezvous = match (&args.rendezvous, env::var("MASTER_ADDR"), env::var("MASTER_PORT")) {
        (Some(address), ..) => address.clone(),
        (None, Ok(host), Ok(port)) => format!("{host}:{port}"),
        _ => {
            return Err(Failure::unusable("where do the ranks meet?")
                .help("give `--rendezvous HOST:PORT`, or set MASTER_ADDR and MASTER_PORT"));
        }
    };
    let token = env::var("COLLC_TOKEN").unwrap_or_default();
    Ok(Some(Settings { rank, world, rendezvous, token, is_hosted: false, ..common(args)? }))
}

fn common(args: &TopoProbeArgs) -> Result<Settings, Failure> {
    Ok(Settings {
        rank: 0,
        world: args.ranks.unwrap_or(0),
        rendezvous: String::new(),
        token: String::new(),
        tls: crate::environment::tls()?,
        transport: args.transport.name().to_string(),
        bytes: args.bytes.0,
        time_limit_s: args.timeout,
        is_hosted: true,
        ranks_per_host: args.ranks_per_host,
    })
}

/// Starts all ranks on this machine and hears of what rank 0 has gathered.
fn launched(args: &TopoProbeArgs) -> Result<Measured, Failure> {
    let mut settings = common(args)?;
    processes::check_descriptors(settings.world)?;
    let token = Token::random().map_err(|error| Failure::unusable(format!("no random bytes: {error}")))?;
    settings.token = token.reveal().to_string();
    let server = Rendezvous::bind_tls("127.0.0.1:0", token, settings.tls);
    let server = server.map_err(|error| Failure::unusable(error.to_string()))?;
    settings.rendezvous = server.address().to_string();
    let message = |rank| {
        let settings = Settings { rank, ..settings.clone() };
        serde_json::to_vec(&settings).expect("invariant: settings are plain data")
    };
    let mut ranks = Processes::start("__probe_rank", (0..settings.world).map(message))?;
    let mut found = None;
    ranks.hear(|_, line| match serde_json::from_str(line) {
        Ok(Word::Measured(measured)) => {
            found = Some(measured);
            Heard::Taken
        }
        Ok(Word::Failed(reason)) => Heard::Failed(reason),
        Err(_) => Heard::Taken,
    })?;
    found.ok_or_else(|| Failure::wrong("rank 0 ended without a report"))
}

/// One rank, as its launcher started it.
pub(crate) fn rank() -> Result<ExitCode, Failure> {
    let bytes = processes::told()?;
    let settings: Settings = serde_json::from_slice(&bytes).map_err(|error| {
        Failure::unusable(format!("`collc __probe_rank` is started by `collc topo probe`: {error}"))
    })?;
    let (word, code) = match job(&settings) {
        Ok(None) => return Ok(ExitCode::SUCCESS),
        Ok(Some(measured)) => (Word::Measured(measured), ExitCode::SUCCESS),
        Err(failure) => (Word::Failed(failure.message().to_string()), ExitCode::FAILURE),
    };
    processes::say(&serde_json::to_string(&word).expect("invariant: a word is plain data"));
    Ok(code)
}

/// Joins and measures. Rank 0 has what all found.
fn job(settings: &Settings) -> Result<Option<Measured>, Failure> {
    let Settings { rank, world, .. } = *settings;
    let via = match settings.transport.as_str() {
        "tcp" => Via::Tcp,
        "shm" => Via::Shm,
        _ => Via::Fastest,
    };
    let mut builder = Communicator::builder()
        .rank(rank, world)
        .rendezvous(settings.rendezvous.clone())
        .token(settings.token.clone())
        .tls(settings.tls)
        .time_limit(Duration::from_secs_f64(settings.time_limit_s))
        .via(via);
    if let Some(ranks) = settings.ranks_per_host {
        builder = builder.ranks_per_host(ranks);
    }
    if settings.is_hosted {
        builder = builder.rendezvous_is_hosted();
    }
    let failed = |error: coll::CommError| Failure::wrong(format!("rank {rank}: {error}"));
    let mut comm = builder.build().map_err(failed)?;
    measure::measure(&mut comm, settings.bytes as usize, settings.ranks_per_host).map_err(failed)
}
