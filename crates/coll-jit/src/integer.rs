//! Arithmetic of integers: it wraps, dividing by zero gives zero, and a shift beyond the width leaves only the sign.
//! What it gives is written down in `coll-kernel`'s `number.rs`; this is the same in instructions.

use crate::emit::Emitter;
use coll_kernel::Binary;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

impl Emitter<'_, '_> {
    /// Two integers to one. `distance` is the second, if it is known.
    pub(crate) fn integer(
        &mut self,
        op: Binary,
        x: Value,
        y: Value,
        (bits, signed): (u32, bool),
        distance: Option<u64>,
    ) -> Value {
        match op {
            Binary::Add => self.ins().iadd(x, y),
            Binary::Sub => self.ins().isub(x, y),
            Binary::Mul if self.lanes > 1 && bits == 8 => self.product_of_bytes(x, y),
            Binary::Mul => self.ins().imul(x, y),
            Binary::Div | Binary::Mod => self.division(op, x, y, signed),
            Binary::Min | Binary::Max => self.extreme_integer(op, x, y),
            Binary::BitAnd => self.ins().band(x, y),
            Binary::BitOr => self.ins().bor(x, y),
            Binary::BitXor => self.ins().bxor(x, y),
            _ => match distance {
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
    /// quotient does not fit, at the least number by -1: both are divided by 1 instead and mended. It has no form for
    /// less than 32 bits.
    fn division(&mut self, op: Binary, x: Value, y: Value, signed: bool) -> Value {
        let own = self.number();
        let wide = if own.bits() < 32 { types::I32 } else { own };
        let (x, y) = (self.extended(x, wide != own, signed), self.extended(y, wide != own, signed));
        let (zero, one) = (self.integers(wide, 0), self.integers(wide, 1));
        let by_zero = self.ins().icmp(IntCC::Equal, y, zero);
        let by_minus_one = match signed {
            true => self.ins().icmp_imm(IntCC::Equal, y, -1),
            false => self.ins().iconst(types::I8, 0),
        };
        let unsafe_divisor = self.ins().bor(by_zero, by_minus_one);
        let divisor = self.ins().select(unsafe_divisor, one, y);
        let result = if op == Binary::Div {
            let quotient = if signed { self.ins().sdiv(x, divisor) } else { self.ins().udiv(x, divisor) };
            let negated = self.ins().ineg(x);
            let quotient = self.ins().select(by_minus_one, negated, quotient);
            self.ins().select(by_zero, zero, quotient)
        } else if signed {
            // Divided by 1 instead of 0 or -1 the remainder is 0, which is right for both.
            let remainder = self.ins().srem(x, divisor);
            let size = self.ins().iabs(divisor);
            let raised = self.ins().iadd(remainder, size);
            let negative = self.ins().icmp(IntCC::SignedLessThan, remainder, zero);
            self.ins().select(negative, raised, remainder)
        } else {
            self.ins().urem(x, divisor)
        };
        if wide == own { result } else { self.ins().ireduce(own, result) }
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
