//! Puts the pages of `docs/errors` into the program: a sorted table of `(code, page)`.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder =
        PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../docs/errors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            println!("cargo::rerun-if-changed={}", path.display());
            let code = path.file_stem().expect("it has an extension").to_string_lossy().into_owned();
            pages.push((code, path.canonicalize()?));
        }
    }
    pages.sort();
    let rows: String =
        pages.iter().map(|(code, path)| format!("    ({code:?}, include_str!({path:?})),\n")).collect();
    let table = format!("pub(crate) const PAGES: &[(&str, &str)] = &[\n{rows}];\n");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("pages.rs"), table)
}
