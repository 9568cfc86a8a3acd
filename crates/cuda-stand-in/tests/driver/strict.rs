//! What a real driver lets pass most of the time, and its documentation does not promise: here it goes wrong, and is told.

use crate::support::*;
use cudarc::driver::CudaContext;
use cudarc::driver::sys::{CUgraph, CUmodule, CUresult, CUstreamCaptureMode};
use std::ptr::null_mut;

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
const HANDLE: CUresult = CUresult::CUDA_ERROR_INVALID_HANDLE;
const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

/// The areas of a copy may not overlap ("Memory Management" of the runtime's manual), and a kernel of ours has one place for its
/// target at most: exactly that of a source.
#[test]
fn what_overlaps_in_part_is_refused() {
    let (session, _context) = machine(0);
    let (at, stream) = (malloc(128).unwrap(), stream());
    for to in [at, at + 32, at + 63] {
        assert_eq!(copy(to, at, 64, stream), Err(INVALID));
    }
    says(
        &session.log(),
        &["a copy of 64 bytes: it reads 64 bytes and writes 64 bytes that begin 32 bytes behind"],
    );
    copy(at + 64, at, 64, stream).unwrap();
    let add = kernel("collc_combine2_sum_i32").unwrap();
    launch(add, &[at, at, at + 64, 16], stream).unwrap();
    sync(stream).unwrap();
    launch(add, &[at, at + 4, at + 64, 15], stream).unwrap();
    assert_eq!(sync(stream), Err(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    says(
        &session.log(),
        &["it reads 60 bytes and writes 60 bytes that begin -4 bytes behind them, which overlap"],
    );
}

/// "API synchronization behavior": out of pageable memory a blocking copy returns when that has been staged; the copy itself may
/// still be on its way, and streams that do not wait for stream 0 know nothing of it.
#[test]
fn a_blocking_copy_of_pageable_memory_may_be_under_way_when_it_returns() {
    for (waits, racy) in [(false, true), (true, false)] {
        for seed in 0..6 {
            let (session, context) = machine(seed);
            let (at, other, stream) = (malloc(64).unwrap(), malloc(64).unwrap(), stream());
            upload(at, &[3; 64]).unwrap();
            if waits {
                context.synchronize().unwrap();
            }
            copy(other, at, 64, stream).unwrap();
            sync(stream).unwrap();
            context.synchronize().unwrap();
            assert_eq!(session.race_count() > 0, racy, "seed {seed}: {:?}", session.races());
        }
    }
    // It waits for what stream 0 waits for.
    let (session, context) = machine(1);
    let mut blocking = null_mut();
    cu!(cuStreamCreate(&mut blocking, 0)).unwrap();
    let (at, host) = (malloc(64).unwrap(), pinned(64).unwrap());
    fill(host, 4, 64, blocking).unwrap();
    upload(at, &[3; 64]).unwrap();
    session.host_reads(host, 64).unwrap();
    context.synchronize().unwrap();
    clean(&session);
}

/// `cuMemFree` of memory of a pool waits for nothing.
#[test]
fn memory_of_a_pool_is_freed_at_once() {
    for (waits, racy) in [(false, true), (true, false)] {
        let (session, context) = machine(0);
        let (stream, mut at) = (stream(), 0);
        cu!(cuMemAllocAsync(&mut at, 64, stream)).unwrap();
        fill(at, 1, 64, stream).unwrap();
        if waits {
            sync(stream).unwrap();
        } else {
            session.step(2);
        }
        cu!(cuMemFree_v2(at)).unwrap();
        assert_eq!(session.race_count() > 0, racy, "{:?}", session.races());
        context.synchronize().unwrap();
    }
    let (session, context) = machine(0);
    let (stream, mut at) = (stream(), 0);
    cu!(cuMemAllocAsync(&mut at, 64, stream)).unwrap();
    session.step(1);
    fill(at, 1, 64, stream).unwrap();
    cu!(cuMemFree_v2(at)).unwrap();
    assert!(context.synchronize().is_err(), "it was freed before it was written");
    says(&session.log(), &["which was freed"]);
}

/// Freed pinned memory is not the caller's again: what still uses it is told, and does not fall over.
#[test]
fn pinned_memory_that_was_freed_is_known_as_such() {
    let (session, _context) = machine(0);
    let (at, host, stream) = (malloc(64).unwrap(), pinned(64).unwrap(), stream());
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    cu!(cuStreamBeginCapture_v2(stream, mode)).unwrap();
    copy(at, host, 64, stream).unwrap();
    let (mut graph, mut made) = (null_mut(), null_mut());
    cu!(cuStreamEndCapture(stream, &mut graph)).unwrap();
    cu!(cuGraphInstantiateWithFlags(&mut made, graph, 0)).unwrap();
    cu!(cuMemFreeHost(host as *mut _)).unwrap();
    assert_eq!(copy(at, host + 8, 8, stream), Err(INVALID));
    says(&session.log(), &["8 bytes from byte 8 of allocation 2 (64 bytes), which was freed"]);
    cu!(cuGraphLaunch(made, stream)).unwrap();
    assert_eq!(sync(stream), Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
}

/// While a stream is captured, calls that cannot be part of it break it: those of all threads if the capture is a global one.
#[test]
fn unsafe_calls_break_captures() {
    type Call = fn(u64, u64) -> Answer;
    let calls: [(&str, Call); 6] = [
        ("cuEventQuery", |event, _| cu!(cuEventQuery(event as _))),
        ("cuEventSynchronize", |event, _| cu!(cuEventSynchronize(event as _))),
        ("cuStreamQuery", |_, stream| cu!(cuStreamQuery(stream as _))),
        ("cuStreamSynchronize", |_, stream| sync(stream as _)),
        ("cuMemAlloc", |_, _| malloc(8).map(drop)),
        ("cuModuleLoadData", |_, _| {
            let (text, mut module): (_, CUmodule) = (ptx(&["collc_copy"]) + "\0", null_mut());
            cu!(cuModuleLoadData(&mut module, text.as_ptr().cast()))
        }),
    ];
    let global = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    let thread_local = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    for (name, call) in calls {
        for (mode, here, breaks) in [
            (global, true, true),
            (global, false, true),
            (thread_local, true, true),
            (thread_local, false, false),
            (relaxed, true, false),
        ] {
            let (_session, context) = machine(0);
            let (captured, other, event) = (stream(), stream(), event());
            record(event, other);
            sync(other).unwrap();
            cu!(cuStreamBeginCapture_v2(captured, mode)).unwrap();
            let (event, other) = (event as u64, other as u64);
            let done = match here {
                true => call(event, other),
                false => std::thread::scope(|scope| {
                    let context = &context;
                    let there = scope.spawn(move || {
                        context.bind_to_thread().unwrap();
                        call(event, other)
                    });
                    there.join().unwrap()
                }),
            };
            let what = format!("{name}, mode {mode:?}, here: {here}");
            assert_eq!(done, if breaks { Err(UNSUPPORTED) } else { Ok(()) }, "{what}");
            let mut graph: CUgraph = null_mut();
            let ended = cu!(cuStreamEndCapture(captured, &mut graph));
            let due = if breaks { Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) } else { Ok(()) };
            assert_eq!(ended, due, "{what}");
        }
    }
}

#[test]
fn a_wait_for_events_outside_is_no_wait_like_others() {
    let (_session, _context) = machine(0);
    let (stream, event) = (stream(), event());
    record(event, stream);
    assert_eq!(
        cu!(cuStreamWaitEvent(stream, event, 1)),
        Err(INVALID),
        "it means something in a capture alone"
    );
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    cu!(cuStreamBeginCapture_v2(stream, mode)).unwrap();
    let outside = cu!(cuStreamWaitEvent(stream, event, 1));
    assert_eq!(outside, Err(CUresult::CUDA_ERROR_NOT_SUPPORTED));
}

/// "Multi-Device System" of the programming guide: a launch fails on a stream of a device that is not the current one; copies,
/// and waits for events, do not.
#[test]
fn a_kernel_is_launched_with_its_context_current() {
    let (session, _) = machine(0);
    let (second, first) = (CudaContext::new(1).unwrap(), CudaContext::new(0).unwrap());
    let (at, other, stream, event) = (malloc(64).unwrap(), malloc(64).unwrap(), stream(), event());
    let copies = kernel("collc_copy").unwrap();
    second.bind_to_thread().unwrap();
    assert_eq!(launch(copies, &[at, other, 64], stream), Err(HANDLE));
    says(&session.log(), &["kernel collc_copy on a stream whose context is not current"]);
    copy(at, other, 64, stream).unwrap();
    record(event, stream);
    wait(stream, event);
    sync(stream).unwrap();
    first.bind_to_thread().unwrap();
    launch(copies, &[at, other, 64], stream).unwrap();
    sync(stream).unwrap();
    let own = cu!(cuCtxEnablePeerAccess(first.cu_ctx(), 0));
    assert_eq!(own, Err(CUresult::CUDA_ERROR_INVALID_CONTEXT));
}

/// Numbers that no program means are errors, and not the end of the process.
#[test]
fn sizes_that_wrap_around() {
    let (_session, _context) = machine(0);
    let (at, stream) = (malloc(64).unwrap(), stream());
    assert_eq!(cu!(cuMemsetD32Async(at, 1, usize::MAX, stream)), Err(INVALID));
    assert_eq!(cu!(cuMemsetD16_v2(at, 1, usize::MAX / 2 + 8)), Err(INVALID));
    assert_eq!(copy(at, at + 32, usize::MAX, stream), Err(INVALID));
    let host = [0u8; 8];
    assert_eq!(cu!(cuMemcpyHtoD_v2(at, host.as_ptr().cast(), usize::MAX)), Err(INVALID));
    assert_eq!(pinned(usize::MAX), Err(INVALID));
    assert!(malloc(usize::MAX).is_err());
    let here = host.as_ptr().cast_mut().cast();
    assert_eq!(cu!(cuMemHostRegister_v2(here, usize::MAX, 0)), Err(INVALID));
    let copies = kernel("collc_combine2_sum_f32").unwrap();
    launch(copies, &[at, at, at, u64::MAX / 2], stream).unwrap();
    assert_eq!(sync(stream), Err(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
}

/// A wait for a word may have ended with the first value that it is for, whatever was written since.
#[test]
fn a_wait_knows_of_the_first_value_that_ends_it() {
    for (value, racy) in [(1, true), (2, false)] {
        for seed in 0..12 {
            let (session, context) = machine(seed);
            let (data, flag) = (malloc(128).unwrap(), malloc(8).unwrap());
            let (one, other) = (stream(), stream());
            cu!(cuMemsetD32_v2(flag, 0, 2)).unwrap();
            context.synchronize().unwrap();
            cu!(cuStreamWriteValue32_v2(one, flag, 1, 0)).unwrap();
            fill(data, 1, 64, one).unwrap();
            cu!(cuStreamWriteValue32_v2(one, flag, 2, 0)).unwrap();
            cu!(cuStreamWaitValue32_v2(other, flag, value, 0)).unwrap();
            copy(data + 64, data, 64, other).unwrap();
            context.synchronize().unwrap();
            assert_eq!(session.race_count() > 0, racy, "seed {seed}: {:?}", session.races());
            // Set back and written again, it is another word.
            session.forget();
            cu!(cuMemsetD32Async(flag, 0, 2, one)).unwrap();
            let (event, again) = (event(), event());
            record(event, one);
            wait(other, event);
            fill(data, 2, 64, one).unwrap();
            cu!(cuStreamWriteValue32_v2(one, flag, 2, 0)).unwrap();
            cu!(cuStreamWaitValue32_v2(other, flag, 2, 0)).unwrap();
            copy(data + 64, data, 64, other).unwrap();
            record(again, other);
            context.synchronize().unwrap();
            clean(&session);
        }
    }
}

/// "Interprocess communication": memory is freed when those who opened it have closed it.
#[test]
fn memory_that_is_open_is_not_freed() {
    use cudarc::driver::sys::CUipcMemHandle;
    let (session, _context) = machine(0);
    let at = malloc(64).unwrap();
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    cu!(cuIpcGetMemHandle(&mut handle, at)).unwrap();
    let mut opened = 0;
    cu!(cuIpcOpenMemHandle_v2(&mut opened, handle, 1)).unwrap();
    assert_eq!(cu!(cuMemFree_v2(at)), Err(INVALID));
    says(&session.log(), &["is freed, and 1 who opened it have not closed it"]);
    cu!(cuIpcCloseMemHandle(opened)).unwrap();
    cu!(cuMemFree_v2(at)).unwrap();
}

#[test]
fn graphs_go_with_their_context() {
    let (_session, _) = machine(0);
    let mut context = null_mut();
    cu!(cuCtxCreate_v2(&mut context, 0, 1)).unwrap();
    let (at, stream) = (malloc(64).unwrap(), stream());
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    cu!(cuStreamBeginCapture_v2(stream, mode)).unwrap();
    fill(at, 1, 64, stream).unwrap();
    let (mut graph, mut made) = (null_mut(), null_mut());
    cu!(cuStreamEndCapture(stream, &mut graph)).unwrap();
    cu!(cuGraphInstantiateWithFlags(&mut made, graph, 0)).unwrap();
    cu!(cuStreamBeginCapture_v2(stream, mode)).unwrap();
    cu!(cuCtxDestroy_v2(context)).unwrap();
    let first = CudaContext::new(0).unwrap();
    first.bind_to_thread().unwrap();
    let other = self::stream();
    assert_eq!(cu!(cuGraphLaunch(made, other)), Err(INVALID));
    assert!(cu!(cuGraphInstantiateWithFlags(&mut made, graph, 0)).is_err());
    first.synchronize().unwrap();
}
