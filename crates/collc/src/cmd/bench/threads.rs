//! A benchmark whose ranks are threads of this process.

use super::settings::{Settings, Word};
use super::{Given, Hear, cells, failed};
use crate::failure::Failure;
use crate::processes;
use coll::{Communicator, Via};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// Runs all cells, and hears of each as it is done.
pub(super) fn measure(settings: &Settings, hear: &mut Hear<'_>) -> Result<(), Failure> {
    let given = given(settings)?;
    let (sender, said) = mpsc::channel();
    let (mut reasons, mut unheard) = (BTreeMap::new(), None);
    thread::scope(|scope| {
        for (rank, given) in (0..).zip(given) {
            let sender = sender.clone();
            let settings = Settings { rank, ..settings.clone() };
            scope.spawn(move || {
                // Whoever listens does so until all have ended.
                let say = |word: &Word| drop(sender.send((rank, word.clone())));
                if let Err(failure) = cells(&settings, given, &say) {
                    say(&failed(rank, &failure));
                }
            });
        }
        drop(sender);
        for (rank, word) in said {
            match word {
                Word::Cell(measured) if rank == 0 => {
                    unheard = unheard.take().or(hear(&settings.cells, *measured).err());
                }
                Word::Cell(_) => {}
                Word::Failed(reason) => {
                    reasons.insert(rank, reason);
                }
            }
        }
    });
    match unheard {
        Some(failure) => Err(failure),
        None if reasons.is_empty() => Ok(()),
        None => Err(processes::failed(&reasons)),
    }
}

/// Each rank's way to the others.
fn given(settings: &Settings) -> Result<Vec<Given>, Failure> {
    if settings.plans {
        let memories = coll_shm::threads::world(settings.world);
        let memories =
            memories.map_err(|error| Failure::unusable(format!("no memory for ranks: {error}")))?;
        return Ok(memories.into_iter().map(|memory| Given::Memory(Box::new(memory))).collect());
    }
    let comms = Communicator::builder()
        .via(Via::Shm)
        .chooser(Arc::new(settings.chooser()?))
        .deterministic(settings.deterministic)
        .accumulate(settings.accumulate)
        .wire(settings.wire)
        .time_limit(Duration::from_secs_f64(settings.time_limit_s))
        .local(settings.world)
        .map_err(|error| Failure::wrong(error.to_string()))?;
    Ok(comms.into_iter().map(|comm| Given::Communicator(Box::new(comm))).collect())
}
