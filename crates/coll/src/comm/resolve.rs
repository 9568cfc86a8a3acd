//! From a request to what is looked up and run: checks everything that can be known without the other ranks, before
//! anything is sent, and allocates nothing.

use crate::comm::custom::{Buffer, Custom};
use crate::comm::error::Refusal;
use crate::comm::op::OpId;
use crate::comm::request::{Counts, Displacements, Request, What};
use crate::comm::types::Types;
use crate::comm::{Op, View, ViewMut};
use coll_base::DType;
use coll_exec::{BufferMemory, Placement};
use std::hash::Hasher;

/// What bound plans are kept by: calls with equal keys (and equal counts, of which it holds a hash) run the same bound plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) what: What,
    pub(crate) dtype: DType,
    pub(crate) in_place: bool,
    /// The order of reductions depends on rank numbers alone.
    pub(crate) deterministic: bool,
    /// As far as they mean something for the call.
    pub(crate) types: Types,
    /// `count` is a hash of counts.
    pub(crate) unequal: bool,
    /// Root or peer.
    pub(crate) root: u32,
    /// Tells equal calls of one group apart, which run at the same time.
    pub(crate) copy: u32,
    pub(crate) op: OpId,
    /// Elements of a block.
    pub(crate) count: u64,
    /// The custom schedule's number; 0 for the library's.
    pub(crate) custom: u64,
}

/// A request that this rank can carry out.
#[derive(Debug)]
pub(crate) struct Resolved<'a> {
    pub(crate) key: Key,
    pub(crate) counts: Counts<'a>,
    pub(crate) displacements: Displacements<'a>,
    /// Elements of the input and of the output, where blocks are displaced.
    pub(crate) lengths: [u64; 2],
    /// Elements of this rank's own block.
    pub(crate) own: u64,
    pub(crate) op: Option<Op>,
    pub(crate) custom: Option<&'a Custom>,
    pub(crate) memory: Memories<'a>,
}

