//! A call on devices of the stand-in, and what the machine says afterwards.

pub use super::memory::*;

use super::Call;
use coll_gpu::Group;
use cuda_stand_in::{Config, control};

/// A machine: so many devices, and whether they reach each other.
pub fn machine(devices: usize, reach: bool, seed: u64) -> control::Session {
    let peers = if reach { Vec::new() } else { vec![0; devices] };
    let config = Config { devices, seed, device_bytes: 64 << 20, peers, ..Config::default() };
    control::session(&config).expect("the stand-in opens")
}

/// Runs a call on a machine, and compares it with the CPU's executor bit by bit; no access is left to chance.
pub fn check(call: &Call<'_>, devices: usize, reach: bool, seed: u64) {
    let session = machine(devices, reach, seed);
    let what = || {
        let (name, case) = (&call.plan.name, &call.case);
        format!("{name} on {devices} devices, reach {reach}, {case:?}, COLLC_TEST_SEED={seed}")
    };
    {
        let group = Group::new(&dealt(call.plan.world(), devices)).expect("the devices open");
        assert_eq!(group.unreached().is_empty(), reach || devices == 1);
        let found = run(&group, call);
        assert!(found == call.on_cpu(), "{}: other bits", what());
    }
    if let Err(verdict) = session.verdict() {
        panic!("{}: {verdict}", what());
    }
}
