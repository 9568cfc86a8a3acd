//! Schedules of the library, compiled.

use coll_base::SourceMap;
use coll_compile::Options;
use coll_plan::Plan;
use coll_sema::{Instance, Library, Refusal};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> Option<(String, String)> {
    let text = std::fs::read_to_string(root().join(name)).ok()?;
    Some((name.to_string(), text))
}

/// The folder `schedules`.
struct Folder;

impl Library for Folder {
    fn schedule(&self, collective: &str, schedule: &str) -> Option<(String, String)> {
        read(&format!("schedules/{collective}/{schedule}.coll"))
    }

    fn collectives(&self) -> (String, String) {
        read("schedules/collectives.coll").expect("the prelude is there")
    }

    fn names(&self) -> Vec<(String, String)> {
        all().into_iter().map(|name| split(&name)).collect()
    }
}

fn split(name: &str) -> (String, String) {
    let (collective, schedule) = name.split_once('.').expect("a full name");
    (collective.to_string(), schedule.to_string())
}

/// The full names of all schedules, sorted.
pub(crate) fn all() -> Vec<String> {
    let mut names = Vec::new();
    for folder in std::fs::read_dir(root().join("schedules")).expect("the library is there").flatten() {
        let Ok(files) = std::fs::read_dir(folder.path()) else { continue };
        for file in files.flatten().map(|file| file.path()) {
            let stem = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
            names.push(format!("{}.{stem}", folder.file_name().to_string_lossy()));
        }
    }
    names.sort();
    assert!(names.len() > 40, "{names:?}");
    names
}

/// A schedule's plan; none where it does not apply.
pub(crate) fn compile(name: &str, ranks: u32, params: &[(&str, i64)]) -> Option<Plan> {
    let (collective, schedule) = split(name);
    let (file, text) =
        Folder.schedule(&collective, &schedule).unwrap_or_else(|| panic!("{name} is not there"));
    let mut sources = SourceMap::new();
    let main = sources.add(file, text);
    let (module, _) = coll_sema::load(&mut sources, main, &Folder);
    let at = module.schedules().iter().position(|s| s.name == schedule).expect("it is declared");
    let params = params.iter().map(|&(name, value)| (name.to_string(), value)).collect();
    match module.instantiate(at, &Instance { ranks, root: 0, params }) {
        Ok(instantiated) => {
            let compiled = coll_compile::compile(&instantiated.program, &sources, &Options::default());
            Some(compiled.unwrap_or_else(|error| panic!("{name}: {}", error.message)).plan)
        }
        Err(Refusal::DoesNotApply { .. }) => None,
        Err(Refusal::Errors(errors)) => panic!("{name}: {}", errors[0].message),
    }
}
