//! Contracts: a collective's facts for a number of ranks, a root and parameters.
//!
//! `facts` evaluates what is given and what is ensured; `classes` works out which blocks have equal counts. A call
//! needs the first alone: what its contract leaves out holds nothing, whatever its size.

mod classes;
mod facts;

pub(crate) use facts::{Facts, evaluate};

use crate::eval::{Fault, Machine};
use crate::resolved::{Collective, GLOBAL_N};
use coll_contract::Contract;

/// The contract of a collective. `globals` are n, the root and the collective's parameters.
pub(crate) fn contract(
    collective: &Collective,
    globals: &[i64],
    machine: &mut Machine<'_>,
) -> Result<Contract, Fault> {
    let facts = evaluate(collective, globals, machine)?;
    let ranks = globals[GLOBAL_N] as u32;
    let classes = classes::number(&facts, ranks);
    Ok(Contract {
        collective: collective.name.clone(),
        ranks,
        only: None,
        buffers: facts.buffers,
        given: facts.given,
        ensures: facts.ensures,
        values: facts.values,
        after: facts.after,
        classes,
    })
}
