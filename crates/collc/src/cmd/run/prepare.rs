//! What is to be run: from the arguments to a proved plan, an operator and counts.

use super::ground::Standing;
use super::operator::{no_operator, operator, refuse_order};
use super::{counts, ground, trace};
use crate::args::{Passes, RunArgs, TransportKind};
use crate::cmd::compile::fit::{self, Fitting, Subject};
use crate::cmd::explain_choice::topology;
use crate::cmd::place::shown;
use crate::cmd::{choice, compile, target};
use crate::environment::FAULT;
use crate::failure::Failure;
use crate::{output, render};
use coll::select::Question;
use coll::trial::{Mishap, Settings, What, travels_as};
use coll::{Bundle, Source};
use coll_base::{DType, Fraction, SourceMap};
use coll_check::program::Properties;
use coll_cost::Layout;
use coll_kernel::UserOperator;
use coll_plan::{Placement, Plan};
use coll_sema::Instance;
use std::collections::BTreeSet;
use std::path::Path;

/// A plan and all that its ranks must be told.
pub(crate) struct Prepared {
    /// Whole and proved, or one rank's part, which names the proof that it rests on.
    pub(crate) plan: Plan,
    /// Settings for rank 0; the rendezvous is still to be named.
    pub(crate) settings: Settings,
    /// Busbw is algbw times this: the least that the busiest rank must move, as a fraction of the buffer. One rank's part
    /// does not tell.
    pub(crate) bus_factor: Option<f64>,
    /// Blocks have lengths of their own, from `--counts`.
    pub(crate) has_counts: bool,
    /// The transport's name.
    pub(crate) transport: &'static str,
    /// The type that elements are accumulated in, if it is another than theirs.
    pub(crate) accumulate: Option<DType>,
    /// What elements travel as, if that is narrower than they are.
    pub(crate) wire: Option<DType>,
    /// The device of each rank, if a topology says it.
    pub(crate) devices: Vec<String>,
    /// One line on what was taken, where that was not the user's word.
    pub(crate) remark: Option<String>,
}

/// The size of a run of which none is given, in bytes.
pub(super) const BYTES: u64 = 1 << 20;

/// The call that a run makes over and over.
pub(super) struct Call {
    pub(super) bytes: u64,
    pub(super) in_place: bool,
    /// Elements of the blocks of each class, if what is run has sizes of its own.
    pub(super) counts: Option<Vec<u64>>,
}

impl Call {
    /// As the arguments have it.
    pub(super) fn asked(args: &RunArgs) -> Call {
        Call { bytes: args.bytes.map_or(BYTES, |bytes| bytes.0), in_place: args.in_place, counts: None }
    }
}

/// What the target turned out to be.
struct Found {
    plan: Plan,
    call: Call,
    /// Only blocks of equal length are served, as far as that is known.
    equal_blocks_only: bool,
    operators: Vec<UserOperator>,
    remark: Option<String>,
    standing: Standing,
}

/// The largest file that is looked at for a plan.
const PLAN_SIZE_MAX_BYTES: u64 = 4 << 30;

/// Finds, compiles and proves what `args` name, for `ranks` ranks if the target does not say how many; `only` is the rank
/// that this process is, if it is one alone.
pub(crate) fn prepare(args: &RunArgs, ranks: Option<u32>, only: Option<u32>) -> Result<Prepared, Failure> {
    let found = find(args, ranks)?;
    refuse_part(args, &found.plan, only)?;
    trace::refuse(args, &found.plan)?;
    ground::refuse_apart(args, &found.standing)?;
    let operator = match found.plan.reduces {
        true => operator(args, &found.operators)?,
        false => no_operator(args, &found.plan)?,
    };
    let reducer =
        operator.reference(args.dtype, &found.plan).map_err(|error| Failure::unusable(error.to_string()))?;
    refuse_order(&found.plan, &operator)?;
    let contract = &found.plan.contract;
    let (elements, counts) = elements_and_counts(args, &found)?;
    check_memory(&found.plan, &counts, args.dtype.size_bytes().max(reducer.working_size_bytes()))?;
    // Bounds are shares of a buffer whose blocks are alike.
    let has_sizes = args.counts.is_some() || found.call.counts.is_some();
    let bus_factor = (found.plan.is_whole() && !has_sizes).then(|| {
        let bounds = coll_contract::bounds(contract);
        Fraction::to_f64(bounds.sent_max.max(bounds.received_max))
    });
    let settings = Settings {
        rank: 0,
        rendezvous: String::new(),
        token: String::new(),
        tls: args.tls || crate::environment::tls()?,
        via: args.transport.via(),
        ranks_per_host: ranks_per_host(args)?,
        machines: found.standing.machines,
        checksums: crate::environment::checksums()?,
        plan_hash: coll::proof_hash(&found.plan),
        elements,
        counts: counts.clone(),
        dtype: args.dtype,
        operator,
        native: native()?,
        reduces: found.plan.reduces,
        warmup: args.warmup,
        iters: args.iters,
        timeline: args.trace.is_some(),
        in_place: found.call.in_place,
        seed: args.seed,
        time_limit_s: args.timeout,
        judging_s: judging_s(&found.plan, &counts),
        mishaps: mishaps(found.plan.world(), args)?,
    };
    Ok(Prepared {
        settings,
        bus_factor,
        has_counts: args.counts.is_some(),
        transport: args.transport.name(),
        accumulate: found.plan.accumulate.filter(|_| found.plan.reduces && reducer.is_in_f32()),
        wire: travels_as(&found.plan, args.dtype, &reducer),
        devices: found.standing.devices,
        remark: found.remark,
        plan: found.plan,
    })
}

