//! Arithmetic of integers: it wraps, dividing by zero gives zero, and a shift beyond the width leaves only the sign.
//! What it gives is written down in `coll-kernel`'s `number.rs`; this is the same in instructions.

use crate::emit::Emitter;
use coll_kernel::Binary;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

impl Emitter<'_, '_> {
    /// Two integers to one. `known` is the second, if it is a constant.
    pub(crate) fn integer(
        &mut self,
        op: Binary,
        x: Value,
        y: Value,
        (bits, signed): (u32, bool),
        known: Option<u64>,
    ) -> Value {
        match op {
            Binary::Add => self.ins().iadd(x, y),
            Binary::Sub => self.ins().isub(x, y),
            Binary::Mul if self.lanes > 1 && bits == 8 => self.product_of_bytes(x, y),
            Binary::Mul => self.ins().imul(x, y),
            Binary::Div | Binary::Mod => self.division(op, x, y, signed, known),
            Binary::Min | Binary::Max => self.extreme_integer(op, x, y),
            Binary::BitAnd => self.ins().band(x, y),
            Binary::BitOr => self.ins().bor(x, y),
            Binary::BitXor => self.ins().bxor(x, y),
            _ => match known {
                Some(distance) => self.shift_by(op, x, distance, (bits, signed)),
                None => self.shift(op, x, y, (bits, signed)),
            },
        }
    }

    fn extreme_integer(&mut self, op: Binary, x: Value, y: Value) -> Value {
        let first = if op == Binary::Min { Binary::Lt } else { Binary::Gt };
        let condition = self.compare(first, x, y);
        self.select(condition, x, y)
    }

    /// There is no product of vectors of bytes: those of even and of odd places are made in pairs of bytes.
    fn product_of_bytes(&mut self, x: Value, y: Value) -> Value {
        let (bytes, pairs) = (self.number(), types::I16X8);
        let (x, y) = (self.cast(pairs, x), self.cast(pairs, y));
        let low = self.integers(pairs, 0xff);
        let even = self.ins().imul(x, y);
        let even = self.ins().band(even, low);
        let (x, y) = (self.ins().ushr_imm(x, 8), self.ins().ushr_imm(y, 8));
        let odd = self.ins().imul(x, y);
        let odd = self.ins().ishl_imm(odd, 8);
        let both = self.ins().bor(even, odd);
        self.cast(bytes, both)
    }

    /// A quotient toward zero, or a remainder that is not negative. The processor's division traps on zero, and where the
    /// quotient does not fit, at the least number by -1; and Cranelift 0.125 has the least number by itself wrong where it
    /// knows the divisor. These are divided by 1 instead and mended. There is no division of less than 32 bits.
    fn division(&mut self, op: Binary, x: Value, y: Value, signed: bool, known: Option<u64>) -> Value {
        let own = self.number();
        let wide = if own.bits() < 32 { types::I32 } else { own };
        let (x, y) = (self.extended(x, wide != own, signed), self.extended(y, wide != own, signed));
        let minus_one = u64::MAX >> (64 - own.bits());
        let is_plain = |divisor: u64| divisor != 0 && divisor != minus_one && divisor != (minus_one >> 1) + 1;
        // Nothing stands between Cranelift and a known divisor, so that it makes a product of the division.
        let result = if known.is_some_and(is_plain) {
            self.plain_division(op, x, y, signed)
        } else if signed {
            self.mended_division(op, x, y)
        } else {
            let (zero, one) = (self.integers(wide, 0), self.integers(wide, 1));
            let by_zero = self.ins().icmp(IntCC::Equal, y, zero);
            let divisor = self.ins().select(by_zero, one, y);
            let result = self.plain_division(op, x, divisor, false);
            self.ins().select(by_zero, zero, result)
        };
        if wide == own { result } else { self.ins().ireduce(own, result) }
    }

    fn mended_division(&mut self, op: Binary, x: Value, y: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(x);
        let most = u64::MAX >> (65 - ty.bits());
        let [zero, one, least] = [0, 1, most + 1].map(|value| self.integers(ty, value));
        let by_zero = self.ins().icmp(IntCC::Equal, y, zero);
        let by_minus_one = self.ins().icmp_imm(IntCC::Equal, y, -1);
        let by_least = self.ins().icmp(IntCC::Equal, y, least);
        let special = self.ins().bor(by_zero, by_minus_one);
        let special = self.ins().bor(special, by_least);
        let divisor = self.ins().select(special, one, y);
        let result = self.plain_division(op, x, divisor, true);
        if op != Binary::Div {
            // Divided by 1 instead of 0 or -1 the remainder is 0, which is right for both.
            let most = self.integers(ty, most);
            let by_least_left = self.ins().band(x, most);
            return self.ins().select(by_least, by_least_left, result);
        }
        let negated = self.ins().ineg(x);
        let result = self.ins().select(by_minus_one, negated, result);
        let itself = self.ins().icmp(IntCC::Equal, x, least);
        let once = self.ins().select(itself, one, zero);
        let result = self.ins().select(by_least, once, result);
        self.ins().select(by_zero, zero, result)
    }

    /// A division by what needs no mending.
    fn plain_division(&mut self, op: Binary, x: Value, divisor: Value, signed: bool) -> Value {
        match (op, signed) {
            (Binary::Div, true) => self.ins().sdiv(x, divisor),
            (Binary::Div, false) => self.ins().udiv(x, divisor),
            (_, false) => self.ins().urem(x, divisor),
            (_, true) => {
                let remainder = self.ins().srem(x, divisor);
                let size = self.ins().iabs(divisor);
                let raised = self.ins().iadd(remainder, size);
                let negative = self.ins().icmp_imm(IntCC::SignedLessThan, remainder, 0);
                self.ins().select(negative, raised, remainder)
            }
        }
    }

    fn extended(&mut self, x: Value, narrow: bool, signed: bool) -> Value {
        match (narrow, signed) {
            (false, _) => x,
            (true, true) => self.ins().sextend(types::I32, x),
            (true, false) => self.ins().uextend(types::I32, x),
        }
    }

    fn shift_by(&mut self, op: Binary, x: Value, distance: u64, (bits, signed): (u32, bool)) -> Value {
        let within = distance < u64::from(bits);
        let by = if within { distance } else { u64::from(bits) - 1 };
        let by = self.ins().iconst(types::I32, by as i64);
        let ty = self.number();
        match op {
            Binary::Shr if signed => self.ins().sshr(x, by),
            _ if !within => self.integers(ty, 0),
            Binary::Shr => self.ins().ushr(x, by),
            _ => self.ins().ishl(x, by),
        }
    }

    /// A negative distance, read as an unsigned one, is beyond the width.
    fn shift(&mut self, op: Binary, x: Value, by: Value, (bits, signed): (u32, bool)) -> Value {
        let ty = self.number();
        let within = self.ins().icmp_imm(IntCC::UnsignedLessThan, by, i64::from(bits));
        if op == Binary::Shr && signed {
            let most = self.integers(ty, u64::from(bits) - 1);
            let by = self.ins().select(within, by, most);
            return self.ins().sshr(x, by);
        }
        let shifted = if op == Binary::Shr { self.ins().ushr(x, by) } else { self.ins().ishl(x, by) };
        let zero = self.integers(ty, 0);
        self.ins().select(within, shifted, zero)
    }
}
