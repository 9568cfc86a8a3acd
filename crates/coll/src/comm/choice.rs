//! Which library schedule serves a call. Every rank must choose alike, so the choice depends on nothing but what all
//! ranks know of the call.

use crate::library;

/// What is known of a call on all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// The collective.
    pub(crate) collective: &'static str,
    /// How many ranks there are.
    pub(crate) ranks: u32,
    /// Bytes of the buffer with all blocks, where all ranks know them.
    pub(crate) bytes: u64,
    /// Whether each rank knows the lengths of those blocks only that it sends or receives as its own.
    pub(crate) own_counts_only: bool,
}

/// Up to here latency decides.
const SMALL_BYTES: u64 = 32 << 10;

/// The library's schedules of the collective, the best first. Which of them apply to the rank count, keep operands in
/// order, or serve unequal blocks, is for their proofs to say.
pub(crate) fn candidates(question: Question) -> Vec<&'static str> {
    let small = question.bytes <= SMALL_BYTES;
    let preferred: &[&'static str] = match question.collective {
        // Only here does no block pass through a rank that is not to keep it.
        "gather" | "scatter" if question.own_counts_only => return vec!["linear"],
        "alltoall" if question.own_counts_only => return vec!["pairwise"],
        "allreduce" if small || question.ranks <= 2 => &["recursive_doubling"],
        "allreduce" => &["ring", "recursive_doubling"],
        "broadcast" if small || question.ranks <= 2 => &["binomial"],
        "broadcast" => &["scatter_allgather", "binomial"],
        "reduce" if small || question.ranks <= 2 => &["binomial"],
        "reduce" => &["rabenseifner", "binomial"],
        "gather" | "scatter" => &["binomial"],
        "allgather" if small => &["bruck"],
        "allgather" => &["ring"],
        "reduce_scatter" if small => &["direct"],
        "reduce_scatter" => &["ring", "direct"],
        "alltoall" if small && question.ranks > 8 => &["bruck"],
        "alltoall" => &["pairwise"],
        "barrier" => &["dissemination"],
        "scan" | "exscan" => &["doubling"],
        _ => &[],
    };
    let others = library::entries().filter(|entry| entry.collective == question.collective);
    let others = others.map(|entry| entry.schedule).filter(|name| !preferred.contains(name));
    preferred.iter().copied().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OPERATIONS;

    #[test]
    fn the_first_choice_is_always_a_schedule_of_the_library() {
        for collective in OPERATIONS {
            for bytes in [0, 1 << 20] {
                for own_counts_only in [false, true] {
                    for ranks in [1, 2, 5, 64] {
                        let question = Question { collective, ranks, bytes, own_counts_only };
                        let found = candidates(question);
                        let first = found.first().expect("there is one");
                        assert!(library::entry(collective, first).is_some(), "{collective}.{first}");
                    }
                }
            }
        }
    }
}
