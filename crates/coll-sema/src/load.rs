//! Loading: reads the main file, the prelude and every file that a `use` names, and resolves their declarations.
//!
//! In a file the order is: functions, collectives, heads of schedules, `use` lines (each loads its file in the same
//! way), then bodies. Heads come first so that files may use each other, and a schedule may call itself on a smaller
//! group.

use crate::codes;
use crate::concerns::declarations;
use crate::module::{Module, ScheduleInfo};
use crate::resolve::{self, Callable, Entity, Named, Resolver, names_of, unknown_schedule};
use crate::resolved::{GLOBAL_N, GLOBAL_PARAMS, Param, Schedule, Value};
use coll_base::nearest;
use coll_base::{Code, Diagnostic, FileId, RedOp, SourceMap, Span};
use coll_syntax::{Parsed, Unread, ast, parse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where `use` finds schedules.
pub trait Library {
    /// The file that holds a schedule: its name for messages, and its text.
    fn schedule(&self, collective: &str, schedule: &str) -> Option<(String, String)>;

    /// The prelude: name and text of the file that declares the collectives.
    fn collectives(&self) -> (String, String);

    /// The prelude's tree. A library that serves many loads may keep it: the prelude is file number `file` in each of them.
    fn parsed_collectives(&self, file: FileId, text: &str) -> Arc<Parsed> {
        Arc::new(parse(file, text))
    }

    /// The full name, in two parts, of every schedule there is: for suggestions.
    fn names(&self) -> Vec<(String, String)>;
}

/// Reads `main` and all that it uses. The diagnostics include the parser's; with an error among them the module
/// still serves the schedules that are not broken.
pub fn load(sources: &mut SourceMap, main: FileId, library: &dyn Library) -> (Module, Vec<Diagnostic>) {
    let names = library.names();
    let mut loader = Loader {
        sources,
        library,
        names,
        module: Module::default(),
        diagnostics: Vec::new(),
        prelude: BTreeMap::new(),
        loaded: BTreeMap::new(),
        unread: BTreeMap::new(),
    };
    loader.prelude();
    let (listed, operators) = loader.file(main, None);
    let mut declared: BTreeMap<&str, Span> = BTreeMap::new();
    for all in &operators {
        if let Some(first) = declared.insert(&all.name.text, all.name.span) {
            loader.diagnostics.push(resolve::declared_twice(&all.name, first));
            continue;
        }
        if all.name.text.parse::<RedOp>().is_ok() {
            let what = format!("a built-in operator; `--op {}` names it", all.name.text);
            loader.diagnostics.push(resolve::name_taken(&all.name, &what));
            continue;
        }
        let lowered = resolve::operator(&mut loader.diagnostics, all);
        loader.module.operators.extend(lowered);
    }
    loader.spread_breakage();
    loader.leave_out_consequences();
    let Loader { mut module, diagnostics, .. } = loader;
    module.infos = listed.iter().map(|&id| info(&module, &module.schedules[id as usize])).collect();
    module.listed = listed;
    (module, diagnostics)
}

fn info(module: &Module, schedule: &Schedule) -> ScheduleInfo {
    ScheduleInfo {
        name: schedule.name.clone(),
        collective: schedule.collective_name.clone(),
        docs: schedule.docs.clone(),
        params: schedule.params.iter().map(|param| (param.name.clone(), first(&param.default))).collect(),
        lists: schedule
            .params
            .iter()
            .filter(|param| param.is_list())
            .map(|param| param.name.clone())
            .collect(),
        rooted: schedule.collective.is_some_and(|id| module.collectives[id as usize].rooted),
        span: schedule.span,
        broken: schedule.broken,
    }
}

/// A number, or a list's first.
fn first(value: &Value) -> i64 {
    match value {
        Value::Number(number) => *number,
        Value::List(list) => list[0],
    }
}

/// The codes of names that are not there.
const MISSED: [Code; 6] = [
    codes::UNKNOWN_NAME,
    codes::UNKNOWN_BUFFER,
    codes::UNKNOWN_COLLECTIVE,
    codes::UNKNOWN_FUNCTION,
    codes::UNKNOWN_SCHEDULE,
    codes::NOT_IN_USE,
];

/// A schedule's full name, in two parts.
type FullName = (String, String);

struct Loader<'l> {
    sources: &'l mut SourceMap,
    library: &'l dyn Library,
    names: Vec<FullName>,
    module: Module,
    diagnostics: Vec<Diagnostic>,
    /// The prelude's collectives.
    prelude: BTreeMap<String, u32>,
    /// Schedules of the library that were brought in; none could not be.
    loaded: BTreeMap<FullName, Option<u32>>,
    /// What follows from errors of syntax, file by file.
    unread: BTreeMap<FileId, Unread>,
}

