//! Captures become graphs that do the same again.

use crate::support::*;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUresult, CUstream, CUstreamCaptureMode};
use std::ptr::null_mut;

const GLOBAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

fn begin(stream: CUstream) {
    cu!(cuStreamBeginCapture_v2(stream, RELAXED)).unwrap();
}

fn end(stream: CUstream) -> Answer<cudarc::driver::sys::CUgraph> {
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(stream, &mut graph)).map(|()| graph)
}

fn instantiated(graph: cudarc::driver::sys::CUgraph) -> cudarc::driver::sys::CUgraphExec {
    let mut made = null_mut();
    cu!(cuGraphInstantiateWithFlags(&mut made, graph, 0)).unwrap();
    made
}

#[test]
fn what_was_captured_is_done_again_by_cudarcs_own_interface() {
    for seed in 0..8 {
        let (session, context) = machine(seed);
        // SAFETY: all is done in one stream.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().unwrap();
        let mut data = stream.clone_htod(&[1u32; 4]).unwrap();
        stream.synchronize().unwrap();
        stream.begin_capture(GLOBAL).unwrap();
        stream.memset_zeros(&mut data).unwrap();
        let graph = stream.end_capture(CUgraphInstantiate_flags(0)).unwrap().unwrap();
        assert_eq!(stream.clone_dtoh(&data).unwrap(), [1; 4], "a capture does nothing");
        graph.launch().unwrap();
        assert_eq!(stream.clone_dtoh(&data).unwrap(), [0; 4]);
        stream.memcpy_htod(&[2u32; 4], &mut data).unwrap();
        graph.upload().unwrap();
        graph.launch().unwrap();
        assert_eq!(stream.clone_dtoh(&data).unwrap(), [0; 4]);
        assert_eq!(session.stats().graph_launches, 2);
        drop((graph, data));
        clean(&session);
    }
}

/// Fills in `one`, then copies in `other`, and both in `one` if it is joined.
fn forked(one: CUstream, other: CUstream, at: u64, joins: bool) -> Answer<cudarc::driver::sys::CUgraph> {
    let (fork, join) = (event(), event());
    begin(one);
    fill(at, 1, 64, one).unwrap();
    record(fork, one);
    wait(other, fork);
    fill(at + 64, 2, 64, one).unwrap();
    copy(at + 128, at, 64, other).unwrap();
    record(join, other);
    if joins {
        wait(one, join);
    }
    copy(at + 192, at + 64, 128, one).unwrap_or_default();
    end(one)
}

#[test]
fn a_capture_follows_events_to_other_streams() {
    for seed in 0..12 {
        let (session, context) = machine(seed);
        let (one, other, at) = (stream(), stream(), malloc(320).unwrap());
        let graph = forked(one, other, at, true).unwrap();
        let mut nodes = 0;
        cu!(cuGraphGetNodes(graph, null_mut(), &mut nodes)).unwrap();
        assert_eq!(nodes, 4);
        let made = instantiated(graph);
        cu!(cuGraphDestroy(graph)).unwrap();
        let launched = stream();
        for _ in 0..3 {
            cu!(cuGraphLaunch(made, launched)).unwrap();
        }
        fill(at + 319, 5, 1, launched).unwrap();
        cu!(cuGraphExecDestroy(made)).unwrap();
        context.synchronize().unwrap();
        let due = [[1u8; 64], [2; 64], [1; 64], [2; 64], [1; 64]].concat();
        assert_eq!(bytes(at, 319).unwrap(), due[..319]);
        clean(&session);
        let mut status = cudarc::driver::sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
        cu!(cuStreamIsCapturing(other, &mut status)).unwrap();
        assert_eq!(status as u32, 0);
    }
}

#[test]
fn a_stream_that_is_not_joined_is_an_error() {
    let (session, _context) = machine(0);
    let (one, other, at) = (stream(), stream(), malloc(320).unwrap());
    assert_eq!(forked(one, other, at, false), Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED));
    says(&session.log(), &["a copy of 64 bytes in stream", "is not waited for"]);
    // Both are ordinary streams again.
    fill(at, 1, 64, other).unwrap();
    sync(other).unwrap();
    fill(at, 1, 64, one).unwrap();
    sync(one).unwrap();
}

#[test]
fn branches_of_a_graph_race_where_no_edge_orders_them() {
    for (orders, racy) in [(true, false), (false, true)] {
        for seed in 0..12 {
            let (session, context) = machine(seed);
            let (one, other, at) = (stream(), stream(), malloc(64).unwrap());
            let (fork, join) = (event(), event());
            begin(one);
            if !orders {
                record(fork, one);
            }
            fill(at, 1, 64, one).unwrap();
            if orders {
                record(fork, one);
            }
            wait(other, fork);
            fill(at, 2, 64, other).unwrap();
            record(join, other);
            wait(one, join);
            let made = instantiated(end(one).unwrap());
            cu!(cuGraphLaunch(made, one)).unwrap();
            context.synchronize().unwrap();
            assert_eq!(session.race_count() > 0, racy, "seed {seed}: {:?}", session.races());
            if racy {
                says(&session.races(), &["as captured in graph"]);
            } else {
                assert_eq!(bytes(at, 64).unwrap(), [2; 64]);
            }
        }
    }
}

