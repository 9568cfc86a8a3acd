//! A rank by itself against the slice of the whole, for every schedule of the library.
#![allow(clippy::print_stdout, reason = "tests say what they went through")]

use super::*;
use crate::library;
use std::time::{Duration, Instant};

/// Schedules that have no short way, as their ranks hold in scratch what only its senders know the shape of.
const LONG: [&str; 1] = ["alltoall.bruck"];

fn each(mut look: impl FnMut(&str, &Source, usize)) {
    for entry in library::entries() {
        let source = Source::builtin(entry.collective, entry.schedule).unwrap();
        let schedule = source.schedules().len() - 1;
        look(&format!("{}.{}", entry.collective, entry.schedule), &source, schedule);
    }
}

fn sample(ranks: u32) -> [u32; 4] {
    [0, 1 % ranks, ranks / 2, ranks - 1]
}

/// Above the reference counts, where the short way is gone: all bytes but those of the proof are the whole's slice's.
#[test]
fn a_rank_by_itself_is_the_slice_of_the_whole() {
    let options = Options::default();
    each(|name, source, schedule| {
        for ranks in [17, 24, 33, 64] {
            let root = if source.schedules()[schedule].rooted { ranks / 3 } else { 0 };
            let instance = Instance { ranks, root, params: Vec::new() };
            let Outcome::Right(proved) = prove(source, schedule, &instance, &options) else { continue };
            for rank in sample(ranks) {
                let RankOutcome::Right(planned) = compile_rank(source, schedule, &instance, rank, &options)
                else {
                    panic!("{name} on {ranks} ranks is right, and its rank {rank} is not");
                };
                let slice = proved.plan.slice(rank).unwrap();
                assert_eq!(planned.alone, !LONG.contains(&name), "{name} on {ranks} ranks, rank {rank}");
                assert_eq!(matches!(planned.plan.proof, Some(Proof::Reference(_))), planned.alone);
                assert_eq!(coll_plan::verify(&planned.plan), Ok(()));
                let same_proof = Plan { proof: slice.proof.clone(), ..planned.plan };
                assert_eq!(
                    coll_plan::to_text(&same_proof),
                    coll_plan::to_text(&slice),
                    "{name} on {ranks} ranks, rank {rank}"
                );
                assert_eq!(coll_plan::to_bytes(&same_proof), coll_plan::to_bytes(&slice));
            }
        }
    });
}

/// On every rank count from 2 to 64. A schedule that is trusted nowhere need not agree anywhere.
#[test]
fn the_short_way_is_right_on_every_count() {
    let options = Options::default();
    let mut compared = 0;
    each(|name, source, schedule| {
        let instance = |ranks| Instance { ranks, root: 0, params: Vec::new() };
        if trust(source, schedule, &instance(64), &options).is_none() {
            assert!(LONG.contains(&name), "{name} is not trusted");
            return;
        }
        for ranks in 2..=64 {
            let instance = instance(ranks);
            let Ok(instantiated) = source.module.instantiate(schedule, &instance) else { continue };
            let decided = decided(source, schedule, &instance, &options).unwrap();
            let whole = coll_compile::compile(&instantiated.program, &source.map, &decided.options).unwrap();
            for rank in sample(ranks) {
                let Ok(Some((plan, _))) = alone(source, schedule, &instance, rank, &options) else {
                    panic!("{name} on {ranks} ranks, rank {rank}: no short way");
                };
                // Up to the reference counts the whole is taken, so there the short way may differ.
                let same = is_slice(plan, &whole.plan, rank);
                assert!(same || ranks <= REFERENCE_RANKS_MAX, "{name} on {ranks} ranks, rank {rank}");
                compared += 1;
            }
        }
    });
    assert!(compared > 8000, "only {compared} slices were compared");
}

