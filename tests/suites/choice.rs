//! Predictions against sums worked out by hand, and choices: every candidate proved, the same answer every time, few
//! steps for small sizes and few bytes for large ones, and what cannot serve passed over with its reason.

use coll::select::{Candidate, ChooseError, Chooser, Considered, Question, Standing};
use coll::{Instance, Options, Outcome, Source};
use coll_base::DType;
use coll_cost::{Constants, Layout, Outline, Rate, Tuning, Wire, Work};
use std::collections::BTreeMap;

/// Round numbers: a message is 2 + 3 µs of processor time, a byte 1 + 2 ns, 10 more if reduced.
fn constants() -> Constants {
    Constants {
        transport: "tcp".into(),
        call_us: 0.0,
        send_us: 2.0,
        recv_us: 3.0,
        local_us: 0.5,
        wake_us: 4.0,
        switch_us: 7.0,
        send: Rate::flat(1.0),
        recv: Rate::flat(2.0),
        copy: Rate::flat(0.5),
        reduce: BTreeMap::from([(DType::F32, Rate::flat(10.0))]),
        reduce_user: Rate::flat(100.0),
        cache_bytes: 1 << 20,
        shared_from_bytes: None,
        wire: None,
        fit: None,
    }
}

fn outline(operation: &str, schedule: &str, ranks: u32, params: &[(&str, i64)]) -> Outline {
    let source = Source::builtin(operation, schedule).expect("it is in the library");
    let at = source.schedules().iter().position(|s| s.name == schedule).expect("it is declared");
    let params = params.iter().map(|&(name, value)| (name.to_string(), value)).collect();
    match coll::prove(&source, at, &Instance { ranks, root: 0, params }, &Options::default()) {
        Outcome::Right(proved) => Outline::new(&proved.plan),
        _ => panic!("{operation}.{schedule} serves {ranks} ranks"),
    }
}

fn predict(outline: &Outline, constants: &Constants, layout: Layout, bytes: u64) -> f64 {
    outline.predict_us(constants, layout, Work { bytes, dtype: DType::F32, user_operator: false })
}

/// Within a millionth: sums may be grouped otherwise.
#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-6 * expected, "found {found}, expected {expected}");
}

#[test]
fn a_message_costs_both_its_ends_and_streams_between() {
    let message = outline("broadcast", "linear", 2, &[]);
    let two = Layout::one_host(2);
    // 8 bytes: 2 + 8 ns, asleep for 4, then 3 + 16 ns.
    close(predict(&message, &constants(), two, 8), 2.008 + 4.0 + 3.016);
    // A megabyte: the receiver begins after the first 64 KiB, and is the slower.
    close(predict(&message, &constants(), two, 1_000_000), 2.0 + 65.536 + 4.0 + 3.0 + 2000.0);
    // Where sending is slower, the receive ends with it, and the root's own copy last.
    let slow = Constants { send: Rate::flat(20.0), ..constants() };
    close(predict(&message, &slow, two, 1_000_000), 2.0 + 20_000.0 + 0.5 + 500.0);
}

#[test]
fn a_chain_passes_a_stream_on() {
    let chain = outline("broadcast", "chain", 3, &[("c", 1)]);
    let constants = Constants { copy: Rate::flat(0.0), ..constants() };
    let first = 2.0 + 65.536 + 4.0;
    // The middle rank receives and sends on; the last hears of it one quantum later, and ends with it.
    let middle = first + 3.0 + 2000.0 + 2.0 + 1000.0;
    close(predict(&chain, &constants, Layout::one_host(3), 1_000_000), middle);
}

