//! What was measured, as a topology. Pairs that are by themselves have a link each. What those of a machine share becomes a
//! switch with that bandwidth, which all ways within it cross; what those of two machines share a NIC of each. Where one direction
//! has less than [`SHARED_SHARE`] of what the other has, each has a link of its own.

use super::measure::{Measured, Pair};
use super::together::{SHARED_SHARE, Together};
use coll_base::Span;
use coll_topo::{
    BANDWIDTH_MAX_BYTES_PER_US, Description, DeviceFigures, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl,
};

/// What ranks of a machine share is called, and what machines reach each other by.
const MEMORY: &str = "memory";
const NIC: &str = "nic";
const NETWORK: &str = "network";

/// Three digits: more were not measured.
pub(super) fn rounded(figure: f64) -> f64 {
    format!("{figure:.2e}").parse().unwrap_or(figure)
}

/// The time of a byte whose rate has three digits: files have rates.
pub(super) fn rounded_rate(ns: f64) -> f64 {
    1e3 / rounded(1e3 / ns.max(1e-6))
}

/// Bytes a microsecond of each direction: from the first to the second, and back.
pub(super) type Ways = [f64; 2];

/// What a pair alone gets each way.
pub(super) fn ways(pair: &Pair) -> Ways {
    pair.byte_ns.map(|byte_ns| rate(1e3 / byte_ns.max(1e-9)))
}

/// Whether one direction is far behind the other, by bandwidths or by times.
pub(super) fn is_lopsided([there, back]: [f64; 2]) -> bool {
    there.min(back) < SHARED_SHARE * there.max(back)
}

/// What both directions have in the mean of their times.
pub(super) fn mean([there, back]: Ways) -> f64 {
    rate(2.0 / (1.0 / there + 1.0 / back))
}

fn rate(bytes_per_us: f64) -> f64 {
    rounded(bytes_per_us.clamp(1e-3, BANDWIDTH_MAX_BYTES_PER_US))
}

/// The most of several, each way.
fn most(all: impl IntoIterator<Item = Ways>) -> Ways {
    all.into_iter().fold([rate(0.0); 2], |most, ways| [most[0].max(ways[0]), most[1].max(ways[1])])
}

impl Measured {
    /// What was measured of two ranks alone, from the first that is named to the second.
    pub(super) fn pair(&self, a: u32, b: u32) -> Pair {
        let (first, second, ranks) = (a.min(b) as usize, a.max(b) as usize, self.machines.len());
        // Pairs before those of the first, then those of the first.
        let at = (0..first).map(|one| ranks - one - 1).sum::<usize>() + (second - first - 1);
        let pair = self.pairs.get(at).copied().unwrap_or_default();
        let [there, back] = pair.byte_ns;
        Pair { byte_ns: if a < b { [there, back] } else { [back, there] }, ..pair }
    }

    /// What a set's pairs get together alone, each way.
    pub(super) fn alone(&self, set: &Together) -> Ways {
        let of = |back: usize| set.pairs.iter().map(|&(a, b)| ways(&self.pair(a, b))[back]).sum();
        [of(0), of(1)]
    }

    /// Whether a set's pairs share something, in either direction.
    pub(super) fn is_shared(&self, set: &Together) -> bool {
        let alone = self.alone(set);
        (0..2).any(|back| set.bytes_per_us[back] < SHARED_SHARE * alone[back])
    }

    /// What the pairs of a machine share, if they do. They go both ways in it.
    fn memory(&self, machine: usize) -> Option<f64> {
        let own = |set: &&Together| set.machines == [machine, machine] && self.is_shared(set);
        self.together.iter().find(own).map(|set| mean(set.bytes_per_us))
    }

    /// What a machine's pairs with another share out of it and into it, if they do with any: the most that was seen.
    fn nic(&self, machine: usize) -> Option<Ways> {
        let own = |set: &&Together| set.machines[0] != set.machines[1] && set.machines.contains(&machine);
        let of_all = self.together.iter().filter(own);
        let shared = of_all.clone().any(|set| self.is_shared(set));
        let outwards = |set: &Together| {
            let [there, back] = set.bytes_per_us.map(rate);
            if set.machines[0] == machine { [there, back] } else { [back, there] }
        };
        shared.then(|| most(of_all.map(outwards)))
    }
}

