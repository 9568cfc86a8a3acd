//! The operations of the library, by name.

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
