//! What a driver is for: contexts, streams, copies between the host and devices, in an order that only the seed knows.

use crate::support::*;
use cuda_stand_in::Config;
use cudarc::driver::sys::{CUevent_flags, CUresult};
use cudarc::driver::{CudaContext, result};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;

#[test]
fn the_loader_gives_it_by_name_and_a_program_exports_none_of_it() {
    let session = session(Config::default());
    // SAFETY: nothing is called.
    unsafe {
        assert!(libloading_of_itself().get::<*const ()>(b"cuInit").is_err());
        assert!(cudarc::driver::sys::is_culib_present());
    }
    let mut version = 0;
    cu!(cuDriverGetVersion(&mut version)).unwrap();
    assert_eq!(version, 12080);
    clean(&session);
}

fn libloading_of_itself() -> libloading::os::unix::Library {
    libloading::os::unix::Library::this()
}

#[test]
fn devices_as_configured() {
    let _session = session(Config {
        devices: 3,
        device_bytes: 1 << 20,
        peers: vec![0b110, 0b001, 0],
        ..Config::default()
    });
    let contexts: Vec<_> = (0..3).map(|device| CudaContext::new(device).unwrap()).collect();
    assert_eq!(CudaContext::device_count().unwrap(), 3);
    assert!(CudaContext::new(3).is_err());
    let uuids: BTreeSet<_> = contexts.iter().map(|context| context.uuid().unwrap().bytes).collect();
    assert_eq!(uuids.len(), 3);
    assert_eq!(contexts[1].name().unwrap(), "Stand-in 1");
    assert_eq!(contexts[1].compute_capability().unwrap(), (9, 0));
    assert_eq!(contexts[2].total_mem().unwrap(), 1 << 20);
    assert_eq!(contexts[2].mem_get_info().unwrap(), (1 << 20, 1 << 20));
    for (from, to, due) in [(0, 1, 1), (1, 0, 1), (0, 2, 1), (2, 0, 0), (1, 2, 0), (1, 1, 0)] {
        let mut can = 7;
        cu!(cuDeviceCanAccessPeer(&mut can, from, to)).unwrap();
        assert_eq!(can, due, "{from} to {to}");
    }
}

#[test]
fn a_machine_without_devices_says_so() {
    let _session = session(Config { devices: 0, ..Config::default() });
    assert_eq!(CudaContext::new(0).unwrap_err().0, CUresult::CUDA_ERROR_NO_DEVICE);
}

#[test]
fn copies_there_across_and_back_by_cudarcs_own_interface() {
    for seed in 0..12 {
        let session = session(Config { seed, ..Config::default() });
        let (first, second) = (CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap());
        let (here, there) = (first.new_stream().unwrap(), second.new_stream().unwrap());
        let input: Vec<u32> = (0..1000).map(|i| i * 7 + seed as u32).collect();
        let a = here.clone_htod(&input).unwrap();
        let mut b = here.alloc_zeros::<u32>(1000).unwrap();
        here.memcpy_dtod(&a, &mut b).unwrap();
        let c = there.clone_dtod(&b).unwrap();
        assert_eq!(there.clone_dtoh(&c).unwrap(), input);
        let part = here.clone_dtoh(&b.slice(10..20)).unwrap();
        assert_eq!(part, input[10..20]);
        let event = here.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
        let later = here.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).unwrap();
        assert!(event.elapsed_ms(&later).unwrap() > 0.0);
        drop((a, b, c));
        first.synchronize().unwrap();
        second.synchronize().unwrap();
        assert_eq!(session.stats().allocations, 0);
        clean(&session);
    }
}

#[test]
fn nothing_runs_before_something_must() {
    let (session, _context) = machine(3);
    let (device, host, stream) = (malloc(64).unwrap(), pinned(64).unwrap(), stream());
    fill(device, 7, 64, stream).unwrap();
    copy(host, device, 64, stream).unwrap();
    let before = session.stats();
    assert_eq!((before.pending, before.copies), (2, 0));
    assert_eq!(session.heads().len(), 1);
    says(&session.heads(), &["a fill of 64 bytes"]);
    assert_eq!(session.step(1), 1);
    assert_eq!((session.stats().pending, session.stats().copied_bytes), (1, 64));
    sync(stream).unwrap();
    session.host_reads(host, 64).unwrap();
    assert_eq!(session.stats().pending, 0);
    let mut seen = [0u8; 64];
    cu!(cuMemcpy(seen.as_mut_ptr() as u64, host, 64)).unwrap();
    assert_eq!(seen, [7; 64]);
    clean(&session);
}

static ORDER: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(number: *mut c_void) {
    ORDER.lock().unwrap().push(number as usize);
}

fn order(seed: u64) -> Vec<usize> {
    let (session, context) = machine(seed);
    ORDER.lock().unwrap().clear();
    let streams: Vec<_> = (0..3).map(|_| stream()).collect();
    for step in 0..4 {
        for (at, &stream) in streams.iter().enumerate() {
            cu!(cuLaunchHostFunc(stream, Some(note), (at * 10 + step) as *mut c_void)).unwrap();
        }
    }
    context.synchronize().unwrap();
    clean(&session);
    ORDER.lock().unwrap().clone()
}

