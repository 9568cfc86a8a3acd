//! Where transfers come from: the statement, the values of the variables round it, and the calls that led to it. All of
//! it is shared: a transfer has one number, and those of one round of one loop in one call have the same.

use coll_base::{Label, Span};

/// Index into [`Origins::origins`].
pub type OriginId = u32;

/// A statement, the innermost binding in force, and the call that it is run by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The statement.
    pub span: Span,
    /// Index into [`Origins::bindings`], or [`Origins::NO_BINDING`].
    pub binding: u32,
    /// Index into [`Origins::calls`], or [`Origins::NO_CALL`].
    pub call: u32,
}

/// A variable's value, and the binding that encloses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The enclosing binding, or [`Origins::NO_BINDING`].
    pub parent: u32,
    /// Index into [`Origins::names`].
    pub name: u32,
    /// The value.
    pub value: i64,
}

/// A call being run, and the one that it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The statement that calls.
    pub span: Span,
    /// The innermost binding in force there, or [`Origins::NO_BINDING`]. Those of the callee hang below it.
    pub binding: u32,
    /// The call that runs the caller, or [`Origins::NO_CALL`].
    pub parent: u32,
}

/// What a statement is that met no value to run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleKind {
    /// A loop without a round.
    Loop,
    /// A step for no rank.
    Step,
    /// A call on no rank.
    Call,
}

/// A statement that could move something, and was met where it had nothing to run for. It may have run elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// What it is.
    pub kind: IdleKind,
    /// What says for what it runs: a loop's range, a step's head, a call.
    pub head: Span,
    /// All of it.
    pub whole: Span,
    /// The call that it was met in, or [`Origins::NO_CALL`].
    pub call: u32,
    /// The step that came next when it was last met.
    pub step: u32,
}

/// Where transfers come from, shared between them.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Names of variables.
    pub names: Vec<String>,
    /// Chains of bindings.
    pub bindings: Vec<Binding>,
    /// Statements with their bindings.
    pub origins: Vec<Origin>,
    /// Chains of calls.
    pub calls: Vec<Call>,
    /// Statements that were met and not run, in the order in which they were first met.
    pub idle: Vec<Idle>,
    /// Where the schedule's name stands.
    pub schedule: Span,
}

impl Origins {
    /// No variable is bound.
    pub const NO_BINDING: u32 = u32::MAX;
    /// It stands in the schedule itself.
    pub const NO_CALL: u32 = u32::MAX;

    /// Where an origin stands.
    pub fn span(&self, origin: OriginId) -> Span {
        self.origins[origin as usize].span
    }

    /// The variables in force, outermost first: in a call, the callee's own.
    pub fn bindings_of(&self, origin: OriginId) -> Vec<(&str, i64)> {
        let Origin { binding, call, .. } = self.origins[origin as usize];
        self.bindings_between(binding, call)
    }

    /// `s = 2, r = 3`, or nothing.
    pub fn describe(&self, origin: OriginId) -> String {
        described(&self.bindings_of(origin))
    }

    /// The calls that led to an origin, innermost first, each with the values of its variables: `s = 2`.
    pub fn calls_of(&self, origin: OriginId) -> Vec<Label> {
        self.chain(self.origins[origin as usize].call)
    }

    /// A call and those that led to it, as [`Origins::calls_of`].
    pub fn chain(&self, call: u32) -> Vec<Label> {
        let mut found = Vec::new();
        let mut at = call;
        while at != Origins::NO_CALL {
            let Call { span, binding, parent } = self.calls[at as usize];
            found.push(Label { span, text: described(&self.bindings_between(binding, parent)) });
            at = parent;
        }
        found
    }

    /// The bindings from `binding` outwards to those of the call it stands in, outermost first.
    fn bindings_between(&self, binding: u32, call: u32) -> Vec<(&str, i64)> {
        let end = self.calls.get(call as usize).map_or(Origins::NO_BINDING, |call| call.binding);
        let mut found = Vec::new();
        let mut at = binding;
        while at != Origins::NO_BINDING && at != end {
            let binding = self.bindings[at as usize];
            found.push((self.names[binding.name as usize].as_str(), binding.value));
            at = binding.parent;
        }
        found.reverse();
        found
    }
}

fn described(bindings: &[(&str, i64)]) -> String {
    bindings.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_base::FileId;

    #[test]
    fn a_callee_shows_its_own_variables_and_each_call_those_of_its_caller() {
        let at = |offset| Span::new(FileId(0), offset, offset + 1);
        let binding = |parent, name, value| Binding { parent, name, value };
        let (none, top) = (Origins::NO_BINDING, Origins::NO_CALL);
        let origins = Origins {
            names: ["k", "s", "r"].map(String::from).to_vec(),
            bindings: vec![binding(none, 0, 1), binding(0, 1, 2), binding(1, 2, 3)],
            calls: vec![
                Call { span: at(1), binding: 0, parent: top },
                Call { span: at(2), binding: 0, parent: 0 },
                Call { span: at(3), binding: none, parent: top },
            ],
            origins: vec![
                Origin { span: at(9), binding: 2, call: 1 },
                Origin { span: at(9), binding: 2, call: top },
                Origin { span: at(9), binding: none, call: 2 },
            ],
            ..Origins::default()
        };
        assert_eq!(origins.describe(0), "s = 2, r = 3");
        let label = |span, text: &str| Label { span, text: text.into() };
        assert_eq!(origins.calls_of(0), [label(at(2), ""), label(at(1), "k = 1")]);
        assert_eq!((origins.describe(1).as_str(), origins.calls_of(1)), ("k = 1, s = 2, r = 3", vec![]));
        assert_eq!((origins.describe(2).as_str(), origins.calls_of(2)), ("", vec![label(at(3), "")]));
    }
}
