//! Candidates on a topology: each is simulated with its ranks placed at its best, and the fastest comes first.

use super::{Row, row};
use crate::cmd::place;
use crate::cmd::sim;
use crate::failure::Failure;
use coll::Outcome;
use coll::select::{Candidate, Chooser, Considered, Ground, Question, Standing};
use coll_sim::{Options, Prediction, Simulator};
use coll_topo::Network;
use std::sync::Arc;

/// Beyond, compiling, placing and simulating every candidate takes longer than anybody waits. Above 64 ranks a schedule is
/// looked at with one value of each parameter: see [`coll::select`].
const RANKS_MAX: u32 = 256;

/// A chooser whose candidates fit the topology's nodes, with ranks on its devices as listed.
pub(crate) fn chooser(chooser: Chooser, network: &Network, ranks: u32) -> Result<Chooser, Failure> {
    if ranks > RANKS_MAX {
        return Err(Failure::unusable(format!(
            "candidates are simulated for at most {RANKS_MAX} ranks, not {ranks}"
        ))
        .help("name a schedule, or a few to `collc compare`, or leave `--topology` out"));
    }
    let ground = Ground::new(network.clone(), ranks, None);
    let ground = ground.map_err(|error| Failure::unusable(error.to_string()))?;
    Ok(chooser.on(Arc::new(ground)))
}

/// The schedule that is fastest on a topology with its ranks placed at its best; or what COLLC_SCHEDULE has.
pub(crate) fn best(given: Chooser, question: &Question, network: &Network) -> Result<Candidate, Failure> {
    let failure = |error: coll::select::ChooseError| Failure::unusable(error.to_string());
    if question.deterministic {
        return Ok(given.choose(question).map_err(failure)?.candidate);
    }
    let considered = chooser(given, network, question.ranks)?.explain(question).map_err(failure)?;
    let mut best: Option<(f64, &Candidate)> = None;
    for Considered { candidate, standing, .. } in &considered {
        if matches!(standing, Standing::Barred(_)) {
            continue;
        }
        if let Ok(prediction) = simulated(candidate, question, network)?
            && best.is_none_or(|(us, _)| prediction.time_us < us)
        {
            best = Some((prediction.time_us, candidate));
        }
    }
    best.map(|(_, candidate)| candidate.clone()).ok_or_else(|| {
        Failure::unusable(format!("no schedule of {} runs on `{}`", question.operation, network.name))
    })
}

/// The candidates again, with what they take on the network, the fastest first and those that cannot serve last.
pub(super) fn weigh(
    considered: &[Considered],
    question: &Question,
    network: &Network,
) -> Result<Vec<Row>, Failure> {
    let mut timed = Vec::new();
    let mut barred = Vec::new();
    for candidate in considered {
        match &candidate.standing {
            Standing::Barred(_) => barred.push(row(candidate)),
            _ => match simulated(&candidate.candidate, question, network)? {
                Ok(prediction) => timed.push((prediction, candidate)),
                Err(why) => barred.push(Row { why, predicted_us: None, ..row(candidate) }),
            },
        }
    }
    timed.sort_by(|a, b| a.0.time_us.total_cmp(&b.0.time_us));
    let least_us = timed.first().map_or(0.0, |(prediction, _)| prediction.time_us);
    let rows = timed.iter().enumerate().map(|(at, (prediction, candidate))| {
        let standing = match (at, least_us > 0.0) {
            (0, _) => "taken".to_string(),
            (_, true) => format!("{:.2} times as long", prediction.time_us / least_us),
            (_, false) => "as fast".to_string(),
        };
        let why = format!("{standing}; {}", reason(prediction, network, candidate.steps));
        Row { why, predicted_us: Some(prediction.time_us), ..row(candidate) }
    });
    Ok(rows.chain(barred).collect())
}

/// What a run of the candidate takes, or why there is none.
fn simulated(
    candidate: &Candidate,
    question: &Question,
    network: &Network,
) -> Result<Result<Prediction, String>, Failure> {
    let mut plan = match candidate.prove(question.ranks, question.root) {
        Outcome::Right(proved) => proved.plan,
        Outcome::DoesNotApply { reason, .. } => return Ok(Err(reason)),
        Outcome::Wrong(_) => return Ok(Err("is not proved".into())),
    };
    plan.wire = question.wire;
    plan.accumulate = question.accumulate.then_some(coll_base::DType::F32);
    let element = sim::planned::element(&plan, question.dtype);
    let mut options = Options { bytes: question.bytes, element, ..Options::default() };
    options.bytes = coll_sim::size_taken_bytes(&plan, &options);
    let wish = Some(&place::Wish::Best);
    options.order = place::stand(wish, std::slice::from_ref(&plan), network, &options)?.order;
    let failure = |error| sim::failure(&error);
    let simulator = Simulator::new(vec![&plan], network, options.order.as_deref()).map_err(failure)?;
    Ok(Ok(simulator.run(&options).map_err(failure)?))
}

/// What it is bound by, as its busiest link tells.
fn reason(prediction: &Prediction, network: &Network, steps: Option<u32>) -> String {
    let busiest = prediction.links.iter().max_by(|a, b| {
        // Of equals the first.
        a.busy_fraction.total_cmp(&b.busy_fraction).then(b.link.cmp(&a.link))
    });
    let Some(link) = busiest else { return "nothing crosses a link".into() };
    let (name, percent) = (&network.links[link.link as usize].name, 100.0 * link.busy_fraction);
    match (percent >= 50.0, steps) {
        (false, Some(steps)) => {
            format!("{steps} messages in a row, no link is busy for more than {percent:.0} %")
        }
        _ => format!("{name} is busy for {percent:.0} %"),
    }
}
