//! How long instantiation takes. By hand: `cargo test --release -p coll-sema --test speed -- --ignored --nocapture`.

mod support;

use std::time::Instant;

#[test]
#[ignore = "measures; run by hand, in release"]
#[allow(clippy::print_stdout, reason = "its output is its result")]
fn instantiate_large_groups() {
    let fill = [
        ("allreduce", "ring", 256),
        ("allreduce", "ring", 1024),
        ("allgather", "ring", 1024),
        ("alltoall", "linear", 1024),
        ("alltoall", "bruck", 1024),
        ("allreduce", "two_level", 1024),
        ("allreduce", "recursive_doubling", 65_536),
        ("broadcast", "binomial", 65_536),
    ];
    for (collective, schedule, ranks) in fill {
        let (sources, module, diagnostics) = support::load_library(collective, schedule);
        assert!(diagnostics.is_empty(), "{}", support::render(&sources, &diagnostics));
        let start = Instant::now();
        let made = module.instantiate(0, &coll_sema::Instance { ranks, root: 0, params: Vec::new() });
        let made = made.expect("it instantiates");
        let (took, count) = (start.elapsed(), made.program.transfers.len());
        println!("{collective}.{schedule} n = {ranks}: {count} transfers in {took:?}");
    }
}
