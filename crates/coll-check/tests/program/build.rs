//! Programs by hand: contracts, transfers with the text of the statement they are said to come from, and a rendering of
//! what the judge says of them.

use coll_base::{Diagnostic, FileId, Fraction, Span};
use coll_check::program::{Proof, prove};
use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract, Ensure, Leaf, Value};
use coll_ir::{Binding, Cuts, Kind, Origin, Origins, Place, Program, Scratch, Step, Transfer, Tune};
use std::fmt::Write;

/// A program in the making.
pub(crate) struct Build {
    program: Program,
    statements: String,
}

/// Statements that begin with this stand in a file of their own.
pub(crate) const OTHER_FILE: &str = "in a call: ";

/// A place: rank, buffer, block.
pub(crate) type At = (u32, u32, u32);

impl Build {
    pub(crate) fn new(contract: Contract, pieces: u32) -> Build {
        let cuts = (0..=pieces).map(|i| Fraction::new(i as u64, pieces as u64)).collect();
        let program = Program {
            schedule: "test".into(),
            params: Vec::new(),
            root: 0,
            rooted: false,
            contract,
            scratch: Vec::new(),
            cuts: Cuts(cuts),
            steps: Vec::new(),
            transfers: Vec::new(),
            stages: Vec::new(),
            origins: Origins::default(),
            tune: Tune::default(),
        };
        Build { program, statements: String::new() }
    }

    pub(crate) fn scratch(mut self, name: &str, extents: &[u32]) -> Build {
        let slots = extents.iter().product();
        self.program.scratch.push(Scratch { name: name.into(), slots, extents: extents.to_vec() });
        self
    }

    pub(crate) fn cuts(mut self, cuts: &[(u64, u64)]) -> Build {
        self.program.cuts = Cuts(cuts.iter().map(|&(top, bottom)| Fraction::new(top, bottom)).collect());
        self
    }

    /// Begins a step.
    pub(crate) fn step(&mut self) -> &mut Build {
        let origin = self.origin("step", &[]);
        self.program.steps.push(Step { origin });
        self
    }

    /// A transfer of all pieces, of the statement `text` under `bindings`.
    pub(crate) fn whole(&mut self, text: &str, bindings: &[(&str, i64)], kind: Kind, from: At, to: At) {
        self.some(text, bindings, kind, from, to, 0..self.program.cuts.pieces());
    }

    /// A transfer of some pieces.
    pub(crate) fn some(
        &mut self,
        text: &str,
        bindings: &[(&str, i64)],
        kind: Kind,
        from: At,
        to: At,
        pieces: std::ops::Range<u32>,
    ) {
        let origin = self.origin(text, bindings);
        let place = |(rank, buffer, block): At| Place { rank, buffer, block };
        let class = if self.program.is_scratch(from.1) || kind == Kind::Signal {
            0
        } else {
            self.program.contract.class(from.0, from.1, from.2)
        };
        let step = self.program.steps.len() as u32 - 1;
        self.program.steps[step as usize].origin = origin;
        self.program.transfers.push(Transfer {
            kind,
            step,
            source: place(from),
            target: place(to),
            low: pieces.start,
            high: pieces.end,
            class,
            origin,
        });
    }

    pub(crate) fn signal(&mut self, text: &str, bindings: &[(&str, i64)], from: u32, to: u32) {
        self.some(text, bindings, Kind::Signal, (from, 0, 0), (to, 0, 0), 0..0);
    }

    pub(crate) fn prove(&self) -> Proof {
        prove(&self.program)
    }

    /// The proof's diagnostics, with statements instead of spans.
    pub(crate) fn told(&self) -> String {
        self.prove().diagnostics.iter().map(|told| self.render(told)).collect::<Vec<_>>().join("\n")
    }

    /// What the proof says of the program's cost and kind, in a line.
    pub(crate) fn facts(&self) -> String {
        let facts = self.prove().properties;
        let bounds = &facts.bounds;
        let mut line = format!(
            "{} steps (least {}), sends {} (least {}), receives {} (least {}), {} messages, scratch {}",
            facts.steps,
            bounds.rounds_one_port,
            facts.sent_max,
            bounds.sent_max,
            facts.received_max,
            bounds.received_max,
            facts.messages_max,
            facts.scratch_max,
        );
        let flags = [
            (facts.equal_blocks_only.is_some(), "equal blocks only"),
            (facts.ordered, "ordered"),
            (facts.same_reduction_tree, "same tree"),
            (facts.idle_ranks > 0, "idle ranks"),
        ];
        for (_, word) in flags.into_iter().filter(|(holds, _)| *holds) {
            write!(line, ", {word}").unwrap();
        }
        line
    }

