//! Steps: their transfers, and what may stand between them.

use super::schedule::Body;
use super::{Entity, Resolver};
use crate::codes;
use crate::resolved::{
    Each, Expr, ExprKind, For, Group, Index, Step, StepStmt, Storage, Transfer, Type, Variable, View,
};
use crate::wording::counted;
use coll_base::{Diagnostic, Span};
use coll_contract::BufferRole;
use coll_ir::Kind;
use coll_syntax::ast::{self, StmtKind, Write};

/// The end of a transfer that `each` gives: the slot of its variable.
type EachSlot = Option<u32>;

impl Body<'_, '_> {
    pub(super) fn step(
        &mut self,
        each: &Option<ast::StepEach>,
        body: &[ast::Stmt],
        span: Span,
        whole: Span,
    ) -> Step {
        let group =
            each.as_ref().and_then(|each| each.group.as_ref()).map(|group| self.resolver.group(group));
        let mark = self.resolver.scope.len();
        let each = each.as_ref().map(|each| {
            let slot = self.resolver.declare_local(&each.var, Type::Number);
            let condition = self.resolver.condition(&each.condition);
            Each { var: Variable { slot, name: each.var.text.clone() }, group, condition }
        });
        let slot = each.as_ref().map(|each| each.var.slot);
        let body = self.step_block(body, slot);
        self.resolver.scope.truncate(mark);
        Step { each, body, span, whole }
    }

    fn step_block(&mut self, body: &[ast::Stmt], each: EachSlot) -> Vec<StepStmt> {
        let mark = self.resolver.scope.len();
        let body = body.iter().filter_map(|stmt| self.step_stmt(stmt, each)).collect();
        self.resolver.scope.truncate(mark);
        body
    }

    fn step_stmt(&mut self, stmt: &ast::Stmt, each: EachSlot) -> Option<StepStmt> {
        Some(match &stmt.kind {
            StmtKind::Let(name, value) => {
                let (value, of) = self.resolver.expr(value);
                StepStmt::Let(self.resolver.declare_local(name, of), value)
            }
            StmtKind::For(all) => {
                StepStmt::For(self.for_loop(all, stmt.span, |this, body| this.step_block(body, each)))
            }
            StmtKind::If(condition, yes, no) => {
                let condition = self.resolver.truth(condition);
                StepStmt::If(condition, self.step_block(yes, each), self.step_block(no, each))
            }
            StmtKind::Transfer(transfer) => StepStmt::Transfer(self.transfer(transfer, stmt.span, each)?),
            StmtKind::Error => {
                self.resolver.unreadable();
                return None;
            }
            other => {
                let (what, help) = match other {
                    StmtKind::Step(..) => ("a step", "end the outer step first: steps follow one another"),
                    StmtKind::Call(_) => {
                        ("a call", "put the call before or after the step: it has steps of its own")
                    }
                    StmtKind::Stage(..) => ("a stage", "put the step into the stage"),
                    StmtKind::Fn(_) => ("a function", "declare it above the step"),
                    StmtKind::Require(..) => ("`require`", "put it above the step"),
                    _ => ("a declaration", "put it at the top of the schedule"),
                };
                let message = format!("{what} cannot stand in a step");
                let diagnostic = Diagnostic::new(codes::MISPLACED, stmt.span, message);
                self.resolver.error(diagnostic.expected("a transfer, `for`, `if` or `let`").help(help));
                return None;
            }
        })
    }

