//! `collc explain-choice allreduce 1MiB --ranks 8`: every schedule that could serve, what it is predicted to take, and
//! why it is taken or passed over.

pub(crate) mod topology;

use super::choice;
use crate::args::{ExplainChoiceArgs, Format};
use crate::failure::Failure;
use crate::output;
use coll::Bytes;
use coll::select::{Chooser, Considered, Question, Standing};
use coll_cost::Layout;
use serde::Serialize;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// The largest size that `--sizes` looks at.
const SIZE_MAX_BYTES: u64 = 1 << 30;

#[derive(Serialize)]
struct Document {
    operation: &'static str,
    bytes: u64,
    ranks: u32,
    dtype: &'static str,
    transport: &'static str,
    cores: u32,
    constants: String,
    /// What candidates were simulated on, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<String>,
    taken: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    candidates: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sizes: Option<Vec<Range>>,
}

#[derive(Serialize)]
struct Row {
    schedule: String,
    predicted_us: Option<f64>,
    steps: Option<u32>,
    sent: Option<f64>,
    why: String,
}

/// What it costs that bits depend on the number of ranks alone.
#[derive(Serialize)]
struct Price {
    deterministic_us: f64,
    /// What is taken where they need not.
    plain: String,
    plain_us: f64,
}

#[derive(Serialize)]
struct Range {
    from_bytes: u64,
    schedule: String,
}

