//! What can go wrong with devices: each with what was looked for or found, and a way out.

use coll_exec::{BindError, Fault, Place};
use std::fmt;
use std::time::Duration;

/// A version of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the point.
    pub major: u32,
    /// After it.
    pub minor: u32,
}

impl Version {
    /// Of the driver's number: 12080 is 12.8.
    pub fn of(number: i32) -> Version {
        let number = number.max(0) as u32;
        Version { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a device, the driver or its compiler cannot do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no driver library.
    #[error(
        "no CUDA driver: none of {} can be opened; install NVIDIA's driver, or have the dynamic linker find its library \
         (LD_LIBRARY_PATH)",
        shown(looked_for)
    )]
    NoLibrary {
        /// File names, in the order in which they were tried.
        looked_for: Vec<String>,
    },
    /// The driver is older than what is called of it.
    #[error("the CUDA driver is of version {found}, and {needed} is needed; install a newer driver")]
    DriverTooOld {
        /// Its version.
        found: Version,
        /// The oldest that serves.
        needed: Version,
    },
    /// The driver lacks a function.
    #[error(
        "the CUDA driver has no function `{symbol}`; it is not whole, or it is no driver: reinstall it, and see which \
         library LD_LIBRARY_PATH leads to"
    )]
    NoSymbol {
        /// The function.
        symbol: String,
    },
    /// There is a driver, and no device.
    #[error(
        "the CUDA driver finds no device; see what `nvidia-smi` lists, and whether CUDA_VISIBLE_DEVICES hides them"
    )]
    NoDevice,
    /// There is no device of this number.
    #[error("there is no CUDA device {device}: the driver finds {found}, from 0 on")]
    InvalidDevice {
        /// What was asked for.
        device: u32,
        /// How many there are.
        found: u32,
    },
    /// The device has not so much memory left.
    #[error(
        "device {device} has no {wanted_bytes} B of memory left ({free_bytes} B of {total_bytes} B are free); free some, \
         or take smaller buffers"
    )]
    OutOfMemory {
        /// The device.
        device: u32,
        /// What was asked for.
        wanted_bytes: u64,
        /// What is free.
        free_bytes: u64,
        /// What the device has.
        total_bytes: u64,
    },
    /// The host has not so much memory that devices copy to by themselves.
    #[error(
        "no {wanted_bytes} B of pinned memory of the host are left for messages to other machines; free some, or raise the \
         limit of locked memory (ulimit -l)"
    )]
    NoPinned {
        /// What was asked for.
        wanted_bytes: u64,
    },
    /// One device cannot read another's memory.
    #[error(
        "device {from} may not access memory of device {to}: {why}; without it, copies go through the host"
    )]
    PeerAccess {
        /// Who would read.
        from: u32,
        /// Whose memory.
        to: u32,
        /// What the driver said.
        why: String,
    },
    /// Another process's memory cannot be opened here.
    #[error(
        "device {device} cannot open memory of rank {rank}: {why}; ranks that are processes share memory of `cuMemAlloc`, and \
         their devices reach each other"
    )]
    Foreign {
        /// Whose memory.
        rank: u32,
        /// The device that would read it.
        device: u32,
        /// What the driver said.
        why: String,
    },
    /// A kernel is not there.
    #[error(
        "the kernels have none called `{name}` ({why}); the program and its kernels are of different versions"
    )]
    NoKernel {
        /// Its name.
        name: String,
        /// What the driver said.
        why: String,
    },
    /// The operator has no form that devices compute.
    #[error("{why}; take another operator, or ranks that are no devices")]
    Unsupported {
        /// Operator and reason.
        why: String,
    },
    /// There is no compiler for operators of one's own.
    #[error(
        "operator `{operator}` is compiled when it is used, and there is no NVRTC: none of {} can be opened; install the \
         CUDA toolkit or the package nvidia-cuda-nvrtc-cu12, or take a built-in operator",
        shown(looked_for)
    )]
    NoNvrtc {
        /// The operator.
        operator: String,
        /// File names, in the order in which they were tried.
        looked_for: Vec<String>,
    },
    /// The compiler refused an operator.
    #[error("NVRTC does not compile operator `{operator}`: {log}")]
    Compile {
        /// The operator.
        operator: String,
        /// What it said.
        log: String,
    },
    /// Another call of the driver failed.
    #[error("{call} on device {device}: {name}, {text}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// The device, or what it concerned if it was none.
        device: String,
        /// The driver's number.
        code: u32,
        /// The name of that number.
        name: String,
        /// What it means.
        text: String,
    },
}

