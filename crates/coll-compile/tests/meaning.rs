//! A plan means what its program means: run in random orders, in place and out of place, with and without buffering,
//! each plan leaves what the program leaves, in every ensured block. Programs are random ones, made to hurt: steps
//! full of exchanges, several reductions into one chunk, scratch that is written while it is read.

mod machine;

use coll_base::{FileId, SourceMap};
use coll_compile::{Options, compile};
use coll_ir::{Program, read};
use machine::{Random, run_plan, run_program};
use std::fmt::Write;

fn check(program: &Program, options: &Options, random: &mut Random) {
    let expected = run_program(program);
    let compiled = compile(program, &SourceMap::new(), options).unwrap();
    coll_plan::verify(&compiled.plan).unwrap();
    // Slices cut pieces further; each part must hold what the whole holds.
    let cuts = &compiled.plan.cuts;
    let part_of = |cut| program.cuts.0.partition_point(|whole| whole <= cut) as u32 - 1;
    let uncut: Vec<u32> = cuts[..cuts.len() - 1].iter().map(part_of).collect();
    for way in [(false, false), (true, false), (false, true), (true, true)] {
        let found = run_plan(&compiled.plan, &uncut, way, random);
        for (&(rank, buffer, block, piece), value) in &found {
            let whole = (rank, buffer, block, uncut[piece as usize]);
            let text = || coll_ir::print(program);
            assert_eq!(
                *value,
                expected[&whole],
                "{whole:?}, (in place, buffered) = {way:?}, {options:?}:\n{}",
                text()
            );
        }
    }
}

fn variants() -> Vec<Options> {
    let passes = ["drop_dead", "merge", "slice", "fuse", "prune"];
    let mut variants = vec![
        Options::default(),
        Options { merge: Some(true), ..Options::default() },
        Options { merge: Some(true), lanes: Some(2), ..Options::default() },
        Options { skip: passes.map(String::from).to_vec(), ..Options::default() },
        Options { merge: Some(true), slices: Some(2), lanes: Some(3), ..Options::default() },
    ];
    variants.extend(passes.map(|pass| Options { skip: vec![pass.to_owned()], ..Options::default() }));
    variants
}

/// The text of a random program: what is read always holds something, and no plain write stands beside another.
fn random_program(random: &mut Random) -> String {
    let ranks = 1 + random.below(5);
    let (blocks, pieces, slots) = (1 + random.below(2), 1 + random.below(4), 1 + random.below(2));
    let mut text =
        format!("program test.random for {ranks} ranks\nbuffer data[{blocks}]: inout\nbuffer fixed: in\n");
    let row: Vec<String> = (0..=blocks).map(|_| "0".to_owned()).collect();
    let _ = writeln!(text, "class on 0..{ranks}: {}", row.join(" "));
    for block in 0..blocks {
        let _ = writeln!(text, "ensure data[{block}] on 0..{ranks} == copy data[{block}] on 0");
    }
    let cuts: Vec<String> = (0..=pieces).map(|i| format!("{i}/{pieces}")).collect();
    let _ = writeln!(text, "cuts {}\nscratch tmp[{slots}]", cuts.join(" "));
    // Shapes of the slots of each rank.
    let mut held = vec![vec![None; slots as usize]; ranks as usize];
    for _ in 0..1 + random.below(6) {
        text.push_str("step\n");
        let before = held.clone();
        // For each rank and place written in this step: its pieces, and whether reductions may join.
        let mut written: Vec<(String, (u64, u64), bool)> = Vec::new();
        for _ in 0..1 + random.below(8) {
            let (from, to) = (random.below(ranks), random.below(ranks));
            let low = random.below(pieces);
            let mut run = (low, low + 1 + random.below(pieces - low));
            let source = match random.below(5) {
                0 => match before[from as usize][0] {
                    Some(shape) => {
                        run = shape;
                        format!("{from}.tmp{}", index(0, slots))
                    }
                    None => continue,
                },
                1 => format!("{from}.fixed"),
                _ => format!("{from}.data{}", index(random.below(blocks), blocks)),
            };
            let slot = random.below(slots);
            let to_slot = random.below(4) == 0;
            let target = match to_slot {
                true => format!("{to}.tmp{}", index(slot, slots)),
                false => format!("{to}.data{}", index(random.below(blocks), blocks)),
            };
            let reduces = match to_slot {
                true => before[to as usize][slot as usize] == Some(run) && random.below(2) == 0,
                false => random.below(2) == 0,
            };
            let fits = written.iter().all(|(place, other, joins)| {
                *place != target
                    || (!to_slot && (other.1 <= run.0 || run.1 <= other.0))
                    || (*other == run && *joins && reduces)
            });
            if !fits {
                continue;
            }
            written.push((target.clone(), run, reduces));
            if to_slot {
                held[to as usize][slot as usize] = Some(run);
            }
            let (word, onto) = match (reduces, random.below(2)) {
                (false, _) => ("move", "to"),
                (true, 0) => ("reduce", "into"),
                (true, _) => ("reduce left", "into"),
            };
            let _ = writeln!(text, "{word} {source}{{{}..{}}} {onto} {target} class 0", run.0, run.1);
        }
    }
    text
}

fn index(block: u64, of: u64) -> String {
    if of == 1 { String::new() } else { format!("[{block}]") }
}

#[test]
fn random_programs_keep_their_meaning() {
    let mut staged = 0;
    for seed in 0..400 {
        let random = &mut Random(seed * 2 + 1);
        let text = random_program(random);
        let program = read(FileId(0), &text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        for options in variants() {
            check(&program, &options, random);
        }
        let reports = compile(&program, &SourceMap::new(), &Options::default()).unwrap().reports;
        let lower = reports.iter().find(|report| report.name == "lower").unwrap();
        staged += lower.counts.iter().find(|(what, _)| *what == "chunks staged").unwrap().1;
    }
    assert!(staged > 100, "the programs must provoke staging, and did so {staged} times");
}
