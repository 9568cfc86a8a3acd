//! The library people use: open a schedule, prove it, compile it, run it.
//!
//! ```
//! use coll::{Instance, Outcome, Source};
//!
//! let source = Source::builtin("allreduce", "ring").expect("the library has a ring");
//! let instance = Instance { ranks: 4, root: 0, params: Vec::new() };
//! let Outcome::Right(proved) = coll::prove(&source, 0, &instance, &coll::Options::default()) else {
//!     panic!("the ring keeps its contract");
//! };
//! assert_eq!(proved.properties.steps, 6);
//! assert_eq!(proved.plan.world(), 4);
//! ```

mod bundle;
mod comm;
#[cfg(feature = "gpu")]
mod devices;
pub mod foreign;
pub mod library;
mod one_rank;
mod origin;
mod placed;
mod plans;
mod prove;
mod ranks;
pub mod select;
mod size;
mod source;
mod topology;
pub mod trial;

pub use bundle::{Bundle, BundleError};
pub use coll_base::{DType, RedOp};
pub use coll_compile::Options;
pub use coll_sema::Instance;
pub use comm::{
    AbortHandle, Buffer, Builder, CommError, Communicator, Custom, Element, Failure, Group, Memory, Op,
    Pending, Prepared, Recorded, Request, Via, View, ViewMut,
};
#[cfg(feature = "gpu")]
pub use devices::{DeviceCall, Devices, DevicesError, RankPointers};
pub use one_rank::{RankOutcome, RankPlanned, compile_rank, compile_slices};
pub use placed::placed;
pub use plans::{PlanError, ReadPlan, is_plan, proof_hash, read_plan, read_plan_text};
pub(crate) use prove::Draft;
pub use prove::{Outcome, Proved, compile, prove};
pub use ranks::{RANKS_MAX, RankCounts};
pub use select::{OPERATIONS, canonical_operation};
pub use size::Bytes;
pub use source::{ReadError, Source, read_bytes, read_text};
pub use topology::load_topology;
