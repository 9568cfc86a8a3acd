//! How soon word of one rank can be with many: whoever knows tells others, one after the other (R. Karp, A. Sahay,
//! E. Santos, K. Schauser, *Optimal broadcast and summation in the LogP model*, 1993). What all tell one is the same, the
//! other way round.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The least time in which `ranks` know of it, the first included: a message takes `overhead_us` at each end and
/// `latency_us` between, and a rank's own follow each other by `overhead_us`.
pub(super) fn spread_us(ranks: u32, overhead_us: f64, latency_us: f64) -> f64 {
    if ranks <= 1 {
        return 0.0;
    }
    let message_us = 2.0 * overhead_us + latency_us;
    if overhead_us == 0.0 || !message_us.is_finite() {
        return if message_us.is_finite() { message_us } else { 0.0 };
    }
    // Times at which the next rank can be told, by each that knows.
    let mut next: BinaryHeap<Reverse<u64>> = BinaryHeap::from([Reverse(message_us.to_bits())]);
    let mut told = 1;
    while let Some(Reverse(bits)) = next.pop() {
        let at = f64::from_bits(bits);
        told += 1;
        if told == ranks {
            return at;
        }
        next.push(Reverse((at + overhead_us).to_bits()));
        next.push(Reverse((at + message_us).to_bits()));
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::spread_us;

    #[test]
    fn word_spreads_as_in_the_model() {
        assert_eq!(spread_us(1, 1.0, 5.0), 0.0);
        assert_eq!(spread_us(2, 1.0, 5.0), 7.0);
        // Without overhead all are told at once.
        assert_eq!(spread_us(1000, 0.0, 5.0), 5.0);
        // Told at 7, 8, … 14 by the first; the one told at 7 tells others from 14 on.
        assert_eq!(spread_us(8, 1.0, 5.0), 13.0);
        assert_eq!(spread_us(10, 1.0, 5.0), 14.0);
        assert_eq!(spread_us(11, 1.0, 5.0), 15.0);
    }
}
