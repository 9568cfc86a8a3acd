//! Puts the texts of `schedules/` into the library: a sorted table of `(collective/schedule, text)`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../schedules");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(&root, &root, &mut files)?;
    files.sort();
    let rows: String =
        files.iter().map(|(name, path)| format!("    ({name:?}, include_str!({path:?})),\n")).collect();
    let table = format!(
        "pub(crate) const FILES: &[(&str, &str)] = &[\n{rows}];\npub(crate) const HASH: u64 = {:#x};\n",
        hash(&files)?
    );
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("schedules.rs"), table)
}

/// FNV-1a over all names and texts: what was found out of the library is known to be of this one.
fn hash(files: &[(String, PathBuf)]) -> io::Result<u64> {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (name, path) in files {
        for byte in name.bytes().chain([0]).chain(fs::read(path)?).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(hash)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "coll") {
            let name = path.strip_prefix(root).expect("it was found below the root").with_extension("");
            files.push((name.to_string_lossy().replace('\\', "/"), path.canonicalize()?));
        }
    }
    Ok(())
}
