//! What common calls take by the new constants, worked out once for all first calls.

use crate::args::TuneArgs;
use crate::failure::Failure;
use crate::output;
use coll::select::{ANSWERED_RANKS, Place, WHOLE_RANKS_MAX, with_answers};
use coll_cost::Tuning;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};

/// Steps of the bar.
const STEPS: u64 = 1000;

/// The rank counts to work it out for.
pub(super) fn ranks(args: &TuneArgs) -> Result<Vec<u32>, Failure> {
    let ranks: Vec<u32> = match &args.answers {
        None => ANSWERED_RANKS.to_vec(),
        Some(counts) => counts.iter().collect(),
    };
    if let Some(ranks) = ranks.iter().find(|&&ranks| !(2..=WHOLE_RANKS_MAX).contains(&ranks)) {
        let message = format!("choices are worked out for 2 to {WHOLE_RANKS_MAX} ranks, and not for {ranks}");
        return Err(Failure::unusable(message).help("beyond, a first call looks at few schedules anyway"));
    }
    Ok(ranks)
}

/// The constants with the answers for this machine, and for several like it if that is asked for.
pub(super) fn with(args: &TuneArgs, ranks: &[u32], tuning: Tuning, cores: u32) -> Tuning {
    let several = args.ranks_per_host.iter().map(|&each| Some(each));
    let places: Vec<Place> = std::iter::once(None)
        .chain(several)
        .map(|ranks_per_host| Place { ranks_per_host, cores: Some(cores) })
        .collect();
    output::complain_raw("working out what common calls take\n");
    let bar = progress_bar();
    let told = with_answers(tuning, &places, ranks, &|done| bar.set_position((done * STEPS as f64) as u64));
    bar.finish_and_clear();
    told
}

fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {percent} %").unwrap_or(ProgressStyle::default_bar());
    ProgressBar::new(STEPS).with_style(style)
}
