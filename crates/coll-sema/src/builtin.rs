//! The functions of the language: their names, how many arguments they take, and what they compute.

use coll_base::math;

/// A function that every file sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Abs,
    CeilLog,
    CeilLog2,
    Gcd,
    IsPow2,
    Log2,
    Max,
    Min,
    NextPow2,
    Pow,
    PrevPow2,
}

impl Builtin {
    pub(crate) const ALL: [Builtin; 11] = [
        Builtin::Abs,
        Builtin::CeilLog,
        Builtin::CeilLog2,
        Builtin::Gcd,
        Builtin::IsPow2,
        Builtin::Log2,
        Builtin::Max,
        Builtin::Min,
        Builtin::NextPow2,
        Builtin::Pow,
        Builtin::PrevPow2,
    ];

    pub(crate) fn named(name: &str) -> Option<Builtin> {
        Builtin::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Builtin::Abs => "abs",
            Builtin::CeilLog => "ceil_log",
            Builtin::CeilLog2 => "ceil_log2",
            Builtin::Gcd => "gcd",
            Builtin::IsPow2 => "is_pow2",
            Builtin::Log2 => "log2",
            Builtin::Max => "max",
            Builtin::Min => "min",
            Builtin::NextPow2 => "next_pow2",
            Builtin::Pow => "pow",
            Builtin::PrevPow2 => "prev_pow2",
        }
    }

    /// How many arguments it takes: `min` and `max` take two or more.
    pub(crate) fn takes(self, arguments: usize) -> bool {
        match self {
            Builtin::Max | Builtin::Min => arguments >= 2,
            _ => arguments == self.arguments_least(),
        }
    }

    pub(crate) fn arguments_least(self) -> usize {
        match self {
            Builtin::CeilLog | Builtin::Gcd | Builtin::Max | Builtin::Min | Builtin::Pow => 2,
            _ => 1,
        }
    }

    /// True if it yields a truth value.
    pub(crate) fn is_truth(self) -> bool {
        self == Builtin::IsPow2
    }

    /// The result, or nothing where there is none that fits.
    pub(crate) fn apply(self, arguments: &[i64]) -> Option<i64> {
        match (self, arguments) {
            (Builtin::Abs, &[x]) => x.checked_abs(),
            (Builtin::CeilLog, &[base, x]) => math::ceil_log(base, x),
            (Builtin::CeilLog2, &[x]) => math::ceil_log2(x),
            (Builtin::Gcd, &[a, b]) => math::gcd(a, b),
            (Builtin::IsPow2, &[x]) => Some(i64::from(math::is_pow2(x))),
            (Builtin::Log2, &[x]) => math::log2(x),
            (Builtin::Max, all) => all.iter().copied().max(),
            (Builtin::Min, all) => all.iter().copied().min(),
            (Builtin::NextPow2, &[x]) => math::next_pow2(x),
            (Builtin::Pow, &[base, exponent]) => math::pow(base, exponent),
            (Builtin::PrevPow2, &[x]) => math::prev_pow2(x),
            _ => None,
        }
    }

    /// What it asks of its arguments, for the message when it has no result.
    pub(crate) fn domain(self) -> &'static str {
        match self {
            Builtin::Log2 | Builtin::CeilLog2 | Builtin::PrevPow2 => "its argument must be above 0",
            Builtin::NextPow2 => "its argument must be above 0, and the result must fit 64 bits",
            Builtin::CeilLog => "its base must be above 1 and its argument above 0",
            Builtin::Pow => "its exponent must not be negative, and the result must fit 64 bits",
            _ => "the result must fit 64 bits",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_name_and_computes() {
        for builtin in Builtin::ALL {
            assert_eq!(Builtin::named(builtin.name()), Some(builtin));
            assert!(builtin.takes(builtin.arguments_least()));
            assert!(builtin.apply(&[4, 4][..builtin.arguments_least()]).is_some(), "{}", builtin.name());
        }
        assert_eq!((Builtin::Min.apply(&[3, 1, 2]), Builtin::Max.apply(&[3, 1, 2])), (Some(1), Some(3)));
        assert_eq!((Builtin::Abs.apply(&[i64::MIN]), Builtin::Log2.apply(&[0])), (None, None));
    }
}
