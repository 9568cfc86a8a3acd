//! Choosing on a topology: where ranks stand on a network, and what a plan takes there.
//!
//! With a [`Ground`] a [`Chooser`](super::Chooser) weighs candidates by simulated runs instead of by constants, and a
//! schedule that goes node by node has the nodes that the network has. What depends on it is the choice alone: a plan is
//! proved as ever. All ranks of a job must have the same one, as they must have the same constants.

use super::candidates::{Candidate, LOCAL};
use coll_cost::{Layout, Work};
use coll_plan::Plan;
use coll_sim::{Element, Options, Simulator};
use coll_topo::Network;
use sha2::{Digest, Sha256};

/// A network, and the device of each rank of a job.
#[derive(Clone, Debug)]
pub struct Ground {
    network: Network,
    devices: Vec<u32>,
}

/// Why ranks cannot stand there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroundError {
    /// A device that the network does not have.
    #[error("rank {rank} is to stand on device {device} of `{network}`, which has {devices}, counted from 0")]
    NoDevice {
        /// The rank.
        rank: u32,
        /// The device.
        device: u32,
        /// How many there are.
        devices: usize,
        /// The network's name.
        network: String,
    },
    /// Two ranks on one device.
    #[error("ranks {first} and {second} are both to stand on device {device}; each takes one of its own")]
    Twice {
        /// The first rank.
        first: u32,
        /// The second.
        second: u32,
        /// The device.
        device: u32,
    },
    /// Ranks without devices.
    #[error("`{network}` gives {devices} devices to {ranks} ranks; take fewer ranks or a larger topology")]
    TooFew {
        /// Devices that are given.
        devices: usize,
        /// The ranks.
        ranks: u32,
        /// The network's name.
        network: String,
    },
}

