//! A description to TOML text, which reads back as the same.

use crate::description::{
    Description, DeviceFigures, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl, OwnFigures,
};
use crate::units::{write_bandwidth, write_byte_time, write_time};
use std::fmt::Write;

/// The text of a file, with some lines of comment at its head.
pub fn write(description: &Description, comments: &[String]) -> String {
    let mut text = String::new();
    for line in comments.iter().flat_map(|comment| comment.lines()) {
        let shown: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        text += format!("# {shown}").trim_end();
        text.push('\n');
    }
    if let Some(name) = &description.name {
        let _ = writeln!(text, "name = {}", quoted(name));
    }
    let DeviceFigures { message_us, reduce_ns, copy_ns } = description.figures;
    let figures =
        OwnFigures { message_us: Some(message_us), reduce_ns: Some(reduce_ns), copy_ns: Some(copy_ns) };
    let _ = write!(text, "\n[defaults]\n{}", own(&figures));
    for machine in &description.machines {
        write_machine(&mut text, machine);
    }
    for node in &description.nodes {
        write_node(&mut text, "", node);
    }
    for link in &description.links {
        write_link(&mut text, "", link);
    }
    text
}

fn write_machine(text: &mut String, machine: &MachineDecl) {
    let _ = writeln!(text, "\n[[machine]]\nname = {}", quoted(&machine.name));
    if let Some(count) = machine.count {
        let _ = writeln!(text, "count = {count}");
    }
    for node in &machine.nodes {
        write_node(text, "machine.", node);
    }
    for link in &machine.links {
        write_link(text, "machine.", link);
    }
}

fn write_node(text: &mut String, within: &str, node: &NodeDecl) {
    let _ = writeln!(text, "\n[[{within}{}]]\nname = {}", node.kind.name(), quoted(&node.name));
    if let Some(count) = node.count {
        let _ = writeln!(text, "count = {count}");
    }
    if let Some(rate) = node.bytes_per_us {
        let _ = writeln!(text, "bandwidth = \"{}\"", write_bandwidth(rate));
    }
    if node.kind == Kind::Device && !node.forwards {
        text.push_str("forward = false\n");
    }
    text.push_str(&own(&node.figures));
    if let Some(note) = &node.note {
        let _ = writeln!(text, "note = {}", quoted(note));
    }
}

fn own(figures: &OwnFigures) -> String {
    let mut text = String::new();
    if let Some(us) = figures.message_us {
        let _ = writeln!(text, "message = \"{}\"", write_time(us));
    }
    for (key, ns) in [("reduce", figures.reduce_ns), ("copy", figures.copy_ns)] {
        if let Some(ns) = ns {
            let _ = writeln!(text, "{key} = \"{}\"", write_byte_time(ns));
        }
    }
    text
}

fn write_link(text: &mut String, within: &str, link: &LinkDecl) {
    let [a, b] = &link.between;
    let _ = writeln!(text, "\n[[{within}link]]\nbetween = [{}, {}]", quoted(a), quoted(b));
    if let Some(pairs) = link.pairs {
        let _ = writeln!(text, "pairs = \"{}\"", pairs.name());
    }
    let _ = writeln!(text, "bandwidth = \"{}\"", write_bandwidth(link.bytes_per_us));
    let _ = writeln!(text, "latency = \"{}\"", write_time(link.latency_us));
    if link.duplex != Duplex::Full {
        let _ = writeln!(text, "duplex = \"{}\"", link.duplex.name());
    }
    if link.count != 1 {
        let _ = writeln!(text, "count = {}", link.count);
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
