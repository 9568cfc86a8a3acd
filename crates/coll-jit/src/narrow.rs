//! Half-precision floats to and from `f32`, rounding to nearest even: `coll-kernel`'s `narrow.rs`, where the method and
//! its source are told, step by step in instructions. Values are whole numbers as wide as an `f32`, one or four of them,
//! with the narrow float in their lower half.

use crate::element::Storage;
use crate::emit::Emitter;
use coll_kernel::Binary;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

impl Emitter<'_, '_> {
    /// The `f32` of a narrow float.
    pub(crate) fn widen(&mut self, storage: Storage, narrow: Value) -> Value {
        let number = self.number();
        let bits = match storage {
            Storage::Half => self.bits_of_half(narrow),
            Storage::Brain | Storage::Own => self.ins().ishl_imm(narrow, 16),
        };
        self.cast(number, bits)
    }

    /// The narrow float next to an `f32`.
    pub(crate) fn narrow(&mut self, storage: Storage, wide: Value) -> Value {
        match storage {
            Storage::Half => self.half(wide),
            Storage::Brain | Storage::Own if self.exact => {
                let ty = self.bits();
                let bits = self.cast(ty, wide);
                self.ins().ushr_imm(bits, 16)
            }
            Storage::Brain | Storage::Own => self.brain(wide),
        }
    }

    fn bits_of_half(&mut self, half: Value) -> Value {
        let sign = self.and(half, 0x8000);
        let sign = self.ins().ishl_imm(sign, 16);
        let magnitude = self.and(half, 0x7fff);
        let magnitude = self.ins().ishl_imm(magnitude, 13);
        let scaled = self.times(magnitude, (127 + 112) << 23);
        let unbounded = self.masked(IntCC::SignedGreaterThanOrEqual, magnitude, 31 << 23);
        let unbounded = self.and(unbounded, 0x7f80_0000);
        let finite = self.ins().bor(sign, scaled);
        self.ins().bor(finite, unbounded)
    }

    fn half(&mut self, wide: Value) -> Value {
        let ty = self.bits();
        let bits = self.cast(ty, wide);
        let magnitude = self.and(bits, 0x7fff_ffff);
        let scaled = self.times(magnitude, (127 + 112) << 23);
        let scaled = self.times(scaled, (127 - 110) << 23);
        let exponent = self.and(magnitude, 0x7f80_0000);
        let least = self.integers(ty, (127 - 14) << 23);
        let exponent = self.ins().smax(exponent, least);
        let rounder = self.plus(exponent, 15 << 23);
        let rounded = self.sum(rounder, scaled);
        let exponent = self.ins().ushr_imm(rounded, 13);
        let exponent = self.and(exponent, 0x7c00);
        let mantissa = self.and(rounded, 0xfff);
        let half = self.ins().iadd(exponent, mantissa);
        let nan = self.integers(ty, 0x7e00);
        let chosen = self.unless_nan(magnitude, nan, half);
        let sign = self.ins().ushr_imm(bits, 16);
        let sign = self.and(sign, 0x8000);
        self.ins().bor(chosen, sign)
    }

    fn brain(&mut self, wide: Value) -> Value {
        let ty = self.bits();
        let bits = self.cast(ty, wide);
        let magnitude = self.and(bits, 0x7fff_ffff);
        let upper = self.ins().ushr_imm(bits, 16);
        let odd = self.and(upper, 1);
        let rounder = self.plus(odd, 0x7fff);
        let rounded = self.ins().iadd(bits, rounder);
        let rounded = self.ins().ushr_imm(rounded, 16);
        let quiet = self.integers(ty, 0x40);
        let nan = self.ins().bor(upper, quiet);
        self.unless_nan(magnitude, nan, rounded)
    }

    /// `nan` where the magnitude's bits are those of a NaN, else `value`.
    fn unless_nan(&mut self, magnitude: Value, nan: Value, value: Value) -> Value {
        let mask = self.masked(IntCC::SignedGreaterThan, magnitude, 0x7f80_0000);
        self.ins().bitselect(mask, nan, value)
    }

    /// All bits where the comparison with a constant holds.
    fn masked(&mut self, condition: IntCC, x: Value, constant: u64) -> Value {
        let ty = self.bits();
        let constant = self.integers(ty, constant);
        let truth = self.ins().icmp(condition, x, constant);
        self.mask(truth)
    }

    fn and(&mut self, x: Value, constant: u64) -> Value {
        let ty = self.bits();
        let constant = self.integers(ty, constant);
        self.ins().band(x, constant)
    }

    fn plus(&mut self, x: Value, constant: u64) -> Value {
        let ty = self.bits();
        let constant = self.integers(ty, constant);
        self.ins().iadd(x, constant)
    }

    /// The product of two floats whose bits are given, as bits.
    fn times(&mut self, x: Value, constant: u64) -> Value {
        let ty = self.bits();
        let constant = self.integers(ty, constant);
        self.as_floats(Binary::Mul, x, constant)
    }

    fn sum(&mut self, x: Value, y: Value) -> Value {
        self.as_floats(Binary::Add, x, y)
    }

    fn as_floats(&mut self, op: Binary, x: Value, y: Value) -> Value {
        let (number, bits) = (self.number(), self.bits());
        let (x, y) = (self.cast(number, x), self.cast(number, y));
        let result = self.float(op, x, y);
        self.cast(bits, result)
    }
}