/// Prints the candidates for one call.
pub(crate) fn run(args: &ExplainChoiceArgs) -> Result<ExitCode, Failure> {
    let question = question(args)?;
    let network = args.topology.as_deref().map(super::sim::ground::network).transpose()?;
    let (tuning, file) = choice::tuning(args.constants.as_deref())?;
    let constants = match (file, tuning.of(question.transport).and_then(|known| known.fit.as_ref())) {
        (Some(file), Some(fit)) => format!("measured, {file}, off by a factor of {:.2}", fit.error_factor),
        (Some(file), None) => format!("shipped ({file} has none for {})", question.transport),
        (None, _) => "shipped; `collc tune` measures this machine's".to_string(),
    };
    let (forced, imposed) = choice::insisted()?;
    let mut chooser = Chooser::new(tuning).with_forced(forced).with_imposed(imposed);
    if let Some(network) = &network {
        chooser = topology::chooser(chooser, network, question.ranks)?;
    }
    let failure = |error: coll::select::ChooseError| Failure::unusable(error.to_string());
    let considered = chooser.explain(&question).map_err(failure)?;
    let sizes = match args.sizes {
        false => None,
        true => {
            let table = chooser.table(&question).map_err(failure)?;
            let range = |(from_bytes, candidate): (u64, &coll::select::Candidate)| Range {
                from_bytes,
                schedule: candidate.to_string(),
            };
            Some(table.ranges(0, SIZE_MAX_BYTES).into_iter().map(range).collect())
        }
    };
    let price = match (question.deterministic, considered.first()) {
        (true, Some(first)) => {
            let plain = Question { deterministic: false, ..question.clone() };
            let plain = chooser.choose(&plain).map_err(failure)?;
            Some(Price {
                deterministic_us: first.predicted_us.unwrap_or_default(),
                plain: plain.candidate.to_string(),
                plain_us: plain.predicted_us,
            })
        }
        _ => None,
    };
    let mut candidates: Vec<Row> = match &network {
        None => considered.iter().map(row).collect(),
        Some(network) => topology::weigh(&considered, &question, network)?,
    };
    let taken = candidates.first().map_or(String::new(), |first| first.schedule.clone());
    if !args.all {
        keep_best(&mut candidates);
    }
    let document = Document {
        operation: question.operation,
        bytes: question.bytes,
        ranks: question.ranks,
        dtype: question.dtype.name(),
        transport: question.transport,
        cores: question.layout.cores,
        constants: if network.is_some() { "the topology's".to_string() } else { constants },
        topology: network.as_ref().map(|network| network.name.clone()),
        taken,
        price,
        candidates,
        sizes,
    };
    output::print(&match args.format {
        Format::Json => serde_json::to_string_pretty(&document).expect("invariant: plain data") + "\n",
        Format::Text => text(&document),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn question(args: &ExplainChoiceArgs) -> Result<Question, Failure> {
    let operation = coll::canonical_operation(&args.operation).ok_or_else(|| {
        Failure::unusable(format!("there is no operation `{}`", args.operation))
            .help(format!("there are {}", coll::OPERATIONS.join(", ")))
    })?;
    let ranks =
        args.ranks.single().ok_or_else(|| Failure::unusable("a choice is made for one rank count"))?;
    let cores = args.cores.unwrap_or_else(choice::cores);
    let layout = match args.ranks_per_host {
        None => Layout::one_host(cores),
        Some(ranks_per_host) => Layout { ranks_per_host, cores },
    };
    Ok(Question {
        root: args.root,
        dtype: args.dtype,
        commutative: !args.ordered,
        user_operator: args.user_operator,
        accumulate: args.accumulate.is_some(),
        wire: args.wire,
        unequal_blocks: args.unequal_blocks,
        deterministic: args.deterministic,
        transport: args.transport.name(),
        layout,
        ..Question::new(operation, ranks, args.bytes.0)
    })
}

/// Leaves the first of each schedule: that is its best, or the one reason why none of its values serves.
fn keep_best(candidates: &mut Vec<Row>) {
    let mut seen = BTreeSet::new();
    // A row's name ends with the parameters' values.
    candidates.retain(|row| seen.insert(row.schedule.split('(').next().map(str::to_string)));
}

fn row(considered: &Considered) -> Row {
    let why = match &considered.standing {
        Standing::Taken => "taken".to_string(),
        Standing::Forced => "taken, as COLLC_SCHEDULE has it".to_string(),
        Standing::Slower(factor) => format!("{factor:.2} times as long"),
        Standing::AsGood(factor) => {
            format!("{factor:.2} times as fast, which is as good; more steps")
        }
        Standing::Rounded(factor) => {
            format!("{factor:.2} times as fast here; what is taken serves a range of sizes")
        }
        Standing::Unsteady => "one serves all sizes, and over them it comes out behind".to_string(),
        Standing::Barred(reason) => reason.clone(),
    };
    Row {
        schedule: considered.candidate.to_string(),
        predicted_us: considered.predicted_us,
        steps: considered.steps,
        sent: considered.sent_share,
        why,
    }
}

fn text(document: &Document) -> String {
    let Document { operation, ranks, dtype, transport, cores, taken, .. } = document;
    let on = match &document.topology {
        Some(topology) => format!("of {topology}, placed at their best"),
        None => format!("over {transport}, {cores} cores"),
    };
    let mut text =
        format!("{operation} of {} ({dtype}) on {ranks} ranks {on}: {taken}\n", Bytes(document.bytes));
    if let Some(Price { deterministic_us, plain, plain_us }) = &document.price {
        text += &format!(
            "deterministic: {deterministic_us:.1} µs; {plain} would take {plain_us:.1}, and is taken where bits may depend on \
             sizes: {:.2} times as long\n",
            deterministic_us / plain_us
        );
    }
    text += &format!("constants: {}\n\n", document.constants);
    let width = document.candidates.iter().map(|row| row.schedule.chars().count()).max().unwrap_or(0).max(8);
    text += &format!("{:width$}  {:>12}  {:>5}  {:>6}  why\n", "schedule", "predicted µs", "steps", "sent");
    for row in &document.candidates {
        let us = row.predicted_us.map_or("-".into(), |us| format!("{us:.1}"));
        let steps = row.steps.map_or("-".into(), |steps| steps.to_string());
        let sent = row.sent.map_or("-".into(), |sent| format!("{sent:.3}"));
        text += &format!("{:width$}  {us:>12}  {steps:>5}  {sent:>6}  {}\n", row.schedule, row.why);
    }
    if let Some(sizes) = &document.sizes {
        text += "\nfrom size     schedule\n";
        for range in sizes {
            text += &format!("{:<12}  {}\n", Bytes(range.from_bytes).to_string(), range.schedule);
        }
    }
    text + "\nsteps: messages on the longest chain; sent: what the busiest rank sends, in buffers\n"
}
