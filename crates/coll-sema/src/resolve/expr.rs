//! Expressions: names become slots, and numbers and truth values are told apart.

use super::{Entity, Named, Resolver};
use crate::builtin::Builtin;
use crate::codes;
use crate::eval::{Machine, Values};
use crate::lists::{LIST, ListFunction};
use crate::resolved::{
    Comprehension, Expr, ExprKind, Function, GLOBAL_N, GLOBAL_ROOT, Given, Range, Type, Value,
};
use crate::wording::counted;
use coll_base::nearest;
use coll_base::{Diagnostic, Span};
use coll_syntax::ast::{self, BinaryOp, UnaryOp};

/// How deep the functions of a program may nest in each other: evaluation recurses.
const HEIGHT_MAX: u32 = 1000;

impl Resolver<'_> {
    /// An expression that must be a number.
    pub(super) fn number(&mut self, expr: &ast::Expr) -> Expr {
        self.of_type(expr, Type::Number)
    }

    /// An expression that must be a truth value.
    pub(super) fn truth(&mut self, expr: &ast::Expr) -> Expr {
        self.of_type(expr, Type::Truth)
    }

    /// A condition that may be left out.
    pub(super) fn condition(&mut self, condition: &Option<ast::Expr>) -> Option<Expr> {
        condition.as_ref().map(|condition| self.truth(condition))
    }

    pub(super) fn range(&mut self, range: &ast::Range) -> Range {
        let (low, high) = (self.number(&range.low), self.number(&range.high));
        Range { low, high, inclusive: range.inclusive, span: range.span }
    }

    pub(super) fn comprehension(&mut self, all: &ast::Comprehension) -> Comprehension {
        let range = self.range(&all.range);
        self.scoped(|this| {
            let slot = this.declare_local(&all.var, Type::Number);
            let condition = this.condition(&all.condition);
            Comprehension { value: this.number(&all.value), slot, range, condition }
        })
    }

    /// An expression of either type.
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> (Expr, Type) {
        let (kind, of) = self.kind(expr);
        (Expr { kind, span: expr.span }, of)
    }

    /// A function within a schedule; its parameters are the only locals that it sees.
    pub(super) fn function(&mut self, def: &ast::FnDef) {
        let mark = self.scope.len();
        let (floor, locals) = (self.floor, std::mem::take(&mut self.locals));
        let failed = std::mem::replace(&mut self.failed, false);
        self.floor = mark;
        for param in &def.params {
            self.declare_local(param, Type::Number);
        }
        let (body, yields) = self.expr(&def.body);
        self.scope.truncate(mark);
        (self.floor, self.locals) = (floor, locals);
        let height = self.height(&body);
        if height > HEIGHT_MAX {
            let message = format!("functions that call functions nest deeper than {HEIGHT_MAX} here");
            let diagnostic = Diagnostic::new(codes::TOO_LARGE, def.name.span, message);
            self.error(diagnostic.help("give names to parts with `let`, where they are used"));
        }
        let params = def.params.len() as u32;
        // One that is refused is not evaluated, nor is what calls it.
        let height = if self.failed { 0 } else { height };
        self.functions.push(Function { params, body, yields, height, broken: self.failed });
        self.failed |= failed;
        self.declare(&def.name, Entity::Function(self.functions.len() as u32 - 1));
    }

    /// How deep evaluation recurses, called functions included.
    fn height(&self, expr: &Expr) -> u32 {
        let of_all = |all: &[Expr]| all.iter().map(|x| self.height(x)).max().unwrap_or(0);
        let below = match &expr.kind {
            ExprKind::Int(_) | ExprKind::Global(_) | ExprKind::Local(_) => 0,
            ExprKind::Neg(x) | ExprKind::Not(x) | ExprKind::OfList(_, _, x) => self.height(x),
            ExprKind::Binary(_, both) => of_all(&**both),
            ExprKind::If(all) => of_all(&**all),
            ExprKind::Builtin(_, arguments) => of_all(arguments),
            ExprKind::Call(id, arguments) => of_all(arguments).max(self.functions[*id as usize].height),
        };
        below + 1
    }

    fn of_type(&mut self, expr: &ast::Expr, due: Type) -> Expr {
        let (resolved, of) = self.expr(expr);
        if of != due && of != Type::Unknown {
            self.error(mismatch(expr.span, due, of));
        }
        resolved
    }

    fn kind(&mut self, expr: &ast::Expr) -> (ExprKind, Type) {
        match &expr.kind {
            ast::ExprKind::Int(value) => (ExprKind::Int(*value), Type::Number),
            ast::ExprKind::Bool(value) => (ExprKind::Int(i64::from(*value)), Type::Truth),
            ast::ExprKind::Ranks => (ExprKind::Global(GLOBAL_N as u32), Type::Number),
            ast::ExprKind::Float(_) => {
                let message = "a number with a point can stand only in an operator";
                let diagnostic = Diagnostic::new(codes::POINT_NUMBER, expr.span, message);
                self.error(diagnostic.help("ranks, indices and counts are whole numbers; `/` rounds down"));
                unknown()
            }
            ast::ExprKind::Name(name) => self.name(name, expr.span),
            ast::ExprKind::Unary(UnaryOp::Neg, x) => match self.number(x) {
                Expr { kind: ExprKind::Int(value), .. } => (ExprKind::Int(-value), Type::Number),
                x => (ExprKind::Neg(Box::new(x)), Type::Number),
            },
            ast::ExprKind::Unary(UnaryOp::Not, x) => (ExprKind::Not(Box::new(self.truth(x))), Type::Truth),
            ast::ExprKind::Binary(op, a, b) => self.binary(*op, a, b),
            ast::ExprKind::Call(name, arguments) => self.call(name, arguments, expr.span),
            ast::ExprKind::If(condition, yes, no) => {
                let condition = self.truth(condition);
                let (yes, of) = self.expr(yes);
                let no = if of == Type::Unknown { self.expr(no).0 } else { self.of_type(no, of) };
                (ExprKind::If(Box::new([condition, yes, no])), of)
            }
            ast::ExprKind::Error => {
                self.unreadable();
                unknown()
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &ast::Expr, b: &ast::Expr) -> (ExprKind, Type) {
        let (both, of) = match op {
            BinaryOp::And | BinaryOp::Or => ([self.truth(a), self.truth(b)], Type::Truth),
            BinaryOp::Eq | BinaryOp::Ne => {
                let (left, of) = self.expr(a);
                let right = if of == Type::Unknown { self.expr(b).0 } else { self.of_type(b, of) };
                ([left, right], Type::Truth)
            }
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                ([self.compared(a), self.compared(b)], Type::Truth)
            }
            _ => ([self.number(a), self.number(b)], Type::Number),
        };
        (ExprKind::Binary(op, Box::new(both)), of)
    }

    /// A side of a comparison, which is a number.
    fn compared(&mut self, expr: &ast::Expr) -> Expr {
        let (resolved, of) = self.expr(expr);
        if of == Type::Truth {
            let told = mismatch(expr.span, Type::Number, of);
            self.error(told.help("comparisons are joined by `and`: `a < b and b < c`"));
        }
        resolved
    }

    fn name(&mut self, name: &str, span: Span) -> (ExprKind, Type) {
        let diagnostic = match self.lookup(name) {
            Some(Entity::Global(slot)) => {
                self.names_root |= slot as usize == GLOBAL_ROOT;
                return (ExprKind::Global(slot), Type::Number);
            }
            Some(Entity::Local(slot, of)) => return (ExprKind::Local(slot), of),
            Some(Entity::List(_)) => {
                let message = format!("`{name}` is a list; a number is due");
                let help = format!("choose from it: `nth({name}, 0)` is its first number");
                Diagnostic::new(codes::NOT_A_LIST, span, message).help(help)
            }
            Some(Entity::Function(_)) => {
                let message = format!("`{name}` is a function, not a value");
                Diagnostic::new(codes::UNKNOWN_NAME, span, message).help(format!("call it: `{name}(…)`"))
            }
            Some(Entity::Buffer(_) | Entity::Scratch(_)) => {
                let message = format!("`{name}` holds elements; it is not a number");
                let help = "control flow cannot depend on data: compute with ranks, counts and parameters";
                Diagnostic::new(codes::UNKNOWN_NAME, span, message).help(help)
            }
            None => self.unknown_name(name, span),
        };
        self.error(diagnostic);
        unknown()
    }

    fn unknown_name(&self, name: &str, span: Span) -> Diagnostic {
        if self.constant {
            let message = format!("a default is a constant, and `{name}` is not known here");
            let help = "write a number, and compute with the parameter in a `let`";
            return Diagnostic::new(codes::NOT_CONSTANT, span, message).help(help);
        }
        let diagnostic = Diagnostic::new(codes::UNKNOWN_NAME, span, format!("unknown name `{name}`"));
        if let Some(hidden) = self.hidden(name) {
            let diagnostic = match hidden.span {
                Some(span) => diagnostic.also(span, "declared here"),
                None => diagnostic,
            };
            return diagnostic
                .note("a `fn` sees `n`, `root`, parameters and the functions above it, nothing else")
                .help(format!("give it as an argument: a parameter `{name}` of the function"));
        }
        if name == "root" {
            return diagnostic
                .note("this collective has no root")
                .help("name a rank of your own: `let root = 0`");
        }
        if let Some((_, seen)) = self.elsewhere.iter().find(|(known, _)| known == name) {
            return diagnostic.help(format!("`{name}` is seen {seen} only: use it there"));
        }
        let values = |entity| matches!(entity, Entity::Global(_) | Entity::Local(..));
        match self.nearest(name, values) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("declare it above: `let {name} = …`")),
        }
    }

    fn call(&mut self, name: &ast::Name, arguments: &[ast::Expr], span: Span) -> (ExprKind, Type) {
        if let Some(function) = ListFunction::named(&name.text) {
            return self.of_list(function, name, arguments, span);
        }
        if name.text == LIST {
            let message = "a list cannot stand here";
            let help = "it can be a parameter's default, and be given to such a parameter in a call";
            self.error(Diagnostic::new(codes::NOT_A_LIST, span, message).help(help));
            return unknown();
        }
        let resolved: Vec<Expr> = arguments.iter().map(|argument| self.number(argument)).collect();
        if let Some(builtin) = Builtin::named(&name.text) {
            if !builtin.takes(resolved.len()) {
                let least = builtin.arguments_least();
                let open = if builtin.takes(least + 1) { "at least " } else { "" };
                self.error(argument_count(
                    name,
                    span,
                    format!("{open}{}", counted(least as u64, "argument")),
                    resolved.len(),
                ));
            }
            let of = if builtin.is_truth() { Type::Truth } else { Type::Number };
            return (ExprKind::Builtin(builtin, resolved), of);
        }
        if let Some(Entity::Function(id)) = self.lookup(&name.text) {
            let function = &self.functions[id as usize];
            let (params, yields) = (function.params as usize, function.yields);
            self.failed |= function.broken;
            if params != resolved.len() {
                self.error(argument_count(name, span, counted(params as u64, "argument"), resolved.len()));
            }
            return (ExprKind::Call(id, resolved), yields);
        }
        let diagnostic = self.unknown_function(name);
        self.error(diagnostic);
        unknown()
    }

    /// A function whose first argument is a parameter that is a list.
    fn of_list(
        &mut self,
        function: ListFunction,
        name: &ast::Name,
        arguments: &[ast::Expr],
        span: Span,
    ) -> (ExprKind, Type) {
        let [list, x] = arguments else {
            self.error(argument_count(name, span, "a list and a number".into(), arguments.len()));
            return unknown();
        };
        let x = self.number(x);
        let slot = match &list.kind {
            ast::ExprKind::Name(name) => self.lookup(name),
            _ => None,
        };
        let Some(Entity::List(slot)) = slot else {
            let message = format!("`{}` takes a list first", name.text);
            let help = format!("a parameter is one if its default is: `{LIST}(4)`, or `{LIST}(8, 8, 4)`");
            self.error(Diagnostic::new(codes::NOT_A_LIST, list.span, message).expected("a list").help(help));
            return unknown();
        };
        (ExprKind::OfList(function, slot, Box::new(x)), Type::Number)
    }

    /// What a call gives to a parameter: to one that is a list, a list, or one number, which goes on for ever.
    pub(super) fn given(&mut self, expr: &ast::Expr, is_list: bool) -> Given {
        match &expr.kind {
            ast::ExprKind::Call(name, numbers) if is_list && name.text == LIST && !numbers.is_empty() => {
                Given::List(numbers.iter().map(|number| self.number(number)).collect())
            }
            ast::ExprKind::Name(name) if is_list => match self.lookup(name) {
                Some(Entity::List(slot)) => Given::Same(slot),
                _ => Given::List(vec![self.number(expr)]),
            },
            _ if is_list => Given::List(vec![self.number(expr)]),
            _ => Given::Number(self.number(expr)),
        }
    }

    fn unknown_function(&self, name: &ast::Name) -> Diagnostic {
        let message = format!("unknown function `{}`", name.text);
        let diagnostic = Diagnostic::new(codes::UNKNOWN_FUNCTION, name.span, message);
        let own = self.scope.iter().filter(|named| matches!(named.entity, Entity::Function(_)));
        let own = own.map(|named| named.name.as_str());
        let of_lists = ListFunction::ALL.iter().map(|function| function.name());
        let known = own.chain(Builtin::ALL.iter().map(|builtin| builtin.name())).chain(of_lists);
        let known: Vec<&str> = known.collect();
        match nearest(&name.text, known.into_iter()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("declare it above its use: `fn {}(x) = …`", name.text)),
        }
    }
}

