//! The constants that come with collc, for those who have not measured their own: those of a virtual machine with two
//! cores of a current server processor. Ratios between them, which decide what is taken, vary less than they do.
//!
//! They follow from limits measured there: copies at 27 GB/s from cache and 9 from memory, sums at 31 and 10 GB/s of one
//! array, loopback TCP at 5 GB/s one way and 3.4 both ways at once, a message of 8 bytes one way in 4 µs over a polled
//! TCP socket and in 0.06 µs through shared memory, a switch between two processes on one core in about 2 µs. What lies
//! between machines is that of 25 Gbit/s Ethernet.

use crate::{Constants, Rate, Wire};
use coll_base::DType;

/// All of them.
pub(crate) fn all() -> Vec<Constants> {
    vec![tcp(), shm(), threads()]
}

fn tcp() -> Constants {
    Constants {
        send_us: 2.2,
        recv_us: 1.6,
        wake_us: 1.5,
        switch_us: 5.0,
        send: Rate { near_ns: 0.11, far_ns: 0.19 },
        recv: Rate { near_ns: 0.15, far_ns: 0.24 },
        wire: Some(Wire { latency_us: 15.0, byte_ns: 0.33 }),
        ..shared("tcp")
    }
}

fn shm() -> Constants {
    Constants {
        send_us: 0.08,
        recv_us: 0.08,
        wake_us: 0.08,
        switch_us: 1.3,
        send: Rate { near_ns: 0.045, far_ns: 0.09 },
        recv: Rate { near_ns: 0.045, far_ns: 0.09 },
        ..shared("shm")
    }
}

fn threads() -> Constants {
    Constants { switch_us: 1.0, ..Constants { transport: "threads".into(), ..shm() } }
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
        wire: None,
        fit: None,
    }
}
