//! The constants that come with collc, for those who have not measured their own: those of a virtual machine with two
//! cores of a current server processor. Ratios between them, which decide what is taken, vary less than they do.
//!
//! Copies and reductions follow from limits measured there: copies at 27 GB/s from cache and 9 from memory, sums at 31 and
//! 10 GB/s of one array. What messages cost was fitted to the library's schedules, all of them on 2, 4 and 8 ranks from 8 B to
//! 16 MiB. That of a loopback TCP message is its sender's in the main, for there the system does the receiver's work too. What
//! lies between machines is that of 25 Gbit/s Ethernet.

use crate::{Constants, Rate, Wire};
use coll_base::DType;

/// All of them.
pub(crate) fn all() -> Vec<Constants> {
    vec![tcp(), shm(), threads()]
}

fn tcp() -> Constants {
    Constants {
        send_us: 5.0,
        recv_us: 2.0,
        wake_us: 1.0,
        switch_us: 4.0,
        send: Rate { near_ns: 0.32, far_ns: 0.37 },
        recv: Rate { near_ns: 0.057, far_ns: 0.08 },
        wire: Some(Wire { latency_us: 15.0, byte_ns: 0.33 }),
        ..shared("tcp")
    }
}

fn shm() -> Constants {
    Constants {
        send_us: 0.04,
        recv_us: 0.04,
        wake_us: 0.25,
        switch_us: 1.8,
        send: Rate { near_ns: 0.045, far_ns: 0.09 },
        recv: Rate { near_ns: 0.045, far_ns: 0.09 },
        shared_from_bytes: Some(16 << 10),
        ..shared("shm")
    }
}

fn threads() -> Constants {
    Constants { switch_us: 1.5, ..Constants { transport: "threads".into(), ..shm() } }
}

/// What does not depend on the transport.
fn shared(transport: &str) -> Constants {
    let sum = Rate { near_ns: 0.033, far_ns: 0.10 };
    // Narrow floats, a byte of them: half the elements' work each, and memory sets the pace all the same.
    let narrow = Rate { near_ns: 0.037, far_ns: 0.10 };
    // Machine code, and some are interpreted.
    let user = Rate { near_ns: 0.08, far_ns: 0.12 };
    Constants {
        transport: transport.into(),
        call_us: 0.1,
        send_us: 0.0,
        recv_us: 0.0,
        local_us: 0.05,
        wake_us: 0.0,
        switch_us: 0.0,
        send: Rate::flat(0.0),
        recv: Rate::flat(0.0),
        copy: Rate { near_ns: 0.037, far_ns: 0.11 },
        reduce: [(DType::F32, sum), (DType::F16, narrow), (DType::Bf16, narrow)].into(),
        reduce_user: user,
        cache_bytes: 32 << 20,
        shared_from_bytes: None,
        wire: None,
        fit: None,
    }
}
