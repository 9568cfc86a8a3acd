//! From an operator's expression to a flat list of typed nodes. All that can be wrong with an expression is found here,
//! so that emitting instructions cannot fail.

use crate::JitError;
use crate::element::{Element, Number};
use coll_kernel::{Binary, Expr, Unary};

/// The most nodes of an expression: more would take longer to compile than an operator is worth.
pub const NODES_MAX: usize = 400;
/// The deepest expression, as the interpreter has it.
const DEPTH_MAX: usize = 64;

/// A place in the list.
pub(crate) type Id = usize;

/// A number that is known, in the type it is computed in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Constant {
    /// The low bits, for integers narrower than 64 bits.
    Int(u64),
    F32(f32),
    F64(f64),
}

/// One node. It speaks of earlier ones only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Node {
    /// Operand 0, the left one or the input, or operand 1, the right one.
    Operand(usize),
    Number(Constant),
    Truth(bool),
    Unary(Unary, Id),
    Not(Id),
    /// Two numbers to a number.
    Arithmetic(Binary, Id, Id),
    /// Two numbers to a truth value.
    Compare(Binary, Id, Id),
    And(Id, Id),
    Or(Id, Id),
    /// A truth value and two numbers to one of them.
    Select(Id, Id, Id),
}

/// An expression: the value of its last node.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) nodes: Vec<Node>,
}

/// What an expression is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    /// `Left` and `Right`.
    Two,
    /// `Input`.
    One,
}

impl Body {
    /// Whether vectors of numbers can compute it: there are no vector instructions for remainders, for divisions of
    /// integers, and for shifts by distances that are not the same everywhere.
    pub(crate) fn is_for_vectors(&self, number: Number) -> bool {
        self.nodes.iter().all(|node| match *node {
            Node::Arithmetic(Binary::Mod, ..) => false,
            Node::Arithmetic(Binary::Div, ..) => number.is_float(),
            Node::Arithmetic(Binary::Shl | Binary::Shr, _, by) => matches!(self.nodes[by], Node::Number(_)),
            _ => true,
        })
    }

    /// Whether its value is an operand, or that with another sign: nothing is rounded then.
    pub(crate) fn chooses(&self) -> bool {
        let chosen = |node: &Node| match *node {
            Node::Unary(op, _) => op != Unary::Sqrt,
            Node::Arithmetic(op, ..) => matches!(op, Binary::Min | Binary::Max),
            Node::Number(_) => false,
            _ => true,
        };
        self.nodes.iter().all(chosen)
    }
}

/// Checks an expression whose value is a number, and lists it.
pub(crate) fn lower(
    expr: &Expr,
    operands: Operands,
    element: Element,
    names: &[String],
    values: &[f64],
) -> Result<Body, JitError> {
    if names.len() != values.len() {
        let (due, found) = (names.len(), values.len());
        return Err(wrong(format!("it has {due} parameters, and {found} values are given")));
    }
    let mut lowering = Lowering { nodes: Vec::new(), operands, number: element.number, values };
    lowering.number(expr, 0)?;
    Ok(Body { nodes: lowering.nodes })
}

struct Lowering<'a> {
    nodes: Vec<Node>,
    operands: Operands,
    number: Number,
    values: &'a [f64],
}

