//! Collectives of one's own: a schedule, bundle or plan made ready for a communicator's ranks, and its buffers.

use crate::comm::error::Refusal;
use crate::comm::store::{self, NoPlan, Stored, WHOLE_RANKS_MAX};
use crate::comm::{CommError, View, ViewMut};
use crate::{Bundle, Options, Source};
use coll_base::DType;
use coll_contract::Contract;
use coll_exec::BufferMemory;
use coll_sema::Instance;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// A schedule of one's own, proved for a communicator's ranks. Made by
/// [`Communicator::load`](crate::Communicator::load) and its siblings; cheap to clone.
#[derive(Clone, Debug)]
pub struct Custom(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u64,
    stored: Stored,
}

/// One buffer of a custom collective: an `in` buffer has an input, an `out` buffer an output, an `inout` buffer both or is
/// given in place. Blocks lie one after the other: in an input those that the rank is given, in an output those that it is
/// promised, in place all.
#[derive(Debug)]
pub enum Buffer<'a> {
    /// For an `in` buffer.
    Input(View<'a>),
    /// For an `out` buffer.
    Output(ViewMut<'a>),
    /// For an `inout` buffer, called out of place.
    Separate(View<'a>, ViewMut<'a>),
    /// For an `inout` buffer, called in place.
    InPlace(ViewMut<'a>),
}

impl<'a> Buffer<'a> {
    /// For an `in` buffer.
    pub fn input(input: impl Into<View<'a>>) -> Buffer<'a> {
        Buffer::Input(input.into())
    }

    /// For an `out` buffer.
    pub fn output(output: impl Into<ViewMut<'a>>) -> Buffer<'a> {
        Buffer::Output(output.into())
    }

    /// For an `inout` buffer, called out of place.
    pub fn separate(input: impl Into<View<'a>>, output: impl Into<ViewMut<'a>>) -> Buffer<'a> {
        Buffer::Separate(input.into(), output.into())
    }

    /// For an `inout` buffer, called in place.
    pub fn in_place(memory: impl Into<ViewMut<'a>>) -> Buffer<'a> {
        Buffer::InPlace(memory.into())
    }

    pub(crate) fn dtypes(&self) -> impl Iterator<Item = DType> {
        let (first, second) = match self {
            Buffer::Input(view) => (view.dtype, None),
            Buffer::Output(view) | Buffer::InPlace(view) => (view.dtype, None),
            Buffer::Separate(input, output) => (input.dtype, Some(output.dtype)),
        };
        std::iter::once(first).chain(second)
    }

    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self, Buffer::InPlace(_))
    }

    pub(crate) fn into_memory(self) -> BufferMemory<'a> {
        match self {
            Buffer::Input(view) => BufferMemory::input(view.bytes),
            Buffer::Output(view) => BufferMemory::output(view.bytes),
            Buffer::Separate(input, output) => {
                BufferMemory::Separate { input: input.bytes, output: output.bytes }
            }
            Buffer::InPlace(memory) => BufferMemory::InPlace(memory.bytes),
        }
    }
}

impl Custom {
    /// The schedule's name.
    pub fn name(&self) -> &str {
        &self.0.stored.plan.name
    }

    /// What it keeps: its buffers, and the count class of each block.
    pub fn contract(&self) -> &Contract {
        &self.0.stored.plan.contract
    }

    /// The element count of every class when the first buffer has `elements` elements on each rank, spread over its blocks
    /// as evenly as they go: what [`Communicator::run_custom`](crate::Communicator::run_custom) takes.
    pub fn counts(&self, elements: u64) -> Result<Vec<u64>, CommError> {
        self.contract()
            .counts(elements)
            .map_err(|error| CommError::Schedule { name: self.name().to_string(), reason: error.to_string() })
    }

    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    pub(crate) fn stored(&self) -> &Stored {
        &self.0.stored
    }

    fn new(stored: Stored) -> Custom {
        let digest = Sha256::digest(stored.identity.as_bytes());
        // 0 stands for the library's schedules.
        let id = u64::from_le_bytes(std::array::from_fn(|at| digest[at])) | 1;
        Custom(Arc::new(Inner { id, stored }))
    }
}

/// A schedule of a source.
pub(crate) fn of_source(
    source: &Source,
    schedule: Option<&str>,
    params: &[(&str, i64)],
    root: u32,
    (rank, world): (u32, u32),
) -> Result<Custom, CommError> {
    let file = || source.map.name(source.main).to_string();
    let refuse = |name: String, reason: String| CommError::Schedule { name, reason };
    if let Some(error) = source.diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
        return Err(refuse(file(), format!("{}: {}", error.code, error.message)));
    }
    let infos = source.schedules();
    let names = || infos.iter().map(|info| format!("`{}`", info.name)).collect::<Vec<_>>().join(", ");
    let at = match schedule {
        Some(name) => infos.iter().position(|info| info.name == name),
        None => (infos.len() == 1).then_some(0),
    };
    let Some(at) = at else {
        let wanted = schedule.map_or("name one".to_string(), |name| format!("it has no `{name}`"));
        return Err(refuse(file(), format!("it declares the schedules {}; {wanted}", names())));
    };
    let info = &infos[at];
    if let Some((unknown, _)) =
        params.iter().find(|(name, _)| !info.params.iter().any(|(known, _)| known == name))
    {
        return Err(refuse(info.name.clone(), format!("the schedule has no parameter `{unknown}`")));
    }
    if root >= world {
        return Err(refuse(info.name.clone(), format!("root {root} is no rank among {world}")));
    }
    let params = params.iter().map(|&(name, value)| (name.to_string(), value)).collect();
    let instance = Instance { ranks: world, root, params };
    let stored = match world <= WHOLE_RANKS_MAX {
        true => store::proved(source, at, &instance, &Options::default()),
        false => store::one_rank(source, at, &instance, rank, &Options::default()),
    };
    let stored = stored.map_err(|no_plan| match no_plan {
        NoPlan::DoesNotApply(reason) => refuse(info.name.clone(), format!("not for {world} ranks: {reason}")),
        NoPlan::Wrong(reason) => refuse(info.name.clone(), reason),
    })?;
    Ok(Custom::new(stored))
}

