//! Messages: the nth send of a to b on a channel meets the nth receive of b from a on it.

use super::codes::{SIDES_DIFFER, UNPAIRED};
use super::whole::{NONE, OpKey, TOLD_MAX, Whole};
use coll_base::Diagnostic;
use coll_plan::Region;

/// A message.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) send: OpKey,
    pub(super) receive: OpKey,
    /// The first message of its connection; the others lie between, in order.
    pub(super) first: u32,
}

/// All messages, connection by connection.
pub(super) struct Messages {
    pub(super) list: Vec<Message>,
    /// The message of each operation, or [`NONE`].
    of: Vec<u32>,
}

impl Messages {
    /// The message's place in the list, of a send or receive.
    pub(super) fn at(&self, key: OpKey) -> usize {
        self.of[key as usize] as usize
    }

    /// The message of a send or receive.
    pub(super) fn of(&self, key: OpKey) -> Message {
        self.list[self.at(key)]
    }
}

/// `(from, to, channel)` and the operation.
type End = ((u32, u32, u32), OpKey);

/// Pairs all messages, or tells which do not pair up.
pub(super) fn pair(whole: &Whole) -> Result<Messages, Vec<Diagnostic>> {
    let (sends, receives) = ends(whole);
    let mut messages = Messages { list: Vec::with_capacity(sends.len()), of: vec![NONE; whole.op_count()] };
    let mut wrong = Vec::new();
    let (mut s, mut r) = (&sends[..], &receives[..]);
    while let Some(link) = s.first().into_iter().chain(r.first()).map(|end| end.0).min() {
        let sent = take(&mut s, link);
        let received = take(&mut r, link);
        let first = messages.list.len() as u32;
        for (&(_, send), &(_, receive)) in sent.iter().zip(received) {
            messages.of[send as usize] = messages.list.len() as u32;
            messages.of[receive as usize] = messages.list.len() as u32;
            messages.list.push(Message { send, receive, first });
            if wrong.len() < TOLD_MAX {
                wrong.extend(differ(whole, send, receive));
            }
        }
        if sent.len() != received.len() && wrong.len() < TOLD_MAX {
            wrong.push(unpaired(whole, link, sent, received));
        }
    }
    if wrong.is_empty() { Ok(messages) } else { Err(wrong) }
}

/// Both ends of all messages, sorted by connection and then by operation.
fn ends(whole: &Whole) -> (Vec<End>, Vec<End>) {
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for part in &whole.plan.ranks {
        let start = sends.len();
        for (op, key) in part.ops.iter().zip(whole.base(part.rank)..) {
            if let Some((peer, channel)) = op.action.sends_to() {
                sends.push(((part.rank, peer, channel), key));
            } else if let Some((peer, channel)) = op.action.receives_from() {
                receives.push(((peer, part.rank, channel), key));
            }
        }
        sends[start..].sort_unstable();
    }
    receives.sort_unstable();
    (sends, receives)
}

/// Takes one connection's ends off the front.
fn take<'a>(rest: &mut &'a [End], link: (u32, u32, u32)) -> &'a [End] {
    let count = rest.iter().take_while(|end| end.0 == link).count();
    let (taken, after) = rest.split_at(count);
    *rest = after;
    taken
}

fn unpaired(whole: &Whole, link: (u32, u32, u32), sent: &[End], received: &[End]) -> Diagnostic {
    let (from, to, channel) = link;
    let paired = sent.len().min(received.len());
    let (one, other, doer, waiter) = if sent.len() > paired {
        (sent[paired].1, "receive", from, to)
    } else {
        (received[paired].1, "send", to, from)
    };
    let verb = if sent.len() > paired { "sends" } else { "awaits" };
    Diagnostic::unplaced(
        UNPAIRED,
        format!("rank {doer} {verb} a message for which rank {waiter} has no {other}"),
    )
    .expected(format!("as many sends of rank {from} to rank {to} on channel {channel} as receives"))
    .found(format!("{} sends and {} receives", sent.len(), received.len()))
    .note(format!("the first without its other side is {}", whole.words(one)))
    .help(format!("give rank {waiter} the {other}, or take this operation away"))
}

fn differ(whole: &Whole, send: OpKey, receive: OpKey) -> Option<Diagnostic> {
    let sent = whole.part(send).regions(whole.op(send).source);
    let stored = whole.part(receive).regions(whole.op(receive).target);
    let shape = |r: &Region| (r.class, r.low, r.high);
    let same = sent.len() == stored.len() && sent.iter().zip(stored).all(|(a, b)| shape(a) == shape(b));
    if same {
        return None;
    }
    let at = sent.iter().zip(stored).position(|(a, b)| shape(a) != shape(b));
    let words = |list: &[Region]| match at {
        Some(at) => {
            format!("region {at} is of class {}, pieces {}..{}", list[at].class, list[at].low, list[at].high)
        }
        None => format!("{} regions", list.len()),
    };
    let told = Diagnostic::unplaced(SIDES_DIFFER, "a message is stored as something else than was sent")
        .expected(format!("what is sent: {}", words(sent)))
        .found(format!("what is stored: {}", words(stored)))
        .note(format!("sent by {}", whole.words(send)))
        .note(format!("stored by {}", whole.words(receive)))
        .help("let both sides list the same pieces of blocks of the same class, in the same order");
    Some(told)
}
