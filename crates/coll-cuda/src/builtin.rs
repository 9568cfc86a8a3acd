//! The entries of the built-in operators: every pair of operator and type that `coll-kernel` accepts.

use crate::entry::{ARITIES, Entry, Shape};
use crate::working::{Working, counted, element, exact, parts, unsigned};
use coll_base::{DType, RedOp};
use coll_kernel::{Cast, Reducer};

/// The entry that copies bytes.
pub const COPY: &str = "collc_copy";

/// The entry that makes floats of one type floats of another, the nearest: to a narrower one and back.
pub fn cast(from: DType, to: DType) -> Option<String> {
    let floats = from.is_float() && to.is_float();
    let casts = Cast::narrowing(from, to).or(Cast::narrowing(to, from));
    (floats && casts.is_some()).then(|| cast_name(from, to))
}

fn cast_name(from: DType, to: DType) -> String {
    format!("collc_cast_{from}_{to}")
}

/// The entry that combines working elements.
pub(crate) fn combine_name(sources: usize, op: RedOp, working: Working) -> String {
    // Averages and pre-multiplied sums are sums of what is put in.
    let op = if matches!(op, RedOp::Avg | RedOp::PremulSum) { RedOp::Sum } else { op };
    format!("collc_combine{sources}_{op}_{working}")
}

/// The entry that makes working elements, where there is something to make.
pub(crate) fn prepare_name(op: RedOp, dtype: DType, in_f32: bool) -> Option<String> {
    mapped_name("prepare", op, dtype, in_f32)
}

/// The entry that makes elements of working elements, where there is something to make.
pub(crate) fn finish_name(op: RedOp, dtype: DType, in_f32: bool) -> Option<String> {
    mapped_name("finish", op, dtype, in_f32)
}

fn mapped_name(task: &str, op: RedOp, dtype: DType, in_f32: bool) -> Option<String> {
    match (op, in_f32) {
        (RedOp::Avg | RedOp::PremulSum, false) => Some(format!("collc_{task}_{op}_{dtype}")),
        (RedOp::Avg | RedOp::PremulSum, true) => Some(format!("collc_{task}_{op}_{dtype}_in_f32")),
        (_, false) => None,
        // To widen and to round is all, whatever the operator.
        (_, true) => Some(format!("collc_{task}_sum_{dtype}_in_f32")),
    }
}

/// All of them, sorted by what they do. No two have one name.
pub fn builtin_entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for op in RedOp::ALL {
        for dtype in DType::ALL.into_iter().filter(|&dtype| works(op, dtype)) {
            match op {
                RedOp::Avg | RedOp::PremulSum => prepare_and_finish(op, dtype, &mut entries),
                _ => combine(op, dtype, &mut entries),
            }
            if dtype.is_narrow_float() {
                in_f32(op, dtype, &mut entries);
            }
        }
    }
    for (wide, operator) in [(Working::I128, "WideSum"), (Working::U128, "WideSum")] {
        for sources in ARITIES {
            let name = combine_name(sources, RedOp::Sum, wide);
            entries.push(Entry::combine(name, sources, operator, "count"));
        }
    }
    casts(&mut entries);
    entries.push(Entry::new(COPY.into(), Shape::Map, vec!["copy(to, from, count);".into()]));
    entries
}

/// What the table of operators accepts.
fn works(op: RedOp, dtype: DType) -> bool {
    let params = vec![1.0; op.params().len()];
    Reducer::builtin_with(op, dtype, &params).is_ok()
}

fn combine(op: RedOp, dtype: DType, entries: &mut Vec<Entry>) {
    let operator = operator(op, dtype);
    // A product of complex numbers needs both parts; a sum is one of parts.
    let parts = if op == RedOp::Prod { 1 } else { parts(dtype) };
    for sources in ARITIES {
        let name = combine_name(sources, op, Working::Type(dtype));
        entries.push(Entry::combine(name, sources, &operator, &counted(parts)));
    }
}

/// The text's operator. Elements of one and two bytes are combined several at a time where they can be.
fn operator(op: RedOp, dtype: DType) -> String {
    let (element, word) = (element(dtype), unsigned(dtype.size_bytes()));
    let packed = if dtype.size_bytes() <= 2 { "Packed" } else { "" };
    match op {
        RedOp::Sum | RedOp::Max | RedOp::Lor if dtype == DType::Bool => "PackedOr<u8>".into(),
        RedOp::Prod | RedOp::Min | RedOp::Land if dtype == DType::Bool => "PackedAnd<u8>".into(),
        RedOp::Sum if dtype.is_integer() => format!("{packed}Sum<{element}>"),
        RedOp::Sum | RedOp::Prod if dtype.is_narrow_float() => {
            format!("Half{element}<{}>", op == RedOp::Prod)
        }
        RedOp::Prod if dtype.is_complex() => format!("ComplexProd<{element}>"),
        RedOp::Min | RedOp::Max if dtype.is_narrow_float() => {
            let (signed, infinity) = match dtype {
                DType::F8E4M3 => ("i8", "0x7e"),
                DType::F8E5M2 => ("i8", "0x7c"),
                DType::F16 => ("i16", "0x7c00"),
                _ => ("i16", "0x7f80"),
            };
            format!("PackedNarrow<{signed}, {infinity}, {}>", op == RedOp::Max)
        }
        RedOp::Min | RedOp::Max if dtype.size_bytes() <= 2 => {
            format!("PackedChoice<{element}, {}>", op == RedOp::Max)
        }
        RedOp::Prod => format!("Prod<{element}>"),
        RedOp::Min => format!("Min<{element}>"),
        RedOp::Max => format!("Max<{element}>"),
        RedOp::Band => format!("BitAnd<{word}>"),
        RedOp::Bor => format!("BitOr<{word}>"),
        RedOp::Bxor => format!("BitXor<{word}>"),
        RedOp::Land => format!("{packed}And<{word}>"),
        RedOp::Lor => format!("{packed}Or<{word}>"),
        RedOp::Lxor => format!("{packed}Xor<{word}>"),
        RedOp::Minloc | RedOp::Maxloc => {
            let index = if dtype.size_bytes() == 8 { "i32" } else { "i64" };
            format!("Located<{element}, {index}, {}>", op == RedOp::Maxloc)
        }
        RedOp::Sum | RedOp::Avg | RedOp::PremulSum => format!("Sum<{element}>"),
    }
}