/// How many ranks share memory, if not all that can.
fn ranks_per_host(args: &RunArgs) -> Result<Option<u32>, Failure> {
    match (args.ranks_per_host, args.transport) {
        (Some(_), TransportKind::Cuda) if args.ranks.is_some() && !args.processes => Err(Failure::unusable(
            "`--ranks-per-host` says who shares memory, and all ranks are in one process",
        )
        .help("add `--processes`")),
        (Some(_), TransportKind::Tcp | TransportKind::Shm) => {
            let named = args.transport.name();
            Err(Failure::unusable(format!(
                "`--ranks-per-host` says who shares memory, and all go by {named}"
            ))
            .help("take `--transport auto`, or `threads`"))
        }
        (ranks, _) => Ok(ranks),
    }
}

/// Elements of the sized buffer, and of each class.
fn elements_and_counts(args: &RunArgs, found: &Found) -> Result<(u64, Vec<u64>), Failure> {
    let contract = &found.plan.contract;
    if let Some(counts) = &found.call.counts {
        return Ok((found.call.bytes / args.dtype.size_bytes(), counts.clone()));
    }
    let Some(rows) = counts::given(args)? else {
        let elements =
            if contract.buffers.is_empty() { 0 } else { found.call.bytes / args.dtype.size_bytes() };
        refuse_unknown_counts(&found.plan, elements)?;
        let counts = contract.counts(elements).map_err(|error| Failure::unusable(error.to_string()))?;
        return Ok((elements, counts));
    };
    if found.equal_blocks_only && rows.differ() {
        let name = &found.plan.name;
        return Err(Failure::unusable(format!("{name} serves blocks of equal length alone"))
            .help("take another schedule, or an operation's name: one that serves is chosen then"));
    }
    let counts = rows.by_class(&found.plan)?;
    let all = |rank: u32| {
        (0..contract.buffers.len() as u32).map(move |buffer| (rank, buffer)).map(|(rank, buffer)| {
            let blocks = 0..contract.buffers[buffer as usize].blocks;
            blocks.map(|block| u128::from(counts[contract.class(rank, buffer, block) as usize])).sum::<u128>()
        })
    };
    let most = (0..found.plan.world()).flat_map(all).max().unwrap_or(0);
    let too_many = |_| Failure::unusable(format!("a rank's buffer would have {most} elements"));
    Ok((u64::try_from(most).map_err(too_many)?, counts))
}

/// Whether user operators are to be compiled; `COLLC_JIT=off` has them interpreted.
fn native() -> Result<bool, Failure> {
    match std::env::var("COLLC_JIT").as_deref() {
        Err(std::env::VarError::NotPresent) | Ok("" | "on") => Ok(true),
        Ok("off") => Ok(false),
        other => {
            let found = other.unwrap_or("no text");
            Err(Failure::unusable(format!("the environment's COLLC_JIT is `{found}`")).help(
                "`off` has user operators interpreted; `on`, or nothing, has them compiled where they can be",
            ))
        }
    }
}

