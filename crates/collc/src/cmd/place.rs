//! Where ranks stand on a network: as a plan says, as its devices are listed, shuffled, as the user says, or where they send
//! each other least over slow links.

use crate::failure::Failure;
use crate::output;
use coll_plan::Plan;
use coll_sim::{ByTime, Options, Placed};
use coll_topo::Network;

/// What `--place` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Placed by what ranks send each other.
    Best,
    /// In the topology's order, whatever a plan says.
    Listed,
    /// The first devices in an order of chance that a seed settles.
    Shuffled(u64),
    /// These devices.
    Given(Vec<u32>),
}

/// Where the ranks of one plan stand.
pub(crate) struct Stand {
    /// The device of each rank; in the topology's order if there is none.
    pub(crate) order: Option<Vec<u32>>,
    /// How they came there, if they do not simply stand in the topology's order.
    pub(crate) how: Option<String>,
}

/// So many devices of an order are shown to people.
const SHOWN_MAX: usize = 64;

impl Wish {
    /// `best`, `none`, `shuffled:7`, or `0,2,n1.gpu0`: numbers or names of devices.
    pub(crate) fn read(network: &Network, text: &str) -> Result<Wish, Failure> {
        match text.trim() {
            "best" => Ok(Wish::Best),
            "none" => Ok(Wish::Listed),
            other => match other.strip_prefix("shuffled:") {
                None => devices(network, other).map(Wish::Given),
                Some(seed) => seed.parse().map(Wish::Shuffled).map_err(|_| {
                    Failure::unusable(format!("`--place`: `{seed}` is no seed"))
                        .help("write a whole number, such as `shuffled:1`")
                }),
            },
        }
    }
}

fn devices(network: &Network, text: &str) -> Result<Vec<u32>, Failure> {
    let device = |word: &str| {
        let word = word.trim();
        let by_name = network.devices.iter().position(|device| device.name == word);
        let found = by_name.or_else(|| word.parse().ok().filter(|&at: &usize| at < network.devices.len()));
        found.map(|at| at as u32).ok_or_else(|| {
            let first = network.devices.first().map_or("", |device| device.name.as_str());
            let last = network.devices.len().saturating_sub(1);
            Failure::unusable(format!("`--place`: `{}` has no device `{word}`", network.name)).help(format!(
                "devices are 0 to {last}, or go by names such as `{first}`; `best`, `none` and `shuffled:SEED` are places too"
            ))
        })
    };
    text.split(',').map(device).collect()
}

/// Where the ranks of a plan stand: as is wished, else as the plan says, else in the topology's order.
pub(crate) fn stand(
    wish: Option<&Wish>,
    plans: &[Plan],
    network: &Network,
    options: &Options,
) -> Result<Stand, Failure> {
    let plan = &plans[0];
    let stand = |order, how: String| Ok(Stand { order: Some(order), how: Some(how) });
    match (wish, &plan.placement) {
        (Some(Wish::Listed), _) | (None, None) => Ok(Stand { order: None, how: None }),
        (Some(Wish::Given(order)), _) => stand(order.clone(), "as `--place` says".into()),
        (Some(Wish::Shuffled(seed)), _) => {
            stand(shuffled(plan.world(), *seed), format!("shuffled by seed {seed}"))
        }
        (Some(Wish::Best), _) => {
            let plans: Vec<&Plan> = plans.iter().collect();
            let placed =
                coll_sim::placed(&plans, network, options).map_err(|error| super::sim::failure(&error))?;
            let how = told(&placed);
            stand(placed.order, how)
        }
        (None, Some(placement)) => {
            if placement.topology != network.name {
                output::complain_raw(&format!(
                    "note: {} was placed on `{}`, and this is `{}`: it may be slow here; `--place best` places it anew, \
                     `--place none` takes the order in which devices are listed\n",
                    plan.name, placement.topology, network.name
                ));
            }
            stand(placement.order.clone(), format!("as the plan says, placed on `{}`", placement.topology))
        }
    }
}

/// How a placement was found, and what it is worth.
pub(crate) fn told(placed: &Placed) -> String {
    let Placed { method, before, after, listed_us, found_us, taken, by_time, .. } = placed;
    let method = match by_time {
        ByTime::All(orders) => format!("exact by time, {orders} orders were run"),
        ByTime::Exchanges { tried, kept } => {
            format!("{method} by links, then {kept} of {tried} exchanges by time")
        }
    };
    match taken {
        true => format!(
            "{method}: the busiest link needs {:.2} µs, not {:.2}, and a run {found_us:.2}, not {listed_us:.2}",
            after.bottleneck_us, before.bottleneck_us
        ),
        false => {
            format!("as listed: {method}, found no order in which a run takes less than {listed_us:.2} µs")
        }
    }
}

/// An order for people: `0 2 1 3`.
pub(crate) fn shown(order: &[u32]) -> String {
    let words: Vec<String> = order.iter().take(SHOWN_MAX).map(u32::to_string).collect();
    words.join(" ") + if order.len() > SHOWN_MAX { " …" } else { "" }
}

/// As many devices as ranks, in an order that depends on the seed alone (D. Lemire's and R. Durstenfeld's shuffle over
/// S. Vigna's splitmix64).
fn shuffled(ranks: u32, seed: u64) -> Vec<u32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut order: Vec<u32> = (0..ranks).collect();
    for at in (1..order.len()).rev() {
        let other = (u128::from(next()) * (at as u128 + 1)) >> 64;
        order.swap(at, other as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_settles_an_order_that_has_each_device_once() {
        let one = shuffled(32, 1);
        assert_eq!(one, shuffled(32, 1));
        assert_ne!(one, shuffled(32, 2));
        let mut sorted = one.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..32).collect::<Vec<_>>());
        assert_ne!(one, sorted);
        assert_eq!((shuffled(0, 1), shuffled(1, 1)), (vec![], vec![0]));
    }
}
