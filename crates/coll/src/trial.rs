//! A trial run: inputs that show any misplaced element, and the judgement of what came out.

mod inputs;
mod judge;

pub use inputs::Inputs;
pub use judge::{Judge, Verdict};
