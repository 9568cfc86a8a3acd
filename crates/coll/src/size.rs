//! `--bytes`: sizes as people write them. `K`, `M`, `G` and `KiB`, `MiB`, `GiB` are powers of 1,024, as in
//! nccl-tests; `KB`, `MB`, `GB` are powers of 1,000.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let (digits, unit) = (text[..split].replace('_', ""), text[split..].trim());
        let wrong =
            || format!("`{text}` is no size; write a number of bytes such as `4096`, `64K`, `1MiB` or `2GB`");
        let number: u64 = match digits.parse() {
            Ok(number) => number,
            Err(_) if digits.is_empty() => return Err(wrong()),
            Err(_) => return Err(format!("`{text}` is more than 64 bits can count")),
        };
        let scale: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            _ => return Err(wrong()),
        };
        number.checked_mul(scale).map(Bytes).ok_or_else(|| format!("`{text}` is more than 64 bits can count"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.into_iter().find(|&(scale, _)| self.0 >= scale && self.0.is_multiple_of(scale)) {
            Some((scale, unit)) => write!(f, "{} {unit}", self.0 / scale),
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_binary_unless_they_say_otherwise() {
        let sizes =
            ["28", "64K", "1MiB", "1 m", "2GB", "1_000b"].map(|text| text.parse::<Bytes>().unwrap().0);
        assert_eq!(sizes, [28, 65_536, 1 << 20, 1 << 20, 2_000_000_000, 1_000]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "-1", "1.5M", "K", "1 XB", "99999999999999999999", "99999999999G"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
