//! A contract in which each chunk is a block: for schedules that store a chunk where another one belongs.
//!
//! Pieces of a block may differ by an element, so a plan that cuts blocks into pieces must keep each at its place. Blocks
//! of one class are equal, so they may change places; the price is that counts must divide.

use coll_contract::{Blocks, BufferDecl, Classes, Contract, Ensure, Leaf, Value};

/// The contract with every block cut into `pieces` blocks, all of one length.
pub(crate) fn refined(contract: &Contract, pieces: u32) -> Contract {
    let cut = |block: u32| block * pieces;
    let buffers: Vec<BufferDecl> = contract
        .buffers
        .iter()
        .map(|decl| BufferDecl { blocks: cut(decl.blocks), name: decl.name.clone(), role: decl.role })
        .collect();
    let given = contract.given.iter().map(|blocks| match blocks {
        Blocks::Listed(pairs) => Blocks::Listed(
            pairs
                .iter()
                .flat_map(|&(rank, block)| (0..pieces).map(move |piece| (rank, block * pieces + piece)))
                .collect(),
        ),
        all_or_none => all_or_none.clone(),
    });
    let value = |value: &Value, piece: u32| {
        let leaf = |leaf: &Leaf| Leaf { block: cut(leaf.block) + piece, ..*leaf };
        match value {
            Value::Copy(one) => Value::Copy(leaf(one)),
            Value::Reduce(leaves) => Value::Reduce(leaves.iter().map(leaf).collect()),
        }
    };
    let ensures = contract.ensures.iter().flat_map(|ensure| {
        (0..pieces).map(move |piece| Ensure {
            block: ensure.block * pieces + piece,
            value: ensure.value * pieces + piece,
            ..*ensure
        })
    });
    let width: u32 = buffers.iter().map(|decl| decl.blocks).sum();
    Contract {
        collective: contract.collective.clone(),
        ranks: contract.ranks,
        only: None,
        given: given.collect(),
        ensures: ensures.collect(),
        values: contract.values.iter().flat_map(|v| (0..pieces).map(move |piece| value(v, piece))).collect(),
        after: contract.after.clone(),
        classes: Classes { count: 1, table: vec![0; width as usize * contract.ranks as usize] },
        buffers,
    }
}
