//! Bandwidths and times as people write them: `25GB/s`, `200Gb/s`, `1.5us`.

/// Units of bandwidth with their bytes in a microsecond: decimal bytes, binary bytes, bits.
const RATES: [(&str, f64); 12] = [
    ("B/s", 1e-6),
    ("kB/s", 1e-3),
    ("KB/s", 1e-3),
    ("MB/s", 1.0),
    ("GB/s", 1e3),
    ("TB/s", 1e6),
    ("MiB/s", 1.048_576),
    ("GiB/s", 1_073.741_824),
    ("Mb/s", 0.125),
    ("Gb/s", 125.0),
    ("Gbit/s", 125.0),
    ("Tb/s", 125_000.0),
];

/// Units of time in microseconds.
const TIMES: [(&str, f64); 5] = [("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)];

/// The largest bandwidth that is believed, in bytes in a microsecond: 10 PB/s.
pub const BANDWIDTH_MAX_BYTES_PER_US: f64 = 1e10;
/// The largest latency that is believed, in microseconds: 1000 s.
pub const LATENCY_MAX_US: f64 = 1e9;

/// Why a figure cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnitError {
    /// Not a number and a unit.
    Form(String),
    /// A number that no machine has.
    Range(String),
}

/// Bytes in a microsecond of `25GB/s`.
pub(crate) fn bandwidth(text: &str) -> Result<f64, UnitError> {
    let rate = figure(text, &RATES, "25GB/s", "200Gb/s")?;
    if !(rate > 0.0) {
        return Err(UnitError::Range(format!("a bandwidth is more than 0, and this one is {}", text.trim())));
    }
    if !(1e-6..=BANDWIDTH_MAX_BYTES_PER_US).contains(&rate) {
        return Err(UnitError::Range(format!(
            "no link has a bandwidth of {}; 1B/s to 10000TB/s are possible",
            text.trim()
        )));
    }
    Ok(rate)
}

/// Nanoseconds a byte of `200GB/s`, or none of `free`.
pub(crate) fn byte_time_ns(text: &str) -> Result<f64, UnitError> {
    if text.trim() == "free" { Ok(0.0) } else { Ok(1e3 / bandwidth(text)?) }
}

/// Microseconds of `1.5us`.
pub(crate) fn time_us(text: &str) -> Result<f64, UnitError> {
    let time = figure(text, &TIMES, "1.5us", "800ns")?;
    if !(time >= 0.0) {
        return Err(UnitError::Range(format!("a time is 0 or more, and this one is {}", text.trim())));
    }
    if time > LATENCY_MAX_US {
        return Err(UnitError::Range(format!("no link takes {}; at most 1000s are possible", text.trim())));
    }
    Ok(time)
}

fn figure(text: &str, units: &[(&str, f64)], one: &str, other: &str) -> Result<f64, UnitError> {
    let form = |what: &str| {
        UnitError::Form(format!("`{text}` {what}; write a number and its unit, such as `{one}` or `{other}`"))
    };
    let trimmed = text.trim();
    // The number ends where the longest unit begins.
    let found = units
        .iter()
        .filter_map(|&(unit, factor)| Some((trimmed.strip_suffix(unit)?, factor)))
        .filter_map(|(number, factor)| Some((number.trim().parse::<f64>().ok()?, factor)))
        .next();
    match found {
        Some((number, factor)) => Ok(number * factor),
        None if trimmed.parse::<f64>().is_ok_and(|number| !(number > 0.0)) => {
            Err(UnitError::Range(format!("a figure is a number of 0 or more, and this one is {trimmed}")))
        }
        None if trimmed.parse::<f64>().is_ok() => Err(form("has no unit")),
        None => Err(form("cannot be read")),
    }
}

/// `25GB/s`: the shortest text that reads back as the same number of GB/s.
pub fn show_bandwidth(bytes_per_us: f64) -> String {
    match bytes_per_us {
        rate if rate >= 1e6 => format!("{}TB/s", tidy(rate / 1e6)),
        rate if rate >= 100.0 => format!("{}GB/s", tidy(rate / 1e3)),
        rate => format!("{}MB/s", tidy(rate)),
    }
}

/// `1.5us`.
pub fn show_time(us: f64) -> String {
    match us {
        us if us == 0.0 => "0us".to_string(),
        us if us < 0.1 => format!("{}ns", tidy(us * 1e3)),
        us if us < 1e4 => format!("{}us", tidy(us)),
        us => format!("{}ms", tidy(us / 1e3)),
    }
}

/// The rate of a time for each byte; `free` of none.
pub(crate) fn show_byte_time(ns: f64) -> String {
    if ns == 0.0 { "free".to_string() } else { show_bandwidth(1e3 / ns) }
}

/// Nine significant digits, without the zeros at the end: the tail that a change of unit leaves is no figure of a machine.
fn tidy(number: f64) -> String {
    let digits = format!("{number:.8e}").parse::<f64>().unwrap_or(number);
    format!("{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    impl UnitError {
        fn message(self) -> String {
            match self {
                UnitError::Form(message) | UnitError::Range(message) => message,
            }
        }
    }

    #[test]
    fn figures_have_units() {
        for (text, expected) in [
            ("25GB/s", 25e3),
            ("200Gb/s", 25e3),
            (" 1.5 TB/s ", 1.5e6),
            ("100MB/s", 100.0),
            ("1GiB/s", 1_073.741_824),
        ] {
            assert_eq!(bandwidth(text), Ok(expected), "{text}");
        }
        for (text, expected) in [("1.5us", 1.5), ("800ns", 0.8), ("0us", 0.0), ("2ms", 2e3), ("1s", 1e6)] {
            assert_eq!(time_us(text), Ok(expected), "{text}");
        }
        assert_eq!(byte_time_ns("200GB/s"), Ok(0.005));
        assert_eq!(byte_time_ns("free"), Ok(0.0));
    }

    #[test]
    fn what_is_no_figure_is_told() {
        for (text, word) in [
            ("0GB/s", "more than 0"),
            ("-3GB/s", "more than 0"),
            ("NaNGB/s", "more than 0"),
            ("infGB/s", "possible"),
            ("1e30GB/s", "possible"),
            ("25", "no unit"),
            ("-1", "0 or more"),
            ("fast", "cannot be read"),
            ("25 GB", "cannot be read"),
            ("", "cannot be read"),
        ] {
            let message = bandwidth(text).unwrap_err().message();
            assert!(message.contains(word), "{text}: {message}");
        }
        assert!(time_us("-1us").unwrap_err().message().contains("0 or more"));
        assert!(time_us("NaNus").unwrap_err().message().contains("0 or more"));
    }

    #[test]
    fn what_is_shown_is_read() {
        for rate in [0.5, 12.5, 100.0, 25e3, 370_800.0, 3.35e6, 1e9] {
            assert_eq!(bandwidth(&show_bandwidth(rate)), Ok(rate), "{rate}");
        }
        for time in [0.0, 0.05, 0.35, 1.0, 123.456, 20_000.0] {
            let read = time_us(&show_time(time)).unwrap();
            assert!((read - time).abs() < 1e-9, "{time}: {read}");
        }
    }
}
