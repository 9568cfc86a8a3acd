//! The normal form: two plans that say the same have the same bytes.
//!
//! Operations point into tables of regions and waits, and a compiler may lay these out as it likes: shared runs,
//! gaps, any order. In the normal form the runs follow each other in the order of the operations (source, operand,
//! target), an operand that equals the target shares its run, and empty runs are `0..0`. All formats write it, and
//! the hash is taken of it.

use crate::{Op, Plan, RankPlan, Run};
use std::borrow::Cow;

/// A plan with its tables in normal form; borrowed if they are so already. The plan has been verified, which bounds
/// what its runs add up to.
pub fn normal_form(plan: &Plan) -> Cow<'_, Plan> {
    if plan.ranks.iter().all(is_normal) {
        return Cow::Borrowed(plan);
    }
    let ranks =
        plan.ranks.iter().map(|part| if is_normal(part) { part.clone() } else { normal(part) }).collect();
    Cow::Owned(Plan {
        name: plan.name.clone(),
        params: plan.params.clone(),
        contract: plan.contract.clone(),
        cuts: plan.cuts.clone(),
        lines: plan.lines.clone(),
        ranks,
        origin: plan.origin.clone(),
        proof: plan.proof.clone(),
        placement: plan.placement.clone(),
        ..*plan
    })
}

/// Where an operation's runs stand in normal form, given how much of the tables is taken.
struct Layout {
    source: Run,
    operand: Run,
    target: Run,
    waits: Run,
}

impl Layout {
    fn of(part: &RankPlan, op: &Op, regions: &mut u32, waits: &mut u32) -> Layout {
        let source = take(op.source, regions);
        let shared = part.regions(op.operand) == part.regions(op.target);
        let operand = if shared { Run::default() } else { take(op.operand, regions) };
        let target = take(op.target, regions);
        Layout {
            source,
            operand: if shared { target } else { operand },
            target,
            waits: take(op.waits, waits),
        }
    }
}

fn take(run: Run, used: &mut u32) -> Run {
    if run.is_empty() {
        return Run::default();
    }
    let start = *used;
    *used += run.end - run.start;
    Run { start, end: *used }
}

fn is_normal(part: &RankPlan) -> bool {
    let (mut regions, mut waits) = (0, 0);
    let same = part.ops.iter().all(|op| {
        let due = Layout::of(part, op, &mut regions, &mut waits);
        due.source == op.source
            && due.operand == op.operand
            && due.target == op.target
            && due.waits == op.waits
    });
    same && regions as usize == part.regions.len() && waits as usize == part.waits.len()
}

fn normal(part: &RankPlan) -> RankPlan {
    let (mut regions, mut waits) = (Vec::new(), Vec::new());
    let ops = part.ops.iter().map(|op| {
        let (mut region_count, mut wait_count) = (regions.len() as u32, waits.len() as u32);
        let due = Layout::of(part, op, &mut region_count, &mut wait_count);
        regions.extend_from_slice(part.regions(op.source));
        if due.operand != due.target {
            regions.extend_from_slice(part.regions(op.operand));
        }
        regions.extend_from_slice(part.regions(op.target));
        waits.extend_from_slice(part.waits(op));
        Op { source: due.source, operand: due.operand, target: due.target, waits: due.waits, ..*op }
    });
    let ops = ops.collect();
    RankPlan { rank: part.rank, slots: part.slots.clone(), lanes: part.lanes.clone(), ops, regions, waits }
}

#[cfg(test)]
mod tests {
    use crate::samples::pair;
    use crate::{Run, normal_form, verify};
    use std::borrow::Cow;

    #[test]
    fn a_plan_as_the_text_reader_lays_it_out_is_normal() {
        assert!(matches!(normal_form(&pair()), Cow::Borrowed(_)));
    }

    #[test]
    fn gaps_and_copies_in_the_tables_make_no_difference() {
        let normal = pair();
        let mut sparse = normal.clone();
        let part = &mut sparse.ranks[0];
        let first = part.regions[0];
        part.regions.insert(0, first);
        for op in &mut part.ops {
            for run in [&mut op.source, &mut op.operand, &mut op.target] {
                *run = if run.is_empty() {
                    Run { start: 1, end: 1 }
                } else {
                    Run { start: run.start + 1, end: run.end + 1 }
                };
            }
        }
        assert_eq!(verify(&sparse), Ok(()));
        assert_ne!(sparse, normal);
        assert_eq!(*normal_form(&sparse), normal);
    }
}
