//! Numbers from a seed: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, *Fast splittable pseudorandom number
//! generators*, 2014). The same on every machine, for ever.

/// A sequence of numbers.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An index below `len`, if there is one.
    pub(crate) fn index(&mut self, len: usize) -> Option<usize> {
        (len > 0).then(|| (self.next() % len as u64) as usize)
    }

    /// A size from 1 to `most`, small ones as likely as large ones; 0 if `most` is 0.
    pub(crate) fn size(&mut self, most: usize) -> usize {
        let bits = usize::BITS - most.leading_zeros();
        let magnitude = self.index(bits as usize).map_or(0, |bits| 1usize << bits);
        self.index(magnitude).map_or(0, |offset| (magnitude + offset).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn sizes_lie_between_one_and_the_most_and_reach_both() {
        let mut random = Random::new(1);
        for most in [1, 2, 3, 7, 64] {
            let sizes: Vec<usize> = (0..1000).map(|_| random.size(most)).collect();
            assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&1), Some(&most)));
        }
        assert_eq!(random.size(0), 0);
    }

    #[test]
    fn the_sequence_is_that_of_the_paper() {
        let mut random = Random::new(1234567);
        assert_eq!([random.next(), random.next()], [6457827717110365317, 3203168211198807973]);
    }
}
