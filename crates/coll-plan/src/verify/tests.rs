//! One case for each thing that can fail to fit, made by changing one thing of a plan that does.

use super::verify;
use crate::samples::{PAIR, pair};
use crate::{Plan, Proof, Reference, Run, Store, from_text};
use expect_test::{Expect, expect};

fn check(change: impl FnOnce(&mut Plan), expect: Expect) {
    let mut plan = pair();
    change(&mut plan);
    expect.assert_eq(&verify(&plan).expect_err("the change does harm").to_string());
}

fn check_text(from: &str, to: &str, expect: Expect) {
    assert!(PAIR.contains(from), "`{from}` is in the sample");
    let plan = from_text(&PAIR.replacen(from, to, 1)).expect("it reads");
    expect.assert_eq(&verify(&plan).expect_err("the change does harm").to_string());
}

#[test]
fn header() {
    check(|p| p.cuts.clear(), expect!["cuts: expected at least 0 and 1, found 0 cuts [E0651]"]);
    check(|p| p.cuts[1] = p.cuts[2], expect!["cuts[2]: expected cuts that ascend, found 1 after 1 [E0651]"]);
    check(|p| p.channels = 0, expect!["channels: expected 1 to 1024, found 0 [E0651]"]);
    check(|p| p.root = Some(2), expect!["root: expected a rank below 2, found 2 [E0651]"]);
    check(
        |p| p.proof = Some(Proof::Whole("yes".into())),
        expect!["proof: expected 64 hexadecimal digits, or none, found `yes` [E0651]"],
    );
    check(
        |p| p.ranks.truncate(1),
        expect!["ranks: expected 2: one part for each rank that the contract speaks of, found 1 [E0652]"],
    );
    check(|p| p.ranks[1].rank = 0, expect!["ranks[1].rank: expected 1, found 0 [E0652]"]);
}

/// What a slice that was made alone says of its proof fits together, or is refused.
#[test]
fn proofs() {
    let origin = crate::hash(&pair());
    let mut slice = pair().slice(1).unwrap();
    slice.origin = Some(origin.clone());
    slice.proof = Some(Proof::Reference(Reference::new(&origin, vec![(15, 2), (16, 2)])));
    assert_eq!(verify(&slice), Ok(()));
    assert_eq!(from_text(&crate::to_text(&slice)).unwrap(), slice);
    assert_eq!(crate::from_bytes(&crate::to_bytes(&slice)).unwrap(), slice);
    assert_eq!(crate::from_json(&crate::to_json(&slice)).unwrap(), slice);
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut changed = slice.clone();
        change(&mut changed);
        verify(&changed).expect_err("the change does harm").to_string()
    };
    let with = |counts: Vec<(u32, u32)>| Some(Proof::Reference(Reference::new(&origin, counts)));
    expect![
        "origin: expected what the slice was made from, as it is proved by reference, found none [E0651]"
    ]
    .assert_eq(&refused(&|p| p.origin = None));
    expect!["origin: expected 64 hexadecimal digits, or none, found `12` [E0651]"]
        .assert_eq(&refused(&|p| p.origin = Some("12".into())));
    expect!["proof.counts: expected at least one rank count, found none [E0651]"]
        .assert_eq(&refused(&|p| p.proof = with(Vec::new())));
    expect!["proof.counts: expected a root below 4, found 4 [E0651]"]
        .assert_eq(&refused(&|p| p.proof = with(vec![(4, 4)])));
    let other = Proof::Reference(Reference { hash: origin.clone(), counts: vec![(4, 0)] });
    assert!(refused(&|p| p.proof = Some(other.clone())).contains("of its origin and counts, found"));
    check(
        |p| p.proof = with(vec![(4, 0)]),
        expect![
            "proof: expected the hash of the plan, or none: only a slice is proved by reference, found a proof by reference [E0651]"
        ],
    );
    check(
        |p| p.reduces = false,
        expect!["reduces: expected true, as the contract's values say, found false [E0651]"],
    );
}

/// A whole plan that says which hash was proved has that hash, or has been changed since.
#[test]
fn a_changed_plan_is_known() {
    let mut plan = pair();
    assert_eq!(crate::unchanged(&plan), Ok(()));
    plan.proof = Some(Proof::Whole(crate::hash(&plan)));
    assert_eq!((verify(&plan), crate::unchanged(&plan)), (Ok(()), Ok(())));
    assert_eq!(crate::unchanged(&plan.slice(0).unwrap()), Ok(()), "a slice cannot tell");
    plan.ranks[0].ops[0].step += 1;
    assert_eq!(crate::unchanged(&plan).unwrap_err().code, crate::codes::CHANGED);
}

#[test]
fn fractions_that_no_code_here_would_make() {
    let mut json: serde_json::Value = serde_json::from_str(&crate::to_json(&pair())).unwrap();
    json["plan"]["cuts"][1]["denominator"] = 0.into();
    let error = crate::from_json(&json.to_string()).unwrap_err();
    expect!["the plan does not fit itself: cuts[1]: expected a fraction in lowest terms, found 1/0 [E0651]; compile the schedule anew"].assert_eq(&error.to_string());
}

