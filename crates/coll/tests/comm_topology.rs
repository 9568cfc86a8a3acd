//! Communicators that know what they run on: schedules are chosen by what they take there, and are right.

#[path = "comm/world.rs"]
mod ranks;

use coll::{Communicator, RedOp};
use coll_topo::Network;
use ranks::{LIMIT, world_of};

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

/// Sums `len` numbers of each rank and gives the schedule that did.
fn summed(comm: &mut Communicator, len: usize) -> String {
    let rank = comm.rank() as f32;
    let mine: Vec<f32> = (0..len).map(|at| rank + (at % 7) as f32).collect();
    let mut sum = vec![0.0; len];
    comm.all_reduce(&mine, &mut sum, RedOp::Sum).unwrap_or_else(|error| panic!("{error}"));
    let n = comm.world();
    let base = (0..n).sum::<u32>() as f32;
    assert!(sum.iter().enumerate().all(|(at, &sum)| sum == base + (n as usize * (at % 7)) as f32));
    comm.flight_record().last().expect("it is recorded").schedule.clone()
}

#[test]
fn large_calls_go_by_the_topologys_nodes_and_small_ones_in_few_steps() {
    let builder = Communicator::builder().topology(machines(&[3, 2]), None);
    let taken = world_of(builder, 5, |comm| (summed(comm, 1 << 18), summed(comm, 1)));
    assert!(taken.iter().all(|(large, _)| large == "allreduce.two_level"), "{taken:?}");
    assert!(
        taken.iter().all(|(_, small)| small == &taken[0].1 && small != "allreduce.two_level"),
        "{taken:?}"
    );
    // Standing otherwise, no two ranks that follow each other are near, and it is as on five machines.
    let apart = Communicator::builder().topology(machines(&[3, 2]), Some(vec![0, 3, 1, 4, 2]));
    let taken = world_of(apart, 5, |comm| summed(comm, 1 << 18));
    assert!(taken.iter().all(|schedule| schedule == &taken[0]), "{taken:?}");
}

#[test]
fn what_is_split_off_stands_where_it_stood() {
    let builder = Communicator::builder().topology(machines(&[3, 3]), None);
    let taken = world_of(builder, 6, |comm| {
        // Two of each machine, in an order that has those of one follow each other.
        let color = (comm.rank() % 3 != 2).then_some(1);
        let mut part = comm.split(color, comm.rank().into()).expect("it splits")?;
        part.set_time_limit(LIMIT);
        Some(summed(&mut part, 1 << 18))
    });
    assert_eq!(taken.iter().flatten().count(), 4);
    assert!(taken.iter().flatten().all(|schedule| schedule == "allreduce.two_level"), "{taken:?}");
}

#[test]
fn what_cannot_be_is_refused_before_ranks_meet() {
    let refused = |order: Option<Vec<u32>>, ranks: u32| {
        let builder = Communicator::builder().topology(machines(&[2, 2]), order);
        builder.local(ranks).map(|_| ()).expect_err("it cannot be").to_string()
    };
    assert!(refused(None, 5).contains("gives 4 devices to 5 ranks"), "{}", refused(None, 5));
    assert!(refused(Some(vec![0, 0]), 2).contains("ranks 0 and 1 are both"));
    assert!(refused(Some(vec![0, 9]), 2).contains("device 9"));
}
