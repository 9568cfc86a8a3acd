//! The integer functions of the language: 64-bit, checked, with one meaning each.

/// Euclidean remainder: never negative. `None` if `b` is 0.
pub fn modulo(a: i64, b: i64) -> Option<i64> {
    a.checked_rem_euclid(b)
}

/// Quotient rounded toward minus infinity. `None` if `b` is 0 or it does not fit.
pub fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let inexact = a % b != 0;
    if inexact && (a < 0) != (b < 0) { quotient.checked_sub(1) } else { Some(quotient) }
}

/// `⌊log2 x⌋`. `None` unless `x > 0`.
pub fn log2(x: i64) -> Option<i64> {
    (x > 0).then(|| x.ilog2() as i64)
}

/// The least `k ≥ 0` with `2^k ≥ x`. `None` unless `x > 0`.
pub fn ceil_log2(x: i64) -> Option<i64> {
    ceil_log(2, x)
}

/// The least `k ≥ 0` with `base^k ≥ x`. `None` unless `base > 1` and `x > 0`.
pub fn ceil_log(base: i64, x: i64) -> Option<i64> {
    if base < 2 || x < 1 {
        return None;
    }
    let (mut k, mut power) = (0, 1i64);
    while power < x {
        power = power.saturating_mul(base);
        k += 1;
    }
    Some(k)
}

/// `base^exponent`. `None` if the exponent is negative or it does not fit.
pub fn pow(base: i64, exponent: i64) -> Option<i64> {
    base.checked_pow(u32::try_from(exponent).ok()?)
}

/// True for 1, 2, 4, 8, …
pub fn is_pow2(x: i64) -> bool {
    x > 0 && x & (x - 1) == 0
}

/// The largest power of two that is not above `x`. `None` unless `x > 0`.
pub fn prev_pow2(x: i64) -> Option<i64> {
    log2(x).map(|k| 1 << k)
}

/// The smallest power of two that is not below `x`. `None` unless `x > 0`, or if it does not fit.
pub fn next_pow2(x: i64) -> Option<i64> {
    if x < 1 { None } else { (x as u64).checked_next_power_of_two().and_then(|p| p.try_into().ok()) }
}

/// Greatest common divisor, never negative. `None` if it does not fit.
pub fn gcd(a: i64, b: i64) -> Option<i64> {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_floors_and_remainder_is_never_negative() {
        for a in -20..=20 {
            for b in (-5..=5).filter(|&b| b != 0) {
                assert_eq!(floor_div(a, b), Some((a as f64 / b as f64).floor() as i64), "{a} / {b}");
                assert!((0..b.abs()).contains(&modulo(a, b).unwrap()), "{a} % {b}");
            }
        }
        assert_eq!((floor_div(1, 0), modulo(1, 0), floor_div(i64::MIN, -1)), (None, None, None));
    }

    #[test]
    fn logarithms() {
        assert_eq!((1..=9).map(|x| log2(x).unwrap()).collect::<Vec<_>>(), [0, 1, 1, 2, 2, 2, 2, 3, 3]);
        assert_eq!((1..=9).map(|x| ceil_log2(x).unwrap()).collect::<Vec<_>>(), [0, 1, 2, 2, 3, 3, 3, 3, 4]);
        assert_eq!((ceil_log(3, 1), ceil_log(3, 9), ceil_log(3, 10)), (Some(0), Some(2), Some(3)));
        assert_eq!(
            (log2(0), ceil_log2(-1), ceil_log(1, 5), ceil_log(2, i64::MAX)),
            (None, None, None, Some(63))
        );
        assert_eq!(
            (prev_pow2(6), next_pow2(6), next_pow2(i64::MAX), gcd(-12, 18)),
            (Some(4), Some(8), None, Some(6))
        );
    }
}
