//! The facts of a collective, evaluated: what is given, what is ensured, who waits for whom.
//!
//! Givens come first, wherever they are written, so that an `ensure` can be refused when it asks for a value that is
//! nowhere at the start. Equal values are stored once. A reduction that is the same at every rank is evaluated once.

use crate::codes;
use crate::eval::{Fault, Machine, Values};
use crate::resolved::{Collective, Expr, ExprKind, Fact, FactBody, GLOBAL_N, Place, Reduction, Source};
use crate::wording::counted;
use coll_base::{Diagnostic, Span};
use coll_contract::{Blocks, BufferDecl, BufferRole, Ensure, Leaf, Value, ValueId};
use std::collections::HashMap;

/// The most places that a contract speaks of, and the most leaves in its values.
const PLACES_MAX: u64 = 1 << 26;

/// A collective's facts for one number of ranks.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) buffers: Vec<BufferDecl>,
    pub(crate) given: Vec<Blocks>,
    pub(crate) ensures: Vec<Ensure>,
    pub(crate) values: Vec<Value>,
    pub(crate) after: Vec<(u32, u32)>,
}

impl Facts {
    pub(crate) fn blocks_per_rank(&self) -> u32 {
        self.buffers.iter().map(|buffer| buffer.blocks).sum()
    }

    /// For each buffer, how many blocks come before it.
    pub(crate) fn first_blocks(&self) -> Vec<u32> {
        let mut next = 0;
        let first = |buffer: &BufferDecl| {
            let before = next;
            next += buffer.blocks;
            before
        };
        self.buffers.iter().map(first).collect()
    }

    /// Whether anything is promised about a block.
    pub(crate) fn is_ensured(&self, rank: u32, buffer: u32, block: u32) -> bool {
        self.ensures.binary_search_by_key(&(rank, buffer, block), |e| (e.rank, e.buffer, e.block)).is_ok()
    }
}

/// Evaluates a collective's facts.
pub(crate) fn evaluate(
    collective: &Collective,
    globals: &[i64],
    machine: &mut Machine<'_>,
) -> Result<Facts, Fault> {
    evaluate_at(collective, globals, machine, None)
}

/// The collective's buffers, and no facts.
pub(crate) fn buffers_alone(
    collective: &Collective,
    globals: &[i64],
    machine: &mut Machine<'_>,
) -> Result<Facts, Fault> {
    let mut evaluation = Evaluation::new(collective, globals, machine, None);
    evaluation.buffers()?;
    evaluation.finish()
}

/// Evaluates a collective's facts; if `only` is a rank, all that is given, and of the others those at that rank.
pub(super) fn evaluate_at(
    collective: &Collective,
    globals: &[i64],
    machine: &mut Machine<'_>,
    only: Option<u32>,
) -> Result<Facts, Fault> {
    let mut evaluation = Evaluation::new(collective, globals, machine, only);
    evaluation.buffers()?;
    let is_given = |fact: &&Fact| matches!(fact.body, FactBody::Given(_));
    for fact in collective.facts.iter().filter(is_given) {
        evaluation.fact(fact, 0, &mut None)?;
    }
    for given in evaluation.given.iter_mut().flatten() {
        given.sort_unstable();
        given.dedup();
    }
    for fact in collective.facts.iter().filter(|fact| !is_given(fact)) {
        evaluation.fact(fact, 0, &mut None)?;
    }
    evaluation.finish()
}

struct Evaluation<'e, 'm> {
    collective: &'e Collective,
    globals: &'e [i64],
    machine: &'e mut Machine<'m>,
    /// The rank whose facts are asked for, if not all are.
    only: Option<u32>,
    locals: Vec<i64>,
    buffers: Vec<BufferDecl>,
    /// The `(rank, block)` pairs of buffers that a `given` names.
    given: Vec<Option<Vec<(u32, u32)>>>,
    values: Vec<Value>,
    ids: HashMap<Value, ValueId>,
    leaves: u64,
    ensures: Vec<(Ensure, Span)>,
    after: Vec<(u32, u32)>,
}

impl<'e, 'm> Evaluation<'e, 'm> {
    fn new(
        collective: &'e Collective,
        globals: &'e [i64],
        machine: &'e mut Machine<'m>,
        only: Option<u32>,
    ) -> Evaluation<'e, 'm> {
        Evaluation {
            collective,
            globals,
            machine,
            only,
            locals: vec![0; collective.locals.len()],
            buffers: Vec::new(),
            given: vec![None; collective.buffers.len()],
            values: Vec::new(),
            ids: HashMap::new(),
            leaves: 0,
            ensures: Vec::new(),
            after: Vec::new(),
        }
    }

