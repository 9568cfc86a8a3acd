//! How parameters with their values are shown. A parameter that is a list stands there once for each of its numbers.

/// `c = 16`, `local = 8, 8, 4`: one text for each parameter, in order.
pub fn named_values(values: &[(String, i64)]) -> Vec<String> {
    joined(values, " = ", ", ")
}

/// `c=16`, `local=8,8,4`: the same, as options are written.
pub fn named_options(values: &[(String, i64)]) -> Vec<String> {
    joined(values, "=", ",")
}

fn joined(values: &[(String, i64)], equals: &str, comma: &str) -> Vec<String> {
    let one = |all: &[(String, i64)]| {
        let numbers: Vec<String> = all.iter().map(|(_, value)| value.to_string()).collect();
        format!("{}{equals}{}", all[0].0, numbers.join(comma))
    };
    values.chunk_by(|(a, _), (b, _)| a == b).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_shown_once() {
        let values = [("c", 16), ("local", 8), ("local", 8), ("local", 4), ("k", -1)];
        let values = values.map(|(name, value)| (name.to_string(), value));
        assert_eq!(named_values(&values), ["c = 16", "local = 8, 8, 4", "k = -1"]);
        assert_eq!(named_options(&values[1..4]), ["local=8,8,4"]);
        assert!(named_values(&[]).is_empty());
    }
}
