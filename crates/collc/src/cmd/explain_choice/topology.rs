//! Candidates on a topology: each is simulated with its ranks placed at its best, and the fastest comes first.

use super::{Row, row};
use crate::cmd::compile::fit;
use crate::cmd::place;
use crate::cmd::sim;
use crate::failure::Failure;
use coll::Outcome;
use coll::select::{Considered, Question, Standing};
use coll_cost::Layout;
use coll_sim::{Options, Prediction, Simulator};
use coll_topo::Network;

/// Beyond, compiling, placing and simulating every candidate takes longer than anybody waits.
const RANKS_MAX: u32 = 64;

/// The ranks in a node decide what a candidate's `local` is.
pub(super) fn layout(network: &Network, ranks: u32) -> Result<Layout, Failure> {
    if ranks > RANKS_MAX {
        return Err(Failure::unusable(format!(
            "candidates are simulated for at most {RANKS_MAX} ranks, not {ranks}"
        ))
        .help("name a few schedules to `collc compare`, or leave `--topology` out"));
    }
    let devices = network.devices.len();
    if ranks as usize > devices {
        return Err(Failure::unusable(format!(
            "`{}` gives {devices} devices to {ranks} ranks",
            network.name
        ))
        .help(format!("take at most {devices} ranks")));
    }
    let ranks_per_host = u32::try_from(fit::group(network, ranks)).unwrap_or(u32::MAX);
    Ok(Layout { ranks_per_host, cores: ranks_per_host })
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
            _ => match simulated(candidate, question, network)? {
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
    candidate: &Considered,
    question: &Question,
    network: &Network,
) -> Result<Result<Prediction, String>, Failure> {
    let mut plan = match candidate.candidate.prove(question.ranks, question.root) {
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