#[test]
fn ranks_that_share_a_core_take_turns() {
    let message = outline("broadcast", "linear", 2, &[]);
    let one = Layout::one_host(1);
    // 8 bytes: the send and the root's own copy, then the other's turn, and its receive.
    close(predict(&message, &constants(), one, 8), 2.008 + 0.504 + 7.0 + 3.016);
    close(predict(&message, &constants(), one, 1_000_000), 2.0 + 1000.0 + 0.5 + 500.0 + 7.0 + 3.0 + 2000.0);
    // Four ranks in a row on one core: each hears of it when its turn has come.
    let chain = outline("broadcast", "chain", 4, &[("c", 1)]);
    let apart = Constants {
        copy: Rate::flat(0.0),
        local_us: 0.0,
        send: Rate::flat(0.0),
        recv: Rate::flat(0.0),
        ..constants()
    };
    close(predict(&chain, &apart, one, 8), 2.0 + 2.0 * (7.0 + 3.0 + 2.0) + 7.0 + 3.0);
    // A star needs as many turns, and the same rank sends all.
    let star = outline("broadcast", "linear", 4, &[]);
    close(predict(&star, &apart, one, 8), 3.0 * 2.0 + 3.0 * (7.0 + 3.0));
}

#[test]
fn machines_are_joined_by_a_wire() {
    let message = outline("broadcast", "linear", 2, &[]);
    let wire = Wire { latency_us: 50.0, byte_ns: 8.0 };
    let constants = Constants { wire: Some(wire), ..constants() };
    let apart = Layout { ranks_per_host: 1, cores: 4 };
    close(predict(&message, &constants, apart, 8), 2.008 + (0.064 + 50.0) + 4.0 + 3.016);
    assert!(predict(&message, &constants, apart, 1_000_000) >= 50.0 + 8000.0);
    assert!(predict(&message, &constants, Layout { ranks_per_host: 2, cores: 4 }, 1_000_000) < 2100.0);
}

#[test]
fn a_ring_is_what_its_formula_says() {
    let (ranks, bytes) = (8, 8 << 20);
    let constants = Constants { copy: Rate::flat(0.0), local_us: 0.0, ..constants() };
    let found =
        predict(&outline("allreduce", "ring", ranks, &[]), &constants, Layout::one_host(ranks), bytes);
    // A rank sends and receives 2 (n-1) pieces, and reduces half of them.
    let piece = bytes as f64 / f64::from(ranks);
    let step = 2.0 + piece * 1e-3 + 3.0 + piece * 2e-3;
    let busy = 14.0 * step + 7.0 * piece * 10e-3;
    assert!(found >= busy && found < 1.05 * busy + 14.0 * 4.0, "found {found}, a rank is busy for {busy}");
}

fn question(operation: &'static str, ranks: u32, bytes: u64) -> Question {
    Question::new(operation, ranks, bytes)
}

fn chooser() -> Chooser {
    Chooser::new(Tuning::shipped())
}

#[test]
fn every_candidate_that_runs_is_proved_and_every_operation_has_one() {
    let chooser = chooser();
    for operation in coll::OPERATIONS {
        for ranks in [1, 2, 3, 8] {
            let considered = chooser.explain(&question(operation, ranks, 1 << 16)).expect("one serves");
            assert!(matches!(considered[0].standing, Standing::Taken), "{operation} on {ranks}");
            for one in considered {
                // Barred are here only those that a `require` bars.
                let applies = matches!(one.candidate.prove(ranks, 0), Outcome::Right(_));
                assert_eq!(applies, one.predicted_us.is_some(), "{} on {ranks}", one.candidate);
                assert_eq!(applies, !matches!(one.standing, Standing::Barred(_)), "{}", one.candidate);
            }
        }
    }
}

#[test]
fn choices_are_the_same_whoever_asks_and_in_whatever_order() {
    let sizes: Vec<u64> = (0..28).map(|power| 3 << power).collect();
    let pick =
        |chooser: &Chooser, bytes| chooser.choose(&question("allreduce", 6, bytes)).expect("one serves");
    let (up, down) = (chooser(), chooser());
    let rising: Vec<_> = sizes.iter().map(|&bytes| pick(&up, bytes)).collect();
    let mut falling: Vec<_> = sizes.iter().rev().map(|&bytes| pick(&down, bytes)).collect();
    falling.reverse();
    assert_eq!(rising, falling);
    assert_eq!(up.fingerprint(), down.fingerprint());
}

