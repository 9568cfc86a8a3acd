//! Lists: what a parameter may be instead of a number, such as the sizes of nodes.
//!
//! A list never ends: after its last number it goes on with that number, so that `list(4)` is `4, 4, 4, …` and one
//! default serves any number of ranks. A list is no value: an expression only chooses from one. Among the globals, a
//! parameter's slot then says where its list begins; there stands how many numbers it has, and they follow.

/// A function of a list and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListFunction {
    /// The number at a place.
    Nth,
    /// The first k together.
    Total,
    /// How many of the first are together at least x.
    Cover,
    /// The largest of the first k.
    Most,
    /// The smallest of the first k.
    Least,
}

/// What makes a list: `list(8, 8, 4)`.
pub(crate) const LIST: &str = "list";

impl ListFunction {
    pub(crate) const ALL: [ListFunction; 5] = [
        ListFunction::Nth,
        ListFunction::Total,
        ListFunction::Cover,
        ListFunction::Most,
        ListFunction::Least,
    ];

    pub(crate) fn named(name: &str) -> Option<ListFunction> {
        ListFunction::ALL.into_iter().find(|function| function.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            ListFunction::Nth => "nth",
            ListFunction::Total => "total",
            ListFunction::Cover => "cover",
            ListFunction::Most => "most",
            ListFunction::Least => "least",
        }
    }

    /// The result, or nothing where there is none that fits. The list has at least one number.
    pub(crate) fn apply(self, list: &[i64], x: i64) -> Option<i64> {
        match self {
            ListFunction::Nth => {
                let at = usize::try_from(x).ok()?;
                list.get(at).or(list.last()).copied()
            }
            ListFunction::Total => total(list, x),
            ListFunction::Cover => cover(list, x),
            ListFunction::Most => first(list, x)?.iter().copied().max(),
            ListFunction::Least => first(list, x)?.iter().copied().min(),
        }
    }

    /// What it asks of its arguments, for the message when it has no result.
    pub(crate) fn domain(self) -> &'static str {
        match self {
            ListFunction::Nth => "places are counted from 0",
            ListFunction::Total => "it takes the first 0 or more, and the result must fit 64 bits",
            ListFunction::Cover => "the list's numbers must be above 0",
            ListFunction::Most | ListFunction::Least => "it takes the first 1 or more",
        }
    }
}

/// All different numbers of the first k.
fn first(list: &[i64], count: i64) -> Option<&[i64]> {
    let count = usize::try_from(count).ok()?;
    list.get(..count.min(list.len()))
}

fn total(list: &[i64], count: i64) -> Option<i64> {
    let count = u64::try_from(count).ok()?;
    let given = list.len().min(usize::try_from(count).unwrap_or(usize::MAX));
    let sum = list[..given].iter().try_fold(0i64, |sum, &x| sum.checked_add(x))?;
    let rest = i64::try_from(count - given as u64).ok()?;
    sum.checked_add(list.last()?.checked_mul(rest)?)
}

fn cover(list: &[i64], x: i64) -> Option<i64> {
    if list.iter().any(|&number| number <= 0) {
        return None;
    }
    let mut left = x;
    for (at, &number) in (0..).zip(list) {
        if left <= 0 {
            return Some(at);
        }
        left -= number;
    }
    let rest = left.max(0);
    let last = *list.last()?;
    (list.len() as i64).checked_add(rest / last + i64::from(rest % last != 0))
}

/// What is left of x for the last of those that cover it: the ranks of the last node. 0 where nothing covers it.
pub(crate) fn left_for_last(list: &[i64], x: i64) -> i64 {
    let before = cover(list, x).and_then(|count| total(list, count - 1));
    before.map_or(0, |before| x - before)
}

/// Where a parameter's list stands among the globals.
pub(crate) fn listed(globals: &[i64], slot: u32) -> &[i64] {
    let start = globals[slot as usize] as usize;
    &globals[start + 1..start + 1 + globals[start] as usize]
}

/// Appends a list to the globals, and has the slot say where.
pub(crate) fn append(globals: &mut Vec<i64>, slot: usize, list: &[i64]) {
    globals[slot] = globals.len() as i64;
    globals.push(list.len() as i64);
    globals.extend_from_slice(list);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By going through the list as it goes on for ever.
    fn plain(function: ListFunction, list: &[i64], x: i64) -> i64 {
        let nth = |at: i64| list[(at as usize).min(list.len() - 1)];
        let total = |count: i64| (0..count).map(nth).sum::<i64>();
        match function {
            ListFunction::Nth => nth(x),
            ListFunction::Total => total(x),
            ListFunction::Cover => (0..).find(|&count| total(count) >= x).expect("it grows"),
            ListFunction::Most => (0..x).map(nth).max().expect("there is one"),
            ListFunction::Least => (0..x).map(nth).min().expect("there is one"),
        }
    }

    #[test]
    fn a_list_goes_on_with_its_last_number() {
        for list in [&[4][..], &[8, 8, 4], &[1, 5], &[3, 1, 2, 9]] {
            for function in ListFunction::ALL {
                assert_eq!(ListFunction::named(function.name()), Some(function));
                let takes_one = [ListFunction::Most, ListFunction::Least].contains(&function);
                for x in i64::from(takes_one)..40 {
                    let found = function.apply(list, x);
                    assert_eq!(found, Some(plain(function, list, x)), "{function:?} of {list:?}, {x}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_value_has_none() {
        assert_eq!(ListFunction::Nth.apply(&[4], -1), None);
        assert_eq!(ListFunction::Total.apply(&[4], -1), None);
        assert_eq!(ListFunction::Total.apply(&[4], i64::MAX), None);
        assert_eq!(ListFunction::Cover.apply(&[4, 0], 9), None);
        assert_eq!(ListFunction::Cover.apply(&[1], i64::MAX), Some(i64::MAX));
        assert_eq!(ListFunction::Most.apply(&[4], 0), None);
        let last = |list: &[i64], x| left_for_last(list, x);
        assert_eq!([last(&[8], 24), last(&[8, 8, 4], 20), last(&[4], 17), last(&[4, 0], 9)], [8, 4, 1, 0]);
        assert_eq!([last(&[8, 8, 4], 12), last(&[8], 5), last(&[1], 0)], [4, 5, 0]);
    }
}
