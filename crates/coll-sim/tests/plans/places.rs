//! What ranks send each other, and where that puts them: against sums by hand and against every arrangement's time.

use crate::library::compile;
use crate::network::{Constants, full, machines};
use coll_sim::{ByTime, Element, Options, Simulator, placed, size_taken_bytes, traffic};

#[test]
fn traffic_is_what_the_schedule_says() {
    let plan = compile("allreduce.ring", 4, &[]).expect("a ring is for any number");
    let element = Element { given_bytes: 4, held_bytes: 4, sent_bytes: 2 };
    let options = Options { bytes: 4096, element, ..Options::default() };
    let found = traffic(&[&plan], &options).expect("it is whole");
    // Six messages of a quarter each, at half the size.
    let due: Vec<(u32, u32, u64)> = (0..4).map(|rank| (rank, (rank + 1) % 4, 6 * 1024 / 2)).collect();
    assert_eq!(found.flows().collect::<Vec<_>>(), due);
    assert!(traffic(&[&plan.slice(1).expect("it has rank 1")], &options).is_err());
}

#[test]
fn sizes_are_taken_down_to_what_blocks_divide() {
    let plan = compile("allgather.ring", 4, &[]).expect("a ring is for any number");
    let element = Element { given_bytes: 4, held_bytes: 4, sent_bytes: 4 };
    let at = |bytes| size_taken_bytes(&plan, &Options { bytes, element, ..Options::default() });
    assert_eq!([at(64), at(0)], [64, 0]);
    let taken = at(71);
    assert!((56..=71).contains(&taken), "{taken}");
    assert!(
        placed(
            &[&plan],
            &full(4, Constants::PLAIN),
            &Options { bytes: taken, element, ..Options::default() }
        )
        .is_ok()
    );
}

#[test]
fn where_all_ways_are_alike_ranks_stay_as_they_are() {
    let plan = compile("allreduce.rabenseifner", 8, &[]).expect("it is for any number");
    let options = Options { bytes: 1 << 16, ..Options::default() };
    let found = placed(&[&plan], &full(8, Constants::PLAIN), &options).expect("it can be placed");
    assert!(!found.taken && found.order == (0..8).collect::<Vec<_>>(), "{found:?}");
    assert!(matches!(found.by_time, ByTime::Exchanges { kept: 0, tried } if tried > 8), "{found:?}");
    assert!(found.found_us >= found.listed_us * (1.0 - 1e-6));
    let more = placed(&[&plan], &full(7, Constants::PLAIN), &options);
    assert!(more.expect_err("a device is missing").to_string().contains("7 devices to 8 ranks"));
}

/// The least time of a plan over all orders of its ranks.
fn least_us(plan: &coll_plan::Plan, network: &coll_topo::Network, options: &Options) -> f64 {
    let count = network.devices.len() as u32;
    let mut orders: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..plan.world() {
        let longer = |order: &Vec<u32>| {
            let free = (0..count).filter(|device| !order.contains(device));
            free.map(|device| [&order[..], &[device]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    let run = |order: &Vec<u32>| {
        let simulator = Simulator::new(vec![plan], network, Some(order)).expect("it is an order");
        simulator.run(options).expect("it ends").time_us
    };
    orders.iter().map(run).fold(f64::INFINITY, f64::min)
}

#[test]
fn few_ranks_are_placed_where_no_order_is_faster() {
    // Small messages: links are hardly busy, and what counts is which messages wait for which.
    let network = machines(8, Constants { message_us: 0.5, ..Constants::PLAIN });
    for (name, ranks, bytes) in [
        ("broadcast.binomial", 5, 64),
        ("allreduce.rabenseifner", 4, 64),
        ("reduce.chain", 4, 1 << 16),
        ("gather.binomial", 5, 320),
    ] {
        let plan = compile(name, ranks, &[]).expect("it is for any number");
        let options = Options { bytes, ..Options::default() };
        let found = placed(&[&plan], &network, &options).expect("it can be placed");
        assert!(matches!(found.by_time, ByTime::All(orders) if orders > 1000), "{name}: {found:?}");
        let least = least_us(&plan, &network, &options);
        assert!((found.found_us - least).abs() < 1e-9 * least, "{name}: {} and {least}", found.found_us);
    }
}

#[test]
fn exchanges_by_time_gain_where_links_tell_nothing() {
    // Every order of a tree of empty messages loads links alike, which is not at all; the time is that of the slowest way down.
    let network = machines(16, Constants { message_us: 0.5, ..Constants::PLAIN });
    let plan = compile("broadcast.binomial", 16, &[]).expect("it is for any number");
    let options = Options { bytes: 8, ..Options::default() };
    let found = placed(&[&plan], &network, &options).expect("it can be placed");
    let ByTime::Exchanges { tried, .. } = found.by_time else { panic!("16 ranks have too many orders") };
    assert!(tried > 0 && found.found_us <= found.listed_us, "{found:?}");
    let again = placed(&[&plan], &network, &options).expect("it can be placed");
    assert_eq!(again, found);
}
