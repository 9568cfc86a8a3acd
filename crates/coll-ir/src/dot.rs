//! The dependence graph as a picture, in Graphviz's language: `dot -Tsvg`. One cluster for each step, from top to
//! bottom; a message is a box, what stays within a rank is round. Solid edges carry values, dashed ones only keep
//! a piece from being overwritten too early.

use crate::{Dependence, Dependences, Program, print_transfer};
use std::fmt::Write;

/// The picture of a program.
pub fn dot(program: &Program, dependences: &Dependences) -> String {
    let mut text = String::from("digraph program {\n  rankdir = TB\n  node [fontname = \"monospace\"]\n");
    let mut transfers = program.transfers.iter().enumerate().peekable();
    for (number, step) in program.steps.iter().enumerate() {
        let bindings = program.origins.describe(step.origin);
        let title = format!("step {number} {bindings}");
        let _ = writeln!(text, "  subgraph cluster_{number} {{\n    label = {}", quoted(title.trim_end()));
        while let Some((id, transfer)) = transfers.next_if(|(_, t)| t.step as usize == number) {
            let shape = if transfer.is_local() { "ellipse" } else { "box" };
            let label = quoted(&print_transfer(program, transfer));
            let _ = writeln!(text, "    t{id} [shape = {shape}, label = {label}]");
        }
        text.push_str("  }\n");
    }
    for (from, to, why) in dependences.edges() {
        let style = match why {
            Dependence::Reads => "",
            Dependence::Builds => " [color = blue]",
            Dependence::Overwrites | Dependence::Replaces => " [style = dashed]",
        };
        let _ = writeln!(text, "  t{from} -> t{to}{style}");
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
