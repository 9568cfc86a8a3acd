//! The operator of a trial: built in, or a user's with values for its parameters.

use coll_base::{DType, RedOp};
use coll_kernel::{Reducer, Unsupported, UserOperator};
use serde::{Deserialize, Serialize};

/// An operator, as it is told to every rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Operator {
    /// A built-in one.
    Builtin(RedOp),
    /// A user's, with a value for each of its parameters.
    User(UserOperator, Vec<f64>),
}

impl Operator {
    /// Its name, in tables.
    pub fn name(&self) -> &str {
        match self {
            Operator::Builtin(op) => op.name(),
            Operator::User(operator, _) => &operator.name,
        }
    }

    /// True if the order of operands is free.
    pub fn is_commutative(&self) -> bool {
        match self {
            Operator::Builtin(_) => true,
            Operator::User(operator, _) => operator.commutative,
        }
    }

    /// The built-in one, if it is.
    pub fn builtin(&self) -> Option<RedOp> {
        match self {
            Operator::Builtin(op) => Some(*op),
            Operator::User(..) => None,
        }
    }

    /// Binds it to an element type.
    pub fn reducer(&self, dtype: DType) -> Result<Reducer, Unsupported> {
        match self {
            Operator::Builtin(op) => Reducer::builtin(*op, dtype),
            Operator::User(operator, params) => Reducer::user(operator, dtype, params),
        }
    }
}