#[test]
fn a_graph_comes_after_what_its_stream_did_and_before_what_it_does() {
    for (same, racy) in [(true, false), (false, true)] {
        for seed in 0..12 {
            let (session, context) = machine(seed);
            let (one, other, at) = (stream(), stream(), malloc(64).unwrap());
            begin(one);
            fill(at, 1, 64, one).unwrap();
            let made = instantiated(end(one).unwrap());
            fill(at, 3, 64, if same { one } else { other }).unwrap();
            cu!(cuGraphLaunch(made, one)).unwrap();
            cu!(cuGraphLaunch(made, one)).unwrap();
            context.synchronize().unwrap();
            assert_eq!(session.race_count() > 0, racy, "seed {seed}: {:?}", session.races());
        }
    }
}

/// Launches of one graph follow each other, whichever streams they are in; those of two made of it do not.
#[test]
fn a_graph_does_not_overtake_itself() {
    for (same, racy) in [(true, false), (false, true)] {
        for seed in 0..12 {
            let (session, context) = machine(seed);
            let (one, other, at) = (stream(), stream(), malloc(192).unwrap());
            // What was filled is read in another branch, after which the first one does nothing more.
            let (fork, join) = (event(), event());
            begin(one);
            fill(at, 1, 64, one).unwrap();
            record(fork, one);
            wait(other, fork);
            copy(at + 64, at, 64, other).unwrap();
            record(join, other);
            wait(one, join);
            let graph = end(one).unwrap();
            let (made, again) = (instantiated(graph), instantiated(graph));
            cu!(cuGraphLaunch(made, one)).unwrap();
            cu!(cuGraphLaunch(if same { made } else { again }, other)).unwrap();
            context.synchronize().unwrap();
            assert_eq!(session.race_count() > 0, racy, "seed {seed}: {:?}", session.races());
        }
    }
}

#[test]
fn host_functions_and_words_are_captured_too() {
    unsafe extern "C" fn count(number: *mut std::ffi::c_void) {
        // SAFETY: it is the test's counter.
        unsafe { *number.cast::<u32>() += 1 };
    }
    let (session, context) = machine(1);
    let (one, flag, mut called) = (stream(), pinned(8).unwrap(), 0u32);
    begin(one);
    cu!(cuLaunchHostFunc(one, Some(count), (&raw mut called).cast())).unwrap();
    cu!(cuStreamWriteValue32_v2(one, flag, 7, 0)).unwrap();
    let made = instantiated(end(one).unwrap());
    for _ in 0..3 {
        cu!(cuGraphLaunch(made, one)).unwrap();
    }
    context.synchronize().unwrap();
    assert_eq!(called, 3);
    clean(&session);
}

#[test]
fn what_a_capture_does_not_suffer() {
    let unsupported = Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    let invalidated = Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    let ends = |stream| end(stream).map(|_| ());
    let (session, context) = machine(0);
    let (one, other, at) = (stream(), stream(), malloc(64).unwrap());
    assert_eq!(ends(one), Err(CUresult::CUDA_ERROR_ILLEGAL_STATE), "it is not captured");
    assert_eq!(cu!(cuStreamBeginCapture_v2(null_mut(), RELAXED)), unsupported);

    begin(one);
    assert_eq!(cu!(cuStreamBeginCapture_v2(one, RELAXED)), Err(CUresult::CUDA_ERROR_ILLEGAL_STATE));
    assert_eq!(sync(one), unsupported, "it cannot be waited for");
    assert_eq!(fill(at, 1, 64, one), invalidated);
    assert_eq!(ends(one), invalidated);

    begin(one);
    let outside = event();
    record(outside, other);
    let answer = cu!(cuStreamWaitEvent(one, outside, 0));
    assert_eq!(answer, Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION));
    assert_eq!(ends(one), invalidated);

    begin(one);
    let inside = event();
    record(inside, one);
    assert_eq!(cu!(cuEventSynchronize(inside)), Err(CUresult::CUDA_ERROR_CAPTURED_EVENT));
    assert_eq!(ends(one), invalidated);

    begin(one);
    begin(other);
    record(inside, one);
    assert_eq!(cu!(cuStreamWaitEvent(other, inside, 0)), Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE));
    assert_eq!((ends(one), ends(other)), (invalidated, invalidated));

    begin(one);
    record(inside, one);
    wait(other, inside);
    assert_eq!(ends(other), Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
    assert_eq!(ends(one), invalidated);

    let (mut blocking, mut got) = (null_mut(), 0);
    cu!(cuStreamCreate(&mut blocking, 0)).unwrap();
    begin(blocking);
    assert_eq!(fill(at, 1, 64, null_mut()), Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT));
    assert_eq!(ends(blocking), invalidated);

    cu!(cuStreamBeginCapture_v2(one, GLOBAL)).unwrap();
    assert_eq!(cu!(cuMemAlloc_v2(&mut got, 64)), unsupported);
    assert_eq!(ends(one), invalidated);
    begin(one);
    cu!(cuMemAlloc_v2(&mut got, 64)).unwrap();
    assert_eq!(cu!(cuMemAllocAsync(&mut got, 64, one)), unsupported);
    assert_eq!(ends(one), invalidated);

    begin(one);
    fill(at, 4, 64, one).unwrap();
    let made = instantiated(end(one).unwrap());
    session.forget();
    cu!(cuGraphLaunch(made, one)).unwrap();
    context.synchronize().unwrap();
    assert_eq!(bytes(at, 64).unwrap(), [4; 64]);
    clean(&session);
}