impl Ground {
    /// Ranks on a network, in the order in which it lists its devices, or each on the device that `order` gives.
    ///
    /// # Errors
    /// Devices that are missing or taken twice.
    pub fn new(network: Network, ranks: u32, order: Option<Vec<u32>>) -> Result<Ground, GroundError> {
        let devices = order.unwrap_or_else(|| (0..network.devices.len() as u32).collect());
        if devices.len() < ranks as usize {
            return Err(GroundError::TooFew { devices: devices.len(), ranks, network: network.name });
        }
        let devices = devices[..ranks as usize].to_vec();
        for (rank, &device) in (0..).zip(&devices) {
            if device as usize >= network.devices.len() {
                let (devices, network) = (network.devices.len(), network.name);
                return Err(GroundError::NoDevice { rank, device, devices, network });
            }
            if let Some(first) = devices[..rank as usize].iter().position(|&taken| taken == device) {
                return Err(GroundError::Twice { first: first as u32, second: rank, device });
            }
        }
        Ok(Ground { network, devices })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The device of each rank.
    pub fn devices(&self) -> &[u32] {
        &self.devices
    }

    /// How many ranks stand on it.
    pub fn ranks(&self) -> u32 {
        self.devices.len() as u32
    }

    /// The same network with some of the ranks, numbered anew in the order in which they are given.
    pub fn among(&self, ranks: &[u32]) -> Option<Ground> {
        let devices = ranks.iter().map(|&rank| self.devices.get(rank as usize).copied());
        Some(Ground { network: self.network.clone(), devices: devices.collect::<Option<Vec<u32>>>()? })
    }

    /// How many ranks are in each node, where ranks that follow each other are in one: what a schedule that goes node by node
    /// is told.
    pub fn nodes(&self) -> Vec<u32> {
        let machine = |device: &u32| self.network.devices[*device as usize].machine;
        let runs = self.devices.chunk_by(|a, b| machine(a) == machine(b));
        runs.map(|run| run.len() as u32).collect()
    }

    /// Ranks in a node and nodes, for a model that knows no more: as the largest node has them.
    pub(super) fn layout(&self) -> Layout {
        let nodes = self.nodes();
        match nodes[..] {
            [] | [_] => Layout::one_host(self.ranks()),
            _ => {
                let largest = nodes.iter().copied().max().unwrap_or(1);
                Layout { ranks_per_host: largest, cores: largest }
            }
        }
    }

    /// A number that tells grounds apart on which choices may differ: of all devices, links and ways between ranks.
    pub fn fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        let mut way = Vec::new();
        for &device in &self.devices {
            hasher.update(format!("{:?}\n", self.network.devices[device as usize]));
        }
        for &from in &self.devices {
            for &to in &self.devices {
                self.network.routes.route(from, to, &mut way);
                for &link in &way {
                    let link = &self.network.links[link as usize];
                    hasher.update(format!("{} {:?} {:?}\n", link.name, link.bytes_per_us, link.latency_us));
                }
                hasher.update("\n");
            }
        }
        hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// What a run of a plan takes, in microseconds; none if it cannot run here.
    pub(super) fn run_us(&self, plan: &Plan, work: Work) -> Option<f64> {
        let size = work.dtype.size_bytes();
        let element = Element { given_bytes: size, held_bytes: size, sent_bytes: size };
        let options = Options { bytes: work.bytes, element, ..Options::default() };
        let options = Options { bytes: coll_sim::size_taken_bytes(plan, &options), ..options };
        let simulator = Simulator::new(vec![plan], &self.network, Some(&self.devices));
        let run = simulator.and_then(|simulator| simulator.run(&options));
        run.map(|prediction| prediction.time_us)
            .map_err(|error| log::debug!("{} does not run on {}: {error}", plan.name, self.network.name))
            .ok()
    }

    /// Gives a candidate that goes node by node the nodes that there are.
    pub(super) fn shape(&self, candidate: &mut Candidate) {
        let nodes = self.nodes();
        if nodes.len() < 2 {
            return;
        }
        let source = candidate.source();
        if source.schedules()[candidate.index(&source)].lists.iter().any(|name| name == LOCAL) {
            candidate.params.retain(|(name, _)| name != LOCAL);
            candidate.params.extend(node_list(&nodes).into_iter().map(|size| (LOCAL.to_string(), size)));
        }
    }
}

/// The sizes of nodes as a schedule's list, which goes on with its last number.
pub fn node_list(sizes: &[u32]) -> Vec<i64> {
    let mut list: Vec<i64> = sizes.iter().map(|&size| i64::from(size)).collect();
    while list.len() > 1 && list[list.len() - 1] == list[list.len() - 2] {
        list.pop();
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::{Chooser, Question};
    use coll_cost::Tuning;
    use std::sync::Arc;

    /// Machines of so many devices each; 100 GB/s within, 1 GB/s between.
    fn machines(sizes: &[u32]) -> Network {
        let machine = |(at, size): (usize, &u32)| {
            format!(
                "[[machine]]\nname = \"m{at}\"\n[[machine.device]]\nname = \"gpu\"\ncount = {size}\n[[machine.switch]]\nname = \"bus\"\n\
                 [[machine.link]]\nbetween = [\"gpu*\", \"bus\"]\nbandwidth = \"100GB/s\"\n[[link]]\nbetween = [\"m{at}.bus\", \"leaf\"]\n\
                 bandwidth = \"1GB/s\"\n"
            )
        };
        let text: String = sizes.iter().enumerate().map(machine).collect();
        coll_topo::load("lab.toml", &format!("{text}[[switch]]\nname = \"leaf\"\n"))
            .network()
            .expect("it is right")
    }

    fn chooser(sizes: &[u32], order: Option<Vec<u32>>) -> Chooser {
        let network = machines(sizes);
        let ranks = sizes.iter().sum();
        let ground = Ground::new(network, ranks, order).expect("there are as many devices");
        Chooser::new(Tuning::shipped()).on(Arc::new(ground))
    }

    #[test]
    fn large_calls_go_node_by_node_whatever_the_nodes_are() {
        for (sizes, local) in
            [(&[4, 4][..], "(local=4)"), (&[4, 4, 2], "(local=4,4,2)"), (&[2, 5], "(local=2,5)")]
        {
            let question = Question::new("allreduce", sizes.iter().sum(), 16 << 20);
            let taken = chooser(sizes, None).choose(&question).expect("something serves");
            let name = taken.candidate.to_string();
            let all = chooser(sizes, None).explain(&question).expect("something serves");
            let two_level =
                all.iter().find(|one| one.candidate.schedule == "two_level").expect("it is looked at");
            let shown = two_level.candidate.to_string();
            assert!(shown.ends_with(local) || local == "(local=4)", "{shown}");
            assert_eq!(name, shown, "{all:#?}");
        }
    }

    #[test]
    fn where_ranks_stand_decides() {
        // No schedule goes by these pairs: neither are they ranks that follow each other, nor do they differ in one bit.
        let apart = chooser(&[2, 2], Some(vec![0, 2, 3, 1]));
        let question = Question::new("allreduce", 4, 16 << 20);
        let nodes = apart.ground().expect("it has one").nodes();
        assert_eq!(nodes, [1, 2, 1]);
        let here = chooser(&[2, 2], None);
        let time = |chooser: &Chooser| chooser.choose(&question).expect("something serves").predicted_us;
        assert!(time(&here) < time(&apart), "{} {}", time(&here), time(&apart));
        assert_ne!(here.fingerprint(), apart.fingerprint());
        assert_ne!(here.fingerprint(), Chooser::new(Tuning::shipped()).fingerprint());
        // Of ranks that it does not speak of, and where bits may not depend on places, it says nothing.
        let shipped = Chooser::new(Tuning::shipped());
        for question in [Question::new("allreduce", 3, 1 << 20), Question { deterministic: true, ..question }]
        {
            assert_eq!(apart.choose(&question), shipped.choose(&question));
        }
    }

    #[test]
    fn ranks_without_a_device_of_their_own_are_refused() {
        let new = |ranks, order| {
            Ground::new(machines(&[2, 2]), ranks, order)
                .map(|ground| ground.devices)
                .map_err(|e| e.to_string())
        };
        assert_eq!(new(3, None), Ok(vec![0, 1, 2]));
        assert_eq!(new(2, Some(vec![3, 1])), Ok(vec![3, 1]));
        assert!(new(5, None).unwrap_err().contains("4 devices to 5 ranks"));
        assert!(new(2, Some(vec![1, 1])).unwrap_err().contains("ranks 0 and 1 are both"));
        assert!(new(2, Some(vec![1, 4])).unwrap_err().contains("which has 4, counted from 0"));
        let some = Ground::new(machines(&[2, 2]), 4, None).expect("there are four").among(&[3, 0]);
        assert_eq!(some.map(|ground| ground.devices), Some(vec![3, 0]));
    }
}
