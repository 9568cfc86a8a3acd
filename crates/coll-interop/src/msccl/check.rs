//! What only the whole algorithm tells: connections, dependencies, and, once its chunks are known to be in bounds, that
//! sends and receives match.

use super::model::{Algorithm, Block, Gpu, Step};
use crate::codes::{CONNECTION, DEPENDENCY, UNMATCHED};
use coll_base::{Diagnostic, Span};
use std::collections::BTreeMap;

/// How many messages of one kind are told; one fault often shows in many places.
const TOLD_MAX: usize = 6;

pub(super) fn check(algorithm: &Algorithm) -> Result<(), Vec<Diagnostic>> {
    let mut told = Vec::new();
    for (rank, gpu) in algorithm.gpus.iter().enumerate() {
        for (id, block) in gpu.blocks.iter().enumerate() {
            told.extend(channel(algorithm, rank, id, block));
            for (number, step) in block.steps.iter().enumerate() {
                told.extend(peers(rank, id, block, step));
                told.extend(dependency(gpu, (rank, id, number), step));
            }
        }
    }
    told.truncate(TOLD_MAX);
    if told.is_empty() { Ok(()) } else { Err(told) }
}

fn channel(algorithm: &Algorithm, rank: usize, id: usize, block: &Block) -> Option<Diagnostic> {
    if block.channel < algorithm.channels {
        return None;
    }
    let message = format!("thread block {id} of gpu {rank} is on channel {}", block.channel);
    let told = Diagnostic::new(CONNECTION, block.span, message)
        .expected(format!("`chan` below `nchannels`, which is {}", algorithm.channels))
        .found(format!("`chan` {}", block.channel))
        .help("mend `chan`, or raise `nchannels`");
    Some(told)
}

fn peers(rank: usize, id: usize, block: &Block, step: &Step) -> Option<Diagnostic> {
    let (attribute, does, to) = match () {
        _ if step.kind.sends() && block.send.is_none() => ("send", "sends", "to"),
        _ if step.kind.receives() && block.receive.is_none() => ("recv", "receives", "from"),
        _ => return None,
    };
    let word = step.kind.word();
    let message =
        format!("thread block {id} of gpu {rank} has a step `{word}` and no rank {to} which it {does}");
    let told = Diagnostic::new(CONNECTION, step.span, message)
        .also(block.span, format!("its `{attribute}` is -1"))
        .expected(format!("a rank in `{attribute}` of the thread block"))
        .found("-1, which is none")
        .help(format!("name the rank in `{attribute}`"));
    Some(told)
}

fn dependency(gpu: &Gpu, (rank, id, number): (usize, usize, usize), step: &Step) -> Option<Diagnostic> {
    let (on, at) = step.depends?;
    let wrong = |expected: String, found: String| {
        let message = format!("step {number} of thread block {id} of gpu {rank} waits for what is not there");
        Some(
            Diagnostic::new(DEPENDENCY, step.span, message)
                .expected(expected)
                .found(found)
                .help("mend `depid` and `deps`, or write -1 in both"),
        )
    };
    let Some(block) = gpu.blocks.get(on as usize) else {
        return wrong(
            format!("`depid` below {}, the number of the gpu's thread blocks", gpu.blocks.len()),
            format!("`depid` {on}"),
        );
    };
    if at as usize >= block.steps.len() {
        return wrong(
            format!("`deps` below {}, the number of steps of thread block {on}", block.steps.len()),
            format!("`deps` {at}"),
        );
    }
    if on as usize == id && at as usize >= number {
        return wrong(
            format!("a step before {number}, as steps of a thread block follow each other"),
            format!("step {at} of the thread block itself"),
        );
    }
    None
}

/// One end of a connection: the thread block, and its steps that send or receive.
struct End<'a> {
    id: usize,
    block: Span,
    steps: Vec<(usize, &'a Step)>,
}

/// Sender, receiver, channel.
type Connection = (u32, u32, u32);

