//! The shipped PTX against today's text, without any compiler: its source's hash, its entries, modules cut out of it.

use coll_base::{DType, RedOp};
use coll_cuda::{Kernels, builtin_entries, builtin_ptx, builtin_source, ptx_of};
use coll_kernel::Reducer;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

fn entries_of(ptx: &str) -> Vec<&str> {
    ptx.split(".visible .entry ").skip(1).map(|rest| rest.split('(').next().unwrap()).collect()
}

#[test]
fn the_shipped_ptx_was_made_of_this_text() {
    let due = format!("// source sha256 {:x}", Sha256::digest(builtin_source()));
    assert_eq!(
        builtin_ptx().lines().next(),
        Some(due.as_str()),
        "the kernels' text has changed: `UPDATE_PTX=1 tests/gpu/nvrtc.sh` makes their PTX anew"
    );
}

#[test]
fn it_has_every_entry_once_and_nothing_that_they_share() {
    let entries = builtin_entries();
    let mut found = entries_of(builtin_ptx());
    assert_eq!(found.len(), entries.len());
    found.sort_unstable();
    let mut due: Vec<&str> = entries.iter().map(|entry| entry.name()).collect();
    due.sort_unstable();
    assert_eq!(found, due);
    // A function or variable of the whole module would be missing where a few entries are cut out of it.
    for line in builtin_ptx().lines() {
        let shared = [".func", ".global .", ".const", ".extern"].iter().any(|word| line.contains(word));
        assert!(!shared || line.starts_with(['\t', '/']), "{line}");
    }
    for line in ["\n.version 7.0\n", "\n.target sm_70\n", "\n.address_size 64\n"] {
        assert_eq!(builtin_ptx().matches(line).count(), 1, "{line}");
    }
}

#[test]
fn a_module_has_the_entries_of_one_reducer() {
    for (op, dtype) in [(RedOp::Sum, DType::Bf16), (RedOp::Avg, DType::I64), (RedOp::Maxloc, DType::F64I64)] {
        let reducer = Reducer::builtin(op, dtype).unwrap();
        let wide = reducer.in_f32();
        for reducer in wide.iter().chain([&reducer]) {
            let kernels = Kernels::of(reducer).unwrap();
            let module = kernels.ptx().unwrap();
            assert_eq!(entries_of(&module), kernels.entries());
            assert!(module.contains("\n.target sm_70\n") && module.trim_end().ends_with('}'), "{module}");
            assert_eq!(module.matches('{').count(), module.matches('}').count());
            assert!(module.len() < 300_000, "{} bytes", module.len());
        }
    }
    assert_eq!(ptx_of(&["collc_combine2_sum_f32", "collc_combine5_sum_f32"]), None);
}

/// No name is the beginning of another that would be found in its place.
#[test]
fn names_are_found_whole() {
    let names: BTreeSet<String> = builtin_entries().iter().map(|entry| entry.name().to_string()).collect();
    for name in ["collc_prepare_avg_f16", "collc_finish_sum_bf16_in_f32", "collc_combine2_sum_i8"] {
        assert!(names.contains(name));
        let module = ptx_of(&[name]).unwrap();
        assert_eq!(entries_of(&module), [name]);
    }
}
