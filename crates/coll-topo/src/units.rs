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
    if rate.is_nan() || rate <= 0.0 {
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
    if time.is_nan() || time < 0.0 {
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
        None if trimmed.parse::<f64>().is_ok_and(|number| number.is_nan() || number <= 0.0) => {
            Err(UnitError::Range(format!("a figure is a number of 0 or more, and this one is {trimmed}")))
        }
        None if trimmed.parse::<f64>().is_ok() => Err(form("has no unit")),
        None => Err(form("cannot be read")),
    }
}

/// `25GB/s`, of six digits: for people.
pub fn show_bandwidth(bytes_per_us: f64) -> String {
    bandwidth_text(bytes_per_us, 5)
}

/// `1.5us`, of six digits: for people.
pub fn show_time(us: f64) -> String {
    time_text(us, 5)
}

fn bandwidth_text(bytes_per_us: f64, digits: usize) -> String {
    match bytes_per_us {
        rate if rate >= 1e6 => format!("{}TB/s", rounded(rate / 1e6, digits)),
        rate if rate >= 100.0 => format!("{}GB/s", rounded(rate / 1e3, digits)),
        rate => format!("{}MB/s", rounded(rate, digits)),
    }
}

fn time_text(us: f64, digits: usize) -> String {
    match us {
        0.0 => "0us".to_string(),
        us if us < 0.1 => format!("{}ns", rounded(us * 1e3, digits)),
        us if us < 1e4 => format!("{}us", rounded(us, digits)),
        us => format!("{}ms", rounded(us / 1e3, digits)),
    }
}

fn rounded(number: f64, digits: usize) -> String {
    format!("{}", format!("{number:.digits$e}").parse::<f64>().unwrap_or(number))
}

/// The shortest text that reads back as the same number, or else the longest: for files.
fn exact(
    value: f64,
    text: impl Fn(usize) -> String,
    read: impl Fn(&str) -> Result<f64, UnitError>,
) -> String {
    let same = |digits: &usize| read(&text(*digits)).is_ok_and(|again| again == value);
    text((5..=17).find(same).unwrap_or(17))
}

/// A bandwidth that reads back as the same.
pub(crate) fn write_bandwidth(bytes_per_us: f64) -> String {
    exact(bytes_per_us, |digits| bandwidth_text(bytes_per_us, digits), bandwidth)
}

/// A time that reads back as the same.
pub(crate) fn write_time(us: f64) -> String {
    exact(us, |digits| time_text(us, digits), time_us)
}

/// The rate of a time for each byte that reads back as the same; `free` of none.
pub(crate) fn write_byte_time(ns: f64) -> String {
    match ns {
        0.0 => "free".to_string(),
        ns => exact(ns, |digits| bandwidth_text(1e3 / ns, digits), byte_time_ns),
    }
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
            assert_eq!(bandwidth(&write_bandwidth(rate)), Ok(rate), "{rate}");
        }
        for time in [0.0, 0.05, 0.35, 1.0, 123.456, 20_000.0] {
            assert_eq!(time_us(&write_time(time)), Ok(time), "{time}");
        }
        for ns in [0.0, 0.01, 3.0 / 3350.0, 2.0 / 2039.0] {
            let read = byte_time_ns(&write_byte_time(ns)).unwrap();
            assert!((read - ns).abs() <= 1e-15 * ns, "{ns}: {read}");
        }
        assert_eq!(show_bandwidth(1e6 * 3.35 / 3.0), "1.11667TB/s");
        assert_eq!(write_bandwidth(20.6e3 * 6.0), "123.6GB/s");
    }
}