/// Deciding on the reference what is merged must not cost the library anything.
#[test]
fn the_reference_decides_as_the_count_itself_would() {
    let mut differ = Vec::new();
    each(|name, source, schedule| {
        for ranks in REFERENCE_RANKS_MAX + 1..=33 {
            let instance = Instance { ranks, root: 0, params: Vec::new() };
            let Ok(instantiated) = source.module.instantiate(schedule, &instance) else { continue };
            let compile = |options| {
                let compiled = coll_compile::compile(&instantiated.program, &source.map, options);
                coll_plan::to_bytes(&compiled.unwrap().plan)
            };
            let decided = decided(source, schedule, &instance, &Options::default()).unwrap();
            let (own, reference) = (compile(&Options::default()), compile(&decided.options));
            if own != reference {
                differ.push(format!("{name} on {ranks}"));
            }
        }
    });
    assert_eq!(differ, [""; 0]);
}

/// All slices together are the whole: byte for byte but for the proof, and in what a simulated run takes.
#[test]
fn slices_of_all_ranks_are_the_whole() {
    let options = Options::default();
    let ranks = 24;
    let mut sliced = 0;
    each(|name, source, schedule| {
        let root = if source.schedules()[schedule].rooted { 5 } else { 0 };
        let instance = Instance { ranks, root, params: Vec::new() };
        let Outcome::Right(proved) = prove(source, schedule, &instance, &options) else { return };
        let Some(slices) = compile_slices(source, schedule, &instance, &options) else {
            assert!(LONG.contains(&name), "{name} has no slices");
            return;
        };
        sliced += 1;
        for (rank, slice) in (0..).zip(&slices) {
            let whole = proved.plan.slice(rank).unwrap();
            assert!(matches!(slice.proof, Some(Proof::Reference(_))), "{name}, rank {rank}");
            let same_proof = Plan { proof: whole.proof.clone(), ..slice.clone() };
            assert_eq!(coll_plan::to_bytes(&same_proof), coll_plan::to_bytes(&whole), "{name}, rank {rank}");
        }
        let network = coll_topo::load("net", "torus:4x6").network().expect("a torus");
        let run = |plans: &[&Plan]| {
            let given = coll_sim::Options { bytes: 24 << 10, ..coll_sim::Options::default() };
            coll_sim::predict(plans, &network, &given).expect("it ends").time_us
        };
        let slices: Vec<&Plan> = slices.iter().rev().collect();
        assert_eq!(run(&slices).to_bits(), run(&[&proved.plan]).to_bits(), "{name}");
    });
    assert!(sliced > 35, "{sliced}");
    // Few ranks are compiled whole.
    let source = Source::builtin("allreduce", "ring").unwrap();
    let few = Instance { ranks: REFERENCE_RANKS_MAX, root: 0, params: Vec::new() };
    assert!(compile_slices(&source, 0, &few, &options).is_none());
}

/// By hand: `cargo test -p coll --release --lib one_rank -- --ignored --nocapture`.
#[test]
#[ignore = "measures time"]
fn a_rank_of_4096() {
    let mut slow = Vec::new();
    each(|name, source, schedule| {
        let (instance, options) = (Instance { ranks: 4096, root: 0, params: Vec::new() }, Options::default());
        let start = Instant::now();
        let trusted = trust(source, schedule, &instance, &options).is_some();
        let checked = start.elapsed();
        let plan = alone(source, schedule, &instance, 17, &options);
        let way = match &plan {
            Ok(Some((plan, _))) => format!("{} operations", plan.ranks[0].ops.len()),
            Ok(None) => "no way".to_string(),
            Err(_) => "refused".to_string(),
        };
        let all = start.elapsed();
        println!("{name}: {all:?} in all, reference {checked:?}, trusted {trusted}, {way}");
        if all > Duration::from_secs(1) || !trusted || !matches!(plan, Ok(Some(_))) {
            slow.push(name.to_string());
        }
    });
    assert_eq!(slow, LONG);
}
