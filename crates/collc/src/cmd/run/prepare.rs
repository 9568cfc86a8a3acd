//! What is to be run: from the arguments to a proved plan, an operator and counts.

use crate::args::RunArgs;
use crate::cmd::{compile, target};
use crate::failure::Failure;
use crate::{output, render};
use coll::trial::{Operator, Settings};
use coll::{Bundle, Source};
use coll_base::{Fraction, RedOp, SourceMap};
use coll_kernel::UserOperator;
use coll_plan::Plan;
use coll_sema::Instance;
use std::path::Path;

/// A plan and all that its ranks must be told.
pub(crate) struct Prepared {
    /// Whole, proved.
    pub(crate) plan: Plan,
    /// Settings for rank 0; the rendezvous is still to be named.
    pub(crate) settings: Settings,
    /// Busbw is algbw times this: the least that the busiest rank must move, as a fraction of the buffer.
    pub(crate) bus_factor: f64,
    /// True if every rank must get the same bits.
    pub(crate) same_bits: bool,
    /// The transport's name.
    pub(crate) transport: &'static str,
    /// One line on what was taken, where that was not the user's word.
    pub(crate) remark: Option<String>,
}

/// What the target turned out to be.
struct Found {
    plan: Plan,
    operators: Vec<UserOperator>,
    /// Known of programs only.
    facts: Option<Facts>,
    remark: Option<String>,
}

struct Facts {
    same_bits: bool,
    ordered: bool,
}

/// The largest file that is looked at for a plan.
const PLAN_SIZE_MAX_BYTES: u64 = 4 << 30;

/// Finds, compiles and proves what `args` name, for `ranks` ranks if the target does not say how many.
pub(crate) fn prepare(args: &RunArgs, ranks: Option<u32>) -> Result<Prepared, Failure> {
    let found = find(args, ranks)?;
    let operator = match found.plan.contract.reduces() {
        true => operator(args, &found.operators)?,
        false => no_operator(args, &found.plan)?,
    };
    let reducer = operator.reducer(args.dtype).map_err(|error| Failure::unusable(error.to_string()))?;
    refuse_order(&found, &operator)?;
    let contract = &found.plan.contract;
    let elements = if contract.buffers.is_empty() { 0 } else { args.bytes.0 / args.dtype.size_bytes() };
    let counts = contract.counts(elements).map_err(|error| Failure::unusable(error.to_string()))?;
    check_memory(&found.plan, &counts, args.dtype.size_bytes().max(reducer.working_size_bytes()))?;
    let bounds = coll_contract::bounds(contract);
    let factor = Fraction::to_f64(bounds.sent_max.max(bounds.received_max));
    let settings = Settings {
        rank: 0,
        rendezvous: String::new(),
        token: String::new(),
        plan_hash: coll_plan::hash(&found.plan),
        elements,
        counts: counts.clone(),
        dtype: args.dtype,
        operator,
        reduces: found.plan.contract.reduces(),
        warmup: args.warmup,
        iters: args.iters,
        in_place: args.in_place,
        seed: args.seed,
        time_limit_s: args.timeout,
        judging_s: judging_s(&found.plan, &counts),
    };
    Ok(Prepared {
        settings,
        bus_factor: factor,
        same_bits: found.facts.is_some_and(|facts| facts.same_bits),
        transport: match args.transport {
            crate::args::TransportKind::Tcp => "tcp",
        },
        remark: found.remark,
        plan: found.plan,
    })
}

