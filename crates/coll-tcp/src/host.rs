//! What a rank knows of the machine it runs on: who it is, and how many connections it may have.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::error::StartError;

/// A process and its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Host {
    /// For people: the machine's name. Two machines may have the same.
    pub(crate) name: String,
    /// Boot id and network namespace: equal for two processes only if loopback leads from one to the other. Empty
    /// where the system does not say.
    pub(crate) loopback_id: String,
    pub(crate) pid: u32,
}

impl Host {
    /// This process.
    pub(crate) fn here() -> Host {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/net").unwrap_or_default();
        let known = !boot.is_empty() && !namespace.as_os_str().is_empty();
        Host {
            name: fs::read_to_string("/proc/sys/kernel/hostname")
                .map_or_else(|_| "an unnamed host".to_owned(), |name| name.trim().to_owned()),
            loopback_id: if known {
                format!("{} {}", boot.trim(), namespace.display())
            } else {
                String::new()
            },
            pid: std::process::id(),
        }
    }

    /// Whether loopback is known to lead from one to the other.
    pub(crate) fn shares_loopback_with(&self, other: &Host) -> bool {
        !self.loopback_id.is_empty() && self.loopback_id == other.loopback_id
    }

    /// Whether both are the same process.
    pub(crate) fn is_same_process_as(&self, other: &Host) -> bool {
        self.shares_loopback_with(other) && self.pid == other.pid
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pid {} on {}", self.pid, self.name)
    }
}

/// Makes sure that `links` connections can be opened beside what is open already, raising the process's soft limit
/// on file descriptors if need be.
pub(crate) fn ensure_descriptors(links: u64) -> Result<(), StartError> {
    // A listener, a control connection, both ends of the waker, what a tokio runtime opens, and some air.
    const OVERHEAD: u64 = 16;
    let open = fs::read_dir("/proc/self/fd").map_or(64, |entries| entries.count() as u64);
    let need = links + open + OVERHEAD;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match wanted_soft_limit(need, current, maximum) {
        Some(same) if Some(same) == current => Ok(()),
        Some(raised) => {
            setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).map_err(|errno| {
                StartError::System { what: "raise the limit on file descriptors", detail: errno.to_string() }
            })
        }
        None if current.is_none() => Ok(()),
        None => Err(StartError::Descriptors { links, need, limit: maximum.or(current).unwrap_or(u64::MAX) }),
    }
}

/// Raises the soft limit on file descriptors as far as it goes: a server cannot know how many ranks will come.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // If this is refused, accepting fails later, and is tried again as connections close.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// The soft limit to have for `need` descriptors: the present one if it is enough, else more, if the hard one allows.
/// No limit is `None`, as is no way.
fn wanted_soft_limit(need: u64, soft: Option<u64>, hard: Option<u64>) -> Option<u64> {
    let soft = soft?;
    if need <= soft {
        return Some(soft);
    }
    hard.is_none_or(|hard| need <= hard).then(|| hard.unwrap_or(need))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_only_when_needed_and_allowed() {
        assert_eq!(wanted_soft_limit(100, Some(1024), Some(4096)), Some(1024));
        assert_eq!(wanted_soft_limit(2000, Some(1024), Some(4096)), Some(4096));
        assert_eq!(wanted_soft_limit(2000, Some(1024), None), Some(2000));
        assert_eq!(wanted_soft_limit(5000, Some(1024), Some(4096)), None);
        assert_eq!(wanted_soft_limit(4097, Some(4096), Some(4096)), None);
    }

    #[test]
    fn a_host_without_an_identity_shares_loopback_with_nobody() {
        let unknown = Host { name: "a".into(), loopback_id: String::new(), pid: 1 };
        assert!(!unknown.shares_loopback_with(&unknown));
        assert!(Host::here().is_same_process_as(&Host::here()));
    }
}
