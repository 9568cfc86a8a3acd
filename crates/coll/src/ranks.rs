//! `--ranks`: which rank counts to look at, written as in the language: `4`, `2,4,8`, `2..=64`.

use std::str::FromStr;

/// Rank counts, ascending, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankCounts(Vec<u32>);

/// The largest rank count that is taken.
pub const RANKS_MAX: u32 = 65_536;

impl RankCounts {
    /// The counts, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// `low..=high`.
    pub fn range(low: u32, high: u32) -> RankCounts {
        RankCounts((low..=high).collect())
    }

    /// The count, if there is one only.
    pub fn single(&self) -> Option<u32> {
        match self.0[..] {
            [one] => Some(one),
            _ => None,
        }
    }
}

impl FromStr for RankCounts {
    type Err = String;

    fn from_str(text: &str) -> Result<RankCounts, String> {
        let mut counts = Vec::new();
        for part in text.split(',') {
            let (low, high) = bounds(part.trim())?;
            counts.extend(low..=high);
        }
        counts.sort_unstable();
        counts.dedup();
        Ok(RankCounts(counts))
    }
}

/// First and last count of `4`, `2..8` or `2..=8`.
fn bounds(part: &str) -> Result<(u32, u32), String> {
    let (low, high) = match (part.split_once("..="), part.split_once("..")) {
        (Some((low, high)), _) => (count(low)?, count(high)?),
        (None, Some((low, high))) => match count(high)? {
            0 => return Err(format!("`{part}` holds no rank count")),
            high => (count(low)?, high - 1),
        },
        (None, None) => (count(part)?, count(part)?),
    };
    match (low, high) {
        (0, _) => Err("0 ranks cannot run anything; the least is 1".to_string()),
        (low, high) if high < low => Err(format!("`{part}` holds no rank count: it ends before it starts")),
        (_, high) if high > RANKS_MAX => Err(format!("{high} ranks are too many; the most is {RANKS_MAX}")),
        bounds => Ok(bounds),
    }
}

fn count(text: &str) -> Result<u32, String> {
    let text = text.trim();
    let digits = text.replace('_', "");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{text}` is no rank count; write `4`, `2,4,8` or `2..=64`"));
    }
    digits.parse().map_err(|_| format!("{text} ranks are too many; the most is {RANKS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<u32>, String> {
        text.parse().map(|counts: RankCounts| counts.iter().collect())
    }

    #[test]
    fn lists_and_ranges_are_read_as_the_language_does() {
        assert_eq!(parse("4"), Ok(vec![4]));
        assert_eq!(parse("8, 2,4,2"), Ok(vec![2, 4, 8]));
        assert_eq!(parse("2..5"), Ok(vec![2, 3, 4]));
        assert_eq!(parse("2..=5,9"), Ok(vec![2, 3, 4, 5, 9]));
    }

    #[test]
    fn what_holds_no_count_is_refused() {
        for text in [
            "",
            "0",
            "0..4",
            "4..4",
            "5..=4",
            "-1",
            "x",
            "1.5",
            "1000000000",
            "99999999999999999999",
            "2..",
            "..4",
            "2,,3",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("1000000000").unwrap_err().contains("too many"));
    }
}
