//! A wait that is left out is caught: where the judge of stream plans says that it matters, the stand-in reports a race, and
//! where it says that it does not, the stand-in finds none.

use crate::support::devices::{Memory, dealt, machine, stream_plan};
use crate::support::order::race;
use crate::support::{Call, Case, plan, seed};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_gpu::Group;

#[test]
fn every_missing_wait_is_caught() {
    let seed = seed();
    let mut found = [0; 2];
    for (collective, name, in_place) in [
        ("allreduce", "ring", true),
        ("allreduce", "recursive_doubling", false),
        ("allgather", "bruck", false),
        ("broadcast", "chain", true),
    ] {
        let plan = plan(collective, name, 4, 0, &Options::default()).expect("it applies");
        let call = Call::new(&plan, &Case { in_place, ..Case::new(RedOp::Avg, DType::I32) });
        let waits = {
            let _session = machine(4, true, seed);
            let group = Group::new(&dealt(4, 4)).expect("the devices open");
            stream_plan(&group, &call).expect("it makes a stream plan").waits()
        };
        for wait in 0..waits {
            let session = machine(4, true, seed + wait as u64);
            let matters = {
                let group = Group::new(&dealt(4, 4)).expect("the devices open");
                let whole = stream_plan(&group, &call).expect("it makes a stream plan");
                let less = whole.without_wait(wait).expect("there is such a wait");
                let matters = race(&less);
                let memory = Memory::new(&group, &call);
                let mut prepared = group.prepare_stream_plan(less).expect("it is made ready");
                prepared.launch(&memory.pointers(), &memory.handles()).expect("it is put on streams");
                // What still runs when the caller's streams are done is found when the device is waited for.
                (0..4).for_each(|rank| {
                    let device = group.device(rank).expect("there is such a rank");
                    device.synchronize().expect("it ends");
                });
                if matters.is_none() && session.race_count() == 0 {
                    assert!(memory.outputs() == call.on_cpu(), "{} without wait {wait}", plan.name);
                }
                matters
            };
            match &matters {
                Some(race) => {
                    let name = &plan.name;
                    assert!(session.race_count() > 0, "{name} without wait {wait} is not caught: {race}");
                    found[1] += 1;
                }
                None => {
                    let races = session.races();
                    assert!(races.is_empty(), "{} without wait {wait}: {races:?}", plan.name);
                    found[0] += 1;
                }
            }
        }
    }
    println!("{} waits left out are races, {} order what does not touch", found[1], found[0]);
    assert!(found[1] > 100, "{found:?}");
}
