//! An operator's expression as a list of instructions for a stack of blocks, for one number type.
//!
//! What the type cannot do, and what is not well formed, is found here, so that running a program cannot fail.

use crate::expr::{Binary, Expr, Unary};
use crate::number::{BinaryFn, Number, UnaryFn};

/// The deepest expression, so that neither compiling nor running one can exhaust a stack.
const DEPTH_MAX: usize = 64;

/// One instruction. Numbers and truth values have a stack each; every entry is a block of elements.
pub(crate) enum Instruction<T> {
    /// Pushes operand 0, the left one or the input, or operand 1, the right one.
    Operand(usize),
    /// Pushes a constant.
    Number(T),
    /// Changes the top number.
    Unary(UnaryFn<T>),
    /// Takes a number and changes the one below.
    Binary(BinaryFn<T>),
    /// Takes two numbers, pushes a truth value.
    Compare(CompareFn<T>),
    /// Pushes a truth value.
    Truth(bool),
    /// Changes the top truth value.
    Not,
    /// Takes a truth value and changes the one below.
    Logic(fn(bool, bool) -> bool),
    /// Takes a truth value and a number, and changes the number below to that unless the truth value holds.
    Select,
}

/// Compares two blocks.
pub(crate) type CompareFn<T> = fn(&[T], &[T], &mut [bool]);

/// Instructions that leave one number, and how deep they stack.
pub(crate) struct Program<T> {
    pub(crate) instructions: Vec<Instruction<T>>,
    pub(crate) numbers_max: usize,
    pub(crate) truths_max: usize,
}

/// What an expression is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// `Left` and `Right`.
    Two,
    /// `Input`.
    One,
}

/// An operator's parameters.
#[derive(Clone, Copy)]
pub(crate) struct Params<'a> {
    pub(crate) names: &'a [String],
    pub(crate) values: &'a [f64],
}

/// Compiles an expression whose value is a number, or says why the type cannot have it.
pub(crate) fn compile<T: Number>(
    expr: &Expr,
    operands: Operands,
    params: Params<'_>,
) -> Result<Program<T>, String> {
    let program = Program { instructions: Vec::new(), numbers_max: 0, truths_max: 0 };
    let mut compiler = Compiler { program, operands, params, numbers: 0, truths: 0 };
    match compiler.expr(expr, 0)? {
        Kind::Number => Ok(compiler.program),
        Kind::Truth => Err("its value is a truth value, where a number is due".into()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Number,
    Truth,
}

struct Compiler<'a, T> {
    program: Program<T>,
    operands: Operands,
    params: Params<'a>,
    numbers: usize,
    truths: usize,
}

impl<T: Number> Compiler<'_, T> {
    fn expr(&mut self, expr: &Expr, depth: usize) -> Result<Kind, String> {
        if depth > DEPTH_MAX {
            return Err(format!("its expression is nested more than {DEPTH_MAX} deep"));
        }
        let depth = depth + 1;
        match expr {
            Expr::Left => self.operand(0, Operands::Two, "the left operand"),
            Expr::Right => self.operand(1, Operands::Two, "the right operand"),
            Expr::Input => self.operand(0, Operands::One, "the input"),
            Expr::Param(index) => self.parameter(*index as usize),
            Expr::Int(value) => match T::from_int(*value) {
                Some(number) => Ok(self.push_number(Instruction::Number(number))),
                None => Err(format!("the constant {value} does not fit")),
            },
            // A constant with a point speaks of floats, even where its value is whole.
            Expr::Float(value) => match T::from_float(*value).filter(|_| T::unary(Unary::Sqrt).is_some()) {
                Some(number) => Ok(self.push_number(Instruction::Number(number))),
                None => Err(format!("the constant {value:?} needs a float type")),
            },
            Expr::Bool(value) => Ok(self.push_truth(Instruction::Truth(*value))),
            Expr::Unary(op, x) => self.unary(*op, x, depth),
            Expr::Binary(op, x, y) => self.binary(*op, x, y, depth),
            Expr::If(condition, x, y) => {
                self.due(condition, Kind::Truth, "the condition of an if", depth)?;
                self.due(x, Kind::Number, "a branch of an if", depth)?;
                self.due(y, Kind::Number, "a branch of an if", depth)?;
                self.truths -= 1;
                self.numbers -= 1;
                self.program.instructions.push(Instruction::Select);
                Ok(Kind::Number)
            }
        }
    }

    fn unary(&mut self, op: Unary, x: &Expr, depth: usize) -> Result<Kind, String> {
        if op == Unary::Not {
            self.due(x, Kind::Truth, "what `not` is told", depth)?;
            self.program.instructions.push(Instruction::Not);
            return Ok(Kind::Truth);
        }
        self.due(x, Kind::Number, unary_name(op), depth)?;
        let function = T::unary(op).ok_or_else(|| format!("{} needs a float type", unary_name(op)))?;
        self.program.instructions.push(Instruction::Unary(function));
        Ok(Kind::Number)
    }

    fn binary(&mut self, op: Binary, x: &Expr, y: &Expr, depth: usize) -> Result<Kind, String> {
        if let Some(logic) = logic(op) {
            self.due(x, Kind::Truth, binary_name(op), depth)?;
            self.due(y, Kind::Truth, binary_name(op), depth)?;
            self.truths -= 1;
            self.program.instructions.push(Instruction::Logic(logic));
            return Ok(Kind::Truth);
        }
        self.due(x, Kind::Number, binary_name(op), depth)?;
        self.due(y, Kind::Number, binary_name(op), depth)?;
        if let Some(compare) = compare::<T>(op) {
            self.numbers -= 2;
            return Ok(self.push_truth(Instruction::Compare(compare)));
        }
        let function = T::binary(op).ok_or_else(|| format!("{} needs an integer type", binary_name(op)))?;
        self.numbers -= 1;
        self.program.instructions.push(Instruction::Binary(function));
        Ok(Kind::Number)
    }

    fn due(&mut self, expr: &Expr, kind: Kind, place: &str, depth: usize) -> Result<(), String> {
        let found = self.expr(expr, depth)?;
        let (due, got) = match kind {
            Kind::Number => ("number", "truth value"),
            Kind::Truth => ("truth value", "number"),
        };
        if found == kind { Ok(()) } else { Err(format!("{place} is a {got}, where a {due} is due")) }
    }

    fn operand(&mut self, index: usize, of: Operands, name: &str) -> Result<Kind, String> {
        if self.operands != of {
            return Err(format!("{name} has no meaning in this part of an operator"));
        }
        Ok(self.push_number(Instruction::Operand(index)))
    }

    fn parameter(&mut self, index: usize) -> Result<Kind, String> {
        let (Some(name), Some(&value)) = (self.params.names.get(index), self.params.values.get(index)) else {
            return Err(format!("it has no parameter {index}"));
        };
        let number = T::from_float(value);
        let number =
            number.ok_or_else(|| format!("its parameter {name} = {value} is no value of the type"))?;
        Ok(self.push_number(Instruction::Number(number)))
    }

    fn push_number(&mut self, instruction: Instruction<T>) -> Kind {
        self.numbers += 1;
        self.program.numbers_max = self.program.numbers_max.max(self.numbers);
        self.program.instructions.push(instruction);
        Kind::Number
    }

    fn push_truth(&mut self, instruction: Instruction<T>) -> Kind {
        self.truths += 1;
        self.program.truths_max = self.program.truths_max.max(self.truths);
        self.program.instructions.push(instruction);
        Kind::Truth
    }
}

