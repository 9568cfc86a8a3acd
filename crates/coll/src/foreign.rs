//! Schedules of other tools: read, given the contract of their collective, and proved like any plan.

use crate::Source;
use coll_base::{Diagnostic, SourceMap};
use coll_check::plan::codes::{MESSAGES_UNORDERED, RACE};
use coll_contract::Contract;
use coll_interop::{Foreign, Limits, chakra};
use coll_plan::{Plan, Proof};
use coll_sema::Instance;

pub use coll_interop::Form;

/// What was found out about a foreign file.
pub struct Examined {
    /// The texts that diagnostics point into.
    pub map: SourceMap,
    /// What is wrong, and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// What could be said of it at all; none if it could not be read or made a plan of.
    pub schedule: Option<ForeignSchedule>,
}

/// A foreign schedule as a plan.
pub struct ForeignSchedule {
    /// The name that it gives itself.
    pub name: String,
    /// The collective in its own word.
    pub collective: String,
    /// The plan, with the slots and claims that its proof found. It keeps its contract if the verdict says so.
    pub plan: Plan,
    /// What the proof found.
    pub verdict: Verdict,
    /// For which calls its own runtime would take it.
    pub limits: Limits,
    /// Copies that were put in so that it serves calls in place and out of place.
    pub copies: u32,
    /// Counts have to divide by its chunks.
    pub equal_chunks_only: bool,
    /// Bytes of the blocks of each class, if the form says sizes.
    pub sizes_bytes: Option<Vec<u64>>,
}

impl ForeignSchedule {
    /// The element count of every class, at the sizes that the form says, in whole elements; none if it says none.
    pub fn counts(&self, element_size_bytes: u64) -> Option<Vec<u64>> {
        let sizes = self.sizes_bytes.as_ref()?;
        Some(sizes.iter().map(|size| size.div_ceil(element_size_bytes.max(1))).collect())
    }
}

/// What the proof of a foreign schedule found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// It keeps its contract, does not stop, and has no race.
    pub ok: bool,
    /// Every rank ends with what the collective promises. None if the collective is not known here.
    pub postcondition: Option<bool>,
    /// Least message slots for each connection, at least 1; 0 if there is no such number.
    pub min_slots: u32,
    /// Ranks that end with one reduced value have it by one reduction tree.
    pub same_reduction_tree: bool,
    /// Pairs of operations that touch one memory, or use one connection, in no sure order; of more than can be counted, those
    /// that are told.
    pub races: u64,
}

impl Examined {
    /// True if nothing is wrong with it.
    pub fn ok(&self) -> bool {
        self.schedule.as_ref().is_some_and(|schedule| schedule.verdict.ok)
    }
}

/// Reads a file of a foreign form under the name that messages show, makes a plan of it, and proves the plan. A root, which
/// forms do not say, is the given one; else the first that is right, of the likely ones.
pub fn examine(form: Form, name: &str, text: String, root: Option<u32>) -> Examined {
    let mut map = SourceMap::new();
    let file = map.add(name, text);
    let foreign = match Foreign::read(form, file, &map) {
        Ok(foreign) => foreign,
        Err(diagnostics) => return Examined { map, diagnostics, schedule: None },
    };
    let roots: Vec<Option<u32>> = match (foreign.roots(), root) {
        (None, _) => vec![None],
        (Some(_), Some(root)) => vec![Some(root)],
        (Some(roots), None) => roots.into_iter().take(ROOTS_MAX).map(Some).collect(),
    };
    let mut first = None;
    for root in roots {
        let (diagnostics, schedule) = with_root(&foreign, root, &map);
        if schedule.as_ref().is_some_and(|schedule| schedule.verdict.ok) {
            return Examined { map, diagnostics, schedule };
        }
        first.get_or_insert((diagnostics, schedule));
    }
    let (diagnostics, schedule) = first.unwrap_or_default();
    Examined { map, diagnostics, schedule }
}

/// Does the same with Chakra traces, one for each rank, the first one's first, each with its file's name. Places in them are told in
/// the GOAL schedule that they say, as if it were a file of the name.
pub fn examine_traces(name: &str, traces: &[(String, Vec<u8>)]) -> Examined {
    match chakra::to_goal(traces) {
        Ok(text) => examine(Form::Goal, name, text, None),
        Err(told) => Examined { map: SourceMap::new(), diagnostics: vec![*told], schedule: None },
    }
}

/// Roots that are tried where the form does not say which it is.
const ROOTS_MAX: usize = 64;

fn with_root(
    foreign: &Foreign,
    root: Option<u32>,
    map: &SourceMap,
) -> (Vec<Diagnostic>, Option<ForeignSchedule>) {
    let known = foreign.known_collective();
    let contract = match known.map(|name| contract(name, foreign.ranks(), root.unwrap_or(0))) {
        None => None,
        Some(Ok(contract)) => Some(contract),
        Some(Err(diagnostics)) => return (diagnostics, None),
    };
    let imported = match foreign.import(contract, root, map) {
        Ok(imported) => imported,
        Err(diagnostics) => return (diagnostics, None),
    };
    let mut plan = imported.plan;
    // With as many slots as it likes, the proof tells how many it needs.
    plan.slots = u32::MAX;
    let proof = coll_check::plan::prove(&plan);
    plan.slots = if proof.rendezvous { 0 } else { proof.min_slots };
    plan.claims = proof.claims;
    let errors = || proof.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    let told = errors().filter(|d| [RACE, MESSAGES_UNORDERED].contains(&d.code)).count();
    let races = match told {
        0 => 0,
        _ => coll_check::plan::races(&plan).unwrap_or(told as u64),
    };
    let races = races + imported.races;
    let verdict = Verdict {
        ok: errors().count() == 0 && imported.races == 0,
        postcondition: known.map(|_| errors().count() == told && proof.min_slots > 0),
        min_slots: proof.min_slots,
        same_reduction_tree: proof.claims.same_reduction_tree,
        races,
    };
    if verdict.ok {
        plan.proof = Some(Proof::Whole(coll_plan::hash(&plan)));
    }
    let mut diagnostics = imported.warnings;
    diagnostics.extend(imported.unordered);
    diagnostics.extend(proof.diagnostics);
    let schedule = ForeignSchedule {
        name: foreign.name().to_string(),
        collective: foreign.collective().to_string(),
        plan,
        verdict,
        limits: foreign.limits().clone(),
        copies: imported.copies,
        equal_chunks_only: imported.equal_chunks_only,
        sizes_bytes: imported.sizes_bytes,
    };
    (diagnostics, Some(schedule))
}

/// The contract of a collective of the prelude.
fn contract(collective: &str, ranks: u32, root: u32) -> Result<Contract, Vec<Diagnostic>> {
    let source = Source::from_text("import.coll", format!("schedule import: {collective} {{ }}"));
    let instance = Instance { ranks, root, params: Vec::new() };
    match source.module.instantiate(0, &instance) {
        Ok(instantiated) => Ok(instantiated.program.contract),
        Err(coll_sema::Refusal::Errors(diagnostics)) => Err(diagnostics),
        Err(coll_sema::Refusal::DoesNotApply { .. }) => Err(Vec::new()),
    }
}
