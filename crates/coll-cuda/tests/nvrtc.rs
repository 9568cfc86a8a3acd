//! Every kernel through NVIDIA's own compiler, for every architecture that it knows, and through its assembler. Where neither
//! is there this says so and passes; `tests/gpu/nvrtc.sh` brings both. `UPDATE_PTX=1` writes the shipped PTX anew.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod native;
mod operators;

use coll_base::DType;
use coll_cuda::{Kernels, builtin_entries, builtin_ptx, builtin_source, nvrtc_options, ptx_of};
use coll_kernel::Reducer;
use flate2::{Compression, GzBuilder};
use native::{Nvrtc, assemble};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

/// Those that are asked for, as far as the compiler knows them.
const ARCHITECTURES: [u32; 8] = [70, 75, 80, 86, 89, 90, 100, 120];

fn known(nvrtc: &Nvrtc) -> Vec<u32> {
    let known = nvrtc.architectures();
    let all: Vec<u32> =
        ARCHITECTURES.into_iter().filter(|architecture| known.contains(architecture)).collect();
    assert!(!all.is_empty(), "NVRTC knows {known:?}");
    all
}

fn compiled(nvrtc: &Nvrtc, source: &str, architecture: u32) -> String {
    let options = nvrtc_options(architecture / 10, architecture % 10);
    nvrtc.compile(source, &options).unwrap_or_else(|log| panic!("sm_{architecture}: {log}"))
}

fn assembled(ptx: &str, architecture: u32) -> &'static str {
    match assemble(ptx, architecture) {
        Some(Ok(())) => "and assembled",
        Some(Err(said)) => panic!("sm_{architecture}: {said:.4000}"),
        None => "not assembled, for there is no ptxas that knows it",
    }
}

fn entries_of(ptx: &str) -> BTreeSet<&str> {
    ptx.split(".visible .entry ").skip(1).map(|rest| rest.split('(').next().unwrap()).collect()
}

#[test]
fn built_in_kernels_compile_for_every_architecture() {
    let Some(nvrtc) = Nvrtc::find() else { return };
    let (source, entries) = (builtin_source(), builtin_entries());
    let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name()).collect();
    for architecture in known(&nvrtc) {
        let ptx = compiled(&nvrtc, &source, architecture);
        assert_eq!(entries_of(&ptx), names, "sm_{architecture}");
        // Memory of a thread's own and calls would be slow; a fused product and sum would round once too few.
        for word in [".local", "call", "fma.", "mad.rn.f", ".ftz"] {
            let line = ptx.lines().find(|line| line.contains(word) && !line.trim_start().starts_with("//"));
            assert_eq!(line, None, "sm_{architecture}: {word}");
        }
        println!("sm_{architecture}: {} kernels compiled, {}", names.len(), assembled(&ptx, architecture));
    }
}

#[test]
fn users_operators_compile() {
    let Some(nvrtc) = Nvrtc::find() else { return };
    let known = known(&nvrtc);
    let mut compiled_count = 0;
    for (index, operator) in operators::operators().iter().enumerate() {
        let params: Vec<f64> = vec![3.0; operator.params.len()];
        for dtype in DType::ALL {
            let Ok(reducer) = Reducer::user(operator, dtype, &params) else { continue };
            for reducer in reducer.in_f32().into_iter().chain([reducer]) {
                let kernels = Kernels::of(&reducer).unwrap();
                let architecture = known[(index + compiled_count) % known.len()];
                let ptx = compiled(&nvrtc, kernels.source().unwrap(), architecture);
                assert_eq!(entries_of(&ptx), kernels.entries().into_iter().collect::<BTreeSet<_>>());
                // The library's remainder estimates a quotient by the reciprocal of a number between 1 and 2.
                let flushes = ptx.lines().filter(|line| line.contains(".ftz"));
                let harm: Vec<&str> = flushes.filter(|line| !line.contains("rcp.approx.ftz.f32")).collect();
                assert!(harm.is_empty(), "{}: {harm:?}", operator.name);
                assembled(&ptx, architecture);
                compiled_count += 1;
            }
        }
    }
    println!("{compiled_count} modules of users' operators compiled");
}

#[test]
fn the_shipped_ptx_is_what_the_compiler_makes_and_assembles() {
    let Some(nvrtc) = Nvrtc::find() else { return };
    if std::env::var_os("UPDATE_PTX").is_some() {
        let source = builtin_source();
        let ptx = compiled(&nvrtc, &source, 70);
        let packed =
            packed(&format!("// source sha256 {:x}\n{}", Sha256::digest(&source), for_older_drivers(&ptx)));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ptx/builtin.ptx.gz");
        std::fs::write(&path, &packed).unwrap();
        println!("{} bytes written to {}; run again to test it", packed.len(), path.display());
        return;
    }
    for architecture in ARCHITECTURES {
        println!("shipped PTX: sm_{architecture}, {}", assembled(builtin_ptx(), architecture));
    }
    let few = ptx_of(&["collc_combine2_sum_f32", "collc_prepare_avg_f16"]).unwrap();
    assembled(&few, 90);
}

/// A driver takes PTX of its own version and of earlier ones. NVRTC writes its own, though nothing here needs more than what
/// came with CUDA 11.0; ptxas, above, holds the text to the version that it names.
fn for_older_drivers(ptx: &str) -> String {
    let version = ptx.lines().find(|line| line.starts_with(".version ")).expect("PTX names its version");
    ptx.replacen(version, ".version 7.0", 1)
}

/// Without a name and a time, so that the same text gives the same file.
fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
