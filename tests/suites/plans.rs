//! `tests/plan/*.plan`: plans as text. A file named after a code must be refused with it; every other one is proved,
//! and comes back unchanged through each form.

use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/plan");
    let entries = fs::read_dir(folder).expect("tests/plan exists");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "plan"));
    paths.sort();
    let trials = paths.into_iter().map(|path| {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        Trial::test(name, move || check(&path))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn check(path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let stem = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
    let code = stem.split('_').next().filter(|word| word.len() == 5 && word.starts_with('E'));
    match (coll::read_plan_text(&text), code) {
        (Ok(read), None) => round_trip(&read.plan),
        (Ok(_), Some(code)) => Err(format!("it should be refused with {code}, and is proved").into()),
        (Err(error), Some(code)) if error.diagnostics().iter().any(|d| d.code.0 == code) => Ok(()),
        (Err(error), _) => Err(format!("{:#?}", error.diagnostics()).into()),
    }
}

fn round_trip(plan: &coll_plan::Plan) -> Result<(), Failed> {
    let forms = [
        coll_plan::to_text(plan).into_bytes(),
        coll_plan::to_json(plan).into_bytes(),
        coll_plan::to_bytes(plan),
    ];
    for form in forms {
        let read = coll::read_plan(&form).map_err(|error| error.to_string())?.plan;
        if coll_plan::hash(&read) != coll_plan::hash(plan) {
            return Err("a form does not give the same plan back".into());
        }
    }
    Ok(())
}
