//! The manual's page on operators, made from the table that reducers are made from.

use crate::table::{How, Working, how};
use coll_base::{DType, RedOp};
use std::fmt::Write;

/// Operators whose cells are alike share a column.
const COLUMNS: [&[RedOp]; 8] = [
    &[RedOp::Sum],
    &[RedOp::Prod],
    &[RedOp::Min, RedOp::Max],
    &[RedOp::Avg],
    &[RedOp::PremulSum],
    &[RedOp::Band, RedOp::Bor, RedOp::Bxor],
    &[RedOp::Land, RedOp::Lor, RedOp::Lxor],
    &[RedOp::Minloc, RedOp::Maxloc],
];

/// The page `docs/operators.md`, in Markdown. A test keeps the file equal to it.
pub fn manual() -> String {
    let mut page = String::from(HEAD);
    write_table(&mut page);
    page.push_str("\n## How\n\n");
    for how in LEGEND {
        let _ = writeln!(page, "- **{}**: {}", word(how), text(how));
    }
    page.push_str("\n## Refused\n\n");
    write_refusals(&mut page);
    page.push_str(FOOT);
    page
}

fn write_table(page: &mut String) {
    let names = COLUMNS.map(|ops| ops.iter().map(|op| format!("`{op}`")).collect::<Vec<_>>().join(" "));
    let _ = writeln!(page, "| type | bytes | {} |", names.join(" | "));
    let _ = writeln!(page, "|---|---|{}", "---|".repeat(COLUMNS.len()));
    for dtype in DType::ALL {
        let cells = COLUMNS.map(|ops| how(ops[0], dtype).map_or("–".to_string(), word));
        let _ = writeln!(page, "| `{dtype}` | {} | {} |", dtype.size_bytes(), cells.join(" | "));
    }
}

/// Each reason once, with the operators and types that it is given for.
fn write_refusals(page: &mut String) {
    let mut reasons: Vec<(&str, Vec<RedOp>, Vec<DType>)> = Vec::new();
    for op in RedOp::ALL {
        for dtype in DType::ALL {
            let Err(reason) = how(op, dtype) else { continue };
            let at = reasons.iter().position(|(known, ..)| *known == reason).unwrap_or_else(|| {
                reasons.push((reason, Vec::new(), Vec::new()));
                reasons.len() - 1
            });
            let (_, ops, dtypes) = &mut reasons[at];
            if !ops.contains(&op) {
                ops.push(op);
            }
            if !dtypes.contains(&dtype) {
                dtypes.push(dtype);
            }
        }
    }
    for (reason, ops, dtypes) in reasons {
        let _ = writeln!(page, "- {} on {}: {reason}", named(&ops), named(&dtypes));
    }
}

fn named<T: std::fmt::Display>(all: &[T]) -> String {
    all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(" ")
}

const LEGEND: [How; 18] = [
    How::Wraps,
    How::Exact,
    How::Rounds,
    How::InF32,
    How::Saturates,
    How::Ordered,
    How::Logical,
    How::Parts,
    How::Product,
    How::Wide(Working::I32),
    How::Wide(Working::U32),
    How::Wide(Working::I64),
    How::Wide(Working::U64),
    How::Wide(Working::I128),
    How::Wide(Working::U128),
    How::WideF32,
    How::Fractions,
    How::Located,
];

fn word(how: How) -> String {
    match how {
        How::Wraps => "wraps".into(),
        How::Exact => "exact".into(),
        How::Rounds => "rounds".into(),
        How::InF32 => "in f32".into(),
        How::Saturates => "saturates".into(),
        How::Ordered => "ordered".into(),
        How::Logical => "logical".into(),
        How::Parts => "by parts".into(),
        How::Product => "complex".into(),
        How::Wide(working) => format!("mean of {}", name(working)),
        How::WideF32 => "mean of f32".into(),
        How::Fractions => "fractions".into(),
        How::Located => "located".into(),
    }
}

fn name(working: Working) -> &'static str {
    match working {
        Working::I32 => "i32",
        Working::U32 => "u32",
        Working::I64 => "i64",
        Working::U64 => "u64",
        Working::I128 => "i128",
        Working::U128 => "u128",
    }
}