/// What the declarations of one file see.
#[derive(Default)]
struct FileScope {
    /// The file's functions.
    functions: Vec<Named>,
    collectives: BTreeMap<String, u32>,
    schedules: BTreeMap<FullName, u32>,
    /// What `use` lines ask for in vain, with the nearest name that there is.
    missed: Vec<(FullName, Option<String>)>,
    /// Places that the parser could not read.
    unread: Vec<Span>,
}

impl FileScope {
    fn is_unread(&self, span: Span) -> bool {
        self.unread.iter().any(|bad| bad.start < span.end.max(span.start + 1) && span.start <= bad.end)
    }
}

impl Loader<'_> {
    fn prelude(&mut self) {
        let (name, text) = self.library.collectives();
        let file = self.sources.add(name, text.as_str());
        let parsed = self.library.parsed_collectives(file, &text);
        let mut scope = self.enter(file, &parsed);
        self.functions(&parsed.file.items, &mut scope);
        self.collectives(&parsed.file.items, &mut scope);
        self.prelude = scope.collectives;
    }

    /// Loads a file; `used` is the schedule it is loaded for, none for the main file. Returns the schedules and operators
    /// that it declares.
    fn file(&mut self, file: FileId, used: Option<&FullName>) -> (Vec<u32>, Vec<ast::Operator>) {
        let text = self.sources.text(file).to_string();
        let (items, mut scope) = self.parse(file, &text);
        self.functions(&items, &mut scope);
        self.collectives(&items, &mut scope);
        let heads = self.heads(&items, &mut scope);
        if used.is_none() {
            self.module.declarations = declarations(&items, &text);
            self.warn_of_empty_promises(&items);
        }
        if let Some(used) = used {
            self.loaded.insert(used.clone(), scope.schedules.get(used).copied());
        }
        for item in &items {
            if let ast::Item::Use(path) = item {
                self.bring_in(path, &mut scope);
            }
        }
        for &(id, schedule) in &heads {
            self.body(id, schedule, &scope, &text);
        }
        let ids = heads.iter().map(|&(id, _)| id).collect();
        let operators = items.into_iter().filter_map(|item| match item {
            ast::Item::Operator(all) => Some(all),
            _ => None,
        });
        (ids, operators.collect())
    }

    fn parse(&mut self, file: FileId, text: &str) -> (Vec<ast::Item>, FileScope) {
        let parsed = parse(file, text);
        let scope = self.enter(file, &parsed);
        (parsed.file.items, scope)
    }

    /// Takes note of what could not be read.
    fn enter(&mut self, file: FileId, parsed: &Parsed) -> FileScope {
        let errors = parsed.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        let unread = errors.filter_map(|diagnostic| Some(diagnostic.primary.as_ref()?.span)).collect();
        self.diagnostics.extend(parsed.diagnostics.iter().cloned());
        self.unread.insert(file, parsed.unread.clone());
        FileScope { unread, ..FileScope::default() }
    }

    fn functions(&mut self, items: &[ast::Item], scope: &mut FileScope) {
        let n = Named { name: "n".into(), entity: Entity::Global(GLOBAL_N as u32), span: None };
        for item in items {
            let ast::Item::Fn(def) = item else { continue };
            let seen = [n.clone()].into_iter().chain(scope.functions.iter().cloned()).collect();
            let named = resolve::file_function(&mut self.module.functions, &mut self.diagnostics, seen, def);
            scope.functions.push(named);
        }
    }

    fn collectives(&mut self, items: &[ast::Item], scope: &mut FileScope) {
        let mut declared: BTreeMap<&str, Span> = BTreeMap::new();
        for item in items {
            let ast::Item::Collective(all) = item else { continue };
            if let Some(&first) = declared.get(all.name.text.as_str()) {
                self.diagnostics.push(resolve::declared_twice(&all.name, first));
                continue;
            }
            declared.insert(&all.name.text, all.name.span);
            let seen = scope.functions.clone();
            let resolver = Resolver::new(&mut self.module.functions, &mut self.diagnostics, seen);
            let mut collective = resolve::collective(resolver, all);
            collective.broken |= scope.is_unread(all.span);
            scope.collectives.insert(all.name.text.clone(), self.module.collectives.len() as u32);
            self.module.collectives.push(collective);
        }
    }

    /// `W0751`: of a collective without a promise any schedule is right.
    fn warn_of_empty_promises(&mut self, items: &[ast::Item]) {
        for item in items {
            let ast::Item::Collective(all) = item else { continue };
            let promises = |fact: &ast::Fact| !matches!(fact.body, ast::FactBody::Given(_));
            let is_torn = self.unread[&all.span.file].is_unread_within(all.span);
            if all.facts.iter().any(promises) || is_torn {
                continue;
            }
            let message = format!("`{}` promises nothing: every schedule keeps it", all.name.text);
            let help = match all.buffers.iter().find(|buffer| buffer.role != ast::Role::In) {
                Some(buffer) => format!(
                    "say what holds at the end, such as `ensure each r: {0} == reduce q: q.{0}`",
                    buffer.name.text
                ),
                None => "say who waits for whom, such as `ensure each r, q: r after q`".to_string(),
            };
            self.diagnostics.push(
                Diagnostic::new(codes::PROMISES_NOTHING, all.name.span, message)
                    .label("it has no `ensure`")
                    .help(help),
            );
        }
    }

    /// Enters the schedules of a file, without their statements.
    fn heads<'i>(&mut self, items: &'i [ast::Item], scope: &mut FileScope) -> Vec<(u32, &'i ast::Schedule)> {
        let mut heads: Vec<(u32, &ast::Schedule)> = Vec::new();
        for item in items {
            let ast::Item::Schedule(all) = item else { continue };
            let full = (all.collective.text.clone(), all.name.text.clone());
            let id = self.module.schedules.len() as u32;
            let mut schedule = self.head(all, scope);
            if let Some(first) = scope.schedules.get(&full) {
                let first = self.module.schedules[*first as usize].span;
                self.diagnostics.push(resolve::declared_twice(&all.name, first));
                schedule.broken = true;
            } else {
                scope.schedules.insert(full, id);
            }
            self.module.schedules.push(schedule);
            heads.push((id, all));
        }
        heads
    }

    fn head(&mut self, all: &ast::Schedule, scope: &FileScope) -> Schedule {
        let mut broken = scope.is_unread(all.span);
        let own = scope.collectives.get(&all.collective.text);
        let collective = own.or_else(|| self.prelude.get(&all.collective.text)).copied();
        if collective.is_none() {
            let diagnostic = self.unknown_collective(&all.collective, scope);
            self.diagnostics.push(diagnostic);
            broken = true;
        }
        let inherited = collective.map(|id| self.module.collectives[id as usize].params.as_slice());
        let inherited = inherited.unwrap_or_default().iter();
        let number = |name: &String| Param { name: name.clone(), default: Value::Number(0) };
        let mut params: Vec<Param> = inherited.map(number).collect();
        for param in &all.params {
            let default = match &param.default {
                Some(default) => resolve::default(&mut self.diagnostics, default),
                None if broken => None,
                None => {
                    let message = format!("parameter `{}` has no default", param.name.text);
                    let diagnostic = Diagnostic::new(codes::NOT_CONSTANT, param.name.span, message);
                    self.diagnostics.push(diagnostic.help(format!("give it one: `{} = 4`", param.name.text)));
                    None
                }
            };
            broken |= default.is_none();
            let default = default.unwrap_or(Value::Number(0));
            params.push(Param { name: param.name.text.clone(), default });
        }
        Schedule {
            name: all.name.text.clone(),
            span: all.name.span,
            docs: all.docs.clone(),
            collective,
            collective_name: all.collective.text.clone(),
            params,
            names_root: false,
            scratch: Vec::new(),
            locals: Vec::new(),
            body: Vec::new(),
            calls: Vec::new(),
            broken,
        }
    }

    fn unknown_collective(&self, name: &ast::Name, scope: &FileScope) -> Diagnostic {
        let message = format!("unknown collective `{}`", name.text);
        let diagnostic = Diagnostic::new(codes::UNKNOWN_COLLECTIVE, name.span, message);
        let known = scope.collectives.keys().chain(self.prelude.keys()).map(String::as_str);
        match nearest(&name.text, known.clone()) {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => {
                let all: Vec<&str> = known.collect();
                diagnostic.help(format!(
                    "declare it: `collective {} {{ … }}`; there are {}",
                    name.text,
                    all.join(", ")
                ))
            }
        }
    }

    fn bring_in(&mut self, path: &ast::Path, scope: &mut FileScope) {
        let full = (path.collective.text.clone(), path.schedule.text.clone());
        if !self.loaded.contains_key(&full) {
            match self.library.schedule(&full.0, &full.1) {
                Some((name, text)) => {
                    let file = self.sources.add(name, text);
                    self.file(file, Some(&full));
                }
                None => {
                    let (diagnostic, near) = unknown_schedule(path, &self.names, &scope.schedules);
                    self.diagnostics.push(diagnostic);
                    scope.missed.push((full.clone(), near));
                    self.loaded.insert(full, None);
                    return;
                }
            }
            if self.loaded.get(&full) == Some(&None) {
                let message =
                    format!("the library's file for `{}.{}` declares no such schedule", full.0, full.1);
                self.diagnostics.push(Diagnostic::new(codes::UNKNOWN_SCHEDULE, path.span, message));
            }
        }
        if let Some(&Some(id)) = self.loaded.get(&full) {
            // A file's own hides the library's.
            scope.schedules.entry(full).or_insert(id);
        }
    }

    fn body(&mut self, id: u32, all: &ast::Schedule, scope: &FileScope, text: &str) {
        let schedule = &self.module.schedules[id as usize];
        let Some(collective) = schedule.collective else { return };
        let collective = &self.module.collectives[collective as usize];
        let broken = schedule.broken || collective.broken;
        let seen = scope.functions.iter().cloned().chain(names_of(collective)).collect();
        let mut resolver = Resolver::new(&mut self.module.functions, &mut self.diagnostics, seen);
        let inherited = collective.params.len();
        resolver.declare_params(&all.params, &schedule.params[inherited..], GLOBAL_PARAMS + inherited);
        let callable = Callable {
            schedules: &self.module.schedules,
            collectives: &self.module.collectives,
            names: &scope.schedules,
            missed: &scope.missed,
            library: &self.names,
        };
        let resolved = resolve::body(resolver, &collective.buffers, callable, text, &all.body);
        let schedule = &mut self.module.schedules[id as usize];
        schedule.broken = broken || resolved.failed;
        schedule.body = resolved.body;
        schedule.locals = resolved.locals;
        schedule.scratch = resolved.scratch;
        schedule.names_root = resolved.names_root;
        schedule.calls = resolved.calls;
    }

    /// Drops what follows from errors of syntax, which have been told.
    fn leave_out_consequences(&mut self) {
        let Loader { diagnostics, unread, sources, .. } = self;
        diagnostics.retain(|diagnostic| {
            let Some(place) = diagnostic.primary.as_ref().map(|label| label.span) else { return true };
            let Some(unread) = unread.get(&place.file) else { return true };
            let is_syntax = coll_syntax::codes::ALL.iter().any(|(code, _)| *code == diagnostic.code);
            let is_missed = MISSED.contains(&diagnostic.code) && unread.may_declare(sources.slice(place));
            is_syntax || !(is_missed || unread.is_torn(place))
        });
    }

    /// What calls something broken is broken.
    fn spread_breakage(&mut self) {
        let schedules = &mut self.module.schedules;
        loop {
            let broken: Vec<bool> = schedules.iter().map(|schedule| schedule.broken).collect();
            let mut changed = false;
            for schedule in schedules.iter_mut().filter(|schedule| !schedule.broken) {
                schedule.broken = schedule.calls.iter().any(|&callee| broken[callee as usize]);
                changed |= schedule.broken;
            }
            if !changed {
                return;
            }
        }
    }
}
