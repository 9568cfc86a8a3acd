//! A trial: ranks run a plan on inputs that show any misplaced element, time it, and judge what came out.

mod inputs;
mod judge;
mod memory;
mod operator;
mod rank;
mod rehearsal;
mod summary;
mod threads;
mod timeline;

pub use inputs::Inputs;
pub use judge::{Judge, Verdict};
pub use memory::{NoMemory, RunMemory, placements};
pub use operator::{Operator, OperatorCode, travels_as};
pub use rank::{Milestone, RankReport, Settings, TrialError, run_rank, words};
pub use rehearsal::{Mishap, What};
pub use summary::Summary;
pub use threads::run_threads;
pub use timeline::Timeline;
