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

    /// The values of its parameters, `alpha = 0.5`, for comparing.
    pub fn values(&self) -> String {
        match self {
            Operator::Builtin(_) => String::new(),
            Operator::User(operator, values) => {
                let pairs =
                    operator.params.iter().zip(values).map(|(name, value)| format!("{name} = {value}"));
                pairs.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// What it computes, for comparing.
    pub fn definition(&self) -> String {
        match self {
            Operator::Builtin(_) => "built in".to_string(),
            Operator::User(operator, _) => {
                format!("{:?} given {:?} ensure {:?}", operator.combine, operator.given, operator.ensure)
            }
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
