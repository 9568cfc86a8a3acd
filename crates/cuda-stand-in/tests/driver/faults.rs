//! What is wrong is an error and a sentence, and what is to fail fails.

use crate::support::*;
use cuda_stand_in::Config;
use cudarc::driver::sys::{CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemLocationType, CUresult};
use cudarc::driver::{CudaContext, DriverError, result};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const ILLEGAL: CUresult = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

#[test]
fn a_copy_beyond_an_allocation() {
    let (session, _context) = machine(0);
    let (at, other) = (malloc(100).unwrap(), malloc(100).unwrap());
    assert_eq!(copy(at + 50, other, 51, stream()), Err(INVALID));
    says(
        &session.log(),
        &[
            "cuMemcpyAsync",
            "writes 51 bytes from byte 50 of allocation 1 (100 bytes on device 0)",
            "1 beyond",
        ],
    );
    assert_eq!(upload(at + 300, &[1, 2]), Err(INVALID));
    says(&session.log(), &["where no allocation lies"]);
    assert_eq!(session.stats().pending, 0);
}

#[test]
fn memory_that_was_freed() {
    let (session, _context) = machine(0);
    let at = malloc(100).unwrap();
    cu!(cuMemFree_v2(at)).unwrap();
    assert_eq!(bytes(at + 8, 4), Err(INVALID));
    says(&session.log(), &["4 bytes from byte 8 of allocation 1 (100 bytes), which was freed"]);
    assert_eq!(cu!(cuMemFree_v2(at)), Err(INVALID));
    let at = malloc(100).unwrap();
    assert_eq!(cu!(cuMemFree_v2(at + 1)), Err(INVALID), "it is not where it begins");
}

#[test]
fn a_kernel_beyond_an_allocation_spoils_its_context_and_no_other() {
    let session = session(Config::default());
    let (second, first) = (CudaContext::new(1).unwrap(), CudaContext::new(0).unwrap());
    let (add, stream) = (kernel("collc_combine2_sum_f32").unwrap(), stream());
    let (at, after) = (malloc(64).unwrap(), malloc(64).unwrap());
    launch(add, &[at, at, at + 4, 16], stream).unwrap();
    fill(after, 1, 64, stream).unwrap();
    assert_eq!(sync(stream), Err(ILLEGAL));
    says(
        &session.log(),
        &[
            "kernel collc_combine2_sum_f32",
            "it reads 64 bytes from byte 4",
            "4 beyond its end",
            "ILLEGAL_ADDRESS",
        ],
    );
    assert_eq!(launch(add, &[at, at, at, 1], stream), Err(ILLEGAL));
    assert_eq!(first.synchronize(), Err(DriverError(ILLEGAL)));
    second.bind_to_thread().unwrap();
    let there = malloc(8).unwrap();
    put(there, &[3; 8]).unwrap();
    assert_eq!(bytes(there, 8).unwrap(), [3; 8]);
}

#[test]
fn memory_of_another_device_without_access() {
    for (reaches, enables) in [(false, false), (true, false), (true, true)] {
        let peers = if reaches { vec![0b10, 0b01] } else { vec![0, 0] };
        let session = session(Config { peers, ..Config::default() });
        let (second, first) = (CudaContext::new(1).unwrap(), CudaContext::new(0).unwrap());
        second.bind_to_thread().unwrap();
        let theirs = malloc(64).unwrap();
        put(theirs, &[5; 64]).unwrap();
        first.bind_to_thread().unwrap();
        let (mine, stream, copies) = (malloc(64).unwrap(), stream(), kernel("collc_copy").unwrap());
        if enables || !reaches {
            let due = if reaches { Ok(()) } else { Err(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) };
            assert_eq!(cu!(cuCtxEnablePeerAccess(second.cu_ctx(), 0)), due);
        }
        // The driver copies between any devices.
        cu!(cuMemcpyPeerAsync(mine, first.cu_ctx(), theirs, second.cu_ctx(), 64, stream)).unwrap();
        sync(stream).unwrap();
        session.forget();
        launch(copies, &[mine, theirs, 64], stream).unwrap();
        assert_eq!(sync(stream), if enables { Ok(()) } else { Err(ILLEGAL) });
        if enables {
            assert_eq!(bytes(mine, 64).unwrap(), [5; 64]);
            let again = cu!(cuCtxEnablePeerAccess(second.cu_ctx(), 0));
            assert_eq!(again, Err(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED));
            cu!(cuCtxDisablePeerAccess(second.cu_ctx())).unwrap();
            launch(copies, &[mine, theirs, 64], stream).unwrap();
            assert_eq!(sync(stream), Err(ILLEGAL));
        }
        says(&session.log(), &["reads allocation 1 (64 bytes on device 1) from device 0, without access"]);
    }
}