fn find(args: &RunArgs, ranks: Option<u32>) -> Result<Found, Failure> {
    let fitting = ground::fitting(args)?;
    // One rank for each device, unless a plan says how many it is for.
    let fitted = |ranks: Option<u32>| ranks.or(fitting.as_ref().map(Fitting::default_ranks));
    if !target::names_a_file(&args.target) {
        refuse_limits(args)?;
        let ranks = fitted(ranks);
        return from_library(args, needed(ranks)?, fitting.as_ref());
    }
    refuse_constants(args)?;
    let path = Path::new(&args.target);
    if let Some(examined) = crate::cmd::foreign::open(&args.target, args.root)? {
        let (plan, call) = super::foreign::plan(args, examined, ranks)?;
        return standing(args, (plan, call), fitting.as_ref());
    }
    let bytes = coll::read_bytes(path, PLAN_SIZE_MAX_BYTES)?;
    refuse_limits(args)?;
    if coll::is_plan(&bytes) {
        return from_plan(args, &bytes, ranks, fitting.as_ref());
    }
    if let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| Bundle::is_bundle(text)) {
        let unusable = |error| Failure::unusable(format!("`{}`: {error}", args.target));
        let bundle = Bundle::from_json(text).map_err(unusable)?;
        let mut params = bundle.params.clone();
        params.retain(|(known, _)| !args.choice.define.iter().any(|(name, _)| name == known));
        params.extend(args.choice.defined());
        let mut source = bundle.source();
        target::restrict(&mut source, Some(&bundle.schedule));
        let ranks = needed(fitted(ranks))?;
        return from_source(args, &source, (Some(&bundle.schedule), params), ranks, fitting.as_ref());
    }
    let mut source = Source::read(path)?;
    target::restrict(&mut source, args.choice.schedule.as_deref());
    let named = (args.choice.schedule.as_deref(), args.choice.defined());
    from_source(args, &source, named, needed(fitted(ranks))?, fitting.as_ref())
}

fn needed(ranks: Option<u32>) -> Result<u32, Failure> {
    ranks.ok_or_else(|| Failure::unusable("how many ranks?").help("`--ranks 4` starts four on this machine"))
}

fn from_library(args: &RunArgs, ranks: u32, fitting: Option<&Fitting>) -> Result<Found, Failure> {
    let name = match counts::operation(&args.target) {
        None => args.target.clone(),
        Some((operation, _)) => return from_choice(args, operation, ranks, fitting),
    };
    refuse_constants(args)?;
    let source = target::open(&name)?;
    let schedule = name.split_once('.').map(|(_, schedule)| schedule);
    from_source(args, &source, (schedule, args.choice.defined()), ranks, fitting)
}

/// An operation by its name alone: the schedule is chosen by its predicted time.
fn from_choice(
    args: &RunArgs,
    operation: &'static str,
    ranks: u32,
    fitting: Option<&Fitting>,
) -> Result<Found, Failure> {
    let chooser = choice::chooser(args.constants.as_deref())?;
    // Ranks that are started one by one may be on unlike machines, and have to choose alike.
    let cores = if args.ranks.is_some() { choice::cores() } else { ranks };
    let layout = match args.ranks_per_host {
        Some(ranks_per_host) if ranks_per_host < ranks => Layout { ranks_per_host, cores },
        _ => Layout::one_host(cores),
    };
    let rows = counts::given(args)?;
    let bytes = match &rows {
        None => Call::asked(args).bytes,
        Some(rows) => rows.elements().unwrap_or(u64::MAX).saturating_mul(args.dtype.size_bytes()),
    };
    let passes = passes(args)?;
    let question = Question {
        unequal_blocks: rows.is_some_and(|rows| rows.differ()),
        deterministic: choice::deterministic(args.deterministic)?,
        root: root(args, ranks)?,
        dtype: args.dtype,
        accumulate: passes.accumulate.is_some(),
        wire: passes.wire,
        transport: match args.transport {
            TransportKind::Cuda if layout.ranks_per_host < ranks => TransportKind::Tcp.name(),
            named => named.constants(args.ranks.is_some() && layout.ranks_per_host >= ranks),
        },
        layout,
        ..Question::new(operation, ranks, bytes)
    };
    let chosen = match fitting {
        Some(fitting) => topology::best(chooser, &question, fitting.network())?,
        None => chooser.choose(&question).map_err(|error| Failure::unusable(error.to_string()))?.candidate,
    };
    let mut params = chosen.params.clone();
    params.retain(|(name, _)| !args.choice.define.iter().any(|(defined, _)| defined == name));
    params.extend(args.choice.defined());
    let found = from_source(args, &chosen.source(), (Some(chosen.schedule), params), ranks, fitting)?;
    let on = args.topology.as_ref().map_or(String::new(), |topology| format!(" --topology {topology}"));
    let remark = format!(
        "{operation}: taking the library's {chosen}; `collc explain-choice {operation} {bytes} --ranks {ranks}{on}` says why"
    );
    let remark = found.remark.iter().fold(remark, |said, more| said + "\n" + more);
    Ok(Found { remark: Some(remark), ..found })
}