/// The topology.
pub(super) fn description(measured: &Measured) -> Description {
    // What a message costs is a rank's, not a pair's: the median of all.
    let mut costs: Vec<f64> = measured.pairs.iter().map(|pair| pair.message_us).collect();
    costs.sort_by(f64::total_cmp);
    let message_us = rounded(costs.get(costs.len() / 2).copied().unwrap_or(0.0));
    let figures = DeviceFigures {
        message_us,
        reduce_ns: rounded_rate(measured.reduce_ns),
        copy_ns: rounded_rate(measured.copy_ns),
    };
    let mut builder =
        Builder { measured, message_us, description: Description { figures, ..Description::default() } };
    builder.machines();
    builder.within();
    builder.between();
    builder.description
}

struct Builder<'m> {
    measured: &'m Measured,
    message_us: f64,
    description: Description,
}

impl Builder<'_> {
    fn machines(&mut self) {
        let span = Span::default();
        for (machine, name) in self.measured.names.iter().enumerate() {
            let ranks =
                (0..self.measured.machines.len()).filter(|&rank| self.measured.machines[rank] == machine);
            let device = |rank| NodeDecl {
                forwards: false,
                ..NodeDecl::new(Kind::Device, format!("rank{rank}"), span)
            };
            let mut nodes: Vec<NodeDecl> = ranks.map(device).collect();
            if let Some(bytes_per_us) = self.measured.memory(machine) {
                let memory = NodeDecl::new(Kind::Switch, MEMORY.to_string(), span);
                nodes.push(NodeDecl { bytes_per_us: Some(bytes_per_us), ..memory });
            }
            if self.measured.nic(machine).is_some() {
                nodes.push(NodeDecl::new(Kind::Nic, NIC.to_string(), span));
            }
            let (name, links) = (name.clone(), Vec::new());
            self.description.machines.push(MachineDecl { name, count: None, nodes, links, span });
        }
        if (0..self.measured.names.len()).any(|machine| self.measured.nic(machine).is_some()) {
            self.description.nodes.push(NodeDecl::new(Kind::Switch, NETWORK.to_string(), span));
        }
    }

    /// Links of ranks of one machine.
    fn within(&mut self) {
        for machine in 0..self.measured.names.len() {
            let ranks = self.ranks(machine);
            if self.measured.memory(machine).is_none() {
                for (at, &a) in ranks.iter().enumerate() {
                    ranks[at + 1..].iter().for_each(|&b| self.direct(a, b));
                }
                continue;
            }
            for &rank in &ranks {
                let others = ranks.iter().filter(|&&other| other != rank);
                let pairs: Vec<Pair> = others.map(|&other| self.measured.pair(rank, other)).collect();
                let ends = [self.device(rank), format!("{}.{MEMORY}", self.measured.names[machine])];
                self.link(ends, most(pairs.iter().map(ways)), self.latency(&pairs) / 2.0);
            }
        }
    }

    /// Links of ranks of different machines: through the machines' NICs if both have one.
    fn between(&mut self) {
        let count = self.measured.names.len();
        for a in 0..count {
            for b in a + 1..count {
                if self.measured.nic(a).is_some() && self.measured.nic(b).is_some() {
                    continue;
                }
                for rank in self.ranks(a) {
                    self.ranks(b).into_iter().for_each(|other| self.direct(rank, other));
                }
            }
        }
        for machine in 0..count {
            let Some(shared) = self.measured.nic(machine) else { continue };
            let name = self.measured.names[machine].clone();
            let outside: Vec<u32> =
                (0..count).filter(|&other| other != machine).flat_map(|m| self.ranks(m)).collect();
            let mut all = Vec::new();
            for rank in self.ranks(machine) {
                let pairs: Vec<Pair> = outside.iter().map(|&other| self.measured.pair(rank, other)).collect();
                if self.measured.memory(machine).is_none() {
                    let ends = [self.device(rank), format!("{name}.{NIC}")];
                    self.link(ends, most(pairs.iter().map(ways)), 0.0);
                }
                all.extend(pairs);
            }
            if self.measured.memory(machine).is_some() {
                let ends = [format!("{name}.{MEMORY}"), format!("{name}.{NIC}")];
                self.link(ends, most(all.iter().map(ways).chain([shared])), 0.0);
            }
            let latency_us = self.latency(&all) / 2.0;
            self.link([format!("{name}.{NIC}"), NETWORK.to_string()], shared, latency_us);
        }
    }

    fn ranks(&self, machine: usize) -> Vec<u32> {
        let of = |rank: &u32| self.measured.machines[*rank as usize] == machine;
        (0..self.measured.machines.len() as u32).filter(of).collect()
    }

    fn device(&self, rank: u32) -> String {
        format!("{}.rank{rank}", self.measured.names[self.measured.machines[rank as usize]])
    }

    /// A link of a pair's own.
    fn direct(&mut self, a: u32, b: u32) {
        let pair = self.measured.pair(a, b);
        let ends = [self.device(a), self.device(b)];
        self.link(ends, ways(&pair), self.latency(&[pair]));
    }

    /// What a message takes on its way: the median of some pairs, less what its ranks pay.
    fn latency(&self, pairs: &[Pair]) -> f64 {
        let mut all: Vec<f64> = pairs.iter().map(|pair| pair.latency_us).collect();
        all.sort_by(f64::total_cmp);
        let median = all.get(all.len() / 2).copied().unwrap_or(0.0);
        (median - 2.0 * self.message_us).max(0.0)
    }

    /// One link, or one for each direction.
    fn link(&mut self, between: [String; 2], ways: Ways, latency_us: f64) {
        let link = |between, bytes_per_us, duplex| LinkDecl {
            between,
            pairs: None,
            bytes_per_us,
            latency_us: rounded(latency_us),
            duplex,
            count: 1,
            span: Span::default(),
        };
        let links = &mut self.description.links;
        if !is_lopsided(ways) {
            return links.push(link(between, mean(ways), Duplex::Full));
        }
        let back = [between[1].clone(), between[0].clone()];
        links.push(link(between, ways[0], Duplex::OneWay));
        links.push(link(back, ways[1], Duplex::OneWay));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_topo::Network;

    fn pair(latency_us: f64) -> Pair {
        Pair { latency_us, message_us: 1.0, byte_ns: [0.25; 2] }
    }

    fn network(measured: &Measured) -> Network {
        let text = coll_topo::write(&description(measured), &[]);
        coll_topo::load("probe", &text).network().unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Latency and bandwidth of a way, and its links.
    fn way(network: &Network, from: u32, to: u32) -> (f64, f64, Vec<String>) {
        let mut way = Vec::new();
        network.routes.route(from, to, &mut way);
        let links: Vec<_> = way.iter().map(|&link| &network.links[link as usize]).collect();
        let latency_us = links.iter().map(|link| link.latency_us).sum();
        let least = links.iter().map(|link| link.bytes_per_us).fold(f64::INFINITY, f64::min);
        (latency_us, least, links.iter().map(|link| link.name.clone()).collect())
    }

    #[test]
    fn pairs_by_themselves_have_links_of_their_own() {
        let measured = Measured {
            names: ["a_example", "b"].map(str::to_string).to_vec(),
            machines: vec![0, 0, 1],
            pairs: vec![pair(5.0), pair(20.0), pair(1.5)],
            together: Vec::new(),
            copy_ns: 0.1,
            reduce_ns: 0.2,
        };
        let network = network(&measured);
        let names: Vec<&str> = network.devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["a_example.rank0", "a_example.rank1", "b.rank2"]);
        let alone = |from, to| {
            let (latency_us, bytes_per_us, links) = way(&network, from, to);
            assert_eq!(links.len(), 1);
            (latency_us, bytes_per_us)
        };
        assert_eq!(alone(0, 1), (3.0, 4000.0));
        assert_eq!(alone(2, 0), (18.0, 4000.0));
        assert_eq!(alone(1, 2), (0.0, 4000.0), "a link takes no less than nothing");
        assert_eq!((network.devices[0].message_us, network.devices[0].copy_ns), (1.0, 0.1));
    }

    /// A line that is slower one way, and NICs that send less than they take: ways differ by their direction.
    #[test]
    fn directions_that_differ_have_links_of_their_own() {
        let lopsided = Pair { byte_ns: [0.25, 1.0], ..pair(5.0) };
        let alone = |pairs, machines| Measured {
            names: ["a", "b"].map(str::to_string).to_vec(),
            machines,
            pairs,
            together: Vec::new(),
            copy_ns: 0.1,
            reduce_ns: 0.2,
        };
        let line = network(&alone(vec![lopsided], vec![0, 1]));
        assert_eq!((way(&line, 0, 1).1, way(&line, 1, 0).1), (4000.0, 1000.0));
        assert_eq!((way(&line, 0, 1).0, way(&line, 1, 0).0), (3.0, 3.0));
        // A little is noise.
        let even = network(&alone(vec![Pair { byte_ns: [0.25, 0.3], ..pair(5.0) }], vec![0, 1]));
        assert_eq!(way(&even, 0, 1).1, way(&even, 1, 0).1);

        // Two ranks of each: a sends 1 GB/s in all, and takes 3.
        let machines = vec![0, 0, 1, 1];
        let mut measured = alone(vec![pair(6.0); 6], machines.clone());
        measured.together = super::super::together::sets(&machines);
        measured.together.iter_mut().for_each(|set| set.bytes_per_us = [1000.0, 3000.0]);
        let shared = network(&measured);
        assert_eq!((way(&shared, 0, 2).1, way(&shared, 2, 0).1), (1000.0, 3000.0));
        let [there, other] = [(0, 2), (1, 3)].map(|(from, to)| way(&shared, from, to).2);
        assert!(there.iter().any(|link| other.contains(link)), "{there:?} {other:?}");
    }

    /// Two machines of four ranks; pairs alone have 4 GB/s.
    fn two_machines(within: f64, between: f64) -> Network {
        let machines = vec![0, 0, 0, 0, 1, 1, 1, 1];
        let mut together = super::super::together::sets(&machines);
        for set in &mut together {
            set.bytes_per_us = [if set.machines[0] == set.machines[1] { within } else { between }; 2];
        }
        network(&Measured {
            names: ["a", "b"].map(str::to_string).to_vec(),
            machines,
            pairs: vec![pair(6.0); 28],
            together,
            copy_ns: 0.1,
            reduce_ns: 0.2,
        })
    }

    #[test]
    fn what_pairs_share_is_a_link_that_all_their_ways_cross() {
        // Two pairs within have 8 GB/s alone, four between 16.
        let free = two_machines(7900.0, 15000.0);
        assert_eq!(way(&free, 0, 1).2.len(), 1);
        assert_eq!(way(&free, 0, 4).2.len(), 1);

        let network = two_machines(7900.0, 5000.0);
        assert_eq!(way(&network, 0, 1).2.len(), 1);
        let (latency_us, bytes_per_us, links) = way(&network, 0, 4);
        assert_eq!((latency_us, bytes_per_us), (4.0, 4000.0), "one pair gets what it got alone");
        let other = way(&network, 1, 5).2;
        let both: Vec<&String> = links.iter().filter(|link| other.contains(link)).collect();
        let shared = network.links.iter().filter(|link| both.contains(&&link.name));
        assert_eq!(shared.map(|link| link.bytes_per_us).fold(f64::INFINITY, f64::min), 5000.0);

        let network = two_machines(5000.0, 5000.0);
        let (latency_us, bytes_per_us, links) = way(&network, 0, 1);
        assert_eq!((latency_us, bytes_per_us), (4.0, 4000.0));
        let other = way(&network, 2, 3).2;
        let shared =
            network.links.iter().filter(|link| links.contains(&link.name) && other.contains(&link.name));
        assert_eq!(shared.map(|link| link.bytes_per_us).collect::<Vec<_>>(), [5000.0]);
        // Between machines the way goes through both.
        let (_, bytes_per_us, links) = way(&network, 0, 4);
        assert!(links.iter().any(|link| link.contains("nic")) && bytes_per_us == 4000.0, "{links:?}");
    }
}