#[test]
fn a_pool_asks_for_access_of_its_own() {
    for opened in [false, true] {
        let _session = session(Config::default());
        let (second, first) = (CudaContext::new(1).unwrap(), CudaContext::new(0).unwrap());
        second.bind_to_thread().unwrap();
        let (mut theirs, there) = (0, stream());
        cu!(cuMemAllocAsync(&mut theirs, 64, there)).unwrap();
        sync(there).unwrap();
        first.bind_to_thread().unwrap();
        cu!(cuCtxEnablePeerAccess(second.cu_ctx(), 0)).unwrap();
        if opened {
            let mut pool = null_mut();
            cu!(cuDeviceGetDefaultMemPool(&mut pool, 1)).unwrap();
            let access = CUmemAccessDesc {
                location: CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: 0 },
                flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            cu!(cuMemPoolSetAccess(pool, &access, 1)).unwrap();
        }
        let (mine, stream, copies) = (malloc(64).unwrap(), stream(), kernel("collc_copy").unwrap());
        launch(copies, &[mine, theirs, 64], stream).unwrap();
        assert_eq!(sync(stream), if opened { Ok(()) } else { Err(ILLEGAL) });
    }
}

#[test]
fn addresses_of_the_host_and_of_devices_are_told_apart() {
    let (session, _context) = machine(0);
    let (at, stream, copies) = (malloc(64).unwrap(), stream(), kernel("collc_copy").unwrap());
    let mut host = [0u8; 64];
    let here = host.as_mut_ptr() as u64;
    assert_eq!(cu!(cuMemcpyDtoDAsync_v2(at, here, 64, stream)), Err(INVALID));
    says(&session.log(), &["is no memory of a device"]);
    assert_eq!(cu!(cuMemcpyHtoDAsync_v2(at, at as *const _, 64, stream)), Err(INVALID));
    says(&session.log(), &["where memory of the host belongs"]);
    assert_eq!(fill(here, 0, 64, stream), Err(INVALID));
    launch(copies, &[at, here, 64], stream).unwrap();
    assert_eq!(sync(stream), Err(ILLEGAL));
    says(&session.log(), &["memory of the host that no device can reach"]);
}

#[test]
fn host_memory_that_was_registered_can_be_used() {
    let (session, _context) = machine(0);
    let (at, stream, copies) = (malloc(64).unwrap(), stream(), kernel("collc_copy").unwrap());
    let mut host = vec![8u8; 64];
    cu!(cuMemHostRegister_v2(host.as_mut_ptr().cast(), 64, 0)).unwrap();
    let again = cu!(cuMemHostRegister_v2(host.as_mut_ptr().cast(), 8, 0));
    assert_eq!(again, Err(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED));
    session.forget();
    launch(copies, &[at, host.as_ptr() as u64, 64], stream).unwrap();
    sync(stream).unwrap();
    assert_eq!(bytes(at, 64).unwrap(), [8; 64]);
    cu!(cuMemHostUnregister(host.as_mut_ptr().cast())).unwrap();
    clean(&session);
    // Let go of while it is being written.
    cu!(cuMemHostRegister_v2(host.as_mut_ptr().cast(), 64, 0)).unwrap();
    copy(host.as_ptr() as u64, at, 64, stream).unwrap();
    cu!(cuMemHostUnregister(host.as_mut_ptr().cast())).unwrap();
    assert_eq!(session.race_count(), 1);
}

#[test]
fn elements_lie_at_multiples_of_their_width() {
    let (session, _context) = machine(0);
    let (at, stream, add) = (malloc(64).unwrap(), stream(), kernel("collc_combine2_sum_f32").unwrap());
    launch(add, &[at, at, at + 2, 4], stream).unwrap();
    assert_eq!(sync(stream), Err(CUresult::CUDA_ERROR_MISALIGNED_ADDRESS));
    says(&session.log(), &["is no place for an element"]);
}

