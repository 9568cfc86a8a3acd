//! Lists of extents side by side, cut where any of them is cut, and joined where all go on.

use super::Spot;
use coll_exec::{Extent, Memory};

/// A run of bytes that lies at one place in each of several lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece<const N: usize> {
    pub(super) spots: [Spot; N],
    pub(super) bytes: u64,
}

/// One list: whose memory, and which parts of it.
pub(super) struct List<'a> {
    pub(super) rank: u32,
    pub(super) extents: &'a [Extent],
}

/// Lists of equal lengths in all, piece by piece.
pub(super) fn pieces<const N: usize>(lists: [List<'_>; N]) -> Vec<Piece<N>> {
    let mut all: Vec<Piece<N>> = Vec::new();
    let (mut index, mut skip) = ([0usize; N], [0u64; N]);
    loop {
        let mut bytes = u64::MAX;
        for (list, (&index, &skip)) in lists.iter().zip(index.iter().zip(&skip)) {
            let Some(extent) = list.extents.get(index) else { return all };
            bytes = bytes.min(extent.bytes - skip);
        }
        let spots = std::array::from_fn(|at| {
            let Extent { memory, offset, .. } = lists[at].extents[index[at]];
            Spot { rank: lists[at].rank, memory, offset: offset + skip[at] }
        });
        join(&mut all, Piece { spots, bytes });
        for (list, (index, skip)) in lists.iter().zip(index.iter_mut().zip(&mut skip)) {
            *skip += bytes;
            if *skip == list.extents[*index].bytes {
                (*index, *skip) = (*index + 1, 0);
            }
        }
    }
}

/// Adds a piece, to the one before if it goes on from there.
fn join<const N: usize>(all: &mut Vec<Piece<N>>, piece: Piece<N>) {
    match all.last_mut() {
        Some(last) if last.spots.iter().zip(&piece.spots).all(|(a, b)| a.moved(last.bytes) == *b) => {
            last.bytes += piece.bytes;
        }
        _ => all.push(piece),
    }
}

/// One extent of so many bytes.
pub(super) fn whole(memory: Memory, offset: u64, bytes: u64) -> Vec<Extent> {
    if bytes == 0 { Vec::new() } else { vec![Extent { memory, offset, bytes }] }
}

impl Spot {
    /// So many bytes further on.
    pub(super) fn moved(self, bytes: u64) -> Spot {
        Spot { offset: self.offset + bytes, ..self }
    }
}