fn find(args: &RunArgs, ranks: Option<u32>) -> Result<Found, Failure> {
    if !target::names_a_file(&args.target) {
        return from_library(args, needed(ranks)?);
    }
    let path = Path::new(&args.target);
    let bytes = coll::read_bytes(path, PLAN_SIZE_MAX_BYTES)?;
    if coll::is_plan(&bytes) {
        return from_plan(args, &bytes, ranks);
    }
    if let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| Bundle::is_bundle(text)) {
        let unusable = |error| Failure::unusable(format!("`{}`: {error}", args.target));
        let bundle = Bundle::from_json(text).map_err(unusable)?;
        let mut params = bundle.params.clone();
        for (name, value) in &args.choice.define {
            params.retain(|(known, _)| known != name);
            params.push((name.clone(), *value));
        }
        let mut source = bundle.source();
        target::restrict(&mut source, Some(&bundle.schedule));
        return from_source(args, &source, Some(&bundle.schedule), params, needed(ranks)?);
    }
    let mut source = Source::read(path)?;
    target::restrict(&mut source, args.choice.schedule.as_deref());
    from_source(args, &source, args.choice.schedule.as_deref(), args.choice.define.clone(), needed(ranks)?)
}

fn needed(ranks: Option<u32>) -> Result<u32, Failure> {
    ranks.ok_or_else(|| Failure::unusable("how many ranks?").help("`--ranks 4` starts four on this machine"))
}

fn from_library(args: &RunArgs, ranks: u32) -> Result<Found, Failure> {
    let (name, remark) = match coll::canonical_operation(&args.target) {
        None => (args.target.clone(), None),
        Some(operation) => {
            let schedule = coll::default_schedule(operation, ranks).ok_or_else(|| {
                Failure::unusable(format!("no schedule of `{operation}` serves by default"))
            })?;
            let name = format!("{operation}.{schedule}");
            let remark =
                format!("{operation}: taking the library's {name}; `collc list {operation}` shows others");
            (name, Some(remark))
        }
    };
    let source = target::open(&name)?;
    let schedule = name.split_once('.').map(|(_, schedule)| schedule);
    let found = from_source(args, &source, schedule, args.choice.define.clone(), ranks)?;
    Ok(Found { remark, ..found })
}

fn from_source(
    args: &RunArgs,
    source: &Source,
    schedule: Option<&str>,
    params: Vec<(String, i64)>,
    ranks: u32,
) -> Result<Found, Failure> {
    target::refuse_if_broken(source)?;
    target::show(source, &source.diagnostics);
    let schedule = target::the_one(source, schedule)?;
    target::check_parameters(&source.schedules()[schedule], &params)?;
    let root = root(args, ranks)?;
    let instance = Instance { ranks, root, params };
    let proved = compile::proved(source, schedule, &instance, &compile::options(&args.passes)?)?;
    let facts =
        Facts { same_bits: proved.properties.same_reduction_tree, ordered: proved.properties.ordered };
    let operators = source.module.operators().to_vec();
    Ok(Found { plan: proved.plan, operators, facts: Some(facts), remark: None })
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

fn from_plan(args: &RunArgs, bytes: &[u8], ranks: Option<u32>) -> Result<Found, Failure> {
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
    if !plan.is_whole() {
        return Err(Failure::unusable(format!(
            "`{}` holds one rank's part; a run needs the whole",
            args.target
        )));
    }
    Ok(Found { plan, operators: Vec::new(), facts: None, remark: None })
}

/// Where nothing is reduced, an operator that is asked for would be one that is ignored.
fn no_operator(args: &RunArgs, plan: &Plan) -> Result<Operator, Failure> {
    let asked = args.op.as_ref().map(|op| format!("--op {op}"));
    let set = args.operator_values.first().map(|(name, value)| format!("--set {name}={value}"));
    match asked.or(set) {
        None => Ok(Operator::Builtin(RedOp::Sum)),
        Some(asked) => {
            let message = format!("`{asked}` is for collectives that reduce, and {} does not", plan.name);
            Err(Failure::unusable(message).help("leave it out: elements arrive as they were sent"))
        }
    }
}

/// The operator that is asked for; a file that declares one means it to be used.
fn operator(args: &RunArgs, declared: &[UserOperator]) -> Result<Operator, Failure> {
    let user = |operator: &UserOperator| {
        let value = |name: &String| {
            let given = args.operator_values.iter().find(|(known, _)| known == name);
            given.map(|(_, value)| *value).ok_or_else(|| {
                Failure::unusable(format!("operator `{}` needs a value for `{name}`", operator.name))
                    .help(format!("give it one with `--set {name}=VALUE`"))
            })
        };
        for (at, (name, _)) in args.operator_values.iter().enumerate() {
            if !operator.params.contains(name) {
                let has = match operator.params.is_empty() {
                    true => "it has none".to_string(),
                    false => format!("it has {}", operator.params.join(", ")),
                };
                let message = format!("operator `{}` has no parameter `{name}`", operator.name);
                return Err(Failure::unusable(message).help(has));
            }
            if args.operator_values[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Failure::unusable(format!("`--set {name}=…` is given twice")));
            }
        }
        let values = operator.params.iter().map(value).collect::<Result<Vec<f64>, Failure>>()?;
        Ok(Operator::User(operator.clone(), values))
    };
    let builtin = |op: RedOp| match args.operator_values.first() {
        None => Ok(Operator::Builtin(op)),
        Some((name, _)) => Err(Failure::unusable(format!("operator `{op}` has no parameter `{name}`"))),
    };
    let Some(name) = &args.op else {
        return match declared {
            [only] => user(only),
            [] => builtin(RedOp::Sum),
            _ => Err(Failure::unusable("the file declares several operators").help("name one with `--op`")),
        };
    };
    if let Some(operator) = declared.iter().find(|operator| operator.name == *name) {
        return user(operator);
    }
    match name.parse() {
        Ok(op) => builtin(op),
        Err(message) => {
            let names: Vec<&str> = declared.iter().map(|operator| operator.name.as_str()).collect();
            let failure = Failure::unusable(message);
            Err(if names.is_empty() {
                failure
            } else {
                failure.help(format!("the file declares {}", names.join(", ")))
            })
        }
    }
}