/// Constants are for choosing, and here is nothing to choose.
fn refuse_constants(args: &RunArgs) -> Result<(), Failure> {
    match args.constants {
        None => Ok(()),
        Some(_) => Err(Failure::unusable("`--constants` is for choosing a schedule, and one is named")
            .help("name an operation alone, such as `allreduce`, or leave `--constants` out")),
    }
}

/// Files of other tools have limits, and nothing else has.
fn refuse_limits(args: &RunArgs) -> Result<(), Failure> {
    match args.ignore_limits {
        false => Ok(()),
        true => Err(Failure::unusable(format!(
            "`--ignore-limits` is for files of other tools, and `{}` is none",
            args.target
        ))
        .help("leave it out: schedules and plans have no limits of sizes")),
    }
}

fn from_source(
    args: &RunArgs,
    source: &Source,
    (schedule, params): (Option<&str>, Vec<(String, i64)>),
    ranks: u32,
    fitting: Option<&Fitting>,
) -> Result<Found, Failure> {
    target::refuse_if_broken(source)?;
    target::show(source, &source.diagnostics);
    let schedule = target::the_one(source, schedule)?;
    target::check_parameters(&source.schedules()[schedule], &params)?;
    let root = root(args, ranks)?;
    let mut instance = Instance { ranks, root, params };
    let mut lines: Vec<String> = Vec::new();
    let options =
        compile::options_beside(&passes(args)?, if fitting.is_some() { &fit::PASSES } else { &[] })?;
    lines.extend(fitting.and_then(|fitting| fitting.shape(source, schedule, &mut instance)));
    let mut proved = compile::proved(source, schedule, &instance, &options)?;
    if let Some(fitting) = fitting {
        let subject = Subject { source, schedule, instance: &instance };
        let fitted = fitting.fit(&subject, proved, &options, &args.passes)?;
        lines.extend(fitted.lines);
        proved = fitted.proved;
    }
    let Properties { same_tree_at_every_place, same_reduction_tree, .. } = proved.properties;
    if choice::deterministic(args.deterministic)? && !(same_tree_at_every_place && same_reduction_tree) {
        let message = format!("{} reduces in an order that depends on an element's place", proved.plan.name);
        return Err(Failure::unusable(message)
            .help("name the operation alone: a deterministic schedule is chosen then; or leave `--deterministic` out"));
    }
    let operators = source.module.operators().to_vec();
    let equal_blocks_only = proved.properties.equal_blocks_only.is_some();
    let standing = fitting.map(|fitting| Standing::of(fitting.network(), &proved.plan)).unwrap_or_default();
    lines.extend(fitting.map(|fitting| ground::told(args, fitting.network(), &proved.plan, &standing)));
    let remark = (!lines.is_empty()).then(|| lines.join("\n"));
    let call = Call::asked(args);
    Ok(Found { plan: proved.plan, call, equal_blocks_only, operators, remark, standing })
}

/// The options on passes; of the library's schedules what the environment says of types, too.
fn passes(args: &RunArgs) -> Result<Passes, Failure> {
    let mut passes = args.passes.clone();
    if !target::names_a_file(&args.target) {
        (passes.accumulate, passes.wire) = choice::types(passes.accumulate, passes.wire)?;
    }
    Ok(passes)
}

/// What is a plan has been compiled: passes that are asked for would be passed over.
pub(super) fn refuse_passes(args: &RunArgs) -> Result<(), Failure> {
    let Passes { skip, no_opt, lanes, slices, accumulate, wire } = &args.passes;
    let asked = [
        ("--skip", !skip.is_empty()),
        ("--no-opt", *no_opt),
        ("--lanes", lanes.is_some()),
        ("--slices", slices.is_some()),
        ("--accumulate", accumulate.is_some()),
        ("--wire", wire.is_some()),
    ];
    match asked.into_iter().find(|&(_, asked)| asked) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::unusable(format!(
            "`{name}` is for schedules that are compiled, and `{}` is a plan",
            args.target
        ))
        .help("leave it out, or give it to `collc compile`")),
    }
}