fn shown(names: &[String]) -> String {
    const SHOWN_MAX: usize = 4;
    let first = names[..names.len().min(SHOWN_MAX)].join(", ");
    match names.len().saturating_sub(SHOWN_MAX) {
        0 => first,
        more => format!("{first} and {more} more names"),
    }
}

/// Why a call of a [`Group`](crate::Group) failed, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The plan does not bind to these counts and operators.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// The plan makes no stream plan.
    #[error("{0}")]
    StreamPlan(#[from] crate::StreamPlanError),
    /// A device cannot do what is asked of it, outside of any operation.
    #[error("{0}")]
    Device(#[from] GpuError),
    /// A buffer is not given as it was bound.
    #[error("rank {rank}, buffer `{buffer}`: {found} where {expected} was bound")]
    Buffer {
        /// The rank.
        rank: u32,
        /// The buffer's name in the contract.
        buffer: String,
        /// What was bound.
        expected: String,
        /// What was given.
        found: String,
    },
    /// Not as many things as ranks.
    #[error("{found} {what} are given for {ranks} ranks")]
    Ranks {
        /// What there are too few or too many of.
        what: &'static str,
        /// How many.
        found: usize,
        /// Ranks of the group.
        ranks: usize,
    },
    /// Ranks that are processes do not come together.
    #[error("rank {rank}: {what}")]
    Exchange {
        /// The rank that says so.
        rank: u32,
        /// What it says.
        what: String,
    },
    /// Putting work on a stream failed.
    #[error("{}: {fault}", At(*rank, *operation, name, place.as_deref(), *device))]
    Enqueue {
        /// The rank.
        rank: u32,
        /// The operation's number in the group.
        operation: u64,
        /// the plan's name.
        name: String,
        /// Where in the plan, if it was anywhere.
        place: Option<Box<Place>>,
        /// The device.
        device: u32,
        /// What happened.
        fault: Box<GpuError>,
    },
    /// What goes between machines cannot go on.
    #[error("{}: {fault}", At(*rank, *operation, name, place.as_deref(), *device))]
    Network {
        /// The rank.
        rank: u32,
        /// The operation's number among all that the rank has run with other machines.
        operation: u64,
        /// the plan's name.
        name: String,
        /// The message that it is about, if it is about one.
        place: Option<Box<Place>>,
        /// The device.
        device: u32,
        /// What happened.
        fault: Box<Fault>,
    },
    /// The deadline passed before all was done.
    #[error(
        "{}: it is not done after {:.3} s; what is on that stream before it does not end, or a peer does not come",
        At(*rank, *operation, name, place.as_deref(), *device),
        limit.as_secs_f64()
    )]
    TimedOut {
        /// The first rank that is not done.
        rank: u32,
        /// The operation's number in the group.
        operation: u64,
        /// the plan's name.
        name: String,
        /// The first operation of that rank which is not known to be done.
        place: Option<Box<Place>>,
        /// The device.
        device: u32,
        /// The time limit.
        limit: Duration,
    },
}

/// `rank 2, operation 5 (allreduce.ring), device 1, step 3 (ring.coll:7), op 4, receive from rank 1`
struct At<'a>(u32, u64, &'a str, Option<&'a Place>, u32);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At(rank, operation, name, place, device) = self;
        write!(f, "rank {rank}, operation {operation} ({name}), device {device}")?;
        place.map_or(Ok(()), |place| write!(f, ", {place}"))
    }
}
