//! The collectives of other tools: under which names they go, and how their buffers lie in the contract's.
//!
//! What a collective promises stands in its contract. What a foreign form leaves unsaid is which blocks its input and its
//! output buffer are; that is here, as data.

/// Which blocks of the contract's buffer a rank's foreign buffer spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// All, in order.
    All,
    /// The one of the rank's own number.
    Own,
}

/// Which way a root's data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// Away from it.
    Gives,
    /// To it.
    Takes,
}

/// A collective that other tools know too.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its name here.
    pub(crate) name: &'static str,
    /// Its names elsewhere; the first is written.
    pub(crate) words: &'static [&'static str],
    pub(crate) input: Blocks,
    pub(crate) output: Blocks,
    pub(crate) root: Option<Root>,
}

impl Known {
    /// For how many blocks of the larger buffer the runtimes of MSCCL count one: their `count` of a gather or a scatter is that of
    /// one block, which they cut into `nchunksperloop` chunks; of other collectives they cut the whole buffer.
    pub(crate) fn blocks_apart(&self, ranks: u32) -> u32 {
        let is_one_of_all = self.input == Own || self.output == Own;
        if self.root.is_some() && is_one_of_all { ranks } else { 1 }
    }
}

use Blocks::{All, Own};

const KNOWN: [Known; 8] = [
    Known { name: "allreduce", words: &["allreduce"], input: All, output: All, root: None },
    Known { name: "allgather", words: &["allgather"], input: Own, output: All, root: None },
    Known {
        name: "reduce_scatter",
        words: &["reducescatter", "reduce_scatter"],
        input: All,
        output: Own,
        root: None,
    },
    Known { name: "alltoall", words: &["alltoall"], input: All, output: All, root: None },
    Known { name: "broadcast", words: &["broadcast"], input: All, output: All, root: Some(Root::Gives) },
    Known { name: "reduce", words: &["reduce"], input: All, output: All, root: Some(Root::Takes) },
    Known { name: "gather", words: &["gather"], input: Own, output: All, root: Some(Root::Takes) },
    Known { name: "scatter", words: &["scatter"], input: All, output: Own, root: Some(Root::Gives) },
];

/// The collective of a foreign word, whatever its case.
pub(crate) fn by_word(word: &str) -> Option<&'static Known> {
    let word = word.to_ascii_lowercase();
    KNOWN.iter().find(|known| known.words.contains(&word.as_str()))
}

/// The collective of a contract's name.
pub(crate) fn by_name(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// All names that can be written, for messages.
pub(crate) fn names() -> String {
    KNOWN.iter().map(|known| format!("`{}`", known.name)).collect::<Vec<_>>().join(", ")
}

/// Ranks in the order in which they are likely the root, given how many messages each sends and receives.
pub(crate) fn likely_roots(root: Root, traffic: &[(u64, u64)]) -> Vec<u32> {
    let mut ranks: Vec<u32> = (0..traffic.len() as u32).collect();
    ranks.sort_by_key(|&rank| {
        let (sends, receives) = traffic[rank as usize];
        match root {
            Root::Gives => (receives, u64::MAX - sends),
            Root::Takes => (sends, u64::MAX - receives),
        }
    });
    ranks
}
