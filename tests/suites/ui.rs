//! `tests/ui/NAME.coll`: what the command line says about a file. The first line names the command,
//! `// collc check --ranks 4`; what it prints, standard output first, is in `NAME.stderr`. With `UPDATE_EXPECT=1` the
//! expectations are written anew.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let arguments = Arguments::from_args();
    let trials = fixtures().into_iter().map(|path| {
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        Trial::test(name, move || check(&path))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn fixtures() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("tests/ui")).expect("tests/ui exists");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "coll")).collect();
    paths.sort();
    paths
}

fn check(path: &Path) -> Result<(), Failed> {
    let text = fs::read(path)?;
    let text = String::from_utf8_lossy(&text);
    let command =
        text.lines().next().and_then(|line| line.trim_start_matches('\u{feff}').strip_prefix("// collc "));
    let words: Vec<&str> = command.unwrap_or("check --ranks 4").split_whitespace().collect();
    let file = path.strip_prefix(root()).expect("it was found below the root");
    let output = Command::new(env!("CARGO_BIN_EXE_collc"))
        .arg(words[0])
        .arg(file)
        .args(&words[1..])
        .current_dir(root())
        .output()?;
    let code = output.status.code().ok_or("it was killed by a signal")?;
    let printed = format!(
        "{}{}exit code {code}\n",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let provoked = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.split('_').next());
    let wanted = provoked.filter(|code| code.len() == 5 && code.starts_with(['E', 'W']));
    if let Some(wanted) = wanted.filter(|wanted| !printed.contains(wanted)) {
        return Err(format!("it does not provoke {wanted}:\n{printed}").into());
    }
    compare(&path.with_extension("stderr"), &printed)
}

fn compare(expected: &Path, found: &str) -> Result<(), Failed> {
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(expected, found)?;
        return Ok(());
    }
    match fs::read_to_string(expected) {
        Ok(text) if text == found => Ok(()),
        Ok(text) => Err(format!("expected:\n{text}\nfound:\n{found}").into()),
        Err(_) => Err(format!("no {}; found:\n{found}", expected.display()).into()),
    }
}
