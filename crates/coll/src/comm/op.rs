//! The operator of a reducing call.

use crate::Source;
use crate::comm::CommError;
use crate::trial::Operator;
use coll_base::{DType, RedOp};
use coll_kernel::{Reducer, Unsupported};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The operator of a reducing call: a built-in [`RedOp`], or one that is declared in the language.
#[derive(Clone, Debug)]
pub struct Op(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Builtin(RedOp),
    /// The sum of what is first multiplied by a factor.
    PremulSum(f64),
    /// With a number that stands for what it computes, on every rank the same.
    User {
        id: u64,
        operator: Arc<Operator>,
    },
}

/// What tells operators apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OpId {
    /// The call has none.
    None,
    Builtin(RedOp),
    PremulSum(u64),
    User(u64),
}

impl Op {
    /// An operator that a source file declares, with a value for each of its parameters, in any order.
    ///
    /// ```
    /// let source = coll::Source::from_text(
    ///     "mine.coll",
    ///     "operator smaller(a, b) = if a < b { a } else { b }\n",
    /// );
    /// # let found = coll::Op::from_source(&source, "larger", &[]);
    /// # assert!(found.unwrap_err().to_string().contains("`smaller`"));
    /// let op = coll::Op::from_source(&source, "smaller", &[])?;
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn from_source(source: &Source, name: &str, values: &[(&str, f64)]) -> Result<Op, CommError> {
        let refuse = |reason: String| CommError::Schedule { name: name.to_string(), reason };
        if let Some(error) = source.diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
            return Err(refuse(error.message.clone()));
        }
        let operators = source.module.operators();
        let Some(operator) = operators.iter().find(|operator| operator.name == name) else {
            let declared: Vec<String> = operators.iter().map(|known| format!("`{}`", known.name)).collect();
            let declared = if declared.is_empty() { "none".to_string() } else { declared.join(", ") };
            return Err(refuse(format!("no such operator is declared there; declared: {declared}")));
        };
        if let Some((unknown, _)) =
            values.iter().find(|(given, _)| !operator.params.iter().any(|p| p == given))
        {
            return Err(refuse(format!("the operator has no parameter `{unknown}`")));
        }
        let value = |param: &String| {
            let given = values.iter().find(|(given, _)| given == param).map(|&(_, value)| value);
            given.ok_or_else(|| refuse(format!("its parameter `{param}` has no value")))
        };
        let params = operator.params.iter().map(value).collect::<Result<Vec<f64>, CommError>>()?;
        Ok(Op::from(Operator::User(operator.clone(), params)))
    }

    /// The sum of all ranks' inputs, each multiplied by a factor first. Equal factors on all ranks.
    pub fn premul_sum(factor: f64) -> Op {
        Op(Kind::PremulSum(factor))
    }

    /// What it does, as messages and comparisons between ranks show it.
    pub(crate) fn words(&self) -> String {
        match &self.0 {
            Kind::Builtin(op) => op.name().to_string(),
            Kind::PremulSum(factor) => format!("{}(factor = {factor})", RedOp::PremulSum.name()),
            Kind::User { operator, .. } => match operator.values() {
                values if values.is_empty() => operator.name().to_string(),
                values => format!("{}({values})", operator.name()),
            },
        }
    }

    /// Equal for equal operators, and on every rank.
    #[inline]
    pub(crate) fn id(&self) -> OpId {
        match &self.0 {
            Kind::Builtin(op) => OpId::Builtin(*op),
            Kind::PremulSum(factor) => OpId::PremulSum(factor.to_bits()),
            Kind::User { id, .. } => OpId::User(*id),
        }
    }

    /// What a user's operator computes, for comparing.
    pub(crate) fn definition(&self) -> Option<String> {
        match &self.0 {
            Kind::Builtin(_) | Kind::PremulSum(_) => None,
            Kind::User { operator, .. } => Some(operator.definition()),
        }
    }

    /// Binds it to an element type: a user's operator as machine code, where that can be had.
    pub(crate) fn reducer(&self, dtype: DType) -> Result<Reducer, Unsupported> {
        match &self.0 {
            Kind::Builtin(op) => Reducer::builtin(*op, dtype),
            Kind::PremulSum(factor) => Reducer::builtin_with(RedOp::PremulSum, dtype, &[*factor]),
            Kind::User { operator, .. } => {
                let (reducer, code) = operator.compiled(dtype, true)?;
                log::debug!("operator {} on {dtype}: {code:?}", operator.name());
                Ok(reducer)
            }
        }
    }

    pub(crate) fn is_users(&self) -> bool {
        matches!(self.0, Kind::User { .. })
    }

    pub(crate) fn is_commutative(&self) -> bool {
        match &self.0 {
            Kind::Builtin(_) | Kind::PremulSum(_) => true,
            Kind::User { operator, .. } => operator.is_commutative(),
        }
    }
}

impl From<RedOp> for Op {
    #[inline]
    fn from(op: RedOp) -> Op {
        Op(Kind::Builtin(op))
    }
}

impl From<&Op> for Op {
    #[inline]
    fn from(op: &Op) -> Op {
        op.clone()
    }
}

impl From<Operator> for Op {
    fn from(operator: Operator) -> Op {
        if let Operator::Builtin(op) = operator {
            return Op(Kind::Builtin(op));
        }
        let parts = [operator.name(), &operator.values(), &operator.definition()];
        let digest = Sha256::digest(parts.join("\0"));
        let id = u64::from_le_bytes(std::array::from_fn(|at| digest[at]));
        Op(Kind::User { id, operator: Arc::new(operator) })
    }
}
