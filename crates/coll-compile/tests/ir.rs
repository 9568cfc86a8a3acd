//! Passes, tested by files: `tests/ir/*.ir` at the top of the project. The first line is `test PASS [option …]`,
//! then comes a program, a line `----`, and what the pass makes of it. `UPDATE_EXPECT=1` writes that anew.
//!
//! PASS is one of those that work on a program; or `lower`, for a plan's ranks with what lowering reports; or `dot`;
//! or `read`, for the program as it prints, or the message that refuses it. Options are `merge`, `no-merge`,
//! `lanes=N`, `slices=N` and `skip=PASS`.

use coll_base::{Diagnostic, FileId, SourceMap};
use coll_compile::{Options, compile, run_pass};
use coll_ir::{Dependences, dot, print, read};
use std::path::{Path, PathBuf};

#[test]
fn passes_do_what_the_files_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ir");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "ir"));
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", folder.display());
    let failed: Vec<String> = files.iter().filter_map(|file| check(file).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn check(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let (input, expected) = text.split_once("----\n").unwrap_or((&text, ""));
    let found = outcome(input);
    if found == expected {
        return Ok(());
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let input = input.trim_end();
        return std::fs::write(file, format!("{input}\n----\n{found}")).map_err(|error| error.to_string());
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Err(format!("== {name}: expected\n{expected}\n== found\n{found}\n(UPDATE_EXPECT=1 accepts it)"))
}

fn outcome(input: &str) -> String {
    let (head, body) = input.split_once('\n').unwrap_or((input, ""));
    let mut words = head.split_whitespace();
    assert_eq!(words.next(), Some("test"), "the first line is `test PASS [option …]`");
    let pass = words.next().expect("the first line names a pass");
    let options = options(words);
    // Lines of messages count from the file's first.
    let program = match read(FileId(0), &format!("\n{body}")) {
        Ok(program) => program,
        Err(error) => return format!("{error}\n"),
    };
    let mut sources = SourceMap::new();
    sources.add("case.ir", input);
    let found = match pass {
        "read" => Ok(print(&program)),
        "dot" => Ok(dot(&program, &Dependences::of(&program))),
        "lower" => compile(&program, &sources, &options).map(|compiled| {
            let report = compiled.reports.iter().find(|report| report.name == "lower");
            let text = coll_plan::to_text(&compiled.plan);
            let ranks = text.find("rank 0\n").map_or("", |start| &text[start..]);
            format!("{}\n\n{ranks}", report.map(ToString::to_string).unwrap_or_default())
        }),
        _ => run_pass(pass, &program, &options).map(|(grouped, report)| {
            let text = grouped.print();
            let changed = text.find("cuts ").map_or(text.as_str(), |start| &text[start..]);
            format!("{report}\n{changed}")
        }),
    };
    found.unwrap_or_else(|refusal| told(&refusal))
}

fn options<'a>(words: impl Iterator<Item = &'a str>) -> Options {
    let mut options = Options::default();
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("merge", _) => options.merge = Some(true),
            ("no-merge", _) => options.merge = Some(false),
            ("lanes", count) => options.lanes = count.parse().ok(),
            ("slices", count) => options.slices = count.parse().ok(),
            ("skip", pass) => options.skip.push(pass.to_owned()),
            _ => panic!("no option `{word}`"),
        }
    }
    options
}

fn told(refusal: &Diagnostic) -> String {
    let part = |name, text: &Option<String>| text.as_ref().map(|text| format!("  {name}: {text}\n"));
    let parts =
        [part("expected", &refusal.expected), part("found", &refusal.found), part("help", &refusal.help)];
    format!("{}: {}\n{}", refusal.code, refusal.message, parts.into_iter().flatten().collect::<String>())
}
