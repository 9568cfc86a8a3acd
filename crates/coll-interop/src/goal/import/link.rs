//! Messages: which send meets which receive.

use super::rank::Needs;
use super::{Schedule, TOLD_MAX};
use crate::codes::{TAGS, UNMATCHED, UNSUPPORTED};
use crate::goal::GoalKind;
use coll_base::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// An operation: its rank, and which of the rank's it is.
pub(super) type End = (u32, u32);

/// A message.
pub(super) struct Message {
    pub(super) send: End,
    pub(super) receive: End,
    /// Which of the channels between the two: one for each tag.
    pub(super) channel: u32,
    pub(super) size_bytes: u64,
    /// The send, and the receive, before it on the same channel.
    pub(super) send_after: Option<u32>,
    pub(super) receive_after: Option<u32>,
}

/// Sender, receiver, tag.
type Link = (u32, u32, u32);

impl Schedule {
    /// Pairs all messages, link by link, or tells which have no other side.
    pub(super) fn messages(&self, needs: &[Needs]) -> Result<Vec<Message>, Vec<Diagnostic>> {
        let (mut sends, mut receives): (BTreeMap<Link, Vec<u32>>, BTreeMap<Link, Vec<u32>>) =
            Default::default();
        for (rank, needs) in (0..).zip(needs) {
            for &op in &needs.posted {
                match self.goal.ranks[rank as usize].ops[op as usize].kind {
                    GoalKind::Send { to, tag, .. } => sends.entry((rank, to, tag)).or_default().push(op),
                    GoalKind::Recv { from: Some(from), tag: Some(tag), .. } => {
                        receives.entry((from, rank, tag)).or_default().push(op);
                    }
                    GoalKind::Recv { .. } => return Err(vec![self.any((rank, op))]),
                    GoalKind::Calc { .. } => {}
                }
            }
        }
        let links: BTreeSet<Link> = sends.keys().chain(receives.keys()).copied().collect();
        let mut channels: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let (mut messages, mut told) = (Vec::new(), Vec::new());
        for link in links {
            let list = |ends: &BTreeMap<Link, Vec<u32>>| ends.get(&link).cloned().unwrap_or_default();
            let (out, into) = (list(&sends), list(&receives));
            let next = channels.entry((link.0, link.1)).or_default();
            let channel = *next;
            *next += 1;
            told.extend(self.unpaired(link, &out, &into));
            let earlier = |list: &[u32], at: usize| at.checked_sub(1).map(|before| list[before]);
            for (at, (&send, &receive)) in out.iter().zip(&into).enumerate() {
                let (send, receive) = ((link.0, send), (link.1, receive));
                told.extend(self.unlike(send, receive));
                messages.push(Message {
                    send,
                    receive,
                    channel,
                    size_bytes: self.size(send),
                    send_after: earlier(&out, at),
                    receive_after: earlier(&into, at),
                });
            }
        }
        told.truncate(TOLD_MAX);
        if told.is_empty() { Ok(messages) } else { Err(told) }
    }

    /// Messages of one tag whose sizes differ, and whose order nothing settles: how many pairs, and the first few.
    pub(super) fn unordered(&self, needs: &[Needs], messages: &[Message]) -> (u64, Vec<Diagnostic>) {
        let (mut count, mut told) = (0, Vec::new());
        for group in
            messages.chunk_by(|a, b| (a.send.0, a.receive.0, a.channel) == (b.send.0, b.receive.0, b.channel))
        {
            if group.iter().all(|message| message.size_bytes == group[0].size_bytes) {
                continue;
            }
            for two in group.windows(2) {
                for (first, second) in [(two[0].send, two[1].send), (two[0].receive, two[1].receive)] {
                    if needs[first.0 as usize].is_after(second.1, first.1) {
                        continue;
                    }
                    count += 1;
                    if told.len() < TOLD_MAX {
                        told.push(self.chance(first, second));
                    }
                }
            }
        }
        (count, told)
    }

    fn size(&self, (rank, op): End) -> u64 {
        match self.goal.ranks[rank as usize].ops[op as usize].kind {
            GoalKind::Send { bytes, .. } | GoalKind::Recv { bytes, .. } => bytes,
            GoalKind::Calc { .. } => 0,
        }
    }

    fn any(&self, end: End) -> Diagnostic {
        let message = "a receive of any rank or any tag takes what comes first, which no plan can say";
        Diagnostic::new(UNSUPPORTED, self.span(end), message)
            .expected("a rank after `from`, and a `tag` from 0 on")
            .found("-1")
            .help("name the sender and the tag; `collc sim` runs the file as it is")
    }

    fn unpaired(&self, (from, to, tag): Link, sends: &[u32], receives: &[u32]) -> Option<Diagnostic> {
        let paired = sends.len().min(receives.len());
        let (end, lacks) = match (sends.get(paired), receives.get(paired)) {
            (Some(&send), _) => ((from, send), format!("a message that rank {to} never receives")),
            (None, Some(&receive)) => ((to, receive), format!("a receive of what rank {from} never sends")),
            (None, None) => return None,
        };
        let told = Diagnostic::new(UNMATCHED, self.span(end), lacks)
            .expected(format!("as many sends of rank {from} to rank {to} with tag {tag} as receives"))
            .found(format!("{} sends and {} receives", sends.len(), receives.len()))
            .help("add the other side, or take this one away");
        Some(told)
    }

    fn unlike(&self, send: End, receive: End) -> Option<Diagnostic> {
        let (sent, received) = (self.size(send), self.size(receive));
        let told = || {
            Diagnostic::new(UNMATCHED, self.span(receive), "a receive of another size than what is sent")
                .also(self.span(send), "it is sent here")
                .expected(format!("{sent} bytes"))
                .found(format!("{received} bytes"))
                .help("give both one size")
        };
        (sent != received).then(told)
    }

    fn chance(&self, first: End, second: End) -> Diagnostic {
        let (a, b) = (self.size(first), self.size(second));
        Diagnostic::new(
            TAGS,
            self.span(second),
            "two messages of one tag, of which it is left to chance which is first",
        )
        .also(self.span(first), "the other of them")
        .expected(
            "a `requires` between them, or another tag: messages of one tag meet their receives in order",
        )
        .found(format!("{a} and {b} bytes, and nothing that orders them"))
        .help("give one of them another `tag` at both ends")
    }
}

impl Needs {
    /// Whether an operation starts only once another is over.
    fn is_after(&self, op: u32, earlier: u32) -> bool {
        let (mut open, mut seen) = (vec![op], BTreeSet::new());
        while let Some(at) = open.pop() {
            for &on in self.after.get(&at).into_iter().flatten() {
                if on == earlier {
                    return true;
                }
                if seen.insert(on) {
                    open.push(on);
                }
            }
        }
        false
    }
}
