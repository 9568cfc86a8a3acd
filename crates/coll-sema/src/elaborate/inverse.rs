//! Who sends to me? For one rank's part of a step, the values of the step's variable r for which some transfer may
//! begin or end at that rank, found without running the step for every r.
//!
//! Each end of a transfer is an expression in r. Its value is followed symbolically, as one of a few [`Form`]s that
//! can be turned round; both ways of a condition are taken, so what is found may be too many but never too few.
//! Where an expression has no such form there is no answer, and the step is run for every r.

use crate::builtin::Builtin;
use crate::eval::{Values, apply};
use crate::lists::listed;
use crate::resolved::{Expr, ExprKind, For, Function, StepStmt, Transfer};
use coll_base::math;
use coll_syntax::ast::BinaryOp;
use std::collections::HashMap;

/// The most rounds of loops inside a step that are followed one by one.
const ROUNDS_MAX: i64 = 4096;
/// The most forms that one expression may have.
const FORMS_MAX: usize = 8;
/// The deepest that functions are followed.
const DEPTH_MAX: u32 = 16;

/// What an expression may be, as a function of the step's variable r.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The same for every r.
    Constant(i64),
    /// `factor · r + offset`, where the factor is not 0.
    Affine { factor: i64, offset: i64 },
    /// `(±r + offset) mod modulus + above`, where the modulus is positive.
    Modulo { minus: bool, offset: i64, modulus: i64, above: i64 },
    /// `r xor mask`
    Xor { mask: i64 },
}

/// All that an expression may be; none if that is not known.
type Forms = Option<Vec<Form>>;

/// The values of r in `group` for which a transfer of `body` may begin or end at position `own`, ascending; none if
/// every value may do so, as far as is known.
pub(super) fn concerned(
    body: &[StepStmt],
    variable: u32,
    own: u32,
    group: (i64, i64),
    functions: &[Function],
    values: Values<'_>,
) -> Option<Vec<i64>> {
    let mut search = Search {
        functions,
        values,
        steps: HashMap::from([(variable, Some(vec![Form::Affine { factor: 1, offset: 0 }]))]),
        own: i64::from(own),
        group,
        rounds: ROUNDS_MAX,
        found: Vec::new(),
    };
    search.block(body)?;
    search.found.sort_unstable();
    search.found.dedup();
    Some(search.found)
}

struct Search<'a> {
    functions: &'a [Function],
    values: Values<'a>,
    /// The locals that the step itself gives values to.
    steps: HashMap<u32, Forms>,
    own: i64,
    group: (i64, i64),
    /// How many rounds may still be followed.
    rounds: i64,
    found: Vec<i64>,
}

