//! The operator of a trial: built in, or a user's with values for its parameters.

use coll_base::{DType, RedOp};
use coll_kernel::{Cast, Reducer, Unsupported, UserOperator};
use coll_plan::Plan;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An operator, as it is told to every rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Operator {
    /// A built-in one without parameters.
    Builtin(RedOp),
    /// The pre-multiplied sum, with its factor.
    PremulSum(f64),
    /// A user's, with a value for each of its parameters.
    User(UserOperator, Vec<f64>),
}

/// What runs where an operator is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperatorCode {
    /// A loop of this program.
    Builtin,
    /// Machine code made for the user's operator.
    Native,
    /// The interpreter.
    Interpreted {
        /// Why there is no machine code.
        reason: String,
    },
}

impl OperatorCode {
    /// The word in tables and documents: `built in`, `native` or `interpreted`.
    pub fn name(&self) -> &'static str {
        match self {
            OperatorCode::Builtin => "built in",
            OperatorCode::Native => "native",
            OperatorCode::Interpreted { .. } => "interpreted",
        }
    }
}

impl Operator {
    /// Its name, in tables.
    pub fn name(&self) -> &str {
        match self {
            Operator::Builtin(op) => op.name(),
            Operator::PremulSum(_) => RedOp::PremulSum.name(),
            Operator::User(operator, _) => &operator.name,
        }
    }

    /// The values of its parameters, `alpha = 0.5`, for comparing.
    pub fn values(&self) -> String {
        match self {
            Operator::Builtin(_) => String::new(),
            Operator::PremulSum(factor) => format!("factor = {factor}"),
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
            Operator::Builtin(_) | Operator::PremulSum(_) => "built in".to_string(),
            Operator::User(operator, _) => {
                format!("{:?} given {:?} ensure {:?}", operator.combine, operator.given, operator.ensure)
            }
        }
    }

    /// True if the order of operands is free.
    pub fn is_commutative(&self) -> bool {
        match self {
            Operator::Builtin(_) | Operator::PremulSum(_) => true,
            Operator::User(operator, _) => operator.commutative,
        }
    }

    /// The built-in one, if it is.
    pub fn builtin(&self) -> Option<RedOp> {
        match self {
            Operator::Builtin(op) => Some(*op),
            Operator::PremulSum(_) => Some(RedOp::PremulSum),
            Operator::User(..) => None,
        }
    }

    /// Binds it to an element type, a user's operator as machine code if `native` asks for it and it can be had.
    pub fn compiled(&self, dtype: DType, native: bool) -> Result<(Reducer, OperatorCode), Unsupported> {
        let interpreted = self.reducer(dtype)?;
        let Operator::User(operator, params) = self else { return Ok((interpreted, OperatorCode::Builtin)) };
        if !native {
            return Ok((interpreted, OperatorCode::Interpreted { reason: "it was asked for".into() }));
        }
        match coll_jit::compile(operator, dtype, params) {
            Ok(code) => {
                let reducer = Reducer::user_native(operator, dtype, params, Arc::new(code))?;
                Ok((reducer, OperatorCode::Native))
            }
            Err(error) => Ok((interpreted, OperatorCode::Interpreted { reason: error.to_string() })),
        }
    }

    /// What results of a plan are judged by: a user's operator is interpreted, and narrow floats are accumulated as the plan
    /// says.
    pub fn reference(&self, dtype: DType, plan: &Plan) -> Result<Reducer, Unsupported> {
        let reducer = self.reducer(dtype)?;
        Ok(plan.accumulate.and_then(|_| reducer.in_f32()).unwrap_or(reducer))
    }

    /// Binds it to an element type. A user's operator is interpreted.
    pub fn reducer(&self, dtype: DType) -> Result<Reducer, Unsupported> {
        match self {
            Operator::Builtin(op) => Reducer::builtin(*op, dtype),
            Operator::PremulSum(factor) => Reducer::builtin_with(RedOp::PremulSum, dtype, &[*factor]),
            Operator::User(operator, params) => Reducer::user(operator, dtype, params),
        }
    }
}

/// What elements of a call travel as, if the plan's messages are of a narrower type than memory; `reducer` is what
/// [`Operator::reference`] gives.
pub fn travels_as(plan: &Plan, dtype: DType, reducer: &Reducer) -> Option<DType> {
    let memory = match plan.reduces && !reducer.is_direct() {
        true => reducer.working_dtype()?,
        false => dtype,
    };
    plan.wire.filter(|&wire| Cast::narrowing(memory, wire).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_kernel::{Binary, Expr};

    fn operator(combine: Expr) -> Operator {
        let (params, given, ensure) = (vec![], None, None);
        let name = "f".to_string();
        Operator::User(UserOperator { name, commutative: true, params, combine, given, ensure }, vec![])
    }

    fn repeated(times: usize) -> Expr {
        (0..times).fold(Expr::Left, |x, _| {
            let wide =
                (0..9).fold(Expr::Right, |x, _| Expr::Binary(Binary::Max, x.into(), Expr::Left.into()));
            Expr::Binary(Binary::Max, x.into(), wide.into())
        })
    }

    #[test]
    fn machine_code_is_taken_where_it_can_be_had_and_told() {
        let small = operator(repeated(1));
        let (reducer, code) = small.compiled(DType::F32, true).unwrap();
        assert!(reducer.is_native());
        assert_eq!((code.name(), code), ("native", OperatorCode::Native));

        let (reducer, code) = small.compiled(DType::F32, false).unwrap();
        assert!(!reducer.is_native());
        assert_eq!(code, OperatorCode::Interpreted { reason: "it was asked for".into() });

        let large = operator(repeated(50));
        let (reducer, code) = large.compiled(DType::F32, true).unwrap();
        assert!(!reducer.is_native());
        let OperatorCode::Interpreted { reason } = code else { panic!("{code:?}") };
        assert!(reason.starts_with("its expression has more than 400 parts"), "{reason}");
    }

    #[test]
    fn built_in_operators_go_their_own_way() {
        let (reducer, code) = Operator::Builtin(RedOp::Sum).compiled(DType::F32, true).unwrap();
        assert!(!reducer.is_native());
        assert_eq!(code, OperatorCode::Builtin);
    }
}