    fn ranks(&self) -> i64 {
        self.globals[GLOBAL_N]
    }

    fn eval(&mut self, expr: &Expr) -> Result<i64, Fault> {
        let values = Values { globals: self.globals, locals: &self.locals };
        self.machine.eval(expr, values).map_err(|fault| self.told(fault, &[]))
    }

    fn buffers(&mut self) -> Result<(), Fault> {
        for buffer in &self.collective.buffers {
            let blocks = match &buffer.blocks {
                Some(blocks) => self.eval(blocks)?,
                None => 1,
            };
            let span = buffer.blocks.as_ref().map_or(buffer.span, |blocks| blocks.span);
            if blocks < 1 {
                let message = format!("`{}` has {blocks} blocks", buffer.name);
                let diagnostic = Diagnostic::new(codes::NOT_A_COUNT, span, message);
                return Err(Box::new(diagnostic.expected("at least 1").found(blocks.to_string())));
            }
            let before: u64 = self.buffers.iter().map(|buffer| u64::from(buffer.blocks)).sum();
            if (before.saturating_add(blocks as u64)).saturating_mul(self.ranks() as u64) > PLACES_MAX {
                return Err(too_large(span, "blocks on all ranks"));
            }
            self.buffers.push(BufferDecl {
                name: buffer.name.clone(),
                role: buffer.role,
                blocks: blocks as u32,
            });
        }
        Ok(())
    }

    /// Runs the loops of a fact from variable number `depth` inwards.
    fn fact(&mut self, fact: &Fact, depth: usize, once: &mut Option<Vec<ValueId>>) -> Result<(), Fault> {
        let Some(&slot) = fact.vars.get(depth) else {
            let values = Values { globals: self.globals, locals: &self.locals };
            if self.machine.holds(&fact.condition, values).map_err(|fault| self.told(fault, &fact.vars))? {
                self.instance(fact, once).map_err(|fault| self.told(fault, &fact.vars))?;
            }
            return Ok(());
        };
        let (low, end) = match &fact.range {
            Some(range) => {
                self.machine.bounds(range, Values { globals: self.globals, locals: &self.locals })?
            }
            None => (0, self.ranks()),
        };
        let (low, end) = match self.only.map(i64::from) {
            Some(only) if names_rank(fact, slot) => (low.max(only), end.min(only.saturating_add(1))),
            _ => (low, end),
        };
        for value in low..end {
            self.machine.spend(fact.span)?;
            self.locals[slot as usize] = value;
            self.fact(fact, depth + 1, once)?;
        }
        Ok(())
    }

    /// A fact for one set of values of its variables.
    fn instance(&mut self, fact: &Fact, once: &mut Option<Vec<ValueId>>) -> Result<(), Fault> {
        let rank = self.rank(&fact.at)?;
        if let Some(only) = self.only
            && !matches!(fact.body, FactBody::Given(_))
            && self.rank(concerned(fact))? != only
        {
            return Ok(());
        }
        match &fact.body {
            FactBody::Given(place) => self.give(rank, place),
            FactBody::Copy(place, source) => {
                let holder = self.rank(&source.rank)?;
                let from = self.blocks(&source.place)?;
                self.same_blocks(place, from.len())?;
                let leaves = from.map(|block| Leaf { rank: holder, buffer: source.place.buffer, block });
                let mut values = Vec::new();
                for leaf in leaves {
                    self.check_given(leaf, source)?;
                    values.push(self.intern(Value::Copy(leaf), fact.span)?);
                }
                self.ensure(rank, place, &values, fact.span)
            }
            FactBody::Reduce(place, reduction) => match once {
                Some(values) => self.ensure(rank, place, values, fact.span),
                None => {
                    let values = self.reduce(place, reduction, fact.span)?;
                    self.ensure(rank, place, &values, fact.span)?;
                    if reduction.constant {
                        *once = Some(values);
                    }
                    Ok(())
                }
            },
            FactBody::After(later, earlier) => {
                let pair = (self.rank(later)?, self.rank(earlier)?);
                if pair.0 != pair.1 {
                    if self.after.len() as u64 >= PLACES_MAX {
                        return Err(too_large(fact.span, "pairs of ranks in its promises"));
                    }
                    self.after.push(pair);
                }
                Ok(())
            }
        }
    }