#[test]
fn contract() {
    check(|p| p.contract.ranks = 0, expect!["contract.ranks: expected at least 1, found 0 [E0650]"]);
    check(
        |p| p.contract.ranks = 3,
        expect!["contract.classes.table: expected 3 rows of 1 blocks, found 2 entries [E0650]"],
    );
    check(|p| p.contract.only = Some(7), expect!["contract.only: expected a rank below 2, found 7 [E0650]"]);
    check(
        |p| p.contract.buffers[0].name = "a b".into(),
        expect![
            "contract.buffers[0].name: expected a name of letters, digits and `_` that does not begin with a digit, found `a b` [E0650]"
        ],
    );
    check(
        |p| p.contract.buffers[0].blocks = u32::MAX,
        expect!["contract.classes.table: expected 2 rows of 4294967295 blocks, found 2 entries [E0650]"],
    );
    check(
        |p| p.contract.given.clear(),
        expect!["contract.given: expected one entry for each of 1 buffers, found 0 [E0650]"],
    );
    check(
        |p| p.contract.classes.table[1] = 1,
        expect!["contract.classes.table[1]: expected a class below 1, found 1 [E0650]"],
    );
    check(
        |p| p.contract.classes.count = 3,
        expect!["contract.classes.count: expected at most one class for each of 2 blocks, found 3 [E0650]"],
    );
    check(
        |p| p.contract.ensures.swap(0, 1),
        expect![
            "contract.ensures[1]: expected entries that ascend by rank, buffer, block, none twice, found Ensure { rank: 0, buffer: 0, block: 0, value: 0 } after Ensure { rank: 1, buffer: 0, block: 0, value: 0 } [E0650]"
        ],
    );
    check(
        |p| p.contract.ensures[0].value = 1,
        expect!["contract.ensures[0].value: expected a value below 1, found 1 [E0650]"],
    );
    check(
        |p| p.contract.after.push((1, 1)),
        expect!["contract.after[0]: expected a rank below 2, and another rank below 2, found (1, 1) [E0650]"],
    );
}

#[test]
fn lanes_and_runs() {
    check(
        |p| p.ranks[0].lanes[1].start = 1,
        expect!["rank 0: lanes[1]: expected a run from 2 to at most 5, found 1..5 [E0652]"],
    );
    check(
        |p| p.ranks[0].lanes[1].end = 4,
        expect![
            "rank 0: lanes: expected lanes that cover all 5 operations, found lanes that end at 4 [E0652]"
        ],
    );
    check(
        |p| p.ranks[0].ops[2].target.end = 99,
        expect!["rank 0, op 1: op 2 target: expected a run within 0..7, found 3..99 [E0652]"],
    );
    check(
        |p| p.ranks[0].ops[0].source = Run { start: 3, end: 1 },
        expect!["rank 0, op 0: source: expected a run within 0..7, found 3..1 [E0652]"],
    );
    check(
        |p| p.ranks[0].ops[0].line = 2,
        expect!["rank 0, op 0: line: expected an index below 2 into the lines, found 2 [E0652]"],
    );
    check(
        |p| p.ranks[0].slots[0].shapes.clear(),
        expect!["rank 0: slots[0].shapes: expected at least one shape, found 0 [E0652]"],
    );
    check(
        |p| p.ranks[0].slots[0].shapes.swap(0, 1),
        expect![
            "rank 0: slots[0].shapes[1]: expected shapes that ascend, none twice, found Shape { class: 0, low: 0, high: 1 } after Shape { class: 0, low: 1, high: 2 } [E0652]"
        ],
    );
}

