//! A call that is bound: plan, counts, buffers' lengths and operator made into what runs. Made at the first call of its
//! kind, kept in a cache.

use crate::comm::choice::{choose, imposed};
use crate::comm::custom;
use crate::comm::error::Refusal;
use crate::comm::message;
use crate::comm::request::{Counts, Displacements, What};
use crate::comm::resolve::{Key, Resolved};
use crate::comm::store::{self, Stored};
use crate::comm::words::CallWords;
use crate::select::Chooser;
use coll_contract::Contract;
use coll_cost::Layout;
use coll_exec::{Binding, Bound, Link, Placement, Spread};
use coll_plan::RankPlan;
use std::sync::Arc;

/// Bytes that a bound plan holds beside its scratch, roughly: staging and tables.
const FIXED_BYTES: u64 = 160 << 10;

/// A bound call.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) bound: Bound,
    pub(crate) call: Arc<CallWords>,
    /// The links it uses, and in which directions.
    pub(crate) ends: Vec<End>,
    /// What `key.count` is a hash of, if it is one.
    counts: Vec<u64>,
    /// Whether its links are made.
    pub(crate) connected: bool,
    /// How many prepared calls hold it: these are not forgotten.
    pub(crate) held: Arc<()>,
    /// When it was last used, in lookups.
    pub(crate) used: u64,
}

/// A link and the directions in which a plan uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) link: Link,
    pub(crate) sends: bool,
    pub(crate) receives: bool,
}

