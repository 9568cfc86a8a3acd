//! The statements of a schedule: which may stand where, and what they name.

use super::{Entity, Named, Resolver};
use crate::codes;
use crate::resolved::{
    Buffer, Call, Collective, GLOBAL_N, GLOBAL_PARAMS, GLOBAL_ROOT, Schedule, Stmt, Storage, Tuned, Tuning,
    View,
};
use crate::wording::counted;
use coll_base::nearest;
use coll_base::{DType, Diagnostic, Span};
use coll_contract::BufferRole;
use coll_syntax::ast::{self, StmtKind};
use std::collections::BTreeMap;

/// What a schedule can call, and how to speak of what it cannot.
#[derive(Clone, Copy)]
pub(crate) struct Callable<'a> {
    /// All schedules so far; only their heads are read.
    pub(crate) schedules: &'a [Schedule],
    pub(crate) collectives: &'a [Collective],
    /// What the file declares and what it brings in, by full name.
    pub(crate) names: &'a BTreeMap<(String, String), u32>,
    /// What the file's `use` lines ask for in vain, with the nearest name that there is.
    pub(crate) missed: &'a [((String, String), Option<String>)],
    /// Every schedule of the library.
    pub(crate) library: &'a [(String, String)],
}

/// What the static pass finds in a schedule's braces.
pub(crate) struct Resolved {
    pub(crate) body: Vec<Stmt>,
    pub(crate) locals: Vec<String>,
    pub(crate) scratch: Vec<String>,
    pub(crate) names_root: bool,
    pub(crate) calls: Vec<u32>,
    pub(crate) failed: bool,
}

/// The pass over one schedule.
pub(super) struct Body<'r, 'a> {
    pub(super) resolver: Resolver<'r>,
    pub(super) buffers: &'a [Buffer],
    pub(super) grid_dimensions: usize,
    pub(super) scratch_dimensions: Vec<usize>,
    callable: Callable<'a>,
    /// The file's text, for the reason of a `require` that gives none.
    text: &'a str,
    chunks: Option<Span>,
    /// The first step or call: declarations come before it.
    first_step: Option<Span>,
    tuned: Vec<(Tuning, Span)>,
    scratch: Vec<String>,
    calls: Vec<u32>,
}

/// Resolves a schedule's statements. `resolver` sees the file's functions, the globals and the buffers.
pub(crate) fn body<'r, 'a>(
    resolver: Resolver<'r>,
    buffers: &'a [Buffer],
    callable: Callable<'a>,
    text: &'a str,
    statements: &[ast::Stmt],
) -> Resolved {
    let mut body = Body {
        resolver,
        buffers,
        grid_dimensions: 0,
        scratch_dimensions: Vec::new(),
        callable,
        text,
        chunks: None,
        first_step: None,
        tuned: Vec::new(),
        scratch: Vec::new(),
        calls: Vec::new(),
    };
    declared_within(statements, &mut body.resolver.elsewhere);
    let statements = body.block(statements, true);
    Resolved {
        body: statements,
        locals: body.resolver.locals,
        scratch: body.scratch,
        names_root: body.resolver.names_root,
        calls: body.calls,
        failed: body.resolver.failed,
    }
}

