//! What ranks send each other, and where that puts them: against sums by hand and against every arrangement's time.

use crate::library::compile;
use crate::network::{Constants, full};
use coll_sim::{Element, Options, placed, size_taken_bytes, traffic};

#[test]
fn traffic_is_what_the_schedule_says() {
    let plan = compile("allreduce.ring", 4, &[]).expect("a ring is for any number");
    let element = Element { given_bytes: 4, held_bytes: 4, sent_bytes: 2 };
    let options = Options { bytes: 4096, element, ..Options::default() };
    let found = traffic(&[&plan], &options).expect("it is whole");
    // Six messages of a quarter each, at half the size.
    let due: Vec<(u32, u32, u64)> = (0..4).map(|rank| (rank, (rank + 1) % 4, 6 * 1024 / 2)).collect();
    assert_eq!(found.flows().collect::<Vec<_>>(), due);
    assert!(traffic(&[&plan.slice(1).expect("it has rank 1")], &options).is_err());
}

#[test]
fn sizes_are_taken_down_to_what_blocks_divide() {
    let plan = compile("allgather.ring", 4, &[]).expect("a ring is for any number");
    let element = Element { given_bytes: 4, held_bytes: 4, sent_bytes: 4 };
    let at = |bytes| size_taken_bytes(&plan, &Options { bytes, element, ..Options::default() });
    assert_eq!([at(64), at(0)], [64, 0]);
    let taken = at(71);
    assert!((56..=71).contains(&taken), "{taken}");
    assert!(
        placed(
            &[&plan],
            &full(4, Constants::PLAIN),
            &Options { bytes: taken, element, ..Options::default() }
        )
        .is_ok()
    );
}

#[test]
fn where_all_ways_are_alike_ranks_stay_as_they_are() {
    let plan = compile("allreduce.rabenseifner", 8, &[]).expect("it is for any number");
    let options = Options { bytes: 1 << 16, ..Options::default() };
    let found = placed(&[&plan], &full(8, Constants::PLAIN), &options).expect("it can be placed");
    assert!(!found.taken && found.order == (0..8).collect::<Vec<_>>(), "{found:?}");
    assert!(found.found_us >= found.listed_us * (1.0 - 1e-6));
    let more = placed(&[&plan], &full(7, Constants::PLAIN), &options);
    assert!(more.expect_err("a device is missing").to_string().contains("7 devices to 8 ranks"));
}
