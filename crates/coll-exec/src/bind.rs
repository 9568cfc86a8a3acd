//! Binding: a plan, a rank, counts and an operator become a [`Bound`] that can run any number of times. All that
//! running needs is computed and allocated here.

use crate::code::{Code, Kind};
use crate::error::BindError;
use crate::layout::Layout;
use crate::memory::Placement;
use crate::short::Short;
use crate::state::State;
use coll_base::DType;
use coll_contract::Value;
use coll_kernel::{Cast, Reducer};
use coll_plan::{Line, OpId, Plan};

/// Bytes that are received before they are reduced, where a transport does not show them where they lie: they stay in
/// the second-level cache.
const STAGING_BYTES: usize = 128 << 10;

/// What a plan is bound to. Every rank binds the same plan, counts and operator.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    /// The plan, or this rank's slice of it. It is verified here, whole: give a slice where a plan is large.
    pub plan: &'a Plan,
    /// The rank that runs it here.
    pub rank: u32,
    /// Elements of a block of each count class.
    pub counts: &'a [u64],
    /// Bytes of an element in the caller's buffers.
    pub element_size_bytes: u64,
    /// The operator, on the elements of the caller's buffers. Give one exactly if the collective reduces: a slice cannot
    /// always tell. Where the plan accumulates in a wider type, it is the binding that makes it do so.
    pub reducer: Option<&'a Reducer>,
    /// How each buffer will be given.
    pub placements: &'a [Placement],
}

/// Where the blocks of one memory lie, if not one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Spread<'a> {
    /// The buffer, by its number in the contract. It is bound as [`Placement::Separate`].
    pub buffer: usize,
    /// Its output, or else its input.
    pub output: bool,
    /// For each block of the buffer its first element. What is said of blocks that this memory does not have counts for
    /// nothing.
    pub starts: &'a [u64],
    /// Elements of the whole memory, gaps included.
    pub len: u64,
}

/// A plan bound to a rank, counts, an operator and placements. Scratch memory lives here.
pub struct Bound {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    pub(crate) name: String,
    pub(crate) lines: Vec<Line>,
    /// For each operation, its line.
    pub(crate) line_of: Vec<u32>,
    pub(crate) reducer: Option<Reducer>,
    /// Whether elements are prepared and finished.
    pub(crate) prepared: bool,
    /// Bytes of the operator's working element.
    pub(crate) element_bytes: usize,
    pub(crate) code: Code,
    pub(crate) layout: Layout,
    pub(crate) scratch: Vec<u8>,
    pub(crate) staging: Vec<u8>,
    pub(crate) state: State,
    /// If it is of the kind that is run straight through.
    pub(crate) short: Option<Short>,
}

impl Bound {
    /// Computes every offset and allocates all scratch.
    pub fn new(binding: Binding<'_>) -> Result<Bound, BindError> {
        Bound::make(binding, None, &[])
    }

    /// As [`Bound::new`], for buffers of elements of a type: a plan whose messages are of another type needs to know it.
    pub fn typed(binding: Binding<'_>, dtype: DType) -> Result<Bound, BindError> {
        Bound::make(binding, Some(dtype), &[])
    }

    /// Like [`Bound::typed`], where some memories' blocks lie anywhere in them. Blocks of an output must not overlap.
    pub fn spread(binding: Binding<'_>, dtype: DType, spreads: &[Spread<'_>]) -> Result<Bound, BindError> {
        Bound::make(binding, Some(dtype), spreads)
    }

    fn make(binding: Binding<'_>, dtype: Option<DType>, spreads: &[Spread<'_>]) -> Result<Bound, BindError> {
        let draft = Draft::new(binding, dtype, spreads)?;
        let Binding { plan, rank, .. } = binding;
        let part = plan.rank(rank).expect("invariant: the draft was made of it");
        let state = State::new(&draft.code, plan.slots)?;
        let casts = draft.code.cast.is_some();
        let short = if plan.slots == 0 && !casts { Short::new(&draft.code) } else { None };
        let staging_bytes =
            if draft.reduces() || casts { STAGING_BYTES } else { crate::receive::SMALL_BYTES };
        Ok(Bound {
            rank,
            world: plan.world(),
            name: plan.name.clone(),
            lines: plan.lines.clone(),
            line_of: part.ops.iter().map(|op| op.line).collect(),
            element_bytes: draft.element_bytes(),
            reducer: draft.reducer,
            prepared: draft.prepared,
            scratch: allocate(draft.layout.scratch_bytes)?,
            staging: allocate(staging_bytes)?,
            layout: draft.layout,
            code: draft.code,
            state,
            short,
        })
    }

    /// The rank it is bound to.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// The schedule's full name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The links that it sends or receives on, sorted.
    pub fn links(&self) -> impl Iterator<Item = crate::Link> + '_ {
        self.code.links.iter().map(|bound| bound.link)
    }

    /// Bytes of scratch beside the caller's buffers: slots, blocks that nothing is promised about, working elements.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.len() as u64
    }

    /// Bytes of a buffer's input and output, as [`crate::BufferMemory`] must give them. In place all is output.
    pub fn buffer_bytes(&self, buffer: usize) -> Option<[u64; 2]> {
        self.layout.buffers.get(buffer).map(|buffer| buffer.sizes)
    }
}