#[test]
fn there_is_so_much_memory_and_no_more() {
    let session = session(Config { device_bytes: 1 << 20, ..Config::default() });
    let context = CudaContext::new(0).unwrap();
    let at = malloc(1 << 19).unwrap();
    assert_eq!(malloc((1 << 19) + 1), Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    says(&session.log(), &["524289 bytes of device 0, which has 524288 left"]);
    assert_eq!(context.mem_get_info().unwrap(), (1 << 19, 1 << 20));
    cu!(cuMemFree_v2(at)).unwrap();
    malloc(1 << 20).unwrap();
    assert_eq!(malloc(0), Err(INVALID));
}

#[test]
fn calls_fail_as_they_are_told_to() {
    let (session, context) = machine(0);
    session.fail_next("cuMemAlloc_v2", 1, 2).unwrap();
    session.fail_next("cuStreamSynchronize", 0, 719).unwrap();
    assert!(malloc(8).is_ok());
    assert_eq!(malloc(8), Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    assert!(malloc(8).is_ok());
    let stream = context.new_stream().unwrap();
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error.0, CUresult::CUDA_ERROR_LAUNCH_FAILED);
    assert_eq!(error.error_name().unwrap().to_str(), Ok("CUDA_ERROR_LAUNCH_FAILED"));
    assert_eq!(error.error_string().unwrap().to_str(), Ok("unspecified launch failure"));
    stream.synchronize().unwrap();
    clean(&session);
}

#[test]
fn nothing_works_before_the_start() {
    let session = session(Config::default());
    let mut count = 0;
    assert_eq!(cu!(cuDeviceGetCount(&mut count)), Err(CUresult::CUDA_ERROR_NOT_INITIALIZED));
    says(&session.log(), &["cuDeviceGetCount: cuInit was not called"]);
    result::init().unwrap();
    cu!(cuDeviceGetCount(&mut count)).unwrap();
    assert_eq!(count, 2);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(malloc(8), Err(CUresult::CUDA_ERROR_INVALID_CONTEXT)));
    });
}

#[test]
fn handles_of_other_kinds_contexts_and_times() {
    let session = session(Config::default());
    let (second, first) = (CudaContext::new(1).unwrap(), CudaContext::new(0).unwrap());
    let (event, add, mine) = (event(), kernel("collc_copy").unwrap(), stream());
    second.bind_to_thread().unwrap();
    let theirs = stream();
    let invalid = Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cu!(cuEventRecord(event, theirs)), invalid, "an event is recorded in its own context");
    assert_eq!(launch(add, &[0, 0, 0], theirs), invalid, "a kernel runs in its own context");
    assert_eq!(sync(event.cast()), invalid);
    assert_eq!(cu!(cuEventRecord(mine.cast(), mine)), invalid);
    record(event, mine);
    wait(theirs, event);
    sync(theirs).unwrap();
    cu!(cuStreamDestroy_v2(mine)).unwrap();
    assert_eq!(sync(mine), invalid);
    session.configure(&Config::default()).unwrap();
    assert_eq!(sync(theirs), Err(CUresult::CUDA_ERROR_NOT_INITIALIZED));
    result::init().unwrap();
    assert_eq!(sync(theirs), invalid, "it is from another machine");
    drop((first, second));
}

#[test]
fn a_wait_that_nothing_can_end_is_given_up_at_once() {
    let (session, _context) = machine(0);
    let (at, one, other, event) = (malloc(8).unwrap(), stream(), stream(), event());
    cu!(cuMemsetD32_v2(at, 0, 2)).unwrap();
    cu!(cuCtxSynchronize()).unwrap();
    cu!(cuStreamWaitValue32_v2(one, at, 3, 1)).unwrap();
    record(event, one);
    wait(other, event);
    let before = Instant::now();
    assert_eq!(sync(other), Err(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT));
    assert!(before.elapsed() < Duration::from_secs(5), "it was known at once");
    says(
        &session.log(),
        &["the wait is given up", "a wait for the value 3", "at byte 0 of allocation 1", "which holds 0"],
    );
    // Whoever writes the word ends it.
    let third = stream();
    cu!(cuStreamWriteValue32_v2(third, at, 3, 0)).unwrap();
    sync(other).unwrap();
}

