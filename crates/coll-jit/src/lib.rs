//! Machine code for user operators, made by Cranelift when an operator is bound to an element type.
//!
//! [`compile`] gives code that computes bit for bit what the interpreter of `coll-kernel` does, the bits of a NaN aside,
//! or says why there is none: an element type that is not known here, an expression that is too large, a processor
//! that Cranelift does not serve, a system that refuses executable memory. The caller then interprets.
//!
//! ```
//! # use coll_base::DType;
//! # use coll_kernel::{Binary, Expr, Reducer, UserOperator};
//! # use std::sync::Arc;
//! let combine = Expr::Binary(Binary::Max, Expr::Left.into(), Expr::Right.into());
//! # let (params, given, ensure) = (vec![], None, None);
//! let operator = UserOperator { name: "larger".into(), commutative: true, params, combine, given, ensure };
//! let reducer = match coll_jit::compile(&operator, DType::F32, &[]) {
//!     Ok(code) => Reducer::user_native(&operator, DType::F32, &[], Arc::new(code)),
//!     Err(_) => Reducer::user(&operator, DType::F32, &[]),
//! };
//! # reducer.unwrap();
//! ```
//!
//! # The way of an operator
//! `lower` checks an expression and makes a flat list of typed nodes of it; `loops` makes a function of the list, a loop
//! over vectors of 16 bytes and one over what is left; `emit` writes the nodes' instructions, for vectors and single
//! numbers alike, with `integer`, `float` and `narrow` for the arithmetic; `code` keeps the finished code and is the only
//! place that calls it.
//!
//! # To add an element type
//! A line in `element`. What has no line is refused.

mod code;
mod element;
mod emit;
mod error;
mod float;
mod integer;
mod loops;
mod lower;
mod machine;
mod narrow;

pub use error::JitError;
pub use lower::NODES_MAX;
pub use machine::Machine;

use code::{Code, Memory};
use coll_base::DType;
use coll_kernel::{UserCode, UserOperator};
use lower::{Body, Operands};
use std::sync::Arc;

/// Machine code of a user's operator for one element type and one value for each parameter. The memory it lies in is
/// given back when it is dropped.
pub struct NativeOperator {
    code: Code,
    /// Of an operator on narrow floats, what it was made of, to be made again for `f32`.
    source: Option<Box<(Machine, UserOperator, Vec<f64>)>>,
}

/// Compiles an operator for this processor.
///
/// # Errors
/// Why there is no code: see [`JitError`]. The interpreter serves all but what it refuses itself.
pub fn compile(operator: &UserOperator, dtype: DType, params: &[f64]) -> Result<NativeOperator, JitError> {
    compile_for(&Machine::this()?, operator, dtype, params)
}

/// Compiles an operator for some of what this processor can do.
///
/// # Errors
/// As [`compile`].
pub fn compile_for(
    machine: &Machine,
    operator: &UserOperator,
    dtype: DType,
    params: &[f64],
) -> Result<NativeOperator, JitError> {
    compile_in(Memory::system(), machine, operator, dtype, params)
}

fn compile_in(
    memory: Memory,
    machine: &Machine,
    operator: &UserOperator,
    dtype: DType,
    params: &[f64],
) -> Result<NativeOperator, JitError> {
    let element = element::of(dtype).ok_or(JitError::Type { dtype })?;
    let lower = |expr: &_, operands| lower::lower(expr, operands, element, &operator.params, params);
    let one = |expr: &Option<_>| expr.as_ref().map(|expr| lower(expr, Operands::One)).transpose();
    let bodies: [Option<Body>; 3] =
        [Some(lower(&operator.combine, Operands::Two)?), one(&operator.given)?, one(&operator.ensure)?];
    let source = || Box::new((machine.clone(), operator.clone(), params.to_vec()));
    let source = dtype.is_narrow_float().then(source);
    Ok(NativeOperator { code: Code::new(memory, machine, element, &bodies)?, source })
}

impl UserCode for NativeOperator {
    fn combine(&self, target: &mut [u8], a: Option<&[u8]>, b: Option<&[u8]>) {
        self.code.combine(target, a, b);
    }

    fn prepare(&self, input: &[u8], working: &mut [u8]) {
        self.code.prepare(input, working);
    }

    fn finish(&self, working: &[u8], output: &mut [u8]) {
        self.code.finish(working, output);
    }

    fn in_f32(&self) -> Option<Arc<dyn UserCode>> {
        let (machine, operator, params) = &**self.source.as_ref()?;
        let native = compile_for(machine, operator, DType::F32, params).ok()?;
        Some(Arc::new(native))
    }
}
