//! An operator bound to an element type: all that an executor knows of arithmetic.
//!
//! Elements are reduced as **working elements**. For most operators these are the elements themselves; an average of
//! integers sums in a wider type, an average of floats puts in fractions, a pre-multiplied sum multiples, and a user's
//! operator may say what a rank puts in and what is made of the result. [`Reducer::is_direct`] tells the two cases apart.

use crate::Unsupported;
use crate::average;
use crate::expr::UserOperator;
use crate::interpret::interpreter;
use crate::kernel::CombineFn;
use crate::many::many;
use crate::native::UserCode;
use crate::scale::Scale;
use crate::simd::{self, Level};
use crate::table;
use coll_base::{DType, RedOp};
use std::fmt;
use std::sync::Arc;

/// An operator on elements of one type. Cheap to clone.
#[derive(Clone)]
pub struct Reducer {
    name: Arc<str>,
    dtype: DType,
    commutative: bool,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Builtin(CombineFn),
    Average(CombineFn),
    Scaled(CombineFn, Scale),
    User { code: Arc<dyn UserCode>, direct: bool, native: bool },
}

impl Reducer {
    /// A built-in operator that has no parameters. What it does not work on is refused; the manual's table of operators
    /// says which and why.
    pub fn builtin(op: RedOp, dtype: DType) -> Result<Reducer, Unsupported> {
        Reducer::builtin_with(op, dtype, &[])
    }

    /// A built-in operator, with a value for each of [`RedOp::params`].
    pub fn builtin_with(op: RedOp, dtype: DType, params: &[f64]) -> Result<Reducer, Unsupported> {
        let refuse = |reason: String| Unsupported { operator: op.name().into(), dtype, reason };
        table::how(op, dtype).map_err(|reason| refuse(reason.into()))?;
        let combine = table::combine(op, dtype, Level::best());
        let kind = match (op, params) {
            (RedOp::PremulSum, [factor]) => {
                Kind::Scaled(combine, Scale::new(dtype, *factor).map_err(refuse)?)
            }
            (RedOp::PremulSum, _) => {
                let found = params.len();
                return Err(refuse(format!("it has 1 parameter, `factor`, and {found} values are given")));
            }
            (_, [_, ..]) => {
                return Err(refuse(format!("it has no parameters, and {} values are given", params.len())));
            }
            (RedOp::Avg, []) => Kind::Average(combine),
            (_, []) => Kind::Builtin(combine),
        };
        Ok(Reducer { name: op.name().into(), dtype, commutative: true, kind })
    }

    /// A user's operator, with a value for each of its parameters.
    pub fn user(operator: &UserOperator, dtype: DType, params: &[f64]) -> Result<Reducer, Unsupported> {
        let refuse = |reason| Unsupported { operator: operator.name.clone(), dtype, reason };
        if params.len() != operator.params.len() {
            let (due, found) = (operator.params.len(), params.len());
            return Err(refuse(format!("it has {due} parameters, and {found} values are given")));
        }
        let code = interpreter(operator, dtype, params).map_err(refuse)?;
        let direct = operator.given.is_none() && operator.ensure.is_none();
        Ok(Reducer {
            name: operator.name.as_str().into(),
            dtype,
            commutative: operator.commutative,
            kind: Kind::User { code: code.into(), direct, native: false },
        })
    }

