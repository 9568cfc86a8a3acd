//! Instructions for the nodes of an expression, for one number at a time or for a vector of them.
//!
//! The two differ in truth values: a comparison of single numbers gives 0 or 1 in a byte, one of vectors gives a mask
//! for each number. Choices are made by masks and conditional moves, never by jumps.

use crate::element::{Element, Number};
use crate::lower::{Body, Constant, Id, Node};
use coll_kernel::{Binary, Unary};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{ConstantData, Endianness, FuncRef, InstBuilder, MemFlags, Type, Value};
use cranelift_codegen::ir::{immediates, types};
use cranelift_frontend::FunctionBuilder;

/// Writes instructions for numbers of one type.
pub(crate) struct Emitter<'a, 'f> {
    pub(crate) builder: &'a mut FunctionBuilder<'f>,
    pub(crate) element: Element,
    /// Numbers at a time: 1, or as many as fill 16 bytes.
    pub(crate) lanes: u32,
    /// What is stored was loaded so, but for the sign: narrow floats need not be rounded.
    pub(crate) exact: bool,
    /// The function for remainders of floats, if it may be needed.
    pub(crate) remainder: Option<FuncRef>,
}

impl<'f> Emitter<'_, 'f> {
    /// The value of an expression, made of its operands.
    pub(crate) fn body(&mut self, body: &Body, operands: &[Value]) -> Value {
        let mut values: Vec<Value> = Vec::with_capacity(body.nodes.len());
        for node in &body.nodes {
            let value = self.node(*node, &body.nodes, &values, operands);
            values.push(value);
        }
        *values.last().expect("invariant: an expression has a node")
    }

    fn node(&mut self, node: Node, nodes: &[Node], values: &[Value], operands: &[Value]) -> Value {
        match node {
            Node::Operand(index) => operands[index],
            Node::Number(constant) => self.constant(constant),
            Node::Truth(holds) => self.truth(holds),
            Node::Unary(op, x) => self.unary(op, values[x]),
            Node::Not(x) if self.lanes == 1 => self.ins().bxor_imm(values[x], 1),
            Node::Not(x) => self.ins().bnot(values[x]),
            Node::Arithmetic(op, x, y) => self.arithmetic(op, (values[x], values[y]), nodes, y),
            Node::Compare(op, x, y) => self.compare(op, values[x], values[y]),
            Node::And(x, y) => self.ins().band(values[x], values[y]),
            Node::Or(x, y) => self.ins().bor(values[x], values[y]),
            Node::Select(condition, x, y) => self.select(values[condition], values[x], values[y]),
        }
    }

    fn unary(&mut self, op: Unary, x: Value) -> Value {
        let number = self.element.number;
        match op {
            Unary::Neg if number.is_float() => self.ins().fneg(x),
            Unary::Neg => self.ins().ineg(x),
            Unary::Abs if number.is_float() => self.ins().fabs(x),
            Unary::Abs if matches!(number, Number::Int { signed: false, .. }) => x,
            Unary::Abs => self.ins().iabs(x),
            Unary::Sqrt => self.ins().sqrt(x),
            Unary::Not => x,
        }
    }

    fn arithmetic(&mut self, op: Binary, (x, y): (Value, Value), nodes: &[Node], y_id: Id) -> Value {
        match self.element.number {
            Number::F32 | Number::F64 => self.float(op, x, y),
            Number::Int { bits, signed } => {
                let known = match nodes[y_id] {
                    Node::Number(Constant::Int(value)) => Some(value),
                    _ => None,
                };
                self.integer(op, x, y, (bits, signed), known)
            }
        }
    }

    /// A truth value for two numbers.
    pub(crate) fn compare(&mut self, op: Binary, x: Value, y: Value) -> Value {
        match self.element.number {
            Number::F32 | Number::F64 => self.ins().fcmp(float_condition(op), x, y),
            Number::Int { signed, .. } => self.ins().icmp(integer_condition(op, signed), x, y),
        }
    }

    /// `x` where the condition holds, else `y`.
    pub(crate) fn select(&mut self, condition: Value, x: Value, y: Value) -> Value {
        if self.lanes == 1 {
            return self.ins().select(condition, x, y);
        }
        let number = self.number();
        let mask = if self.element.number.is_float() { self.cast(number, condition) } else { condition };
        self.ins().bitselect(mask, x, y)
    }

    /// A truth value as the bits of an integer as wide as a number: all or none.
    pub(crate) fn mask(&mut self, condition: Value) -> Value {
        let bits = self.bits();
        if self.lanes == 1 { self.ins().bmask(bits, condition) } else { condition }
    }

    fn truth(&mut self, holds: bool) -> Value {
        let (all, bits) = (if holds { u64::MAX } else { 0 }, self.bits());
        if self.lanes == 1 {
            self.ins().iconst(types::I8, i64::from(holds))
        } else {
            self.integers(bits, all)
        }
    }

    fn constant(&mut self, constant: Constant) -> Value {
        let number = self.number();
        match constant {
            Constant::Int(value) => self.integers(number, value),
            Constant::F32(value) if self.lanes == 1 => {
                self.ins().f32const(immediates::Ieee32::with_bits(value.to_bits()))
            }
            Constant::F32(value) => self.repeated(number, u64::from(value.to_bits())),
            Constant::F64(value) if self.lanes == 1 => {
                self.ins().f64const(immediates::Ieee64::with_bits(value.to_bits()))
            }
            Constant::F64(value) => self.repeated(number, value.to_bits()),
        }
    }

    /// The same integer in each lane of a type, or in the one that it is. Bits that it has no room for are left out.
    pub(crate) fn integers(&mut self, ty: Type, value: u64) -> Value {
        if ty.is_vector() {
            return self.repeated(ty, value);
        }
        let kept = value & (u64::MAX >> (64 - ty.bits()));
        self.ins().iconst(ty, kept as i64)
    }

    fn repeated(&mut self, ty: Type, bits: u64) -> Value {
        let lane = &bits.to_le_bytes()[..ty.lane_type().bytes() as usize];
        let bytes = lane.repeat(ty.lane_count() as usize);
        let constant = self.builder.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
        self.ins().vconst(ty, constant)
    }

    /// The same bits as another type.
    pub(crate) fn cast(&mut self, to: Type, x: Value) -> Value {
        self.ins().bitcast(to, MemFlags::new().with_endianness(Endianness::Little), x)
    }

    /// The type of numbers, one or a vector of them.
    pub(crate) fn number(&self) -> Type {
        self.widened(self.element.number.scalar())
    }

    /// The integer type as wide as [`Emitter::number`].
    pub(crate) fn bits(&self) -> Type {
        let scalar = self.element.number.scalar();
        self.widened(Type::int(scalar.bits() as u16).expect("invariant: numbers are as wide as integers"))
    }

    fn widened(&self, scalar: Type) -> Type {
        if self.lanes == 1 { scalar } else { scalar.by(self.lanes).expect("invariant: vectors are 16 bytes") }
    }

    pub(crate) fn ins(&mut self) -> cranelift_frontend::FuncInstBuilder<'_, 'f> {
        self.builder.ins()
    }
}

fn float_condition(op: Binary) -> FloatCC {
    match op {
        Binary::Eq => FloatCC::Equal,
        Binary::Ne => FloatCC::NotEqual,
        Binary::Lt => FloatCC::LessThan,
        Binary::Le => FloatCC::LessThanOrEqual,
        Binary::Gt => FloatCC::GreaterThan,
        _ => FloatCC::GreaterThanOrEqual,
    }
}

fn integer_condition(op: Binary, signed: bool) -> IntCC {
    let condition = match op {
        Binary::Eq => IntCC::Equal,
        Binary::Ne => IntCC::NotEqual,
        Binary::Lt => IntCC::SignedLessThan,
        Binary::Le => IntCC::SignedLessThanOrEqual,
        Binary::Gt => IntCC::SignedGreaterThan,
        _ => IntCC::SignedGreaterThanOrEqual,
    };
    if signed { condition } else { condition.unsigned() }
}
