//! nccl-tests' table: its columns at its places, its formulas, its way to fit numbers into a width.
//!
//! Sizes are the larger of what a rank sends and receives; `time` is the mean of runs back to back, the largest over the
//! ranks; `algbw` is size over time, `busbw` that times the operation's factor; GB are 10^9 bytes.

use super::settings::{Measured, Settings};
use crate::args::{BenchArgs, BenchMemory};
use coll::Bytes;

/// What stands above an operation's rows.
pub(super) fn head(args: &BenchArgs, operation: &str, settings: &Settings) -> String {
    let (world, pace) = (settings.world, args.pace());
    let step = match args.step_bytes {
        Some(Bytes(step)) => format!("{step}(bytes)"),
        None => format!("{}(factor)", args.factor),
    };
    let sizes = match args.sizes[..] {
        [] => format!("minBytes {} maxBytes {} step: {step}", args.min_bytes.0, args.max_bytes.0),
        _ => format!("{} sizes", args.sizes.len()),
    };
    let (version, transport) = (env!("CARGO_PKG_VERSION"), args.transport.name());
    let mut text = match args.memory {
        BenchMemory::Ordinary => format!("# collc {version} bench over {transport}\n"),
        memory => format!("# collc {version} bench over {transport}, memory: {}\n", memory.name()),
    };
    for (what, dtype) in [("accumulated in", settings.accumulate), ("travelling as", settings.wire)] {
        text += &dtype.map_or_else(String::new, |dtype| format!("# {what} {dtype}\n"));
    }
    text += &format!("# Collective test starting: {operation}\n");
    text += &format!(
        "# ranks {world} {sizes} warmup iters: {} iters: {} validation: {}\n#\n",
        pace.warmup.unwrap_or(0),
        pace.iters.unwrap_or(0),
        args.check
    );
    text += &format!("#{:>67}  {:>31}\n", "out-of-place", "in-place");
    text += &format!("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
    let columns = format!("  {:>7}  {:>6}  {:>6}  {:>6}", "time", "algbw", "busbw", "#wrong");
    text += &format!("{columns}{columns}\n");
    text += &format!("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
    let units = format!("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
    text + &format!("{units}{units}\n")
}

/// A row; a half that an operation does not have is `N/A`.
pub(super) fn row(
    args: &BenchArgs,
    operation: &str,
    out_of_place: Option<Measured>,
    in_place: Option<Measured>,
) -> String {
    let Some(any) = out_of_place.as_ref().or(in_place.as_ref()) else { return String::new() };
    let redop = if any.reduces { args.op.to_string() } else { "none".into() };
    let root = any.root.map_or("-1".to_string(), |root| root.to_string());
    let dtype = if operation == super::BARRIER { "none" } else { args.dtype.name() };
    let mut text =
        format!("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", any.actual_bytes, any.elements, dtype, redop, root);
    for half in [&out_of_place, &in_place] {
        text += &match half {
            None => format!("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A"),
            Some(measured) => {
                let (algbw, busbw) = bandwidths(measured);
                let wrong = measured.bad.map_or("N/A".to_string(), |bad| bad.to_string());
                format!(
                    "  {:>7}  {:>6}  {:>6}  {wrong:>6}",
                    fitted(measured.b2b_us, 7),
                    fitted(algbw, 6),
                    fitted(busbw, 6)
                )
            }
        };
    }
    text + "\n"
}

/// `algbw` and `busbw` of the mean time, in GB/s.
pub(super) fn bandwidths(measured: &Measured) -> (f64, f64) {
    let algbw = match measured.b2b_us > 0.0 {
        true => measured.actual_bytes as f64 / measured.b2b_us / 1e3,
        false => 0.0,
    };
    (algbw, algbw * measured.bus_factor)
}

/// What stands below an operation's rows.
pub(super) fn foot(operation: &str, wrong: u64, busbw: &[f64]) -> String {
    let verdict = if wrong == 0 { "OK" } else { "FAILED" };
    let mean = busbw.iter().sum::<f64>() / busbw.len().max(1) as f64;
    format!(
        "# Out of bounds values : {wrong} {verdict}\n# Avg bus bandwidth    : {mean:.4} \n#\n# Collective test concluded: {operation}\n"
    )
}

/// With two decimals, or one, or none, as they fit, and else as a power of ten.
fn fitted(value: f64, width: usize) -> String {
    let with = |decimals: usize| format!("{value:.decimals$}");
    let fits = [2, 1, 0].into_iter().map(with).find(|text| text.len() <= width);
    fits.unwrap_or_else(|| format!("{value:.0e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_fitted_to_their_column() {
        let texts = [0.0, 12.345, 1234.5, 99_999.0, 1_234_567.0, 123_456_789.0].map(|value| fitted(value, 7));
        assert_eq!(texts, ["0.00", "12.35", "1234.50", "99999.0", "1234567", "1e8"].map(String::from));
    }
}
