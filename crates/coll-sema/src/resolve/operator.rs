//! Operators: a user's reduction as an expression on elements.

use crate::codes;
use crate::resolved::Type;
use crate::wording::counted;
use coll_base::nearest;
use coll_base::{Diagnostic, Span};
use coll_kernel::{Binary, Expr, Law, LawBreak, Unary, UserOperator};
use coll_syntax::ast::{self, BinaryOp, ExprKind, UnaryOp};

/// Functions of an operator, with their numbers of arguments.
const FUNCTIONS: [(&str, usize); 4] = [("abs", 1), ("max", 2), ("min", 2), ("sqrt", 1)];

/// Lowers an operator, or reports why it cannot.
pub(crate) fn operator(diagnostics: &mut Vec<Diagnostic>, all: &ast::Operator) -> Option<UserOperator> {
    let mut lowering = Lowering { diagnostics, names: Vec::new(), failed: false };
    let params: Vec<(&ast::Name, Expr)> =
        all.params.iter().enumerate().map(|(at, name)| (name, Expr::Param(at as u32))).collect();
    let operands = [(&all.operands[0], Expr::Left), (&all.operands[1], Expr::Right)];
    let combine = lowering.part(params.iter().cloned().chain(operands), &all.body);
    let given = all.given.as_ref().map(|(name, body)| lowering.part(one(&params, name), body));
    let ensure = all.ensure.as_ref().map(|(name, body)| lowering.part(one(&params, name), body));
    if lowering.failed {
        return None;
    }
    let operator = UserOperator {
        name: all.name.text.clone(),
        commutative: !all.ordered,
        params: all.params.iter().map(|name| name.text.clone()).collect(),
        combine,
        given,
        ensure,
    };
    let broken = coll_kernel::sample_laws(&operator);
    // Of an operator that is not even associative nothing else need be told.
    diagnostics.extend(broken.iter().take(1).map(|broken| law_broken(all, broken)));
    broken.is_empty().then_some(operator)
}

/// A law that an operator breaks on sample values.
fn law_broken(all: &ast::Operator, broken: &LawBreak) -> Diagnostic {
    let name = &all.name.text;
    let (code, message, help) = match broken.law {
        Law::Associative => (
            codes::NOT_ASSOCIATIVE,
            format!("`{name}` is not associative"),
            "schedules regroup what they reduce: write it so that grouping does not matter, and put what is done once \
             into `given` or `ensure`"
                .to_string(),
        ),
        Law::Commutative => (
            codes::NOT_COMMUTATIVE,
            format!("`{name}` does not commute, and is not declared so"),
            format!("declare it as `operator ordered {name}(…)`, or let a tie not tell one operand from the other"),
        ),
    };
    Diagnostic::new(code, all.body.span, message).found(broken.to_string()).help(help)
}

/// The names of a `given` or `ensure` part.
fn one<'a>(
    params: &[(&'a ast::Name, Expr)],
    name: &'a ast::Name,
) -> impl Iterator<Item = (&'a ast::Name, Expr)> {
    params.iter().cloned().chain([(name, Expr::Input)])
}

struct Lowering<'d> {
    diagnostics: &'d mut Vec<Diagnostic>,
    names: Vec<(String, Expr)>,
    failed: bool,
}