/// The buffers, in the contract's order. Up to two need no allocation.
#[derive(Debug)]
pub(crate) enum Memories<'a> {
    Few([BufferMemory<'a>; 2], usize),
    Many(Vec<BufferMemory<'a>>),
}

impl<'a> Memories<'a> {
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [BufferMemory<'a>] {
        match self {
            Memories::Few(both, used) => &mut both[..*used],
            Memories::Many(all) => all,
        }
    }

    pub(crate) fn as_slice(&self) -> &[BufferMemory<'a>] {
        match self {
            Memories::Few(both, used) => &both[..*used],
            Memories::Many(all) => all,
        }
    }

    pub(crate) fn placements(&self) -> impl Iterator<Item = Placement> {
        self.as_slice().iter().map(|memory| match memory {
            BufferMemory::Separate { .. } => Placement::Separate,
            BufferMemory::InPlace(_) => Placement::InPlace,
        })
    }
}

/// Elements of a block, and of this rank's own.
struct Sizes {
    count: u64,
    own: u64,
    unequal: bool,
}

impl<'a> Request<'a> {
    /// Checks the request on this rank. The refusal comes with the call in words.
    pub(crate) fn resolve(mut self, rank: u32, world: u32) -> Result<Resolved<'a>, (Refusal, String)> {
        if matches!(self.counts, Counts::AtRoot(_)) && rank != self.root {
            // Others may say it too, and whatever they say is of no use.
            self.counts = Counts::AtRoot(None);
            self.displacements = Displacements::default();
        }
        let checked = self.dtype().and_then(|dtype| Ok((dtype, self.sizes(rank, world)?)));
        let (dtype, Sizes { mut count, own, unequal }) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return Err((refusal, self.describe())),
        };
        let mut lengths = [0; 2];
        if self.displacements.any() {
            lengths = match self.displaced_lengths(world) {
                Ok(lengths) => lengths,
                Err(refusal) => return Err((refusal, self.describe())),
            };
            count = displaced_hash(count, lengths, self.displacements);
        }
        let key = Key {
            what: self.what,
            dtype,
            in_place: self.in_place,
            deterministic: false,
            types: Types { accumulate: None, wire: None },
            unequal,
            root: self.root,
            copy: 0,
            op: self.op.as_ref().map_or(OpId::None, Op::id),
            count,
            custom: self.custom.as_ref().map_or(0, |(custom, _)| custom.id()),
        };
        let (counts, displacements) = (self.counts, self.displacements);
        let (what, root) = (self.what, self.root);
        let (custom, memory) = match self.custom {
            Some((custom, buffers)) => {
                (Some(custom), Memories::Many(buffers.into_iter().map(Buffer::into_memory).collect()))
            }
            None => (None, memories(what, self.input, self.output, self.in_place, rank, root)),
        };
        Ok(Resolved { key, counts, displacements, lengths, own, op: self.op, custom, memory })
    }

    /// The one element type of all buffers.
    #[inline]
    fn dtype(&self) -> Result<DType, Refusal> {
        if let Some((_, buffers)) = &self.custom {
            let mut dtypes = buffers.iter().flat_map(Buffer::dtypes);
            // A collective without buffers has no elements either.
            let first = dtypes.next().unwrap_or(DType::U8);
            return match dtypes.find(|&dtype| dtype != first) {
                Some(other) => Err(two_types(first, other)),
                None => Ok(first),
            };
        }
        match (self.input, &self.output) {
            (Some(input), Some(output)) if input.dtype != output.dtype => {
                Err(two_types(input.dtype, output.dtype))
            }
            (Some(input), _) => Ok(input.dtype),
            (None, Some(output)) => Ok(output.dtype),
            (None, None) => Ok(DType::U8),
        }
    }

    #[inline]
    fn sizes(&self, rank: u32, world: u32) -> Result<Sizes, Refusal> {
        let n = u64::from(world);
        let even = |count| Ok(Sizes { count, own: count, unequal: false });
        if self.what.has_root() && self.root >= world {
            let reason = format!("root {} is no rank; ranks are 0..={}", self.root, world - 1);
            return Err(Refusal::Everywhere(reason));
        }
        match self.what {
            What::Barrier => even(0),
            What::Broadcast => even(self.written("the data")?),
            What::AllReduce | What::Scan | What::ExScan => self.alike().and_then(even),
            What::Reduce if self.in_place => even(self.written("the data")?),
            What::Reduce => {
                let count = self.read("the input")?;
                if rank == self.root {
                    same(
                        "the output",
                        self.written("the output")?,
                        count,
                        format_args!("as many as the input"),
                    )?;
                }
                even(count)
            }
            What::Gather | What::Scatter => self.rooted_sizes(rank, n),
            What::AllGather | What::ReduceScatter => self.scattered_sizes(rank, n),
            What::AllToAll => self.exchanged_sizes(rank, n),
            What::Send => self.peer(rank, world).and_then(|()| even(self.read("the data")?)),
            What::Receive => self.peer(rank, world).and_then(|()| even(self.written("the data")?)),
            What::Custom => {
                let Counts::Classes(counts) = self.counts else { return even(0) };
                let mut hasher = rustc_hash::FxHasher::default();
                hash_counts(&mut hasher, counts.iter().copied());
                if let Some((_, buffers)) = &self.custom {
                    buffers.iter().for_each(|buffer| hasher.write_u8(buffer.is_in_place().into()));
                }
                Ok(Sizes { count: hasher.finish(), own: 0, unequal: true })
            }
        }
    }

    /// Input and output of equal length, or one memory.
    #[inline]
    fn alike(&self) -> Result<u64, Refusal> {
        let count = self.written("the output")?;
        if !self.in_place {
            same("the output", count, self.read("the input")?, format_args!("as many as the input"))?;
        }
        Ok(count)
    }

    /// One block on each rank, and all of them at the root.
    fn rooted_sizes(&self, rank: u32, n: u64) -> Result<Sizes, Refusal> {
        let gathers = self.what == What::Gather;
        if self.in_place {
            let given = self.written("the data")?;
            let own = if rank == self.root { given / n } else { given };
            let whole = rank != self.root || given.is_multiple_of(n);
            return match whole {
                true => Ok(Sizes { count: own, own, unequal: false }),
                false => Err(Refusal::Here(uneven("the data", given, n))),
            };
        }
        let own = if gathers { self.read("this rank's block")? } else { self.written("this rank's block")? };
        let at_root = rank == self.root;
        let all = match at_root {
            false => None,
            true if gathers => Some(self.written("the output")?),
            true => Some(self.read("the input")?),
        };
        let name = if gathers { "the output" } else { "the input" };
        match (self.counts, all) {
            (Counts::AtRoot(counts), all) => {
                if let (Some(all), Some(counts)) = (all, counts) {
                    self.check_counts(name, all, counts, rank, own, n)?;
                }
                let mut hasher = rustc_hash::FxHasher::default();
                hash_counts(&mut hasher, counts.unwrap_or(&[]).iter().map(|&count| count as u64));
                hasher.write_u64(own);
                Ok(Sizes { count: hasher.finish(), own, unequal: true })
            }
            (_, Some(all)) => {
                let due = own.checked_mul(n).ok_or_else(|| too_many(own, n))?;
                same(name, all, due, format_args!("{own} for each of {n} ranks"))?;
                Ok(Sizes { count: own, own, unequal: false })
            }
            (_, None) => Ok(Sizes { count: own, own, unequal: false }),
        }
    }

    /// All blocks on every rank, and one of them that is the rank's own.
    fn scattered_sizes(&self, rank: u32, n: u64) -> Result<Sizes, Refusal> {
        let gathers = self.what == What::AllGather;
        let (all, own, name) = match (self.in_place, gathers) {
            (true, _) => (self.written("the memory")?, None, "the memory"),
            (false, true) => {
                (self.written("the output")?, Some(self.read("this rank's block")?), "the output")
            }
            (false, false) => {
                (self.read("the input")?, Some(self.written("this rank's block")?), "the input")
            }
        };
        if let Counts::Shared(counts) = self.counts {
            let own = own.or(counts.get(rank as usize).map(|&count| count as u64)).unwrap_or(0);
            self.check_counts(name, all, counts, rank, own, n)?;
            let mut hasher = rustc_hash::FxHasher::default();
            hash_counts(&mut hasher, counts.iter().map(|&count| count as u64));
            return Ok(Sizes { count: hasher.finish(), own, unequal: true });
        }
        let own = match own {
            Some(own) => own,
            None if all.is_multiple_of(n) => all / n,
            None => return Err(Refusal::Here(uneven(name, all, n))),
        };
        let due = own.checked_mul(n).ok_or_else(|| too_many(own, n))?;
        same(name, all, due, format_args!("{own} for each of {n} ranks"))?;
        Ok(Sizes { count: own, own, unequal: false })
    }

    fn exchanged_sizes(&self, rank: u32, n: u64) -> Result<Sizes, Refusal> {
        let (input, output) = (self.read("the input")?, self.written("the output")?);
        let Counts::Pairs { send, receive } = self.counts else {
            same("the output", output, input, format_args!("as many as the input"))?;
            if !input.is_multiple_of(n) {
                return Err(Refusal::Here(uneven("the input", input, n)));
            }
            return Ok(Sizes { count: input / n, own: input / n, unequal: false });
        };
        let own = |counts: &[usize]| counts.get(rank as usize).map_or(0, |&count| count as u64);
        self.check_counts("the input", input, send, rank, own(send), n)?;
        self.check_counts("the output", output, receive, rank, own(receive), n)?;
        if own(send) != own(receive) {
            let (sent, received) = (own(send), own(receive));
            return Err(Refusal::Here(format!(
                "this rank sends itself {sent} elements and is to receive {received} from itself"
            )));
        }
        let mut hasher = rustc_hash::FxHasher::default();
        hash_counts(&mut hasher, send.iter().chain(receive).map(|&count| count as u64));
        Ok(Sizes { count: hasher.finish(), own: own(send), unequal: true })
    }

    /// Counts of `n` blocks that lie in a buffer of `all` elements; this rank's block is given with `own`.
    fn check_counts(
        &self,
        name: &str,
        all: u64,
        counts: &[usize],
        rank: u32,
        own: u64,
        n: u64,
    ) -> Result<(), Refusal> {
        if counts.len() as u64 != n {
            let reason = format!("{} counts are given for {n} ranks", counts.len());
            return Err(Refusal::Here(reason));
        }
        // Displaced blocks are held to the buffer's length where they are bound.
        if !self.displacements.any() {
            let sum = counts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count as u64));
            let Some(due) = sum else {
                return Err(Refusal::Here("the counts add up to more than 2^64".into()));
            };
            same(name, all, due, format_args!("what the counts add up to"))?;
        }
        let listed = counts[rank as usize] as u64;
        same("this rank's block", own, listed, format_args!("what its count says"))
    }

    /// Elements of the input and the output of a call whose blocks are displaced.
    #[cold]
    fn displaced_lengths(&self, world: u32) -> Result<[u64; 2], Refusal> {
        let Displacements { input, output } = self.displacements;
        let has_blocks = match self.counts {
            Counts::Shared(_) | Counts::AtRoot(_) => input.is_some() != output.is_some(),
            Counts::Pairs { .. } => true,
            Counts::Even | Counts::Classes(_) => false,
        };
        if !has_blocks || self.in_place {
            let reason = "displacements are for calls with a count for each rank, out of place: `at` for one \
                          buffer of blocks, `at_both` for an all-to-all";
            return Err(Refusal::Here(reason.to_string()));
        }
        for displacements in [input, output].into_iter().flatten() {
            if displacements.len() != world as usize {
                let found = displacements.len();
                return Err(Refusal::Here(format!("{found} displacements are given for {world} ranks")));
            }
        }
        let length = |elements: Option<u64>| elements.unwrap_or(0);
        Ok([
            length(self.input.and_then(|view| view.elements())),
            length(self.output.as_ref().and_then(ViewMut::elements)),
        ])
    }

    fn peer(&self, rank: u32, world: u32) -> Result<(), Refusal> {
        let peer = self.root;
        if peer >= world {
            let reason = format!("rank {peer} does not exist; ranks are 0..={}", world - 1);
            return Err(Refusal::Everywhere(reason));
        }
        if peer == rank {
            let reason = "a rank neither sends to nor receives from itself; copy the elements".to_string();
            return Err(Refusal::Everywhere(reason));
        }
        Ok(())
    }

    #[inline]
    fn read(&self, name: &str) -> Result<u64, Refusal> {
        let Some(view) = &self.input else { return Err(Refusal::Here(format!("{name} is not given"))) };
        view.elements().ok_or_else(|| broken_element(name, view.dtype, view.bytes.len()))
    }

    #[inline]
    fn written(&self, name: &str) -> Result<u64, Refusal> {
        let Some(view) = &self.output else { return Err(Refusal::Here(format!("{name} is not given"))) };
        view.elements().ok_or_else(|| broken_element(name, view.dtype, view.bytes.len()))
    }
}

