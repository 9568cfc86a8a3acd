//! The static pass: syntax trees become resolved trees. One [`Resolver`] serves one declaration; it reports every
//! error that it meets and goes on, and says at the end whether there was one.

mod collective;
mod expr;
mod operator;
mod schedule;
mod step;

pub(crate) use collective::collective;
pub(crate) use expr::{default, file_function};
pub(crate) use operator::operator;
pub(crate) use schedule::{Callable, body, names_of, unknown_schedule, with_parameters};

use crate::builtin::Builtin;
use crate::codes;
use crate::lists::{LIST, ListFunction};
use crate::resolved::{Function, Param, Type};
use coll_base::nearest;
use coll_base::{Code, Diagnostic, Span};
use coll_syntax::ast;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entity {
    Global(u32),
    /// A parameter that is a list; its global says where that is.
    List(u32),
    Local(u32, Type),
    Buffer(u32),
    Scratch(u32),
    Function(u32),
}

/// A name in scope.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) entity: Entity,
    /// Where it was declared; none for what the language or the collective brings.
    pub(crate) span: Option<Span>,
}

/// Resolves one declaration.
pub(crate) struct Resolver<'a> {
    functions: &'a mut Vec<Function>,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// The names in scope, innermost last.
    scope: Vec<Named>,
    /// Names before this are seen by a function only if they are globals or functions.
    floor: usize,
    /// The name of each local slot handed out so far.
    locals: Vec<String>,
    names_root: bool,
    /// True where only numbers may stand: a parameter's default.
    constant: bool,
    failed: bool,
    /// Names that are declared somewhere in the schedule, and where each is seen.
    elsewhere: Vec<(String, &'static str)>,
    /// Names that are not there: the message, where it is among the diagnostics, and how often it came again.
    told: Vec<(String, usize, u32)>,
}

/// The codes that a name which is not there gives anew wherever it is used.
const MISSED: [Code; 5] = [
    codes::UNKNOWN_NAME,
    codes::UNKNOWN_BUFFER,
    codes::UNKNOWN_FUNCTION,
    codes::UNKNOWN_SCHEDULE,
    codes::NOT_IN_USE,
];

impl<'a> Resolver<'a> {
    /// A resolver that sees `scope`.
    pub(crate) fn new(
        functions: &'a mut Vec<Function>,
        diagnostics: &'a mut Vec<Diagnostic>,
        scope: Vec<Named>,
    ) -> Resolver<'a> {
        Resolver {
            functions,
            diagnostics,
            scope,
            floor: 0,
            locals: Vec::new(),
            names_root: false,
            constant: false,
            failed: false,
            elsewhere: Vec::new(),
            told: Vec::new(),
        }
    }

    /// Reports an error; what is being resolved is broken.
    fn error(&mut self, diagnostic: Diagnostic) {
        self.failed = true;
        if !MISSED.contains(&diagnostic.code) {
            return self.diagnostics.push(diagnostic);
        }
        match self.told.iter_mut().find(|(message, ..)| *message == diagnostic.message) {
            Some((_, at, again)) => {
                *again += 1;
                let notes = &mut self.diagnostics[*at].notes;
                if *again > 1 {
                    notes.pop();
                }
                let times = if *again == 1 { "once more".into() } else { format!("{again} times more") };
                notes.push(format!("it is used {times} below"));
            }
            None => {
                self.told.push((diagnostic.message.clone(), self.diagnostics.len(), 0));
                self.diagnostics.push(diagnostic);
            }
        }
    }

    /// Text that the parser could not read, and has reported.
    fn unreadable(&mut self) {
        self.failed = true;
    }

    /// The entity of a name, if it can be seen from here.
    fn lookup(&self, name: &str) -> Option<Entity> {
        let sees = |(at, named): (usize, &Named)| {
            let anywhere = is_seen_in_functions(named.entity);
            (named.name == name && (at >= self.floor || anywhere)).then_some(named.entity)
        };
        self.scope.iter().enumerate().rev().find_map(sees)
    }

    /// A name in scope that this function cannot see.
    fn hidden(&self, name: &str) -> Option<&Named> {
        self.scope[..self.floor].iter().rev().find(|named| named.name == name)
    }

    /// Declares a name; nothing in sight may bear it.
    fn declare(&mut self, name: &ast::Name, entity: Entity) {
        if self.lookup(&name.text).is_some() {
            let first = self.scope.iter().rev().find(|named| named.name == name.text);
            let diagnostic = match first {
                Some(Named { span: Some(first), .. }) => declared_twice(name, *first),
                Some(Named { entity: Entity::Buffer(_), .. }) => {
                    name_taken(name, "a buffer of the collective")
                }
                _ if name.text == "n" => name_taken(name, "the number of ranks"),
                _ => name_taken(name, "a parameter of the collective"),
            };
            self.error(diagnostic);
            // What is said below means the first, most likely; functions are counted by their declarations.
            if !matches!(entity, Entity::Function(_)) {
                return;
            }
        } else if is_of_language(&name.text) {
            self.error(name_taken(name, "a function of the language"));
        }
        self.scope.push(Named { name: name.text.clone(), entity, span: Some(name.span) });
    }

    /// Declares a variable in a slot of its own.
    fn declare_local(&mut self, name: &ast::Name, of: Type) -> u32 {
        let slot = self.locals.len() as u32;
        self.locals.push(name.text.clone());
        self.declare(name, Entity::Local(slot, of));
        slot
    }

    /// Declares a schedule's parameters, whose globals start at `first`.
    pub(crate) fn declare_params(&mut self, params: &[ast::Param], known: &[Param], first: usize) {
        for (at, (param, known)) in params.iter().zip(known).enumerate() {
            let slot = (first + at) as u32;
            let entity = if known.is_list() { Entity::List(slot) } else { Entity::Global(slot) };
            self.declare(&param.name, entity);
        }
    }

    /// Runs `inner`, then forgets what it declared.
    fn scoped<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.scope.len();
        let result = inner(self);
        self.scope.truncate(mark);
        result
    }

    /// The name most like `name` among those that `fits`.
    fn nearest(&self, name: &str, fits: impl Fn(Entity) -> bool) -> Option<String> {
        let fitting = self.scope.iter().enumerate().filter(|(at, named)| {
            let anywhere = is_seen_in_functions(named.entity);
            fits(named.entity) && (*at >= self.floor || anywhere)
        });
        nearest(name, fitting.map(|(_, named)| named.name.as_str())).map(str::to_string)
    }
}

/// Whether a function sees it, wherever it is declared.
fn is_seen_in_functions(entity: Entity) -> bool {
    matches!(entity, Entity::Global(_) | Entity::List(_) | Entity::Function(_))
}

/// Whether the language has a function of that name.
fn is_of_language(name: &str) -> bool {
    Builtin::named(name).is_some() || ListFunction::named(name).is_some() || name == LIST
}

/// `E0102` for a second declaration of a name.
pub(crate) fn declared_twice(name: &ast::Name, first: Span) -> Diagnostic {
    let message = format!("`{}` is declared twice", name.text);
    Diagnostic::new(codes::DECLARED_TWICE, name.span, message)
        .label("again here")
        .also(first, "first here")
        .help("choose another name: within a schedule, no name hides another")
}

/// `E0102` for a name that the language or the collective has given.
pub(crate) fn name_taken(name: &ast::Name, what: &str) -> Diagnostic {
    let message = format!("the name `{}` is taken", name.text);
    Diagnostic::new(codes::DECLARED_TWICE, name.span, message)
        .label(format!("this is {what}"))
        .help(format!("choose another name, such as `my_{}`", name.text))
}
