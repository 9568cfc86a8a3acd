//! The contract's tables: well sized, sorted, in range.

use super::PlanError;
use crate::codes::CONTRACT_TABLE;
use coll_contract::{Blocks, BufferRole, Contract, Leaf, Value};

pub(super) fn verify(contract: &Contract) -> Result<(), PlanError> {
    if contract.ranks == 0 {
        return Err(wrong("contract.ranks", "at least 1", 0));
    }
    if let Some(only) = contract.only.filter(|&only| only >= contract.ranks) {
        return Err(wrong("contract.only", format!("a rank below {}", contract.ranks), only));
    }
    buffers(contract)?;
    given(contract)?;
    classes(contract)?;
    values(contract)?;
    ensures(contract)?;
    after(contract)
}

fn wrong(field: impl Into<String>, expected: impl Into<String>, found: impl ToString) -> PlanError {
    PlanError::new(CONTRACT_TABLE, field, expected, found)
}

fn buffers(contract: &Contract) -> Result<(), PlanError> {
    let mut names = std::collections::BTreeSet::new();
    let mut total = 0u64;
    for (i, buffer) in contract.buffers.iter().enumerate() {
        let field = || format!("contract.buffers[{i}]");
        if !is_name(&buffer.name) {
            let expected = "a name of letters, digits and `_` that does not begin with a digit";
            return Err(wrong(field() + ".name", expected, format!("`{}`", buffer.name)));
        }
        if !names.insert(&buffer.name) {
            return Err(wrong(field() + ".name", "a name that no other buffer bears", &buffer.name));
        }
        if buffer.blocks == 0 {
            return Err(wrong(field() + ".blocks", "at least 1", 0));
        }
        total += u64::from(buffer.blocks);
    }
    if total > u64::from(u32::MAX) {
        return Err(wrong("contract.buffers", "fewer than 2^32 blocks on a rank", total));
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    letters && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

fn given(contract: &Contract) -> Result<(), PlanError> {
    if contract.given.len() != contract.buffers.len() {
        let expected = format!("one entry for each of {} buffers", contract.buffers.len());
        return Err(wrong("contract.given", expected, contract.given.len()));
    }
    for (i, (blocks, buffer)) in contract.given.iter().zip(&contract.buffers).enumerate() {
        let pairs = match blocks {
            Blocks::None => continue,
            _ if buffer.role == BufferRole::Out => {
                return Err(wrong(
                    format!("contract.given[{i}]"),
                    "nothing for an `out` buffer",
                    "given blocks",
                ));
            }
            Blocks::All => continue,
            Blocks::Listed(pairs) => pairs,
        };
        ascends(pairs, &format!("contract.given[{i}]"))?;
        let outside =
            pairs.iter().position(|&(rank, block)| !is_here(contract, rank) || block >= buffer.blocks);
        if let Some(at) = outside {
            let expected = format!("{} and a block below {}", here(contract), buffer.blocks);
            return Err(wrong(format!("contract.given[{i}][{at}]"), expected, format!("{:?}", pairs[at])));
        }
    }
    Ok(())
}

fn classes(contract: &Contract) -> Result<(), PlanError> {
    let rows = if contract.only.is_some() { 1 } else { u64::from(contract.ranks) };
    let width: u64 = contract.buffers.iter().map(|buffer| u64::from(buffer.blocks)).sum();
    let table = &contract.classes.table;
    if Some(table.len() as u64) != rows.checked_mul(width) {
        let expected = format!("{rows} rows of {width} blocks");
        return Err(wrong("contract.classes.table", expected, format!("{} entries", table.len())));
    }
    let most = width.saturating_mul(u64::from(contract.ranks));
    if u64::from(contract.classes.count) > most {
        let expected = format!("at most one class for each of {most} blocks");
        return Err(wrong("contract.classes.count", expected, contract.classes.count));
    }
    match table.iter().position(|&class| class >= contract.classes.count) {
        None => Ok(()),
        Some(at) => {
            let expected = format!("a class below {}", contract.classes.count);
            Err(wrong(format!("contract.classes.table[{at}]"), expected, table[at]))
        }
    }
}

fn values(contract: &Contract) -> Result<(), PlanError> {
    let mut sorted: Vec<Leaf> = Vec::new();
    for (i, value) in contract.values.iter().enumerate() {
        let field = || format!("contract.values[{i}]");
        let leaves = value.leaves();
        if leaves.is_empty() {
            return Err(wrong(field(), "at least one leaf", 0));
        }
        if let Some(leaf) = leaves.iter().find(|leaf| !is_leaf(contract, leaf)) {
            return Err(wrong(field(), "a block of a buffer of a rank", format!("{leaf:?}")));
        }
        let ascending = leaves.windows(2).all(|pair| pair[0] < pair[1]);
        if matches!(value, Value::Reduce(_)) && !ascending {
            sorted.clear();
            sorted.extend_from_slice(leaves);
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(wrong(field(), "no leaf twice", format!("{:?} twice", pair[0])));
            }
        }
    }
    Ok(())
}

fn is_leaf(contract: &Contract, leaf: &Leaf) -> bool {
    let buffer = contract.buffers.get(leaf.buffer as usize);
    leaf.rank < contract.ranks && buffer.is_some_and(|buffer| leaf.block < buffer.blocks)
}

fn ensures(contract: &Contract) -> Result<(), PlanError> {
    for (i, ensure) in contract.ensures.iter().enumerate() {
        let field = || format!("contract.ensures[{i}]");
        if !is_here(contract, ensure.rank) {
            return Err(wrong(field() + ".rank", here(contract), ensure.rank));
        }
        let Some(buffer) = contract.buffers.get(ensure.buffer as usize) else {
            let expected = format!("a buffer below {}", contract.buffers.len());
            return Err(wrong(field() + ".buffer", expected, ensure.buffer));
        };
        if buffer.role == BufferRole::In {
            return Err(wrong(
                field() + ".buffer",
                "a buffer that may be written",
                format!("`in {}`", buffer.name),
            ));
        }
        if ensure.block >= buffer.blocks {
            return Err(wrong(field() + ".block", format!("a block below {}", buffer.blocks), ensure.block));
        }
        if ensure.value as usize >= contract.values.len() {
            let expected = format!("a value below {}", contract.values.len());
            return Err(wrong(field() + ".value", expected, ensure.value));
        }
    }
    let keys = contract.ensures.iter().map(|e| (e.rank, e.buffer, e.block));
    match keys.clone().zip(keys.skip(1)).position(|(a, b)| a >= b) {
        None => Ok(()),
        Some(at) => Err(wrong(
            format!("contract.ensures[{}]", at + 1),
            "entries that ascend by rank, buffer, block, none twice",
            format!("{:?} after {:?}", contract.ensures[at + 1], contract.ensures[at]),
        )),
    }
}

fn after(contract: &Contract) -> Result<(), PlanError> {
    ascends(&contract.after, "contract.after")?;
    for (i, &(r, q)) in contract.after.iter().enumerate() {
        if !is_here(contract, r) || q >= contract.ranks || r == q {
            let expected = format!("{}, and another rank below {}", here(contract), contract.ranks);
            return Err(wrong(format!("contract.after[{i}]"), expected, format!("({r}, {q})")));
        }
    }
    Ok(())
}

fn ascends(pairs: &[(u32, u32)], field: &str) -> Result<(), PlanError> {
    match pairs.windows(2).position(|pair| pair[0] >= pair[1]) {
        None => Ok(()),
        Some(at) => {
            let found = format!("{:?} after {:?}", pairs[at + 1], pairs[at]);
            Err(wrong(format!("{field}[{}]", at + 1), "pairs that ascend, none twice", found))
        }
    }
}

/// Whether a rank is one that the tables speak of: in a slice, its own.
fn is_here(contract: &Contract, rank: u32) -> bool {
    contract.only.map_or(rank < contract.ranks, |only| rank == only)
}

fn here(contract: &Contract) -> String {
    match contract.only {
        Some(only) => format!("rank {only}, whose slice this is"),
        None => format!("a rank below {}", contract.ranks),
    }
}
