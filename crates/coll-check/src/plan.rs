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
//! The third looks at one order only; the fourth says why that is enough. It finds besides what a plan may claim of its
//! reductions (`likeness` compares their trees); a plan that claims more is refused.

pub mod codes;
mod entries;
mod likeness;
mod order;
mod pairing;
mod progress;
mod races;
mod sums;
mod tally;
mod values;
mod verdict;
mod whole;

use coll_base::Diagnostic;
use coll_plan::{Claims, Plan};

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
    /// What the plan may claim, whether it does or not. Nothing for a plan that is refused for other reasons.
    pub claims: Claims,
}

/// Proves a whole plan, or tells what is wrong with it.
pub fn prove(plan: &Plan) -> PlanProof {
    let refused = |diagnostic| PlanProof {
        diagnostics: vec![diagnostic],
        min_slots: 0,
        rendezvous: false,
        claims: Claims::default(),
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
            return PlanProof { diagnostics, min_slots: 0, rendezvous: false, claims: Claims::default() };
        }
    };
    let progress = progress::progress(&whole, &messages);
    let mut diagnostics = progress.diagnostics;
    let mut claims = Claims::default();
    // A plan that stops has no end to speak of, and its memory is in disorder for that reason alone.
    if !progress.order.is_empty() || whole.op_count() == 0 {
        let (told, found) = values::check(&whole, &messages, &progress.order);
        diagnostics.extend(told);
        diagnostics.extend(races::check(&whole, &messages, &progress.order));
        diagnostics.extend(entries::check(&whole, &messages, &progress.order));
        if diagnostics.is_empty() {
            // The trees are alike, and yet one rank may hold what another has only heard of, rounded.
            let same_reduction_tree = found.same_reduction_tree && plan.wire.is_none();
            let found = Claims { same_reduction_tree, ..found };
            claims = found;
            diagnostics.extend(unfounded(plan.claims, found));
        }
    }
    let (min_slots, rendezvous) = (progress.min_slots, progress.rendezvous);
    PlanProof { diagnostics, min_slots, rendezvous, claims }
}

/// How many pairs of operations of one rank touch one memory, one of them writing, or use one connection, in no sure order: all
/// of them, where [`prove`] tells of the first few. An operation that does so by itself is a pair, and a receive counts as
/// one with the send that follows it byte by byte. None for a plan that stops or has messages that do not pair up, for
/// nothing is known of orders there, and where they are too many to count.
pub fn races(plan: &Plan) -> Option<u64> {
    coll_plan::verify(plan).ok()?;
    let whole = whole::Whole::new(plan).ok()?;
    let messages = pairing::pair(&whole).ok()?;
    let progress = progress::progress(&whole, &messages);
    if progress.order.is_empty() && whole.op_count() > 0 {
        return None;
    }
    tally::count(&whole, &messages, &progress.order)
}

/// What a plan claims and its proof does not bear out.
fn unfounded(claimed: Claims, found: Claims) -> Vec<Diagnostic> {
    let claims = [
        (
            claimed.ordered,
            found.ordered,
            "ordered",
            "every reduction with its operands in the contract's order",
        ),
        (
            claimed.same_reduction_tree,
            found.same_reduction_tree,
            "same_reduction_tree",
            "one reduction tree on all ranks that end with one value",
        ),
    ];
    let unfounded = claims.into_iter().filter(|&(claimed, found, ..)| claimed && !found);
    let told = unfounded.map(|(_, _, name, due)| {
        let message = format!("the plan claims `{name}`, and its proof does not bear that out");
        Diagnostic::unplaced(codes::UNFOUNDED, message)
            .expected(due)
            .found(if name == "ordered" {
                "operands in another order"
            } else {
                "trees that differ, or a wire type that rounds what other ranks hear of"
            })
            .help(format!("take the line `claim {name}` out, or compile the schedule anew"))
    });
    told.collect()
}

#[cfg(test)]
mod tests;
