//! Shared by tests. What is about calls and memory of devices serves the tests on real devices as well.
#![allow(dead_code, unreachable_pub, clippy::print_stdout)]

pub mod calls;
pub mod devices;
pub mod machine;
pub mod memory;
pub mod network;
pub mod order;
pub mod processes;
pub mod world;

pub use calls::*;