/// An operator that does not commute needs a schedule that keeps rank order.
fn refuse_order(found: &Found, operator: &Operator) -> Result<(), Failure> {
    let keeps_order = found.facts.as_ref().is_some_and(|facts| facts.ordered);
    if operator.is_commutative() || !found.plan.contract.reduces() || keeps_order {
        return Ok(());
    }
    Err(Failure::unusable(format!(
        "operator `{}` does not commute, and {} does not keep the operands in rank order",
        operator.name(),
        found.plan.name
    ))
    .help("take a schedule that does: `collc check` says `ordered operators: yes`"))
}

/// How long making and judging all ranks' data may take, in seconds, if one core did it all: each ensured element is made
/// again from its leaves.
fn judging_s(plan: &Plan, counts: &[u64]) -> f64 {
    const ELEMENT_S: f64 = 100e-9;
    let elements = |ensure: &coll_contract::Ensure| {
        let class = plan.contract.class(ensure.rank, ensure.buffer, ensure.block);
        let leaves = plan.contract.values[ensure.value as usize].leaves().len();
        counts[class as usize] as f64 * (leaves + 1) as f64
    };
    plan.contract.ensures.iter().map(elements).sum::<f64>() * ELEMENT_S
}

/// Buffers that cannot exist are refused before a process is started.
fn check_memory(plan: &Plan, counts: &[u64], element_size_bytes: u64) -> Result<(), Failure> {
    let of = |buffer: usize| {
        let blocks = 0..plan.contract.buffers[buffer].blocks;
        blocks
            .map(|block| u128::from(counts[plan.contract.class(0, buffer as u32, block) as usize]))
            .sum::<u128>()
    };
    let elements: u128 = (0..plan.contract.buffers.len()).map(of).sum();
    let bytes = elements * u128::from(element_size_bytes);
    match i64::try_from(bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::unusable(format!("a rank would need {bytes} bytes of buffers"))
            .help("give a smaller `--bytes`")),
    }
}
