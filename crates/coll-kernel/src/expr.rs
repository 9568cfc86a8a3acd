//! Operators as data: what a user's `operator` declaration says, checked and lowered by `coll-sema`, interpreted
//! here, and compiled to machine code elsewhere. Built-in operators do not go this way.

use serde::{Deserialize, Serialize};

/// A user's reduction operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserOperator {
    /// Its name.
    pub name: String,
    /// False if it was declared `ordered`.
    pub commutative: bool,
    /// Names of its parameters; [`Expr::Param`] counts them.
    pub params: Vec<String>,
    /// What it makes of [`Expr::Left`] and [`Expr::Right`]: a number.
    pub combine: Expr,
    /// What a rank puts in, made of [`Expr::Input`]: a number. None is the value as it is.
    pub given: Option<Expr>,
    /// What is made of the finished value, [`Expr::Input`]: a number. None is the value as it is.
    pub ensure: Option<Expr>,
}

/// An expression on elements. Well typed: numbers where numbers are due, truth values where those are. Integer
/// elements are computed in their own width and wrap; narrow floats in f32; constants take the element's type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// The left operand.
    Left,
    /// The right operand.
    Right,
    /// The value that `given` and `ensure` are told of.
    Input,
    /// A parameter.
    Param(u32),
    /// A whole number.
    Int(i64),
    /// A number with a point. An integer element type refuses the operator.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// `-x`, `abs(x)`, `sqrt(x)`, `not c`
    Unary(Unary, Box<Expr>),
    /// `x + y`, `min(x, y)`, `x < y`, `c and d`
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `if c { x } else { y }`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// Functions of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Abs,
    Sqrt,
    Not,
}

/// Functions of two arguments. `Div` of integers is toward zero, by zero gives zero; `Mod` is Euclidean, by zero
/// gives zero; `Min` and `Max` propagate NaN; bit operations and shifts are for integers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}
