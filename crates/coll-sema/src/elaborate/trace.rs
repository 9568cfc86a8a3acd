//! Where transfers come from: a statement, and the values of the loop variables around it. Bindings are written down
//! only when a transfer needs them, and shared between all that stand in one round of a loop.

use coll_base::Span;
use coll_ir::{Binding, Origin, OriginId, Origins};
use std::collections::HashMap;

pub(super) struct Trace {
    origins: Origins,
    names: HashMap<String, u32>,
    /// The variables in force, outermost first.
    live: Vec<Live>,
}

struct Live {
    name: u32,
    value: i64,
    /// Its number once it is written down; [`Origins::NO_BINDING`] until then.
    binding: u32,
}

impl Trace {
    pub(super) fn new() -> Trace {
        Trace { origins: Origins::default(), names: HashMap::new(), live: Vec::new() }
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

    /// The origin of what a statement does now.
    pub(super) fn origin(&mut self, span: Span) -> OriginId {
        let known = self.live.iter().rposition(|live| live.binding != Origins::NO_BINDING);
        let mut binding = known.map_or(Origins::NO_BINDING, |at| self.live[at].binding);
        for live in &mut self.live[known.map_or(0, |at| at + 1)..] {
            self.origins.bindings.push(Binding { parent: binding, name: live.name, value: live.value });
            binding = self.origins.bindings.len() as u32 - 1;
            live.binding = binding;
        }
        let origin = Origin { span, binding };
        if self.origins.origins.last() != Some(&origin) {
            self.origins.origins.push(origin);
        }
        self.origins.origins.len() as OriginId - 1
    }

    /// `s = 2, r = 3`, or nothing.
    pub(super) fn describe(&self) -> String {
        let pair = |live: &Live| format!("{} = {}", self.origins.names[live.name as usize], live.value);
        self.live.iter().map(pair).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn origins(&self) -> &Origins {
        &self.origins
    }

    pub(super) fn into_origins(self) -> Origins {
        self.origins
    }
}
