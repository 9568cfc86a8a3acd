//! Reads the text form of GOAL: words, then statements.

use super::{Edge, Goal, GoalKind, GoalOp, GoalRank};
use std::collections::HashMap;
use std::fmt;

/// The most ranks that are read.
const RANKS_MAX: u32 = 1 << 20;

/// Why a text is no GOAL schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalError {
    /// The file, as it was called.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// What is wrong, with what was expected and what was found.
    pub message: String,
    /// The way out, if there is one to name.
    pub help: Option<String>,
}

impl fmt::Display for GoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GoalError { file, line, column, message, .. } = self;
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

impl std::error::Error for GoalError {}

/// Reads a whole text.
pub(super) fn read(file: &str, text: &str) -> Result<Goal, GoalError> {
    let words = words(file, text)?;
    let mut reader = Reader { file, words: &words, at: 0, ranks: 0 };
    reader.goal()
}

/// A word, or one of `{ } :`, and where it stands.
#[derive(Clone, Copy, Debug)]
struct Word<'t> {
    text: &'t str,
    line: u32,
    column: u32,
}

/// Cuts a text into words; `//` comments run to the end of their line, `/* */` ones to their end.
fn words<'t>(file: &str, text: &'t str) -> Result<Vec<Word<'t>>, GoalError> {
    let mut words = Vec::new();
    let mut open: Option<(u32, u32)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let mut rest = line;
        loop {
            let column = line[..line.len() - rest.len()].chars().count() as u32 + 1;
            if open.is_some() {
                let Some(end) = rest.find("*/") else { break };
                rest = &rest[end + 2..];
                open = None;
            } else if rest.is_empty() || rest.starts_with("//") {
                break;
            } else if let Some(inside) = rest.strip_prefix("/*") {
                open = Some((number, column));
                rest = inside;
            } else if rest.starts_with(char::is_whitespace) {
                rest = rest.trim_start();
            } else {
                let breaks = |c: char| c.is_whitespace() || "{}:/".contains(c);
                let len = match rest.find(breaks) {
                    Some(0) => 1,
                    Some(end) => end,
                    None => rest.len(),
                };
                words.push(Word { text: &rest[..len], line: number, column });
                rest = &rest[len..];
            }
        }
    }
    match open {
        None => Ok(words),
        Some((line, column)) => Err(GoalError {
            file: file.to_string(),
            line,
            column,
            message: "a comment is opened here and never closed".into(),
            help: Some("close it with `*/`".into()),
        }),
    }
}

struct Reader<'t> {
    file: &'t str,
    words: &'t [Word<'t>],
    at: usize,
    ranks: u32,
}

impl<'t> Reader<'t> {
    fn goal(&mut self) -> Result<Goal, GoalError> {
        self.word("num_ranks", "a schedule begins with `num_ranks N`")?;
        let count = self.next("a number of ranks")?;
        self.ranks = match count.text.parse() {
            Ok(ranks) if (1..=RANKS_MAX).contains(&ranks) => ranks,
            _ => {
                let found = format!("`{}` is no number of ranks from 1 to {RANKS_MAX}", count.text);
                return Err(self.fault(count, found));
            }
        };
        let mut goal = Goal { ranks: vec![GoalRank::default(); self.ranks as usize] };
        let mut seen: Vec<Option<u32>> = vec![None; self.ranks as usize];
        while let Some(head) = self.peek() {
            self.word("rank", "what follows `num_ranks` is one `rank R { … }` for each rank")?;
            let (rank, word) = self.rank()?;
            if let Some(line) = seen[rank as usize] {
                return Err(self.fault(word, format!("rank {rank} is here again, after line {line}")));
            }
            seen[rank as usize] = Some(head.line);
            goal.ranks[rank as usize] = self.block(rank, head)?;
        }
        // A rank without a block does nothing; that is more often a slip than meant.
        match seen.iter().position(Option::is_none) {
            None => Ok(goal),
            Some(rank) => {
                let ranks = self.ranks;
                let message = format!("`num_ranks {ranks}` is said here, and there is no `rank {rank}`");
                let error = self.fault(count, message);
                Err(GoalError { help: Some(format!("add `rank {rank} {{ }}` if it does nothing")), ..error })
            }
        }
    }

