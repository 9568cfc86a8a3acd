//! How the pieces at one cut came to hold what they hold: the run again, for that piece alone, and with memory of every
//! write. Only a program that is wrong is traced.

use super::intern::SpreadMap;
use super::values::{NOTHING, NodeId, POISON, Values};
use coll_contract::Leaf;
use coll_ir::{Kind, Place, Program};

/// Index into [`Trace::versions`].
pub(super) type VersionId = u32;

/// Not a version, not a transfer.
pub(super) const NONE: u32 = u32::MAX;

/// What a place held for a while.
#[derive(Clone, Copy)]
pub(super) struct Version {
    pub(super) place: Place,
    pub(super) value: NodeId,
    /// The transfer that wrote it, or [`NONE`] at the start.
    pub(super) transfer: u32,
    /// What the place held before, or [`NONE`] at the start.
    pub(super) before: VersionId,
    /// What was read to make it, or [`NONE`] at the start and for a drop.
    pub(super) source: VersionId,
}

/// The history of one piece of every block.
pub(super) struct Trace {
    /// Every version, in the order they came to be.
    pub(super) versions: Vec<Version>,
    last: SpreadMap<Place, VersionId>,
}

/// Traces `piece`.
pub(super) fn trace(program: &Program, values: &mut Values, piece: u32) -> Trace {
    let mut trace = Trace { versions: Vec::new(), last: SpreadMap::default() };
    let concerned = |t: &coll_ir::Transfer| t.kind != Kind::Signal && (t.low..t.high).contains(&piece);
    let mut reads = Vec::new();
    let mut start = 0;
    for step in program.transfers.chunk_by(|a, b| a.step == b.step) {
        reads.clear();
        for (index, transfer) in (start..).zip(step).filter(|(_, transfer)| concerned(transfer)) {
            let source =
                if transfer.kind == Kind::Drop { NONE } else { trace.at(program, values, transfer.source) };
            reads.push((index, source));
        }
        for &(index, source) in &reads {
            trace.write(program, values, index, source);
        }
        start += step.len() as u32;
    }
    trace
}

impl Trace {
    /// What a place holds now: at the end, once the trace is whole.
    pub(super) fn at(&mut self, program: &Program, values: &Values, place: Place) -> VersionId {
        let Trace { versions, last } = self;
        *last.entry(place).or_insert_with(|| {
            let Place { rank, buffer, block } = place;
            let given = !program.is_scratch(buffer) && program.contract.is_given(rank, buffer, block);
            let value = if given { values.leaf(Leaf { rank, buffer, block }) } else { NOTHING };
            versions.push(Version { place, value, transfer: NONE, before: NONE, source: NONE });
            versions.len() as VersionId - 1
        })
    }

    /// A version.
    pub(super) fn version(&self, id: VersionId) -> Version {
        self.versions[id as usize]
    }

    /// True if its place holds it to the end.
    pub(super) fn is_last(&self, id: VersionId) -> bool {
        self.last[&self.version(id).place] == id
    }

    /// The version that a transfer wrote at its target.
    pub(super) fn written_by(&self, transfer: u32) -> Option<VersionId> {
        self.versions.iter().position(|version| version.transfer == transfer).map(|at| at as VersionId)
    }

    fn write(&mut self, program: &Program, values: &mut Values, index: u32, source: VersionId) {
        let transfer = &program.transfers[index as usize];
        let before = self.at(program, values, transfer.target);
        let held = self.version(before).value;
        let arriving = match source {
            NONE => NOTHING,
            _ if self.version(source).value == NOTHING => POISON,
            _ => self.version(source).value,
        };
        let value = match transfer.kind {
            Kind::Move | Kind::Drop | Kind::Signal => arriving,
            Kind::Reduce | Kind::ReduceLeft if held == NOTHING => POISON,
            Kind::Reduce => values.reduce(held, arriving),
            Kind::ReduceLeft => values.reduce(arriving, held),
        };
        self.versions.push(Version { place: transfer.target, value, transfer: index, before, source });
        self.last.insert(transfer.target, self.versions.len() as VersionId - 1);
    }
}