impl Lowering<'_> {
    fn number(&mut self, expr: &Expr, depth: usize) -> Result<Id, JitError> {
        let id = self.any(expr, depth)?;
        if self.is_truth(id) { Err(wrong("a truth value, where a number is due")) } else { Ok(id) }
    }

    fn truth(&mut self, expr: &Expr, depth: usize) -> Result<Id, JitError> {
        let id = self.any(expr, depth)?;
        if self.is_truth(id) { Ok(id) } else { Err(wrong("a number, where a truth value is due")) }
    }

    fn is_truth(&self, id: Id) -> bool {
        use Node::{And, Compare, Not, Or, Truth};
        matches!(self.nodes[id], Truth(_) | Not(_) | Compare(..) | And(..) | Or(..))
    }

    fn any(&mut self, expr: &Expr, depth: usize) -> Result<Id, JitError> {
        if depth > DEPTH_MAX {
            return Err(wrong(format!("it is nested more than {DEPTH_MAX} deep")));
        }
        let depth = depth + 1;
        let node = match expr {
            Expr::Left if self.operands == Operands::Two => Node::Operand(0),
            Expr::Right if self.operands == Operands::Two => Node::Operand(1),
            Expr::Input if self.operands == Operands::One => Node::Operand(0),
            Expr::Left | Expr::Right | Expr::Input => {
                return Err(wrong("an operand that this part of an operator does not have"));
            }
            Expr::Param(index) => {
                let value = self.values.get(*index as usize);
                let value = *value.ok_or_else(|| wrong(format!("it has no parameter {index}")))?;
                Node::Number(self.value(value)?)
            }
            Expr::Int(value) => Node::Number(self.whole(*value)?),
            Expr::Float(value) if self.number.is_float() => Node::Number(self.value(*value)?),
            Expr::Float(value) => return Err(wrong(format!("the constant {value:?} needs a float type"))),
            Expr::Bool(value) => Node::Truth(*value),
            Expr::Unary(Unary::Not, x) => Node::Not(self.truth(x, depth)?),
            Expr::Unary(Unary::Sqrt, _) if !self.number.is_float() => {
                return Err(wrong("`sqrt` needs a float type"));
            }
            Expr::Unary(op, x) => Node::Unary(*op, self.number(x, depth)?),
            Expr::Binary(op, x, y) => self.binary(*op, x, y, depth)?,
            Expr::If(condition, x, y) => {
                Node::Select(self.truth(condition, depth)?, self.number(x, depth)?, self.number(y, depth)?)
            }
        };
        if self.nodes.len() == NODES_MAX {
            return Err(JitError::Large { max: NODES_MAX });
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    fn binary(&mut self, op: Binary, x: &Expr, y: &Expr, depth: usize) -> Result<Node, JitError> {
        use Binary::{And, BitAnd, BitOr, BitXor, Eq, Ge, Gt, Le, Lt, Ne, Or, Shl, Shr};
        match op {
            And => return Ok(Node::And(self.truth(x, depth)?, self.truth(y, depth)?)),
            Or => return Ok(Node::Or(self.truth(x, depth)?, self.truth(y, depth)?)),
            BitAnd | BitOr | BitXor | Shl | Shr if self.number.is_float() => {
                return Err(wrong("a bit operation needs an integer type"));
            }
            _ => {}
        }
        let (x, y) = (self.number(x, depth)?, self.number(y, depth)?);
        Ok(match op {
            Eq | Ne | Lt | Le | Gt | Ge => Node::Compare(op, x, y),
            _ => Node::Arithmetic(op, x, y),
        })
    }

    fn whole(&self, value: i64) -> Result<Constant, JitError> {
        match self.number {
            Number::F32 => Ok(Constant::F32(value as f32)),
            Number::F64 => Ok(Constant::F64(value as f64)),
            Number::Int { bits, signed } => fitting(value.into(), bits, signed)
                .ok_or_else(|| wrong(format!("the constant {value} does not fit"))),
        }
    }

    /// The value of a parameter or of a constant with a point. Integers take whole ones.
    fn value(&self, value: f64) -> Result<Constant, JitError> {
        match self.number {
            Number::F32 => Ok(Constant::F32(value as f32)),
            Number::F64 => Ok(Constant::F64(value)),
            Number::Int { bits, signed } => {
                let whole = value as i128;
                let fits = if whole as f64 == value { fitting(whole, bits, signed) } else { None };
                fits.ok_or_else(|| wrong(format!("{value} is no value of the type")))
            }
        }
    }
}

fn fitting(value: i128, bits: u32, signed: bool) -> Option<Constant> {
    let (least, most) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    let mask = u64::MAX >> (64 - bits);
    (least <= value && value <= most).then_some(Constant::Int(value as u64 & mask))
}

fn wrong(reason: impl Into<String>) -> JitError {
    JitError::Expression { reason: reason.into() }
}
