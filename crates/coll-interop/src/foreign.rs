//! A schedule of another tool, whatever its form.

use crate::msccl::Algorithm;
use crate::mscclpp::ExecutionPlan;
use crate::{Limits, goal, msccl, mscclpp};
use coll_base::{Diagnostic, FileId, SourceMap};
use coll_contract::Contract;
use coll_plan::Plan;

/// The forms that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// MSCCL XML.
    MscclXml,
    /// An execution plan of MSCCL++.
    MscclppJson,
    /// GOAL.
    Goal,
}

/// How far into a file its form is looked for.
const LOOKED_AT_BYTES: usize = 1 << 16;

impl Form {
    /// The form of a file's bytes, if they begin like one.
    pub fn of(bytes: &[u8]) -> Option<Form> {
        let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
        let start = &text[..text.len().min(LOOKED_AT_BYTES)];
        let has = |word: &str| start.windows(word.len()).any(|window| window == word.as_bytes());
        match start.first()? {
            _ if begins_with_ranks(start) => Some(Form::Goal),
            b'<' => Some(Form::MscclXml),
            b'{' if has("\"gpus\"") && !has("\"collc ") => Some(Form::MscclppJson),
            _ => None,
        }
    }

    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Form::MscclXml => "MSCCL XML",
            Form::MscclppJson => "MSCCL++ JSON",
            Form::Goal => "GOAL",
        }
    }
}

/// Whether the first word, comments aside, is GOAL's `num_ranks`.
fn begins_with_ranks(mut text: &[u8]) -> bool {
    let end = |text: &[u8], word: &[u8]| text.windows(word.len()).position(|window| window == word);
    loop {
        text = text.trim_ascii_start();
        let after = match text {
            [b'/', b'/', ..] => end(text, b"\n").map(|at| at + 1),
            [b'/', b'*', ..] => end(text, b"*/").map(|at| at + 2),
            _ => return text.strip_prefix(b"num_ranks").is_some_and(|rest| rest.first() == Some(&b' ')),
        };
        match after {
            Some(after) => text = &text[after..],
            None => return false,
        }
    }
}

/// A foreign schedule as a plan, which is still to be proved.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The plan. Its `slots` say nothing yet: the proof finds them.
    pub plan: Plan,
    /// Copies that were put in so that it serves calls in place and out of place, each of one run of chunks.
    pub copies: u32,
    /// It stores chunks where others belong, so that counts have to divide by the chunks.
    pub equal_chunks_only: bool,
    /// What is worth knowing.
    pub warnings: Vec<Diagnostic>,
    /// Pairs of operations whose order the plan is sure of and the form's own runtime is not: all of them, counted.
    pub races: u64,
    /// The first few of these.
    pub unordered: Vec<Diagnostic>,
    /// Bytes of the blocks of each class, if the form says sizes.
    pub sizes_bytes: Option<Vec<u64>>,
}

/// A schedule of another tool, read and checked by itself.
#[derive(Clone, Debug)]
pub enum Foreign {
    /// From MSCCL XML.
    Msccl(Algorithm),
    /// From MSCCL++ JSON.
    Mscclpp(ExecutionPlan),
    /// From GOAL.
    Goal(goal::Schedule),
}

impl Foreign {
    /// Reads a file of a map.
    ///
    /// # Errors
    /// What is wrong with it, each at its place.
    pub fn read(form: Form, file: FileId, map: &SourceMap) -> Result<Foreign, Vec<Diagnostic>> {
        let text = map.text(file);
        match form {
            Form::MscclXml => msccl::read(file, text).map(Foreign::Msccl),
            Form::MscclppJson => mscclpp::read(file, text).map(Foreign::Mscclpp),
            Form::Goal => goal::Schedule::read(file, map).map(Foreign::Goal),
        }
    }

    /// The name that it gives itself.
    pub fn name(&self) -> &str {
        match self {
            Foreign::Msccl(algorithm) => algorithm.name(),
            Foreign::Mscclpp(plan) => plan.name(),
            Foreign::Goal(schedule) => schedule.name(),
        }
    }

    /// How many ranks it is for.
    pub fn ranks(&self) -> u32 {
        match self {
            Foreign::Msccl(algorithm) => algorithm.ranks(),
            Foreign::Mscclpp(plan) => plan.ranks(),
            Foreign::Goal(schedule) => schedule.ranks(),
        }
    }

    /// The collective in the file's own word.
    pub fn collective(&self) -> &str {
        match self {
            Foreign::Msccl(algorithm) => algorithm.collective(),
            Foreign::Mscclpp(plan) => plan.collective(),
            Foreign::Goal(_) => goal::Schedule::COLLECTIVE,
        }
    }

    /// The name of the collective here, if it is known here.
    pub fn known_collective(&self) -> Option<&'static str> {
        crate::collectives::by_word(self.collective()).map(|known| known.name)
    }

    /// If the collective has a root, which the forms do not say: all ranks, the likely ones first.
    pub fn roots(&self) -> Option<Vec<u32>> {
        match self {
            Foreign::Msccl(algorithm) => algorithm.roots(),
            Foreign::Mscclpp(plan) => plan.roots(),
            Foreign::Goal(_) => None,
        }
    }

    /// For which calls its own runtime would take it.
    pub fn limits(&self) -> &Limits {
        match self {
            Foreign::Msccl(algorithm) => algorithm.limits(),
            Foreign::Mscclpp(plan) => plan.limits(),
            Foreign::Goal(schedule) => schedule.limits(),
        }
    }

    /// Makes a plan of it. `contract` is that of its collective, for its ranks and the root; none if the collective is not
    /// [known](Foreign::known_collective).
    ///
    /// # Errors
    /// If chunks do not fit the collective or lie outside their buffers, if steps wait for each other in a ring, or if
    /// memory is used as it may not be.
    pub fn import(
        &self,
        contract: Option<Contract>,
        root: Option<u32>,
        map: &SourceMap,
    ) -> Result<Imported, Vec<Diagnostic>> {
        match self {
            Foreign::Msccl(algorithm) => algorithm.import(contract, root, map),
            Foreign::Mscclpp(plan) => plan.import(contract, root, map),
            Foreign::Goal(schedule) => schedule.import(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_known_by_how_they_begin() {
        assert_eq!(Form::of(b"\r\n<!-- a comment -->\n<algo>"), Some(Form::MscclXml));
        assert_eq!(Form::of(b"// sends\n/* and */ num_ranks 2"), Some(Form::Goal));
        assert_eq!(Form::of(b"{ \"name\": \"x\", \"gpus\": []}"), Some(Form::MscclppJson));
        for other in [
            &b""[..],
            b"plan 2",
            b"{\"format\": \"collc plan\", \"gpus\": 1}",
            b"schedule a: b {}",
            b"// num_ranks",
        ] {
            assert_eq!(Form::of(other), None);
        }
    }
}