/// Resolves a function at the top of a file. It sees `n` and the functions above it.
pub(crate) fn file_function(
    functions: &mut Vec<Function>,
    diagnostics: &mut Vec<Diagnostic>,
    scope: Vec<Named>,
    def: &ast::FnDef,
) -> Named {
    let mut resolver = Resolver::new(functions, diagnostics, scope);
    resolver.function(def);
    resolver.scope.pop().expect("invariant: a function declares its name last")
}

/// What a parameter has by default: a number, or a list of numbers.
pub(crate) fn default(diagnostics: &mut Vec<Diagnostic>, expr: &ast::Expr) -> Option<Value> {
    match &expr.kind {
        ast::ExprKind::Call(name, numbers) if name.text == LIST => {
            if numbers.is_empty() {
                diagnostics.push(argument_count(name, expr.span, "at least 1 number".into(), 0));
                return None;
            }
            let numbers: Vec<Option<i64>> =
                numbers.iter().map(|number| constant(diagnostics, number)).collect();
            numbers.into_iter().collect::<Option<Vec<i64>>>().map(Value::List)
        }
        _ => constant(diagnostics, expr).map(Value::Number),
    }
}

/// The value of an expression of numbers and the language's functions only.
fn constant(diagnostics: &mut Vec<Diagnostic>, expr: &ast::Expr) -> Option<i64> {
    let mut none = Vec::new();
    let mut resolver = Resolver::new(&mut none, diagnostics, Vec::new());
    resolver.constant = true;
    let resolved = resolver.number(expr);
    if resolver.failed {
        return None;
    }
    match Machine::new(&[]).eval(&resolved, Values { globals: &[], locals: &[] }) {
        Ok(value) => Some(value),
        Err(fault) => {
            diagnostics.push(*fault);
            None
        }
    }
}

/// Carries on after an error: the declaration is broken and will not be evaluated.
fn unknown() -> (ExprKind, Type) {
    (ExprKind::Int(0), Type::Unknown)
}

fn mismatch(span: Span, due: Type, found: Type) -> Diagnostic {
    let words = |of| if of == Type::Truth { "a truth value" } else { "a number" };
    let help = match due {
        Type::Truth => "compare it: `x != 0`",
        _ => "choose a number by it: `if c { 1 } else { 0 }`",
    };
    Diagnostic::new(codes::TYPE_MISMATCH, span, format!("{} where {} is due", words(found), words(due)))
        .expected(words(due))
        .found(words(found))
        .help(help)
}

fn argument_count(name: &ast::Name, span: Span, due: String, given: usize) -> Diagnostic {
    let message = format!("`{}` takes {due}, not {given}", name.text);
    Diagnostic::new(codes::ARGUMENT_COUNT, span, message).expected(due).found(given.to_string())
}
