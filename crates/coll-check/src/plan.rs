//! The judge of plans: proves that a plan keeps its contract, whoever made it.
//!
//! A plan is right if its messages pair up, if it runs to its end, if every ensured block then holds its value,
//! in place and out of place, and if no two accesses of one memory are left to chance. Each of these is proved in
//! a file of its own, on symbols instead of numbers:
//!
//! 1. `pairing`: the nth send meets the nth receive, and both list the same shapes;
//! 2. `progress`: with how many message slots everything ends, and in which order it may run;
//! 3. `values`: in that order, what every piece of every block holds, as `sums` of contributions, and the `verdict`;
//! 4. `races`: every other order gives the same, since conflicting accesses are ordered (`order`);
//! 5. `entries`: barriers: who has entered before whom may leave.
//!
//! The third looks at one order only; the fourth says why that is enough.

pub mod codes;
mod entries;
mod order;
mod pairing;
mod progress;
mod races;
mod sums;
mod values;
mod verdict;
mod whole;

use coll_base::Diagnostic;
use coll_plan::Plan;

/// What was found out about a plan.
#[derive(Clone, Debug)]
pub struct PlanProof {
    /// What is wrong; a plan without is proved.
    pub diagnostics: Vec<Diagnostic>,
    /// The least number of message slots for each connection, at least 1, with which it runs to its end; 0 if there
    /// is no such number, or if messages do not pair up. A receive that a send follows byte by byte counts as one
    /// fused step here, as on machines that forward: it holds its outgoing slot before it frees the incoming one.
    pub min_slots: u32,
    /// It runs to its end even if every send waits for its receive.
    pub rendezvous: bool,
    /// Every reduction keeps the operands in the contract's order, so that operators that do not commute are served.
    /// False for a plan that is refused.
    pub ordered: bool,
}

/// Proves a whole plan, or tells what is wrong with it.
pub fn prove(plan: &Plan) -> PlanProof {
    let refused = |diagnostic| PlanProof {
        diagnostics: vec![diagnostic],
        min_slots: 0,
        rendezvous: false,
        ordered: false,
    };
    if let Err(error) = coll_plan::verify(plan) {
        return refused(error.diagnostic());
    }
    let whole = match whole::Whole::new(plan) {
        Ok(whole) => whole,
        Err(diagnostic) => return refused(*diagnostic),
    };
    let messages = match pairing::pair(&whole) {
        Ok(messages) => messages,
        Err(diagnostics) => {
            return PlanProof { diagnostics, min_slots: 0, rendezvous: false, ordered: false };
        }
    };
    let progress = progress::progress(&whole, &messages);
    let mut diagnostics = progress.diagnostics;
    let mut ordered = false;
    // A plan that stops has no end to speak of, and its memory is in disorder for that reason alone.
    if !progress.order.is_empty() || whole.op_count() == 0 {
        let (told, in_order) = values::check(&whole, &messages, &progress.order);
        ordered = in_order && told.is_empty();
        diagnostics.extend(told);
        diagnostics.extend(races::check(&whole, &messages, &progress.order));
        diagnostics.extend(entries::check(&whole, &messages, &progress.order));
    }
    let (min_slots, rendezvous) = (progress.min_slots, progress.rendezvous);
    PlanProof { diagnostics, min_slots, rendezvous, ordered }
}

#[cfg(test)]
mod tests;
