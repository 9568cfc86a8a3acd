//! `--processes`: one rank on a device, as its launcher or a user started it.

use super::apart::Apart;
use super::machines::Machine;
use super::trial::{Ready, Trial};
use super::{call, order};
use crate::failure::Failure;
use coll::trial::{RankReport, Settings, placements, words};
use coll_gpu::{SharedCall, StreamHandle};
use coll_plan::Plan;
use coll_tcp::{JoinOptions, Token};
use std::time::Duration;

/// Joins the others, runs and judges, and exchanges reports: every rank gets all of them, in order. `hear` is told how many
/// iterations are done.
pub(in super::super) fn rank(
    settings: &Settings,
    plan: &Plan,
    hear: &mut dyn FnMut(u32),
) -> Result<Vec<RankReport>, Failure> {
    if !plan.is_whole() {
        let message =
            format!("rank {}: a part of a plan, where ranks on devices need all of it", settings.rank);
        return Err(Failure::unusable(message).help("give the whole plan"));
    }
    let mut options = JoinOptions::new(settings.rank, plan.world(), settings.rendezvous.clone());
    options.token = Token::from(settings.token.clone());
    options.tls = settings.tls;
    options.time_limit = seconds(settings.time_limit_s);
    options.fingerprint = words(settings, plan);
    let patience = seconds(settings.time_limit_s + settings.judging_s);
    let mut apart = Apart::join(options, patience, (Machine::with(settings), order(settings, plan)))?;
    let done = run(settings, plan, &mut apart, hear);
    if let Err(failure) = &done {
        apart.abort(failure.message());
    }
    done
}

/// Nobody waits for longer than a year.
fn seconds(seconds: f64) -> Duration {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    Duration::try_from_secs_f64(seconds.min(YEAR_S)).unwrap_or_default()
}

fn run(
    settings: &Settings,
    plan: &Plan,
    apart: &mut Apart,
    hear: &mut dyn FnMut(u32),
) -> Result<Vec<RankReport>, Failure> {
    let rank = settings.rank;
    let reducer = settings.operator.reducer(settings.dtype);
    let reducer = reducer.map_err(|error| Failure::unusable(error.to_string()))?;
    let placements = placements(&plan.contract, settings.in_place);
    let call = call(settings, plan, &reducer, &placements);
    let device = apart.device().clone();
    let mut trial = Trial::new(settings, plan, rank..rank + 1, |_| device.clone())?;
    let (pointers, streams) = (trial.pointers(), trial.streams());
    let call = apart.prepare(&call, &pointers[0]);
    let call = call.map_err(|error| Failure::wrong(error.to_string()))?;
    let mut ready = One { apart, call, stream: streams[0] };
    let reports = trial.run(&mut ready, hear)?;
    let One { apart, call, .. } = ready;
    apart.close(call).map_err(|error| Failure::wrong(error.to_string()))?;
    let mine = serde_json::to_vec(&reports).expect("invariant: a report is plain data");
    let mut all = Vec::with_capacity(plan.world() as usize);
    for (rank, bytes) in apart.exchange(mine)?.iter().enumerate() {
        let read: Result<Vec<RankReport>, _> = serde_json::from_slice(bytes);
        let unread = |error| Failure::wrong(format!("rank {rank} reports what cannot be read: {error}"));
        all.extend(read.map_err(unread)?);
    }
    Ok(all)
}

/// This process's rank, ready.
struct One<'a> {
    apart: &'a mut Apart,
    call: SharedCall,
    stream: StreamHandle,
}

impl Ready for One<'_> {
    fn meet(&mut self) -> Result<(), Failure> {
        self.apart.meet()
    }

    fn run(&mut self, limit: Duration) -> Result<(), Failure> {
        let ran = self.apart.run(&mut self.call, self.stream, limit);
        ran.map_err(|error| Failure::wrong(error.to_string()))
    }
}