    fn give(&mut self, rank: u32, place: &Place) -> Result<(), Fault> {
        let buffer = &self.buffers[place.buffer as usize];
        if buffer.role == BufferRole::Out {
            let message = format!("`{}` is an `out` buffer, which holds nothing at the start", buffer.name);
            let diagnostic = Diagnostic::new(codes::NO_VALUE, place.span, message);
            return Err(Box::new(diagnostic.help(format!("declare it `inout {}`", buffer.name))));
        }
        let blocks = self.blocks(place)?;
        let listed = self.given[place.buffer as usize].as_ref().map_or(0, Vec::len);
        if (listed + blocks.len()) as u64 > 2 * PLACES_MAX {
            return Err(too_large(place.span, "blocks given"));
        }
        self.given[place.buffer as usize].get_or_insert_default().extend(blocks.map(|block| (rank, block)));
        Ok(())
    }

    fn reduce(&mut self, place: &Place, reduction: &Reduction, span: Span) -> Result<Vec<ValueId>, Fault> {
        let (low, end) = match &reduction.range {
            Some(range) => {
                self.machine.bounds(range, Values { globals: self.globals, locals: &self.locals })?
            }
            None => (0, self.ranks()),
        };
        let mut rows: Vec<Vec<Leaf>> = vec![Vec::new(); self.blocks(place)?.len()];
        for q in low..end {
            self.machine.spend(span)?;
            self.locals[reduction.slot as usize] = q;
            if !self
                .machine
                .holds(&reduction.condition, Values { globals: self.globals, locals: &self.locals })?
            {
                continue;
            }
            let holder = self.rank(&reduction.source.rank)?;
            let from = self.blocks(&reduction.source.place)?;
            self.same_blocks(place, from.len())?;
            for (row, block) in rows.iter_mut().zip(from) {
                let leaf = Leaf { rank: holder, buffer: reduction.source.place.buffer, block };
                self.check_given(leaf, &reduction.source)?;
                row.push(leaf);
            }
        }
        rows.into_iter().map(|row| self.reduction(row, span)).collect()
    }

