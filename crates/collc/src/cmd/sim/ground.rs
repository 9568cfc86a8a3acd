//! The network, and where ranks are to stand on it.

use crate::args::Ground;
use crate::cmd::place::Wish;
use crate::cmd::topo;
use crate::failure::Failure;
use crate::{output, render};
use coll_topo::Network;

/// A network, with ranks on it.
pub(crate) struct Place {
    pub(crate) network: Network,
    /// How many ranks were asked for.
    pub(crate) ranks: Option<u32>,
    /// Where they are to stand, if that was said.
    pub(crate) wish: Option<Wish>,
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
        let wish = ground.place.as_deref().map(|text| Wish::read(&network, text)).transpose()?;
        Ok(Place { network, ranks, wish })
    }

    /// Ranks of a schedule that is compiled for this place.
    pub(crate) fn default_ranks(&self) -> u32 {
        let places = match &self.wish {
            Some(Wish::Given(order)) => order.len(),
            _ => self.network.devices.len(),
        };
        self.ranks.unwrap_or(u32::try_from(places).unwrap_or(u32::MAX).min(coll::RANKS_MAX))
    }
}

/// A topology file of any kind, or what a generator makes.
pub(crate) fn network(text: &str) -> Result<Network, Failure> {
    let loaded = topo::load(text)?;
    output::complain_raw(&render::render(&loaded.sources, &loaded.diagnostics, output::colours()));
    match &loaded.topology {
        Some(topology) => Ok(topology.network()),
        None => Err(Failure::unusable(format!("`{text}` is no topology that can be used"))),
    }
}