fn text(how: How) -> String {
    match how {
        How::Wraps => "modulo two to the width of the type.".into(),
        How::Exact => "a choice, or bit by bit; nothing is lost.".into(),
        How::Rounds => {
            "in the type itself, to nearest even; subnormals, infinities and NaN as IEEE 754 says.".into()
        }
        How::InF32 => {
            "widened to `f32`, combined, and rounded once, to nearest even; too large is infinity.".into()
        }
        How::Saturates => {
            "widened to `f32`, combined, and rounded once, to nearest even. What is too large becomes the \
            largest value, 448 or 57344, as in OCP's saturating mode; an infinity that was put in stays \
            one, and NaN stays NaN."
                .into()
        }
        How::Ordered => {
            "NaN wins over every number, whichever rank it comes from, and `-0` is less than `0`.".into()
        }
        How::Logical => {
            "zero is false, anything else true, and the result is 0 or 1: `sum` and `max` of `bool` are \
            *or*, `prod` and `min` are *and*. A value that nothing is combined with stays as it is."
                .into()
        }
        How::Parts => "real and imaginary part each as a float of their type.".into(),
        How::Product => "`(ac - bd, ad + bc)` in the type of the parts; each operation rounds.".into(),
        How::Wide(working) => {
            format!("summed in `{}` and divided once by the number of values, toward zero.", name(working))
        }
        How::WideF32 => "summed in `f32`, divided once by the number of values, and rounded once.".into(),
        How::Fractions => {
            "each rank puts in `x / n`, rounded to the type, so that no partial sum is larger than the mean \
            of sizes; a sum of fewer than `n` values, as in a scan, is multiplied again."
                .into()
        }
        How::Located => {
            "the least or greatest value, with its index; of equal values, zeros of two signs included, the \
            lower index wins. NaN wins over every number."
                .into()
        }
    }
}

const HEAD: &str = "\
# Operators

What the built-in operators compute, by element type. This page is made from the code that computes it
(`UPDATE_EXPECT=1 cargo test -p coll-kernel` writes it anew). `–` is a pair that is refused before anything moves;
nothing is ever replaced by something like it.

| group | types |
|---|---|
| integers | `i8 u8 i16 u16 i32 u32 i64 u64` |
| truth values | `bool`: one byte; any byte but 0 is read as true, and 0 or 1 is written |
| floats | `f16 bf16 f32 f64`; `f8e4m3` and `f8e5m2` are OCP's 8-bit formats |
| complex numbers | `c64` and `c128`: real and imaginary part, `f32` or `f64` each |
| pairs | `i32i32 i64i64 f32i32 f64i64`: a value and its index, a signed integer of the same width, without padding; the first is MPI's `2INT`, the third its `FLOAT_INT` |

";

const FOOT: &str = "
## Notes

- `premul_sum` takes a factor, `--op premul_sum --set factor=0.5`: each rank puts in its value times the factor, rounded to
  the type, and the products are summed as by `sum`. The factor is taken in the type that elements are computed in: an
  integer type refuses a fraction. Complex numbers take a real factor.
- The order of operands does not matter to any built-in operator. How operands are grouped is the schedule's choice, and
  sums and products of floats depend on it.
- Which NaN comes of two is not said. A processor's vector instructions give the same bits as the portable code otherwise.
- `accumulate f32` in a schedule, or `--accumulate f32`, has `sum`, `prod`, `avg`, `premul_sum` and user operators reduce narrow
  floats as `f32`, from what a rank puts in to the result, which is rounded once.
- An average sums at most 2^24 values of 8-bit integers, 2^16 of 16-bit and 2^32 of 32-bit ones; more ranks are refused.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_of_one_column_are_alike() {
        assert_eq!(COLUMNS.concat(), RedOp::ALL, "every operator has a column, in order");
        for ops in COLUMNS {
            for dtype in DType::ALL {
                assert!(
                    ops.iter().all(|op| how(*op, dtype).ok() == how(ops[0], dtype).ok()),
                    "{ops:?} of {dtype}"
                );
            }
        }
    }

    #[test]
    fn the_legend_explains_every_word_of_the_table_and_no_other() {
        let used = RedOp::ALL.into_iter().flat_map(|op| DType::ALL.map(|dtype| how(op, dtype)));
        let used: Vec<How> = used.flatten().collect();
        assert!(used.iter().all(|how| LEGEND.contains(how)));
        assert!(LEGEND.iter().all(|how| used.contains(how)));
    }
}