#[test]
fn a_wait_that_only_the_host_could_end_is_given_up_after_a_while() {
    let session = session(Config { patience_ms: 60, ..Config::default() });
    let _context = CudaContext::new(0).unwrap();
    let (at, one) = (pinned(8).unwrap(), stream());
    let word = at as *mut u32;
    // SAFETY: it is memory of this test's, of eight bytes.
    unsafe { word.write_volatile(0) };
    cu!(cuStreamWaitValue32_v2(one, at, 3, 1)).unwrap();
    let before = Instant::now();
    assert_eq!(sync(one), Err(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT));
    assert!(before.elapsed() >= Duration::from_millis(60));
    says(&session.log(), &["(8 bytes of the host), which holds 0"]);
    // SAFETY: as above.
    unsafe { word.write_volatile(3) };
    sync(one).unwrap();
}

#[test]
fn what_a_kernel_cannot_be_launched_with() {
    let (session, _context) = machine(0);
    let (add, stream) = (kernel("collc_copy").unwrap(), stream());
    let mut none = [null_mut(); 3];
    for (grid, block) in [((1, 2, 1), (1, 1, 1)), ((0, 1, 1), (1, 1, 1)), ((1, 1, 1), (1025, 1, 1))] {
        let answer = cu!(cuLaunchKernel(
            add,
            grid.0,
            grid.1,
            grid.2,
            block.0,
            block.1,
            block.2,
            0,
            stream,
            none.as_mut_ptr(),
            null_mut()
        ));
        assert_eq!(answer, Err(INVALID), "{grid:?} {block:?}");
    }
    assert_eq!(kernel("saxpy").unwrap_err(), CUresult::CUDA_ERROR_NOT_FOUND);
    says(&session.log(), &["kernel saxpy, which the stand-in does not know"]);
    assert_eq!(function(ptx(&[]).as_bytes(), "collc_copy").unwrap_err(), CUresult::CUDA_ERROR_NOT_FOUND);
    assert_eq!(function(b"nonsense", "collc_copy").unwrap_err(), CUresult::CUDA_ERROR_INVALID_PTX);
    let text = b".version 8.7\n.visible .entry collc_copy(.param .u64 a, .param .u64 b) { ret; }";
    assert_eq!(function(text, "collc_copy").unwrap_err(), CUresult::CUDA_ERROR_INVALID_PTX);
    let user = kernel("collc_user_combine2").unwrap();
    assert_eq!(launch(user, &[0; 4], stream), Err(CUresult::CUDA_ERROR_NOT_SUPPORTED));
}

#[test]
fn pointers_tell_what_they_are_of() {
    use cudarc::driver::sys::CUpointer_attribute as Attribute;
    let _session = session(Config::default());
    let context = CudaContext::new(1).unwrap();
    let (at, host) = (malloc(64).unwrap(), pinned(64).unwrap());
    let ask = |attribute, pointer| {
        let mut value = 0u64;
        cu!(cuPointerGetAttribute((&raw mut value).cast(), attribute, pointer)).map(|()| value)
    };
    assert_eq!(ask(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 3), Ok(2));
    assert_eq!(ask(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host), Ok(1));
    assert_eq!(ask(Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at), Ok(1));
    assert_eq!(ask(Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 3), Ok(at));
    assert_eq!(ask(Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE, at), Ok(64));
    assert_eq!(ask(Attribute::CU_POINTER_ATTRIBUTE_CONTEXT, at), Ok(context.cu_ctx() as u64));
    let here = 0u8;
    assert_eq!(ask(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &raw const here as u64), Err(INVALID));
    let (mut base, mut size) = (0, 0);
    cu!(cuMemGetAddressRange_v2(&mut base, &mut size, at + 60)).unwrap();
    assert_eq!((base, size), (at, 64));
}

#[test]
fn queues_are_of_some_depth_and_who_fills_them_waits() {
    let session = session(Config { depth: 10, ..Config::default() });
    let _context = CudaContext::new(0).unwrap();
    let (at, one) = (malloc(8).unwrap(), stream());
    for value in 0..100 {
        fill(at, value, 8, one).unwrap();
        assert!(session.stats().pending <= 10);
    }
    sync(one).unwrap();
    clean(&session);
    cu!(cuMemsetD8_v2(at, 0, 8)).unwrap();
    cu!(cuCtxSynchronize()).unwrap();
    cu!(cuStreamWaitValue32_v2(one, at, 1, 0)).unwrap();
    // What would end the wait stands behind it.
    let answers: Vec<Answer> = (0..10).map(|value| fill(at + 4, value, 4, one)).collect();
    assert!(answers[..9].iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(answers[9], Err(CUresult::CUDA_ERROR_LAUNCH_TIMEOUT));
    says(&session.log(), &["cuMemsetD8Async: the wait is given up: 1 queues cannot go on"]);
}
