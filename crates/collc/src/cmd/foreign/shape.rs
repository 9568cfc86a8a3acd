//! What it costs that a schedule was made elsewhere. A file of another tool does not say for which machines it is; where its
//! messages go between several, that is told, with how much of its bytes.

use crate::failure::Failure;
use crate::output;
use coll_plan::Plan;
use coll_topo::Network;
use std::collections::BTreeSet;

/// Warns of what goes between machines, if ranks stand on devices in the network's order.
///
/// # Errors
/// If there are more ranks than devices.
pub(crate) fn tell(name: &str, plan: &Plan, network: &Network) -> Result<(), Failure> {
    let (ranks, devices) = (plan.world(), network.devices.len());
    if ranks as usize > devices {
        let message = format!("`{name}` is for {ranks} ranks, and `{}` has {devices} devices", network.name);
        return Err(Failure::unusable(message).help("name a topology with a device for each rank"));
    }
    if let Some(warning) = warning(name, plan, network) {
        output::complain_raw(&format!("warning: {warning}\n"));
    }
    Ok(())
}

fn warning(name: &str, plan: &Plan, network: &Network) -> Option<String> {
    let machine = |rank: u32| network.devices[rank as usize].machine;
    let machines: BTreeSet<u32> = (0..plan.world()).map(machine).collect();
    let (mut all, mut between) = (BTreeSet::new(), BTreeSet::new());
    let (mut blocks, mut crossing) = (0.0, 0.0);
    for part in &plan.ranks {
        for op in &part.ops {
            let Some((peer, channel)) = op.action.sends_to() else { continue };
            let sent: f64 = part.regions(op.source).iter().map(|region| share(plan, region)).sum();
            all.insert((part.rank, peer, channel));
            blocks += sent;
            if machine(part.rank) != machine(peer) {
                between.insert((part.rank, peer, channel));
                crossing += sent;
            }
        }
    }
    if between.is_empty() {
        return None;
    }
    let percent = if blocks > 0.0 { 100.0 * crossing / blocks } else { 0.0 };
    Some(format!(
        "`{name}` knows nothing of machines, and on `{}` its ranks stand on {}: {} of its {} connections go between these, \
         with {percent:.0} % of its bytes; `collc sim` tells what that costs, and `--place best` places ranks anew",
        network.name,
        machines.len(),
        between.len(),
        all.len(),
    ))
}

/// How much of a block a region is.
fn share(plan: &Plan, region: &coll_plan::Region) -> f64 {
    plan.cuts[region.high as usize].to_f64() - plan.cuts[region.low as usize].to_f64()
}
