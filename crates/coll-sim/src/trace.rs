//! A run as a trace that `chrome://tracing` and Perfetto open (Google, *Trace Event Format*): a process for each rank, a
//! thread for each lane, a slice for each operation with the numbers that it has in the plan, an arrow for each message.

use crate::SimError;
use crate::predict::Prediction;
use crate::table::Parts;
use coll_plan::{Action, Op, Plan};
use coll_topo::Network;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The trace of a prediction whose timeline was kept.
///
/// # Errors
/// Plans that are not those of the prediction.
pub fn trace(plans: &[&Plan], network: &Network, prediction: &Prediction) -> Result<String, SimError> {
    let device = |&device: &u32| network.devices.get(device as usize).map(|device| device.name.as_str());
    let places: Vec<Option<&str>> = prediction.devices.iter().map(device).collect();
    trace_of(plans, &places, &prediction.timeline)
}

/// The trace of any run of a plan. `places` says on what each rank ran, as far as that is known; `timeline` has when operations
/// began and ended, by rank and operation, in microseconds.
///
/// # Errors
/// Plans that are not whole.
pub fn trace_of(
    plans: &[&Plan],
    places: &[Option<&str>],
    timeline: &[Vec<(f64, f64)>],
) -> Result<String, SimError> {
    let parts = Parts::new(plans)?;
    let mut text = String::from("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n");
    let mut arrows: BTreeMap<(u32, u32, u32), [Vec<Arrow>; 2]> = BTreeMap::new();
    for (rank, times) in (0..parts.world()).zip(timeline) {
        let part = parts.part(rank);
        let place = places.get(rank as usize).copied().flatten();
        let name = place.map_or(String::new(), |place| format!(" on {place}"));
        meta(&mut text, "process_name", rank, None, &format!("rank {rank}{name}"));
        for (lane, ops) in (0u32..).zip(&part.lanes) {
            meta(&mut text, "thread_name", rank, Some(lane), &format!("lane {lane}"));
            for op in ops.start..ops.end {
                let what = &part.ops[op as usize];
                let Some(&(begin, end)) = times.get(op as usize) else { continue };
                slice(&mut text, &parts, (rank, lane, op), what, (begin, end));
                let ends = match what.action {
                    Action::Send { peer, channel } => Some(((rank, peer, channel), 0, begin)),
                    Action::Recv { peer, channel } | Action::RecvReduce { peer, channel, .. } => {
                        Some(((peer, rank, channel), 1, end))
                    }
                    _ => None,
                };
                if let Some((key, side, at)) = ends {
                    arrows.entry(key).or_default()[side].push(Arrow { rank, lane, op, at });
                }
            }
        }
    }
    let mut number = 0u64;
    for [mut sends, mut receives] in arrows.into_values() {
        // Of each connection the nth of one side is the nth of the other, by their numbers in the plan.
        [&mut sends, &mut receives].into_iter().for_each(|side| side.sort_by_key(|arrow| arrow.op));
        for (send, receive) in sends.iter().zip(&receives) {
            number += 1;
            arrow(&mut text, number, "s", send);
            arrow(&mut text, number, "f\", \"bp\": \"e", receive);
        }
    }
    // The last event has no comma after it.
    text.truncate(text.trim_end().trim_end_matches(',').len());
    Ok(text + "\n]}\n")
}

/// One end of a message.
struct Arrow {
    rank: u32,
    lane: u32,
    op: u32,
    at: f64,
}

fn meta(text: &mut String, what: &str, rank: u32, lane: Option<u32>, name: &str) {
    let lane = lane.map_or(String::new(), |lane| format!(", \"tid\": {lane}"));
    let _ = writeln!(
        text,
        "{{\"name\": \"{what}\", \"ph\": \"M\", \"pid\": {rank}{lane}, \"args\": {{\"name\": {}}}}},",
        quoted(name)
    );
}

fn slice(
    text: &mut String,
    parts: &Parts,
    (rank, lane, op): (u32, u32, u32),
    what: &Op,
    (begin, end): (f64, f64),
) {
    let (kind, message) = kind(what.action);
    let name = words(what.action);
    let _ = write!(
        text,
        "{{\"name\": {}, \"cat\": \"{kind}\", \"ph\": \"X\", \"ts\": {begin}, \"dur\": {}, \"pid\": {rank}, \
         \"tid\": {lane}, \"args\": {{\"rank\": {rank}, \"lane\": {lane}, \"op\": {op}, \"step\": {}",
        quoted(&name),
        end - begin,
        what.step
    );
    if let Some((_, peer, channel)) = message {
        let _ = write!(text, ", \"peer\": {peer}, \"channel\": {channel}");
    }
    if let Some(line) = parts.line(rank, what) {
        let _ = write!(text, ", \"file\": {}, \"line\": {}", quoted(&line.file), line.line);
    }
    text.push_str("}},\n");
}

/// What an operation does, in two words or three: `send to r1`.
pub(crate) fn words(action: Action) -> String {
    let (kind, message) = kind(action);
    message.map_or(kind.to_string(), |(way, peer, _)| format!("{kind} {way} r{peer}"))
}

/// The word for what an operation does, and of a message which way it goes, the peer and the channel.
fn kind(action: Action) -> (&'static str, Option<(&'static str, u32, u32)>) {
    match action {
        Action::Send { peer, channel } => ("send", Some(("to", peer, channel))),
        Action::Recv { peer, channel } => ("recv", Some(("from", peer, channel))),
        Action::RecvReduce { peer, channel, .. } => ("recv_reduce", Some(("from", peer, channel))),
        Action::Copy => ("copy", None),
        Action::Reduce { .. } => ("reduce", None),
    }
}

fn arrow(text: &mut String, number: u64, phase: &str, Arrow { rank, lane, at, .. }: &Arrow) {
    let _ = writeln!(
        text,
        "{{\"name\": \"message\", \"cat\": \"message\", \"ph\": \"{phase}\", \"id\": {number}, \"ts\": {at}, \
         \"pid\": {rank}, \"tid\": {lane}}},"
    );
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
