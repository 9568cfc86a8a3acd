//! Short forms of what the tests do often, over the bare driver functions.

use cuda_stand_in::Config;
use cuda_stand_in::control::{self, Session};
use cudarc::driver::CudaContext;
use cudarc::driver::sys::{CUevent, CUfunction, CUresult, CUstream};
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

pub(crate) type Answer<T = ()> = Result<T, CUresult>;

pub(crate) fn session(config: Config) -> Session {
    control::session(&config).expect("the stand-in opens")
}

/// One machine of the default kind, with a context of device 0 that is current.
pub(crate) fn machine(seed: u64) -> (Session, Arc<CudaContext>) {
    let session = session(Config { seed, ..Config::default() });
    let context = CudaContext::new(0).expect("there is a device");
    (session, context)
}

pub(crate) fn malloc(bytes: usize) -> Answer<u64> {
    let mut at = 0;
    cu!(cuMemAlloc_v2(&mut at, bytes))?;
    Ok(at)
}

pub(crate) fn pinned(bytes: usize) -> Answer<u64> {
    let mut at: *mut c_void = null_mut();
    cu!(cuMemHostAlloc(&mut at, bytes, 0))?;
    Ok(at as u64)
}

pub(crate) fn stream() -> CUstream {
    let mut stream = null_mut();
    cu!(cuStreamCreate(&mut stream, 1)).expect("a stream");
    stream
}

pub(crate) fn event() -> CUevent {
    let mut event = null_mut();
    cu!(cuEventCreate(&mut event, 2)).expect("an event");
    event
}

pub(crate) fn record(event: CUevent, stream: CUstream) {
    cu!(cuEventRecord(event, stream)).expect("it is recorded");
}

pub(crate) fn wait(stream: CUstream, event: CUevent) {
    cu!(cuStreamWaitEvent(stream, event, 0)).expect("it waits");
}

pub(crate) fn sync(stream: CUstream) -> Answer {
    cu!(cuStreamSynchronize(stream))
}

pub(crate) fn fill(to: u64, value: u8, bytes: usize, stream: CUstream) -> Answer {
    cu!(cuMemsetD8Async(to, value, bytes, stream))
}

pub(crate) fn copy(to: u64, from: u64, bytes: usize, stream: CUstream) -> Answer {
    cu!(cuMemcpyAsync(to, from, bytes, stream))
}

/// Bytes of device memory, by a copy that blocks.
pub(crate) fn bytes(from: u64, count: usize) -> Answer<Vec<u8>> {
    let mut bytes = vec![0u8; count];
    cu!(cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from, count))?;
    Ok(bytes)
}

/// Bytes put into device memory, by a copy that blocks.
pub(crate) fn upload(to: u64, bytes: &[u8]) -> Answer {
    cu!(cuMemcpyHtoD_v2(to, bytes.as_ptr().cast(), bytes.len()))
}

/// The same, and they are there when it returns.
pub(crate) fn put(to: u64, bytes: &[u8]) -> Answer {
    upload(to, bytes)?;
    cu!(cuCtxSynchronize())
}

/// PTX that has kernels of these names and does nothing.
pub(crate) fn ptx(names: &[&str]) -> String {
    let entries: String =
        names.iter().map(|name| format!(".visible .entry {name}()\n{{ ret; }}\n")).collect();
    format!(".version 8.7\n.target sm_70\n.address_size 64\n{entries}")
}

/// A kernel of a module that holds it alone.
pub(crate) fn kernel(name: &str) -> Answer<CUfunction> {
    function(ptx(&[name]).as_bytes(), name)
}

/// A kernel of a module.
pub(crate) fn function(image: &[u8], name: &str) -> Answer<CUfunction> {
    let (mut module, mut function) = (null_mut(), null_mut());
    let image = [image, &[0]].concat();
    cu!(cuModuleLoadData(&mut module, image.as_ptr().cast()))?;
    let name = CString::new(name).expect("no NUL");
    cu!(cuModuleGetFunction(&mut function, module, name.as_ptr()))?;
    Ok(function)
}

/// A launch of two blocks of 32 threads, with arguments of eight bytes.
pub(crate) fn launch(function: CUfunction, arguments: &[u64], stream: CUstream) -> Answer {
    let mut addresses: Vec<*mut c_void> =
        arguments.iter().map(|argument| (argument as *const u64).cast_mut().cast()).collect();
    cu!(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, stream, addresses.as_mut_ptr(), null_mut()))
}

/// The text of what was found, which must say all of these words.
pub(crate) fn says(found: &[String], words: &[&str]) {
    let text = found.join("\n");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

/// Nothing was found.
pub(crate) fn clean(session: &Session) {
    session.verdict().expect("nothing is wrong");
}
