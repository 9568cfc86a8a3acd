//! The machine: what bounds a run's speed or size here, as the system says it.

use super::size;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use std::fs;

/// What is found; none where the system does not say.
#[derive(Serialize)]
pub(super) struct Machine {
    system: String,
    processor: Option<String>,
    /// Processors that this process may use.
    processors: usize,
    memory_bytes: Option<u64>,
    available_bytes: Option<u64>,
    /// Huge pages that are set aside, and bytes of each.
    huge_pages: Option<u64>,
    huge_page_bytes: Option<u64>,
    /// Whether memory gets huge pages by itself, and shared memory.
    transparent_huge_pages: Option<String>,
    transparent_huge_pages_shared: Option<String>,
    /// Bytes of `/dev/shm`, and how many are free.
    shared_memory_bytes: Option<u64>,
    shared_memory_free_bytes: Option<u64>,
    /// Limits of this process; none is no limit.
    open_files: Option<u64>,
    locked_memory_bytes: Option<u64>,
    /// Limits of the system that matter to collc, by their names under `/proc/sys`.
    limits: Vec<Limit>,
}

#[derive(Serialize)]
struct Limit {
    name: &'static str,
    value: Option<String>,
    meaning: &'static str,
}

/// Each with what it bounds.
const LIMITS: [(&str, &str); 7] = [
    ("kernel/numa_balancing", "1: pages move between nodes while ranks use them"),
    ("net/core/rmem_max", "the largest receive buffer that a socket may ask for"),
    ("net/core/somaxconn", "connections that may wait at the rendezvous"),
    ("net/core/wmem_max", "the largest send buffer that a socket may ask for"),
    ("net/ipv4/tcp_rmem", "receive buffers of TCP: least, first, most"),
    ("net/ipv4/tcp_wmem", "send buffers of TCP: least, first, most"),
    ("vm/max_map_count", "mappings of a process: peers' memory takes one for each buffer"),
];

impl Machine {
    pub(super) fn found() -> Machine {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib =
            |name: &str| Some(field(&memory, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10);
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let shared = rustix::fs::statvfs("/dev/shm").ok();
        Machine {
            system: [
                std::env::consts::OS,
                &value("kernel/osrelease").unwrap_or_default(),
                std::env::consts::ARCH,
            ]
            .join(" "),
            processor: field(&processors, "model name").map(str::to_string),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kib("MemTotal"),
            available_bytes: kib("MemAvailable"),
            huge_pages: field(&memory, "HugePages_Total").and_then(|count| count.parse().ok()),
            huge_page_bytes: kib("Hugepagesize"),
            transparent_huge_pages: chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
            transparent_huge_pages_shared: chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
            shared_memory_bytes: shared.as_ref().map(|at| at.f_blocks * at.f_frsize),
            shared_memory_free_bytes: shared.as_ref().map(|at| at.f_bavail * at.f_frsize),
            open_files: getrlimit(Resource::Nofile).current,
            locked_memory_bytes: getrlimit(Resource::Memlock).current,
            limits: LIMITS.map(|(name, meaning)| Limit { name, value: value(name), meaning }).into(),
        }
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<(String, String)> {
        let unknown = || "unknown".to_string();
        let bytes = |bytes: Option<u64>| bytes.map_or_else(unknown, size);
        let limit = |limit: Option<u64>| limit.map_or("no limit".to_string(), |limit| limit.to_string());
        let word = |word: &Option<String>| word.clone().unwrap_or_else(unknown);
        let pages = self.huge_pages.map_or_else(unknown, |pages| pages.to_string());
        let line = |what: &str, value: String| (what.to_string(), value);
        let mut lines = vec![
            line("system", self.system.clone()),
            line("processor", word(&self.processor)),
            line("processors", self.processors.to_string()),
            line(
                "memory",
                format!("{}, {} available", bytes(self.memory_bytes), bytes(self.available_bytes)),
            ),
            line("huge pages", format!("{pages} of {}", bytes(self.huge_page_bytes))),
            line("transparent huge pages", word(&self.transparent_huge_pages)),
            line("  of shared memory", word(&self.transparent_huge_pages_shared)),
            line(
                "/dev/shm",
                format!("{}, {} free", bytes(self.shared_memory_bytes), bytes(self.shared_memory_free_bytes)),
            ),
            line("open files", limit(self.open_files)),
            line("locked memory", self.locked_memory_bytes.map_or("no limit".to_string(), size)),
        ];
        for Limit { name, value, meaning } in &self.limits {
            lines.push(line(name, format!("{} ({meaning})", word(value))));
        }
        lines
    }
}

/// The value of `name: value`, where it first stands.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then_some(value.trim())
    })
}

/// Of `always [madvise] never`, what stands in brackets.
fn chosen(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

/// A limit, with single spaces.
fn value(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_choices_are_found() {
        let text = "MemTotal:       16 kB\nHugepagesize: 2048 kB\n";
        assert_eq!(field(text, "Hugepagesize"), Some("2048 kB"));
        assert_eq!(field(text, "Huge"), None);
        let machine = Machine::found();
        assert!(machine.processors >= 1);
        assert!(machine.lines().iter().any(|(what, _)| what == "vm/max_map_count"));
    }
}
