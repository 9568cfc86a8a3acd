//! Lists of ranks: members distinct, and in range.

use super::Elaborator;
use super::frame::Frame;
use crate::codes;
use crate::eval::Fault;
use crate::resolved::{Expr, Group, Range};
use coll_base::{Diagnostic, Span};

impl<'m> Elaborator<'m> {
    /// The positions of a group, in its order; none is all of them.
    pub(super) fn group(&mut self, frame: &mut Frame<'m>, group: &Option<Group>) -> Result<Vec<u32>, Fault> {
        let (listed, span) = match group {
            None => return Ok((0..frame.ranks() as u32).collect()),
            Some(Group::Range(range)) => {
                // Checked before the list is made, as it may be long.
                let (low, end) = self.range_of_ranks(frame, range)?;
                return Ok((low..end).collect());
            }
            Some(Group::List(members)) => {
                let listed = members.iter().map(|expr| {
                    let value = self.eval(frame, expr)?;
                    Ok((member(value, frame.ranks(), expr.span)?, expr.span))
                });
                return distinct(listed.collect::<Result<Vec<_>, Fault>>()?, frame.ranks());
            }
            Some(Group::For(all)) => {
                let listed = self.machine.comprehension(all, &frame.globals, &mut frame.locals)?;
                (listed, all.value.span)
            }
        };
        let check = |value| Ok((member(value, frame.ranks(), span)?, span));
        distinct(listed.into_iter().map(check).collect::<Result<Vec<_>, Fault>>()?, frame.ranks())
    }

    /// The first position of a range and the one after its last; equal if it has none.
    pub(super) fn range_of_ranks(&mut self, frame: &Frame<'m>, range: &Range) -> Result<(u32, u32), Fault> {
        let (low, end) = self.machine.bounds(range, frame.values())?;
        if low >= end {
            return Ok((0, 0));
        }
        let first = member(low, frame.ranks(), range.low.span)?;
        let last = member(end - 1, frame.ranks(), range.high.span)?;
        Ok((first, last + 1))
    }

    /// The position that an expression names.
    pub(super) fn position(&mut self, frame: &Frame<'m>, expr: &Expr) -> Result<u32, Fault> {
        let value = self.eval(frame, expr)?;
        check_rank(value, frame.ranks(), expr.span)
    }
}

/// A member of a group.
fn member(value: i64, ranks: i64, span: Span) -> Result<u32, Fault> {
    let help = |fault: Fault| {
        Box::new(fault.help(format!("a group is of the ranks 0..{ranks}; `0..n` is all of them")))
    };
    check_rank(value, ranks, span).map_err(help)
}

pub(super) fn check_rank(value: i64, ranks: i64, span: Span) -> Result<u32, Fault> {
    if (0..ranks).contains(&value) {
        return Ok(value as u32);
    }
    let message = format!("rank {value} is not among the ranks 0..{ranks}");
    let diagnostic = Diagnostic::new(codes::RANK_RANGE, span, message);
    let help = "to leave a transfer out, write `where`; to go round, write `% n`";
    Err(Box::new(diagnostic.expected(format!("a rank of 0..{ranks}")).found(value.to_string()).help(help)))
}

fn distinct(listed: Vec<(u32, Span)>, ranks: i64) -> Result<Vec<u32>, Fault> {
    let mut seen = vec![false; ranks as usize];
    for &(member, span) in &listed {
        if std::mem::replace(&mut seen[member as usize], true) {
            let message = format!("rank {member} is twice in this group");
            let diagnostic = Diagnostic::new(codes::MEMBER_TWICE, span, message);
            return Err(Box::new(diagnostic.help("the members of a group are distinct")));
        }
    }
    Ok(listed.into_iter().map(|(member, _)| member).collect())
}
