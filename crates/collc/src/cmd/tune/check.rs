//! `collc tune --check`: how far predictions are from what calls take, over all operations and sizes, with the constants
//! that were just fitted. Schedules are those that these constants choose.

use super::{SIZES, measured, probe};
use crate::args::{BenchTransport, TuneArgs};
use crate::cmd::bench::Cell;
use crate::failure::Failure;
use crate::output;
use coll::select::{Chooser, Question};
use coll_cost::{Layout, Tuning};

/// Measures on each rank count, prints each call beside its prediction, and gives the errors: how far prediction and
/// measurement are apart, as a share of the measurement.
pub(super) fn errors(
    args: &TuneArgs,
    tuning: &Tuning,
    transport: BenchTransport,
    counts: &[u32],
    cores: u32,
) -> Result<Vec<f64>, Failure> {
    let name = transport.name();
    let Some(constants) = tuning.of(name) else { return Ok(Vec::new()) };
    let chooser = Chooser::new(tuning.clone());
    let mut errors = Vec::new();
    let mut text = format!(
        "\n{:<44}  {:>5}  {:>11}  {:>12}  {:>6}\n",
        format!("chosen over {name}"),
        "ranks",
        "measured µs",
        "predicted µs",
        "error"
    );
    for &ranks in counts {
        output::complain_raw(&format!("comparing on {ranks} ranks over {name}\n"));
        let cells = cells(&chooser, transport, ranks, cores)?;
        for (name, probe) in measured(args, transport, ranks, cores, cells)? {
            let predicted_us = probe.ratio(constants) * probe.measured_us;
            let error = (predicted_us / probe.measured_us - 1.0).abs();
            errors.push(error);
            text += &format!(
                "{name:<44}  {ranks:>5}  {:>11.1}  {predicted_us:>12.1}  {:>5.0}%\n",
                probe.measured_us,
                100.0 * error
            );
        }
    }
    output::print(&text)?;
    Ok(errors)
}

/// Each operation at each size, with the schedule that is chosen for it.
fn cells(chooser: &Chooser, transport: BenchTransport, ranks: u32, cores: u32) -> Result<Vec<Cell>, Failure> {
    let mut cells = Vec::new();
    for operation in coll::OPERATIONS {
        let sizes = if operation == "barrier" { &[0][..] } else { &SIZES };
        for &bytes in sizes {
            let question = Question {
                transport: transport.name(),
                layout: Layout::one_host(cores),
                ..Question::new(operation, ranks, bytes)
            };
            let choice = chooser.choose(&question).map_err(|error| Failure::unusable(error.to_string()))?;
            cells.push(probe(choice.candidate.to_string(), operation == "broadcast", bytes));
        }
    }
    Ok(cells)
}

/// What is said of errors: `tcp and shm: the median error of 246 calls is 18 %`.
pub(super) fn verdict(transports: &[&str], errors: &mut [f64]) -> String {
    errors.sort_by(f64::total_cmp);
    let at = |share: f64| errors[((errors.len() - 1) as f64 * share).round() as usize] * 100.0;
    format!(
        "\n{}: the median error of {} predictions is {:.0} %, that of the worst tenth {:.0} % and more\n",
        transports.join(" and "),
        errors.len(),
        at(0.5),
        at(0.9)
    )
}
