//! What is there, and how calls are spread over it. Calls and memory are those of the tests without a device.
#![allow(dead_code, unreachable_pub)]

#[path = "../gpu/support/calls.rs"]
mod calls;
#[path = "../gpu/support/memory.rs"]
pub mod memory;
#[path = "../gpu/support/processes.rs"]
pub mod processes;

pub use calls::*;

use coll_gpu::{Group, Probe, probe};

/// What there is; or one line that says that nothing was tested.
pub fn devices() -> Option<Probe> {
    match probe() {
        Ok(found) => Some(found),
        Err(error) => {
            println!("no CUDA device: {error}; nothing was tested here");
            None
        }
    }
}

/// Whether the devices are those of the stand-in.
pub fn is_stand_in() -> bool {
    std::env::var_os("CUDA_STAND_IN").is_some()
}

/// Numbers of devices to try: all ranks on one, and dealt out to all.
pub fn spreads(found: &Probe) -> Vec<usize> {
    let all = found.devices.len();
    // The stand-in has two, and is slow.
    if all == 1 || is_stand_in() { vec![all] } else { vec![1, all] }
}

/// Ranks on the first so many devices, in turn.
pub fn group(ranks: u32, devices: usize) -> Group {
    Group::new(&memory::dealt(ranks, devices)).expect("the devices open")
}

/// Runs a call once, and compares it with the CPU's executor bit by bit.
pub fn check(group: &Group, call: &Call<'_>) {
    let found = memory::run(group, call);
    let (name, case, devices) = (&call.plan.name, &call.case, &group.layout().devices);
    assert!(found == call.on_cpu(), "{name} on devices {devices:?}, {case:?}: other bits");
}
