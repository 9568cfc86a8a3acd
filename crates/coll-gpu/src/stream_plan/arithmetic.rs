//! What kernels compute with: the operator on the elements that it works on, and whether those are wider than the
//! caller's.

use coll_base::{DType, RedOp};
use coll_kernel::{Reducer, Unsupported};

/// An operator, as kernels are told it.
#[derive(Clone, Debug)]
pub struct Arithmetic {
    /// The operator on elements of its own: those of the caller, or `f32` where narrow floats are accumulated so.
    operator: Reducer,
    /// The caller's type, if its elements are widened first.
    narrow: Option<DType>,
    ranks: u32,
    working_bytes: u64,
}

impl Arithmetic {
    /// Of an outline's operator. Nothing is refused: what the operator does on its type it does on `f32` too.
    pub(super) fn of(reducer: &Reducer, ranks: u32) -> Arithmetic {
        let narrow = reducer.is_in_f32().then(|| reducer.dtype());
        let operator = match narrow {
            None => Ok(reducer.clone()),
            Some(_) => in_f32(reducer),
        };
        let operator = operator.expect("invariant: the outline's operator has this form");
        let working_bytes = reducer.working_size_bytes();
        Arithmetic { operator, narrow, ranks, working_bytes }
    }

    /// The operator on elements of its own.
    pub fn operator(&self) -> &Reducer {
        &self.operator
    }

    /// The caller's type, if its elements are widened to `f32` first.
    pub fn narrow(&self) -> Option<DType> {
        self.narrow
    }

    /// How many ranks run together.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Bytes of a working element.
    pub fn working_bytes(&self) -> u64 {
        self.working_bytes
    }

    /// The factor of a pre-multiplied sum; 1 of all others.
    pub fn factor(&self) -> f64 {
        match self.operator.builtin_op() {
            Some(RedOp::PremulSum) => self.operator.params().first().copied().unwrap_or(1.0),
            _ => 1.0,
        }
    }
}

fn in_f32(reducer: &Reducer) -> Result<Reducer, Unsupported> {
    match (reducer.builtin_op(), reducer.user_operator()) {
        (Some(op), _) => Reducer::builtin_with(op, DType::F32, reducer.params()),
        (None, Some((operator, params))) => Reducer::user(operator, DType::F32, params),
        (None, None) => unreachable!("invariant: an operator is built in or a user's"),
    }
}