    fn render(&self, told: &Diagnostic) -> String {
        let mut text = format!("{}: {}\n", told.code, told.message);
        let labels = told.primary.iter().map(|label| ("at", label));
        for (word, label) in labels.chain(told.secondary.iter().map(|label| ("and", label))) {
            let (start, end) = (label.span.start as usize, label.span.end as usize);
            writeln!(text, "  {word} `{}`: {}", &self.statements[start..end], label.text).unwrap();
        }
        let parts = [("expected", &told.expected), ("found", &told.found)];
        for (word, part) in parts.into_iter().filter_map(|(word, part)| Some((word, part.as_ref()?))) {
            writeln!(text, "  {word}: {part}").unwrap();
        }
        told.notes.iter().for_each(|note| writeln!(text, "  note: {note}").unwrap());
        told.help.iter().for_each(|help| writeln!(text, "  help: {help}").unwrap());
        text
    }

    fn origin(&mut self, text: &str, bindings: &[(&str, i64)]) -> u32 {
        let start = self.statements.find(text).unwrap_or_else(|| {
            self.statements.push_str(text);
            self.statements.len() - text.len()
        });
        let origins = &mut self.program.origins;
        let mut parent = Origins::NO_BINDING;
        for &(name, value) in bindings {
            let name = origins.names.iter().position(|known| known == name).unwrap_or_else(|| {
                origins.names.push(name.into());
                origins.names.len() - 1
            });
            origins.bindings.push(Binding { parent, name: name as u32, value });
            parent = origins.bindings.len() as u32 - 1;
        }
        let file = FileId(u32::from(text.starts_with(OTHER_FILE)));
        let span = Span::new(file, start, start + text.len());
        origins.origins.push(Origin { span, binding: parent, call: Origins::NO_CALL });
        origins.origins.len() as u32 - 1
    }
}

/// Rank, block, and the leaves as rank and block that are reduced there.
pub(crate) type Fact = (u32, u32, Vec<(u32, u32)>);

/// A contract of one buffer `data` in place.
pub(crate) fn in_place(ranks: u32, blocks: u32, facts: Vec<Fact>) -> Contract {
    let facts = facts.into_iter().map(|(rank, block, leaves)| {
        ((rank, 0, block), leaves.into_iter().map(|(rank, block)| Leaf { rank, buffer: 0, block }).collect())
    });
    let buffers = vec![BufferDecl { name: "data".into(), role: BufferRole::InOut, blocks }];
    let classes = (0..ranks).flat_map(|_| 0..blocks).collect();
    contract(ranks, buffers, facts.collect(), classes)
}

/// Any contract. `classes` has one entry for each block of each rank.
pub(crate) fn contract(
    ranks: u32,
    buffers: Vec<BufferDecl>,
    facts: Vec<(At, Vec<Leaf>)>,
    classes: Vec<u32>,
) -> Contract {
    let mut values: Vec<Value> = Vec::new();
    let mut ensures = Vec::new();
    for ((rank, buffer, block), leaves) in facts {
        let value = if leaves.len() == 1 { Value::Copy(leaves[0]) } else { Value::Reduce(leaves) };
        let known = values.iter().position(|known| *known == value);
        let value = known.unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        ensures.push(Ensure { rank, buffer, block, value: value as u32 });
    }
    ensures.sort_by_key(|e| (e.rank, e.buffer, e.block));
    let given = buffers.iter().map(|b| if b.role == BufferRole::Out { Blocks::None } else { Blocks::All });
    Contract {
        collective: "test".into(),
        ranks,
        only: None,
        given: given.collect(),
        buffers,
        ensures,
        values,
        after: Vec::new(),
        classes: Classes { count: classes.iter().max().map_or(0, |max| max + 1), table: classes },
    }
}

/// Every rank ends with the sum of all.
pub(crate) fn sum_everywhere(n: u32) -> Contract {
    in_place(n, 1, (0..n).map(|r| (r, 0, (0..n).map(|q| (q, 0)).collect())).collect())
}
