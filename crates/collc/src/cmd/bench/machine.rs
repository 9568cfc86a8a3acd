//! What others do on this machine while a cell is measured.

use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Processor time of this rank, a process or a thread, in seconds.
pub(super) fn own_cpu_s(is_thread: bool) -> f64 {
    let clock = if is_thread { ClockId::ThreadCPUTime } else { ClockId::ProcessCPUTime };
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Processor time of all processes, in seconds, in steps of a tick: user, nice, system and stolen. Software interrupts
/// are left out: work of our own loopback traffic is done there, and no process is charged for it. None where the
/// system does not say.
pub(super) fn busy_s() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    let ticks: u64 = [0, 1, 2, 7].iter().map(|&at| fields.get(at).copied()).sum::<Option<u64>>()?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
