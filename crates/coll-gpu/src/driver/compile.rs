//! NVRTC: operators of one's own from CUDA C++ to PTX. It is needed for nothing else.

use crate::{GpuError, Version};
use cudarc::nvrtc::{self, CompileError, CompileOptions, sys};

/// The compiler that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nvrtc {
    /// Its version.
    pub(crate) version: Version,
}

/// Looks for the compiler: it, or the names under which it was looked for.
pub(crate) fn nvrtc() -> Result<Nvrtc, Vec<String>> {
    // SAFETY: opening a library runs its initialisers; it is NVRTC, or what the user put in its place.
    let present = unsafe { sys::is_culib_present() };
    // SAFETY: it is present, so this opens it; symbols are looked up and not called.
    let has = |name: &str| unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()).is_ok() };
    if !present || !SYMBOLS.iter().all(|name| has(name)) {
        return Err(cudarc::get_lib_name_candidates("nvrtc"));
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the function is there, and writes two numbers.
    let _ = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    Ok(Nvrtc { version: Version { major: major.max(0) as u32, minor: minor.max(0) as u32 } })
}

/// What is called of it, by cudarc's `compile_ptx_with_opts` and here.
const SYMBOLS: [&str; 9] = [
    "nvrtcCompileProgram",
    "nvrtcCreateProgram",
    "nvrtcDestroyProgram",
    "nvrtcGetErrorString",
    "nvrtcGetPTX",
    "nvrtcGetPTXSize",
    "nvrtcGetProgramLog",
    "nvrtcGetProgramLogSize",
    "nvrtcVersion",
];

/// The PTX of an operator's source, for a device's capability.
pub(crate) fn compile(operator: &str, source: &str, capability: (u32, u32)) -> Result<Vec<u8>, GpuError> {
    let operator = || operator.to_string();
    nvrtc().map_err(|looked_for| GpuError::NoNvrtc { operator: operator(), looked_for })?;
    let (major, minor) = capability;
    let options =
        CompileOptions { options: coll_cuda::nvrtc_options(major, minor), ..CompileOptions::default() };
    match nvrtc::compile_ptx_with_opts(source, options) {
        Ok(ptx) => Ok(ptx.to_src().into_bytes()),
        Err(CompileError::CompileError { log, .. }) => {
            let log = log.to_string_lossy().trim().to_string();
            Err(GpuError::Compile { operator: operator(), log })
        }
        Err(other) => Err(GpuError::Compile { operator: operator(), log: other.to_string() }),
    }
}