    fn reduction(&mut self, leaves: Vec<Leaf>, span: Span) -> Result<ValueId, Fault> {
        if leaves.is_empty() {
            let diagnostic = Diagnostic::new(codes::EMPTY_REDUCTION, span, "this reduces nothing");
            return Err(Box::new(
                diagnostic.help("leave out the ranks with nothing to reduce: `each r in 1..n: …`"),
            ));
        }
        let mut sorted = leaves.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("this counts {} twice", self.shown(twice[0]));
            return Err(Box::new(Diagnostic::new(codes::COUNTED_TWICE, span, message)));
        }
        self.intern(Value::Reduce(leaves), span)
    }

    fn ensure(&mut self, rank: u32, place: &Place, values: &[ValueId], span: Span) -> Result<(), Fault> {
        let buffer = &self.buffers[place.buffer as usize];
        if buffer.role == BufferRole::In {
            let message = format!("`{}` is an `in` buffer, which is never written", buffer.name);
            let diagnostic = Diagnostic::new(codes::ENSURE_IN, place.span, message);
            return Err(Box::new(
                diagnostic.help(format!("declare it `inout {0}` or `out {0}`", buffer.name)),
            ));
        }
        for (block, &value) in self.blocks(place)?.zip(values) {
            if self.ensures.len() as u64 >= 2 * PLACES_MAX {
                return Err(too_large(span, "promises"));
            }
            self.ensures.push((Ensure { rank, buffer: place.buffer, block, value }, span));
        }
        Ok(())
    }

    /// The leaf must be there at the start.
    fn check_given(&self, leaf: Leaf, source: &Source) -> Result<(), Fault> {
        let held = match &self.given[leaf.buffer as usize] {
            Some(pairs) => pairs.binary_search(&(leaf.rank, leaf.block)).is_ok(),
            None => self.buffers[leaf.buffer as usize].role != BufferRole::Out,
        };
        if held {
            return Ok(());
        }
        let message = format!("{} holds nothing at the start", self.shown(leaf));
        let diagnostic = Diagnostic::new(codes::NO_VALUE, source.place.span, message);
        let help = "right of `==` stand values of the start: of `in` and `inout` buffers, where a `given` names them";
        Err(Box::new(diagnostic.help(help)))
    }

    /// The blocks of a place: one, or all.
    fn blocks(&mut self, place: &Place) -> Result<std::ops::Range<u32>, Fault> {
        let count = self.buffers[place.buffer as usize].blocks;
        let Some(block) = &place.block else { return Ok(0..count) };
        let value = self.eval(block)?;
        match u32::try_from(value) {
            Ok(block) if block < count => Ok(block..block + 1),
            _ => {
                let name = &self.buffers[place.buffer as usize].name;
                let message = format!("index out of range: {name}[{value}] of {count} blocks");
                Err(Box::new(Diagnostic::new(codes::INDEX_RANGE, place.span, message)))
            }
        }
    }

    fn rank(&mut self, expr: &Expr) -> Result<u32, Fault> {
        let value = self.eval(expr)?;
        match u32::try_from(value) {
            Ok(rank) if value < self.ranks() => Ok(rank),
            _ => {
                let message = format!("rank {value} is not among the ranks 0..{}", self.ranks());
                Err(Box::new(Diagnostic::new(codes::RANK_RANGE, expr.span, message)))
            }
        }
    }

    fn same_blocks(&mut self, place: &Place, sources: usize) -> Result<(), Fault> {
        let targets = self.blocks(place)?.len();
        if targets == sources {
            return Ok(());
        }
        let message = format!("{} left of `==` and {sources} right of it", counted(targets as u64, "block"));
        let diagnostic = Diagnostic::new(codes::BLOCK_COUNTS, place.span, message);
        Err(Box::new(
            diagnostic.help("choose one block on both sides, `data[r] == q.data[r]`, or all on both"),
        ))
    }

    fn intern(&mut self, value: Value, span: Span) -> Result<ValueId, Fault> {
        if let Some(&id) = self.ids.get(&value) {
            return Ok(id);
        }
        self.leaves += value.leaves().len() as u64;
        if self.leaves > PLACES_MAX {
            return Err(too_large(span, "values in its promises"));
        }
        let id = self.values.len() as ValueId;
        self.values.push(value.clone());
        self.ids.insert(value, id);
        Ok(id)
    }

    /// `rank 3's data[1]`
    fn shown(&self, leaf: Leaf) -> String {
        let buffer = &self.collective.buffers[leaf.buffer as usize];
        let block = if buffer.blocks.is_some() { format!("[{}]", leaf.block) } else { String::new() };
        format!("rank {}'s {}{block}", leaf.rank, buffer.name)
    }

    /// Adds the values of a fact's variables.
    fn told(&self, fault: Fault, vars: &[u32]) -> Fault {
        let told = |&slot: &u32| {
            format!("{} = {}", self.collective.locals[slot as usize], self.locals[slot as usize])
        };
        let told: Vec<String> = vars.iter().map(told).collect();
        let silent = told.is_empty() || fault.primary.as_ref().is_some_and(|label| !label.text.is_empty());
        if silent { fault } else { Box::new(fault.label(told.join(", "))) }
    }

    fn finish(mut self) -> Result<Facts, Fault> {
        self.ensures.sort_by_key(|(e, _)| (e.rank, e.buffer, e.block));
        for pair in self.ensures.windows(2) {
            let [(first, first_span), (second, span)] = pair else { continue };
            let place = |e: &Ensure| Leaf { rank: e.rank, buffer: e.buffer, block: e.block };
            if place(first) == place(second) && first.value != second.value {
                let message = format!("two promises about {}", self.shown(place(second)));
                let diagnostic = Diagnostic::new(codes::ENSURED_TWICE, *span, message).label("the second");
                return Err(Box::new(
                    diagnostic.also(*first_span, "the first").help("leave one of them out"),
                ));
            }
        }
        self.ensures.dedup_by_key(|(e, _)| (e.rank, e.buffer, e.block));
        self.after.sort_unstable();
        self.after.dedup();
        let all = |role| if role == BufferRole::Out { Blocks::None } else { Blocks::All };
        let given = self.given.into_iter().zip(&self.buffers);
        let given = given.map(|(listed, buffer)| listed.map_or(all(buffer.role), Blocks::Listed)).collect();
        Ok(Facts {
            buffers: self.buffers,
            given,
            ensures: self.ensures.into_iter().map(|(ensure, _)| ensure).collect(),
            values: self.values,
            after: self.after,
        })
    }
}

/// The rank whose fact it is: the one that must hold something, or that must wait.
fn concerned(fact: &Fact) -> &Expr {
    match &fact.body {
        FactBody::After(later, _) => later,
        _ => &fact.at,
    }
}

/// Whether a variable of a fact is the rank whose fact it is.
fn names_rank(fact: &Fact, slot: u32) -> bool {
    !matches!(fact.body, FactBody::Given(_))
        && matches!(concerned(fact).kind, ExprKind::Local(local) if local == slot)
}

fn too_large(span: Span, what: &str) -> Fault {
    let message = format!("this contract has more than {PLACES_MAX} {what}");
    Box::new(Diagnostic::new(codes::TOO_LARGE, span, message).help("try it with fewer ranks"))
}
