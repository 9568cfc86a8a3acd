//! `collc compare`: schedules side by side on one topology, over a range of sizes, as a table and a plot.

use crate::args::{Choice, CompareArgs, Format, Numbers};
use crate::cmd::place::{self, Wish};
use crate::cmd::sim::failure;
use crate::cmd::sim::ground::Place;
use crate::cmd::sim::planned::{self, Planned};
use crate::cmd::target;
use crate::failure::Failure;
use crate::output;
use coll::Bytes;
use coll_sim::{Comparison, Curve, Options, compare, plot};
use coll_topo::Network;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

#[derive(Serialize)]
struct Document {
    topology: String,
    ranks: u32,
    schedules: Vec<Row>,
    /// From which sizes on another schedule takes least.
    crossovers: Vec<Crossover>,
}

#[derive(Serialize)]
struct Row {
    schedule: String,
    /// Messages on the longest chain.
    steps: u32,
    messages: u64,
    /// Bytes that links of a kind carry at the largest size, the fastest kind first.
    links: Vec<Class>,
    times: Vec<Time>,
}

#[derive(Serialize)]
struct Class {
    class: String,
    bytes: u64,
}

#[derive(Serialize)]
struct Time {
    bytes: u64,
    time_us: f64,
    bound_us: f64,
}

#[derive(Serialize)]
struct Crossover {
    bytes: u64,
    from: String,
    to: String,
}

