//! The plan's header: cuts, channels, root, proof, and that every rank's part is there.

use super::PlanError;
use crate::codes::{HEADER, RANK_TABLE};
use crate::{Placement, Plan, Proof, Reference};
use coll_base::{DType, Fraction};

/// More connections than this for one pair of ranks are a mistake, not a plan.
const CHANNELS_MAX: u32 = 1024;

/// Operations of all ranks together are numbered in 31 bits by those who look at them all.
const OPS_MAX: u64 = 1 << 31;

/// Runs may share entries of a table, so a small plan could speak of very many.
const ENTRIES_MAX: u64 = 1 << 28;

pub(super) fn verify(plan: &Plan) -> Result<(), PlanError> {
    if let Some(root) = plan.root.filter(|&root| root >= plan.world()) {
        return Err(wrong("root", format!("a rank below {}", plan.world()), root));
    }
    if !(1..=CHANNELS_MAX).contains(&plan.channels) {
        return Err(wrong("channels", format!("1 to {CHANNELS_MAX}"), plan.channels));
    }
    if let Some(placement) = &plan.placement {
        place(placement, plan.world())?;
    }
    if let Some(dtype) = plan.accumulate.filter(|&dtype| dtype != DType::F32) {
        return Err(wrong("accumulate", "f32, or none", dtype));
    }
    if let Some(dtype) = plan.wire.filter(|dtype| !dtype.is_wire()) {
        return Err(wrong("wire", "a float of 8 to 32 bits, or none", dtype));
    }
    cuts(&plan.cuts)?;
    reduces(plan)?;
    proof(plan)?;
    parts(plan)
}

/// A slice may leave out reductions that the whole has, but not the other way round.
fn reduces(plan: &Plan) -> Result<(), PlanError> {
    let known = plan.contract.reduces();
    let fits = if plan.is_whole() { plan.reduces == known } else { plan.reduces || !known };
    match fits {
        true => Ok(()),
        false => Err(wrong("reduces", format!("{known}, as the contract's values say"), plan.reduces)),
    }
}

/// A device for each rank, and none for two.
fn place(placement: &Placement, world: u32) -> Result<(), PlanError> {
    let order = &placement.order;
    if order.len() != world as usize {
        let found = format!("{} devices", order.len());
        return Err(wrong("placement", format!("a device for each of {world} ranks"), found));
    }
    let mut sorted = order.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            Err(wrong("placement", "a device of its own for each rank", format!("device {} twice", pair[0])))
        }
    }
}

fn proof(plan: &Plan) -> Result<(), PlanError> {
    let hash = |field: &str, text: &str| match is_hash(text) {
        true => Ok(()),
        false => Err(wrong(field, "64 hexadecimal digits, or none", format!("`{text}`"))),
    };
    if let Some(origin) = &plan.origin {
        hash("origin", origin)?;
    }
    let reference = match &plan.proof {
        None => return Ok(()),
        Some(Proof::Whole(whole)) => return hash("proof", whole),
        Some(Proof::Reference(reference)) => reference,
    };
    hash("proof", &reference.hash)?;
    if plan.is_whole() {
        let expected = "the hash of the plan, or none: only a slice is proved by reference";
        return Err(wrong("proof", expected, "a proof by reference"));
    }
    let Some(origin) = &plan.origin else {
        return Err(wrong("origin", "what the slice was made from, as it is proved by reference", "none"));
    };
    if reference.counts.is_empty() {
        return Err(wrong("proof.counts", "at least one rank count", "none"));
    }
    if let Some((ranks, root)) = reference.counts.iter().find(|(ranks, root)| root >= ranks) {
        return Err(wrong("proof.counts", format!("a root below {ranks}"), root));
    }
    let due = Reference::hash_of(origin, &reference.counts);
    match due == reference.hash {
        true => Ok(()),
        false => {
            Err(wrong("proof", format!("`{due}`, of its origin and counts"), format!("`{}`", reference.hash)))
        }
    }
}

fn wrong(field: impl Into<String>, expected: impl Into<String>, found: impl ToString) -> PlanError {
    PlanError::new(HEADER, field, expected, found)
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn cuts(cuts: &[Fraction]) -> Result<(), PlanError> {
    if cuts.len() < 2 || cuts.len() > u32::MAX as usize {
        return Err(wrong("cuts", "at least 0 and 1", format!("{} cuts", cuts.len())));
    }
    for (i, &cut) in cuts.iter().enumerate() {
        let sound = cut.denominator() != 0 && Fraction::new(cut.numerator(), cut.denominator()) == cut;
        if !sound {
            let found = format!("{}/{}", cut.numerator(), cut.denominator());
            return Err(wrong(format!("cuts[{i}]"), "a fraction in lowest terms", found));
        }
    }
    let (first, last) = (cuts[0], cuts[cuts.len() - 1]);
    if first != Fraction::ZERO || last != Fraction::ONE {
        return Err(wrong("cuts", "0 first and 1 last", format!("{first} first and {last} last")));
    }
    match cuts.windows(2).position(|pair| pair[0] >= pair[1]) {
        None => Ok(()),
        Some(at) => {
            let found = format!("{} after {}", cuts[at + 1], cuts[at]);
            Err(wrong(format!("cuts[{}]", at + 1), "cuts that ascend", found))
        }
    }
}

fn parts(plan: &Plan) -> Result<(), PlanError> {
    let wrong = |field: String, expected, found: String| PlanError::new(RANK_TABLE, field, expected, found);
    let due = if plan.is_whole() { plan.world() as usize } else { 1 };
    if plan.ranks.len() != due {
        let expected = format!("{due}: one part for each rank that the contract speaks of");
        return Err(wrong("ranks".into(), expected, plan.ranks.len().to_string()));
    }
    for (i, part) in plan.ranks.iter().enumerate() {
        let rank = plan.contract.only.unwrap_or(i as u32);
        if part.rank != rank {
            return Err(wrong(format!("ranks[{i}].rank"), rank.to_string(), part.rank.to_string()));
        }
    }
    let ops: u64 = plan.ranks.iter().map(|part| part.ops.len() as u64).sum();
    if ops >= OPS_MAX {
        return Err(wrong("ranks".into(), "fewer than 2^31 operations".into(), ops.to_string()));
    }
    let runs = plan
        .ranks
        .iter()
        .flat_map(|part| &part.ops)
        .flat_map(|op| [op.source, op.operand, op.target, op.waits]);
    let entries: u64 = runs.map(|run| u64::from(run.end.saturating_sub(run.start))).sum();
    if entries > ENTRIES_MAX {
        let expected = format!("operations with at most {ENTRIES_MAX} regions and waits in all");
        return Err(wrong("ranks".into(), expected, entries.to_string()));
    }
    Ok(())
}
