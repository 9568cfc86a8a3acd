//! Units and bodies onto lines.

use super::marks::{Mark, gap};
use super::{Body, Unit};
use crate::scan::{Kind, Scan};

/// Columns that a line may take.
const WIDTH: usize = 100;
const INDENT: usize = 4;
/// How much further in a broken line goes on: more than a body, so that the two are told apart.
const CONTINUED: usize = 8;

/// The whole file on paper.
pub(super) fn print(scan: &Scan<'_>, marks: &[Mark], units: &[Unit]) -> String {
    let mut printer = Printer::new(scan, marks);
    printer.units(units, 0, scan.tokens.len(), 0);
    let mut out = printer.out;
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

struct Printer<'s> {
    scan: &'s Scan<'s>,
    marks: &'s [Mark],
    out: String,
    /// Characters on the line so far.
    column: usize,
    /// For each token, the column at which it would end if the file were one line.
    flat_end: Vec<usize>,
    /// Line ends in the source before each token, and comments before it, counted from the start.
    line_ends: Vec<usize>,
    comments: Vec<usize>,
}

impl<'s> Printer<'s> {
    fn new(scan: &'s Scan<'s>, marks: &'s [Mark]) -> Printer<'s> {
        let (mut flat_end, mut line_ends, mut comments) = (Vec::new(), Vec::new(), Vec::new());
        let (mut column, mut lines, mut comment_count, mut previous_end) = (0, 0, 0, 0);
        for (index, &token) in scan.tokens.iter().enumerate() {
            column += gap(scan, marks, index) + scan.text_of(token).chars().count();
            lines += scan.text[previous_end..token.start].matches('\n').count();
            flat_end.push(column);
            line_ends.push(lines);
            comments.push(comment_count);
            comment_count += usize::from(token.kind == Kind::Comment);
            previous_end = token.end;
        }
        comments.push(comment_count);
        Printer { scan, marks, out: String::new(), column: 0, flat_end, line_ends, comments }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn new_line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    fn is_comment(&self, index: usize) -> bool {
        self.scan.tokens[index].kind == Kind::Comment
    }

    /// Line ends in the source right before a token.
    fn breaks_before(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.line_ends[index] - self.line_ends[before])
    }

    fn has_comment(&self, first: usize, last: usize) -> bool {
        self.comments[last + 1] > self.comments[first]
    }

    /// Columns from the start of `first` to the end of `last`, on one line.
    fn width(&self, first: usize, last: usize) -> usize {
        let text = self.scan.text_of(self.scan.tokens[first]);
        self.flat_end[last] - self.flat_end[first] + text.chars().count()
    }

    /// The units among the tokens `from..to`, each on its own line, and the comments between them.
    fn units(&mut self, units: &[Unit], from: usize, to: usize, indent: usize) {
        let mut units = units.iter();
        let mut index = from;
        while index < to {
            if self.is_comment(index) && index > 0 && self.breaks_before(index) == 0 {
                self.trailing(index);
                index += 1;
                continue;
            }
            if index > from && self.breaks_before(index) > 1 {
                self.out.push('\n');
            }
            if index > 0 {
                self.new_line(indent);
            }
            if self.is_comment(index) {
                self.push(self.scan.text_of(self.scan.tokens[index]));
                index += 1;
            } else {
                let unit = units.next().expect("invariant: every word of a file belongs to a unit");
                self.unit(unit, indent);
                index = unit.last + 1;
            }
        }
    }

    /// A comment behind what it follows.
    fn trailing(&mut self, index: usize) {
        self.push("  ");
        self.push(self.scan.text_of(self.scan.tokens[index]));
    }

    fn unit(&mut self, unit: &Unit, indent: usize) {
        let one_line = unit.bodies.iter().all(|body| self.line_ends[body.close] == self.line_ends[body.open]);
        let fits = self.column + self.width(unit.first, unit.last) <= WIDTH;
        if one_line && fits && !self.has_comment(unit.first, unit.last) {
            return self.flat(unit.first, unit.last);
        }
        let mut from = unit.first;
        for body in &unit.bodies {
            let continued = if from == unit.first { indent + CONTINUED } else { indent };
            self.run(from, body.open, continued);
            self.body(body, indent);
            from = body.close + 1;
        }
        if from <= unit.last {
            self.run(from, unit.last, indent + CONTINUED);
        }
    }

    /// What is between two braces, and the closing one.
    fn body(&mut self, body: &Body, indent: usize) {
        if body.close == body.open + 1 {
            return self.push("}");
        }
        // A declaration's body is never hugged: its statements want a line of their own.
        if let Some(only) = self.hugged(body).filter(|_| indent > 0) {
            self.push(" ");
            self.unit(only, indent);
            return self.push(" }");
        }
        self.units(&body.units, body.open + 1, body.close, indent + INDENT);
        self.new_line(indent);
        self.push("}");
    }

    /// The one unit of a body that was written without a line end between its braces and the body's.
    fn hugged<'b>(&self, body: &'b Body) -> Option<&'b Unit> {
        let [only] = body.units.as_slice() else { return None };
        let [inner] = only.bodies.as_slice() else { return None };
        let touches = only.first == body.open + 1 && inner.close + 1 == body.close;
        let no_line_ends = self.breaks_before(only.first) == 0 && self.breaks_before(body.close) == 0;
        let plain = !self.has_comment(only.first, inner.open);
        let fits = self.column + 1 + self.width(only.first, inner.open) <= WIDTH;
        (touches && no_line_ends && plain && fits).then_some(only)
    }

    /// Tokens on one line.
    fn flat(&mut self, first: usize, last: usize) {
        for index in first..=last {
            if index > first {
                self.blanks(index);
            }
            self.push(self.scan.text_of(self.scan.tokens[index]));
        }
    }

    fn blanks(&mut self, index: usize) {
        let count = gap(self.scan, self.marks, index);
        self.out.extend(std::iter::repeat_n(' ', count));
        self.column += count;
    }

    /// Tokens without bodies, on as many lines as they and their comments need.
    fn run(&mut self, first: usize, last: usize, continued: usize) {
        let mut from = first;
        // What follows a body's `}` goes on behind it.
        let mut goes_on =
            first > 0 && self.scan.text_of(self.scan.tokens[first - 1]) == "}" && self.column > 0;
        goes_on &= !self.marks[first].begins_unit;
        while from <= last {
            if self.is_comment(from) {
                if self.breaks_before(from) == 0 {
                    self.trailing(from);
                } else {
                    self.new_line(continued);
                    self.push(self.scan.text_of(self.scan.tokens[from]));
                }
                from += 1;
                goes_on = false;
                if from <= last && !self.is_comment(from) {
                    self.new_line(continued);
                }
                continue;
            }
            if goes_on {
                self.blanks(from);
                goes_on = false;
            }
            let comment = (from..=last).find(|&index| self.is_comment(index)).unwrap_or(last + 1);
            self.wrapped(from, comment - 1, continued);
            from = comment;
        }
    }

    /// Tokens without comments, broken where they do not fit.
    fn wrapped(&mut self, first: usize, last: usize, continued: usize) {
        let mut from = first;
        while self.column + self.width(from, last) > WIDTH {
            let Some(at) = self.break_before(from, last) else { break };
            self.flat(from, at - 1);
            self.new_line(continued);
            from = at;
        }
        self.flat(from, last);
    }

    /// The best token to break before: in the fewest brackets, of the gladdest kind, the last that fits; if none
    /// fits, the first there is.
    fn break_before(&self, first: usize, last: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut best: Option<((usize, u8), usize)> = None;
        for index in first + 1..=last {
            match self.scan.text_of(self.scan.tokens[index - 1]) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let fits = self.column + self.width(first, index - 1) <= WIDTH;
            if !fits && best.is_some() {
                break;
            }
            let Some(kind) = self.marks[index].breaks else { continue };
            if best.is_none_or(|(rank, _)| (depth, kind) <= rank) {
                best = Some(((depth, kind), index));
            }
            if !fits {
                break;
            }
        }
        best.map(|(_, index)| index)
    }
}
