//! Arithmetic of floats. What it gives is written down in `coll-kernel`'s `number.rs`; this is the same in instructions.

use crate::element::Number;
use crate::emit::Emitter;
use coll_kernel::Binary;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{InstBuilder, Value};

impl Emitter<'_, '_> {
    /// Two floats to one.
    pub(crate) fn float(&mut self, op: Binary, x: Value, y: Value) -> Value {
        match op {
            Binary::Add => self.ins().fadd(x, y),
            Binary::Sub => self.ins().fsub(x, y),
            Binary::Mul => self.ins().fmul(x, y),
            Binary::Div => self.ins().fdiv(x, y),
            Binary::Min => self.extreme(x, y, true),
            Binary::Max => self.extreme(x, y, false),
            _ => self.remainder(x, y),
        }
    }

    /// Both ways round: the two differ for zeros of two signs, whose bits are united, and for NaN, which sets all bits.
    fn extreme(&mut self, x: Value, y: Value, least: bool) -> Value {
        // Written so, each choice is one instruction of x86.
        let (x_first, y_first) = match least {
            true => (self.ins().fcmp(FloatCC::LessThan, x, y), self.ins().fcmp(FloatCC::LessThan, y, x)),
            false => (self.ins().fcmp(FloatCC::LessThan, y, x), self.ins().fcmp(FloatCC::LessThan, x, y)),
        };
        let (one, two) = (self.select(x_first, x, y), self.select(y_first, y, x));
        let unordered = self.ins().fcmp(FloatCC::Unordered, x, y);
        let (number, bits) = (self.number(), self.bits());
        let (one, two, nan) = (self.cast(bits, one), self.cast(bits, two), self.mask(unordered));
        let both = if least { self.ins().bor(one, two) } else { self.ins().band(one, two) };
        let united = self.ins().bor(both, nan);
        self.cast(number, united)
    }

    fn remainder(&mut self, x: Value, y: Value) -> Value {
        let function = self.remainder.expect("invariant: it is given where there are remainders");
        let call = self.ins().call(function, &[x, y]);
        self.builder.inst_results(call)[0]
    }
}

/// The function for remainders, as code finds it.
pub(crate) fn remainder_function(number: Number) -> Option<(&'static str, *const u8)> {
    match number {
        Number::F32 => Some(("coll_remainder_f32", remainder_f32 as *const u8)),
        Number::F64 => Some(("coll_remainder_f64", remainder_f64 as *const u8)),
        Number::Int { .. } => None,
    }
}

extern "C" fn remainder_f32(x: f32, y: f32) -> f32 {
    if y == 0.0 { 0.0 } else { x.rem_euclid(y) }
}

extern "C" fn remainder_f64(x: f64, y: f64) -> f64 {
    if y == 0.0 { 0.0 } else { x.rem_euclid(y) }
}
