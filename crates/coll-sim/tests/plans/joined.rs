//! Where very many flows share links, rates are worked out now and then. How far that is from working them out always is
//! measured here, on schedules in which every rank sends to every other and starts one message after the other.

use crate::library::compile;
use crate::network::{Constants, bus, machines, ports};
use coll_sim::{Options, predict};

#[test]
fn many_joined_flows_take_nearly_what_exact_rates_have_them_take() {
    let constants = Constants { message_us: 0.5, reduce_ns: 0.01, copy_ns: 0.01, ..Constants::PLAIN };
    let mut most: f64 = 0.0;
    let mut told = String::new();
    for name in ["allreduce.one_shot", "alltoall.linear", "reduce_scatter.direct", "allgather.direct"] {
        let plan = compile(name, 40, &[]).expect("it is for any number");
        for network in [ports(40, constants), machines(40, constants), bus(40, constants)] {
            for bytes in [40 << 8, 40 << 14] {
                let run = |exact| {
                    let options = Options { bytes, exact, ..Options::default() };
                    predict(&[&plan], &network, &options).expect("it ends").time_us
                };
                let (near, exact) = (run(false), run(true));
                let off = (near / exact - 1.0).abs();
                told += &format!(
                    "{name} of {bytes} B on {}: {near:.2} for {exact:.2}, {:.2} %\n",
                    network.name,
                    100.0 * off
                );
                most = most.max(off);
            }
        }
    }
    assert!(most < 0.03, "{told}");
}
