//! Predicts a run of a plan on a network, in virtual time.

pub mod goal;
pub mod loggops;
