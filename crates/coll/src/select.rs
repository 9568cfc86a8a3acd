//! Which library schedule serves an operation that is asked for by name. Choice by measured cost is not made here
//! yet: these are the algorithms that are good at most sizes on a handful of ranks.

/// The schedule that serves an operation on `ranks` ranks, or nothing if there is no such operation.
pub fn default_schedule(operation: &str, ranks: u32) -> Option<&'static str> {
    Some(match operation {
        "broadcast" => "binomial",
        "scatter" | "gather" | "reduce" => "binomial",
        "allgather" => "ring",
        "reduce_scatter" => "ring",
        "allreduce" if ranks <= 2 => "recursive_doubling",
        "allreduce" => "ring",
        "alltoall" => "pairwise",
        "barrier" => "dissemination",
        "scan" | "exscan" => "doubling",
        _ => return None,
    })
}

/// The operation's name in the library: `reducescatter` and `all-reduce` are taken as well.
pub fn canonical_operation(name: &str) -> Option<&'static str> {
    let plain: String =
        name.chars().filter(|c| !matches!(c, '_' | '-')).collect::<String>().to_ascii_lowercase();
    OPERATIONS.into_iter().find(|operation| operation.replace('_', "") == plain)
}

/// The operations of the library.
pub const OPERATIONS: [&str; 11] = [
    "broadcast",
    "scatter",
    "gather",
    "reduce",
    "allgather",
    "reduce_scatter",
    "allreduce",
    "alltoall",
    "barrier",
    "scan",
    "exscan",
];
