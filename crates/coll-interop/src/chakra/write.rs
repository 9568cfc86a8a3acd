//! From a plan to traces. Only the few fields that are needed are written, so the wire form is made here: numbers of seven bits a
//! byte, fields as `number << 3 | type`.

use super::{NodeType, attribute, node as field};
use crate::Sizes;
use crate::refusal::whole;
use crate::timing::{Doing, Work, work};
use coll_base::Diagnostic;
use coll_plan::Plan;

/// The schema's version, as traces name it.
const VERSION: &str = "0.0.4";

/// Writes a plan at some sizes: a trace for each rank. A message of no bytes has one, for astra-sim's networks ask for some. Local
/// work is a node of computation, with the bytes that it reads and writes as `tensor_size`, and of a reduction an operation for
/// each element; a copy has one, as astra-sim divides by the time that operations take.
///
/// # Errors
/// If it is one rank's part alone.
pub fn write(plan: &Plan, sizes: &Sizes) -> Result<Vec<Vec<u8>>, Box<Diagnostic>> {
    whole(plan, "Chakra")?;
    let trace = |(rank, work): (u32, &Vec<Work>)| trace(rank, work, sizes);
    Ok((0..).zip(&work(plan, sizes)).map(trace).collect())
}

fn trace(rank: u32, work: &[Work], sizes: &Sizes) -> Vec<u8> {
    let mut metadata = Message::default();
    metadata.bytes(1, VERSION.as_bytes());
    let mut trace = Message::default();
    trace.delimited(&metadata);
    for (id, one) in (0..).zip(work) {
        trace.delimited(&node(rank, id, one, sizes));
    }
    trace.bytes
}

fn node(rank: u32, id: u64, work: &Work, sizes: &Sizes) -> Message {
    let mut node = Message::default();
    let (kind, name) = match work.doing {
        Doing::Send { peer, tag, .. } => (NodeType::Send, format!("send_{rank}_{peer}_{tag}")),
        Doing::Receive { peer, tag, .. } => (NodeType::Receive, format!("recv_{peer}_{rank}_{tag}")),
        Doing::Copy { .. } => (NodeType::Compute, format!("copy_{rank}_{id}")),
        Doing::Reduce { .. } => (NodeType::Compute, format!("reduce_{rank}_{id}")),
    };
    node.number(field::ID, id);
    node.bytes(field::NAME, name.as_bytes());
    node.number(field::TYPE, kind as u64);
    let mut after = Message::default();
    work.after.iter().for_each(|&after_id| after.varint(u64::from(after_id)));
    if !work.after.is_empty() {
        node.bytes(field::DATA, &after.bytes);
    }
    node.bytes(field::ATTRIBUTE, &named("is_cpu_op", Value::Bool(false)).bytes);
    match work.doing {
        Doing::Send { peer, tag, size_bytes } => communication(&mut node, (rank, peer), tag, size_bytes),
        Doing::Receive { peer, tag, size_bytes } => communication(&mut node, (peer, rank), tag, size_bytes),
        Doing::Copy { size_bytes } => computation(&mut node, 1, 2 * size_bytes),
        Doing::Reduce { size_bytes } => {
            computation(&mut node, size_bytes / sizes.element_size_bytes.max(1), 3 * size_bytes);
        }
    }
    node
}

fn communication(node: &mut Message, (from, to): (u32, u32), tag: u64, size_bytes: u64) {
    node.bytes(field::ATTRIBUTE, &named("comm_size", Value::Int64(size_bytes.max(1))).bytes);
    node.bytes(field::ATTRIBUTE, &named("comm_src", Value::Int32(from)).bytes);
    node.bytes(field::ATTRIBUTE, &named("comm_dst", Value::Int32(to)).bytes);
    node.bytes(field::ATTRIBUTE, &named("comm_tag", Value::Int32(tag as u32)).bytes);
}

fn computation(node: &mut Message, operations: u64, size_bytes: u64) {
    node.bytes(field::ATTRIBUTE, &named("num_ops", Value::Int64(operations)).bytes);
    node.bytes(field::ATTRIBUTE, &named("tensor_size", Value::Uint64(size_bytes)).bytes);
}

/// The value of an attribute; the variant decides on the field.
enum Value {
    Int32(u32),
    Int64(u64),
    Uint64(u64),
    Bool(bool),
}

fn named(name: &str, value: Value) -> Message {
    let mut message = Message::default();
    message.bytes(attribute::NAME, name.as_bytes());
    match value {
        Value::Int32(value) => message.number(attribute::INT32, u64::from(value)),
        Value::Int64(value) => message.number(attribute::INT64, value),
        Value::Uint64(value) => message.number(attribute::UINT64, value),
        Value::Bool(value) => message.number(attribute::BOOL, u64::from(value)),
    }
    message
}

/// A message of protocol buffers, as far as it is written.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn delimited(&mut self, message: &Message) {
        self.varint(message.bytes.len() as u64);
        self.bytes.extend_from_slice(&message.bytes);
    }
}