/// Buffers as the contract has them.
#[inline]
pub(crate) fn memories<'a>(
    what: What,
    input: Option<View<'a>>,
    output: Option<ViewMut<'a>>,
    in_place: bool,
    rank: u32,
    root: u32,
) -> Memories<'a> {
    let none = || BufferMemory::InPlace(&mut []);
    let input = input.map_or(&[][..], |view| view.bytes);
    let output = output.map_or(&mut [][..], |view| view.bytes);
    let one = |memory| Memories::Few([memory, none()], 1);
    match what {
        // What a rank is not promised is left alone, and what it is not asked for not read.
        What::Reduce | What::Gather if in_place && rank != root => return one(BufferMemory::input(output)),
        What::ExScan if in_place && rank == 0 => return one(BufferMemory::input(output)),
        What::Scatter if in_place && rank != root => return one(BufferMemory::output(output)),
        _ if in_place => return one(BufferMemory::InPlace(output)),
        _ => {}
    }
    match what {
        What::Barrier => Memories::Few([none(), none()], 0),
        What::AllToAll => Memories::Few([BufferMemory::input(input), BufferMemory::output(output)], 2),
        What::Send => one(BufferMemory::input(input)),
        What::Receive => one(BufferMemory::output(output)),
        // What a rank is not promised is left alone.
        What::Reduce | What::Gather if rank != root => one(BufferMemory::input(input)),
        What::ExScan if rank == 0 => one(BufferMemory::input(input)),
        What::Scatter if rank != root => one(BufferMemory::output(output)),
        _ => one(BufferMemory::Separate { input, output }),
    }
}

