//! Thousands of worlds, each from a seed of its own: small plans in every order of turns and cut into pieces of any size, as
//! they are, with checksums, and with a mishap or a death. Every rank of each ends with right results, or with an error
//! that names whose fault it was; none waits for ever, for a world in which nobody can go on ends.
//!
//! `COLLC_TEST_SEED=17 cargo test -p coll-exec --test seeds` runs the one world of each kind that has this seed.

#![allow(clippy::print_stderr)]

mod plans;

use coll_base::{DType, RedOp};
use coll_exec::world::{Mishap, World};
use coll_plan::Plan;
use plans::{Call, library};

/// Seeds of each kind of world.
const SEEDS: u64 = 3000;

/// Numbers from a seed, apart from those of its world.
struct Draws(u64);

impl Draws {
    /// A number below `most`.
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A plan and counts for it.
fn plan(draws: &mut Draws) -> (Plan, Vec<u64>) {
    let ranks = 2 + draws.below(3) as u32;
    let count = [0, 1, 2, 3, 5, 8, 19, 40][draws.below(8) as usize];
    match draws.below(8) {
        0 | 1 => (library::ring(ranks), vec![count]),
        2 => (library::chain(ranks, 1 + draws.below(3) as u32), vec![count]),
        3 => (library::reduce_chain(ranks), vec![count]),
        4 => (library::scan_chain(ranks), vec![count]),
        5 => (library::eager(3), vec![count]),
        6 => (library::all_to_all(2), (0..4).map(|_| draws.below(9)).collect()),
        _ => (library::barrier(ranks), Vec::new()),
    }
}

/// Runs `each` for every seed, or for the one that is asked for.
fn for_seeds(name: &str, each: impl Fn(u64, &mut Draws)) {
    let asked = std::env::var("COLLC_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = asked.map_or(0..SEEDS, |seed| seed..seed + 1);
    for seed in seeds {
        let guard = Told { name, seed };
        each(seed, &mut Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        std::mem::forget(guard);
    }
}

/// Says which seed it was when a test panics.
struct Told<'n> {
    name: &'n str,
    seed: u64,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        let Told { name, seed } = self;
        eprintln!("COLLC_TEST_SEED={seed} cargo test -p coll-exec --test seeds {name} replays this world");
    }
}

fn world(seed: u64, draws: &mut Draws) -> World {
    let link_bytes = 1 + draws.below(120) as usize;
    World::new(seed).link_bytes(link_bytes).piece_bytes_max(1 + draws.below(64) as usize)
}

fn call<'a>((plan, counts): &'a (Plan, Vec<u64>), draws: &mut Draws) -> Call<'a> {
    let dtype = [DType::F32, DType::I64, DType::U8, DType::Bf16][draws.below(4) as usize];
    let op = [RedOp::Sum, RedOp::Max, RedOp::Avg][draws.below(3) as usize];
    Call { plan, dtype, op, counts, in_place: draws.below(2) == 1 }
}

#[test]
fn worlds_in_which_all_is_well() {
    for_seeds("worlds_in_which_all_is_well", |seed, draws| {
        let planned = plan(draws);
        let call = call(&planned, draws);
        let world = world(seed, draws);
        let rounds = if call.in_place { 1 } else { 1 + draws.below(3) };
        call.check(if draws.below(2) == 1 { world.checksums() } else { world }, rounds);
    });
}

/// A message of some rank, early or late.
fn befalls(draws: &mut Draws, plan: &Plan) -> (u32, u64) {
    (draws.below(plan.world().into()) as u32, draws.below(6))
}

fn with_mishaps(name: &str, mishap: Mishap, checks: bool, ends_well: bool) {
    for_seeds(name, |seed, draws| {
        let planned = plan(draws);
        let call = call(&planned, draws);
        let (culprit, number) = befalls(draws, call.plan);
        let mut world = world(seed, draws).mishap(culprit, number, mishap);
        if checks {
            world = world.checksums();
        }
        let well = call.right_or_named(world, culprit, &format!("{mishap:?} of rank {culprit}"));
        assert!(!ends_well || well as u32 == call.plan.world(), "{mishap:?} does no harm");
    });
}

#[test]
fn messages_that_never_come() {
    with_mishaps("messages_that_never_come", Mishap::Drop, false, false);
}

#[test]
fn messages_that_come_late() {
    with_mishaps("messages_that_come_late", Mishap::Delay, false, true);
}

#[test]
fn messages_that_come_twice() {
    with_mishaps("messages_that_come_twice", Mishap::Duplicate, false, false);
}

#[test]
fn messages_that_overtake_others() {
    with_mishaps("messages_that_overtake_others", Mishap::Reorder, false, false);
}

#[test]
fn messages_that_are_damaged() {
    with_mishaps("messages_that_are_damaged", Mishap::Corrupt, true, false);
}

#[test]
fn ranks_that_die() {
    for_seeds("ranks_that_die", |seed, draws| {
        let planned = plan(draws);
        let call = call(&planned, draws);
        let (culprit, messages) = befalls(draws, call.plan);
        let world = world(seed, draws).drop_rank(culprit, messages);
        call.right_or_named(world, culprit, &format!("death of rank {culprit}"));
    });
}

/// What is damaged is found, or nothing was: without mishaps, the same checks would find nothing at all.
#[test]
fn mishaps_do_happen() {
    let plan = library::ring(3);
    let call = Call { plan: &plan, dtype: DType::F32, op: RedOp::Sum, counts: &[8], in_place: false };
    for mishap in [Mishap::Drop, Mishap::Duplicate, Mishap::Reorder, Mishap::Corrupt] {
        let harmed = (0..40).filter(|&seed| {
            let world = World::new(seed).link_bytes(60).checksums().mishap(1, 0, mishap);
            call.right_or_named(world, 1, "a message of rank 1") < 3
        });
        assert!(harmed.count() > 10, "{mishap:?}");
    }
    let error = (0..40)
        .flat_map(|seed| call.ends(World::new(seed).checksums().mishap(1, 0, Mishap::Corrupt)))
        .filter_map(|end| end.err().map(|error| error.to_string()))
        .find(|error| error.contains("checksum is"));
    let error = error.expect("some damage is in a payload");
    assert!(error.contains("receive from rank 1: rank 1 sent a payload of "), "{error}");
}