#[test]
fn a_seed_is_an_order_and_streams_keep_their_own() {
    let mut orders = BTreeSet::new();
    for seed in 0..30 {
        let one = order(seed);
        assert_eq!(one, order(seed), "seed {seed}");
        for stream in 0..3 {
            let mine: Vec<usize> =
                one.iter().filter(|&&call| call / 10 == stream).map(|call| call % 10).collect();
            assert_eq!(mine, [0, 1, 2, 3], "seed {seed}: {one:?}");
        }
        orders.insert(one);
    }
    assert!(orders.len() > 15, "{} orders of 30 seeds", orders.len());
}

unsafe extern "C" fn calls_back(code: *mut c_void) {
    // SAFETY: a fault to be refused; it points to a word of the test's.
    unsafe { *code.cast::<u32>() = cudarc::driver::sys::cuCtxSynchronize() as u32 };
}

#[test]
fn a_host_function_may_not_call_the_driver() {
    let (session, _context) = machine(1);
    let (stream, mut code) = (stream(), 0u32);
    cu!(cuLaunchHostFunc(stream, Some(calls_back), (&raw mut code).cast())).unwrap();
    sync(stream).unwrap();
    assert_eq!(code, CUresult::CUDA_ERROR_NOT_PERMITTED as u32);
    says(&session.log(), &["cuCtxSynchronize", "NOT_PERMITTED"]);
}

#[test]
fn who_asks_often_enough_finds_it_done() {
    for seed in 0..10 {
        let (session, context) = machine(seed);
        let (stream, event) = (context.new_stream().unwrap(), event());
        let a = stream.alloc_zeros::<u8>(100).unwrap();
        record(event, stream.cu_stream());
        let mut asked = 0;
        while cu!(cuEventQuery(event)) == Err(CUresult::CUDA_ERROR_NOT_READY) {
            asked += 1;
            assert!(asked < 100);
        }
        while cu!(cuStreamQuery(stream.cu_stream())) == Err(CUresult::CUDA_ERROR_NOT_READY) {
            asked += 1;
            assert!(asked < 100);
        }
        let host = pinned(100).unwrap();
        copy(host, result_pointer(&a, &stream), 100, stream.cu_stream()).unwrap();
        assert_eq!(cu!(cuEventQuery(event)), Ok(()));
        cu!(cuEventDestroy_v2(event)).unwrap();
        stream.synchronize().unwrap();
        clean(&session);
    }
}

fn result_pointer(slice: &cudarc::driver::CudaSlice<u8>, stream: &cudarc::driver::CudaStream) -> u64 {
    use cudarc::driver::DevicePtr;
    slice.device_ptr(stream).0
}

#[test]
fn stream_0_is_ordered_with_blocking_streams_and_no_others() {
    for (flags, races) in [(0, 0), (1, 1)] {
        for seed in 0..6 {
            let (session, context) = machine(seed);
            let (at, mut stream) = (malloc(64).unwrap(), null_mut());
            cu!(cuStreamCreate(&mut stream, flags)).unwrap();
            fill(at, 1, 64, stream).unwrap();
            fill(at, 2, 64, null_mut()).unwrap();
            fill(at, 3, 64, stream).unwrap();
            context.synchronize().unwrap();
            assert_eq!(session.race_count() > 0, races > 0, "{:?}", session.races());
            if races == 0 {
                assert_eq!(bytes(at, 64).unwrap(), [3; 64]);
            }
        }
    }
}

#[test]
fn pageable_memory_is_read_at_once_and_written_before_the_call_returns() {
    let (session, _context) = machine(5);
    let (at, stream) = (malloc(16).unwrap(), stream());
    let mut host = [9u8; 16];
    cu!(cuMemcpyHtoDAsync_v2(at, host.as_ptr().cast(), 16, stream)).unwrap();
    host = [0; 16];
    cu!(cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), at, 16, stream)).unwrap();
    assert_eq!(host, [9; 16]);
    clean(&session);
}

#[test]
fn fresh_memory_holds_what_the_seed_says() {
    let fresh = |seed| {
        let (_session, _context) = machine(seed);
        let at = malloc(4096).unwrap();
        bytes(at, 4096).unwrap()
    };
    assert_eq!(fresh(1), fresh(1));
    assert_ne!(fresh(1), fresh(2));
    assert!(fresh(3).iter().collect::<BTreeSet<_>>().len() > 100);
}

#[test]
fn contexts_are_current_by_thread_and_end_with_what_is_theirs() {
    let (session, context) = machine(0);
    let (mut made, mut current) = (null_mut(), null_mut());
    cu!(cuCtxCreate_v2(&mut made, 0, 1)).unwrap();
    cu!(cuCtxGetCurrent(&mut current)).unwrap();
    assert_eq!(current, made);
    malloc(100).unwrap();
    let stream = stream();
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(result::ctx::get_current().unwrap(), None));
    });
    cu!(cuCtxDestroy_v2(made)).unwrap();
    assert_eq!(session.stats().allocations, 0);
    cu!(cuCtxGetCurrent(&mut current)).unwrap();
    assert_eq!(current, context.cu_ctx());
    assert_eq!(sync(stream), Err(CUresult::CUDA_ERROR_INVALID_HANDLE));
    assert_eq!(cu!(cuCtxSetCurrent(made)), Err(CUresult::CUDA_ERROR_INVALID_CONTEXT));
}
