//! Lowering: a grouped program becomes a plan, rank by rank.
//!
//! What is worked out for the whole program is little: which transfers concern which rank ([`agenda`]), which count
//! classes must be one ([`classes`]), and the table of source lines ([`lines`]). All else, in [`rank`], looks at one
//! rank's transfers alone, so that a rank could lower its own part of a plan without knowing the others'.
//!
//! | file | its one question |
//! |---|---|
//! | [`agenda`] | which messages does a rank send and receive, in which order? |
//! | [`classes`] | which blocks must have equal counts for the plan to make sense? |
//! | [`memory`] | in which store does a piece lie now? |
//! | [`conflicts`] | which writes of a step must be staged, as the step reads what they overwrite? |
//! | [`hazards`] | what must an operation wait for, as it touches the same memory? |
//! | [`scratch`] | where is a slot of the program now, and how long is it used? |
//! | [`slots`] | which physical slot is free for a value? |
//! | [`ports`] | which lane and channel does a message take? |
//! | [`draft`] | how do operations, lanes and tables of one rank come together? |
//! | [`prune`] | which waits say nothing new? |

mod agenda;
mod classes;
mod conflicts;
mod draft;
mod hazards;
mod lines;
mod memory;
mod ports;
mod prune;
mod rank;
mod scratch;
mod slots;

use crate::{Grouped, codes};
use agenda::Agenda;
use coll_base::{DType, Diagnostic, SourceMap};
use coll_ir::Program;
use coll_plan::{Claims, Plan, RankPlan};
use rank::Lowering;

/// How to lower.
pub(crate) struct Settings {
    /// Channels for each pair of ranks.
    pub(crate) lanes: u32,
    /// Parts that each chunk has been cut into.
    pub(crate) slices: u32,
    /// What narrow floats are reduced in.
    pub(crate) accumulate: Option<DType>,
    /// What wider floats travel as.
    pub(crate) wire: Option<DType>,
    /// Let sends follow receives byte by byte.
    pub(crate) fuse: bool,
    /// Leave out waits that say nothing new.
    pub(crate) prune: bool,
}

/// What came out, over all ranks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Operations.
    pub(crate) ops: u64,
    /// Messages.
    pub(crate) messages: u64,
    /// Chunks that are staged, as one step reads and writes them.
    pub(crate) staged: u64,
    /// Copies that bring a chunk together that lies partly in `.in` and partly in `.out`.
    pub(crate) settled: u64,
    /// Sends that follow a receive.
    pub(crate) along: u64,
    /// Waits that were left out.
    pub(crate) pruned: u64,
    /// Waits that remain.
    pub(crate) waits: u64,
    /// Regions of all operations.
    pub(crate) regions: u64,
    /// Count classes that were made one with another.
    pub(crate) united: u64,
    /// Scratch of the rank that has most, in blocks.
    pub(crate) scratch_max: f64,
}

/// Larger plans are refused when they are loaded.
const OPS_MAX: u64 = 1 << 31;
const ENTRIES_MAX: u64 = 1 << 28;

/// What lowering a rank needs to know of the whole.
pub(crate) struct Shared<'a> {
    program: &'a Program,
    message: &'a [u32],
    settings: &'a Settings,
    classes: classes::United,
    lines: lines::Lines,
}

pub(crate) fn run(
    grouped: &Grouped<'_>,
    sources: &SourceMap,
    settings: &Settings,
) -> Result<(Plan, Totals), Diagnostic> {
    let program = &*grouped.program;
    let agenda = Agenda::of(program, &grouped.message);
    let shared = Shared {
        program,
        message: &grouped.message,
        settings,
        classes: classes::unite(program),
        lines: lines::of(program, sources),
    };
    let mut totals = Totals { united: shared.classes.united, ..Totals::default() };
    let mut lowering = Lowering::new(&shared);
    let mut ranks = Vec::with_capacity(program.ranks() as usize);
    for rank in 0..program.ranks() {
        ranks.push(lowering.rank(rank, agenda.of_rank(rank), &mut totals)?);
        if totals.ops >= OPS_MAX || totals.regions + totals.waits > ENTRIES_MAX {
            return Err(too_large(program, rank, &totals));
        }
    }
    Ok((assemble(shared, ranks), totals))
}

/// Lowers one rank's part of a program to that rank's slice of the plan. None if the part alone does not tell what
/// the slice is.
pub(crate) fn run_of_rank(
    grouped: &Grouped<'_>,
    sources: &SourceMap,
    settings: &Settings,
    rank: u32,
) -> Result<Option<Plan>, Diagnostic> {
    let program = &*grouped.program;
    let Some(classes) = classes::of_rank(program, rank) else { return Ok(None) };
    let agenda = Agenda::of(program, &grouped.message);
    let lines = lines::of(program, sources);
    let shared = Shared { program, message: &grouped.message, settings, classes, lines };
    let mut totals = Totals::default();
    let part = Lowering::new(&shared).rank(rank, agenda.of_rank(rank), &mut totals)?;
    if totals.ops >= OPS_MAX || totals.regions + totals.waits > ENTRIES_MAX {
        return Err(too_large(program, rank, &totals));
    }
    Ok(Some(assemble(shared, vec![part])))
}

fn assemble(shared: Shared<'_>, ranks: Vec<RankPlan>) -> Plan {
    let program = shared.program;
    let mut contract = program.contract.clone();
    contract.classes = shared.classes.classes;
    Plan {
        name: format!("{}.{}", contract.collective, program.schedule),
        params: program.params.clone(),
        root: program.rooted.then_some(program.root),
        reduces: contract.reduces(),
        claims: Claims::default(),
        contract,
        cuts: program.cuts.0.clone(),
        channels: shared.settings.lanes,
        slices: shared.settings.slices,
        accumulate: shared.settings.accumulate,
        wire: shared.settings.wire,
        slots: 0,
        lines: shared.lines.table,
        ranks,
        origin: None,
        proof: None,
        placement: None,
    }
}

fn too_large(program: &Program, rank: u32, totals: &Totals) -> Diagnostic {
    let found = format!(
        "{} operations with {} regions and waits on ranks 0..={rank} of {}",
        totals.ops,
        totals.regions + totals.waits,
        program.ranks()
    );
    Diagnostic::unplaced(codes::CANNOT_COMPILE, "the plan is too large")
        .expected(format!("fewer than {OPS_MAX} operations and at most {ENTRIES_MAX} regions and waits"))
        .found(found)
        .help("use fewer chunks, slices or ranks")
}