#[test]
fn links_and_regions() {
    check_text(
        "to r1",
        "to r0",
        expect!["rank 0, op 0: peer: expected a rank below 2 other than 0, found 0 [E0653]"],
    );
    check_text(
        "to r1",
        "to r2",
        expect!["rank 0, op 0: peer: expected a rank below 2 other than 0, found 2 [E0653]"],
    );
    check_text(
        "to r1 channel 0",
        "to r1 channel 1",
        expect!["rank 0, op 0: channel: expected a channel below 1, found 1 [E0653]"],
    );
    check_text(
        "data.in[0:0..1]",
        "data.in[1:0..1]",
        expect!["rank 0, op 0: source[0].block: expected a block of data below 1, found 1 [E0654]"],
    );
    check_text(
        "data.in[0:0..1]",
        "data.in[0:0..3]",
        expect![
            "rank 0, op 0: source[0]: expected pieces low..high with low < high <= 2, found 0..3 [E0654]"
        ],
    );
    check_text(
        "data.in[0:0..1]",
        "data.in[0:1..1]",
        expect![
            "rank 0, op 0: source[0]: expected pieces low..high with low < high <= 2, found 1..1 [E0654]"
        ],
    );
    check_text(
        "data.in[0:0..1]",
        "data.tmp[0:0..1]",
        expect![
            "rank 0, op 0: source[0].store: expected a writable block of which nothing is ensured, found data.tmp[0], which is not one [E0654]"
        ],
    );
    check_text(
        "data.in[0:0..1]",
        "data.in[0:0..1 class 4]",
        expect!["rank 0, op 0: source[0].class: expected class 0 of the block, found 4 [E0654]"],
    );
    check_text(
        "recv slot0[c0:0..1]",
        "recv slot0[c0:0..2]",
        expect![
            "rank 0, op 3: target[0]: expected a declared shape of slot 0, found class 0, pieces 0..2 [E0654]"
        ],
    );
    check_text(
        "recv slot0[c0:0..1]",
        "recv slot1[c0:0..1]",
        expect!["rank 0, op 3: target[0].block: expected a slot below 1, found 1 [E0654]"],
    );
    check_text(
        "to data.out[0:0..1]",
        "to data.in[0:0..1]",
        expect![
            "rank 0, op 4: target[0].store: expected memory that may be written: `.out`, `.tmp` or a slot, found `.in` [E0654]"
        ],
    );
    check_text(
        "given data all",
        "given data r0[0]",
        expect![
            "rank 1, op 0: source[0].store: expected a block that is given, found data.in[0], which is not one [E0654]"
        ],
    );
    check(
        |p| p.ranks[0].regions[0].store = Store::Out(9),
        expect!["rank 0, op 0: source[0].store: expected a buffer below 1, found 9 [E0654]"],
    );
}

#[test]
fn sides() {
    check_text(
        "copy slot0[c0:0..1] to",
        "copy slot0[c0:1..2] to",
        expect![
            "rank 0, op 4: target[0]: expected class 0, pieces 1..2, as source[0] is, found class 0, pieces 0..1 [E0655]"
        ],
    );
    check_text(
        "copy slot0[c0:0..1] to",
        "copy slot0[c0:0..1], slot0[c0:0..1] to",
        expect!["rank 0, op 4: target: expected 2 regions, as source has, found 1 regions [E0655]"],
    );
    check_text(
        "with data.in[0:1..2]",
        "with data.in[0:0..1]",
        expect![
            "rank 0, op 2: target[0]: expected class 0, pieces 0..1, as operand[0] is, found class 0, pieces 1..2 [E0655]"
        ],
    );
    check_text(
        "recv_reduce_left data.out[0:0..1]",
        "recv_reduce_left nothing",
        expect!["rank 1, op 2: target: expected at least one region, found none [E0655]"],
    );
    check(
        |p| p.ranks[0].ops[0].target = Run { start: 0, end: 1 },
        expect![
            "rank 0, op 0: target: expected no regions, as the action has no such side, found 1 regions [E0655]"
        ],
    );
}

#[test]
fn waits() {
    check_text(
        "after op0",
        "after op9",
        expect!["rank 0: waits[1].op: expected an operation below 5, found 9 [E0656]"],
    );
    check_text(
        "after op0",
        "after op4",
        expect!["rank 0, op 4: waits[0]: expected another operation, found op 4 itself [E0656]"],
    );
    check_text(
        "channel 0 ; step 0",
        "channel 0 after op4 ; step 0",
        expect![
            "rank 0, op 0: waits: expected waits that come to an end, found op 0 waits for op 4; op 4 waits for op 0 [E0656]"
        ],
    );
    check_text(
        "along op2",
        "along op3",
        expect![
            "rank 0, op 1: waits[0]: expected the target of op 3 as this send's source, region by region, found other regions [E0657]"
        ],
    );
    check_text(
        "along op2",
        "along op0",
        expect!["rank 0, op 1: waits[0]: expected a send along a receive, found a send along a send [E0657]"],
    );
    check_text(
        "along op2",
        "along op2, along op2",
        expect![
            "rank 0, op 1: waits[1]: expected one `along`, and there is one on op 2, found a second one, on op 2 [E0657]"
        ],
    );
    check_text(
        "after op0",
        "along op3",
        expect![
            "rank 0, op 4: waits[0]: expected a send along a receive, found a copy along a receive [E0657]"
        ],
    );
}

/// B117: of a long plan, the cycle and nothing else.
#[test]
fn a_cycle_of_three_among_many_names_the_three() {
    let mut text = PAIR.split("rank 0").next().unwrap().to_string() + "rank 0\n";
    for lane in 0..100 {
        text += &format!("lane {lane}\n");
        for at in 0..10 {
            let wait = match (lane, at) {
                (3, 5) => " after op57",
                (5, 7) => " after op71",
                (7, 1) => " after op36",
                _ if lane > 0 && at == 9 => " after op5",
                _ => "",
            };
            text += &format!("op{} send nothing to r1 channel 0{wait} ; step 0 line 0\n", lane * 10 + at);
        }
    }
    let plan = from_text(&(text + "rank 1\n")).unwrap();
    expect!["rank 0, op 35: waits: expected waits that come to an end, found op 35 waits for op 57; op 57 waits for op 71; op 71 waits for op 36, which stands behind op 35 in its lane [E0656]"].assert_eq(&verify(&plan).unwrap_err().to_string());
}
