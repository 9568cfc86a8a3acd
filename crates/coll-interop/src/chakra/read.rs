//! From traces to GOAL: a node becomes an operation whose label is its id, dependencies become `requires`. What is no message
//! takes no part but in who waits for whom.

use super::{NodeType, attribute, node};
use crate::codes::{MISSING, NUMBERING, SYNTAX, UNSUPPORTED, VALUE};
use coll_base::{Code, Diagnostic};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Reads the traces of all ranks, the first one's first, each with its file's name. What comes of it is a GOAL schedule, in
/// which node 17 of a rank is `n17`.
///
/// # Errors
/// If a trace is cut off or is none, if a message has no size or no other rank, or if a node is of a kind that has no counterpart.
pub fn to_goal(traces: &[(String, Vec<u8>)]) -> Result<String, Box<Diagnostic>> {
    let mut text = format!("num_ranks {}\n", traces.len());
    for (rank, (file, bytes)) in traces.iter().enumerate() {
        let trace = Trace { file, rank: rank as u64, ranks: traces.len() as u64 };
        let nodes = trace.nodes(bytes)?;
        let _ = write!(text, "\nrank {rank} {{\n");
        for node in nodes.values() {
            let _ = writeln!(text, "n{}: {}", node.id, trace.operation(node)?);
        }
        for node in nodes.values() {
            for &earlier in &node.after {
                if !nodes.contains_key(&earlier) {
                    let message = format!("node {} follows node {earlier}, and there is none", node.id);
                    return Err(trace.told(NUMBERING, message, "the id of a node of this trace", earlier));
                }
                let _ = writeln!(text, "n{} requires n{earlier}", node.id);
            }
        }
        text += "}\n";
    }
    Ok(text)
}

/// One rank's trace.
struct Trace<'t> {
    file: &'t str,
    rank: u64,
    ranks: u64,
}

/// A node, as far as it matters.
#[derive(Default)]
struct Node {
    id: u64,
    kind: u64,
    duration_us: u64,
    after: BTreeSet<u64>,
    attributes: BTreeMap<String, i64>,
}

/// Where a trace goes wrong.
struct CutOff;

impl Trace<'_> {
    fn told(
        &self,
        code: Code,
        message: String,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> Box<Diagnostic> {
        let told = Diagnostic::unplaced(code, format!("`{}`: {message}", self.file));
        Box::new(
            told.expected(expected)
                .found(found.to_string())
                .help("`docs/formats.md` tells what traces are read"),
        )
    }

    /// All nodes by their ids.
    fn nodes(&self, bytes: &[u8]) -> Result<BTreeMap<u64, Node>, Box<Diagnostic>> {
        let broken = |at: &[u8]| {
            let message = "this is no Chakra trace, or it is cut off".to_string();
            let expected = "protocol buffer messages, each behind its length";
            self.told(SYNTAX, message, expected, format!("something else at byte {}", bytes.len() - at.len()))
        };
        let mut rest = bytes;
        delimited(&mut rest).ok_or_else(|| broken(rest))?;
        let mut nodes = BTreeMap::new();
        while !rest.is_empty() {
            let at = rest;
            let message = delimited(&mut rest).ok_or_else(|| broken(at))?;
            let node = Node::read(message).map_err(|CutOff| broken(at))?;
            let id = node.id;
            if nodes.insert(id, node).is_some() {
                return Err(self.told(
                    NUMBERING,
                    format!("two nodes have the id {id}"),
                    "ids of their own",
                    id,
                ));
            }
        }
        Ok(nodes)
    }

    /// A node as GOAL says it.
    fn operation(&self, node: &Node) -> Result<String, Box<Diagnostic>> {
        const SEND: u64 = NodeType::Send as u64;
        const RECEIVE: u64 = NodeType::Receive as u64;
        const COLLECTIVE: u64 = NodeType::Collective as u64;
        let (verb, preposition, name) = match node.kind {
            SEND => ("send", "to", "comm_dst"),
            RECEIVE => ("recv", "from", "comm_src"),
            COLLECTIVE => {
                let message = format!(
                    "node {} is a whole collective, of which the trace does not say how it is done",
                    node.id
                );
                return Err(self.told(
                    UNSUPPORTED,
                    message,
                    "sends, receives and computations",
                    "a `COMM_COLL_NODE`",
                ));
            }
            _ => return Ok(format!("calc {}", node.duration_us.saturating_mul(1000))),
        };
        let of = |name: &str| node.attributes.get(name).copied();
        let need = |name: &str| {
            let names: Vec<String> = node.attributes.keys().map(|name| format!("`{name}`")).collect();
            let message = format!("node {} has no attribute `{name}`", node.id);
            of(name).ok_or_else(|| self.told(MISSING, message, format!("`{name}`"), names.join(", ")))
        };
        let peer = need(name)?;
        if !(0..self.ranks as i64).contains(&peer) || peer as u64 == self.rank {
            let expected =
                format!("another rank than {}, below {}, as there are so many traces", self.rank, self.ranks);
            return Err(self.told(
                VALUE,
                format!("`{name}` of node {} cannot be {peer}", node.id),
                expected,
                peer,
            ));
        }
        let (size, tag) = (need("comm_size")?, of("comm_tag").unwrap_or(0));
        for (name, value) in [("comm_size", size), ("comm_tag", tag)] {
            if value < 0 || name == "comm_tag" && value > i64::from(u32::MAX) {
                let message = format!("`{name}` of node {} cannot be {value}", node.id);
                return Err(self.told(VALUE, message, "a whole number from 0 on", value));
            }
        }
        Ok(format!("{verb} {size}b {preposition} {peer} tag {tag}"))
    }
}

