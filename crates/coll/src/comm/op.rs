//! The operator of a reducing call.

use crate::Source;
use crate::comm::CommError;
use crate::trial::Operator;
use coll_base::RedOp;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The operator of a reducing call: a built-in [`RedOp`], or one that is declared in the language.
#[derive(Clone, Debug)]
pub struct Op(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Builtin(RedOp),
    /// With a number that stands for what it computes, on every rank the same.
    User {
        id: u64,
        operator: Arc<Operator>,
    },
}

/// Numbers from here on are those of users' operators.
const USER: u64 = 1 << 63;

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

    /// What it does, as messages and comparisons between ranks show it.
    pub(crate) fn words(&self) -> String {
        match &self.0 {
            Kind::Builtin(op) => op.name().to_string(),
            Kind::User { operator, .. } => match operator.values() {
                values if values.is_empty() => operator.name().to_string(),
                values => format!("{}({values})", operator.name()),
            },
        }
    }

    /// The same for equal operators on every rank.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        match &self.0 {
            // 0 is for calls without an operator.
            Kind::Builtin(op) => *op as u64 + 1,
            Kind::User { id, .. } => *id,
        }
    }

    pub(crate) fn operator(&self) -> Operator {
        match &self.0 {
            Kind::Builtin(op) => Operator::Builtin(*op),
            Kind::User { operator, .. } => Operator::clone(operator),
        }
    }

    pub(crate) fn is_commutative(&self) -> bool {
        match &self.0 {
            Kind::Builtin(_) => true,
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
        let id = u64::from_le_bytes(std::array::from_fn(|at| digest[at])) | USER;
        Op(Kind::User { id, operator: Arc::new(operator) })
    }
}