    fn transfer(&mut self, transfer: &ast::Transfer, span: Span, each: EachSlot) -> Option<Transfer> {
        let (kind, source, target, from, to) = match transfer {
            ast::Transfer::Send { source, from, to, target, write } => {
                let (source, target) = self.ends(source, target.as_ref());
                let from = self.own_end("send", "from", from, span, each);
                (kind_of(*write), source, target, from, Some(self.resolver.number(to)))
            }
            ast::Transfer::Recv { source, from, to, target, write } => {
                let (source, target) = self.ends(source, target.as_ref());
                let to = self.own_end("recv", "to", to, span, each);
                (kind_of(*write), source, target, Some(self.resolver.number(from)), to)
            }
            ast::Transfer::Copy { source, target, at } => {
                let (source, target) = self.ends(source, Some(target));
                let at = self.own_end("copy", "at", at, span, each);
                return Some(Transfer {
                    kind: Kind::Move,
                    source: Some(source?),
                    target,
                    from: at?,
                    to: None,
                    span,
                });
            }
            ast::Transfer::Reduce { source, target, at, write } => {
                let (source, target) = self.ends(source, Some(target));
                let at = self.own_end("reduce", "at", at, span, each);
                let kind = if *write == Write::ReduceLeft { Kind::ReduceLeft } else { Kind::Reduce };
                return Some(Transfer { kind, source: Some(source?), target, from: at?, to: None, span });
            }
            ast::Transfer::Signal { from, to } => {
                let from = self.own_end("signal", "from", from, span, each);
                let to = Some(self.resolver.number(to));
                return Some(Transfer {
                    kind: Kind::Signal,
                    source: None,
                    target: None,
                    from: from?,
                    to,
                    span,
                });
            }
        };
        Some(Transfer { kind, source: Some(source?), target, from: from?, to: Some(to?), span })
    }

    /// Both views of a transfer; the one that is written must not be `in`.
    fn ends(&mut self, source: &ast::View, target: Option<&ast::View>) -> (Option<View>, Option<View>) {
        let read = self.view(source);
        let written = target.map(|target| self.view(target));
        let (storage, at) = match (&written, target) {
            (Some(written), Some(target)) => (written.as_ref().map(|view| view.storage), target),
            _ => (read.as_ref().map(|view| view.storage), source),
        };
        if let Some(Storage::Buffer(buffer)) = storage {
            self.refuse_in(buffer, at, target.is_none());
        }
        (read, written.flatten())
    }

    fn refuse_in(&mut self, buffer: u32, view: &ast::View, same: bool) {
        let buffer = &self.buffers[buffer as usize];
        if buffer.role != BufferRole::In {
            return;
        }
        let message = format!("`{}` is an `in` buffer, which is never written", buffer.name);
        let out = self.buffers.iter().find(|buffer| buffer.role != BufferRole::In);
        let place = out.map_or("a scratch", |buffer| &buffer.name);
        let help = match same {
            true => format!("a send lands where it came from: say where it goes, `as {place}[…]`"),
            false => format!("write to `{place}` instead"),
        };
        self.resolver
            .error(Diagnostic::new(codes::WRITE_TO_IN, view.span, message).label("written").help(help));
    }

    /// The end that `each` gives and that must be written outside it.
    fn own_end(
        &mut self,
        verb: &str,
        word: &str,
        written: &Option<ast::Expr>,
        span: Span,
        each: EachSlot,
    ) -> Option<Expr> {
        match (written, each) {
            (Some(expr), None) => Some(self.resolver.number(expr)),
            (None, Some(slot)) => Some(Expr { kind: ExprKind::Local(slot), span }),
            (Some(expr), Some(slot)) => {
                let var = self.resolver.locals[slot as usize].clone();
                let message = format!("`{verb}` in `step each {var}` says its `{word}` twice");
                let diagnostic = Diagnostic::new(codes::TRANSFER_ENDS, expr.span, message);
                let help = format!("leave out `{word}`: it is `{var}`; or write the step without `each`");
                self.resolver.error(diagnostic.help(help));
                None
            }
            (None, None) => {
                let message = format!("`{verb}` outside `each` must say its `{word}`");
                let diagnostic = Diagnostic::new(codes::TRANSFER_ENDS, span, message);
                let help = format!("add `{word} RANK`, or write `step each r {{ … }}` for every rank");
                self.resolver.error(diagnostic.help(help));
                None
            }
        }
    }

