//! What is measured: anything that runs a collective on buffers of its own. [`super::cell`] knows no more of it.

use super::settings::Cell;
use crate::failure::Failure;
use coll_base::DType;
use coll_contract::Contract;

/// A library under measurement, on one rank.
pub(super) trait Subject {
    /// Makes ready for a cell: chooses, binds, allocates.
    fn prepare(&mut self, cell: &Cell) -> Result<Prepared, Failure>;

    /// Fills the inputs anew, and the outputs with what is no result.
    fn fill(&mut self);

    /// Wrong elements of the outputs after a run on fresh inputs.
    fn wrong(&self) -> u64;

    /// The schedule of the last run.
    fn schedule(&mut self) -> String;

    /// Runs the operation once.
    fn run(&mut self) -> Result<(), Failure>;

    /// The subject's own barrier.
    fn sync(&mut self) -> Result<(), Failure>;

    /// Parts in good order.
    fn leave(self);

    /// Tells the others that this rank gives up.
    fn abort(self, reason: &str);
}

/// What is known of a cell before it is run.
pub(super) struct Prepared {
    pub(super) elements: u64,
    pub(super) actual_bytes: u64,
    pub(super) reduces: bool,
    pub(super) root: Option<u32>,
    pub(super) bus_factor: f64,
}

/// Elements of the sized buffer for a size in bytes: each block has one at least, and all have the same.
pub(super) fn block_elements(contract: &Contract, bytes: u64, dtype: DType) -> u64 {
    let blocks = contract.buffers.first().map_or(0, |buffer| u64::from(buffer.blocks));
    (bytes / dtype.size_bytes()).checked_div(blocks).map_or(0, |count| count.max(1)) * blocks
}