/// The variables of steps and loops, and where each is seen.
fn declared_within(statements: &[ast::Stmt], found: &mut Vec<(String, &'static str)>) {
    for stmt in statements {
        match &stmt.kind {
            StmtKind::Step(each, body) => {
                let var = each.as_ref().map(|each| each.var.text.clone());
                found.extend(var.map(|var| (var, "in its `step each`")));
                declared_within(body, found);
            }
            StmtKind::For(all) => {
                found.push((all.var.text.clone(), "in its loop"));
                declared_within(&all.body, found);
            }
            StmtKind::If(_, yes, no) => {
                declared_within(yes, found);
                declared_within(no, found);
            }
            StmtKind::Stage(_, body) => declared_within(body, found),
            _ => {}
        }
    }
}

impl Body<'_, '_> {
    fn block(&mut self, statements: &[ast::Stmt], top: bool) -> Vec<Stmt> {
        let mark = self.resolver.scope.len();
        let resolved = statements.iter().filter_map(|stmt| self.stmt(stmt, top)).collect();
        self.resolver.scope.truncate(mark);
        resolved
    }

    fn stmt(&mut self, stmt: &ast::Stmt, top: bool) -> Option<Stmt> {
        Some(match &stmt.kind {
            StmtKind::Chunks(extents) => return self.chunks(extents, stmt.span, top),
            StmtKind::Scratch(name, extents) => return self.scratch(name, extents, stmt.span, top),
            StmtKind::Tune(entries) => return self.tune(entries, stmt.span, top),
            StmtKind::Let(name, value) => {
                let (value, of) = self.resolver.expr(value);
                Stmt::Let(self.resolver.declare_local(name, of), value)
            }
            StmtKind::Fn(def) => {
                self.resolver.function(def);
                return None;
            }
            StmtKind::For(all) => {
                Stmt::For(self.for_loop(all, stmt.span, |this, body| this.block(body, false)))
            }
            StmtKind::If(condition, yes, no) => {
                let condition = self.resolver.truth(condition);
                Stmt::If(condition, self.block(yes, false), self.block(no, false))
            }
            StmtKind::Require(condition, why) => {
                let reason = why.clone().unwrap_or_else(|| self.written(condition.span));
                Stmt::Require(self.resolver.truth(condition), reason)
            }
            StmtKind::Stage(name, body) => Stmt::Stage(name.text.clone(), self.block(body, false)),
            StmtKind::Step(each, body) => {
                let head = self.head(stmt.span);
                self.first_step.get_or_insert(head);
                Stmt::Step(self.step(each, body, head, stmt.span))
            }
            StmtKind::Call(call) => {
                self.first_step.get_or_insert(stmt.span);
                Stmt::Call(self.call(call, stmt.span)?)
            }
            StmtKind::Transfer(_) => {
                let message = "a transfer stands outside a step";
                let diagnostic = Diagnostic::new(codes::MISPLACED, stmt.span, message);
                let help = "put it into a step: `step { … }`, or `step each r { … }` for every rank";
                self.resolver.error(diagnostic.help(help));
                return None;
            }
            StmtKind::Error => {
                self.resolver.unreadable();
                return None;
            }
        })
    }

    fn chunks(&mut self, extents: &[ast::Expr], span: Span, top: bool) -> Option<Stmt> {
        let extents = extents.iter().map(|extent| self.resolver.number(extent)).collect::<Vec<_>>();
        self.grid_dimensions = extents.len();
        let misplaced = |message: &str| Diagnostic::new(codes::MISPLACED, span, message);
        if let Some(first) = self.chunks {
            let message = "`chunks` is stated twice";
            let diagnostic = misplaced(message).label("again here").also(first, "first here");
            self.resolver
                .error(diagnostic.help("a schedule has one grid; `chunks a, b` cuts in two dimensions"));
        } else if !top {
            let help = "state it at the top of the schedule; `chunks if c { a } else { b }` can choose";
            self.resolver.error(misplaced("`chunks` stands inside another statement").help(help));
        } else if let Some(step) = self.first_step {
            let diagnostic = misplaced("`chunks` comes after a step or a call").also(step, "the first step");
            self.resolver.error(diagnostic.help("move it above the first step"));
        }
        self.chunks.get_or_insert(span);
        Some(Stmt::Chunks(extents))
    }

    fn scratch(&mut self, name: &ast::Name, extents: &[ast::Expr], span: Span, top: bool) -> Option<Stmt> {
        let extents = extents.iter().map(|extent| self.resolver.number(extent)).collect::<Vec<_>>();
        if !top {
            let diagnostic =
                Diagnostic::new(codes::MISPLACED, span, "`scratch` stands inside another statement");
            self.resolver.error(diagnostic.help("declare it at the top of the schedule"));
        }
        let id = self.scratch.len() as u32;
        self.scratch.push(name.text.clone());
        self.scratch_dimensions.push(extents.len());
        self.resolver.declare(name, Entity::Scratch(id));
        Some(Stmt::Scratch(id, extents, span))
    }

    fn tune(&mut self, entries: &[(ast::Name, ast::TuneValue)], span: Span, top: bool) -> Option<Stmt> {
        if !top {
            let diagnostic =
                Diagnostic::new(codes::MISPLACED, span, "`tune` stands inside another statement");
            self.resolver.error(diagnostic.help("tuning is of the whole schedule: put it at the top"));
        }
        let mut resolved = Vec::new();
        for (name, value) in entries {
            let tuning = match name.text.as_str() {
                "lanes" => Tuning::Lanes,
                "slices" => Tuning::Slices,
                "accumulate" => Tuning::Accumulate,
                "wire" => Tuning::Wire,
                _ => {
                    self.resolver.error(refused_tuning(name));
                    continue;
                }
            };
            if let Some(&(_, first)) = self.tuned.iter().find(|(known, _)| *known == tuning) {
                self.resolver.error(super::declared_twice(name, first));
            }
            self.tuned.push((tuning, name.span));
            resolved.extend(self.tuned_to(tuning, name, value));
        }
        Some(Stmt::Tune(resolved))
    }

    fn tuned_to(&mut self, tuning: Tuning, name: &ast::Name, value: &ast::TuneValue) -> Option<Tuned> {
        match (tuning, value) {
            (Tuning::Accumulate | Tuning::Wire, value) => return self.type_of_tuning(tuning, name, value),
            (_, ast::TuneValue::Number(value)) => {
                return Some(Tuned::Number(tuning, self.resolver.number(value)));
            }
            (_, ast::TuneValue::Word(word)) => {
                let message = format!("`{}` takes a number, not `{}`", name.text, word.text);
                self.resolver.error(Diagnostic::new(codes::TUNE_RANGE, word.span, message));
            }
        }
        None
    }

    fn type_of_tuning(&mut self, tuning: Tuning, name: &ast::Name, value: &ast::TuneValue) -> Option<Tuned> {
        let (allowed, help): (&[DType], _) = match tuning {
            Tuning::Accumulate => (
                &[DType::F32],
                "narrow floats can be accumulated in `f32`; all other types are reduced as they are",
            ),
            _ => {
                (&DType::WIRE, "wider floats can travel as one of these; all other types travel as they are")
            }
        };
        let (span, found) = match value {
            ast::TuneValue::Word(word) => (word.span, format!("`{}`", word.text)),
            ast::TuneValue::Number(value) => (value.span, "a number".to_string()),
        };
        let known = allowed.iter().find(|dtype| found == format!("`{dtype}`"));
        if known.is_none() {
            let names: Vec<String> = allowed.iter().map(|dtype| format!("`{dtype}`")).collect();
            let expected = names.join(", ");
            let message = format!("`{}` takes {expected}, not {found}", name.text);
            let diagnostic = Diagnostic::new(codes::TUNE_RANGE, span, message);
            self.resolver.error(diagnostic.expected(expected).found(found).help(help));
        }
        known.map(|&dtype| Tuned::Type(tuning, dtype, span))
    }

    fn call(&mut self, call: &ast::Call, span: Span) -> Option<Call> {
        let on = call.on.as_ref().map(|group| self.resolver.group(group));
        let views: Vec<_> = call.views.iter().map(|view| self.call_view(view)).collect();
        let callee = self.callee(&call.path);
        let schedule = callee.map(|callee| &self.callable.schedules[callee as usize]);
        let mut named = Vec::new();
        for (at, (name, value)) in call.named.iter().enumerate() {
            let is_list = schedule.is_some_and(|schedule| takes_list(schedule, &name.text));
            let value = self.resolver.given(value, is_list);
            if let Some((first, _)) = call.named[..at].iter().find(|(known, _)| known.text == name.text) {
                self.resolver.error(super::declared_twice(name, first.span));
            } else if let Some(schedule) = schedule {
                match parameter(self.callable.collectives, schedule, name) {
                    Ok(global) => named.push((global, value)),
                    Err(diagnostic) => self.resolver.error(*diagnostic),
                }
            }
        }
        self.calls.extend(callee);
        let collective = schedule?.collective.map(|id| &self.callable.collectives[id as usize])?;
        self.check_views(call, collective, &views)?;
        let views = views.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Call { schedule: callee?, views, named, on, span })
    }

    fn call_view(&mut self, view: &ast::View) -> Option<View> {
        let resolved = self.view(view)?;
        if let Storage::Scratch(_) = resolved.storage {
            let message = format!("`{}` is scratch, which is not given to calls", view.buffer.text);
            let diagnostic = Diagnostic::new(codes::SCRATCH_GIVEN, view.span, message);
            let note = "a call cuts what it is given, and a slot has no size of its own to cut";
            let help = "give a view of one of the collective's buffers";
            self.resolver.error(diagnostic.note(note).help(help));
        }
        Some(resolved)
    }

    /// As many views as the callee's collective has buffers, and no `in` buffer where it writes.
    fn check_views(
        &mut self,
        call: &ast::Call,
        collective: &Collective,
        views: &[Option<View>],
    ) -> Option<()> {
        let due = collective.buffers.len();
        if views.len() != due {
            let names: Vec<&str> = collective.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            let message =
                format!("`{}` takes {}, not {}", collective.name, counted(due as u64, "view"), views.len());
            let diagnostic = Diagnostic::new(codes::VIEW_COUNT, call.path.span, message);
            let expected =
                if due == 0 { "no views".to_string() } else { format!("views for {}", names.join(", ")) };
            self.resolver.error(diagnostic.expected(expected).found(views.len().to_string()));
            return None;
        }
        for (view, callee) in views.iter().zip(&collective.buffers) {
            let Some(view) = view else { continue };
            let Storage::Buffer(buffer) = view.storage else { continue };
            let own = &self.buffers[buffer as usize];
            if own.role == BufferRole::In && callee.role != BufferRole::In {
                let message = format!(
                    "`{}` is an `in` buffer, and `{}` writes its `{}`",
                    own.name, collective.name, callee.name
                );
                let diagnostic = Diagnostic::new(codes::WRITE_TO_IN, view.span, message);
                self.resolver
                    .error(diagnostic.help("copy it to a buffer that may be written, and give that"));
            }
        }
        Some(())
    }

    fn callee(&mut self, path: &ast::Path) -> Option<u32> {
        let (collective, schedule) = (&path.collective.text, &path.schedule.text);
        if let Some(&id) = self.callable.names.get(&(collective.clone(), schedule.clone())) {
            return Some(id);
        }
        let full = format!("{collective}.{schedule}");
        // That has been told where it is to be brought in.
        let missed = |((c, s), near): &((String, String), Option<String>)| {
            (c == collective && s == schedule) || near.as_ref() == Some(&full)
        };
        if self.callable.missed.iter().any(missed) {
            self.resolver.unreadable();
            return None;
        }
        let in_library = self.callable.library.iter().any(|(c, s)| c == collective && s == schedule);
        let diagnostic = if in_library {
            let message = format!("`{full}` is in the library, but this file does not bring it in");
            let help = format!("add `use {full}` at the top of the file");
            Diagnostic::new(codes::NOT_IN_USE, path.span, message).help(help)
        } else {
            unknown_schedule(path, self.callable.library, self.callable.names).0
        };
        self.resolver.error(diagnostic);
        None
    }

    /// The text of a condition, in one line.
    fn written(&self, span: Span) -> String {
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        format!("it requires `{}`", text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// A statement's span up to the brace that opens its body.
    fn head(&self, span: Span) -> Span {
        let text = self.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let brace = text.find('{').unwrap_or(text.len());
        Span { end: span.start + text[..brace].trim_end().len() as u32, ..span }
    }
}

/// Whether a schedule's parameter is a list.
fn takes_list(schedule: &Schedule, name: &str) -> bool {
    schedule.params.iter().any(|param| param.name == name && param.is_list())
}

/// The callee's global that an argument `name = value` sets.
fn parameter(
    collectives: &[Collective],
    callee: &Schedule,
    name: &ast::Name,
) -> Result<u32, Box<Diagnostic>> {
    let rooted = callee.collective.is_some_and(|id| collectives[id as usize].rooted);
    if name.text == "root" && rooted {
        return Ok(GLOBAL_ROOT as u32);
    }
    if let Some(at) = callee.params.iter().position(|param| param.name == name.text) {
        return Ok((GLOBAL_PARAMS + at) as u32);
    }
    let full = format!("{}.{}", callee.collective_name, callee.name);
    let message = format!("`{full}` has no parameter `{}`", name.text);
    let diagnostic = Diagnostic::new(codes::UNKNOWN_PARAMETER, name.span, message);
    Err(Box::new(with_parameters(diagnostic, callee, rooted, &name.text)))
}

/// Lists the parameters that there are, and the nearest.
pub(crate) fn with_parameters(
    diagnostic: Diagnostic,
    schedule: &Schedule,
    rooted: bool,
    name: &str,
) -> Diagnostic {
    let known = rooted.then_some("root").into_iter();
    let known: Vec<&str> = known.chain(schedule.params.iter().map(|param| param.name.as_str())).collect();
    let has =
        if known.is_empty() { "it has none".to_string() } else { format!("it has {}", known.join(", ")) };
    match nearest(name, known.into_iter()) {
        Some(near) => diagnostic.note(has).help(format!("did you mean `{near}`?")),
        None => diagnostic.note(has),
    }
}

/// `E0106`, with the nearest name of the library or of the file.
pub(crate) fn unknown_schedule(
    path: &ast::Path,
    library: &[(String, String)],
    own: &BTreeMap<(String, String), u32>,
) -> (Diagnostic, Option<String>) {
    let full = format!("{}.{}", path.collective.text, path.schedule.text);
    let diagnostic =
        Diagnostic::new(codes::UNKNOWN_SCHEDULE, path.span, format!("unknown schedule `{full}`"));
    let known: Vec<String> = own.keys().chain(library).map(|(c, s)| format!("{c}.{s}")).collect();
    if let Some(near) = nearest(&full, known.iter().map(String::as_str)) {
        return (diagnostic.help(format!("did you mean `{near}`?")), Some(near.to_string()));
    }
    let prefix = format!("{}.", path.collective.text);
    let siblings: Vec<&str> =
        known.iter().filter(|name| name.starts_with(&prefix)).map(String::as_str).collect();
    let help = match siblings.is_empty() {
        true => "a schedule's full name is `collective.schedule`, as in `allgather.ring`".to_string(),
        false => format!("there are {}", siblings.join(", ")),
    };
    (diagnostic.help(help), None)
}

fn refused_tuning(name: &ast::Name) -> Diagnostic {
    let diagnostic =
        Diagnostic::new(codes::UNKNOWN_TUNE, name.span, format!("unknown tuning `{}`", name.text));
    match nearest(&name.text, ["lanes", "slices", "accumulate", "wire"].into_iter()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help("there are `lanes`, `slices`, `accumulate` and `wire`"),
    }
}

/// The names that a collective brings to its schedules: `n`, its parameters and its buffers.
pub(crate) fn names_of(collective: &Collective) -> Vec<Named> {
    let global = |name: &str, slot: usize| Named {
        name: name.into(),
        entity: Entity::Global(slot as u32),
        span: None,
    };
    let mut names = vec![global("n", GLOBAL_N)];
    if collective.rooted {
        names.push(global("root", GLOBAL_ROOT));
    }
    names.extend(collective.params.iter().enumerate().map(|(at, name)| global(name, GLOBAL_PARAMS + at)));
    names.extend(collective.buffers.iter().enumerate().map(|(at, buffer)| Named {
        name: buffer.name.clone(),
        entity: Entity::Buffer(at as u32),
        span: None,
    }));
    names
}
