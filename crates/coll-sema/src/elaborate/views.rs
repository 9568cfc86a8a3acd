//! Which chunks a view chooses, in row-major order. Chunks of a buffer are numbered through: block by block, and in
//! each block through its grid; slots of a scratch likewise.

use super::frame::Frame;
use super::{Elaborator, TRANSFERS_MAX};
use crate::codes;
use crate::eval::Fault;
use crate::resolved::{Index, Range, Storage, View};
use coll_base::{Diagnostic, Span};

/// The chunks of a view.
#[derive(Clone)]
pub(super) struct Selection {
    pub(super) storage: Storage,
    pub(super) cells: Cells,
}

/// Numbers of chunks.
#[derive(Clone)]
pub(super) enum Cells {
    /// `first`, `first + 1`, …
    Run {
        first: u64,
        count: u64,
    },
    List(Vec<u64>),
}

impl Cells {
    pub(super) fn len(&self) -> u64 {
        match self {
            Cells::Run { count, .. } => *count,
            Cells::List(list) => list.len() as u64,
        }
    }

    pub(super) fn at(&self, i: u64) -> u64 {
        match self {
            Cells::Run { first, .. } => first + i,
            Cells::List(list) => list[i as usize],
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|i| self.at(i))
    }
}

impl<'m> Elaborator<'m> {
    pub(super) fn select(&mut self, frame: &mut Frame<'m>, view: &View) -> Result<Selection, Fault> {
        let extents = frame.extents(view.storage);
        let mut first = 0;
        let mut given = view.index.iter().zip(extents.iter()).enumerate().peekable();
        while let Some(&(_, (Index::One(expr), &extent))) = given.peek() {
            let value = self.eval(frame, expr)?;
            let chosen = self.in_extent(frame, view, value, extent, expr.span)?;
            first = first * u64::from(extent) + chosen;
            given.next();
        }
        let cells = match given.next() {
            None => {
                let count = product(&extents[view.index.len()..]);
                Cells::Run { first: first * count, count }
            }
            Some((at, (Index::Range(range), &extent))) if at + 1 == view.index.len() => {
                let (low, end) = self.run(frame, view, range, extent)?;
                let rest = product(&extents[view.index.len()..]);
                Cells::Run { first: (first * u64::from(extent) + low) * rest, count: (end - low) * rest }
            }
            Some((at, _)) => Cells::List(self.list(frame, view, first, at)?),
        };
        Ok(Selection { storage: view.storage, cells })
    }

    /// The general case: from dimension `at` on, every combination of what each dimension chooses.
    fn list(&mut self, frame: &mut Frame<'m>, view: &View, first: u64, at: usize) -> Result<Vec<u64>, Fault> {
        let extents = frame.extents(view.storage);
        let mut cells = vec![first];
        for (dimension, &extent) in extents.iter().enumerate().skip(at) {
            let choices = match view.index.get(dimension) {
                None => (0..u64::from(extent)).collect(),
                Some(Index::One(expr)) => {
                    let value = self.eval(frame, expr)?;
                    vec![self.in_extent(frame, view, value, extent, expr.span)?]
                }
                Some(Index::Range(range)) => {
                    let (low, end) = self.run(frame, view, range, extent)?;
                    (low..end).collect::<Vec<u64>>()
                }
                Some(Index::For(all)) => {
                    let values = self.machine.comprehension(all, &frame.globals, &mut frame.locals)?;
                    let check = |value| self.in_extent(frame, view, value, extent, all.value.span);
                    values.into_iter().map(check).collect::<Result<Vec<u64>, Fault>>()?
                }
            };
            if cells.len().saturating_mul(choices.len()) > TRANSFERS_MAX {
                return Err(too_many(view.span));
            }
            let widen = |&cell: &u64| choices.iter().map(move |choice| cell * u64::from(extent) + choice);
            cells = cells.iter().flat_map(widen).collect();
        }
        Ok(cells)
    }

    fn run(
        &mut self,
        frame: &Frame<'m>,
        view: &View,
        range: &Range,
        extent: u32,
    ) -> Result<(u64, u64), Fault> {
        let (low, end) = self.machine.bounds(range, frame.values())?;
        if end < low {
            let message = format!("{}[{low}..{end}] runs backwards", frame.name(view.storage));
            let diagnostic = Diagnostic::new(codes::BACKWARD_RANGE, range.span, message);
            return Err(Box::new(
                diagnostic.help("a view goes up; where there may be nothing to move, write `where`"),
            ));
        }
        if low == end && (0..=i64::from(extent)).contains(&low) {
            return Ok((low as u64, low as u64));
        }
        let low = self.in_extent(frame, view, low, extent, range.span)?;
        let last = self.in_extent(frame, view, end - 1, extent, range.span)?;
        Ok((low, last + 1))
    }

    fn in_extent(
        &self,
        frame: &Frame<'m>,
        view: &View,
        value: i64,
        extent: u32,
        span: Span,
    ) -> Result<u64, Fault> {
        if (0..i64::from(extent)).contains(&value) {
            return Ok(value as u64);
        }
        let name = frame.name(view.storage);
        let what = match view.storage {
            Storage::Scratch(_) => "slots",
            Storage::Buffer(buffer) => {
                let first = view.index.first().is_some_and(|index| index_span_covers(index, span));
                match frame.collective.buffers[buffer as usize].blocks.is_some() && first {
                    true => "blocks",
                    false => "chunks",
                }
            }
        };
        let message = match view.index.len() {
            1 => format!("index out of range: {name}[{value}] of {extent} {what}"),
            _ => format!("index out of range: {value} in a dimension of {name} with {extent} {what}"),
        };
        let diagnostic = Diagnostic::new(codes::INDEX_RANGE, span, message);
        Err(Box::new(diagnostic.expected(format!("an index of 0..{extent}")).found(value.to_string())))
    }
}

fn index_span_covers(index: &Index, span: Span) -> bool {
    match index {
        Index::One(expr) => expr.span == span,
        Index::Range(range) => range.span == span,
        Index::For(all) => all.value.span == span,
    }
}

fn product(extents: &[u32]) -> u64 {
    extents.iter().map(|&extent| u64::from(extent)).product()
}

pub(super) fn too_many(span: Span) -> Fault {
    let diagnostic = Diagnostic::new(codes::TOO_LARGE, span, format!("more than {TRANSFERS_MAX} transfers"));
    Box::new(diagnostic.help("try it with fewer ranks or fewer chunks"))
}
