//! The pass `shape`: a schedule's parameter for the ranks in each node is what the topology has.

use coll::Source;
use coll_sema::Instance;
use coll_topo::Network;

/// The parameter that says how many ranks each node has, as the library has it.
const LOCAL: &str = "local";

/// Sets a schedule's parameter `local`, if it declares one and nobody set it, and says so: the ranks in each node, with ranks on
/// devices as listed. Where it is a list, it is the sizes of all nodes. Where it is one number, nodes of which the last is smaller
/// keep their size if the schedule takes it; of others the largest number is taken that divides all, so that no group of ranks
/// lies on two nodes.
pub(crate) fn shape(
    network: &Network,
    source: &Source,
    schedule: usize,
    instance: &mut Instance,
) -> Option<String> {
    let info = &source.schedules()[schedule];
    let is_local = |(name, _): &(String, i64)| name == LOCAL;
    let declares = info.params.iter().any(is_local);
    if !declares || instance.params.iter().any(is_local) || instance.ranks as usize > network.devices.len() {
        return None;
    }
    let sizes = nodes(network, instance.ranks);
    if info.lists.iter().any(|name| name == LOCAL) {
        let list = coll::select::node_list(&sizes);
        let told = told(&list);
        instance.params.extend(list.into_iter().map(|size| (LOCAL.to_string(), size)));
        return Some(told);
    }
    let (last, full) = (*sizes.last()?, sizes[0]);
    let mut set = |local: u32| {
        instance.params.retain(|param| !is_local(param));
        instance.params.push((LOCAL.into(), i64::from(local)));
        source.module.instantiate(schedule, instance).is_ok()
    };
    let all_but_last = sizes[..sizes.len() - 1].iter().all(|&size| size == full) && last < full;
    if all_but_last && set(full) {
        return Some(format!(
            "shape: {LOCAL} = {full}, the ranks in each node but the last, which has {last}"
        ));
    }
    let local = sizes.iter().copied().reduce(common_divisor)?;
    instance.params.retain(|param| !is_local(param));
    instance.params.push((LOCAL.into(), i64::from(local)));
    let mut kinds = sizes;
    kinds.sort_unstable();
    kinds.dedup();
    Some(match kinds[..] {
        [_] => format!("shape: {LOCAL} = {local}, the ranks in each node"),
        _ => {
            let kinds: Vec<String> = kinds.iter().map(u32::to_string).collect();
            format!(
                "shape: {LOCAL} = {local}; nodes have {} ranks, and {LOCAL} is one number that divides all of them",
                kinds.join(" or ")
            )
        }
    })
}

/// What is said of a list.
fn told(list: &[i64]) -> String {
    let words: Vec<String> = list.iter().map(i64::to_string).collect();
    match list {
        [one] => format!("shape: {LOCAL} = {one}, the ranks in each node"),
        _ => format!("shape: {LOCAL} = {}, the ranks in each node in turn", words.join(", ")),
    }
}

/// How many ranks each node has, in the order of nodes. There is a device for each rank.
fn nodes(network: &Network, ranks: u32) -> Vec<u32> {
    let listed: Vec<u32> = (0..ranks).collect();
    coll_topo::place::nodes(network, &listed).iter().map(|node| node.len() as u32).collect()
}

/// Euclid's.
fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