fn root(args: &RunArgs, ranks: u32) -> Result<u32, Failure> {
    match args.root {
        Some(root) if root >= ranks => {
            Err(Failure::unusable(format!("root {root} is no rank among {ranks}"))
                .help(format!("roots are 0..={}", ranks - 1)))
        }
        root => Ok(root.unwrap_or(0)),
    }
}

fn from_plan(
    args: &RunArgs,
    bytes: &[u8],
    ranks: Option<u32>,
    fitting: Option<&Fitting>,
) -> Result<Found, Failure> {
    if choice::deterministic(args.deterministic)? {
        return Err(Failure::unusable(
            "a plan does not say whether its reductions depend on an element's place",
        )
        .help("run its schedule, or an operation by its name, which can tell"));
    }
    let read = coll::read_plan(bytes).map_err(|error| {
        let diagnostics = error.diagnostics();
        output::complain_raw(&render::render(&SourceMap::new(), diagnostics, output::colours()));
        let message = format!("`{}`: {error}", args.target);
        if matches!(error, coll::PlanError::Wrong(_)) {
            Failure::wrong(message)
        } else {
            Failure::unusable(message)
        }
    })?;
    let plan = read.plan;
    if let Some(ranks) = ranks.filter(|&ranks| ranks != plan.world()) {
        return Err(Failure::unusable(format!(
            "`{}` is a plan for {} ranks, not {ranks}",
            args.target,
            plan.world()
        ))
        .help("compile the schedule for that many, or run the schedule itself"));
    }
    if let Some(asked) = args.root.filter(|&asked| plan.root != Some(asked)) {
        let found = plan.root.map_or("no root".into(), |root| format!("root {root}"));
        return Err(Failure::unusable(format!("`{}` is a plan for {found}, not root {asked}", args.target)));
    }
    if !args.choice.define.is_empty() || args.choice.schedule.is_some() {
        return Err(Failure::unusable(
            "`-D` and `--schedule` are for schedules; a plan has its parameters set",
        ));
    }
    refuse_passes(args)?;
    standing(args, (plan, Call::asked(args)), fitting)
}

/// A plan that was read, with its ranks where the topology has them, if there is one. It does not say whether it serves blocks of
/// equal length alone; its messages would be found to differ in length.
fn standing(args: &RunArgs, (plan, call): (Plan, Call), fitting: Option<&Fitting>) -> Result<Found, Failure> {
    let Some(fitting) = fitting else {
        let remark = plan.placement.as_ref().map(placed);
        return Ok(Found {
            plan,
            call,
            equal_blocks_only: false,
            operators: Vec::new(),
            remark,
            standing: Standing::default(),
        });
    };
    let plan = ground::placed(args, fitting, plan)?;
    let standing = Standing::of(fitting.network(), &plan);
    let remark = Some(ground::told(args, fitting.network(), &plan, &standing));
    Ok(Found { plan, call, equal_blocks_only: false, operators: Vec::new(), remark, standing })
}

/// Ranks that are started here run wherever the system puts them, where no topology says more.
fn placed(placement: &Placement) -> String {
    format!(
        "the plan is placed on `{}`: rank r belongs on device r of the order {}; whoever starts ranks puts them there, and on \
         this machine the system does as it likes; `--topology` has them stand in its machines",
        placement.topology,
        shown(&placement.order)
    )
}

/// One rank's part runs on that rank, and says on which proof it rests.
fn refuse_part(args: &RunArgs, plan: &Plan, only: Option<u32>) -> Result<(), Failure> {
    let Some(part) = plan.contract.only else { return Ok(()) };
    let part_words = format!("`{}` holds the part of rank {part} of {}", args.target, plan.world());
    match only {
        None => Err(Failure::unusable(format!("{part_words}; a launcher needs the whole"))
            .help(format!("start it with `--rank {part} --world-size {}`", plan.world()))),
        Some(rank) if rank != part => {
            Err(Failure::unusable(format!("{part_words}, and this is rank {rank}")))
        }
        Some(_) if plan.proof.is_none() => {
            Err(Failure::unusable(format!("{part_words}, and does not say on which proof it rests"))
                .help("cut it anew: `collc compile … --rank` writes the proof into it"))
        }
        Some(_) => Ok(()),
    }
}

