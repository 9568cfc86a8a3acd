//! A module compiled for this machine, and memory for its kernels.

use coll_cuda::HOST_OPTIONS;
use libloading::Library;
use std::ffi::c_void;
use std::fs;
use std::ops::Range;
use std::process::Command;
use tempfile::TempDir;

/// Compiled text.
pub(crate) struct HostModule {
    library: Library,
    _folder: TempDir,
}

/// What a kernel is told.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    /// Bytes of the memory that it may touch from here on.
    At(Range<usize>),
    Count(u64),
    Real(f64),
}

/// Bytes that begin at a multiple of 16.
#[derive(Clone)]
pub(crate) struct Memory {
    words: Vec<u128>,
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Memory {
        Memory { words: vec![0; bytes.div_ceil(16)] }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the words are as many bytes, all of them set, and any byte is a `u8`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 16) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and any sixteen bytes are a word.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.words.len() * 16) }
    }
}

type Kernel = unsafe extern "C" fn(*mut *mut c_void, u32, u32);

impl HostModule {
    /// Of CUDA C++, or none, and a line on standard error, where this machine has no C++ compiler. CI has one.
    pub(crate) fn compile(source: &str) -> Option<HostModule> {
        let Some(compiler) = compiler() else {
            eprintln!("SKIPPED: no c++, g++ or clang++ on PATH, so no kernel was run");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let [text, library] = ["kernels.cu", "kernels.so"].map(|name| folder.path().join(name));
        fs::write(&text, source).unwrap();
        let mut command = Command::new(compiler);
        command.args(["-x", "c++", "-O1", "-shared", "-fPIC"]).args(HOST_OPTIONS).arg("-o");
        let output = command.arg(&library).arg(&text).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler}: {said:.4000}\n{source:.200}");
        // SAFETY: the library runs no code when it is opened; it consists of the kernels.
        let library = unsafe { Library::new(&library) }.unwrap();
        Some(HostModule { library, _folder: folder })
    }

    /// Runs a kernel to its end.
    pub(crate) fn launch(
        &self,
        name: &str,
        memory: &mut Memory,
        arguments: &[Argument],
        (grid, block): (u32, u32),
    ) {
        // SAFETY: every entry has this type: `coll_cuda::HOST_OPTIONS` says so.
        let kernel = unsafe { self.library.get::<Kernel>(name.as_bytes()) };
        let kernel = kernel.unwrap_or_else(|error| panic!("{name}: {error}"));
        let base: *mut u8 = memory.words.as_mut_ptr().cast();
        let bytes = memory.words.len() * 16;
        let mut values: Vec<u64> = Vec::new();
        for argument in arguments {
            values.push(match argument {
                Argument::At(range) => {
                    assert!(range.start <= range.end && range.end <= bytes, "{name}: {range:?} of {bytes}");
                    // An address within the words, or one behind.
                    base.wrapping_add(range.start) as u64
                }
                Argument::Count(count) => *count,
                Argument::Real(value) => value.to_bits(),
            });
        }
        let mut addresses: Vec<*mut c_void> =
            values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        // SAFETY: each argument is eight bytes of the kind that the entry's shape has in its place, which tests take from
        // that shape; pointers lead into `memory`, which is borrowed alone for this call.
        unsafe { kernel(addresses.as_mut_ptr(), grid, block) };
    }
}

fn compiler() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    ["c++", "g++", "clang++"].into_iter().find(runs)
}
