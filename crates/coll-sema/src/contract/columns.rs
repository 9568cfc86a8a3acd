//! Count classes for one rank without a table of all ranks' blocks.
//!
//! In most collectives a block has as many elements on every rank as the block of that number on any other, and
//! nothing relates it to blocks of other numbers: each **column**, a block across all ranks, is one class. Whether
//! it is so is found here from the facts, column by column. Facts that hold at every rank alike are looked at once.
//! Where it is not so, or cannot be seen this way, the answer is no, and the classes must be counted out.

use super::Facts;
use crate::eval::{Fault, Machine, Values};
use crate::resolved::{
    Collective, Expr, ExprKind, Fact, FactBody, GLOBAL_N, Place, Range, Reduction, Source,
};
use coll_contract::Blocks;

/// Ranks whose blocks of one column have equal counts: `low..end`, twice.
type Alike = [(i64, i64); 2];
/// How often the sets of a column are gone through.
const SWEEPS_MAX: u32 = 8;

/// Whether every column is one class of its own. `facts` have the collective's buffers and all that is given.
pub(super) fn are_classes(
    collective: &Collective,
    facts: &Facts,
    globals: &[i64],
    machine: &mut Machine<'_>,
) -> Result<bool, Fault> {
    let locals = vec![0; collective.locals.len()];
    let columns = vec![Vec::new(); facts.blocks_per_rank() as usize];
    let mut search = Search { facts, firsts: facts.first_blocks(), globals, machine, locals, columns };
    for fact in &collective.facts {
        if !search.fact(fact)? {
            return Ok(false);
        }
    }
    for (buffer, given) in facts.given.iter().enumerate() {
        if let Blocks::Listed(pairs) = given {
            for &(rank, block) in pairs {
                let alone = (i64::from(rank), i64::from(rank) + 1);
                search.columns[(search.firsts[buffer] + block) as usize].push([alone, alone]);
            }
        }
    }
    let mut reached = vec![0; globals[GLOBAL_N] as usize];
    Ok(search.columns.iter().zip(1..).all(|(sets, mark)| is_one(sets, &mut reached, mark)))
}

/// Whether a column's sets hang together. Ranks in none of them then join them.
fn is_one(sets: &[Alike], reached: &mut [u32], mark: u32) -> bool {
    let all = (0, reached.len() as i64);
    if all == (0, 1) || sets.iter().flatten().any(|&run| run == all) {
        return true;
    }
    let length = |set: &&Alike| set.iter().map(|(low, end)| end - low).sum::<i64>();
    let Some(largest) = sets.iter().max_by_key(length) else { return false };
    let fill = |set: &Alike, reached: &mut [u32]| {
        for &(low, end) in set {
            reached[low as usize..end as usize].fill(mark);
        }
    };
    fill(largest, reached);
    let mut apart: Vec<&Alike> = sets.iter().collect();
    for _ in 0..SWEEPS_MAX {
        apart.retain(|set| {
            let touches = set.iter().any(|&(low, end)| reached[low as usize..end as usize].contains(&mark));
            if touches {
                fill(set, reached);
            }
            !touches
        });
        // What hangs together like a chain does so from either end.
        apart.reverse();
        if apart.is_empty() {
            return true;
        }
    }
    false
}

struct Search<'s, 'm> {
    facts: &'s Facts,
    firsts: Vec<u32>,
    globals: &'s [i64],
    machine: &'s mut Machine<'m>,
    locals: Vec<i64>,
    /// For each block, the sets of ranks that facts make alike.
    columns: Vec<Vec<Alike>>,
}