fn prepare_and_finish(op: RedOp, dtype: DType, entries: &mut Vec<Entry>) {
    let (name, count) = (element(dtype), counted(parts(dtype)));
    let prepared = match (op, Working::of_average(dtype)) {
        (RedOp::PremulSum, _) if dtype == DType::F8E5M2 => "TimesE5M2(factor)".into(),
        (RedOp::PremulSum, _) => format!("Times<{name}, {name}>(factor)"),
        (_, Working::I128 | Working::U128) => format!("Widen128<{name}>()"),
        (_, Working::Type(working)) if working == dtype => format!("Fraction<{name}, {name}>(ranks)"),
        (_, Working::Type(working)) => format!("Convert<{name}, {}>()", element(working)),
    };
    let prepare = vec![format!("map(to, from, {count}, {prepared});")];
    let same = format!("Same<{}>()", unsigned(dtype.part().size_bytes()));
    let finish = match (op, Working::of_average(dtype)) {
        (RedOp::PremulSum, _) => vec![format!("map(to, from, {count}, {same});")],
        (_, Working::I128) => vec![over_leaves("Mean128<true>")],
        (_, Working::U128) => vec![over_leaves("Mean128<false>")],
        (_, Working::Type(working)) if dtype.is_integer() => {
            vec![over_leaves(&format!("Mean<{}, {name}>", element(working)))]
        }
        (_, Working::Type(working)) if working != dtype => {
            vec![over_leaves(&format!("MeanOfF32<{name}>"))]
        }
        _ if dtype.part() == DType::F64 => mended("MendedF64", &count, &same),
        _ => mended(&format!("Mended<{name}, {name}>"), &count, &same),
    };
    entries.push(Entry::new(named(prepare_name(op, dtype, false)), Shape::Prepare, prepare));
    entries.push(Entry::new(named(finish_name(op, dtype, false)), Shape::Finish, finish));
}

/// Narrow floats that are accumulated in `f32`.
fn in_f32(op: RedOp, dtype: DType, entries: &mut Vec<Entry>) {
    let (name, kept) = (element(dtype), exact(dtype));
    let (prepared, finish) = match op {
        RedOp::Sum => (format!("Convert<{kept}, F32>()"), vec![rounded(kept)]),
        RedOp::PremulSum => (format!("Times<{name}, F32>(factor)"), vec![rounded(kept)]),
        RedOp::Avg if dtype.size_bytes() > 1 => {
            let unchanged = format!("Convert<F32, {kept}>()");
            (
                format!("Fraction<{name}, F32>(ranks)"),
                mended(&format!("Mended<F32, {kept}>"), "count", &unchanged),
            )
        }
        // Nothing is rounded, it is summed in `f32` anyway, or it goes by the name of `sum`.
        _ => return,
    };
    let prepare = vec![format!("map(to, from, count, {prepared});")];
    entries.push(Entry::new(named(prepare_name(op, dtype, true)), Shape::Prepare, prepare));
    entries.push(Entry::new(named(finish_name(op, dtype, true)), Shape::Finish, finish));
}

fn named(name: Option<String>) -> String {
    name.expect("invariant: what is prepared and finished has a name")
}

fn rounded(kept: &str) -> String {
    format!("map(to, from, count, Convert<F32, {kept}>());")
}

fn over_leaves(function: &str) -> String {
    format!("map(to, from, count, {function}(at_least_one(leaves)));")
}

/// A sum of all ranks' fractions is the mean as it is.
fn mended(function: &str, count: &str, unchanged: &str) -> Vec<String> {
    vec![
        format!("if (ranks == at_least_one(leaves)) return map(to, from, {count}, {unchanged});"),
        format!("map(to, from, {count}, {function}(ranks, at_least_one(leaves)));"),
    ]
}

fn casts(entries: &mut Vec<Entry>) {
    for from in DType::ALL {
        for to in DType::ALL {
            let Some(name) = cast(from, to) else { continue };
            let convert = format!("Convert<{}, {}>()", exact(from), exact(to));
            let body = vec![format!("map(to, from, count, {convert});")];
            entries.push(Entry::new(name, Shape::Map, body));
        }
    }
}
