//! The codes of this crate's diagnostics. Each has a page in `docs/errors` and a fixture in `tests/ui`.

use coll_base::Code;

/// Something else was expected at this place.
pub const UNEXPECTED: Code = Code("E0001");
/// A character that the language has no use for, or a file that is no text.
pub const STRAY_CHARACTER: Code = Code("E0002");
/// A brace or bracket that is never closed.
pub const UNCLOSED: Code = Code("E0003");
/// A closing brace or bracket that closes nothing.
pub const UNOPENED: Code = Code("E0004");
/// A text in quotes that does not end on its line.
pub const UNCLOSED_TEXT: Code = Code("E0005");
/// A file that declares nothing.
pub const EMPTY: Code = Code("E0006");
/// A file that is larger or nests deeper than the compiler takes.
pub const TOO_MUCH: Code = Code("E0007");
/// A number that does not fit.
pub const NUMBER_RANGE: Code = Code("E0008");
/// Digits that make no number.
pub const NUMBER_FORM: Code = Code("E0009");
/// A word of the language where a name of one's own is wanted.
pub const RESERVED: Code = Code("E0010");
/// An operator of another language.
pub const FOREIGN_OPERATOR: Code = Code("E0011");
/// A `;` or `,` that separates what needs no separator.
pub const SEPARATOR: Code = Code("E0012");
/// A comment in the style of another language.
pub const FOREIGN_COMMENT: Code = Code("E0013");
/// Comparisons in a chain.
pub const CHAINED: Code = Code("E0014");
/// A schedule's parameter without a default.
pub const NO_DEFAULT: Code = Code("E0015");
/// The head of a loop in the style of another language.
pub const LOOP_HEAD: Code = Code("E0016");
/// A word that begins no statement and no declaration.
pub const UNKNOWN_START: Code = Code("E0017");
/// A transfer that does not name its other end.
pub const ONE_ENDED: Code = Code("E0018");
/// More errors than are shown.
pub const TOO_MANY: Code = Code("E0019");
/// An operator that does not take two operands.
pub const OPERANDS: Code = Code("E0020");
/// A block that belongs to no statement.
pub const LOOSE_BLOCK: Code = Code("E0021");

/// All of them, with their titles.
pub const ALL: &[(Code, &str)] = &[
    (UNEXPECTED, "something else was expected"),
    (STRAY_CHARACTER, "a character without a meaning"),
    (UNCLOSED, "a bracket is never closed"),
    (UNOPENED, "a bracket closes nothing"),
    (UNCLOSED_TEXT, "a text does not end"),
    (EMPTY, "nothing is declared"),
    (TOO_MUCH, "too large or nested too deep"),
    (NUMBER_RANGE, "a number does not fit"),
    (NUMBER_FORM, "not a number"),
    (RESERVED, "a word of the language as a name"),
    (FOREIGN_OPERATOR, "an operator of another language"),
    (SEPARATOR, "a separator where none is needed"),
    (FOREIGN_COMMENT, "a comment in the style of another language"),
    (CHAINED, "comparisons in a chain"),
    (NO_DEFAULT, "a parameter without a default"),
    (LOOP_HEAD, "a loop in the style of another language"),
    (UNKNOWN_START, "no statement begins like this"),
    (ONE_ENDED, "a transfer with one end"),
    (TOO_MANY, "more errors than are shown"),
    (OPERANDS, "an operator takes two operands"),
    (LOOSE_BLOCK, "a block of no statement"),
];
