//! Schedules of other tools, brought in as plans and written out of them.
//!
//! A reader of a foreign form checks the file where it stands, works out an order in which it may run, and weaves a plan
//! (`weave`). What the plan then computes, and whether it races or stops, is for the proof of plans to say; nothing here
//! judges. Writers take a proved plan, and refuse by name what their form cannot say.
//!
//! | form | read | written |
//! |---|---|---|
//! | MSCCL XML | [`msccl`] | [`msccl::write()`] |
//! | MSCCL++ JSON | [`mscclpp`] | [`mscclpp::write()`] |
//! | GOAL | [`goal`], as messages without a collective | [`goal::write()`] |
//! | Chakra execution traces | [`chakra::to_goal`], as messages without a collective | [`chakra::write()`] |

mod attempt;
pub mod chakra;
pub mod codes;
mod collectives;
mod course;
mod foreign;
pub mod goal;
mod grid;
mod json;
mod layout;
mod limits;
pub mod msccl;
pub mod mscclpp;
mod refusal;
mod timing;
mod weave;
mod written;

pub use foreign::{Foreign, Form, Imported};
pub use limits::Limits;
pub use timing::Sizes;
pub use written::Written;
