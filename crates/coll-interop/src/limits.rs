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
    /// Of what each chunk is a whole number, in bytes; 1 if of any.
    pub alignment_bytes: u64,
    /// Blocks of the operation's buffer for each one that sizes and chunks are of: 1 where they are of the whole buffer.
    pub blocks: u32,
    /// What the form calls all this.
    pub names: &'static Names,
}

/// How a form says its limits.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    min: &'static str,
    max: &'static str,
    /// Where calls in place are excluded, and where those out of place are.
    not_in_place: &'static str,
    not_out_of_place: &'static str,
    chunks: &'static str,
}

impl Names {
    /// MSCCL XML.
    pub(crate) const MSCCL: Names = Names {
        min: "minBytes",
        max: "maxBytes",
        not_in_place: "`inplace` is 0",
        not_out_of_place: "`outofplace` is 0",
        chunks: "nchunksperloop",
    };

    /// MSCCL++ JSON.
    pub(crate) const MSCCLPP: Names = Names {
        min: "min_message_size",
        max: "max_message_size",
        not_in_place: "`inplace` is false",
        not_out_of_place: "`inplace` is true",
        chunks: "input_chunks",
    };
}

impl Limits {
    /// None at all.
    pub const NONE: Limits = Limits {
        in_place: true,
        out_of_place: true,
        min_bytes: 0,
        max_bytes: None,
        chunks: 1,
        alignment_bytes: 1,
        blocks: 1,
        names: &Names::MSCCL,
    };

    /// Why it is not for a call of so many elements of this size: one line for each reason, which names the attribute. Empty
    /// if it is.
    pub fn exclude(&self, elements: u64, element_size_bytes: u64, in_place: bool) -> Vec<String> {
        [self.exclude_size(elements, element_size_bytes), self.exclude_placement(in_place)].concat()
    }

    /// The same of its size alone: in such a call its own runtime would not choose it.
    pub fn exclude_size(&self, elements: u64, element_size_bytes: u64) -> Vec<String> {
        let mut reasons = Vec::new();
        let Names { min, max, .. } = self.names;
        let bytes = elements.saturating_mul(element_size_bytes) / u64::from(self.blocks);
        let of = if self.blocks > 1 { " of each block" } else { "" };
        if bytes < self.min_bytes {
            reasons.push(format!("{bytes} B{of} are fewer than `{min}` {}", self.min_bytes));
        }
        if let Some(max_bytes) = self.max_bytes.filter(|&max_bytes| bytes > max_bytes) {
            reasons.push(format!("{bytes} B{of} are more than `{max}` {max_bytes}"));
        }
        reasons
    }

    /// The same of whether it is in place: such a call its own runtime could not serve by it.
    pub fn exclude_placement(&self, in_place: bool) -> Vec<String> {
        let mut reasons = Vec::new();
        if in_place && !self.in_place {
            reasons.push(format!("{}, and the call is in place", self.names.not_in_place));
        }
        if !in_place && !self.out_of_place {
            reasons.push(format!("{}, and the call is out of place", self.names.not_out_of_place));
        }
        reasons
    }

    /// That its own runtime would refuse or pass over so many elements of this size, for they do not divide. A plan serves
    /// them all the same, with chunks that differ by an element.
    pub fn uneven(&self, elements: u64, element_size_bytes: u64) -> Option<String> {
        let chunks = u64::from(self.chunks) * u64::from(self.blocks);
        let of = if self.blocks > 1 { " of each block" } else { "" };
        let (name, each) = (self.names.chunks, self.chunks);
        if !elements.is_multiple_of(chunks) {
            return Some(format!("{elements} elements do not divide into `{name}` {each} chunks{of}"));
        }
        let (bytes, unit) = (elements.saturating_mul(element_size_bytes), self.alignment_bytes);
        (!bytes.is_multiple_of(chunks.saturating_mul(unit))).then(|| {
            format!(
                "{bytes} B do not divide into `{name}` {each} chunks{of} of whole `buffer_alignment` {unit} B"
            )
        })
    }

    /// How many elements a count has to be a multiple of, where its chunks change places.
    pub fn divisor(&self) -> u64 {
        u64::from(self.chunks) * u64::from(self.blocks)
    }

    /// Whether it is for calls in place, if it is for one kind of call alone.
    pub fn only_in_place(&self) -> Option<bool> {
        (self.in_place != self.out_of_place).then_some(self.in_place)
    }

    /// Why it is for calls in place alone, in the form's words.
    pub fn why_only_in_place(&self) -> &'static str {
        self.names.not_out_of_place
    }

    /// The size of the operation's buffer nearest to this one, in bytes, that its limits allow; none if they allow no size.
    pub fn nearest(&self, bytes: u64) -> Option<u64> {
        let blocks = u64::from(self.blocks);
        let least = self.min_bytes.saturating_mul(blocks);
        let most = self.max_bytes.map_or(u64::MAX, |most| most.saturating_mul(blocks));
        (least <= most).then(|| bytes.clamp(least, most))
    }

    /// `sizes from 1024 to 4096 B, in place`.
    pub fn words(&self) -> String {
        let of = if self.blocks > 1 { " a block" } else { "" };
        let sizes = match (self.min_bytes, self.max_bytes) {
            (0, None) => "all sizes".to_string(),
            (least, None) => format!("sizes from {least} B{of} on"),
            (least, Some(most)) => format!("sizes from {least} to {most} B{of}"),
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
            Limits { out_of_place: false, min_bytes: 64, max_bytes: Some(1024), chunks: 8, ..Limits::NONE };
        assert_eq!(limits.exclude(64, 4, true), [""; 0]);
        assert_eq!(
            limits.exclude(3, 4, false),
            ["12 B are fewer than `minBytes` 64", "`outofplace` is 0, and the call is out of place"]
        );
        let uneven = "3 elements do not divide into `nchunksperloop` 8 chunks";
        assert_eq!((limits.uneven(3, 4).as_deref(), limits.uneven(16, 4)), (Some(uneven), None));
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

    #[test]
    fn sizes_of_one_block_and_whole_units_are_told_as_the_form_says_them() {
        let blocks = Limits { min_bytes: 64, max_bytes: Some(1024), chunks: 2, blocks: 4, ..Limits::NONE };
        assert_eq!(blocks.exclude_size(48, 4), ["48 B of each block are fewer than `minBytes` 64"]);
        assert_eq!((blocks.nearest(1), blocks.divisor()), (Some(256), 8));
        let uneven = "12 elements do not divide into `nchunksperloop` 2 chunks of each block";
        assert_eq!(blocks.uneven(12, 4).as_deref(), Some(uneven));
        let json = Limits {
            chunks: 2,
            alignment_bytes: 16,
            names: &Names::MSCCLPP,
            out_of_place: false,
            ..Limits::NONE
        };
        let uneven = "24 B do not divide into `input_chunks` 2 chunks of whole `buffer_alignment` 16 B";
        assert_eq!((json.uneven(6, 4).as_deref(), json.uneven(8, 4)), (Some(uneven), None));
        assert_eq!(json.exclude_placement(false), ["`inplace` is true, and the call is out of place"]);
    }
}