/// Each connection has one thread block at each end; the nth send meets the nth receive, of the same count.
pub(super) fn connections(algorithm: &Algorithm) -> Vec<Diagnostic> {
    let (mut senders, mut receivers) = (BTreeMap::new(), BTreeMap::new());
    let mut told = Vec::new();
    for (rank, gpu) in (0..).zip(&algorithm.gpus) {
        for (id, block) in gpu.blocks.iter().enumerate() {
            let end = |takes: fn(&Step) -> bool| {
                let steps = block.steps.iter().enumerate().filter(|(_, step)| takes(step)).collect();
                End { id, block: block.span, steps }
            };
            if let Some(peer) = block.send {
                let end = end(|step| step.kind.sends());
                told.extend(add(&mut senders, (rank, peer, block.channel), end, "sends"));
            }
            if let Some(peer) = block.receive {
                let end = end(|step| step.kind.receives());
                told.extend(add(&mut receivers, (peer, rank, block.channel), end, "receives"));
            }
        }
    }
    if !told.is_empty() {
        return told;
    }
    let links: std::collections::BTreeSet<Connection> =
        senders.keys().chain(receivers.keys()).copied().collect();
    for link in links {
        told.extend(pair(algorithm, link, senders.get(&link), receivers.get(&link)));
        if told.len() >= TOLD_MAX {
            break;
        }
    }
    told
}

fn add<'a>(
    ends: &mut BTreeMap<Connection, End<'a>>,
    link: Connection,
    end: End<'a>,
    does: &str,
) -> Option<Diagnostic> {
    if end.steps.is_empty() {
        return None;
    }
    let (from, to, channel) = link;
    let (id, span) = (end.id, end.block);
    let known = ends.insert(link, end)?;
    let (rank, peer) =
        if does == "sends" { (from, format!("to rank {to}")) } else { (to, format!("from rank {from}")) };
    let message = format!(
        "thread blocks {} and {id} of gpu {rank} both {} {peer} on channel {channel}",
        known.id,
        does.trim_end_matches('s')
    );
    let told = Diagnostic::new(CONNECTION, span, message)
        .also(known.block, "the first")
        .expected("one thread block at each end of a connection, as messages pair up by their order")
        .found("two, whose order is left to chance")
        .help("give one of them another `chan`, or make one thread block of both");
    Some(told)
}

fn pair(
    algorithm: &Algorithm,
    (from, to, channel): Connection,
    sender: Option<&End<'_>>,
    receiver: Option<&End<'_>>,
) -> Option<Diagnostic> {
    let (sends, receives) =
        (sender.map_or(&[][..], |end| &end.steps), receiver.map_or(&[][..], |end| &end.steps));
    let ends = |told: Diagnostic| {
        told.note(format!("the connection is from rank {from} to rank {to} on channel {channel}"))
    };
    for (nth, ((s, send), (r, receive))) in sends.iter().zip(receives).enumerate() {
        if send.count != receive.count {
            let (a, b) = (sender.map_or(0, |end| end.id), receiver.map_or(0, |end| end.id));
            let message =
                format!("message {nth} from rank {from} to rank {to} on channel {channel} has two counts");
            let told = Diagnostic::new(UNMATCHED, receive.span, message)
                .also(send.span, format!("step {s} of thread block {a} of gpu {from} sends it"))
                .label(format!("step {r} of thread block {b} of gpu {to} receives it"))
                .expected(format!("`cnt` {}, as is sent", send.count))
                .found(format!("`cnt` {}", receive.count))
                .help("give both steps one `cnt`");
            return Some(ends(told));
        }
    }
    if sends.len() == receives.len() {
        return None;
    }
    let paired = sends.len().min(receives.len());
    let (rank, other, step, verb, lacks) = match sends.get(paired) {
        Some(&(number, step)) => (from, to, (number, step.span), "sends", "receives"),
        None => {
            let &(number, step) = receives.get(paired)?;
            (to, from, (number, step.span), "awaits", "sends")
        }
    };
    let id = if verb == "sends" { sender } else { receiver }.map_or(0, |end| end.id);
    let message = format!(
        "step {} of thread block {id} of gpu {rank} {verb} a message that rank {other} never {lacks}",
        step.0
    );
    debug_assert!(algorithm.ranks() > rank);
    let told = Diagnostic::new(UNMATCHED, step.1, message)
        .expected("as many receives as sends")
        .found(format!("{} sends and {} receives", sends.len(), receives.len()))
        .help("add the other side, or take this step away");
    Some(ends(told))
}
