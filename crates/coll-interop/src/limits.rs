//! What a foreign schedule says of the calls that it is for. A plan serves any count, in place and out of place; so these
//! are not in the plan, and whoever asks a file for a call that its limits exclude is told which of them does.

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
    /// Why it is not for a call of so many elements of this size: one line for each reason, which names the attribute. Empty
    /// if it is.
    pub fn exclude(&self, elements: u64, element_size_bytes: u64, in_place: bool) -> Vec<String> {
        [self.exclude_size(elements, element_size_bytes), self.exclude_placement(in_place)].concat()
    }

    /// The same of its size alone: in such a call its own runtime would not choose it.
    pub fn exclude_size(&self, elements: u64, element_size_bytes: u64) -> Vec<String> {
        let mut reasons = Vec::new();
        let bytes = elements.saturating_mul(element_size_bytes);
        if bytes < self.min_bytes {
            reasons.push(format!("{bytes} B are fewer than `minBytes` {}", self.min_bytes));
        }
        if let Some(max_bytes) = self.max_bytes.filter(|&max_bytes| bytes > max_bytes) {
            reasons.push(format!("{bytes} B are more than `maxBytes` {max_bytes}"));
        }
        reasons
    }

    /// The same of whether it is in place: such a call its own runtime could not serve by it.
    pub fn exclude_placement(&self, in_place: bool) -> Vec<String> {
        let mut reasons = Vec::new();
        if in_place && !self.in_place {
            reasons.push("`inplace` is 0, and the call is in place".into());
        }
        if !in_place && !self.out_of_place {
            reasons.push("`outofplace` is 0, and the call is out of place".into());
        }
        reasons
    }

    /// That its own runtime would pass over so many elements, for they do not divide. A plan serves them all the same, with
    /// chunks that differ by an element.
    pub fn uneven(&self, elements: u64) -> Option<String> {
        let chunks = u64::from(self.chunks);
        (!elements.is_multiple_of(chunks))
            .then(|| format!("{elements} elements do not divide into `nchunksperloop` {chunks} chunks"))
    }

    /// Whether it is for calls in place, if it is for one kind of call alone.
    pub fn only_in_place(&self) -> Option<bool> {
        (self.in_place != self.out_of_place).then_some(self.in_place)
    }

    /// The size nearest to this one, in bytes, that its limits allow; none if they allow no size.
    pub fn nearest(&self, bytes: u64) -> Option<u64> {
        let most = self.max_bytes.unwrap_or(u64::MAX);
        (self.min_bytes <= most).then(|| bytes.clamp(self.min_bytes, most))
    }

    /// `sizes from 1024 to 4096 B, in place`.
    pub fn words(&self) -> String {
        let sizes = match (self.min_bytes, self.max_bytes) {
            (0, None) => "all sizes".to_string(),
            (least, None) => format!("sizes from {least} B on"),
            (least, Some(most)) => format!("sizes from {least} to {most} B"),
        };
        let calls = match (self.in_place, self.out_of_place) {
            (true, true) => "in place and out of place",
            (true, false) => "in place alone",
            (false, true) => "out of place alone",
            (false, false) => "neither in place nor out of place",
        };
        format!("{sizes}, {calls}")
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
            ["12 B are fewer than `minBytes` 64", "`outofplace` is 0, and the call is out of place"]
        );
        let uneven = "3 elements do not divide into `nchunksperloop` 8 chunks";
        assert_eq!((limits.uneven(3).as_deref(), limits.uneven(16)), (Some(uneven), None));
        assert_eq!(
            (limits.nearest(4096), limits.nearest(1), limits.nearest(80)),
            (Some(1024), Some(64), Some(80))
        );
        assert_eq!(limits.words(), "sizes from 64 to 1024 B, in place alone");
        assert_eq!(Limits { min_bytes: 2048, ..limits.clone() }.nearest(80), None);
        assert_eq!(limits.exclude(512, 4, true), ["2048 B are more than `maxBytes` 1024"]);
        let other = Limits { in_place: false, out_of_place: true, ..limits };
        assert_eq!(other.exclude(64, 4, true), ["`inplace` is 0, and the call is in place"]);
        assert_eq!((limits.only_in_place(), other.only_in_place()), (Some(true), Some(false)));
    }
}
