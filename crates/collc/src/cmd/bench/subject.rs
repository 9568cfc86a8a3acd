//! What is measured: anything that runs a collective on buffers of its own. [`super::cell`] knows no more of it.

use super::settings::Cell;
use crate::failure::Failure;

/// A library under measurement, on one rank.
pub(super) trait Subject {
    /// Makes ready for a cell: chooses, binds, allocates.
    fn prepare(&mut self, cell: &Cell) -> Result<Prepared, Failure>;

    /// Fills the inputs anew, and the outputs with what is no result.
    fn fill(&mut self);

    /// Wrong elements of the outputs after a run on fresh inputs.
    fn wrong(&self) -> u64;

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
    pub(super) schedule: String,
    pub(super) elements: u64,
    pub(super) actual_bytes: u64,
    pub(super) reduces: bool,
    pub(super) root: Option<u32>,
    pub(super) bus_factor: f64,
}
