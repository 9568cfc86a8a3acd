//! Contracts: a collective's facts for a number of ranks, a root and parameters.
//!
//! `facts` evaluates what is given and what is ensured; `classes` works out which blocks have equal counts. A call
//! needs the first alone: what its contract leaves out holds nothing, whatever its size.

mod classes;
mod columns;
mod facts;
mod transpose;

pub(crate) use facts::{Facts, buffers_alone, evaluate};

use transpose::Transposed;

use crate::eval::{Fault, Machine};
use crate::resolved::{Collective, GLOBAL_N};
use coll_contract::{Classes, Contract};

/// The contract of a collective. `globals` are n, the root and the collective's parameters.
pub(crate) fn contract(
    collective: &Collective,
    globals: &[i64],
    machine: &mut Machine<'_>,
) -> Result<Contract, Fault> {
    let facts = evaluate(collective, globals, machine)?;
    let ranks = globals[GLOBAL_N] as u32;
    let classes = classes::number(&facts, ranks);
    Ok(assemble(collective, ranks, None, facts, classes))
}

/// The most blocks on all ranks for which a whole contract is made to have one rank's.
const PLACES_MAX: u64 = 1 << 20;

/// How the class of a block on another rank is found, from one rank's contract.
#[derive(Clone, Copy)]
pub(crate) enum ClassRule {
    /// In the table: it has every rank's row, or every row is alike.
    Table,
    /// By a formula.
    Transposed(Transposed),
}

/// The contract as one rank needs it: the rank's slice, or, where that cannot be had by itself and the whole is
/// small, the whole. None if neither.
pub(crate) fn contract_of_rank(
    collective: &Collective,
    globals: &[i64],
    machine: &mut Machine<'_>,
    rank: u32,
) -> Result<Option<(Contract, ClassRule)>, Fault> {
    let ranks = globals[GLOBAL_N] as u32;
    let facts = facts::evaluate_at(collective, globals, machine, Some(rank))?;
    let width = facts.blocks_per_rank();
    if columns::are_classes(collective, &facts, globals, machine)? {
        let classes = Classes { count: width, table: (0..width).collect() };
        let contract = assemble(collective, ranks, Some(rank), facts, classes).slice(rank);
        return Ok(Some((contract, ClassRule::Table)));
    }
    if let Some(rule) = Transposed::of(collective, &facts, ranks) {
        let row = (0..2).flat_map(|buffer| (0..ranks).map(move |block| rule.class(rank, buffer, block)));
        let classes = Classes { count: rule.count(), table: row.collect() };
        let contract = assemble(collective, ranks, Some(rank), facts, classes).slice(rank);
        return Ok(Some((contract, ClassRule::Transposed(rule))));
    }
    match u64::from(ranks) * u64::from(width) <= PLACES_MAX {
        true => Ok(Some((contract(collective, globals, machine)?, ClassRule::Table))),
        false => Ok(None),
    }
}

fn assemble(
    collective: &Collective,
    ranks: u32,
    only: Option<u32>,
    facts: Facts,
    classes: Classes,
) -> Contract {
    Contract {
        collective: collective.name.clone(),
        ranks,
        only,
        buffers: facts.buffers,
        given: facts.given,
        ensures: facts.ensures,
        values: facts.values,
        after: facts.after,
        classes,
    }
}
