//! Programs that are right and do more than they need: what is warned of, and what is not.

use super::*;

#[test]
fn needless_work_is_warned_of() {
    let mut build = tree(3, 2);
    build.step();
    build.whole("send data from 0 to 1", &[], Kind::Move, (0, 0, 0), (1, 0, 0));
    check(
        &build,
        expect![[r#"
        W0702: rank 1 has data already when it is sent again
          at `send data from 0 to 1`: sent again by this send, in step 2, from rank 0 to rank 1
          and `send data to v + d`: it came with this send, in step 0 (k = 0, v = 0), from rank 0 to rank 1
          help: leave the second one out
    "#]],
    );
    let mut build = tree(3, 2).scratch("tmp", &[]);
    build.step();
    build.whole("send data from 1 to 2 as tmp", &[], Kind::Move, (1, 0, 0), (2, 1, 0));
    build.step();
    build.whole("copy tmp to tmp", &[], Kind::Move, (2, 1, 0), (2, 1, 0));
    check(
        &build,
        expect![[r#"
        W0701: nobody reads what rank 2 gets in tmp
          at `send data from 1 to 2 as tmp`: brought by this send, in step 2, from rank 1 to rank 2
          help: leave this transfer out, with a narrower `where` or range

        W0701: nobody reads what rank 2 gets in tmp
          at `copy tmp to tmp`: brought by this copy, in step 3, on rank 2
          help: leave this transfer out, with a narrower `where` or range
    "#]],
    );
}

#[test]
fn what_another_call_left_behind_may_be_sent_again() {
    let mut build = tree(3, 2);
    build.step();
    let text = format!("{OTHER_FILE}send data from 0 to 1");
    build.whole(&text, &[], Kind::Move, (0, 0, 0), (1, 0, 0));
    assert_eq!(build.told(), "");
}

#[test]
fn only_a_schedule_that_is_neither_sparing_nor_quick_is_warned_of_its_cost() {
    // The whole buffer goes round a ring, n - 1 times, through a slot for what arrives.
    let n = 8u32;
    let mut build = Build::new(sum_everywhere(n), 1).scratch("tmp", &[2]);
    for s in 0..n - 1 {
        build.step();
        for r in 0..n {
            let from = if s == 0 { (r, 0, 0) } else { (r, 1, (s - 1) % 2) };
            build.whole(
                "send tmp[s % 2] to (r + 1) % n",
                &[("s", s as i64)],
                Kind::Move,
                from,
                ((r + 1) % n, 1, s % 2),
            );
        }
        build.step();
        for r in 0..n {
            build.whole("reduce tmp[s % 2] into data", &[], Kind::Reduce, (r, 1, s % 2), (r, 0, 0));
        }
    }
    check(
        &build,
        expect![[r#"
            W0703: rank 0 sends 7 times the size of `data`, where 1.75 times the size would do
              at `send tmp[s % 2] to (r + 1) % n`: among others with this send, in step 12 (s = 6), from rank 0 to rank 1
              note: it takes 7 steps; the least is 3
              help: cut the buffer with `chunks`, and send each chunk only where it is needed
        "#]],
    );
    check_facts(
        &build,
        expect!["7 steps (least 3), sends 7 (least 7/4), receives 7 (least 7/4), 7 messages, scratch 2"],
    );
}
