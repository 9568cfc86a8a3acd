//! Accesses that nothing orders are found on every seed, and those that something orders never are.

use crate::support::*;
use cuda_stand_in::{Config, control::Session};
use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUstream;
use std::ptr::null_mut;

const SEEDS: u64 = 12;

/// A program of two streams on each seed; it is to have races on all, or on none.
fn on_all_seeds(racy: bool, program: impl Fn(&Session, CUstream, CUstream, u64)) -> Vec<String> {
    let mut found = Vec::new();
    for seed in 0..SEEDS {
        let (session, context) = machine(seed);
        let (one, other, at) = (stream(), stream(), malloc(1024).unwrap());
        program(&session, one, other, at);
        context.synchronize().unwrap();
        found = session.races();
        assert_eq!(!found.is_empty(), racy, "seed {seed}: {found:?}");
        assert!(session.log().is_empty(), "{:?}", session.log());
    }
    found
}

#[test]
fn two_streams_with_a_wait_and_without() {
    on_all_seeds(false, |_, one, other, at| {
        let event = event();
        fill(at, 1, 1024, one).unwrap();
        record(event, one);
        wait(other, event);
        copy(at, at + 512, 512, other).unwrap();
    });
    let found = on_all_seeds(true, |_, one, other, at| {
        let event = event();
        fill(at, 1, 1024, one).unwrap();
        record(event, one);
        copy(at, at + 512, 512, other).unwrap();
    });
    says(
        &found,
        &[
            "a fill of 1024 bytes (operation",
            "a copy of 512 bytes (operation",
            "of device 0)",
            "nothing orders",
        ],
    );
}

#[test]
fn reads_side_by_side_and_bytes_apart_are_no_race() {
    on_all_seeds(false, |_, one, other, at| {
        let host = pinned(1024).unwrap();
        fill(at, 1, 1024, one).unwrap();
        sync(one).unwrap();
        copy(host, at, 512, one).unwrap();
        copy(host + 512, at, 512, other).unwrap();
        fill(at + 512, 2, 100, one).unwrap();
        fill(at + 612, 3, 100, other).unwrap();
    });
    let found = on_all_seeds(true, |_, one, other, at| {
        fill(at + 512, 2, 101, one).unwrap();
        fill(at + 612, 3, 100, other).unwrap();
    });
    says(&found, &["bytes 612..613 of allocation"]);
}

#[test]
fn a_wait_for_an_event_that_was_never_recorded_is_no_wait() {
    on_all_seeds(true, |session, one, other, at| {
        let event = event();
        wait(other, event);
        assert_eq!(session.stats().empty_waits, 1);
        copy(at, at + 512, 512, other).unwrap();
        fill(at, 1, 1024, one).unwrap();
        record(event, one);
    });
}

#[test]
fn a_wait_is_for_the_recording_before_it() {
    on_all_seeds(true, |_, one, other, at| {
        let event = event();
        record(event, one);
        wait(other, event);
        fill(at, 1, 1024, one).unwrap();
        record(event, one);
        copy(at, at + 512, 512, other).unwrap();
    });
    on_all_seeds(false, |_, one, other, at| {
        let event = event();
        record(event, one);
        fill(at, 1, 1024, one).unwrap();
        record(event, one);
        wait(other, event);
        record(event, other);
        copy(at, at + 512, 512, other).unwrap();
    });
}

#[test]
fn an_event_that_was_destroyed_still_orders() {
    on_all_seeds(false, |_, one, other, at| {
        let event = event();
        fill(at, 1, 1024, one).unwrap();
        record(event, one);
        wait(other, event);
        cu!(cuEventDestroy_v2(event)).unwrap();
        copy(at, at + 512, 512, other).unwrap();
    });
}

#[test]
fn order_is_passed_on_from_stream_to_stream() {
    for (middle, racy) in [(true, false), (false, true)] {
        on_all_seeds(racy, |_, one, other, at| {
            let (between, first, second) = (stream(), event(), event());
            fill(at, 1, 1024, one).unwrap();
            record(first, one);
            if middle {
                wait(between, first);
            }
            record(second, between);
            wait(other, second);
            copy(at, at + 512, 512, other).unwrap();
        });
    }
}

#[test]
fn a_write_after_a_read_must_wait_too() {
    for (waits, racy) in [(true, false), (false, true)] {
        on_all_seeds(racy, |_, one, other, at| {
            let (host, read, event) = (pinned(1024).unwrap(), event(), event());
            fill(at, 1, 1024, one).unwrap();
            record(event, one);
            wait(other, event);
            copy(host, at, 1024, other).unwrap();
            record(read, other);
            if waits {
                wait(one, read);
            }
            fill(at, 2, 1024, one).unwrap();
        });
    }
}

#[test]
fn the_host_reads_before_it_has_waited() {
    on_all_seeds(false, |session, one, _, at| {
        let host = pinned(1024).unwrap();
        copy(host, at, 1024, one).unwrap();
        sync(one).unwrap();
        session.host_reads(host, 1024).unwrap();
    });
    let found = on_all_seeds(true, |session, one, other, at| {
        let host = pinned(1024).unwrap();
        copy(host, at, 1024, one).unwrap();
        sync(other).unwrap();
        session.host_reads(host + 8, 8).unwrap();
    });
    says(&found, &["the host", "bytes 8..16 of allocation", "of the host"]);
    // It writes what is still to be sent.
    on_all_seeds(true, |session, one, _, at| {
        let host = pinned(1024).unwrap();
        session.host_writes(host, 1024).unwrap();
        copy(at, host, 1024, one).unwrap();
        session.host_writes(host, 1024).unwrap();
    });
    on_all_seeds(false, |session, one, _, at| {
        let (host, event) = (pinned(1024).unwrap(), event());
        session.host_writes(host, 1024).unwrap();
        copy(at, host, 1024, one).unwrap();
        record(event, one);
        cu!(cuEventSynchronize(event)).unwrap();
        session.host_writes(host, 1024).unwrap();
    });
}