impl Node {
    fn read(message: &[u8]) -> Result<Node, CutOff> {
        let mut read = Node::default();
        for field in fields(message)? {
            match field {
                (node::ID, Value::Number(id)) => read.id = id,
                (node::TYPE, Value::Number(kind)) => read.kind = kind,
                (node::DURATION_US, Value::Number(duration)) => read.duration_us = duration,
                // A list of numbers may be packed, or one by one.
                (node::CONTROL | node::DATA, Value::Number(id)) => drop(read.after.insert(id)),
                (node::CONTROL | node::DATA, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        read.after.insert(varint(&mut packed).ok_or(CutOff)?);
                    }
                }
                (node::ATTRIBUTE, Value::Bytes(bytes)) => read.attributes.extend(attribute_of(bytes)?),
                _ => {}
            }
        }
        Ok(read)
    }
}

/// An attribute that is a number.
fn attribute_of(bytes: &[u8]) -> Result<Option<(String, i64)>, CutOff> {
    let (mut name, mut number) = (String::new(), None);
    for field in fields(bytes)? {
        match field {
            (attribute::NAME, Value::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            (
                attribute::INT32 | attribute::INT64 | attribute::UINT32 | attribute::UINT64 | attribute::BOOL,
                Value::Number(value),
            ) => number = Some(value as i64),
            // Signs in the lowest bit.
            (attribute::SINT32 | attribute::SINT64, Value::Number(value)) => {
                number = Some((value >> 1) as i64 ^ -((value & 1) as i64));
            }
            _ => {}
        }
    }
    Ok(number.map(|number| (name, number)))
}

/// A field's value on the wire.
enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Value<'_>)>, CutOff> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes).ok_or(CutOff)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes).ok_or(CutOff)?),
            1 => Value::Bytes(take(&mut bytes, 8).ok_or(CutOff)?),
            2 => Value::Bytes(delimited(&mut bytes).ok_or(CutOff)?),
            5 => Value::Bytes(take(&mut bytes, 4).ok_or(CutOff)?),
            _ => return Err(CutOff),
        };
        all.push((key >> 3, value));
    }
    Ok(all)
}

fn delimited<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let size = varint(bytes)?;
    take(bytes, size)
}

fn take<'b>(bytes: &mut &'b [u8], size: u64) -> Option<&'b [u8]> {
    let (one, rest) = bytes.split_at_checked(usize::try_from(size).ok()?)?;
    *bytes = rest;
    Some(one)
}

/// A number of seven bits a byte, at most ten of them.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