fn logic(op: Binary) -> Option<fn(bool, bool) -> bool> {
    match op {
        Binary::And => Some(|x, y| x & y),
        Binary::Or => Some(|x, y| x | y),
        _ => None,
    }
}

fn compare<T: PartialOrd>(op: Binary) -> Option<CompareFn<T>> {
    match op {
        Binary::Eq => Some(|xs, ys, to| compare_each(xs, ys, to, |x, y| x == y)),
        Binary::Ne => Some(|xs, ys, to| compare_each(xs, ys, to, |x, y| x != y)),
        Binary::Lt => Some(|xs, ys, to| compare_each(xs, ys, to, |x, y| x < y)),
        Binary::Le => Some(|xs, ys, to| compare_each(xs, ys, to, |x, y| x <= y)),
        Binary::Gt => Some(|xs, ys, to| compare_each(xs, ys, to, |x, y| x > y)),
        Binary::Ge => Some(|xs, ys, to| compare_each(xs, ys, to, |x, y| x >= y)),
        _ => None,
    }
}

fn compare_each<T>(xs: &[T], ys: &[T], to: &mut [bool], holds: impl Fn(&T, &T) -> bool) {
    for ((to, x), y) in to.iter_mut().zip(xs).zip(ys) {
        *to = holds(x, y);
    }
}

fn unary_name(op: Unary) -> &'static str {
    match op {
        Unary::Neg => "`-x`",
        Unary::Abs => "`abs`",
        Unary::Sqrt => "`sqrt`",
        Unary::Not => "`not`",
    }
}

fn binary_name(op: Binary) -> &'static str {
    match op {
        Binary::Add => "`+`",
        Binary::Sub => "`-`",
        Binary::Mul => "`*`",
        Binary::Div => "`/`",
        Binary::Mod => "`%`",
        Binary::Min => "`min`",
        Binary::Max => "`max`",
        Binary::BitAnd => "`&`",
        Binary::BitOr => "`|`",
        Binary::BitXor => "`^`",
        Binary::Shl => "`<<`",
        Binary::Shr => "`>>`",
        Binary::Eq => "`==`",
        Binary::Ne => "`!=`",
        Binary::Lt => "`<`",
        Binary::Le => "`<=`",
        Binary::Gt => "`>`",
        Binary::Ge => "`>=`",
        Binary::And => "`and`",
        Binary::Or => "`or`",
    }
}
