//! An operator bound to an element type: all that an executor knows of arithmetic.
//!
//! Elements are reduced as **working elements**. For most operators these are the elements themselves; an average of
//! integers sums in a wider type, an average of floats puts in fractions, a pre-multiplied sum multiples, and a user's
//! operator may say what a rank puts in and what is made of the result. [`Reducer::is_direct`] tells the two cases apart.
//! [`Reducer::in_f32`] is the same operator with `f32` as the working elements of narrow floats.

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
use crate::wide::Wide;
use coll_base::{DType, RedOp};
use std::fmt;
use std::sync::Arc;

/// An operator on elements of one type. Cheap to clone.
#[derive(Clone)]
pub struct Reducer {
    name: Arc<str>,
    dtype: DType,
    commutative: bool,
    source: Source,
    kind: Kind,
}

/// What it was made of.
#[derive(Clone)]
enum Source {
    Builtin(RedOp),
    User(Arc<(UserOperator, Vec<f64>)>),
}

#[derive(Clone)]
enum Kind {
    Builtin(CombineFn),
    Average(CombineFn),
    Scaled(CombineFn, Scale),
    User {
        code: Arc<dyn UserCode>,
        direct: bool,
        native: bool,
    },
    /// A narrow float, accumulated in `f32`.
    Wide(Arc<Wide>),
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
        let (name, source) = (op.name().into(), Source::Builtin(op));
        Ok(Reducer { name, dtype, commutative: true, source, kind })
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
            source: Source::User(Arc::new((operator.clone(), params.to_vec()))),
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

    /// The same operator with `f32` as working elements: what a rank puts in is widened, and each result rounded once.
    /// Machine code of a user's operator is made anew by what made it, or else interpreted. None where it makes no
    /// difference: on other types than narrow floats; for operators that never round, `min` and `max`; for an average of
    /// 8-bit floats, which is summed so anyway; and if it is such a one already.
    pub fn in_f32(&self) -> Option<Reducer> {
        if !self.dtype.is_narrow_float() {
            return None;
        }
        let wide = match (&self.kind, &self.source) {
            (Kind::Wide(_), _) => return None,
            (Kind::Average(_), _) if self.dtype.size_bytes() == 1 => return None,
            (_, Source::Builtin(RedOp::Sum | RedOp::Prod | RedOp::Avg | RedOp::PremulSum)) => {
                let Source::Builtin(op) = self.source else { return None };
                Reducer::builtin_with(op, DType::F32, self.params())
            }
            (_, Source::Builtin(_)) => return None,
            (kind, Source::User(source)) => {
                let (operator, params) = &**source;
                let native = match kind {
                    Kind::User { code, native: true, .. } => code.in_f32(),
                    _ => None,
                };
                match native {
                    Some(code) => Reducer::user_native(operator, DType::F32, params, code),
                    None => Reducer::user(operator, DType::F32, params),
                }
            }
        };
        let wide = wide.expect("invariant: what works on a narrow float works on f32");
        let kind = Kind::Wide(Arc::new(Wide::new(self.dtype, wide)));
        Some(Reducer { kind, ..self.clone() })
    }

    /// The type of working elements; none if it is no element type but a wider integer.
    pub fn working_dtype(&self) -> Option<DType> {
        match &self.kind {
            Kind::Wide(_) => Some(DType::F32),
            Kind::Average(_) if self.dtype.is_narrow_float() && self.dtype.size_bytes() == 1 => {
                Some(DType::F32)
            }
            Kind::Average(_) => (!self.dtype.is_integer()).then_some(self.dtype),
            Kind::Builtin(_) | Kind::Scaled(..) | Kind::User { .. } => Some(self.dtype),
        }
    }

    /// True if it is such a one as [`Reducer::in_f32`] makes.
    pub fn is_in_f32(&self) -> bool {
        matches!(self.kind, Kind::Wide(_))
    }

    /// True if what is put in and not reduced comes out as it went in, but for a NaN that signals, which becomes quiet.
    pub fn keeps_single_values(&self) -> bool {
        match &self.kind {
            Kind::Wide(wide) => wide.reducer.is_direct(),
            _ => self.is_direct(),
        }
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
            Kind::Wide(wide) => wide.reducer.params(),
            Kind::Builtin(_) | Kind::Average(_) | Kind::User { .. } => &[],
        }
    }

    /// The built-in operator that it was made of.
    pub fn builtin_op(&self) -> Option<RedOp> {
        match self.source {
            Source::Builtin(op) => Some(op),
            Source::User(_) => None,
        }
    }

    /// The user's operator that it was made of, and the values of its parameters.
    pub fn user_operator(&self) -> Option<(&UserOperator, &[f64])> {
        match &self.source {
            Source::Builtin(_) => None,
            Source::User(source) => Some((&source.0, &source.1)),
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
        match &self.kind {
            Kind::Wide(wide) => wide.reducer.is_native(),
            kind => matches!(kind, Kind::User { native: true, .. }),
        }
    }

    /// True if working elements are the elements as they are, so that nothing need be prepared or finished.
    pub fn is_direct(&self) -> bool {
        match self.kind {
            Kind::Builtin(_) => true,
            Kind::Average(_) | Kind::Scaled(..) | Kind::Wide(_) => false,
            Kind::User { direct, .. } => direct,
        }
    }

    /// Bytes of a working element.
    pub fn working_size_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Average(_) => average::working_size_bytes(self.dtype),
            Kind::Wide(wide) => wide.reducer.working_size_bytes(),
            Kind::Builtin(_) | Kind::Scaled(..) | Kind::User { .. } => self.dtype.size_bytes(),
        }
    }

    /// The most values that one result may be made of where `ranks` ranks run together: an average of floats divides
    /// each by the number of ranks, and one of integers sums in a type that has room for so many.
    pub fn leaves_max(&self, ranks: u64) -> u64 {
        match &self.kind {
            Kind::Average(_) => average::leaves_max(self.dtype, ranks),
            Kind::Wide(wide) => wide.reducer.leaves_max(ranks),
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
            Kind::Wide(wide) => wide.reducer.combine_into(target, operand, incoming, incoming_left),
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
            Kind::Wide(wide) => wide.reducer.combine_many(target, operands),
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
            Kind::Wide(wide) => wide.prepare(ranks, input, working),
            Kind::User { code, .. } => code.prepare(input, working),
        }
    }

    /// What is made of the finished value of `leaves` inputs: working elements to elements.
    pub fn finish(&self, ranks: u64, leaves: u64, working: &[u8], output: &mut [u8]) {
        match &self.kind {
            Kind::Builtin(_) | Kind::Scaled(..) => output.copy_from_slice(working),
            Kind::Average(_) => average::finish(self.dtype, ranks, leaves, working, output),
            Kind::Wide(wide) => wide.finish(ranks, leaves, working, output),
            Kind::User { code, .. } => code.finish(working, output),
        }
    }
}

impl fmt::Debug for Reducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reducer({} of {})", self.name, self.dtype)
    }
}
