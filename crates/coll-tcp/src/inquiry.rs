//! What the server makes of a stall: every rank is asked what it is doing, and the answers are compared.
//!
//! Pure: reports and times go in, findings come out. A rank that does not answer is stopped or cut off, for the answer
//! does not come from the thread that may be busy. Ranks that make different calls under one operation number end the
//! job; a rank that has not begun the operation in which another one waits is late, and is named when time is up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::board::Explanation;
use crate::call::{Report, Told};
use crate::error::RankList;

/// How long the ranks have to answer.
pub(crate) const PATIENCE: Duration = Duration::from_millis(400);

/// How many different calls are shown.
const CALLS_SHOWN: usize = 4;

/// A question to every rank, until all have answered or time is up.
#[derive(Debug)]
pub(crate) struct Inquiry {
    deadline: Instant,
    /// Who asked for it, and under which number of its own.
    askers: BTreeMap<u32, u64>,
    reports: BTreeMap<u32, Report>,
}

impl Inquiry {
    pub(crate) fn new(now: Instant) -> Inquiry {
        Inquiry { deadline: now + PATIENCE, askers: BTreeMap::new(), reports: BTreeMap::new() }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn ask(&mut self, rank: u32, sequence: u64, report: Report) {
        self.askers.insert(rank, sequence);
        self.take(rank, report);
    }

    pub(crate) fn take(&mut self, rank: u32, report: Report) {
        self.reports.insert(rank, report);
    }

    pub(crate) fn has_heard(&self, rank: u32) -> bool {
        self.reports.contains_key(&rank)
    }

    /// The first operation that is not the same call on every rank, and both sides in words.
    pub(crate) fn mismatch(&self) -> Option<(u64, String)> {
        let mut calls: BTreeMap<u64, BTreeMap<[u8; 16], Side<'_>>> = BTreeMap::new();
        for (&rank, report) in &self.reports {
            for told in &report.recent {
                let sides = calls.entry(told.operation).or_default();
                sides.entry(told.fingerprint).or_insert_with(|| Side::new(told)).ranks.push(rank);
            }
        }
        let (operation, sides) = calls.into_iter().find(|(_, sides)| sides.len() > 1)?;
        let mut sides: Vec<Side<'_>> = sides.into_values().collect();
        // The odd one first; of two as common, the one without the lowest rank.
        sides.sort_by_key(|side| (side.ranks.len(), u32::MAX - side.ranks[0]));
        Some((operation, tell_apart(operation, &sides)))
    }

    /// What each asker is told: who keeps it waiting.
    pub(crate) fn explanations(
        &self,
        present: &BTreeMap<u32, String>,
        left: &BTreeSet<u32>,
    ) -> Vec<(u32, u64, Explanation)> {
        let silent: Vec<u32> =
            present.keys().copied().filter(|rank| !self.reports.contains_key(rank)).collect();
        let explain = |(&rank, &sequence): (&u32, &u64)| {
            let explanation = self.explain(rank, &silent, present, left);
            (rank, sequence, explanation)
        };
        self.askers.iter().map(explain).collect()
    }

    fn explain(
        &self,
        asker: u32,
        silent: &[u32],
        present: &BTreeMap<u32, String>,
        left: &BTreeSet<u32>,
    ) -> Explanation {
        let mut causes = Causes::default();
        match silent {
            [] => {}
            [one] => {
                let whence = present.get(one).map_or("", String::as_str);
                let verb = format!("({whence}) does not");
                causes.add(silent, [&verb; 2], "answer: is it stopped, or its machine cut off?");
            }
            _ => causes.add(silent, ["do not"; 2], "answer: are they stopped, or their machines cut off?"),
        }
        let Some(asking) = self.reports.get(&asker).filter(|report| report.within) else {
            return causes.done();
        };
        let Some(operation) = asking.operation() else { return causes.done() };
        for (what, ranks, since_ms) in self.late(operation) {
            let when = since_ms.map_or(String::new(), |ms| format!(" {:.1} s ago", ms as f64 / 1e3));
            causes.add(&ranks, ["has", "have"], &format!("{what}{when}"));
        }
        let gone: Vec<u32> = asking.waits_for.iter().copied().filter(|rank| left.contains(rank)).collect();
        if !gone.is_empty() {
            causes.add(&gone, ["has", "have"], "left in good order");
        }
        if causes.ranks.is_empty() {
            self.blame_the_awaited(operation, asking, &mut causes);
        }
        causes.done()
    }

    /// The ranks that have not begun an operation: how, who, and for how long at most, in milliseconds.
    fn late(&self, operation: u64) -> Vec<(String, Vec<u32>, Option<u64>)> {
        let mut groups: BTreeMap<String, (Vec<u32>, Option<u64>)> = BTreeMap::new();
        for (&rank, report) in &self.reports {
            if let Some(what) = lateness(operation, report) {
                let (ranks, since_ms) = groups.entry(what).or_default();
                ranks.push(rank);
                *since_ms = report.operation().map(|_| report.since_ms).max(*since_ms);
            }
        }
        let mut groups: Vec<_> =
            groups.into_iter().map(|(what, (ranks, since_ms))| (what, ranks, since_ms)).collect();
        groups.sort_by_key(|(_, ranks, _)| ranks[0]);
        groups
    }

    /// Everyone has come and answers: those that are waited for and wait for nobody are what all wait for.
    fn blame_the_awaited(&self, operation: u64, asking: &Report, causes: &mut Causes) {
        let mut seen = BTreeSet::new();
        let mut open: Vec<u32> = asking.waits_for.clone();
        let mut idle = Vec::new();
        while let Some(rank) = open.pop() {
            let Some(report) = self.reports.get(&rank).filter(|_| seen.insert(rank)) else { continue };
            if report.within && report.operation() == Some(operation) && !report.waits_for.is_empty() {
                open.extend(&report.waits_for);
            } else {
                idle.push(rank);
            }
        }
        if idle.is_empty() {
            let what = "every rank that this one waits for, through others too, waits itself";
            causes.texts.push(what.to_owned());
        }
        idle.sort_unstable();
        let (within, beyond): (Vec<u32>, Vec<u32>) = idle.into_iter().partition(|rank| {
            self.reports
                .get(rank)
                .is_some_and(|report| report.within && report.operation() == Some(operation))
        });
        if !within.is_empty() {
            let what = format!("in operation {operation} too, without waiting for any rank");
            causes.add(&within, ["is", "are"], &what);
        }
        if !beyond.is_empty() {
            causes.add(&beyond, ["is", "are"], &format!("done with operation {operation} already"));
        }
    }
}

/// A call of some ranks.
struct Side<'a> {
    ranks: Vec<u32>,
    words: &'a [(String, String)],
}