/// Questions of every kind on a grid of operations, sizes, rank counts, transports and places.
fn grid() -> Vec<Question> {
    let mut questions = Vec::new();
    for operation in coll::OPERATIONS {
        for ranks in 2..=16 {
            let layouts =
                [Layout::one_host(2), Layout::one_host(ranks), Layout { ranks_per_host: 4, cores: 4 }];
            // One transport and place for each rank count, all of both over them.
            let layout = layouts[ranks as usize % 3];
            let transport = ["shm", "tcp", "threads"][ranks as usize / 3 % 3];
            for bytes in [0, 8, 1 << 12, 3 << 15, 1 << 20, 1 << 26, 1 << 32] {
                questions.push(Question { layout, transport, ..question(operation, ranks, bytes) });
            }
            let plain = Question { layout, transport, ..question(operation, ranks, 1 << 14) };
            questions.extend([
                Question { commutative: false, ..plain.clone() },
                Question { unequal_blocks: true, ..plain.clone() },
                Question { dtype: DType::Bf16, ..plain.clone() },
                Question { dtype: DType::Bf16, accumulate: true, ..plain.clone() },
                Question { deterministic: true, ..plain.clone() },
                Question { deterministic: true, commutative: false, ..plain.clone() },
                Question { dtype: DType::Bf16, user_operator: true, ..plain },
            ]);
        }
    }
    questions
}

#[test]
fn what_is_compiled_in_part_is_chosen_as_if_all_were() {
    // By the shipped constants, for which answers are shipped, and by others, for which what each takes at least is.
    let mut measured = Tuning::shipped();
    for transport in ["tcp", "shm", "threads"] {
        let shipped = measured.of(transport).expect("they are shipped").clone();
        measured.set(Constants { send_us: 1.1 * shipped.send_us, ..shipped });
    }
    let choosers = [Tuning::shipped(), measured]
        .map(|tuning| (Chooser::new(tuning.clone()), Chooser::new(tuning).exhaustive()));
    for question in grid() {
        let (some, all) = &choosers[question.ranks as usize % 2];
        let choice = |chooser: &Chooser| chooser.choose(&question).map(|choice| choice.candidate.to_string());
        assert_eq!(choice(some), choice(all), "{question:?}");
    }
}

#[test]
fn nothing_takes_less_than_its_bound() {
    let tuning = Tuning::shipped();
    let layouts =
        [1, 2, 3, 8].map(Layout::one_host).into_iter().chain([Layout { ranks_per_host: 3, cores: 2 }]);
    for (operation, schedule, ranks) in [
        ("allreduce", "ring", 6),
        ("allreduce", "one_shot", 5),
        ("allreduce", "double_tree", 7),
        ("allreduce", "rabenseifner", 6),
        ("broadcast", "chain", 6),
        ("broadcast", "scatter_allgather", 5),
        ("alltoall", "bruck", 6),
        ("gather", "binomial", 7),
        ("barrier", "dissemination", 6),
        ("scan", "doubling", 6),
    ] {
        let outline = outline(operation, schedule, ranks, &[]);
        for transport in ["tcp", "shm", "threads"] {
            let constants = tuning.of(transport).expect("they are shipped");
            for layout in layouts.clone() {
                for bytes in [0, 8, 1 << 14, 1 << 20, 1 << 27] {
                    let work = Work { bytes, dtype: DType::F32, user_operator: false };
                    let bound = outline.totals().bound_us(ranks, constants, layout, work);
                    let us = outline.predict_us(constants, layout, work);
                    let context = format!("{operation}.{schedule}, {bytes} B over {transport}, {layout:?}");
                    assert!(bound <= us * (1.0 + 1e-9), "{context}: {us} is below {bound}");
                    assert!(bound > 0.0, "{context}");
                    // Within a limit it is the same, and just above there is none.
                    let within = |limit_us| outline.predict_within_us(constants, layout, work, limit_us);
                    assert_eq!([within(us), within(us * (1.0 - 1e-9))], [Some(us), None], "{context}");
                }
            }
        }
    }
}