/// Compares all targets.
pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let place = Place::new(&args.ground)?;
    let mut unused: Vec<&str> = args.define.iter().map(|(name, _)| name.as_str()).collect();
    let mut found: Vec<Comparison> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut ranks = place.ranks;
    for target in &args.targets {
        let (target, word) = split(target);
        let own = word.map(|word| Wish::read(&place.network, word)).transpose()?;
        let wish = own.as_ref().or(place.wish.as_ref());
        let shape = (wish == Some(&Wish::Best)).then_some(&place.network);
        let define = defined(target, &args.define)?;
        unused.retain(|unused| !define.iter().any(|(name, _)| name == unused));
        let choice = Choice { schedule: None, define };
        let planned = Planned::new(target, &args.ground, &choice, (ranks, place.default_ranks()), shape)?;
        // What is compared runs on as many ranks.
        ranks = Some(planned.ranks());
        let mut options = Options {
            bytes: args.sizes.0.last().copied().unwrap_or(0),
            element: planned.element(args.ground.dtype),
            slots: args.ground.slots,
            stream: args.ground.stream,
            exact: args.ground.exact,
            ..Options::default()
        };
        // Placed where it is at its best with the largest size, as links are busiest then.
        options.bytes = coll_sim::size_taken_bytes(&planned.plans[0], &options);
        options.order = place::stand(wish, &planned.plans, &place.network, &options)?.order;
        let plans: Vec<_> = planned.plans.iter().collect();
        let comparison =
            compare(&plans, &place.network, &options, &args.sizes.0).map_err(|error| failure(&error))?;
        // Two of one name are told apart by their files.
        let name = planned.name().to_string() + &word.map_or(String::new(), |word| format!("@{word}"));
        names.push(if names.contains(&name) { format!("{name} ({target})") } else { name });
        found.push(comparison);
    }
    if let Some(name) = unused.first() {
        return Err(Failure::unusable(format!("none of these schedules has a parameter `{name}`"))
            .help("`collc list` shows the library's parameters"));
    }
    let document = document(&place.network, ranks.unwrap_or(0), &names, &found);
    if let Some(path) = &args.output {
        output::write_file(path, picture(&document).as_bytes())?;
    }
    match args.format {
        Format::Text => output::print(&text(&document))?,
        Format::Json => {
            let json = serde_json::to_string_pretty(&document).expect("invariant: a document is plain data");
            output::print(&(json + "\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What `-D` sets of a schedule: the parameters that it has. A plan has none to be set.
fn defined(target: &str, define: &[(String, Numbers)]) -> Result<Vec<(String, Numbers)>, Failure> {
    let is_plan = || -> Result<bool, Failure> {
        Ok(coll::is_plan(&coll::read_bytes(Path::new(target), planned::PLAN_SIZE_MAX_BYTES)?))
    };
    if define.is_empty() || target::names_a_file(target) && is_plan()? {
        return Ok(Vec::new());
    }
    let source = target::open(target)?;
    let has = |name: &str| {
        source.schedules().iter().any(|schedule| schedule.params.iter().any(|(known, _)| known == name))
    };
    Ok(define.iter().filter(|(name, _)| has(name)).cloned().collect())
}

/// `allreduce.ring@best`: what is compared, and where its ranks are to stand. A file's name may hold an `@`.
fn split(target: &str) -> (&str, Option<&str>) {
    match target.rsplit_once('@') {
        Some((target, word)) if !Path::new(&format!("{target}@{word}")).exists() => (target, Some(word)),
        _ => (target, None),
    }
}

fn document(network: &Network, ranks: u32, names: &[String], found: &[Comparison]) -> Document {
    let row = |(name, comparison): (&String, &Comparison)| Row {
        schedule: name.clone(),
        steps: comparison.steps,
        messages: comparison.messages,
        links: comparison
            .classes
            .iter()
            .map(|(class, bytes)| Class {
                class: class.clone(),
                bytes: u64::try_from(*bytes).unwrap_or(u64::MAX),
            })
            .collect(),
        times: comparison
            .times
            .iter()
            .map(|time| Time { bytes: time.bytes, time_us: time.time_us, bound_us: time.bound_us })
            .collect(),
    };
    let crossovers = coll_sim::crossovers(found).into_iter().map(|(bytes, from, to)| Crossover {
        bytes,
        from: names[from].clone(),
        to: names[to].clone(),
    });
    Document {
        topology: network.name.clone(),
        ranks,
        schedules: names.iter().zip(found).map(row).collect(),
        crossovers: crossovers.collect(),
    }
}

fn picture(document: &Document) -> String {
    let curve = |row: &Row| Curve {
        name: row.schedule.clone(),
        points: row.times.iter().map(|time| (time.bytes, time.time_us)).collect(),
    };
    let mut curves: Vec<Curve> = document.schedules.iter().map(curve).collect();
    if let Some(first) = document.schedules.first() {
        let points = first.times.iter().map(|time| (time.bytes, time.bound_us)).collect();
        curves.push(Curve { name: "no schedule takes less".into(), points });
    }
    plot(&format!("{} ranks of {}", document.ranks, document.topology), &curves)
}

fn text(document: &Document) -> String {
    let Document { topology, ranks, schedules, crossovers } = document;
    let mut text = format!("{ranks} ranks of {topology}\n\n");
    let width = schedules.iter().map(|row| row.schedule.chars().count()).max().unwrap_or(0).max(12);
    text += &format!(
        "{:width$}  {:>6}  {:>9}  bytes by links at the largest size\n",
        "schedule", "steps", "messages"
    );
    for row in schedules {
        let links: Vec<String> = row.links.iter().map(|c| format!("{} on {}", c.bytes, c.class)).collect();
        text += &format!(
            "{:width$}  {:>6}  {:>9}  {}\n",
            row.schedule,
            row.steps,
            row.messages,
            links.join(", ")
        );
    }
    text += &format!("\n{:>12}", "size");
    schedules
        .iter()
        .for_each(|row| text += &format!("  {:>w$}", row.schedule, w = row.schedule.chars().count().max(12)));
    text += &format!("  {:>12}  µs\n", "bound");
    let sizes = schedules.first().map_or(0, |row| row.times.len());
    for at in 0..sizes {
        let least = schedules.iter().map(|row| row.times[at].time_us).fold(f64::INFINITY, f64::min);
        text += &format!("{:>12}", Bytes(schedules[0].times[at].bytes).to_string());
        for row in schedules {
            let time = row.times[at].time_us;
            let mark = if time <= least { "*" } else { "" };
            text +=
                &format!("  {:>w$}", format!("{mark}{time:.2}"), w = row.schedule.chars().count().max(12));
        }
        text += &format!("  {:>12.2}\n", schedules[0].times[at].bound_us);
    }
    for Crossover { bytes, from, to } in crossovers {
        text += &format!("\nfrom about {} on {to} takes less than {from}", Bytes(*bytes));
    }
    if crossovers.is_empty() && schedules.len() > 1 {
        text += "\none is the fastest at all of these sizes";
    }
    text + "\n"
}