impl Search<'_> {
    fn block(&mut self, statements: &[StepStmt]) -> Option<()> {
        statements.iter().try_for_each(|statement| match statement {
            StepStmt::Transfer(transfer) => self.transfer(transfer),
            StepStmt::Let(slot, value) => {
                let forms = self.forms(value, None, 0);
                self.steps.insert(*slot, forms);
                Some(())
            }
            StepStmt::If(_, yes, no) => self.block(yes).and_then(|()| self.block(no)),
            StepStmt::For(all) => self.for_loop(all),
        })
    }

    /// Once for all rounds if the ends do not depend on the round, else round by round.
    fn for_loop(&mut self, all: &For<StepStmt>) -> Option<()> {
        let before = self.found.len();
        self.steps.insert(all.var.slot, None);
        if self.block(&all.body).is_some() {
            return Some(());
        }
        self.found.truncate(before);
        let (low, high) = (self.constant(&all.range.low)?, self.constant(&all.range.high)?);
        let end = if all.range.inclusive { high.checked_add(1)? } else { high };
        self.rounds = self.rounds.checked_sub(end.checked_sub(low)?.max(0)).filter(|&left| left >= 0)?;
        (low..end).try_for_each(|value| {
            self.steps.insert(all.var.slot, Some(vec![Form::Constant(value)]));
            self.block(&all.body)
        })
    }

    fn transfer(&mut self, transfer: &Transfer) -> Option<()> {
        for end in std::iter::once(&transfer.from).chain(&transfer.to) {
            for form in self.forms(end, None, 0)? {
                self.solve(form)?;
            }
        }
        Some(())
    }

    /// Adds every r of the group at which a form is the own position; none if these are all.
    fn solve(&mut self, form: Form) -> Option<()> {
        let (low, end) = self.group;
        match form {
            Form::Constant(value) if value == self.own => return None,
            Form::Constant(_) => {}
            Form::Affine { factor, offset } => {
                let rest = self.own.checked_sub(offset)?;
                if rest.checked_rem(factor)? == 0 {
                    self.add(rest / factor);
                }
            }
            Form::Modulo { minus, offset, modulus, above } => {
                let rest = self.own.checked_sub(above)?;
                if (0..modulus).contains(&rest) {
                    let own = rest.checked_sub(offset)?;
                    let own = if minus { own.checked_neg()? } else { own };
                    let first = low.checked_add(math::modulo(own.checked_sub(low)?, modulus)?)?;
                    let mut r = first;
                    while r < end {
                        self.add(r);
                        r = r.checked_add(modulus)?;
                    }
                }
            }
            Form::Xor { mask } => self.add(self.own ^ mask),
        }
        Some(())
    }

    fn add(&mut self, r: i64) {
        if (self.group.0..self.group.1).contains(&r) {
            self.found.push(r);
        }
    }

    fn constant(&self, expr: &Expr) -> Option<i64> {
        match self.forms(expr, None, 0)?[..] {
            [Form::Constant(value)] => Some(value),
            _ => None,
        }
    }

    /// What an expression may be; `arguments` are those of the function that it stands in.
    fn forms(&self, expr: &Expr, arguments: Option<&[Forms]>, depth: u32) -> Forms {
        match &expr.kind {
            ExprKind::Int(value) => Some(vec![Form::Constant(*value)]),
            ExprKind::Global(slot) => Some(vec![Form::Constant(self.values.globals[*slot as usize])]),
            ExprKind::Local(slot) => match arguments {
                Some(arguments) => arguments[*slot as usize].clone(),
                None => match self.steps.get(slot) {
                    Some(forms) => forms.clone(),
                    None => Some(vec![Form::Constant(self.values.locals[*slot as usize])]),
                },
            },
            ExprKind::Neg(x) => {
                let zero = vec![Form::Constant(0)];
                combine(BinaryOp::Sub, &zero, &self.forms(x, arguments, depth)?)
            }
            ExprKind::Not(_) => None,
            ExprKind::Binary(op, both) => {
                let [a, b] = [0, 1].map(|side| self.forms(&both[side], arguments, depth));
                combine(*op, &a?, &b?)
            }
            ExprKind::If(all) => self.either(all, arguments, depth),
            ExprKind::Call(function, given) => {
                if depth >= DEPTH_MAX {
                    return None;
                }
                let given: Vec<Forms> = given.iter().map(|x| self.forms(x, arguments, depth)).collect();
                self.forms(&self.functions[*function as usize].body, Some(&given), depth + 1)
            }
            ExprKind::Builtin(builtin, given) => self.builtin(*builtin, given, arguments, depth),
            ExprKind::OfList(function, slot, x) => match self.forms(x, arguments, depth)?[..] {
                [Form::Constant(x)] => {
                    let value = function.apply(listed(self.values.globals, *slot), x)?;
                    Some(vec![Form::Constant(value)])
                }
                _ => None,
            },
        }
    }

    /// Both ways of a condition, unless it is the same for every r.
    fn either(&self, all: &[Expr; 3], arguments: Option<&[Forms]>, depth: u32) -> Forms {
        let [condition, yes, no] = all;
        if let Some([Form::Constant(holds)]) = self.forms(condition, arguments, depth).as_deref() {
            return self.forms(if *holds != 0 { yes } else { no }, arguments, depth);
        }
        let mut forms = self.forms(yes, arguments, depth)?;
        forms.extend(self.forms(no, arguments, depth)?);
        (forms.len() <= FORMS_MAX).then_some(forms)
    }

    fn builtin(&self, builtin: Builtin, given: &[Expr], arguments: Option<&[Forms]>, depth: u32) -> Forms {
        let values = given.iter().map(|x| match self.forms(x, arguments, depth)?[..] {
            [Form::Constant(value)] => Some(value),
            _ => None,
        });
        Some(vec![Form::Constant(builtin.apply(&values.collect::<Option<Vec<i64>>>()?)?)])
    }
}

/// Each of `a` with each of `b`.
fn combine(op: BinaryOp, a: &[Form], b: &[Form]) -> Forms {
    if a.len() * b.len() > FORMS_MAX {
        return None;
    }
    a.iter().flat_map(|&a| b.iter().map(move |&b| pair(op, a, b))).collect()
}