#[test]
fn deterministic_choices_depend_on_ranks_alone() {
    let one = chooser();
    let other = Chooser::new({
        let mut tuning = Tuning::shipped();
        tuning.set(constants());
        tuning
    });
    for operation in ["allreduce", "reduce", "reduce_scatter", "scan", "exscan"] {
        for ranks in [2, 3, 5, 8, 12] {
            let plain = Question { deterministic: true, ..question(operation, ranks, 8) };
            let first = one.choose(&plain).expect("one is steady").candidate;
            let questions = [
                Question { transport: "shm", bytes: 1 << 26, ..plain.clone() },
                Question { transport: "threads", layout: Layout::one_host(1), ..plain.clone() },
                Question {
                    layout: Layout { ranks_per_host: 2, cores: 2 },
                    dtype: DType::Bf16,
                    ..plain.clone()
                },
            ];
            for question in questions {
                for chooser in [&one, &other] {
                    assert_eq!(
                        chooser.choose(&question).expect("one is steady").candidate,
                        first,
                        "{question:?}"
                    );
                }
            }
        }
    }
    // Blocks of other lengths get the same bits; and where nothing is reduced, nothing is lost.
    let uneven = |unequal_blocks| Question {
        deterministic: true,
        unequal_blocks,
        ..question("reduce_scatter", 6, 1 << 12)
    };
    let pick = |question: &Question| one.choose(question).expect("one serves").candidate;
    assert_eq!(pick(&uneven(false)), pick(&uneven(true)));
    for bytes in [8, 1 << 24] {
        let plain = question("broadcast", 8, bytes);
        assert_eq!(pick(&plain), pick(&Question { deterministic: true, ..plain.clone() }));
    }
}

/// Steps and bytes of what is taken.
fn taken(chooser: &Chooser, question: &Question) -> (u32, f64, Candidate) {
    let all = chooser.explain(question).expect("one serves");
    let first: &Considered = &all[0];
    let (steps, sent) = (first.steps.expect("it runs"), first.sent_share.expect("it runs"));
    (steps, sent, first.candidate.clone())
}

#[test]
fn small_sizes_take_few_steps_and_large_ones_few_bytes() {
    let chooser = chooser();
    for operation in ["allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall"] {
        for (transport, ranks) in [("tcp", 8), ("shm", 8), ("tcp", 16), ("tcp", 7)] {
            let at = |bytes| Question { transport, ..question(operation, ranks, bytes) };
            let (small_steps, small_sent, small) = taken(&chooser, &at(8));
            let (large_steps, large_sent, large) = taken(&chooser, &at(64 << 20));
            let all = chooser.explain(&at(8)).expect("one serves");
            let able = || all.iter().filter(|one| one.steps.is_some());
            let most_steps = able().filter_map(|one| one.steps).max().expect("one runs");
            let least_sent = able().filter_map(|one| one.sent_share).fold(f64::INFINITY, f64::min);
            let context = format!("{operation} on {ranks} over {transport}: {small}, then {large}");
            // A total exchange of small pieces takes more steps to send fewer messages.
            if operation == "alltoall" {
                assert!(small_sent >= large_sent, "{context}");
                continue;
            }
            assert!(small_steps <= large_steps, "{context}");
            assert!(2 * small_steps <= most_steps || most_steps <= 4, "{context}: {small_steps} steps");
            assert!(large_sent <= 1.2 * least_sent, "{context}: {large_sent}, where {least_sent} would do");
        }
    }
}

#[test]
fn operators_that_do_not_commute_get_schedules_that_keep_order() {
    let chooser = chooser();
    for operation in ["allreduce", "reduce", "reduce_scatter", "scan", "exscan"] {
        for root in [0, 2] {
            for bytes in [8, 1 << 20] {
                let question = Question { commutative: false, root, ..question(operation, 5, bytes) };
                let choice = chooser.choose(&question).expect("one keeps order");
                let Outcome::Right(proved) = choice.candidate.prove(5, root) else { panic!("it runs") };
                assert!(proved.properties.ordered, "{} for root {root}", choice.candidate);
            }
        }
    }
}

