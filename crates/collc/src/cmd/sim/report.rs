//! What a simulation found, for people and for tools.

use super::planned::Planned;
use crate::args::{Format, SimArgs};
use crate::cmd::place::{self, Stand};
use crate::failure::Failure;
use crate::output;
use coll::Bytes;
use coll_sim::{PathStep, Prediction, by_line};
use coll_topo::Network;
use serde::Serialize;

/// Lines of the path and links that the text shows.
const SHOWN_MAX: usize = 6;

#[derive(Serialize)]
struct Document<'a> {
    schedule: &'a str,
    ranks: u32,
    bytes: u64,
    time_us: f64,
    bound_us: f64,
    critical_path: Vec<Step<'a>>,
    links: Vec<Link<'a>>,
    /// The device of each rank, where ranks do not simply take them in the topology's order.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'a [u32]>,
}

#[derive(Serialize)]
struct Step<'a> {
    file: Option<&'a str>,
    line: Option<u32>,
    rank: u32,
    step: u32,
}

#[derive(Serialize)]
struct Link<'a> {
    name: &'a str,
    bytes: u64,
    busy_fraction: f64,
}

/// Prints a prediction.
pub(super) fn print(
    args: &SimArgs,
    planned: &Planned,
    network: &Network,
    (bytes, stand): (u64, &Stand),
    prediction: &Prediction,
) -> Result<(), Failure> {
    match args.format {
        Format::Text => output::print(&text(planned, network, (bytes, stand), prediction)),
        Format::Json => {
            let document = document(planned, network, (bytes, stand), prediction);
            let json = serde_json::to_string_pretty(&document).expect("invariant: a document is plain data");
            output::print(&(json + "\n"))
        }
    }
}

fn document<'a>(
    planned: &'a Planned,
    network: &'a Network,
    (bytes, stand): (u64, &'a Stand),
    prediction: &'a Prediction,
) -> Document<'a> {
    let step = |step: &'a PathStep| Step {
        file: step.line.as_ref().map(|line| line.file.as_str()),
        line: step.line.as_ref().map(|line| line.line),
        rank: step.rank,
        step: step.step,
    };
    let link = |used: &coll_sim::LinkUse| Link {
        name: &network.links[used.link as usize].name,
        bytes: u64::try_from(used.bytes).unwrap_or(u64::MAX),
        busy_fraction: used.busy_fraction,
    };
    Document {
        schedule: planned.name(),
        ranks: planned.ranks(),
        bytes,
        time_us: prediction.time_us,
        bound_us: prediction.bound.us,
        critical_path: prediction.path.iter().map(step).collect(),
        links: prediction.links.iter().map(link).collect(),
        order: stand.order.as_deref(),
    }
}

fn text(
    planned: &Planned,
    network: &Network,
    (bytes, stand): (u64, &Stand),
    prediction: &Prediction,
) -> String {
    let Prediction { time_us, bound, messages, peers_max, scratch_max_bytes, path, links, .. } = prediction;
    let (name, ranks) = (planned.name(), planned.ranks());
    let mut text =
        format!("{name} of {} on {ranks} ranks of {}: {time_us:.2} µs\n", Bytes(bytes), network.name);
    let share = if *time_us > 0.0 { 100.0 * bound.us / time_us } else { 100.0 };
    text += &format!(
        "no schedule takes less than {:.2} µs, {share:.0} % of it: word takes {:.2}, bytes {:.2}\n",
        bound.us, bound.latency_us, bound.bytes_us
    );
    text += &format!(
        "{messages} messages, at most {peers_max} peers and {} of scratch on a rank\n",
        Bytes(*scratch_max_bytes)
    );
    if let (Some(order), Some(how)) = (&stand.order, &stand.how) {
        text += &format!("order {} ({how})\n", place::shown(order));
    }
    if let Some(proof) =
        planned.plans.first().filter(|plan| !plan.is_whole()).and_then(|plan| plan.proof.as_ref())
    {
        text += &format!("compiled rank by rank; it rests on the proof {proof}\n");
    }
    if let Some(last) = path.last() {
        text += &format!("\n{}\n", bounding(planned, last, path.len()));
        for (line, us, count) in by_line(path).into_iter().take(SHOWN_MAX) {
            let share = if *time_us > 0.0 { 100.0 * us / time_us } else { 0.0 };
            text += &format!(
                "{share:>5.1} %  {us:>12.2} µs  {count:>5} operations  {}:{}\n",
                line.file, line.line
            );
        }
    }
    let mut by_use: Vec<_> = links.iter().collect();
    by_use.sort_by(|a, b| b.busy_fraction.total_cmp(&a.busy_fraction).then(a.link.cmp(&b.link)));
    if !by_use.is_empty() {
        text +=
            &format!("\n{} of {} links carry something; the busiest:\n", links.len(), network.links.len());
    }
    for used in by_use.into_iter().take(SHOWN_MAX) {
        let name = &network.links[used.link as usize].name;
        text += &format!("{:>5.1} %  {:>15} bytes  {name}\n", 100.0 * used.busy_fraction, used.bytes);
    }
    text
}

/// `line 14, s = 3, r = 5 bounds the time`, where the plan and the program say so much.
fn bounding(planned: &Planned, last: &PathStep, count: usize) -> String {
    let place = last.line.as_ref().map_or(String::new(), |line| format!("{}:{}, ", line.file, line.line));
    let variables = planned.steps.get(last.step as usize).filter(|text| !text.is_empty());
    let variables = variables.map_or(String::new(), |text| format!("{text}, "));
    format!(
        "{place}{variables}rank {} bounds the time in step {}, by a path of {count} operations:",
        last.rank, last.step
    )
}
