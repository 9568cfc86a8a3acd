//! Memory and events of two processes, and a process that finds the stand-in by itself: the test starts itself once more.

use crate::support::*;
use cuda_stand_in::Config;
use cudarc::driver::CudaContext;
use cudarc::driver::sys::{CUevent, CUipcEventHandle, CUipcMemHandle, CUresult};
use std::process::{Child, Command};
use std::ptr::null_mut;

const MEMORY: &str = "STAND_IN_MEMORY";
const EVENT: &str = "STAND_IN_EVENT";

fn hex(bytes: impl IntoIterator<Item = std::ffi::c_char>) -> String {
    bytes.into_iter().map(|byte| format!("{:02x}", byte as u8)).collect()
}

fn from_hex(text: &str) -> [std::ffi::c_char; 64] {
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap() as std::ffi::c_char;
    std::array::from_fn(byte)
}

fn handle_of(at: u64) -> Answer<CUipcMemHandle> {
    let mut handle = CUipcMemHandle { reserved: [0; 64] };
    cu!(cuIpcGetMemHandle(&mut handle, at)).map(|()| handle)
}

fn open(handle: CUipcMemHandle) -> Answer<u64> {
    let mut at = 0;
    cu!(cuIpcOpenMemHandle_v2(&mut at, handle, 1)).map(|()| at)
}

fn shared_event() -> (CUevent, CUipcEventHandle) {
    let (mut event, mut handle) = (null_mut(), CUipcEventHandle { reserved: [0; 64] });
    cu!(cuEventCreate(&mut event, 6)).unwrap();
    cu!(cuIpcGetEventHandle(&mut handle, event)).unwrap();
    (event, handle)
}

fn start(test: &str, memory: &CUipcMemHandle, event: &CUipcEventHandle) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--test-threads=1"])
        .env(MEMORY, hex(memory.reserved))
        .env(EVENT, hex(event.reserved))
        .spawn()
        .unwrap()
}

/// Layout: a word that says what is there, a word for the answer, then 64 bytes each way.
#[test]
fn two_processes_share_memory_words_and_an_event() {
    for seed in [0, 1] {
        let (session, _context) = machine(seed);
        let (at, stream) = (malloc(256).unwrap(), stream());
        cu!(cuMemsetD32_v2(at, 0, 64)).unwrap();
        cu!(cuCtxSynchronize()).unwrap();
        let (event, event_handle) = shared_event();
        fill(at + 64, 7, 64, stream).unwrap();
        record(event, stream);
        let mut child = start("ipc::the_other_process", &handle_of(at).unwrap(), &event_handle);
        cu!(cuStreamWriteValue32_v2(stream, at, 1, 0)).unwrap();
        cu!(cuStreamWaitValue32_v2(stream, at + 4, 1, 1)).unwrap();
        // Another stream hears of the first one's work by way of the other process alone.
        let second = self::stream();
        cu!(cuStreamWaitValue32_v2(second, at + 4, 1, 1)).unwrap();
        fill(at + 64, 1, 64, second).unwrap();
        let back = pinned(64).unwrap();
        copy(back, at + 128, 64, stream).unwrap();
        sync(stream).unwrap();
        session.host_reads(back, 64).unwrap();
        let mut seen = [0u8; 64];
        cu!(cuMemcpy(seen.as_mut_ptr() as u64, back, 64)).unwrap();
        assert_eq!(seen, [7; 64]);
        assert!(child.wait().unwrap().success(), "the other process failed");
        sync(second).unwrap();
        clean(&session);
    }
}