    /// `{ statements }`
    fn block(&mut self, rank: u32, head: Word<'t>) -> Result<GoalRank, GoalError> {
        self.word("{", "a rank's operations stand in braces")?;
        let mut part = GoalRank::default();
        let mut labels: HashMap<&str, u32> = HashMap::new();
        // Labels may be used before they are declared, so they are looked up at the end.
        let mut waits: Vec<(Word, Word, bool)> = Vec::new();
        loop {
            let Some(first) = self.peek().filter(|word| word.text != "rank") else {
                let error = self.fault(head, format!("rank {rank} has no closing `}}`"));
                return Err(GoalError { help: Some("close its operations with `}`".into()), ..error });
            };
            self.at += 1;
            let second = self.peek().map_or("", |word| word.text);
            match (first.text, second) {
                ("}", _) => break,
                ("send" | "recv" | "calc", other) if other != ":" => {
                    let op = self.op(first, String::new(), rank)?;
                    part.ops.push(op);
                }
                (label, ":") => {
                    if let Some(&earlier) = labels.get(label) {
                        let line = part.ops[earlier as usize].line;
                        let message = format!("label `{label}` is taken in rank {rank} by line {line}");
                        return Err(self.fault(first, message));
                    }
                    self.at += 1;
                    let action = self.next("`send`, `recv` or `calc`")?;
                    labels.insert(label, part.ops.len() as u32);
                    let op = self.op(action, label.to_string(), rank)?;
                    part.ops.push(op);
                }
                (_, "requires" | "irequires") => {
                    self.at += 1;
                    let on = self.next("the label of an operation")?;
                    waits.push((first, on, second == "irequires"));
                }
                (found, _) => {
                    let message = format!(
                        "expected `LABEL: send|recv|calc …`, `LABEL requires LABEL` or `}}`, found `{found}`"
                    );
                    return Err(self.fault(first, message));
                }
            }
        }
        for (op, on, start) in waits {
            let [op_id, on_id] = [op, on].map(|word| labels.get(word.text).copied().ok_or(word));
            let undefined = |word: Word| {
                let known = nearest(word.text, labels.keys().copied());
                let error = self.fault(word, format!("rank {rank} has no operation `{}`", word.text));
                GoalError { help: known.map(|known| format!("there is `{known}`")), ..error }
            };
            let (op_id, on_id) = (op_id.map_err(undefined)?, on_id.map_err(undefined)?);
            if op_id == on_id {
                return Err(self.fault(op, format!("`{}` waits for itself", op.text)));
            }
            part.edges.push(Edge { op: op_id, on: on_id, start });
        }
        Ok(part)
    }

    /// What follows a label.
    fn op(&mut self, action: Word<'t>, label: String, rank: u32) -> Result<GoalOp, GoalError> {
        let kind = match action.text {
            "send" => {
                let bytes = self.bytes()?;
                self.word("to", "a send names its receiver: `send 8b to 1`")?;
                let (to, word) = self.rank()?;
                self.no_self_message(rank, to, word, "sends to")?;
                GoalKind::Send { to, bytes, tag: 0 }
            }
            "recv" => {
                let bytes = self.bytes()?;
                self.word("from", "a receive names its sender: `recv 8b from 0`")?;
                let from = match self.take("-1") {
                    true => None,
                    false => {
                        let (from, word) = self.rank()?;
                        self.no_self_message(rank, from, word, "receives from")?;
                        Some(from)
                    }
                };
                GoalKind::Recv { from, bytes, tag: Some(0) }
            }
            "calc" => {
                let word = self.next("nanoseconds")?;
                let ns = word.text.parse();
                let ns = ns.map_err(|_| {
                    self.fault(word, format!("`{}` is no number of nanoseconds from 0 on", word.text))
                })?;
                GoalKind::Calc { ns }
            }
            found => {
                let message = format!("expected `send`, `recv` or `calc`, found `{found}`");
                return Err(self.fault(action, message));
            }
        };
        let mut op = GoalOp { label, line: action.line, kind, cpu: 0, nic: 0 };
        self.options(&mut op)?;
        Ok(op)
    }