/// Failures that the environment's COLLC_FAULT wants rehearsed, with commas between.
fn mishaps(world: u32, args: &RunArgs) -> Result<Vec<Mishap>, Failure> {
    let Ok(text) = std::env::var(FAULT) else { return Ok(Vec::new()) };
    let wrong = |what: String| Failure::unusable(format!("the environment's {FAULT}: {what}"));
    let mishaps: Result<Vec<Mishap>, String> = text.split(',').map(str::parse).collect();
    let mishaps = mishaps.map_err(wrong)?;
    if let Some(outside) = mishaps.iter().find(|mishap| mishap.rank >= world) {
        return Err(wrong(format!("rank {} is none of the {world} ranks 0..={}", outside.rank, world - 1)));
    }
    if args.transport == TransportKind::Cuda && !mishaps.is_empty() {
        return Err(wrong("failures are rehearsed on messages, and streams of devices send none".into())
            .help("take another transport, or unset it"));
    }
    if args.transport == TransportKind::Threads && mishaps.iter().any(|mishap| mishap.what == What::Kill) {
        return Err(wrong("a thread cannot be killed without its process".into())
            .help("take `--transport shm` or `tcp`, where ranks are processes"));
    }
    Ok(mishaps)
}

/// The counts of a whole plan follow from the first buffer of all ranks. One rank's part tells them only if its own first
/// buffer does, or if all blocks are alike.
fn refuse_unknown_counts(plan: &Plan, elements: u64) -> Result<(), Failure> {
    let contract = &plan.contract;
    let (Some(rank), Some(first)) = (contract.only, contract.buffers.first()) else { return Ok(()) };
    let classes = |buffer: u32| {
        (0..contract.buffers[buffer as usize].blocks).map(move |block| contract.class(rank, buffer, block))
    };
    let known: BTreeSet<u32> = classes(0).collect();
    let told = (1..contract.buffers.len() as u32).flat_map(classes).all(|class| known.contains(&class));
    let alike = contract.buffers.iter().all(|buffer| buffer.blocks == first.blocks)
        && elements.is_multiple_of(u64::from(first.blocks));
    if told || alike {
        return Ok(());
    }
    let fitting = elements - elements % u64::from(first.blocks);
    Err(Failure::unusable(format!(
        "rank {rank}'s part alone does not tell how {elements} elements fall into the blocks of other ranks"
    ))
    .help(format!(
        "give a size that divides by {}, such as {fitting} elements, or the whole plan",
        first.blocks
    )))
}

/// How long making and judging all ranks' data may take, in seconds, if one core did it all: each ensured element is made
/// again from its leaves. One rank's part stands for all.
fn judging_s(plan: &Plan, counts: &[u64]) -> f64 {
    const ELEMENT_S: f64 = 100e-9;
    let elements = |ensure: &coll_contract::Ensure| {
        let class = plan.contract.class(ensure.rank, ensure.buffer, ensure.block);
        let leaves = plan.contract.values[ensure.value as usize].leaves().len();
        counts[class as usize] as f64 * (leaves + 1) as f64
    };
    let parts = if plan.is_whole() { 1 } else { plan.world() };
    plan.contract.ensures.iter().map(elements).sum::<f64>() * f64::from(parts) * ELEMENT_S
}

/// Buffers that cannot exist are refused before a process is started.
fn check_memory(plan: &Plan, counts: &[u64], element_size_bytes: u64) -> Result<(), Failure> {
    let ranks = plan.contract.only.map_or(0..plan.world(), |rank| rank..rank + 1);
    let of = |rank: u32| {
        let buffers = plan.contract.buffers.iter().zip(0u32..);
        let blocks = buffers.flat_map(|(buffer, at)| (0..buffer.blocks).map(move |block| (at, block)));
        blocks
            .map(|(at, block)| u128::from(counts[plan.contract.class(rank, at, block) as usize]))
            .sum::<u128>()
    };
    let elements: u128 = ranks.map(of).max().unwrap_or(0);
    let bytes = elements * u128::from(element_size_bytes);
    match i64::try_from(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::unusable(format!("a rank would need {bytes} bytes of buffers"))
            .help("give a smaller size")),
    }
}