#[test]
#[ignore = "started by the test above"]
fn the_other_process() {
    let Ok(memory) = std::env::var(MEMORY) else { panic!("it is started with handles") };
    let session = session(Config { seed: 9, ..Config::default() });
    let _context = CudaContext::new(1).unwrap();
    let at = open(CUipcMemHandle { reserved: from_hex(&memory) }).unwrap();
    let handle = CUipcEventHandle { reserved: from_hex(&std::env::var(EVENT).unwrap()) };
    let (mut event, stream) = (null_mut(), stream());
    cu!(cuIpcOpenEventHandle(&mut event, handle)).unwrap();
    cu!(cuStreamWaitValue32_v2(stream, at, 1, 0)).unwrap();
    wait(stream, event);
    let copies = kernel("collc_copy").unwrap();
    launch(copies, &[at + 128, at + 64, 64], stream).unwrap();
    cu!(cuStreamWriteValue32_v2(stream, at + 4, 1, 0)).unwrap();
    sync(stream).unwrap();
    cu!(cuEventSynchronize(event)).unwrap();
    cu!(cuIpcCloseMemHandle(at)).unwrap();
    assert_eq!(fill(at, 0, 4, stream), Err(CUresult::CUDA_ERROR_INVALID_VALUE), "it is closed");
    session.forget();
}

#[test]
fn one_process_opens_its_own_handles() {
    let (session, _context) = machine(0);
    let (at, other, stream) = (malloc(64).unwrap(), stream(), stream());
    assert_eq!(open(handle_of(at + 8).unwrap()), Ok(at));
    cu!(cuIpcCloseMemHandle(at)).unwrap();
    assert_eq!(cu!(cuIpcCloseMemHandle(at)), Err(CUresult::CUDA_ERROR_INVALID_VALUE), "once too often");
    session.forget();
    let (event, handle) = shared_event();
    let mut again = null_mut();
    cu!(cuIpcOpenEventHandle(&mut again, handle)).unwrap();
    fill(at, 1, 64, stream).unwrap();
    record(event, stream);
    wait(other, again);
    fill(at, 2, 64, other).unwrap();
    let asked = cu!(cuEventQuery(again));
    assert_eq!(asked.is_ok(), session.stats().copies > 0);
    sync(other).unwrap();
    cu!(cuEventSynchronize(again)).unwrap();
    clean(&session);
}

#[test]
fn what_cannot_be_shared() {
    let session = session(Config { peers: vec![0, 0], ..Config::default() });
    let (second, _first) = (CudaContext::new(1).unwrap(), CudaContext::new(0).unwrap());
    let (mut pool, at, stream) = (0, malloc(64).unwrap(), stream());
    cu!(cuMemAllocAsync(&mut pool, 64, stream)).unwrap();
    assert_eq!(handle_of(pool).unwrap_err(), CUresult::CUDA_ERROR_INVALID_VALUE);
    says(&session.log(), &["is no memory of cuMemAlloc"]);
    let handle = handle_of(at).unwrap();
    second.bind_to_thread().unwrap();
    assert_eq!(open(handle), Err(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
    assert_eq!(open(CUipcMemHandle { reserved: [1; 64] }), Err(CUresult::CUDA_ERROR_INVALID_HANDLE));
    let mut handle = CUipcEventHandle { reserved: [0; 64] };
    assert_eq!(cu!(cuIpcGetEventHandle(&mut handle, event())), Err(CUresult::CUDA_ERROR_INVALID_HANDLE));
}

#[test]
fn a_program_that_knows_nothing_of_it_finds_it_by_the_environment() {
    let folder = std::env::temp_dir().join(format!("cuda-stand-in-report-{}", std::process::id()));
    let config = Config { devices: 5, seed: 3, ..Config::default() };
    let environment = cuda_stand_in::control::environment(&config, Some(&folder)).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ipc::a_program_that_knows_nothing", "--ignored", "--test-threads=1"])
        .envs(environment)
        .status()
        .unwrap();
    assert!(status.success());
    let report = std::fs::read_to_string(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 2, "{report}");
    assert!(lines[0].starts_with("race: ") && lines[1].starts_with("cuMemFree_v2: "), "{report}");
}

#[test]
#[ignore = "started by the test above"]
fn a_program_that_knows_nothing() {
    assert_eq!(CudaContext::device_count().unwrap(), 5);
    let context = CudaContext::new(4).unwrap();
    let at = malloc(64).unwrap();
    fill(at, 1, 64, stream()).unwrap();
    fill(at, 2, 64, stream()).unwrap();
    context.synchronize().unwrap();
    assert!(cu!(cuMemFree_v2(at + 1)).is_err());
}
