//! `collc export`: a proved plan in the form of another tool. What a form cannot say is refused by name, and so is what the
//! runtimes that load it could not; MSCCL's forms are read back and proved before they are written.

use crate::args::{ExportArgs, ExportForm};
use crate::cmd::{compile, foreign, target};
use crate::failure::Failure;
use crate::output;
use coll::foreign::{Form, examine};
use coll_base::{Diagnostic, SourceMap};
use coll_interop::{Written, chakra, goal, msccl, mscclpp};
use coll_plan::Plan;
use coll_sema::Instance;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The size that traces are of if none is given, in bytes.
const BYTES: u64 = 1 << 20;

/// The largest plan that is read.
const PLAN_SIZE_MAX_BYTES: u64 = 4 << 30;

/// Writes one plan.
pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    refuse_limits(args)?;
    let subject = subject(args)?;
    let plan = &subject.plan;
    let (files, remarks) = match args.to {
        ExportForm::MscclXml => msccl_xml(args, plan)?,
        ExportForm::MscclppJson => {
            let written = mscclpp::write(plan).map_err(refused)?;
            read_back(Form::MscclppJson, plan, &written.text)?;
            settled(args, plan, written)?
        }
        ExportForm::Goal => {
            let text = goal::write(plan, &sizes(args, &subject)?).map_err(refused)?;
            (vec![(args.output.clone(), text.into_bytes())], Vec::new())
        }
        ExportForm::Chakra => {
            let traces = chakra::write(plan, &sizes(args, &subject)?).map_err(refused)?;
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

/// Forms of traces have no limits.
fn refuse_limits(args: &ExportArgs) -> Result<(), Failure> {
    match args.to {
        ExportForm::Goal | ExportForm::Chakra if args.ignore_limits => {
            Err(Failure::unusable("`--ignore-limits` is for MSCCL XML and MSCCL++ JSON")
                .help("leave it out: GOAL and Chakra traces have no limits"))
        }
        _ => Ok(()),
    }
}

/// A file to be written.
type File = (PathBuf, Vec<u8>);

/// Writes MSCCL XML: with fused steps if the protocol has slots for them, else without.
fn msccl_xml(args: &ExportArgs, plan: &Plan) -> Result<(Vec<File>, Vec<String>), Failure> {
    if args.max_bytes.0 > 0 && args.max_bytes.0 < args.min_bytes.0 {
        let message =
            format!("`--max-bytes` {} is less than `--min-bytes` {}", args.max_bytes.0, args.min_bytes.0);
        return Err(Failure::unusable(message).help("such a file would never be taken; 0 is no limit"));
    }
    let slots = args.protocol.slots();
    let (mut written, mut needs) = written(args, plan, true)?;
    if needs > slots {
        (written, needs) = self::written(args, plan, false)?;
    }
    if needs > slots {
        let (name, whose) = (&plan.name, args.protocol.name());
        let message = format!(
            "{name} needs {needs} messages of a connection under way, and the protocol {whose} allows {slots}"
        );
        if !args.ignore_limits {
            return Err(Failure::wrong(message).help(
                "take `--protocol LL`, or another schedule; `--ignore-limits` writes it all the same",
            ));
        }
        written.beyond.push(message);
    }
    settled(args, plan, written)
}

/// A file of MSCCL XML, and the slots that it needs, whatever chunks its runtime cuts steps into.
fn written(args: &ExportArgs, plan: &Plan, fuse: bool) -> Result<(Written, u32), Failure> {
    let options = |chunks_max| msccl::WriteOptions {
        protocol: args.protocol.name().to_string(),
        min_bytes: args.min_bytes.0,
        max_bytes: args.max_bytes.0,
        fuse,
        chunks_max,
    };
    let written = msccl::write(plan, &options(msccl::CHUNKS_MAX)).map_err(refused)?;
    let mut needs = read_back(Form::MscclXml, plan, &written.text)?;
    let single = msccl::write(plan, &options(1)).map_err(refused)?;
    if single.text != written.text {
        needs = needs.max(read_back(Form::MscclXml, plan, &single.text)?);
    }
    Ok((written, needs))
}

/// The file, unless it exceeds limits that count.
fn settled(args: &ExportArgs, plan: &Plan, written: Written) -> Result<(Vec<File>, Vec<String>), Failure> {
    let ignored = |beyond: &String| format!("`{}` has {beyond}", args.output.display());
    let remarks: Vec<String> = match args.ignore_limits {
        true => written.beyond.iter().map(ignored).collect(),
        false => Vec::new(),
    };
    let text = match args.ignore_limits {
        true => written.text,
        false => written.within_limits(plan).map_err(refused)?,
    };
    Ok((vec![(args.output.clone(), text.into_bytes())], remarks))
}

/// What was written says what it should. Gives the slots that it needs.
fn read_back(form: Form, plan: &Plan, text: &str) -> Result<u32, Failure> {
    let examined = examine(form, "the file", text.to_string(), plan.root);
    match examined.schedule.as_ref().map(|schedule| schedule.verdict).filter(|verdict| verdict.ok) {
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

/// Element counts of all classes, and the size of an element: of a file that says its sizes, those.
fn sizes(args: &ExportArgs, subject: &Subject) -> Result<coll_interop::Sizes, Failure> {
    let element_size_bytes = args.dtype.size_bytes();
    let contract = &subject.plan.contract;
    let counts = match (&subject.sizes_bytes, args.bytes) {
        (Some(_), Some(_)) => {
            let message = format!("`--bytes` is not for `{}`, which says what is sent", args.target);
            return Err(Failure::unusable(message).help("leave it out"));
        }
        (Some(sizes), None) => sizes.iter().map(|size| size.div_ceil(element_size_bytes)).collect(),
        (None, bytes) => {
            let bytes = bytes.map_or(BYTES, |bytes| bytes.0);
            let elements = if contract.buffers.is_empty() { 0 } else { bytes / element_size_bytes };
            contract.counts(elements).map_err(|error| Failure::unusable(error.to_string()))?
        }
    };
    Ok(coll_interop::Sizes { counts, element_size_bytes })
}

/// What is exported.
struct Subject {
    plan: Plan,
    /// Bytes of the blocks of each class, if it came of a file that says them.
    sizes_bytes: Option<Vec<u64>>,
}

/// The plan of what is named, proved.
fn subject(args: &ExportArgs) -> Result<Subject, Failure> {
    if let Some(examined) = foreign::open(&args.target, args.root)? {
        let schedule = foreign::right(&args.target, examined)?;
        return for_ranks(args, schedule.plan, schedule.sizes_bytes);
    }
    if target::names_a_file(&args.target) {
        let bytes = coll::read_bytes(Path::new(&args.target), PLAN_SIZE_MAX_BYTES)?;
        if coll::is_plan(&bytes) {
            let read = coll::read_plan(&bytes);
            let read = read.map_err(|error| Failure::unusable(format!("`{}`: {error}", args.target)))?;
            return for_ranks(args, read.plan, None);
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
    let plan = compile::proved(&source, schedule, &instance, &compile::options(&args.passes)?)?.plan;
    Ok(Subject { plan, sizes_bytes: None })
}

fn for_ranks(args: &ExportArgs, plan: Plan, sizes_bytes: Option<Vec<u64>>) -> Result<Subject, Failure> {
    match args.ranks.as_ref().filter(|ranks| ranks.single() != Some(plan.world())) {
        None => Ok(Subject { plan, sizes_bytes }),
        Some(_) => Err(Failure::unusable(format!("`{}` is for {} ranks", args.target, plan.world()))
            .help("leave `--ranks` out, or export the schedule")),
    }
}