    /// A user's operator that runs as machine code: `code` was made for this operator, element type and these values.
    /// What [`Reducer::user`] refuses is refused here too.
    pub fn user_native(
        operator: &UserOperator,
        dtype: DType,
        params: &[f64],
        code: Arc<dyn UserCode>,
    ) -> Result<Reducer, Unsupported> {
        let mut reducer = Reducer::user(operator, dtype, params)?;
        let direct = reducer.is_direct();
        reducer.kind = Kind::User { code, direct, native: true };
        Ok(reducer)
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Values of a built-in operator's parameters, in the order of [`RedOp::params`]. A user's operator has its own
    /// compiled in, and shows none.
    pub fn params(&self) -> &[f64] {
        match &self.kind {
            Kind::Scaled(_, scale) => std::slice::from_ref(scale.factor()),
            Kind::Builtin(_) | Kind::Average(_) | Kind::User { .. } => &[],
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether the order of operands is free.
    pub fn is_commutative(&self) -> bool {
        self.commutative
    }

    /// True if a user's operator runs as machine code that was handed in.
    pub fn is_native(&self) -> bool {
        matches!(self.kind, Kind::User { native: true, .. })
    }

    /// True if working elements are the elements as they are, so that nothing need be prepared or finished.
    pub fn is_direct(&self) -> bool {
        match self.kind {
            Kind::Builtin(_) => true,
            Kind::Average(_) | Kind::Scaled(..) => false,
            Kind::User { direct, .. } => direct,
        }
    }

    /// Bytes of a working element.
    pub fn working_size_bytes(&self) -> u64 {
        match self.kind {
            Kind::Average(_) => average::working_size_bytes(self.dtype),
            Kind::Builtin(_) | Kind::Scaled(..) | Kind::User { .. } => self.dtype.size_bytes(),
        }
    }

    /// The most values that one result may be made of where `ranks` ranks run together: an average of floats divides
    /// each by the number of ranks, and one of integers sums in a type that has room for so many.
    pub fn leaves_max(&self, ranks: u64) -> u64 {
        match self.kind {
            Kind::Average(_) => average::leaves_max(self.dtype, ranks),
            Kind::Builtin(_) | Kind::Scaled(..) | Kind::User { .. } => u64::MAX,
        }
    }

    /// `target := operand ⊕ incoming`, or `incoming ⊕ operand` if `incoming_left`, on working elements. Without an
    /// operand it is the target. All three are as long; none need be aligned.
    pub fn combine_into(
        &self,
        target: &mut [u8],
        operand: Option<&[u8]>,
        incoming: &[u8],
        incoming_left: bool,
    ) {
        debug_assert_eq!(target.len(), incoming.len());
        debug_assert!(operand.is_none_or(|operand| operand.len() == target.len()));
        match &self.kind {
            // Built-in operators are commutative, so the side does not matter.
            Kind::Builtin(combine) | Kind::Average(combine) | Kind::Scaled(combine, _) => match operand {
                Some(operand) if target.len() >= simd::STREAM_BYTES => {
                    simd::streamed(*combine, self.working_size_bytes() as usize, target, operand, incoming);
                }
                operand => combine(target, operand, incoming),
            },
            Kind::User { code, .. } if incoming_left => code.combine(target, Some(incoming), operand),
            Kind::User { code, .. } => code.combine(target, operand, Some(incoming)),
        }
    }

    /// `target := operands[0] ⊕ operands[1] ⊕ …` on working elements, from left to right, in one pass over memory: the
    /// bits are those of one [`combine_into`](Reducer::combine_into) after the other. All are as long as the target; none
    /// need be aligned. Without operands the target stays as it is, and a single one is copied.
    pub fn combine_many(&self, target: &mut [u8], operands: &[&[u8]]) {
        debug_assert!(operands.iter().all(|operand| operand.len() == target.len()));
        match &self.kind {
            Kind::Builtin(combine) | Kind::Average(combine) | Kind::Scaled(combine, _) => {
                many(target, operands, combine);
            }
            Kind::User { code, .. } => {
                many(target, operands, |target, a, b| code.combine(target, a, Some(b)))
            }
        }
    }

    /// What a rank puts in: elements to working elements. `ranks` is the number of ranks that run together.
    pub fn prepare(&self, ranks: u64, input: &[u8], working: &mut [u8]) {
        match &self.kind {
            Kind::Builtin(_) => working.copy_from_slice(input),
            Kind::Average(_) => average::prepare(self.dtype, ranks, input, working),
            Kind::Scaled(_, scale) => scale.prepare(input, working),
            Kind::User { code, .. } => code.prepare(input, working),
        }
    }

    /// What is made of the finished value of `leaves` inputs: working elements to elements.
    pub fn finish(&self, ranks: u64, leaves: u64, working: &[u8], output: &mut [u8]) {
        match &self.kind {
            Kind::Builtin(_) | Kind::Scaled(..) => output.copy_from_slice(working),
            Kind::Average(_) => average::finish(self.dtype, ranks, leaves, working, output),
            Kind::User { code, .. } => code.finish(working, output),
        }
    }
}

impl fmt::Debug for Reducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reducer({} of {})", self.name, self.dtype)
    }
}
