//! The types of steps, as data: what each reads, writes, receives and sends.

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Send,
    Receive,
    ReceiveCopySend,
    ReceiveReduceSend,
    ReceiveReduceCopy,
    ReceiveReduceCopySend,
    Copy,
    Reduce,
    Nothing,
}

use Kind::*;

/// Every type with its word.
const WORDS: [(Kind, &str); 9] = [
    (Send, "s"),
    (Receive, "r"),
    (ReceiveCopySend, "rcs"),
    (ReceiveReduceSend, "rrs"),
    (ReceiveReduceCopy, "rrc"),
    (ReceiveReduceCopySend, "rrcs"),
    (Copy, "cpy"),
    (Reduce, "re"),
    (Nothing, "nop"),
];

impl Kind {
    pub(crate) fn of(word: &str) -> Option<Kind> {
        WORDS.iter().find(|(_, known)| *known == word).map(|&(kind, _)| kind)
    }

    pub(crate) fn word(self) -> &'static str {
        WORDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// All words, for messages.
    pub(crate) fn words() -> String {
        WORDS.iter().map(|(_, word)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn sends(self) -> bool {
        matches!(self, Send | ReceiveCopySend | ReceiveReduceSend | ReceiveReduceCopySend)
    }

    pub(crate) fn receives(self) -> bool {
        matches!(
            self,
            Receive | ReceiveCopySend | ReceiveReduceSend | ReceiveReduceCopy | ReceiveReduceCopySend
        )
    }

    /// It reads the chunks that `srcbuf` and `srcoff` name.
    pub(crate) fn reads(self) -> bool {
        matches!(self, Send | ReceiveReduceSend | ReceiveReduceCopy | ReceiveReduceCopySend | Copy | Reduce)
    }

    /// It writes the chunks that `dstbuf` and `dstoff` name.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Send | ReceiveReduceSend | Nothing)
    }

    /// One that receives and sends on: it holds its outgoing slot before it frees the incoming one.
    pub(crate) fn is_fused(self) -> bool {
        self.sends() && self.receives()
    }
}