#[test]
fn a_copy_that_blocks_waits_for_its_own_stream_alone() {
    on_all_seeds(true, |_, one, _, at| {
        fill(at, 1, 1024, one).unwrap();
        bytes(at, 8).unwrap();
    });
}

#[test]
fn memory_is_not_freed_while_another_devices_work_uses_it() {
    for (waits, racy) in [(true, false), (false, true)] {
        for seed in 0..SEEDS {
            let session = session(Config { seed, ..Config::default() });
            let (first, second) = (CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap());
            let (to, there) = (malloc(64).unwrap(), stream());
            first.bind_to_thread().unwrap();
            let at = malloc(64).unwrap();
            put(at, &[1; 64]).unwrap();
            copy(to, at, 64, there).unwrap();
            if waits {
                sync(there).unwrap();
            }
            cu!(cuMemFree_v2(at)).unwrap();
            if !racy {
                second.synchronize().unwrap();
                clean(&session);
            }
            // It was freed before or after the copy; either is found.
            let _ = second.synchronize();
            assert_eq!(session.verdict().is_err(), racy, "seed {seed}");
        }
    }
}

#[test]
fn memory_in_the_order_of_a_stream() {
    on_all_seeds(false, |_, one, other, _| {
        let (mut at, event, back) = (0, event(), event());
        cu!(cuMemAllocAsync(&mut at, 100, one)).unwrap();
        record(event, one);
        wait(other, event);
        fill(at, 1, 100, other).unwrap();
        record(back, other);
        wait(one, back);
        cu!(cuMemFreeAsync(at, one)).unwrap();
    });
    // Freed in its own stream without waiting for the other's work: a race, or an address that means nothing by then.
    for seed in 0..SEEDS {
        let (session, context) = machine(seed);
        let (one, other, event, mut at) = (stream(), stream(), event(), 0);
        cu!(cuMemAllocAsync(&mut at, 100, one)).unwrap();
        record(event, one);
        wait(other, event);
        fill(at, 1, 100, other).unwrap();
        cu!(cuMemFreeAsync(at, one)).unwrap();
        let _ = context.synchronize();
        assert!(session.verdict().is_err(), "seed {seed}");
    }
}

#[test]
fn kernels_read_their_sources_and_write_their_targets() {
    let found = on_all_seeds(true, |_, one, other, at| {
        let add = kernel("collc_combine2_sum_f32").unwrap();
        cu!(cuMemsetD32Async(at, 0, 256, one)).unwrap();
        sync(one).unwrap();
        launch(add, &[at, at + 256, at + 512, 32], one).unwrap();
        fill(at + 520, 1, 8, other).unwrap();
    });
    says(&found, &["kernel collc_combine2_sum_f32 (operation", "bytes 520..528"]);
    on_all_seeds(false, |_, one, other, at| {
        let add = kernel("collc_combine2_sum_f32").unwrap();
        cu!(cuMemsetD32Async(at, 0, 256, one)).unwrap();
        sync(one).unwrap();
        launch(add, &[at, at + 256, at + 512, 32], one).unwrap();
        fill(at + 128, 1, 128, other).unwrap();
        fill(at + 640, 1, 128, other).unwrap();
    });
}

#[test]
fn streams_are_called_what_they_were_named() {
    let found = on_all_seeds(true, |session, one, other, at| {
        session.name_stream(one as u64, "lane 0 of rank 3").unwrap();
        fill(at, 1, 8, one).unwrap();
        fill(at, 2, 8, other).unwrap();
    });
    says(&found, &["in lane 0 of rank 3"]);
}

#[test]
fn threads_are_told_apart_where_it_was_asked_for() {
    for (apart, hands_over, racy) in [(false, false, false), (true, false, true), (true, true, false)] {
        let session = session(Config { threads_apart: apart, ..Config::default() });
        let context = CudaContext::new(0).unwrap();
        let (one, other, at) = (stream() as u64, stream() as u64, malloc(64).unwrap());
        session.hands_over(1);
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                session.takes_over(1);
                context.bind_to_thread().unwrap();
                fill(at, 1, 64, one as CUstream).unwrap();
                sync(one as CUstream).unwrap();
                if hands_over {
                    session.hands_over(2);
                }
            });
            there.join().unwrap();
        });
        session.takes_over(2);
        fill(at, 2, 64, other as CUstream).unwrap();
        context.synchronize().unwrap();
        assert_eq!(session.race_count() > 0, racy, "{apart} {hands_over}: {:?}", session.races());
    }
}

#[test]
fn what_was_found_is_forgotten_on_request() {
    let (session, context) = machine(0);
    let at = malloc(8).unwrap();
    fill(at, 1, 8, stream()).unwrap();
    fill(at, 2, 8, stream()).unwrap();
    context.synchronize().unwrap();
    assert!(session.verdict().is_err());
    assert_eq!(cu!(cuMemFree_v2(5)), Err(cudarc::driver::sys::CUresult::CUDA_ERROR_INVALID_VALUE));
    session.forget();
    clean(&session);
    fill(at, 3, 8, null_mut()).unwrap();
    context.synchronize().unwrap();
    clean(&session);
}
