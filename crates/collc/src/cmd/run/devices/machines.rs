//! Which ranks share a machine: they open each other's memory on devices, and reach those of others over the network.

use coll::trial::Settings;
use std::fs;

/// What a rank tells the others of its machine.
pub(crate) struct Machine {
    /// What tells it from all others; it has its own devices.
    real: String,
    /// Which part of it passes for a machine of its own.
    part: u32,
}

impl Machine {
    /// This process's.
    pub(crate) fn here() -> Machine {
        let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
        let real = read("random/boot_id").or_else(|| read("hostname")).unwrap_or_default();
        Machine { real: real.trim().to_string(), part: 0 }
    }

    /// This process's, as far as the settings have it whole.
    pub(super) fn with(settings: &Settings) -> Machine {
        let placed = settings.machines.get(settings.rank as usize).copied();
        let part = settings.ranks_per_host.map(|ranks| settings.rank / ranks.max(1));
        Machine { part: placed.or(part).unwrap_or(0), ..Machine::here() }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        format!("{}#{}", self.real, self.part).into_bytes()
    }
}

/// The machines of all ranks, as one of them sees them.
pub(super) struct Machines {
    rank: u32,
    names: Vec<String>,
}

impl Machines {
    /// From what each rank told.
    pub(super) fn of(rank: u32, told: &[Vec<u8>]) -> Machines {
        Machines { rank, names: told.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect() }
    }

    /// How many ranks before this one share its devices, and how many do in all.
    pub(super) fn place(&self) -> (u32, u32) {
        let real = |rank: usize| self.names[rank].rsplit_once('#').map(|(real, _)| real);
        let own = self.rank as usize;
        let with =
            |ranks: std::ops::Range<usize>| ranks.filter(|&rank| real(rank) == real(own)).count() as u32;
        (with(0..own), with(0..self.names.len()))
    }

    /// If a rank is on this one's machine.
    pub(super) fn is_near(&self, rank: u32) -> bool {
        self.names[rank as usize] == self.names[self.rank as usize]
    }

    /// If there is one machine alone.
    pub(super) fn are_one(&self) -> bool {
        (0..self.names.len() as u32).all(|rank| self.is_near(rank))
    }

    /// A number for the machine of each rank: that of the first rank there.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let first = |name| self.names.iter().position(|other| other == name);
        self.names
            .iter()
            .map(|name| first(name).expect("invariant: a rank has its own name") as u32)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(rank: u32, names: &[&str]) -> Machines {
        let told: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        Machines::of(rank, &told)
    }

    #[test]
    fn parts_of_a_machine_are_apart_and_share_its_devices() {
        let all = machines(2, &["a#0", "b#0", "a#1", "a#1", "b#0"]);
        assert_eq!(all.numbers(), [0, 1, 2, 2, 1]);
        assert_eq!(all.place(), (1, 3));
        assert!(all.is_near(3) && !all.is_near(0) && !all.are_one());
        assert!(machines(1, &["a#0", "a#0"]).are_one());
    }
}