#[test]
fn unequal_blocks_and_steady_bits_bar_what_cannot_keep_them() {
    let chooser = chooser();
    for operation in ["allgather", "alltoall", "gather", "scatter", "reduce_scatter"] {
        let question = Question { unequal_blocks: true, ..question(operation, 6, 1 << 16) };
        let choice = chooser.choose(&question).expect("one serves unequal blocks");
        let Outcome::Right(proved) = choice.candidate.prove(6, 0) else { panic!("it runs") };
        assert_eq!(proved.properties.equal_blocks_only, None, "{}", choice.candidate);
    }
    for operation in ["allreduce", "reduce", "reduce_scatter"] {
        let at = |bytes| Question { deterministic: true, ..question(operation, 6, bytes) };
        let one = chooser.choose(&at(8)).expect("one is steady").candidate;
        for power in 0..30 {
            assert_eq!(chooser.choose(&at(1 << power)).expect("one is steady").candidate, one);
        }
        let Outcome::Right(proved) = one.prove(6, 0) else { panic!("it runs") };
        assert!(proved.properties.same_tree_at_every_place, "{one}");
    }
    let ring = chooser.explain(&Question { deterministic: true, ..question("allreduce", 6, 8) });
    let ring = ring.expect("one is steady").into_iter().find(|one| one.candidate.schedule == "ring");
    let Standing::Barred(reason) = ring.expect("it is looked at").standing else { panic!("a ring is not") };
    assert!(reason.contains("depends on an element's place"), "{reason}");
}

#[test]
fn blocks_of_unknown_size_go_straight_to_their_rank() {
    let chooser = chooser();
    for (operation, root) in [("gather", 2), ("scatter", 2), ("alltoall", 0)] {
        for bytes in [8, 1 << 20] {
            let question = Question { own_blocks_only: true, root, ..question(operation, 6, bytes) };
            let all = chooser.explain(&question).expect("one goes straight");
            assert!(["linear", "pairwise"].contains(&all[0].candidate.schedule), "{}", all[0].candidate);
            let barred =
                all.iter().any(|one| matches!(&one.standing, Standing::Barred(why) if why.contains("sizes")));
            assert!(barred, "{operation}: binomial trees and Bruck's exchange pass blocks on");
        }
    }
}

#[test]
fn constants_are_found_again_from_what_they_predict() {
    let truth = Constants { send_us: 5.0, recv_us: 3.0, wake_us: 12.0, switch_us: 9.0, ..constants() };
    let start = Constants { switch_us: 3.0, send: Rate::flat(0.3), recv: Rate::flat(4.0), ..constants() };
    let mut probes = Vec::new();
    for ranks in [2, 4, 8] {
        for (operation, schedule) in [("broadcast", "linear"), ("allgather", "ring"), ("alltoall", "linear")]
        {
            for bytes in [8, 1 << 10, 64 << 10, 4 << 20] {
                let outline = outline(operation, schedule, ranks, &[]);
                let (layout, work) =
                    (Layout::one_host(2), Work { bytes, dtype: DType::F32, user_operator: false });
                let measured_us = outline.predict_us(&truth, layout, work);
                probes.push(coll_cost::Probe { outline, ranks, layout, work, measured_us });
            }
        }
    }
    let found = coll_cost::fit(&start, &probes);
    let fit = found.fit.as_ref().expect("it says how well it fits");
    assert!(fit.error_factor < 1.05, "{fit:?}");
    assert_eq!((&fit.ranks[..], fit.probes, fit.cores), (&[2, 4, 8][..], 36, 2));
    let ratio = found.switch_us / truth.switch_us;
    assert!((0.7..1.4).contains(&ratio), "turns of {} µs", found.switch_us);
}

