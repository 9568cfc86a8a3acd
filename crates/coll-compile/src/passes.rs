//! Passes over a program: each takes a [`Grouped`] program and leaves one that means the same.

pub(crate) mod drop_dead;
pub(crate) mod merge;
pub(crate) mod slice;

use coll_ir::{Program, Transfer, print, print_transfer};
use std::borrow::Cow;
use std::fmt::Write;

/// A program, and which of its transfers travel in one message.
#[derive(Clone, Debug)]
pub struct Grouped<'a> {
    /// The program.
    pub program: Cow<'a, Program>,
    /// For each transfer, the number of its message. Transfers with one number are of one step, one kind, and from
    /// one rank to one other; numbers ascend with the first transfer of each step, and where several reduce into
    /// one piece in one step they ascend with those too.
    pub message: Vec<u32>,
}

impl<'a> Grouped<'a> {
    /// Every transfer in a message of its own.
    pub fn new(program: &'a Program) -> Grouped<'a> {
        let message = (0..program.transfers.len() as u32).collect();
        Grouped { program: Cow::Borrowed(program), message }
    }

    /// The program's text, and after it the messages that hold more than one transfer.
    pub fn print(&self) -> String {
        let mut text = print(&self.program);
        let mut by_message: Vec<(u32, usize)> = self.message.iter().copied().zip(0..).collect();
        by_message.sort_unstable();
        for message in by_message.chunk_by(|a, b| a.0 == b.0).filter(|message| message.len() > 1) {
            let first = &self.program.transfers[message[0].1];
            let (step, from, to) = (first.step, first.source.rank, first.target.rank);
            let _ = writeln!(text, "\nmessage of step {step} from {from} to {to}");
            for &(_, transfer) in message {
                let _ =
                    writeln!(text, "  {}", print_transfer(&self.program, &self.program.transfers[transfer]));
            }
        }
        text
    }
}

/// Numbers messages anew, without gaps, in the same order.
fn renumber(message: &mut [u32]) {
    let count = message.iter().max().map_or(0, |&last| last as usize + 1);
    let mut new = vec![0u32; count];
    for &old in message.iter() {
        new[old as usize] = 1;
    }
    let mut next = 0;
    for entry in &mut new {
        next += std::mem::replace(entry, next);
    }
    for entry in message {
        *entry = new[*entry as usize];
    }
}

/// The transfers of each step, as ranges, in order.
fn steps(transfers: &[Transfer]) -> impl DoubleEndedIterator<Item = std::ops::Range<usize>> {
    let mut start = 0;
    let runs = transfers.chunk_by(|a, b| a.step == b.step).map(move |run| {
        start += run.len();
        start - run.len()..start
    });
    runs.collect::<Vec<_>>().into_iter()
}
