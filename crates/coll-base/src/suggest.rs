//! *Did you mean*: the known name that is most like an unknown one.

/// The name of `known` with the fewest letters changed, if few enough; of equals, the first.
pub fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    // Of a single letter nothing is left when it is changed.
    let limit = match name.chars().count() {
        0 | 1 => 0,
        letters => (letters / 3).max(1),
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let changes = distance(name, candidate);
        if changes <= limit && best.is_none_or(|(least, _)| changes < least) {
            best = Some((changes, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Letters to insert, remove or replace to make one of the other (Levenshtein 1966); a swap of neighbours is one
/// change (Damerau 1964), as it is one slip of the fingers.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_mended_and_a_stranger_is_not() {
        let known = ["data", "peer", "allgather", "reduce_scatter"];
        let check = |name, expected| assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        check("dtaa", Some("data"));
        check("per", Some("peer"));
        check("all_gather", Some("allgather"));
        check("reducescatter", Some("reduce_scatter"));
        check("q", None);
        check("peers", Some("peer"));
        check("tmp", None);
    }
}