impl Side<'_> {
    fn new(told: &Told) -> Side<'_> {
        Side { ranks: Vec::new(), words: &told.words }
    }

    fn value(&self, field: &str) -> Option<&str> {
        self.words.iter().find(|(name, _)| name == field).map(|(_, value)| value.as_str())
    }
}

/// `rank 1 is in operation 7: allreduce, count 8; ranks 0, 2-3 are in operation 7: allreduce, count 4; they differ in
/// count`
fn tell_apart(operation: u64, sides: &[Side<'_>]) -> String {
    let mut text = String::new();
    for side in sides.iter().take(CALLS_SHOWN) {
        let verb = if side.ranks.len() == 1 { "is" } else { "are" };
        // Writing to a string does not fail.
        let _ = write!(text, "{} {verb} in operation {operation}: ", RankList(side.ranks.clone()));
        let words = side.words.iter().enumerate().map(|(place, (name, value))| match place {
            0 => value.clone(),
            _ => format!("{name} {value}"),
        });
        text += &words.collect::<Vec<_>>().join(", ");
        text += "; ";
    }
    if sides.len() > CALLS_SHOWN {
        let _ = write!(text, "and {} more calls; ", sides.len() - CALLS_SHOWN);
    }
    let mut fields: Vec<&str> = Vec::new();
    for (name, _) in sides.iter().flat_map(|side| side.words) {
        let differs = sides.iter().any(|side| side.value(name) != sides[0].value(name));
        if differs && !fields.contains(&name.as_str()) {
            fields.push(name);
        }
    }
    match fields.is_empty() {
        true => text += "they differ in what these words do not tell",
        false => text += &format!("they differ in {}", fields.join(", ")),
    }
    text
}

/// How a rank keeps operation `operation` waiting, if it does: in words, but for when. Reads on after `rank 3 has`.
fn lateness(operation: u64, report: &Report) -> Option<String> {
    match (report.operation(), report.within) {
        (None, _) => Some(format!("not begun operation {operation}, nor any other")),
        (Some(latest), true) if latest < operation => {
            let words = report.recent.last().and_then(|told| told.words.first());
            let what = words.map_or(String::new(), |(_, value)| format!(" ({value})"));
            Some(format!("not begun operation {operation}: still in operation {latest}{what}, begun"))
        }
        (Some(latest), false) if latest < operation => {
            Some(format!("not begun operation {operation}: operation {latest} ended"))
        }
        _ => None,
    }
}

/// The causes of a stall so far.
#[derive(Default)]
struct Causes {
    ranks: BTreeSet<u32>,
    texts: Vec<String>,
}

impl Causes {
    /// Adds some ranks, and what is to be said of one or of several.
    fn add(&mut self, ranks: &[u32], [one, several]: [&str; 2], what: &str) {
        let verb = if ranks.len() == 1 { one } else { several };
        self.texts.push(format!("{} {verb} {what}", RankList(ranks.to_vec())));
        self.ranks.extend(ranks);
    }

    fn done(self) -> Explanation {
        Explanation { ranks: self.ranks.into_iter().collect(), detail: self.texts.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// A report whose calls are `(operation, count)`.
    fn report(recent: &[(u64, u64)], within: bool, waits_for: &[u32]) -> Report {
        let told = |&(operation, count): &(u64, u64)| Told {
            operation,
            fingerprint: [count as u8; 16],
            words: [
                ("collective", "allreduce".to_owned()),
                ("dtype", "f32".to_owned()),
                ("count", count.to_string()),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
        };
        let recent = recent.iter().map(told).collect();
        Report { recent, within, since_ms: 2300, waits_for: waits_for.to_vec() }
    }

    fn check(reports: Vec<(u32, Report)>, expect: Expect) {
        let mut inquiry = Inquiry::new(Instant::now());
        for (place, (rank, report)) in reports.into_iter().enumerate() {
            match place {
                0 => inquiry.ask(rank, 5, report),
                _ => inquiry.take(rank, report),
            }
        }
        let present = (0..4).map(|rank| (rank, format!("pid {rank} on node"))).collect();
        let text = match inquiry.mismatch() {
            Some((operation, detail)) => format!("mismatch in {operation}\n{detail}"),
            None => {
                let told = inquiry.explanations(&present, &BTreeSet::from([4]));
                assert_eq!(told.len(), 1);
                let (_, 5, Explanation { ranks, detail }) = &told[0] else { panic!("{told:?}") };
                format!("{ranks:?}\n{detail}")
            }
        };
        expect.assert_eq(&text);
    }

    fn waiting(rank: u32, operation: u64, peer: u32) -> (u32, Report) {
        (rank, report(&[(operation - 1, 1), (operation, 1)], true, &[peer]))
    }

    #[test]
    fn different_calls_show_both_sides_and_where_they_differ() {
        check(
            vec![
                (0, report(&[(6, 4), (7, 4)], true, &[1])),
                (1, report(&[(6, 4), (7, 8)], true, &[2])),
                (2, report(&[(6, 4), (7, 4)], true, &[1])),
            ],
            expect![[r#"
                mismatch in 7
                rank 1 is in operation 7: allreduce, dtype f32, count 8; ranks 0, 2 are in operation 7: allreduce, dtype f32, count 4; they differ in count"#]],
        );
    }

    #[test]
    fn a_call_of_a_rank_that_has_gone_on_is_compared_too() {
        check(
            vec![(0, report(&[(7, 4)], true, &[1])), (1, report(&[(7, 8), (8, 4), (9, 4)], false, &[]))],
            expect![[r#"
                mismatch in 7
                rank 1 is in operation 7: allreduce, dtype f32, count 8; rank 0 is in operation 7: allreduce, dtype f32, count 4; they differ in count"#]],
        );
    }

    #[test]
    fn the_late_the_silent_and_the_left_are_named() {
        check(
            vec![waiting(0, 7, 1), waiting(1, 7, 2), (2, report(&[(6, 1)], false, &[]))],
            expect![[r#"
                [2, 3]
                rank 3 (pid 3 on node) does not answer: is it stopped, or its machine cut off?; rank 2 has not begun operation 7: operation 6 ended 2.3 s ago"#]],
        );
        check(
            vec![
                (1, report(&[(7, 1)], true, &[4])),
                waiting(0, 6, 1),
                (2, report(&[], false, &[])),
                (3, report(&[], false, &[])),
            ],
            expect![[r#"
                [0, 2, 3, 4]
                rank 0 has not begun operation 7: still in operation 6 (allreduce), begun 2.3 s ago; ranks 2-3 have not begun operation 7, nor any other; rank 4 has left in good order"#]],
        );
    }

    #[test]
    fn where_all_have_come_the_end_of_the_chain_is_named() {
        check(
            vec![waiting(0, 7, 1), waiting(1, 7, 2), (2, report(&[(7, 1)], true, &[])), waiting(3, 7, 0)],
            expect![[r#"
                [2]
                rank 2 is in operation 7 too, without waiting for any rank"#]],
        );
        check(
            vec![waiting(0, 7, 1), waiting(1, 7, 0), waiting(2, 7, 0), waiting(3, 7, 0)],
            expect![[r#"
                []
                every rank that this one waits for, through others too, waits itself"#]],
        );
    }
}
