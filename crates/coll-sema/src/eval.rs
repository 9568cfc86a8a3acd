//! Evaluation of resolved expressions: 64-bit, checked, and bounded by fuel, so that it always ends.

use crate::codes;
use crate::lists::listed;
use crate::resolved::{Comprehension, Expr, ExprKind, Function, Range};
use coll_base::{Diagnostic, Span, math};
use coll_syntax::ast::BinaryOp;

/// How many loop rounds and function calls one instantiation may take.
pub(crate) const FUEL: u64 = 100_000_000;

/// Evaluates, and counts the work.
pub(crate) struct Machine<'m> {
    functions: &'m [Function],
    fuel: u64,
}

/// The variables in force.
#[derive(Clone, Copy)]
pub(crate) struct Values<'v> {
    pub(crate) globals: &'v [i64],
    pub(crate) locals: &'v [i64],
}

/// Why an expression has no value. Boxed, so that the way without faults stays narrow.
pub(crate) type Fault = Box<Diagnostic>;

impl<'m> Machine<'m> {
    pub(crate) fn new(functions: &'m [Function]) -> Machine<'m> {
        Machine::with_fuel(functions, FUEL)
    }

    /// One that gives up after fewer rounds.
    pub(crate) fn with_fuel(functions: &'m [Function], fuel: u64) -> Machine<'m> {
        Machine { functions, fuel }
    }

    /// Pays for one round of a loop.
    pub(crate) fn spend(&mut self, span: Span) -> Result<(), Fault> {
        match self.fuel.checked_sub(1) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => Err(Box::new(
                Diagnostic::new(
                    codes::TOO_LARGE,
                    span,
                    format!("more than {FUEL} rounds of loops and calls"),
                )
                .label("still going here")
                .help("bound the loop by the values that it needs, rather than by a `where`"),
            )),
        }
    }

    /// The value of an expression; truth values are 0 and 1.
    pub(crate) fn eval(&mut self, expr: &Expr, values: Values<'_>) -> Result<i64, Fault> {
        match &expr.kind {
            ExprKind::Int(value) => Ok(*value),
            ExprKind::Global(slot) => Ok(values.globals[*slot as usize]),
            ExprKind::Local(slot) => Ok(values.locals[*slot as usize]),
            ExprKind::Neg(x) => {
                let x = self.eval(x, values)?;
                x.checked_neg().ok_or_else(|| no_value(expr.span, format!("-({x}) does not fit 64 bits")))
            }
            ExprKind::Not(x) => Ok(1 - self.eval(x, values)?),
            ExprKind::Binary(op, both) => self.binary(expr.span, *op, both, values),
            ExprKind::If(all) => {
                let [condition, yes, no] = &**all;
                let chosen = if self.eval(condition, values)? != 0 { yes } else { no };
                self.eval(chosen, values)
            }
            ExprKind::Call(function, arguments) => {
                self.spend(expr.span)?;
                let locals = self.list(arguments, values)?;
                let functions = self.functions;
                self.eval(
                    &functions[*function as usize].body,
                    Values { globals: values.globals, locals: &locals },
                )
            }
            ExprKind::Builtin(builtin, arguments) => {
                let arguments = self.list(arguments, values)?;
                builtin.apply(&arguments).ok_or_else(|| {
                    let shown = arguments.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                    let message = format!("{}({shown}) has no value: {}", builtin.name(), builtin.domain());
                    no_value(expr.span, message)
                })
            }
            ExprKind::OfList(function, slot, x) => {
                let x = self.eval(x, values)?;
                let list = listed(values.globals, *slot);
                function.apply(list, x).ok_or_else(|| {
                    let shown = list.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                    let name = function.name();
                    let message = format!("{name}(list({shown}), {x}) has no value: {}", function.domain());
                    no_value(expr.span, message)
                })
            }
        }
    }

    /// Whether a condition holds; none always does.
    pub(crate) fn holds(&mut self, condition: &Option<Expr>, values: Values<'_>) -> Result<bool, Fault> {
        match condition {
            Some(condition) => Ok(self.eval(condition, values)? != 0),
            None => Ok(true),
        }
    }

    /// The first value of a range, and the one after its last.
    pub(crate) fn bounds(&mut self, range: &Range, values: Values<'_>) -> Result<(i64, i64), Fault> {
        let low = self.eval(&range.low, values)?;
        let high = self.eval(&range.high, values)?;
        let end = if range.inclusive { high.checked_add(1) } else { Some(high) };
        let end =
            end.ok_or_else(|| no_value(range.span, format!("{low}..={high} has no end that fits 64 bits")))?;
        Ok((low, end))
    }

    /// The values of `e for k in a..b where c`, in order. `locals` lends k its slot.
    pub(crate) fn comprehension(
        &mut self,
        all: &Comprehension,
        globals: &[i64],
        locals: &mut [i64],
    ) -> Result<Vec<i64>, Fault> {
        let (low, end) = self.bounds(&all.range, Values { globals, locals })?;
        let mut found = Vec::new();
        for k in low..end {
            self.spend(all.range.span)?;
            locals[all.slot as usize] = k;
            let values = Values { globals, locals };
            if self.holds(&all.condition, values)? {
                found.push(self.eval(&all.value, values)?);
            }
        }
        Ok(found)
    }

    fn list(&mut self, arguments: &[Expr], values: Values<'_>) -> Result<Vec<i64>, Fault> {
        arguments.iter().map(|argument| self.eval(argument, values)).collect()
    }

    fn binary(
        &mut self,
        span: Span,
        op: BinaryOp,
        both: &[Expr; 2],
        values: Values<'_>,
    ) -> Result<i64, Fault> {
        let a = self.eval(&both[0], values)?;
        match op {
            BinaryOp::And if a == 0 => return Ok(0),
            BinaryOp::Or if a != 0 => return Ok(1),
            _ => {}
        }
        let b = self.eval(&both[1], values)?;
        apply(op, a, b).ok_or_else(|| no_value(span, without_result(op, a, b)))
    }
}

/// An operator's result, where it has one.
pub(crate) fn apply(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    let shift = || u32::try_from(b).ok().filter(|&b| b < 64);
    match op {
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div => math::floor_div(a, b),
        BinaryOp::Mod => math::modulo(a, b),
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        // A shift that loses bits is an overflow like any other.
        BinaryOp::Shl => shift().and_then(|b| a.checked_shl(b).filter(|shifted| shifted >> b == a)),
        BinaryOp::Shr => shift().map(|b| a >> b),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::BitXor => Some(a ^ b),
        BinaryOp::BitOr => Some(a | b),
        BinaryOp::Eq => Some(i64::from(a == b)),
        BinaryOp::Ne => Some(i64::from(a != b)),
        BinaryOp::Lt => Some(i64::from(a < b)),
        BinaryOp::Le => Some(i64::from(a <= b)),
        BinaryOp::Gt => Some(i64::from(a > b)),
        BinaryOp::Ge => Some(i64::from(a >= b)),
        BinaryOp::And => Some(i64::from(a != 0 && b != 0)),
        BinaryOp::Or => Some(i64::from(a != 0 || b != 0)),
    }
}

fn without_result(op: BinaryOp, a: i64, b: i64) -> String {
    let sum = format!("{a} {} {b}", op.symbol());
    match op {
        BinaryOp::Div | BinaryOp::Mod if b == 0 => format!("{sum} divides by zero"),
        BinaryOp::Shl | BinaryOp::Shr if !(0..64).contains(&b) => {
            format!("{sum} shifts by {b}, not by 0..64")
        }
        _ => format!("{sum} does not fit 64 bits"),
    }
}

fn no_value(span: Span, message: String) -> Fault {
    Box::new(Diagnostic::new(codes::ARITHMETIC, span, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(op: BinaryOp, a: i64, b: i64, expected: Result<i64, &str>) {
        let leaf = |value| Expr { kind: ExprKind::Int(value), span: Span::default() };
        let expr = Expr { kind: ExprKind::Binary(op, Box::new([leaf(a), leaf(b)])), span: Span::default() };
        let value = Machine::new(&[]).eval(&expr, Values { globals: &[], locals: &[] });
        assert_eq!(value.map_err(|fault| fault.message), expected.map_err(str::to_string));
    }

    #[test]
    fn arithmetic_is_checked_and_division_floors() {
        check(BinaryOp::Div, -7, 2, Ok(-4));
        check(BinaryOp::Mod, -1, 4, Ok(3));
        check(BinaryOp::Shl, 1, 62, Ok(1 << 62));
        check(BinaryOp::Shl, 1, 63, Err("1 << 63 does not fit 64 bits"));
        check(BinaryOp::Shr, -8, 1, Ok(-4));
        check(BinaryOp::Shr, 1, 64, Err("1 >> 64 shifts by 64, not by 0..64"));
        check(BinaryOp::Mod, 1, 0, Err("1 % 0 divides by zero"));
        check(BinaryOp::Add, i64::MAX, 1, Err("9223372036854775807 + 1 does not fit 64 bits"));
    }

    #[test]
    fn the_right_side_of_and_is_not_looked_at_in_vain() {
        let leaf = |value| Expr { kind: ExprKind::Int(value), span: Span::default() };
        let pair = |op, a, b| Expr { kind: ExprKind::Binary(op, Box::new([a, b])), span: Span::default() };
        let zero = pair(BinaryOp::Div, leaf(1), leaf(0));
        let expr = pair(BinaryOp::And, leaf(0), zero);
        let value = Machine::new(&[]).eval(&expr, Values { globals: &[], locals: &[] });
        assert_eq!(value.ok(), Some(0));
    }
}