    /// `tag T`, `cpu C`, `nic N`, in any order.
    fn options(&mut self, op: &mut GoalOp) -> Result<(), GoalError> {
        loop {
            let name = match self.peek().map(|word| word.text) {
                Some(name @ ("tag" | "cpu" | "nic")) => name,
                _ => return Ok(()),
            };
            // `cpu: calc 5` and `cpu requires l1` are labels.
            if self.words.get(self.at + 1).is_some_and(|w| matches!(w.text, ":" | "requires" | "irequires")) {
                return Ok(());
            }
            let place = self.words[self.at];
            self.at += 1;
            let value = self.next("a number")?;
            let any = value.text == "-1";
            let number: Option<u32> = value.text.parse().ok();
            match (name, &mut op.kind, number) {
                ("tag", GoalKind::Recv { tag, .. }, _) if any => *tag = None,
                ("tag", GoalKind::Recv { tag, .. }, Some(number)) => *tag = Some(number),
                ("tag", GoalKind::Send { tag, .. }, Some(number)) => *tag = number,
                ("cpu", _, Some(number)) => op.cpu = number,
                ("nic", GoalKind::Send { .. } | GoalKind::Recv { .. }, Some(number)) => op.nic = number,
                (_, GoalKind::Calc { .. }, Some(_)) => {
                    return Err(self.fault(place, format!("a computation has no {name}")));
                }
                _ => return Err(self.fault(value, format!("`{}` is no {name}", value.text))),
            }
        }
    }

    fn no_self_message(&self, rank: u32, peer: u32, word: Word, what: &str) -> Result<(), GoalError> {
        match rank == peer {
            true => Err(GoalError {
                help: Some("within a rank, `requires` orders operations".into()),
                ..self.fault(word, format!("rank {rank} {what} itself"))
            }),
            false => Ok(()),
        }
    }

    /// `1024b`
    fn bytes(&mut self) -> Result<u64, GoalError> {
        let word = self.next("a size such as `8b`")?;
        let bytes = word.text.strip_suffix('b').and_then(|digits| digits.parse().ok());
        bytes.ok_or_else(|| self.fault(word, format!("`{}` is no size; write bytes as `8b`", word.text)))
    }

    fn rank(&mut self) -> Result<(u32, Word<'t>), GoalError> {
        let word = self.next("a rank")?;
        match word.text.parse::<u32>() {
            Ok(rank) if rank < self.ranks => Ok((rank, word)),
            Ok(rank) => {
                let last = self.ranks - 1;
                Err(self.fault(word, format!("rank {rank} is none of 0..={last}")))
            }
            Err(_) => Err(self.fault(word, format!("`{}` is no rank", word.text))),
        }
    }

    fn peek(&self) -> Option<Word<'t>> {
        self.words.get(self.at).copied()
    }

    fn take(&mut self, text: &str) -> bool {
        let taken = self.peek().is_some_and(|word| word.text == text);
        self.at += usize::from(taken);
        taken
    }

    fn next(&mut self, what: &str) -> Result<Word<'t>, GoalError> {
        let word =
            self.peek().ok_or_else(|| self.ends(format!("expected {what}, found the end of the file")));
        self.at += 1;
        word
    }

    fn word(&mut self, text: &str, why: &str) -> Result<(), GoalError> {
        match self.peek() {
            Some(word) if word.text == text => {
                self.at += 1;
                Ok(())
            }
            Some(word) => {
                let error = self.fault(word, format!("expected `{text}`, found `{}`", word.text));
                Err(GoalError { help: Some(why.into()), ..error })
            }
            None => {
                let error = self.ends(format!("expected `{text}`, found the end of the file"));
                Err(GoalError { help: Some(why.into()), ..error })
            }
        }
    }

    /// The end is told of where the last word stands.
    fn ends(&self, message: String) -> GoalError {
        self.fault(self.words.last().copied().unwrap_or(Word { text: "", line: 1, column: 1 }), message)
    }

    fn fault(&self, word: Word, message: String) -> GoalError {
        let Word { line, column, .. } = word;
        GoalError { file: self.file.to_string(), line, column, message, help: None }
    }
}

/// The first label, in order, that is one letter away.
fn nearest<'t>(text: &str, known: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let near = |other: &&str| {
        let (a, b): (Vec<char>, Vec<char>) = (text.chars().collect(), other.chars().collect());
        let differ = a.iter().zip(&b).filter(|(x, y)| x != y).count();
        a.len().abs_diff(b.len()) + differ <= 1
    };
    let mut near: Vec<&str> = known.filter(near).collect();
    near.sort_unstable();
    near.first().copied()
}
