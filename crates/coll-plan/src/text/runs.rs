//! Short ways to write long tables: a row of numbers as runs that go up evenly, rows that repeat as one.

/// `low..high = first step step`: entry `low + i` is `first + i·step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunOfNumbers {
    pub(super) buffer: u32,
    pub(super) low: u32,
    pub(super) high: u32,
    pub(super) first: u32,
    pub(super) step: i64,
}

/// Cuts a row, `(buffer, block, number)` in ascending order, into runs.
pub(super) fn runs(row: &[(u32, u32, u32)]) -> Vec<RunOfNumbers> {
    let mut found = Vec::new();
    let mut rest = row;
    while let Some(&(buffer, low, first)) = rest.first() {
        let step = rest.get(1).map_or(0, |next| i64::from(next.2) - i64::from(first));
        let follows = |i: &usize| {
            let due = i64::from(first) + *i as i64 * step;
            rest[*i].0 == buffer && rest[*i].1 == low + *i as u32 && i64::from(rest[*i].2) == due
        };
        let mut len = (1..rest.len()).take_while(follows).count() + 1;
        // Two numbers always lie on a line; that one says nothing.
        if len == 2 && !(0..=1).contains(&step) {
            len = 1;
        }
        let step = if len == 1 { 0 } else { step };
        found.push(RunOfNumbers { buffer, low, high: low + len as u32, first, step });
        rest = &rest[len..];
    }
    found
}

/// Groups neighbouring ranks whose rows are equal: `(first rank, after the last, runs)`.
pub(super) fn groups(
    rows: impl Iterator<Item = (u32, Vec<RunOfNumbers>)>,
) -> Vec<(u32, u32, Vec<RunOfNumbers>)> {
    let mut groups: Vec<(u32, u32, Vec<RunOfNumbers>)> = Vec::new();
    for (rank, row) in rows {
        match groups.last_mut() {
            Some((_, end, last)) if *end == rank && *last == row => *end += 1,
            _ => groups.push((rank, rank + 1, row)),
        }
    }
    groups
}

/// `0`, or `0..3` where there are more.
pub(super) fn range(low: u32, high: u32) -> String {
    if high.checked_sub(low) == Some(1) { low.to_string() } else { format!("{low}..{high}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_where_the_step_or_the_buffer_changes() {
        let row =
            [(0, 0, 5), (0, 1, 5), (0, 2, 5), (0, 3, 9), (1, 0, 10), (1, 1, 12), (1, 2, 14), (1, 4, 16)];
        let found: Vec<_> = runs(&row).iter().map(|r| (r.buffer, r.low, r.high, r.first, r.step)).collect();
        assert_eq!(found, [(0, 0, 3, 5, 0), (0, 3, 4, 9, 0), (1, 0, 3, 10, 2), (1, 4, 5, 16, 0)]);
    }
}
