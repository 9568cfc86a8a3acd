//! From a plan to GOAL: messages and work of each rank, and what requires what.

use crate::Sizes;
use crate::refusal::whole;
use crate::timing::{Doing, work};
use coll_base::Diagnostic;
use coll_plan::Plan;
use std::fmt::Write;

/// How fast copies and reductions are taken to be: so many bytes a nanosecond, which is GB/s.
pub const LOCAL_BYTES_PER_NS: u64 = 10;

/// Writes a plan at some sizes. A message of no bytes is written as one of 1 byte, for LogGOPSim takes no smaller one.
///
/// # Errors
/// If it is one rank's part alone.
pub fn write(plan: &Plan, sizes: &Sizes) -> Result<String, Box<Diagnostic>> {
    whole(plan, "GOAL")?;
    let mut text = format!("num_ranks {}\n", plan.world());
    for (rank, work) in work(plan, sizes).iter().enumerate() {
        let _ = write!(text, "\nrank {rank} {{\n");
        for (at, one) in work.iter().enumerate() {
            let _ = match one.doing {
                Doing::Send { peer, tag, size_bytes } => {
                    writeln!(text, "l{at}: send {}b to {peer} tag {tag}", size_bytes.max(1))
                }
                Doing::Receive { peer, tag, size_bytes } => {
                    writeln!(text, "l{at}: recv {}b from {peer} tag {tag}", size_bytes.max(1))
                }
                Doing::Copy { size_bytes } | Doing::Reduce { size_bytes } => {
                    writeln!(text, "l{at}: calc {}", size_bytes / LOCAL_BYTES_PER_NS)
                }
            };
        }
        for (at, one) in work.iter().enumerate() {
            for after in &one.after {
                let _ = writeln!(text, "l{at} requires l{after}");
            }
        }
        text += "}\n";
    }
    Ok(text)
}
