//! The text of a module: what all kernels share, then its entries.

use crate::builtin::builtin_entries;
use crate::entry::Entry;

/// What all kernels share, each part resting on those before it.
const SHARED: [&str; 9] = [
    include_str!("text/processor.cu"),
    include_str!("text/number.cu"),
    include_str!("text/narrow.cu"),
    include_str!("text/element.cu"),
    include_str!("text/operator.cu"),
    include_str!("text/packed.cu"),
    include_str!("text/halves.cu"),
    include_str!("text/scale.cu"),
    include_str!("text/loops.cu"),
];

/// What a host's C++ compiler (GCC or Clang) has to be told beside what to make of which file, so that its code rounds as a
/// processor does. Each entry is then `extern "C" void NAME(void** arguments, unsigned grid, unsigned block)`, where
/// arguments are as `cuLaunchKernel` takes them, and runs its threads one after the other.
pub const HOST_OPTIONS: [&str; 7] = [
    "-std=c++17",
    "-DCOLLC_HOST",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-fno-strict-aliasing",
    "-fvisibility=default",
    "-Wno-unknown-pragmas",
];

/// What NVRTC has to be told for a device of a compute capability, 8.6 for instance.
pub fn nvrtc_options(major: u32, minor: u32) -> Vec<String> {
    let rest = [
        "--std=c++17",
        "--fmad=false",
        "--ftz=false",
        "--prec-div=true",
        "--prec-sqrt=true",
        "--diag-suppress=177",
    ];
    let mut options = vec![format!("--gpu-architecture=compute_{major}{minor}")];
    options.extend(rest.map(String::from));
    options
}

/// CUDA C++ of every built-in kernel.
pub fn builtin_source() -> String {
    source_of(&builtin_entries())
}

/// CUDA C++ of some of the built-in kernels.
pub fn source_of(entries: &[Entry]) -> String {
    module("", entries)
}

/// What is shared, what is a module's own, and entries.
pub(crate) fn module(own: &str, entries: &[Entry]) -> String {
    let mut text = SHARED.join("\n");
    text.push('\n');
    text.push_str(own);
    text.push_str("using namespace collc;\n");
    for entry in entries {
        text.push('\n');
        text.push_str(&entry.text());
    }
    text
}
