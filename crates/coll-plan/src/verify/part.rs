//! One rank's part: lanes, slots, tables of regions and waits; then its operations.

use super::places::Places;
use super::{PlanError, operation, waits};
use crate::codes::{RANK_TABLE, REGION, WAIT};
use crate::{Plan, RankPlan, Region, Shape, Store};
use coll_contract::BufferRole;

pub(super) fn verify(plan: &Plan, part: &RankPlan, places: &Places) -> Result<(), PlanError> {
    let tables = [("regions", part.regions.len()), ("waits", part.waits.len()), ("slots", part.slots.len())];
    for (name, len) in tables {
        if len > u32::MAX as usize {
            return Err(PlanError::new(RANK_TABLE, name, "fewer than 2^32 entries", len));
        }
    }
    lanes(part)?;
    for (i, slot) in part.slots.iter().enumerate() {
        shapes(plan, &slot.shapes, i)?;
    }
    for (i, region) in part.regions.iter().enumerate() {
        self::region(plan, part, places, region).map_err(|error| used(part, error, i as u32))?;
    }
    for (i, wait) in part.waits.iter().enumerate() {
        if wait.op as usize >= part.ops.len() {
            let expected = format!("an operation below {}", part.ops.len());
            return Err(PlanError::new(WAIT, format!("waits[{i}].op"), expected, wait.op));
        }
    }
    for (i, op) in part.ops.iter().enumerate() {
        operation::verify(plan, part, i as u32, op).map_err(|e| e.in_op(i))?;
    }
    waits::end(part)
}

fn within(error: PlanError, field: &str) -> PlanError {
    PlanError { field: format!("{field}{}", error.field), ..error }
}

/// An error about a region told as one about the first operation that touches it.
fn used(part: &RankPlan, error: PlanError, region: u32) -> PlanError {
    for (id, op) in part.ops.iter().enumerate() {
        for (side, run) in [("source", op.source), ("operand", op.operand), ("target", op.target)] {
            if (run.start..run.end).contains(&region) {
                return within(error, &format!("{side}[{}]", region - run.start)).in_op(id);
            }
        }
    }
    within(error, &format!("regions[{region}]"))
}

fn lanes(part: &RankPlan) -> Result<(), PlanError> {
    let mut next = 0;
    for (i, lane) in part.lanes.iter().enumerate() {
        if lane.start != next || lane.end < lane.start || lane.end as usize > part.ops.len() {
            let expected = format!("a run from {next} to at most {}", part.ops.len());
            let found = format!("{}..{}", lane.start, lane.end);
            return Err(PlanError::new(RANK_TABLE, format!("lanes[{i}]"), expected, found));
        }
        next = lane.end;
    }
    if next as usize != part.ops.len() {
        let expected = format!("lanes that cover all {} operations", part.ops.len());
        return Err(PlanError::new(RANK_TABLE, "lanes", expected, format!("lanes that end at {next}")));
    }
    Ok(())
}

fn shapes(plan: &Plan, shapes: &[Shape], slot: usize) -> Result<(), PlanError> {
    let field = |at| format!("slots[{slot}].shapes[{at}]");
    if shapes.is_empty() {
        return Err(PlanError::new(RANK_TABLE, format!("slots[{slot}].shapes"), "at least one shape", 0));
    }
    for (at, shape) in shapes.iter().enumerate() {
        pieces(plan, shape.low, shape.high).map_err(|e| within(e, &field(at)))?;
        if shape.class >= plan.contract.classes.count {
            let expected = format!("a class below {}", plan.contract.classes.count);
            return Err(PlanError::new(REGION, field(at) + ".class", expected, shape.class));
        }
    }
    match shapes.windows(2).position(|pair| pair[0] >= pair[1]) {
        None => Ok(()),
        Some(at) => {
            let found = format!("{:?} after {:?}", shapes[at + 1], shapes[at]);
            Err(PlanError::new(RANK_TABLE, field(at + 1), "shapes that ascend, none twice", found))
        }
    }
}

fn pieces(plan: &Plan, low: u32, high: u32) -> Result<(), PlanError> {
    if low < high && high <= plan.pieces() {
        return Ok(());
    }
    let expected = format!("pieces low..high with low < high <= {}", plan.pieces());
    Err(PlanError::new(REGION, "", expected, format!("{low}..{high}")))
}

fn region(plan: &Plan, part: &RankPlan, places: &Places, region: &Region) -> Result<(), PlanError> {
    pieces(plan, region.low, region.high)?;
    match region.store {
        Store::Slot => slot_region(part, region),
        Store::In(buffer) | Store::Out(buffer) | Store::Tmp(buffer) => {
            block_region(plan, places, region, buffer)
        }
    }
}

fn slot_region(part: &RankPlan, region: &Region) -> Result<(), PlanError> {
    let Some(slot) = part.slots.get(region.block as usize) else {
        let expected = format!("a slot below {}", part.slots.len());
        return Err(PlanError::new(REGION, ".block", expected, region.block));
    };
    let shape = Shape { class: region.class, low: region.low, high: region.high };
    if slot.shapes.binary_search(&shape).is_err() {
        let found = format!("class {}, pieces {}..{}", shape.class, shape.low, shape.high);
        return Err(PlanError::new(REGION, "", format!("a declared shape of slot {}", region.block), found));
    }
    Ok(())
}

fn block_region(plan: &Plan, places: &Places, region: &Region, buffer: u32) -> Result<(), PlanError> {
    let wrong = |field, expected, found: String| Err(PlanError::new(REGION, field, expected, found));
    let Some(decl) = plan.contract.buffers.get(buffer as usize) else {
        return wrong(
            ".store",
            format!("a buffer below {}", plan.contract.buffers.len()),
            buffer.to_string(),
        );
    };
    if region.block >= decl.blocks {
        return wrong(
            ".block",
            format!("a block of {} below {}", decl.name, decl.blocks),
            region.block.to_string(),
        );
    }
    let place = places.place(buffer, region.block);
    if region.class != place.class {
        return wrong(".class", format!("class {} of the block", place.class), region.class.to_string());
    }
    let (legal, expected) = match region.store {
        Store::In(_) => (decl.role != BufferRole::Out && place.given, "a block that is given"),
        Store::Out(_) => {
            (decl.role != BufferRole::In && place.ensured, "a block of which something is ensured")
        }
        _ => (decl.role != BufferRole::In && !place.ensured, "a writable block of which nothing is ensured"),
    };
    if !legal {
        let kind = match region.store {
            Store::In(_) => "in",
            Store::Out(_) => "out",
            _ => "tmp",
        };
        let found = format!("{}.{kind}[{}], which is not one", decl.name, region.block);
        return wrong(".store", expected.to_string(), found);
    }
    Ok(())
}