impl Lowering<'_> {
    fn error(&mut self, diagnostic: Diagnostic) {
        self.failed = true;
        self.diagnostics.push(diagnostic);
    }

    /// A part that yields a number, and sees `names`.
    fn part<'a>(&mut self, names: impl Iterator<Item = (&'a ast::Name, Expr)>, body: &ast::Expr) -> Expr {
        self.names.clear();
        let mut seen: Vec<&ast::Name> = Vec::new();
        for (name, expr) in names {
            if let Some(first) = seen.iter().find(|known| known.text == name.text) {
                self.error(super::declared_twice(name, first.span));
            }
            seen.push(name);
            self.names.push((name.text.clone(), expr));
        }
        self.of_type(body, Type::Number)
    }

    fn of_type(&mut self, expr: &ast::Expr, due: Type) -> Expr {
        let (lowered, of) = self.expr(expr);
        if of != due && of != Type::Unknown {
            let words = |of| if of == Type::Truth { "a truth value" } else { "a number" };
            let message = format!("{} where {} is due", words(of), words(due));
            self.error(
                Diagnostic::new(codes::TYPE_MISMATCH, expr.span, message)
                    .expected(words(due))
                    .found(words(of)),
            );
        }
        lowered
    }

    fn expr(&mut self, expr: &ast::Expr) -> (Expr, Type) {
        match &expr.kind {
            ExprKind::Int(value) => (Expr::Int(*value), Type::Number),
            ExprKind::Float(value) => (Expr::Float(*value), Type::Number),
            ExprKind::Bool(value) => (Expr::Bool(*value), Type::Truth),
            ExprKind::Name(name) => match self.names.iter().find(|(known, _)| known == name) {
                Some((_, expr)) => (expr.clone(), Type::Number),
                None => self.unknown_name(name, expr.span),
            },
            ExprKind::Unary(UnaryOp::Neg, x) => {
                (Expr::Unary(Unary::Neg, Box::new(self.of_type(x, Type::Number))), Type::Number)
            }
            ExprKind::Unary(UnaryOp::Not, x) => {
                (Expr::Unary(Unary::Not, Box::new(self.of_type(x, Type::Truth))), Type::Truth)
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b),
            ExprKind::Call(name, arguments) => self.call(name, arguments, expr.span),
            ExprKind::If(condition, yes, no) => {
                let condition = self.of_type(condition, Type::Truth);
                let (yes, of) = self.expr(yes);
                let no = if of == Type::Unknown { self.expr(no).0 } else { self.of_type(no, of) };
                (Expr::If(Box::new(condition), Box::new(yes), Box::new(no)), of)
            }
            ExprKind::Ranks => self.refuse(expr.span, "an operator knows elements, not ranks"),
            ExprKind::Error => {
                self.failed = true;
                unknown()
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &ast::Expr, b: &ast::Expr) -> (Expr, Type) {
        let (binary, due, yields) = match op {
            BinaryOp::Mul => (Binary::Mul, Type::Number, Type::Number),
            BinaryOp::Div => (Binary::Div, Type::Number, Type::Number),
            BinaryOp::Mod => (Binary::Mod, Type::Number, Type::Number),
            BinaryOp::Add => (Binary::Add, Type::Number, Type::Number),
            BinaryOp::Sub => (Binary::Sub, Type::Number, Type::Number),
            BinaryOp::Shl => (Binary::Shl, Type::Number, Type::Number),
            BinaryOp::Shr => (Binary::Shr, Type::Number, Type::Number),
            BinaryOp::BitAnd => (Binary::BitAnd, Type::Number, Type::Number),
            BinaryOp::BitXor => (Binary::BitXor, Type::Number, Type::Number),
            BinaryOp::BitOr => (Binary::BitOr, Type::Number, Type::Number),
            BinaryOp::Eq => (Binary::Eq, Type::Number, Type::Truth),
            BinaryOp::Ne => (Binary::Ne, Type::Number, Type::Truth),
            BinaryOp::Lt => (Binary::Lt, Type::Number, Type::Truth),
            BinaryOp::Le => (Binary::Le, Type::Number, Type::Truth),
            BinaryOp::Gt => (Binary::Gt, Type::Number, Type::Truth),
            BinaryOp::Ge => (Binary::Ge, Type::Number, Type::Truth),
            BinaryOp::And => (Binary::And, Type::Truth, Type::Truth),
            BinaryOp::Or => (Binary::Or, Type::Truth, Type::Truth),
        };
        let (a, b) = (self.of_type(a, due), self.of_type(b, due));
        (Expr::Binary(binary, Box::new(a), Box::new(b)), yields)
    }

    fn call(&mut self, name: &ast::Name, arguments: &[ast::Expr], span: Span) -> (Expr, Type) {
        let lowered: Vec<Expr> =
            arguments.iter().map(|argument| self.of_type(argument, Type::Number)).collect();
        let Some(&(known, due)) = FUNCTIONS.iter().find(|(known, _)| *known == name.text) else {
            let message = format!("an operator cannot call `{}`", name.text);
            let diagnostic = Diagnostic::new(codes::OPERATOR_EXPRESSION, name.span, message);
            self.error(
                diagnostic.help("operators have abs, max, min and sqrt, arithmetic, comparisons and `if`"),
            );
            return unknown();
        };
        let found = lowered.len();
        let mut boxed = lowered.into_iter().map(Box::new);
        let built = match (known, boxed.next(), boxed.next()) {
            ("abs", Some(x), None) => Some(Expr::Unary(Unary::Abs, x)),
            ("sqrt", Some(x), None) => Some(Expr::Unary(Unary::Sqrt, x)),
            ("max", Some(x), Some(y)) if found == due => Some(Expr::Binary(Binary::Max, x, y)),
            ("min", Some(x), Some(y)) if found == due => Some(Expr::Binary(Binary::Min, x, y)),
            _ => None,
        };
        match built {
            Some(expr) => (expr, Type::Number),
            None => {
                let message = format!("`{known}` takes {}, not {found}", counted(due as u64, "argument"));
                let diagnostic = Diagnostic::new(codes::ARGUMENT_COUNT, span, message);
                self.error(diagnostic.expected(due.to_string()).found(found.to_string()));
                unknown()
            }
        }
    }

    fn unknown_name(&mut self, name: &str, span: Span) -> (Expr, Type) {
        let diagnostic = Diagnostic::new(codes::UNKNOWN_NAME, span, format!("unknown name `{name}`"));
        let near = nearest(name, self.names.iter().map(|(known, _)| known.as_str())).map(str::to_string);
        self.error(match near {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("declare it as a parameter: `operator f(a, b; {name}) = …`")),
        });
        unknown()
    }

    fn refuse(&mut self, span: Span, message: &str) -> (Expr, Type) {
        self.error(Diagnostic::new(codes::OPERATOR_EXPRESSION, span, message));
        unknown()
    }
}

/// Carries on after an error: the operator will not be used.
fn unknown() -> (Expr, Type) {
    (Expr::Int(0), Type::Unknown)
}
