//! `collc export`: a proved plan in the form of another tool. What a form cannot say is refused by name; MSCCL's is read
//! back and proved before it is written.

use crate::args::{ExportArgs, ExportForm};
use crate::cmd::{compile, foreign, target};
use crate::failure::Failure;
use crate::output;
use coll::foreign::{Form, examine};
use coll_base::{Diagnostic, SourceMap};
use coll_interop::{chakra, goal, msccl, mscclpp};
use coll_plan::Plan;
use coll_sema::Instance;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The largest plan that is read.
const PLAN_SIZE_MAX_BYTES: u64 = 4 << 30;

/// Writes one plan.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let plan = plan(args)?;
    let (files, remarks) = match args.to {
        ExportForm::MscclXml => msccl_xml(args, &plan)?,
        ExportForm::MscclppJson => {
            let text = mscclpp::write(&plan).map_err(refused)?;
            read_back(Form::MscclppJson, &plan, &text, u32::MAX)?;
            (vec![(args.output.clone(), text.into_bytes())], Vec::new())
        }
        ExportForm::Goal => {
            let text = goal::write(&plan, &sizes(args, &plan)?).map_err(refused)?;
            (vec![(args.output.clone(), text.into_bytes())], Vec::new())
        }
        ExportForm::Chakra => {
            let traces = chakra::write(&plan, &sizes(args, &plan)?).map_err(refused)?;
            let path = |rank: usize| PathBuf::from(format!("{}.{rank}.et", args.output.display()));
            let files = traces.into_iter().enumerate().map(|(rank, trace)| (path(rank), trace));
            (files.collect(), Vec::new())
        }
    };
    for (path, bytes) in &files {
        output::write_file(path, bytes)?;
    }
    for remark in remarks {
        output::complain_raw(&format!("note: {remark}\n"));
    }
    let wrote = match &files[..] {
        [(path, _)] => path.display().to_string(),
        [(first, _), .., (last, _)] => format!("{} to {}", first.display(), last.display()),
        [] => "nothing".into(),
    };
    output::print(&format!("{} for {} ranks\nwrote {wrote}\n", plan.name, plan.world()))?;
    Ok(ExitCode::SUCCESS)
}

/// A file to be written.
type File = (PathBuf, Vec<u8>);

fn msccl_xml(args: &ExportArgs, plan: &Plan) -> Result<(Vec<File>, Vec<String>), Failure> {
    let options = |fuse| msccl::WriteOptions {
        protocol: args.protocol.name().to_string(),
        min_bytes: args.min_bytes.0,
        max_bytes: args.max_bytes.0,
        fuse,
    };
    let slots = args.protocol.slots();
    let mut written = msccl::write(plan, &options(true)).map_err(refused)?;
    if read_back(Form::MscclXml, plan, &written.text, u32::MAX)? > slots {
        written = msccl::write(plan, &options(false)).map_err(refused)?;
        let needs = read_back(Form::MscclXml, plan, &written.text, slots)?;
        debug_assert!(needs <= slots);
    }
    Ok((vec![(args.output.clone(), written.text.into_bytes())], written.remarks))
}

/// What was written says what it should, and its runtime's connections hold enough. Gives the slots that it needs.
fn read_back(form: Form, plan: &Plan, text: &str, slots: u32) -> Result<u32, Failure> {
    let examined = examine(form, "the file", text.to_string(), plan.root);
    let verdict = examined.schedule.as_ref().map(|schedule| schedule.verdict);
    match verdict.filter(|verdict| verdict.ok) {
        Some(verdict) if verdict.min_slots > slots => Err(Failure::wrong(format!(
            "{} needs {} messages of a connection under way, and the protocol allows {slots}",
            plan.name, verdict.min_slots
        ))
        .help("take `--protocol LL`, or another schedule")),
        Some(verdict) => Ok(verdict.min_slots),
        None => {
            foreign::show(&examined);
            Err(Failure::wrong(format!(
                "{} is not what {} would make of it; nothing was written",
                plan.name,
                form.name()
            )))
        }
    }
}

fn refused(told: Box<Diagnostic>) -> Failure {
    target_error(&told)
}

fn target_error(told: &Diagnostic) -> Failure {
    let text = crate::render::render(&SourceMap::new(), std::slice::from_ref(told), output::colours());
    output::complain_raw(&text);
    Failure::wrong(told.message.clone()).help("nothing was written")
}

/// Element counts of all classes, and the size of an element.
fn sizes(args: &ExportArgs, plan: &Plan) -> Result<coll_interop::Sizes, Failure> {
    let element_size_bytes = args.dtype.size_bytes();
    let elements = if plan.contract.buffers.is_empty() { 0 } else { args.bytes.0 / element_size_bytes };
    let counts = plan.contract.counts(elements).map_err(|error| Failure::unusable(error.to_string()))?;
    Ok(coll_interop::Sizes { counts, element_size_bytes })
}

/// The plan of what is named, proved.
fn plan(args: &ExportArgs) -> Result<Plan, Failure> {
    if let Some(examined) = foreign::open(&args.target, args.root)? {
        let plan = foreign::right(&args.target, examined)?.plan;
        return for_ranks(args, plan);
    }
    if target::names_a_file(&args.target) {
        let bytes = coll::read_bytes(Path::new(&args.target), PLAN_SIZE_MAX_BYTES)?;
        if coll::is_plan(&bytes) {
            let read = coll::read_plan(&bytes);
            let read = read.map_err(|error| Failure::unusable(format!("`{}`: {error}", args.target)))?;
            return for_ranks(args, read.plan);
        }
    }
    let mut source = target::open(&args.target)?;
    target::restrict(&mut source, args.choice.schedule.as_deref());
    target::refuse_if_broken(&source)?;
    let schedule = target::the_one(&source, args.choice.schedule.as_deref())?;
    target::check_parameters(&source.schedules()[schedule], &args.choice.defined())?;
    let ranks = args.ranks.as_ref().and_then(|ranks| ranks.single()).ok_or_else(|| {
        Failure::unusable("an export is for one rank count").help("say it with `--ranks N`")
    })?;
    let root = args.root.unwrap_or(0);
    if root >= ranks {
        return Err(Failure::unusable(format!("root {root} is no rank among {ranks}")));
    }
    let instance = Instance { ranks, root, params: args.choice.defined() };
    Ok(compile::proved(&source, schedule, &instance, &compile::options(&args.passes)?)?.plan)
}

fn for_ranks(args: &ExportArgs, plan: Plan) -> Result<Plan, Failure> {
    match args.ranks.as_ref().filter(|ranks| ranks.single() != Some(plan.world())) {
        None => Ok(plan),
        Some(_) => Err(Failure::unusable(format!("`{}` is for {} ranks", args.target, plan.world()))
            .help("leave `--ranks` out, or export the schedule")),
    }
}
