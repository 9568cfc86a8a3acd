//! What a foreign schedule says of the calls that it is for. A plan serves any count, in place and out of place; so these
//! are not in the plan, and whoever asks for a call is told if the schedule's own runtime would have refused it.

/// For which calls a schedule's own runtime takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// It may be called in place.
    pub in_place: bool,
    /// It may be called out of place.
    pub out_of_place: bool,
    /// The least size, in bytes.
    pub min_bytes: u64,
    /// The greatest size, in bytes; none if there is no limit.
    pub max_bytes: Option<u64>,
    /// Equal chunks that a message is cut into; counts must divide by it.
    pub chunks: u32,
}

impl Limits {
    /// Why its own runtime would not take it for a call of so many elements of this size: one line for each reason, which
    /// names the attribute. Empty if it would.
    pub fn exclude(&self, elements: u64, element_size_bytes: u64, in_place: bool) -> Vec<String> {
        let mut reasons = Vec::new();
        let bytes = elements.saturating_mul(element_size_bytes);
        if bytes < self.min_bytes {
            reasons.push(format!("{bytes} B are fewer than `minBytes` {}", self.min_bytes));
        }
        if let Some(max_bytes) = self.max_bytes.filter(|&max_bytes| bytes > max_bytes) {
            reasons.push(format!("{bytes} B are more than `maxBytes` {max_bytes}"));
        }
        if in_place && !self.in_place {
            reasons.push("`inplace` is 0, and the call is in place".into());
        }
        if !in_place && !self.out_of_place {
            reasons.push("`outofplace` is 0, and the call is out of place".into());
        }
        let chunks = u64::from(self.chunks);
        if !elements.is_multiple_of(chunks) {
            reasons.push(format!("{elements} elements do not divide into `nchunksperloop` {chunks} chunks"));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_named() {
        let limits =
            Limits { in_place: true, out_of_place: false, min_bytes: 64, max_bytes: Some(1024), chunks: 8 };
        assert_eq!(limits.exclude(64, 4, true), [""; 0]);
        assert_eq!(
            limits.exclude(3, 4, false),
            [
                "12 B are fewer than `minBytes` 64",
                "`outofplace` is 0, and the call is out of place",
                "3 elements do not divide into `nchunksperloop` 8 chunks"
            ]
        );
        assert_eq!(limits.exclude(512, 4, true), ["2048 B are more than `maxBytes` 1024"]);
        let other = Limits { in_place: false, out_of_place: true, ..limits };
        assert_eq!(other.exclude(64, 4, true), ["`inplace` is 0, and the call is in place"]);
    }
}