fn pair(op: BinaryOp, a: Form, b: Form) -> Option<Form> {
    match (op, a, b) {
        (_, Form::Constant(a), Form::Constant(b)) => apply(op, a, b).map(Form::Constant),
        (BinaryOp::Add, Form::Constant(c), form) | (BinaryOp::Add, form, Form::Constant(c)) => plus(form, c),
        (BinaryOp::Sub, form, Form::Constant(c)) => plus(form, c.checked_neg()?),
        (BinaryOp::Sub, Form::Constant(c), form) => plus(times(form, -1)?, c),
        (BinaryOp::Mul, Form::Constant(c), form) | (BinaryOp::Mul, form, Form::Constant(c)) => times(form, c),
        (BinaryOp::Mod, Form::Affine { factor: factor @ (1 | -1), offset }, Form::Constant(modulus))
            if modulus > 0 =>
        {
            Some(Form::Modulo { minus: factor < 0, offset, modulus, above: 0 })
        }
        (BinaryOp::BitXor, Form::Constant(mask), Form::Affine { factor: 1, offset: 0 })
        | (BinaryOp::BitXor, Form::Affine { factor: 1, offset: 0 }, Form::Constant(mask)) => {
            Some(Form::Xor { mask })
        }
        _ => None,
    }
}

fn plus(form: Form, c: i64) -> Option<Form> {
    Some(match form {
        Form::Constant(value) => Form::Constant(value.checked_add(c)?),
        Form::Affine { factor, offset } => Form::Affine { factor, offset: offset.checked_add(c)? },
        Form::Modulo { minus, offset, modulus, above } => {
            Form::Modulo { minus, offset, modulus, above: above.checked_add(c)? }
        }
        Form::Xor { .. } if c == 0 => form,
        Form::Xor { .. } => return None,
    })
}

fn times(form: Form, c: i64) -> Option<Form> {
    Some(match (form, c) {
        (_, 0) => Form::Constant(0),
        (_, 1) => form,
        (Form::Constant(value), _) => Form::Constant(value.checked_mul(c)?),
        (Form::Affine { factor, offset }, _) => {
            Form::Affine { factor: factor.checked_mul(c)?, offset: offset.checked_mul(c)? }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form that is found for `expr` must hold every r at which the expression has the own position.
    fn check(op: BinaryOp, inner: (BinaryOp, i64), c: i64) {
        let leaf = |kind| Expr { kind, span: Default::default() };
        let binary = |op, a, b| leaf(ExprKind::Binary(op, Box::new([a, b])));
        let inner = binary(inner.0, leaf(ExprKind::Local(0)), leaf(ExprKind::Int(inner.1)));
        let expr = binary(op, inner, leaf(ExprKind::Int(c)));
        let transfer = Transfer {
            kind: coll_ir::Kind::Signal,
            source: None,
            target: None,
            from: expr.clone(),
            to: None,
            span: Default::default(),
        };
        for own in 0..7 {
            let values = Values { globals: &[], locals: &[0] };
            let found = concerned(&[StepStmt::Transfer(transfer.clone())], 0, own, (0, 7), &[], values);
            let real = (0..7).filter(|&r| {
                let values = Values { globals: &[], locals: &[r] };
                crate::eval::Machine::new(&[]).eval(&expr, values).ok() == Some(i64::from(own))
            });
            assert_eq!(found, Some(real.collect()), "own = {own}, {expr:?}");
        }
    }

    #[test]
    fn what_is_found_is_what_trying_all_finds() {
        check(BinaryOp::Mod, (BinaryOp::Add, 3), 7);
        check(BinaryOp::Mod, (BinaryOp::Sub, 9), 7);
        check(BinaryOp::Mod, (BinaryOp::Add, -2), 3);
        check(BinaryOp::Add, (BinaryOp::Mul, 2), 1);
        check(BinaryOp::Add, (BinaryOp::Mod, 5), 2);
        check(BinaryOp::BitXor, (BinaryOp::Add, 0), 5);
        check(BinaryOp::Sub, (BinaryOp::BitXor, 4), 0);
    }

    #[test]
    fn what_cannot_be_turned_round_has_no_answer() {
        let r = Form::Affine { factor: 1, offset: 0 };
        assert_eq!(pair(BinaryOp::BitAnd, r, Form::Constant(6)), None);
        assert_eq!(pair(BinaryOp::Div, r, Form::Constant(2)), None);
        assert_eq!(pair(BinaryOp::Add, Form::Xor { mask: 1 }, Form::Constant(1)), None);
        assert_eq!(pair(BinaryOp::Add, r, Form::Constant(i64::MAX)).map(|f| plus(f, 1)), Some(None));
    }
}