/// The schedule of a bundle.
pub(crate) fn of_bundle(bundle: &Bundle, root: u32, place: (u32, u32)) -> Result<Custom, CommError> {
    let params: Vec<(&str, i64)> =
        bundle.params.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    of_source(&bundle.source(), Some(&bundle.schedule), &params, root, place)
}

/// A plan in any of its forms, whole or this rank's slice.
pub(crate) fn of_plan(bytes: &[u8], (rank, world): (u32, u32)) -> Result<Custom, CommError> {
    let refuse = |name: &str, reason: String| CommError::Schedule { name: name.to_string(), reason };
    let read = crate::read_plan(bytes).map_err(|error| refuse("plan", error.to_string()))?;
    let plan = read.plan;
    if plan.world() != world {
        let reason = format!("it is a plan for {} ranks, and there are {world}", plan.world());
        return Err(refuse(&plan.name, reason));
    }
    if plan.rank(rank).is_none() {
        return Err(refuse(&plan.name, format!("it holds nothing for rank {rank}")));
    }
    if let Some(placement) = &plan.placement {
        log::info!(
            "{} was placed on {}, rank r on device r of {:?}; this is rank {rank}, and ranks run where they were started",
            plan.name,
            placement.topology,
            placement.order
        );
    }
    let identity = crate::plans::identity(&plan);
    let ordered = plan.claims.ordered;
    // A plan does not say whether it serves unequal blocks. If it does not, its messages are found to differ in length.
    let stored =
        Stored { plan: Arc::new(plan), identity: identity.into(), ordered, equal_blocks_only: false };
    Ok(Custom::new(stored))
}

/// Refuses counts that the schedule does not serve.
pub(crate) fn check(custom: &Custom, counts: &[u64], buffers: usize) -> Result<(), Refusal> {
    let contract = custom.contract();
    if contract.buffers.len() != buffers {
        let names: Vec<&str> = contract.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        return Err(Refusal::Everywhere(format!(
            "{buffers} buffers are given, and {} has {}: {}",
            custom.name(),
            names.len(),
            names.join(", ")
        )));
    }
    let due = contract.classes.count as usize;
    if counts.len() != due {
        let reason = format!(
            "{} counts are given, and {} has {due} count classes; `Custom::counts` makes them",
            counts.len(),
            custom.name()
        );
        return Err(Refusal::Everywhere(reason));
    }
    let differ = counts.iter().any(|count| count != &counts[0]);
    if differ && custom.stored().equal_blocks_only {
        let reason = format!("{} serves blocks of equal size only", custom.name());
        return Err(Refusal::Everywhere(reason));
    }
    Ok(())
}
