//! Random programs against an interpreter that is too simple to be wrong: each piece is the plain list of the leaves in
//! it. The contract is made of what it ends with, so the judge must agree; and must not once a fact is changed.

use crate::build::{At, Build, Fact, in_place};
use coll_ir::Kind;
use std::collections::BTreeMap;

/// What a piece of a place holds: leaves from left to right, and messages on the longest path.
type Held = Option<(Vec<(u32, u32)>, u32)>;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

#[derive(Clone)]
struct Move {
    kind: Kind,
    from: At,
    to: At,
    pieces: std::ops::Range<u32>,
}

const RANKS: u32 = 4;
const BLOCKS: u32 = 2;
const PIECES: u32 = 3;

/// Steps of transfers in which no plain write meets another write, and nothing is read that holds nothing.
fn steps(random: &mut Random, state: &mut BTreeMap<(At, u32), Held>) -> Vec<Vec<Move>> {
    let count = 1 + random.below(5);
    let step = |_| {
        let before = state.clone();
        let mut written: BTreeMap<(At, u32), Kind> = BTreeMap::new();
        let mut moves = Vec::new();
        for _ in 0..random.below(6) {
            let kind =
                [Kind::Move, Kind::Reduce, Kind::ReduceLeft, Kind::Drop][random.below(8).min(3) as usize];
            let low = random.below(PIECES);
            let low = if random.below(2) == 0 { 0 } else { low };
            let high = if random.below(2) == 0 { PIECES } else { low + 1 + random.below(PIECES - low) };
            let mut place = || (random.below(RANKS), 0, random.below(BLOCKS));
            let (from, to) = (place(), place());
            let from = if kind == Kind::Drop { to } else { from };
            let may = |piece| {
                let other = written.get(&(to, piece));
                let apart = other.is_none_or(|&other| reduces(other) && reduces(kind));
                let held = before[&(from, piece)].is_some() || kind == Kind::Drop;
                apart && held && (!reduces(kind) || before[&(to, piece)].is_some())
            };
            if !(low..high).all(may) {
                continue;
            }
            for piece in low..high {
                let held = &mut state.get_mut(&(to, piece)).unwrap();
                apply(kind, &before[&(from, piece)], u32::from(from.0 != to.0), held);
                written.insert((to, piece), kind);
            }
            moves.push(Move { kind, from, to, pieces: low..high });
        }
        moves
    };
    (0..count).map(step).collect()
}

fn reduces(kind: Kind) -> bool {
    matches!(kind, Kind::Reduce | Kind::ReduceLeft)
}

fn apply(kind: Kind, source: &Held, sent: u32, target: &mut Held) {
    let Some((arriving, depth)) = source.clone().filter(|_| kind != Kind::Drop) else {
        *target = None;
        return;
    };
    let depth = depth + sent;
    *target = match (kind, target.take()) {
        (Kind::Reduce, Some((held, before))) => Some(([held, arriving].concat(), depth.max(before))),
        (Kind::ReduceLeft, Some((held, before))) => Some(([arriving, held].concat(), depth.max(before))),
        _ => Some((arriving, depth)),
    };
}

/// What the end state could be asked for: blocks whose pieces are made of the same leaves, each once.
fn facts(state: &BTreeMap<(At, u32), Held>) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (rank, block) in (0..RANKS).flat_map(|rank| (0..BLOCKS).map(move |block| (rank, block))) {
        let pieces: Option<Vec<Vec<(u32, u32)>>> = (0..PIECES)
            .map(|piece| {
                let (mut leaves, _) = state[&((rank, 0, block), piece)].clone()?;
                leaves.sort_unstable();
                Some(leaves)
            })
            .collect();
        let Some(pieces) = pieces else { continue };
        let once = pieces[0].windows(2).all(|pair| pair[0] != pair[1]);
        if once && pieces.iter().all(|leaves| *leaves == pieces[0]) {
            facts.push((rank, block, pieces[0].clone()));
        }
    }
    facts
}

fn build(facts: Vec<Fact>, steps: &[Vec<Move>]) -> Build {
    let mut build = Build::new(in_place(RANKS, BLOCKS, facts), PIECES);
    for step in steps {
        build.step();
        for Move { kind, from, to, pieces } in step.iter().cloned() {
            build.some("random", &[], kind, from, to, pieces);
        }
    }
    build
}

#[test]
fn the_judge_agrees_with_a_plain_interpreter() {
    let mut random = Random(7);
    let (mut reductions, mut in_order) = (0, 0);
    for _ in 0..2_000 {
        let places = (0..RANKS).flat_map(|rank| (0..BLOCKS).map(move |block| (rank, 0, block)));
        let pieces = places.flat_map(|place: At| (0..PIECES).map(move |piece| (place, piece)));
        let initial = |(place, piece): (At, u32)| ((place, piece), Some((vec![(place.0, place.2)], 0)));
        let mut state: BTreeMap<(At, u32), Held> = pieces.map(initial).collect();
        let steps = steps(&mut random, &mut state);
        let facts = facts(&state);
        let right = build(facts.clone(), &steps);
        let proof = right.prove();
        assert!(proof.ok(), "{}", right.told());
        let held = |fact: &Fact, piece| state[&((fact.0, 0, fact.1), piece)].clone().unwrap().0;
        let ordered = facts.iter().all(|fact| (0..PIECES).all(|piece| held(fact, piece) == fact.2));
        assert_eq!(proof.properties.ordered, ordered);
        let deepest = state.values().flatten().map(|&(_, depth)| depth).max().unwrap_or(0);
        assert!(proof.properties.steps >= deepest);
        if facts.iter().any(|fact| fact.2.len() > 1) {
            reductions += 1;
            in_order += u32::from(ordered);
        }
        if facts.is_empty() {
            continue;
        }
        let mut wrong = facts.clone();
        let at = random.below(wrong.len() as u32) as usize;
        let leaf = (random.below(RANKS), random.below(BLOCKS));
        match wrong[at].2.iter().position(|&known| known == leaf) {
            None => {
                wrong[at].2.push(leaf);
                wrong[at].2.sort_unstable();
            }
            Some(known) if wrong[at].2.len() > 1 => drop(wrong[at].2.remove(known)),
            Some(_) => wrong[at].2[0] = ((leaf.0 + 1) % RANKS, leaf.1),
        }
        assert!(!build(wrong, &steps).prove().ok());
    }
    assert!(reductions > 400 && in_order > 50, "{reductions} programs reduce, {in_order} of them in order");
}