/// All that is known of a rank before it has any memory.
pub(crate) struct Draft {
    /// The operator, in the form that it works in.
    pub(crate) reducer: Option<Reducer>,
    /// Whether elements are prepared and finished.
    pub(crate) prepared: bool,
    pub(crate) layout: Layout,
    pub(crate) code: Code,
}

impl Draft {
    pub(crate) fn new(
        binding: Binding<'_>,
        dtype: Option<DType>,
        spreads: &[Spread<'_>],
    ) -> Result<Draft, BindError> {
        let Binding { plan, rank, .. } = binding;
        coll_plan::verify(plan).map_err(|error| BindError::Plan { what: error.to_string() })?;
        let part = plan.rank(rank).filter(|part| part.rank == rank).ok_or_else(|| BindError::NoPart {
            rank,
            found: match plan.contract.only {
                Some(only) => format!("rank {only} alone"),
                None => format!("{} ranks", plan.world()),
            },
        })?;
        check_tables(&binding)?;
        let wide = binding.reducer.filter(|_| plan.accumulate.is_some()).and_then(Reducer::in_f32);
        let binding = Binding { reducer: wide.as_ref().or(binding.reducer), ..binding };
        let prepared = is_prepared(&binding)?;
        let working_bytes = binding.reducer.filter(|_| prepared).map(Reducer::working_size_bytes);
        let layout = Layout::new(&binding, spreads, part, working_bytes)?;
        let cast = cast(&binding, dtype, prepared)?;
        let code = Code::new(plan, part, &layout, cast)?;
        check_reducer(&binding, &code, prepared)?;
        Ok(Draft { reducer: binding.reducer.cloned(), prepared, layout, code })
    }

    /// Bytes of the operator's working element.
    pub(crate) fn element_bytes(&self) -> usize {
        self.reducer.as_ref().map_or(1, |reducer| reducer.working_size_bytes() as usize)
    }

    fn reduces(&self) -> bool {
        self.code.ops.iter().any(|op| reduces(op.kind))
    }
}

impl std::fmt::Debug for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bound({} on rank {} of {})", self.name, self.rank, self.world)
    }
}

pub(crate) fn allocate(bytes: usize) -> Result<Vec<u8>, BindError> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes).map_err(|_| BindError::Memory { needed_bytes: bytes as u64 })?;
    memory.resize(bytes, 0);
    Ok(memory)
}

fn check_tables(binding: &Binding<'_>) -> Result<(), BindError> {
    let (expected, found) = (binding.plan.contract.classes.count, binding.counts.len());
    if expected as usize != found {
        return Err(BindError::Counts { expected, found });
    }
    let (expected, found) = (binding.plan.contract.buffers.len(), binding.placements.len());
    if expected != found { Err(BindError::Placements { expected, found }) } else { Ok(()) }
}

/// Whether elements are prepared: if the operator does so and the collective reduces. A slice in which nothing is
/// ensured cannot tell, and believes the caller, who gave an operator.
fn is_prepared(binding: &Binding<'_>) -> Result<bool, BindError> {
    let contract = &binding.plan.contract;
    let Some(reducer) = binding.reducer.filter(|reducer| !reducer.is_direct()) else { return Ok(false) };
    let silent = contract.only.is_some() && contract.ensures.is_empty();
    if !contract.reduces() && !silent {
        return Ok(false);
    }
    let copies = contract.values.iter().any(|value| matches!(value, Value::Copy(_)));
    if copies && !reducer.keeps_single_values() {
        let operator = operator(reducer);
        return Err(BindError::Mixed { collective: contract.collective.clone(), operator });
    }
    let leaves = contract.values.iter().map(|value| value.leaves().len()).max().unwrap_or(0);
    if leaves as u64 > reducer.leaves_max(contract.ranks.into()) {
        return Err(BindError::Leaves { operator: operator(reducer), ranks: contract.ranks, leaves });
    }
    Ok(true)
}

/// What makes elements those of messages and back, if the plan sends them as another type.
fn cast(binding: &Binding<'_>, dtype: Option<DType>, prepared: bool) -> Result<Option<Cast>, BindError> {
    let Some(wire) = binding.plan.wire else { return Ok(None) };
    let memory = match binding.reducer {
        Some(reducer) if prepared => reducer.working_dtype(),
        reducer => match dtype.or(reducer.map(Reducer::dtype)) {
            None => return Err(BindError::NoType { wire }),
            known => known,
        },
    };
    Ok(memory.and_then(|memory| Cast::narrowing(memory, wire)))
}

fn check_reducer(binding: &Binding<'_>, code: &Code, prepared: bool) -> Result<(), BindError> {
    let first = code.ops.iter().position(|op| reduces(op.kind));
    match (binding.reducer, first) {
        (None, Some(op)) => Err(BindError::NoReducer { op: op as OpId }),
        (Some(reducer), first) if first.is_some() || prepared => {
            let (expected_bytes, found_bytes) = (reducer.dtype().size_bytes(), binding.element_size_bytes);
            match expected_bytes == found_bytes {
                true => Ok(()),
                false => {
                    Err(BindError::ElementSize { operator: operator(reducer), expected_bytes, found_bytes })
                }
            }
        }
        _ => Ok(()),
    }
}

fn reduces(kind: Kind) -> bool {
    matches!(kind, Kind::Reduce(_) | Kind::Recv { reduces: Some(_), .. })
}

fn operator(reducer: &Reducer) -> String {
    format!("`{}` on {}", reducer.name(), reducer.dtype())
}
