//! Which library schedule serves an operation: the cheapest by the model of [`coll_cost`], among those that can.
//!
//! A [`Chooser`] answers a [`Question`]: operation, ranks, size, element type, operator, where the ranks are. A
//! [`Candidate`] is a schedule with values of its parameters. For the calls that are made most, what is taken by the shipped
//! constants is shipped as well (`answers`), and what is taken by measured ones may come with these, so the first question
//! compiles and proves that one. For others it is shipped what
//! each candidate takes at least (`facts`), and the first question compiles and outlines the few that may be best, and proves
//! the one that is; all that is kept. Sizes fall into intervals, two for each doubling, and a size's first question settles
//! its interval, so that later ones look an answer up.
//!
//! An answer depends on the question and the constants alone, so ranks that ask alike choose alike; the constants'
//! [`fingerprint`](coll_cost::Tuning::fingerprint) tells whether they do. Roots are all alike to the model, as schedules
//! of the library turn with the root; what a schedule promises is asked for the root at hand.
//!
//! On a topology, a [`Ground`], candidates are simulated instead.
//!
//! Beyond [`WHOLE_RANKS_MAX`] ranks whole plans take too long to make for a first call. There a candidate is judged by
//! the slices of four ranks, and by how its chain of messages grows on smaller counts; parameters keep their defaults;
//! and what it promises is what was proved on those.

mod answers;
mod candidates;
mod chooser;
mod facts;
mod family;
mod forced;
mod ground;
mod imposed;
mod operations;
mod packed;
mod question;
mod table;

pub use answers::{ANSWERED_RANKS, Place, with_answers};
pub use candidates::Candidate;
pub(crate) use chooser::Made;
pub use chooser::{Choice, ChooseError, Chooser, Considered, Standing};
pub use family::WHOLE_RANKS_MAX;
pub use forced::{Forced, ForcedError};
pub use ground::{Ground, GroundError, node_list};
pub use imposed::{Imposed, insisted};
pub use operations::{OPERATIONS, canonical_operation};
pub use question::Question;
pub use table::Table;
