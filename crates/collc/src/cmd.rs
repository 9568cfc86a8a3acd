//! The commands, one file each. A command gives its exit code, or the failure that kept it from an answer.

pub(crate) mod bench;
pub(crate) mod check;
mod choice;
pub(crate) mod compare;
pub(crate) mod compile;
pub(crate) mod env;
pub(crate) mod explain;
pub(crate) mod explain_choice;
pub(crate) mod export;
pub(crate) mod fmt;
mod foreign;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod place;
pub(crate) mod run;
pub(crate) mod sim;
mod target;
pub(crate) mod topo;
pub(crate) mod tune;
