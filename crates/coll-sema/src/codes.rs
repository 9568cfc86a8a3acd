//! The codes of this crate's diagnostics. Each has a page in `docs/errors` and a fixture in `tests/ui`.

use coll_base::Code;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $title:literal;)+) => {
        $($(#[doc = $doc])+ pub const $name: Code = Code($code);)+

        /// Every code of this crate with its title, in order.
        pub const ALL: &[(Code, &str)] = &[$(($name, $title)),+];
    };
}

codes! {
    /// A name in an expression that nothing declares, or that cannot be seen from there.
    UNKNOWN_NAME = "E0101", "unknown name";
    /// A declaration whose name is taken.
    DECLARED_TWICE = "E0102", "a name declared twice";
    /// A view of something that is no buffer and no scratch.
    UNKNOWN_BUFFER = "E0103", "unknown buffer";
    /// A schedule for a collective that is not declared.
    UNKNOWN_COLLECTIVE = "E0104", "unknown collective";
    /// A call of a function that is not declared above.
    UNKNOWN_FUNCTION = "E0105", "unknown function";
    /// `use` or a call of a schedule that does not exist.
    UNKNOWN_SCHEDULE = "E0106", "unknown schedule";
    /// A call of a library schedule that no `use` brings in.
    NOT_IN_USE = "E0107", "a schedule that is not brought in";
    /// An argument or option for a parameter that the schedule has not.
    UNKNOWN_PARAMETER = "E0108", "unknown parameter";

    /// A number where a truth value is due, or the other way round.
    TYPE_MISMATCH = "E0201", "a number is not a truth value";
    /// A function called with too few or too many arguments.
    ARGUMENT_COUNT = "E0202", "wrong number of arguments";
    /// A number with a point where whole numbers are due.
    POINT_NUMBER = "E0203", "a number with a point outside an operator";
    /// A computation without a result: overflow, division by zero, a logarithm of zero.
    ARITHMETIC = "E0204", "arithmetic without a result";
    /// A default that depends on more than numbers.
    NOT_CONSTANT = "E0205", "a default that is not a constant";
    /// Something in an operator that elements cannot do.
    OPERATOR_EXPRESSION = "E0206", "not for operators";
    /// A word in `tune` that is no tuning.
    UNKNOWN_TUNE = "E0207", "unknown tuning";
    /// A tuning out of its range.
    TUNE_RANGE = "E0209", "a tuning out of range";
    /// A call with too few or too many views.
    VIEW_COUNT = "E0210", "wrong number of views";
    /// An operator whose result depends on grouping, on sample values.
    NOT_ASSOCIATIVE = "E0211", "an operator that is not associative";
    /// An operator whose result depends on order, on sample values, without `ordered`.
    NOT_COMMUTATIVE = "E0212", "an operator that does not commute";
    /// A list where a number is due, or the other way round.
    NOT_A_LIST = "E0213", "a list is not a number";

    /// A rank that is not among `0..n`.
    RANK_RANGE = "E0301", "rank out of range";
    /// An index that is not among its dimension's.
    INDEX_RANGE = "E0302", "index out of range";
    /// A view `lo..hi` with `hi < lo`.
    BACKWARD_RANGE = "E0303", "a view that runs backwards";
    /// More indices than dimensions.
    TOO_MANY_INDICES = "E0304", "too many indices";
    /// A transfer whose ends have different numbers of chunks.
    CHUNK_COUNTS = "E0305", "different numbers of chunks";
    /// A transfer of one part of a block onto a different part.
    UNEQUAL_CHUNKS = "E0306", "one chunk onto another";
    /// Reading a scratch slot that nothing was written into.
    EMPTY_SLOT = "E0307", "a slot that holds nothing";
    /// A group with a member twice.
    MEMBER_TWICE = "E0308", "a rank twice in a group";
    /// Several parts given to a call that cannot be dealt out evenly.
    UNEVEN_DEAL = "E0309", "blocks that cannot be dealt out";
    /// A part given to a call that is not one run of its block.
    BROKEN_VIEW = "E0310", "a view with gaps";
    /// Two views of one call that share elements.
    OVERLAPPING_VIEWS = "E0311", "views that overlap";
    /// A number of chunks, slots, blocks or ranks that is none.
    NOT_A_COUNT = "E0312", "not a count";
    /// More of something than the compiler takes on.
    TOO_LARGE = "E0313", "too large";
    /// A schedule that calls itself without end.
    ENDLESS_CALL = "E0314", "calls without end";

    /// An `ensure` about an `in` buffer.
    ENSURE_IN = "E0321", "a promise about an `in` buffer";
    /// Two different promises about one place.
    ENSURED_TWICE = "E0322", "two promises about one place";
    /// A `reduce` in a contract over nothing.
    EMPTY_REDUCTION = "E0323", "a reduction of nothing";
    /// A contract that asks for a value that is not there at the start.
    NO_VALUE = "E0324", "no value at the start";
    /// A `reduce` in a contract with one value twice.
    COUNTED_TWICE = "E0325", "a value counted twice";
    /// A fact whose two sides have different numbers of blocks.
    BLOCK_COUNTS = "E0326", "different numbers of blocks";
    /// A fact that does not say at which rank it holds.
    NO_RANK = "E0327", "a fact without a rank";

    /// A plain write beside another write to one chunk in one step.
    TWO_WRITES = "E0401", "two writes in one step";
    /// A statement where it may not stand.
    MISPLACED = "E0402", "a statement out of place";
    /// A transfer that says one of its ends twice, or not at all.
    TRANSFER_ENDS = "E0403", "the ends of a transfer";
    /// A write to an `in` buffer.
    WRITE_TO_IN = "E0404", "a write to an `in` buffer";
    /// Scratch given to a call.
    SCRATCH_GIVEN = "E0405", "scratch given to a call";
    /// A called schedule that is not for this number of ranks.
    REQUIRE_IN_CALL = "E0406", "a called schedule does not apply";

    /// A `tune` in a called schedule, which does not count.
    TUNE_IN_CALL = "W0750", "the tuning of a called schedule";
    /// A collective without an `ensure`.
    PROMISES_NOTHING = "W0751", "a collective that promises nothing";
    /// `accumulate` where nothing is reduced.
    NOTHING_ACCUMULATED = "W0752", "accumulate where nothing is reduced";
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn codes_ascend_and_so_are_distinct() {
        assert!(ALL.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn every_code_has_a_page_and_a_fixture() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let fixtures: Vec<String> = std::fs::read_dir(format!("{root}/tests/ui"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        for (code, title) in ALL {
            let page = std::fs::read_to_string(format!("{root}/docs/errors/{code}.md")).unwrap_or_default();
            assert!(page.starts_with(&format!("# {code}: {title}\n")), "docs/errors/{code}.md");
            assert!(
                fixtures.iter().any(|name| name.starts_with(&format!("{code}_"))),
                "tests/ui/{code}_*.coll"
            );
        }
    }
}
