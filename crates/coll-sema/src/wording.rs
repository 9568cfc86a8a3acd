//! Numbers in sentences.

/// `1 chunk`, `2 chunks`
pub(crate) fn counted(count: impl Into<u64>, noun: &str) -> String {
    match count.into() {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_singular() {
        assert_eq!([0u64, 1, 2].map(|count| counted(count, "chunk")), ["0 chunks", "1 chunk", "2 chunks"]);
    }
}