#[test]
fn a_schedule_can_be_insisted_on_where_it_can_serve() {
    let forced = chooser().with_forced("allreduce.butterfly,broadcast.chain(c=5)".parse().expect("it reads"));
    let choice = |operation, ranks| forced.choose(&question(operation, ranks, 8)).map(|c| c.candidate);
    assert_eq!(choice("allreduce", 4).expect("it serves").to_string(), "allreduce.butterfly");
    assert_eq!(choice("broadcast", 4).expect("it serves").to_string(), "broadcast.chain(c=5)");
    assert_eq!(choice("scan", 4), chooser().choose(&question("scan", 4, 8)).map(|c| c.candidate));
    let error = choice("allreduce", 6).expect_err("six is no power of two");
    assert!(matches!(error, ChooseError::Forced { .. }), "{error}");
    assert!(error.to_string().contains("does not serve 6 ranks: a butterfly pairs ranks"), "{error}");
    let ring = chooser().with_forced("allreduce.ring".parse().expect("it reads"));
    let ordered = Question { commutative: false, ..question("allreduce", 4, 8) };
    let error = ring.choose(&ordered).expect_err("a ring does not keep order").to_string();
    assert!(error.contains("allreduce.ring is to be taken") && error.contains("rank order"), "{error}");
    assert_ne!(ring.fingerprint(), chooser().fingerprint());
}

#[test]
fn many_ranks_are_judged_by_slices() {
    let chooser = chooser();
    let layout = Layout { ranks_per_host: 8, cores: 16 };
    for operation in ["allreduce", "broadcast", "allgather", "barrier"] {
        let at = |bytes| Question { layout, ..question(operation, 256, bytes) };
        let small = chooser.explain(&at(8)).expect("one serves");
        let large = chooser.explain(&at(256 << 20)).expect("one serves");
        let us = |all: &[Considered]| all[0].predicted_us.expect("it runs");
        assert!(us(&small) > 1.0 && us(&small) < us(&large) || operation == "barrier", "{operation}");
        assert!(small[0].steps <= large[0].steps, "{operation}");
    }
}

#[test]
fn nodes_are_worth_knowing_of() {
    let chooser = chooser();
    let apart = |ranks_per_host, ranks| Question {
        layout: Layout { ranks_per_host, cores: ranks_per_host },
        ..question("allreduce", ranks, 16 << 20)
    };
    for (ranks_per_host, ranks) in [(8, 32), (8, 256), (16, 512)] {
        let all = chooser.explain(&apart(ranks_per_host, ranks)).expect("one serves");
        let two_level =
            all.iter().find(|one| one.candidate.schedule == "two_level").expect("it is looked at");
        let us = two_level.predicted_us.unwrap_or_else(|| panic!("{:?}", two_level.standing));
        let doubling = all.iter().find(|one| one.candidate.schedule == "butterfly").expect("it is looked at");
        assert!(us < doubling.predicted_us.expect("it runs"), "{ranks} ranks: {us}");
        let local = if ranks_per_host == 4 { "" } else { "(local=" };
        assert!(two_level.candidate.to_string().contains(local), "{}", two_level.candidate);
    }
}

#[test]
fn slices_and_wholes_agree_in_kind() {
    // On either side of the border the same schedules come out ahead, within a factor of two of each other's times.
    let chooser = chooser();
    for (operation, bytes) in [("allreduce", 8), ("allreduce", 64 << 20), ("broadcast", 8)] {
        let by_name = |ranks| -> BTreeMap<String, f64> {
            let all = chooser.explain(&question(operation, ranks, bytes)).expect("one serves");
            let bare = all.into_iter().filter(|one| one.candidate.params.is_empty());
            bare.filter_map(|one| Some((one.candidate.name(), one.predicted_us?))).collect()
        };
        let (whole, sliced) = (by_name(63), by_name(65));
        for (name, us) in &sliced {
            let ratio = us / whole[name];
            assert!((0.4..2.5).contains(&ratio), "{name} of {bytes} B: {us} beside {}", whole[name]);
        }
    }
}