    /// A view of a buffer or a scratch that is in scope.
    pub(super) fn view(&mut self, view: &ast::View) -> Option<View> {
        let index = view.index.iter().map(|index| self.resolver.index(index)).collect::<Vec<_>>();
        let storage = match self.resolver.lookup(&view.buffer.text) {
            Some(Entity::Buffer(buffer)) => Storage::Buffer(buffer),
            Some(Entity::Scratch(scratch)) => Storage::Scratch(scratch),
            other => {
                let diagnostic = self.unknown_buffer(&view.buffer, other.is_some());
                self.resolver.error(diagnostic);
                return None;
            }
        };
        let dimensions = match storage {
            Storage::Buffer(buffer) => {
                usize::from(self.buffers[buffer as usize].blocks.is_some()) + self.grid_dimensions.max(1)
            }
            Storage::Scratch(scratch) => self.scratch_dimensions[scratch as usize].max(1),
        };
        if index.len() > dimensions {
            let message = format!(
                "`{}` has {}, not {}",
                view.buffer.text,
                counted(dimensions as u64, "dimension"),
                index.len()
            );
            let help = match storage {
                Storage::Buffer(_) => "`chunks a, b` cuts each block into a grid of two dimensions",
                Storage::Scratch(_) => "`scratch tmp[a, b]` has two dimensions",
            };
            self.resolver.error(Diagnostic::new(codes::TOO_MANY_INDICES, view.span, message).help(help));
            return None;
        }
        Some(View { storage, index, span: view.span })
    }

    fn unknown_buffer(&self, name: &ast::Name, is_value: bool) -> Diagnostic {
        let message = match is_value {
            true => format!("`{}` is not a buffer", name.text),
            false => format!("unknown buffer `{}`", name.text),
        };
        let diagnostic = Diagnostic::new(codes::UNKNOWN_BUFFER, name.span, message);
        let storage = |entity| matches!(entity, Entity::Buffer(_) | Entity::Scratch(_));
        if let Some(near) = self.resolver.nearest(&name.text, storage) {
            return diagnostic.help(format!("did you mean `{near}`?"));
        }
        let names: Vec<String> = self.buffers.iter().map(|buffer| format!("`{}`", buffer.name)).collect();
        let has = if names.is_empty() { "no buffers".to_string() } else { names.join(", ") };
        diagnostic
            .note(format!("the collective has {has}"))
            .help(format!("for temporary slots on every rank, declare `scratch {}[k]`", name.text))
    }
}

impl Resolver<'_> {
    pub(super) fn group(&mut self, group: &ast::Group) -> Group {
        match group {
            ast::Group::Range(range) => Group::Range(self.range(range)),
            ast::Group::List(members, _) => Group::List(members.iter().map(|x| self.number(x)).collect()),
            ast::Group::For(all, _) => Group::For(Box::new(self.comprehension(all))),
        }
    }

    fn index(&mut self, index: &ast::Index) -> Index {
        match index {
            ast::Index::One(expr) => Index::One(self.number(expr)),
            ast::Index::Range(range) => Index::Range(self.range(range)),
            ast::Index::For(all) => Index::For(Box::new(self.comprehension(all))),
        }
    }
}

impl Body<'_, '_> {
    /// A loop; `inner` resolves its body.
    pub(super) fn for_loop<S>(
        &mut self,
        all: &ast::For,
        span: Span,
        inner: impl FnOnce(&mut Self, &[ast::Stmt]) -> Vec<S>,
    ) -> For<S> {
        let range = self.resolver.range(&all.range);
        let mark = self.resolver.scope.len();
        let slot = self.resolver.declare_local(&all.var, Type::Number);
        let condition = self.resolver.condition(&all.condition);
        let body = inner(self, &all.body);
        self.resolver.scope.truncate(mark);
        For { span, var: Variable { slot, name: all.var.text.clone() }, range, condition, body }
    }
}

fn kind_of(write: Write) -> Kind {
    match write {
        Write::Plain => Kind::Move,
        Write::Reduce => Kind::Reduce,
        Write::ReduceLeft => Kind::ReduceLeft,
    }
}
