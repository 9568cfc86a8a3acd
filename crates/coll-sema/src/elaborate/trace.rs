//! Where transfers come from: a statement, the values of the loop variables around it, and the calls being run. Bindings
//! and calls are written down only when a transfer needs them, and shared between all that stand in one round of a loop.

use coll_base::{Label, Span};
use coll_ir::{Binding, Call, Idle, IdleKind, Origin, OriginId, Origins};
use std::collections::HashMap;

pub(super) struct Trace {
    origins: Origins,
    names: HashMap<String, u32>,
    /// The variables in force, outermost first.
    live: Vec<Live>,
    /// The calls being run, outermost first.
    open: Vec<Open>,
    /// Which of the idle statements a statement is.
    idle: HashMap<Span, usize>,
}

/// A call being run.
struct Open {
    span: Span,
    /// How many variables its callers have.
    callers: usize,
    /// Its number once it is written down; [`Origins::NO_CALL`] until then.
    call: u32,
}

struct Live {
    name: u32,
    value: i64,
    /// Its number once it is written down; [`Origins::NO_BINDING`] until then.
    binding: u32,
}

impl Trace {
    /// For the schedule whose name stands at `schedule`.
    pub(super) fn new(schedule: Span) -> Trace {
        Trace {
            origins: Origins { schedule, ..Origins::default() },
            names: HashMap::new(),
            live: Vec::new(),
            open: Vec::new(),
            idle: HashMap::new(),
        }
    }

    /// The number of a variable's name.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.names.get(name) {
            return id;
        }
        let id = self.origins.names.len() as u32;
        self.origins.names.push(name.to_string());
        self.names.insert(name.to_string(), id);
        id
    }

    /// A variable takes a value.
    pub(super) fn push(&mut self, name: u32, value: i64) {
        self.live.push(Live { name, value, binding: Origins::NO_BINDING });
    }

    /// The innermost variable goes out of scope.
    pub(super) fn pop(&mut self) {
        self.live.pop();
    }

    /// A call begins to be run.
    pub(super) fn enter(&mut self, span: Span) {
        self.open.push(Open { span, callers: self.live.len(), call: Origins::NO_CALL });
    }

    /// The innermost call is done, or given up.
    pub(super) fn leave(&mut self) {
        if let Some(open) = self.open.pop() {
            self.live.truncate(open.callers);
        }
    }

    /// The origin of what a statement does now.
    pub(super) fn origin(&mut self, span: Span) -> OriginId {
        let binding = self.binding();
        let origin = Origin { span, binding, call: self.call() };
        if self.origins.origins.last() != Some(&origin) {
            self.origins.origins.push(origin);
        }
        self.origins.origins.len() as OriginId - 1
    }

    /// A statement that could move something has nothing to run for; the next step is number `step`.
    pub(super) fn idle(&mut self, kind: IdleKind, head: Span, whole: Span, step: u32) {
        self.binding();
        let idle = Idle { kind, head, whole, call: self.call(), step };
        match self.idle.get(&whole) {
            Some(&at) => self.origins.idle[at] = idle,
            None => {
                self.idle.insert(whole, self.origins.idle.len());
                self.origins.idle.push(idle);
            }
        }
    }

    /// The innermost binding, once all that are in force are written down.
    fn binding(&mut self) -> u32 {
        let known = self.live.iter().rposition(|live| live.binding != Origins::NO_BINDING);
        let mut binding = known.map_or(Origins::NO_BINDING, |at| self.live[at].binding);
        for live in &mut self.live[known.map_or(0, |at| at + 1)..] {
            self.origins.bindings.push(Binding { parent: binding, name: live.name, value: live.value });
            binding = self.origins.bindings.len() as u32 - 1;
            live.binding = binding;
        }
        binding
    }

    /// The innermost call, once all are written down. The bindings in force are.
    fn call(&mut self) -> u32 {
        let known = self.open.iter().rposition(|open| open.call != Origins::NO_CALL);
        let mut parent = known.map_or(Origins::NO_CALL, |at| self.open[at].call);
        for open in &mut self.open[known.map_or(0, |at| at + 1)..] {
            let binding = open.callers.checked_sub(1).map_or(Origins::NO_BINDING, |at| self.live[at].binding);
            self.origins.calls.push(Call { span: open.span, binding, parent });
            parent = self.origins.calls.len() as u32 - 1;
            open.call = parent;
        }
        parent
    }

    /// `s = 2, r = 3`, or nothing: in a call, the callee's own.
    pub(super) fn describe(&self) -> String {
        self.described(self.open.last().map_or(0, |open| open.callers), self.live.len())
    }

    /// The calls being run, innermost first, with the values of their variables.
    pub(super) fn calls(&self) -> Vec<Label> {
        let starts = [0].into_iter().chain(self.open.iter().map(|open| open.callers));
        let call = |(start, open): (usize, &Open)| Label {
            span: open.span,
            text: self.described(start, open.callers),
        };
        let mut calls: Vec<Label> = starts.zip(&self.open).map(call).collect();
        calls.reverse();
        calls
    }

    fn described(&self, start: usize, end: usize) -> String {
        let pair = |live: &Live| format!("{} = {}", self.origins.names[live.name as usize], live.value);
        self.live[start..end].iter().map(pair).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn origins(&self) -> &Origins {
        &self.origins
    }

    pub(super) fn into_origins(self) -> Origins {
        self.origins
    }
}
