//! The network, and where ranks stand on it.

use crate::args::Ground;
use crate::cmd::topo;
use crate::failure::Failure;
use crate::{output, render};
use coll_topo::Network;

/// A network, with ranks on it.
pub(crate) struct Place {
    pub(crate) network: Network,
    /// How many ranks were asked for.
    pub(crate) ranks: Option<u32>,
    /// The device of each rank, if it was said.
    pub(crate) order: Option<Vec<u32>>,
}

impl Place {
    pub(crate) fn new(ground: &Ground) -> Result<Place, Failure> {
        let Some(topology) = &ground.topology else {
            return Err(Failure::unusable("on which network?")
                .help("name one with `--topology`, such as `full:8,bw=25GB/s,lat=1us`"));
        };
        let network = network(topology)?;
        let ranks = match &ground.ranks {
            None => None,
            Some(counts) => Some(counts.single().ok_or_else(|| {
                Failure::unusable("a simulation is of one rank count").help("give one, such as `--ranks 8`")
            })?),
        };
        let order = match &ground.place {
            None => None,
            Some(text) => Some(order(&network, text)?),
        };
        Ok(Place { network, ranks, order })
    }

    /// Ranks of a schedule that is compiled for this place.
    pub(crate) fn default_ranks(&self) -> u32 {
        let places = self.order.as_ref().map_or(self.network.devices.len(), Vec::len);
        self.ranks.unwrap_or(u32::try_from(places).unwrap_or(u32::MAX).min(coll::RANKS_MAX))
    }
}

/// A topology file of any kind, or what a generator makes.
fn network(text: &str) -> Result<Network, Failure> {
    let loaded = topo::load(text)?;
    output::complain_raw(&render::render(&loaded.sources, &loaded.diagnostics, output::colours()));
    match &loaded.topology {
        Some(topology) => Ok(topology.network()),
        None => Err(Failure::unusable(format!("`{text}` is no topology that can be used"))),
    }
}

/// `0,2,n1.gpu0`: numbers or names of devices.
fn order(network: &Network, text: &str) -> Result<Vec<u32>, Failure> {
    let device = |word: &str| {
        let word = word.trim();
        let by_name = network.devices.iter().position(|device| device.name == word);
        let found = by_name.or_else(|| word.parse().ok().filter(|&at: &usize| at < network.devices.len()));
        found.map(|at| at as u32).ok_or_else(|| {
            let first = network.devices.first().map_or("", |device| device.name.as_str());
            let last = network.devices.len().saturating_sub(1);
            Failure::unusable(format!("`--place`: `{}` has no device `{word}`", network.name))
                .help(format!("devices are 0 to {last}, or go by names such as `{first}`"))
        })
    };
    text.split(',').map(device).collect()
}