impl Search<'_, '_> {
    /// False if the fact relates blocks of two numbers, or is none that can be followed.
    fn fact(&mut self, fact: &Fact) -> Result<bool, Fault> {
        let (place, source) = match &fact.body {
            FactBody::Given(_) | FactBody::After(..) => return Ok(true),
            FactBody::Copy(place, source) => (place, source),
            FactBody::Reduce(place, reduction) => (place, &reduction.source),
        };
        if place.buffer != source.place.buffer || !same(&place.block, &source.place.block) {
            return Ok(false);
        }
        let everywhere = match fact.at.kind {
            ExprKind::Local(at) if fact.vars.contains(&at) && !depends(fact, at) => Some(at),
            _ => None,
        };
        self.rounds(fact, everywhere, 0)
    }

    /// Runs the loops of a fact from variable number `depth` inwards, but for the one that only says at which ranks.
    fn rounds(&mut self, fact: &Fact, everywhere: Option<u32>, depth: usize) -> Result<bool, Fault> {
        let Some(&slot) = fact.vars.get(depth) else {
            if !self.machine.holds(&fact.condition, Values { globals: self.globals, locals: &self.locals })? {
                return Ok(true);
            }
            return self.instance(fact, everywhere.is_some());
        };
        if everywhere == Some(slot) {
            return self.rounds(fact, everywhere, depth + 1);
        }
        let (low, end) = self.bounds(&fact.range)?;
        for value in low..end {
            self.machine.spend(fact.span)?;
            self.locals[slot as usize] = value;
            if !self.rounds(fact, everywhere, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn instance(&mut self, fact: &Fact, everywhere: bool) -> Result<bool, Fault> {
        let targets = match everywhere {
            true => self.bounds(&fact.range)?,
            false => {
                let at = self.eval(&fact.at)?;
                (at, at.saturating_add(1))
            }
        };
        let (place, sources) = match &fact.body {
            FactBody::Copy(place, Source { rank, .. }) => {
                let rank = self.eval(rank)?;
                (place, (rank, rank.saturating_add(1)))
            }
            FactBody::Reduce(place, reduction) => match self.operands(reduction)? {
                Some(sources) => (place, sources),
                None => return Ok(false),
            },
            FactBody::Given(_) | FactBody::After(..) => return Ok(true),
        };
        let ranks = self.globals[GLOBAL_N];
        if [targets, sources].iter().any(|&(low, end)| low < 0 || low >= end || end > ranks) {
            return Ok(false);
        }
        let Some(blocks) = self.blocks(place)? else { return Ok(false) };
        let first = self.firsts[place.buffer as usize];
        for block in blocks {
            self.columns[(first + block) as usize].push([targets, sources]);
        }
        Ok(true)
    }

    /// The ranks whose values are reduced, if they are a plain run of ranks.
    fn operands(&mut self, reduction: &Reduction) -> Result<Option<(i64, i64)>, Fault> {
        let plain = matches!(reduction.source.rank.kind, ExprKind::Local(slot) if slot == reduction.slot);
        if !plain || reduction.condition.is_some() {
            return Ok(None);
        }
        self.bounds(&reduction.range).map(Some)
    }

    fn blocks(&mut self, place: &Place) -> Result<Option<std::ops::Range<u32>>, Fault> {
        let count = self.facts.buffers[place.buffer as usize].blocks;
        let Some(block) = &place.block else { return Ok(Some(0..count)) };
        let block = self.eval(block)?;
        Ok(u32::try_from(block).ok().filter(|&block| block < count).map(|block| block..block + 1))
    }

    fn bounds(&mut self, range: &Option<Range>) -> Result<(i64, i64), Fault> {
        match range {
            Some(range) => self.machine.bounds(range, Values { globals: self.globals, locals: &self.locals }),
            None => Ok((0, self.globals[GLOBAL_N])),
        }
    }

    fn eval(&mut self, expr: &Expr) -> Result<i64, Fault> {
        self.machine.eval(expr, Values { globals: self.globals, locals: &self.locals })
    }
}

/// Whether what a fact says, or whether it holds, depends on a variable; where it holds does not count.
fn depends(fact: &Fact, variable: u32) -> bool {
    let mut found = false;
    let mut see = |expr: &Expr| expr.each_local(&mut |slot| found |= slot == variable);
    let mut see_range = |range: &Option<Range>| {
        if let Some(range) = range {
            see(&range.low);
            see(&range.high);
        }
    };
    see_range(&fact.range);
    if let FactBody::Reduce(_, reduction) = &fact.body {
        see_range(&reduction.range);
    }
    fact.condition.iter().for_each(&mut see);
    match &fact.body {
        FactBody::Copy(place, source) => {
            place.block.iter().chain(&source.place.block).for_each(&mut see);
            see(&source.rank);
        }
        FactBody::Reduce(place, reduction) => {
            let source = &reduction.source;
            place.block.iter().chain(&source.place.block).chain(&reduction.condition).for_each(&mut see);
            see(&source.rank);
        }
        FactBody::Given(_) | FactBody::After(..) => {}
    }
    found
}

/// Whether two blocks are written alike.
fn same(a: &Option<Expr>, b: &Option<Expr>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => alike(a, b),
        _ => false,
    }
}

fn alike(a: &Expr, b: &Expr) -> bool {
    let all = |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b));
    match (&a.kind, &b.kind) {
        (ExprKind::Int(a), ExprKind::Int(b)) => a == b,
        (ExprKind::Global(a), ExprKind::Global(b)) | (ExprKind::Local(a), ExprKind::Local(b)) => a == b,
        (ExprKind::Neg(a), ExprKind::Neg(b)) | (ExprKind::Not(a), ExprKind::Not(b)) => alike(a, b),
        (ExprKind::Binary(op, a), ExprKind::Binary(other, b)) => op == other && all(&a[..], &b[..]),
        (ExprKind::If(a), ExprKind::If(b)) => all(&a[..], &b[..]),
        (ExprKind::Call(f, a), ExprKind::Call(g, b)) => f == g && all(a, b),
        (ExprKind::Builtin(f, a), ExprKind::Builtin(g, b)) => f == g && all(a, b),
        // Collectives have no lists.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{classes, facts};
    use super::*;
    use crate::resolve::{self, Resolver};
    use coll_base::FileId;
    use coll_syntax::ast::Item;

    /// The first collective of a text.
    fn resolved(text: &str) -> Collective {
        let parsed = coll_syntax::parse(FileId(0), text);
        assert!(parsed.diagnostics.is_empty(), "{text}: {:?}", parsed.diagnostics);
        let Some(Item::Collective(all)) = parsed.file.items.first() else { panic!("{text} declares none") };
        let (mut functions, mut diagnostics) = (Vec::new(), Vec::new());
        let collective =
            resolve::collective(Resolver::new(&mut functions, &mut diagnostics, Vec::new()), all);
        assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
        collective
    }

    /// What is found column by column, as one rank's contract does it, and what counting out all classes finds.
    fn both(collective: &Collective, ranks: i64, root: i64) -> (bool, bool) {
        let globals = [ranks, root];
        let mut machine = Machine::new(&[]);
        let quick: Vec<bool> = (0..ranks as u32)
            .map(|rank| {
                let of_one = facts::evaluate_at(collective, &globals, &mut machine, Some(rank)).unwrap();
                are_classes(collective, &of_one, &globals, &mut machine).unwrap()
            })
            .collect();
        assert!(quick.iter().all(|&found| found == quick[0]), "every rank finds the same");
        let whole = facts::evaluate(collective, &globals, &mut machine).unwrap();
        let (table, width) = (classes::number(&whole, ranks as u32).table, whole.blocks_per_rank());
        let slow = (0..).zip(&table).all(|(at, &class): (u32, _)| class == at % width);
        (quick[0], slow)
    }

    /// A collective, the rank counts on which its columns are its classes, and whether that is seen on all of them.
    type Case = (&'static str, fn(i64) -> bool, bool);

    /// Looked at for 1 to 12 ranks.
    const CASES: [Case; 19] = [
        ("{ inout data  ensure each r: data == reduce q: q.data }", |_| true, true),
        ("(root) { inout data  given root: data  ensure each r: data == root.data }", |_| true, true),
        ("(root) { inout data  ensure root: data == reduce q: q.data }", |_| true, true),
        (
            "{ inout data[ranks]  given each r: data[r]  ensure each r, q: data[q] == q.data[q] }",
            |_| true,
            true,
        ),
        (
            "(root) { inout data[ranks]  given each r: data[r]  ensure each q at root: data[q] == q.data[q] }",
            |_| true,
            true,
        ),
        (
            "(root) { inout data[ranks]  given root: data  ensure each r: data[r] == root.data[r] }",
            |_| true,
            true,
        ),
        ("{ inout data[ranks]  ensure each r: data[r] == reduce q: q.data[r] }", |_| true, true),
        ("{ inout data  ensure each r: data == reduce q in 0..=r: q.data }", |_| true, true),
        ("{ inout data  ensure each r in 1..n: data == reduce q in 0..r: q.data }", |_| true, true),
        // Two buffers are two columns, and the facts tie one to the other.
        (
            "{ in input[ranks]  out output[ranks]  ensure each r, q: output[q] == q.input[r] }",
            |_| false,
            true,
        ),
        ("{ in mine  out theirs  ensure each r: theirs == (r - 1) % n . mine }", |_| false, true),
        // Blocks of different numbers hang together but for one rank.
        (
            "{ inout data[ranks]  ensure each r: data[r] == ((r + 1) % n) . data[(r + 1) % n] }",
            |n| n == 1,
            false,
        ),
        // Rank by rank, upwards and downwards.
        ("{ inout data  ensure each r in 1..n: data == (r - 1) . data }", |_| true, true),
        ("{ inout data  ensure each r in 0..n-1: data == (r + 1) . data }", |_| true, true),
        // Pairs of ranks that nothing ties to other pairs.
        ("{ inout data  ensure each r where r % 2 == 1: data == (r - 1) . data }", |n| n < 4, false),
        // Ranks that no fact names join the others if these are of one class.
        ("{ inout data  given 0: data  ensure 0: data == 0 . data }", |_| true, true),
        ("{ inout data  ensure each r where r < 2: data == 0 . data }", |_| true, true),
        ("{ inout data  ensure each r where r >= 2 and r < 4: data == 2 . data }", |n| n != 2, true),
        ("{ inout data  ensure each r: data == reduce q where q % 2 == 0: q.data }", |_| true, false),
    ];

    #[test]
    fn columns_are_classes_only_where_counting_out_says_so() {
        for (text, _, seen) in CASES {
            let collective = resolved(&format!("collective c{text}"));
            for ranks in 1..13 {
                for root in 0..if collective.rooted { ranks } else { 1 } {
                    let (quick, slow) = both(&collective, ranks, root);
                    assert!(
                        !quick || slow,
                        "{text} for n = {ranks}, root = {root} is said to be what it is not"
                    );
                    assert!(quick == slow || !seen, "{text} for n = {ranks}, root = {root} is not seen");
                }
            }
        }
    }

    #[test]
    fn counting_out_says_what_a_reader_would() {
        for (text, yes, _) in CASES {
            let collective = resolved(&format!("collective c{text}"));
            let counts = |holds: &dyn Fn(i64) -> bool| (1..13).filter(|&n| holds(n)).collect::<Vec<i64>>();
            assert_eq!(counts(&|n| both(&collective, n, 0).1), counts(&yes), "{text}");
        }
    }

    #[test]
    fn long_chains_are_followed_from_either_end() {
        for text in [CASES[12].0, CASES[13].0] {
            assert_eq!(both(&resolved(&format!("collective c{text}")), 64, 0), (true, true), "{text}");
        }
    }
}
