//! The reference is a suite: every code block of `docs/language.md`, the README and the error pages holds or fails
//! as it is marked. ```` ```coll ```` is a whole file that is right for 2..=9 ranks, ```` ```coll ranks=4 ```` for
//! those, ```` ```coll fails=E0501 ranks=4 ```` gives that diagnostic. ```` ```plan ```` and ```` ```plan fails=E0604 ````
//! are plans as text, ```` ```topology ```` are topologies.

use coll::{Instance, Outcome, RankCounts, Source};
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let arguments = Arguments::from_args();
    let trials = pages().into_iter().flat_map(|page| blocks(&page));
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("docs/language.md"), root.join("README.md")];
    let errors = fs::read_dir(root.join("docs/errors")).expect("docs/errors exists");
    pages.extend(errors.map(|entry| entry.expect("it can be listed").path()));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// One trial for each marked block of a page.
fn blocks(page: &Path) -> Vec<Trial> {
    let text = fs::read_to_string(page).expect("the page can be read");
    let file_name = page.file_name().expect("it has a name").to_string_lossy().into_owned();
    let mut trials = Vec::new();
    let mut open: Option<(usize, String, String)> = None;
    for (at, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(mark), None) => open = Some((at + 1, mark.to_string(), String::new())),
            (Some(_), Some(_)) => {
                let (start, mark, body) = open.take().expect("it is open");
                let name = format!("{file_name}:{start}");
                match mark.split_whitespace().next() {
                    Some("coll") => trials.push(Trial::test(name, move || schedule(&mark, &body))),
                    Some("topology") => trials.push(Trial::test(name, move || topology(&mark, &body))),
                    Some("xml" | "foreign") => trials.push(Trial::test(name, move || foreign(&mark, &body))),
                    Some("export") => trials.push(Trial::test(name, move || export(&mark, &body))),
                    Some("plan") => trials.push(Trial::test(name, move || plan(&mark, &body))),
                    _ => {}
                }
            }
            (None, Some((_, _, body))) => *body += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    trials
}

fn option<'a>(mark: &'a str, name: &str) -> Option<&'a str> {
    mark.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn schedule(mark: &str, text: &str) -> Result<(), Failed> {
    let ranks: RankCounts = option(mark, "ranks").unwrap_or("2..=9").parse()?;
    let codes = codes_of(&Source::from_text("example.coll", text), &ranks);
    verdict(mark, &codes)
}

/// All diagnostics that a source gives, as `E0501 message`.
fn codes_of(source: &Source, ranks: &RankCounts) -> Vec<String> {
    let mut found: Vec<_> = source.diagnostics.clone();
    for (schedule, info) in source.schedules().iter().enumerate().filter(|(_, info)| !info.broken) {
        let mut applies = false;
        for n in ranks.iter() {
            let roots = if info.rooted { 0..n } else { 0..1 };
            for root in roots {
                let instance = Instance { ranks: n, root, params: Vec::new() };
                match coll::prove(source, schedule, &instance, &Default::default()) {
                    Outcome::Wrong(diagnostics) => found.extend(diagnostics),
                    Outcome::Right(proved) => {
                        applies = true;
                        found.extend(proved.warnings);
                    }
                    Outcome::DoesNotApply { .. } => {}
                }
            }
        }
        assert!(applies || !found.is_empty(), "schedule `{}` applies to none of the rank counts", info.name);
    }
    found.iter().map(|diagnostic| format!("{} {}", diagnostic.code, diagnostic.message)).collect()
}

fn plan(mark: &str, text: &str) -> Result<(), Failed> {
    let codes = match coll::read_plan_text(text) {
        Ok(_) => Vec::new(),
        Err(error) => error.diagnostics().iter().map(|d| format!("{} {}", d.code, d.message)).collect(),
    };
    verdict(mark, &codes)
}

fn topology(mark: &str, text: &str) -> Result<(), Failed> {
    let loaded = coll_topo::load("example", text.trim_end());
    let codes: Vec<String> = loaded.diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    verdict(mark, &codes)
}

/// ```` ```xml ```` is MSCCL's, ```` ```foreign ```` of any form that is read.
fn foreign(mark: &str, text: &str) -> Result<(), Failed> {
    let form = coll::foreign::Form::of(text.as_bytes()).unwrap_or(coll::foreign::Form::MscclXml);
    let examined = coll::foreign::examine(form, "example", text.into(), None);
    let told = |d: &coll_base::Diagnostic| format!("{} {}", d.code, d.message);
    verdict(mark, &examined.diagnostics.iter().map(told).collect::<Vec<_>>())
}

/// ```` ```export ```` is a plan that is to be written in it.
fn export(mark: &str, text: &str) -> Result<(), Failed> {
    let plan = coll::read_plan_text(text).map_err(|error| error.to_string())?.plan;
    let told = coll_interop::msccl::write(&plan, &Default::default()).err();
    verdict(mark, &told.iter().map(|d| format!("{} {}", d.code, d.message)).collect::<Vec<_>>())
}

fn verdict(mark: &str, found: &[String]) -> Result<(), Failed> {
    match option(mark, "fails") {
        None if found.is_empty() => Ok(()),
        None => Err(format!("it should be right, but gives\n{}", found.join("\n")).into()),
        Some(code) if found.iter().any(|line| line.starts_with(code)) => Ok(()),
        Some(code) => Err(format!("it should give {code}, but gives\n{}", found.join("\n")).into()),
    }
}
