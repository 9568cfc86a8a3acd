//! Words in memory that streams wait for and write.

use crate::support::*;
use cuda_stand_in::Config;
use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUresult;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn word(at: u64) -> &'static AtomicU32 {
    // SAFETY: it is pinned memory of the test's, at a multiple of four, and outlives what is done with it.
    unsafe { AtomicU32::from_ptr(at as *mut u32) }
}

#[test]
fn a_stream_that_waits_for_a_word_knows_what_its_writer_knew() {
    for (orders, racy) in [(true, false), (false, true)] {
        for seed in 0..12 {
            let (session, context) = machine(seed);
            let (data, flag) = (malloc(64).unwrap(), malloc(8).unwrap());
            let (one, other) = (stream(), stream());
            cu!(cuMemsetD32_v2(flag, 0, 2)).unwrap();
            context.synchronize().unwrap();
            if orders {
                cu!(cuStreamWaitValue32_v2(other, flag, 5, 0)).unwrap();
            }
            copy(data, data + 32, 32, other).unwrap();
            fill(data, 1, 64, one).unwrap();
            cu!(cuStreamWriteValue32_v2(one, flag, 6, 0)).unwrap();
            context.synchronize().unwrap();
            assert_eq!(session.race_count() > 0, racy, "seed {seed}: {:?}", session.races());
            assert_eq!(bytes(flag, 4).unwrap(), 6u32.to_ne_bytes());
        }
    }
}

#[test]
fn the_host_starts_a_stream_and_hears_of_its_end() {
    let (session, _context) = machine(2);
    let (data, host, flags) = (malloc(64).unwrap(), pinned(64).unwrap(), pinned(16).unwrap());
    let stream = stream();
    word(flags).store(0, Ordering::Release);
    word(flags + 4).store(0, Ordering::Release);
    cu!(cuStreamWaitValue32_v2(stream, flags, 1, 1)).unwrap();
    fill(data, 9, 64, stream).unwrap();
    copy(host, data, 64, stream).unwrap();
    cu!(cuStreamWriteValue32_v2(stream, flags + 4, 1, 0)).unwrap();
    assert_eq!(session.step(100), 0, "nothing goes on before the word is written");
    word(flags).store(1, Ordering::Release);
    session.step(100);
    assert_eq!(word(flags + 4).load(Ordering::Acquire), 1);
    session.host_saw(flags + 4).unwrap();
    session.host_reads(host, 64).unwrap();
    clean(&session);
    session.host_writes(data, 1).unwrap_or_default();
    clean(&session);
}

#[test]
fn the_host_that_has_not_seen_the_word_races() {
    let (session, _context) = machine(2);
    let (host, flag, stream) = (pinned(64).unwrap(), pinned(8).unwrap(), stream());
    fill(host, 1, 64, stream).unwrap();
    cu!(cuStreamWriteValue64_v2(stream, flag, 1, 0)).unwrap();
    session.step(100);
    session.host_reads(host, 64).unwrap();
    assert_eq!(session.race_count(), 1, "{:?}", session.races());
}

#[test]
fn a_thread_that_waits_is_woken_by_another() {
    let (session, context) = machine(3);
    let (flag, stream) = (pinned(8).unwrap(), stream() as u64);
    word(flag).store(0, Ordering::Release);
    cu!(cuStreamWaitValue32_v2(stream as _, flag, 1, 1)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            context.bind_to_thread().unwrap();
            sync(stream as _).unwrap();
        });
        std::thread::sleep(Duration::from_millis(20));
        word(flag).store(1, Ordering::Release);
    });
    clean(&session);
}

#[test]
fn words_of_eight_bytes_and_several_at_once() {
    use cudarc::driver::sys::CUstreamBatchMemOpParams as Params;
    let (session, _context) = machine(4);
    let (flag, stream) = (pinned(16).unwrap(), stream());
    let wide = |kind: u64, at: u64, value: u64, flags: u64| Params { pad: [kind, at, value, flags, 0, 0] };
    let mut list = [
        wide(5, flag, 1 << 40, 0),
        wide(4, flag, (1 << 40) - 1, 0),
        wide(2, flag + 8, 7, 0),
        wide(1, flag + 8, 3, 2),
    ];
    cu!(cuStreamBatchMemOp_v2(stream, 4, list.as_mut_ptr(), 0)).unwrap();
    sync(stream).unwrap();
    assert_eq!(word(flag + 8).load(Ordering::Acquire), 7);
    clean(&session);
}

#[test]
fn words_are_where_the_stream_can_reach_and_at_their_places() {
    let session = session(Config::default());
    let (second, _first) = (CudaContext::new(1).unwrap(), CudaContext::new(0).unwrap());
    let (mine, theirs_stream) = (malloc(16).unwrap(), {
        second.bind_to_thread().unwrap();
        stream()
    });
    let invalid = Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cu!(cuStreamWriteValue32_v2(theirs_stream, mine, 1, 0)), invalid);
    says(&session.log(), &["without access to it"]);
    let (own, here) = (malloc(16).unwrap(), 0u32);
    assert_eq!(cu!(cuStreamWriteValue32_v2(theirs_stream, own + 2, 1, 0)), invalid);
    assert_eq!(cu!(cuStreamWriteValue64_v2(theirs_stream, own + 12, 1, 0)), invalid);
    assert_eq!(cu!(cuStreamWaitValue32_v2(theirs_stream, &raw const here as u64, 1, 0)), invalid);
    assert_eq!(cu!(cuStreamWaitValue32_v2(theirs_stream, own, 1, 4)), invalid);
}
