//! A plan as a picture in Graphviz's language, `dot -Tsvg`: a box of each rank's operations, with the numbers that they have in the
//! plan, in logs and in traces. Grey edges are lanes, black ones waits, dashed where a send follows byte by byte, blue ones messages.

use crate::drawing::{DrawError, SHAPES_MAX};
use crate::table::Parts;
use crate::trace::words;
use coll_plan::{Action, Plan};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Draws a whole plan.
///
/// # Errors
/// A slice, or more than a picture can show.
pub fn dot(plan: &Plan) -> Result<String, DrawError> {
    let parts = Parts::new(&[plan]).map_err(DrawError::Plan)?;
    let shapes: usize = plan.ranks.iter().map(|part| part.ops.len()).sum();
    if shapes > SHAPES_MAX {
        return Err(DrawError::TooMuch { shapes });
    }
    let mut text =
        String::from("digraph plan {\n  rankdir = LR\n  node [shape = box, fontname = \"monospace\"]\n");
    let place =
        plan.placement.as_ref().map_or(String::new(), |placed| format!(", placed on {}", placed.topology));
    let _ =
        writeln!(text, "  label = {}", quoted(&format!("{} on {} ranks{place}", plan.name, plan.world())));
    // Of each connection the sends and the receives, in the order of their numbers.
    let mut ends: BTreeMap<(u32, u32, u32), [Vec<String>; 2]> = BTreeMap::new();
    for part in &plan.ranks {
        let rank = part.rank;
        let device = plan.placement.as_ref().and_then(|placed| placed.order.get(rank as usize));
        let device = device.map_or(String::new(), |device| format!(", device {device}"));
        let _ = writeln!(text, "  subgraph cluster_{rank} {{\n    label = \"rank {rank}{device}\"");
        for (id, op) in part.ops.iter().enumerate() {
            let line =
                parts.line(rank, op).map_or(String::new(), |line| format!(" {}:{}", line.file, line.line));
            let label = quoted(&format!("op{id} {}\nstep {}{line}", words(op.action), op.step));
            let _ = writeln!(text, "    r{rank}_op{id} [label = {label}]");
            let end = match op.action {
                Action::Send { peer, channel } => Some(((rank, peer, channel), 0)),
                Action::Recv { peer, channel } | Action::RecvReduce { peer, channel, .. } => {
                    Some(((peer, rank, channel), 1))
                }
                Action::Copy | Action::Reduce { .. } => None,
            };
            if let Some((connection, side)) = end {
                ends.entry(connection).or_default()[side].push(format!("r{rank}_op{id}"));
            }
        }
        text.push_str("  }\n");
        for lane in &part.lanes {
            for op in lane.start + 1..lane.end {
                let _ = writeln!(text, "  r{rank}_op{} -> r{rank}_op{op} [color = grey]", op - 1);
            }
        }
        for (id, op) in part.ops.iter().enumerate() {
            for wait in part.waits(op) {
                let style = if wait.along { " [style = dashed]" } else { "" };
                let _ = writeln!(text, "  r{rank}_op{} -> r{rank}_op{id}{style}", wait.op);
            }
        }
    }
    for ((_, _, channel), [sends, receives]) in &ends {
        for (send, receive) in sends.iter().zip(receives) {
            let _ = writeln!(
                text,
                "  {send} -> {receive} [color = blue, label = \"{channel}\", constraint = false]"
            );
        }
    }
    text.push_str("}\n");
    Ok(text)
}

/// A text of that language; a new line is one of its own.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