#[inline]
fn same(name: &str, found: u64, due: u64, why: std::fmt::Arguments<'_>) -> Result<(), Refusal> {
    if found == due {
        return Ok(());
    }
    Err(Refusal::Here(format!("{name} has {found} elements, and must have {due}: {why}")))
}

fn two_types(one: DType, other: DType) -> Refusal {
    Refusal::Here(format!("buffers of {one} and of {other}; all buffers of a call have one element type"))
}

fn uneven(name: &str, all: u64, n: u64) -> String {
    format!("{name} has {all} elements, which do not divide into {n} equal blocks")
}

fn too_many(own: u64, n: u64) -> Refusal {
    Refusal::Here(format!("{n} blocks of {own} elements are more than 64 bits can count"))
}

fn broken_element(name: &str, dtype: DType, bytes: usize) -> Refusal {
    Refusal::Here(format!("{name} has {bytes} bytes, which are no whole number of {dtype}"))
}

fn displaced_hash(count: u64, lengths: [u64; 2], displacements: Displacements<'_>) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hash_counts(&mut hasher, [count].into_iter().chain(lengths));
    let Displacements { input, output } = displacements;
    for displacements in [input, output] {
        hasher.write_u8(displacements.is_some().into());
        hash_counts(&mut hasher, displacements.unwrap_or(&[]).iter().map(|&at| at as u64));
    }
    hasher.finish()
}

fn hash_counts(hasher: &mut rustc_hash::FxHasher, counts: impl Iterator<Item = u64>) {
    counts.for_each(|count| hasher.write_u64(count));
}