impl Entry {
    /// Chooses a schedule and binds it.
    pub(crate) fn new(
        resolved: &Resolved<'_>,
        rank: u32,
        world: u32,
        chooser: &Chooser,
        place: (&'static str, Layout),
    ) -> Result<Entry, Refusal> {
        let key = resolved.key;
        let stored = plan(resolved, rank, world, chooser, place)?;
        let contract = &stored.plan.contract;
        let counts = class_counts(resolved, contract, rank, world);
        let reducer = match &resolved.op {
            None => None,
            Some(op) => {
                let reducer = op.reducer(key.dtype);
                Some(reducer.map_err(|error| Refusal::Everywhere(error.to_string()))?)
            }
        };
        let slice = stored.plan.slice(rank).ok_or_else(|| {
            Refusal::Everywhere(format!("{} holds nothing for rank {rank}", stored.plan.name))
        })?;
        let displaced = displaced(resolved, rank);
        let spreads: Vec<Spread<'_>> = displaced
            .iter()
            .map(|(buffer, output, starts)| Spread {
                buffer: *buffer,
                output: *output,
                starts,
                len: resolved.lengths[usize::from(*output)],
            })
            .collect();
        let binding = Binding {
            plan: &slice,
            rank,
            counts: &counts,
            element_size_bytes: key.dtype.size_bytes(),
            reducer: reducer.as_ref(),
            placements: &resolved.memory.placements().collect::<Vec<_>>(),
        };
        let bound = Bound::spread(binding, key.dtype, &spreads)?;
        let ends = slice.rank(rank).map_or(Vec::new(), ends);
        let call = CallWords::new(resolved, &slice.name, &stored.identity);
        Ok(Entry {
            key,
            bound,
            call: Arc::new(call),
            ends,
            counts: if key.unequal { counted(resolved).collect() } else { Vec::new() },
            connected: false,
            held: Arc::new(()),
            used: 0,
        })
    }

    pub(crate) fn links(&self) -> Vec<Link> {
        self.ends.iter().map(|end| end.link).collect()
    }

    pub(crate) fn is_held(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.bound.scratch_bytes() + FIXED_BYTES
    }

    /// Keys with equal hashes of counts may still be of different calls.
    #[inline]
    pub(crate) fn serves(&self, resolved: &Resolved<'_>) -> bool {
        !self.key.unequal || self.counts.iter().copied().eq(counted(resolved))
    }
}

/// Counts as the caller gave them, with what else the hash in the key is made of.
fn counted<'r>(resolved: &'r Resolved<'_>) -> impl Iterator<Item = u64> + 'r {
    let (first, second, classes): (&[usize], &[usize], &[u64]) = match resolved.counts {
        Counts::Even => (&[], &[], &[]),
        Counts::Shared(counts) => (counts, &[], &[]),
        Counts::AtRoot(counts) => (counts.unwrap_or(&[]), &[], &[]),
        Counts::Pairs { send, receive } => (send, receive, &[]),
        Counts::Classes(counts) => (&[], &[], counts),
    };
    let custom = resolved.key.what == What::Custom;
    let places = resolved.memory.placements().filter(move |_| custom);
    let places = places.map(|placement| (placement == Placement::InPlace).into());
    let given = first.iter().chain(second).map(|&count| count as u64).chain(classes.iter().copied());
    let Displacements { input, output } = resolved.displacements;
    let displaced = [input, output].into_iter().flat_map(|displacements| {
        let at = displacements.unwrap_or(&[]).iter().map(|&at| at as u64);
        [displacements.is_some().into()].into_iter().chain(at)
    });
    let displaced = resolved.lengths.into_iter().chain(displaced);
    let displaced = displaced.filter(|_| resolved.displacements.any());
    given.chain([resolved.own]).chain(places).chain(displaced)
}

/// Where displaced blocks begin: the buffer that they are of, whether it is its output, and their first elements.
fn displaced(resolved: &Resolved<'_>, rank: u32) -> Vec<(usize, bool, Vec<u64>)> {
    let Displacements { input, output } = resolved.displacements;
    // A rank that is not the root has no blocks but its own.
    let has_all = !matches!(resolved.counts, Counts::AtRoot(_)) || rank == resolved.key.root;
    let first = |at: &[usize]| at.iter().map(|&at| at as u64).collect();
    let of =
        |at: Option<&[usize]>, buffer: usize, is_output: bool| at.map(|at| (buffer, is_output, first(at)));
    let second_buffer = usize::from(resolved.key.what == What::AllToAll);
    [of(input, 0, false), of(output, second_buffer, true)].into_iter().flatten().filter(|_| has_all).collect()
}

fn plan(
    resolved: &Resolved<'_>,
    rank: u32,
    world: u32,
    chooser: &Chooser,
    place: (&'static str, Layout),
) -> Result<Stored, Refusal> {
    let key = &resolved.key;
    let ordered = resolved.op.as_ref().is_some_and(|op| !op.is_commutative());
    if let Some(custom) = resolved.custom {
        let Counts::Classes(counts) = resolved.counts else {
            return Err(Refusal::Everywhere("a custom collective takes its counts by class".into()));
        };
        custom::check(custom, counts, resolved.memory.as_slice().len())?;
        if ordered && custom.contract().reduces() && !custom.stored().ordered {
            return Err(Refusal::Everywhere(out_of_order(resolved, custom.name())));
        }
        return Ok(custom.stored().clone());
    }
    let Some(collective) = key.what.collective() else {
        return Ok(message::plan(key.what == What::Send, rank, key.root, world, key.types.wire));
    };
    let stored = match imposed(resolved, collective, world, chooser) {
        Some(imposed) => imposed?,
        None => {
            let (candidate, made) = choose(resolved, collective, world, chooser, place)?;
            let root = if key.what.has_root() { key.root } else { 0 };
            store::library(&candidate, world, root, rank, key.types, made)?
        }
    };
    if ordered && !stored.ordered {
        return Err(Refusal::Everywhere(out_of_order(resolved, &stored.plan.name)));
    }
    if key.unequal && stored.equal_blocks_only {
        let reason = format!("{} serves blocks of equal size only", stored.plan.name);
        return Err(Refusal::Everywhere(reason));
    }
    Ok(stored)
}

fn out_of_order(resolved: &Resolved<'_>, schedule: &str) -> String {
    let op = resolved.op.as_ref().map_or(String::new(), |op| op.words());
    format!("operator {op} does not commute, and {schedule} does not keep the operands in rank order")
}

/// The element count of every class, as far as this rank's own blocks tell.
fn class_counts(resolved: &Resolved<'_>, contract: &Contract, rank: u32, world: u32) -> Vec<u64> {
    let classes = contract.classes.count as usize;
    let mut counts = vec![0; classes];
    let mut set = |buffer: u32, block: u32, count: u64| {
        counts[contract.class(rank, buffer, block) as usize] = count;
    };
    match resolved.counts {
        Counts::Even => counts.fill(resolved.key.count),
        Counts::Classes(given) => counts.copy_from_slice(given),
        Counts::Shared(given) | Counts::AtRoot(Some(given)) => {
            (0..world).for_each(|block| set(0, block, given[block as usize] as u64));
        }
        Counts::AtRoot(None) => set(0, rank, resolved.own),
        Counts::Pairs { send, receive } => {
            (0..world).for_each(|block| set(0, block, send[block as usize] as u64));
            (0..world).for_each(|block| set(1, block, receive[block as usize] as u64));
        }
    }
    counts
}

fn ends(part: &RankPlan) -> Vec<End> {
    let mut ends: Vec<End> = Vec::new();
    for op in &part.ops {
        let (to, from) = (op.action.sends_to(), op.action.receives_from());
        let Some((peer, channel)) = to.or(from) else { continue };
        let link = Link { peer, channel };
        ends.push(End { link, sends: to.is_some(), receives: from.is_some() });
    }
    ends.sort_unstable_by_key(|end| end.link);
    ends.dedup_by(|next, kept| {
        let same = next.link == kept.link;
        if same {
            kept.sends |= next.sends;
            kept.receives |= next.receives;
        }
        same
    });
    ends
}
