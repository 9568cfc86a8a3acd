//! One rank of a job whose ranks are started one by one: by hand, or by a launcher that sets RANK, WORLD_SIZE,
//! MASTER_ADDR and MASTER_PORT. Rank 0 hosts the rendezvous.

use super::{devices, launch, prepare, report};
use crate::args::{RunArgs, TransportKind};
use crate::failure::Failure;
use crate::output;
use coll::trial::{Milestone, RankReport, Settings, run_rank};
use coll_plan::Plan;
use coll_tcp::{Rendezvous, Token};
use std::env;
use std::process::ExitCode;
use std::time::Duration;

/// Who this rank is.
pub(super) struct Place {
    rank: u32,
    world: u32,
    rendezvous: String,
}

/// This process's place, if it is to be one rank. Options win over the environment; `--ranks` makes it a launcher.
pub(super) fn place(args: &RunArgs) -> Result<Option<Place>, Failure> {
    if args.ranks.is_some() {
        return Ok(None);
    }
    let rank = args.rank.map_or_else(|| number("RANK"), |rank| Ok(Some(rank)))?;
    let world = args.world_size.map_or_else(|| number("WORLD_SIZE"), |world| Ok(Some(world)))?;
    let (rank, world) = match (rank, world) {
        (None, None) => return Ok(None),
        (Some(rank), Some(world)) => (rank, world),
        (None, Some(_)) => {
            return Err(Failure::unusable("a world size is given, and no rank").help("add `--rank R`"));
        }
        (Some(_), None) => {
            return Err(Failure::unusable("a rank is given, and no world size").help("add `--world-size N`"));
        }
    };
    if world == 0 || world > coll::RANKS_MAX {
        return Err(Failure::unusable(format!(
            "a world of {world} ranks; 1 to {} are possible",
            coll::RANKS_MAX
        )));
    }
    if rank >= world {
        return Err(Failure::unusable(format!("rank {rank} is none of the {world} ranks 0..={}", world - 1)));
    }
    let rendezvous = match (&args.rendezvous, env::var("MASTER_ADDR"), env::var("MASTER_PORT")) {
        (Some(address), ..) => address.clone(),
        (None, Ok(host), Ok(port)) => format!("{host}:{port}"),
        (None, ..) if world == 1 => "127.0.0.1:0".to_string(),
        _ => {
            return Err(Failure::unusable("where do the ranks meet?")
                .help("give `--rendezvous HOST:PORT`, or set MASTER_ADDR and MASTER_PORT"));
        }
    };
    if rendezvous.rsplit_once(':').is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err())
    {
        return Err(Failure::unusable(format!("`{rendezvous}` is no place to meet"))
            .help("write HOST:PORT with a port of 1..=65535, such as `127.0.0.1:29500`"));
    }
    Ok(Some(Place { rank, world, rendezvous }))
}

fn number(variable: &str) -> Result<Option<u32>, Failure> {
    match env::var(variable) {
        Err(_) => Ok(None),
        Ok(text) => text.trim().parse().map(Some).map_err(|_| {
            Failure::unusable(format!(
                "the environment's {variable} is `{text}`, which is no rank count or rank"
            ))
        }),
    }
}

/// Proves the plan, joins, runs; rank 0 prints what all found.
pub(super) fn run(args: &RunArgs, place: &Place) -> Result<ExitCode, Failure> {
    if args.transport == TransportKind::Threads {
        return Err(Failure::unusable("ranks that are threads of one process are not started one by one")
            .help("give `--ranks` to start all of them, or take `--transport auto`"));
    }
    let prepared = prepare::prepare(args, Some(place.world), Some(place.rank))?;
    let token = env::var("COLLC_TOKEN").unwrap_or_default();
    let server = match place.rank {
        0 if place.world > 1 => {
            let bound =
                Rendezvous::bind_tls(&place.rendezvous, Token::from(token.clone()), prepared.settings.tls);
            Some(bound.map_err(|error| Failure::unusable(error.to_string()))?)
        }
        _ => None,
    };
    let mut settings = prepared.settings.clone();
    settings.rank = place.rank;
    settings.token = token;
    settings.rendezvous =
        server.as_ref().map_or(place.rendezvous.clone(), |server| server.address().to_string());
    let reports = reports(args, &settings, &prepared.plan);
    if let Some(server) = server {
        server.finish(Duration::from_secs(2));
    }
    let reports = reports?;
    if place.rank == 0 {
        return report::print(args, &prepared, &reports);
    }
    let wrong = coll::trial::Summary::of(&reports).wrong;
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What all found, once this rank has run with the others.
fn reports(args: &RunArgs, settings: &Settings, plan: &Plan) -> Result<Vec<RankReport>, Failure> {
    if args.transport == TransportKind::Cuda {
        return devices::rank(settings, plan, &mut |_| {});
    }
    let mut hear = |milestone| match milestone {
        Milestone::Kill => launch::kill(),
        Milestone::Spared(mishap) => output::complain(&launch::spared(mishap)),
        Milestone::Iterations(_) => {}
    };
    run_rank(settings, plan, &mut hear).map_err(|error| Failure::wrong(error.to_string()))
}
