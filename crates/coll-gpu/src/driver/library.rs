//! The one door: whether there is a driver, and whether it has all that is called of it.
//!
//! cudarc panics where the library or a function is missing, at the first call. So both are looked for before any call,
//! once.

use super::{fault, said};
use crate::{GpuError, Version};
use cudarc::driver::sys::{self, CUresult};
use std::sync::OnceLock;

/// The oldest driver that has every function that is called.
const NEEDED: Version = Version { major: 12, minor: 0 };

/// Every function that is called, anywhere in this crate.
const SYMBOLS: [&str; 54] = [
    "cuCtxEnablePeerAccess",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceCanAccessPeer",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuInit",
    "cuIpcCloseMemHandle",
    "cuIpcGetMemHandle",
    "cuIpcOpenMemHandle_v2",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetAddressRange_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemcpyAsync",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyPeerAsync",
    "cuMemsetD8Async",
    "cuMemsetD8_v2",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamIsCapturing",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamWaitValue32_v2",
    "cuStreamWriteValue32_v2",
];

static OPEN: OnceLock<Driver> = OnceLock::new();

/// Proof that the driver is there, has all functions and is initialised.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    version: Version,
}

impl Driver {
    /// Opens the driver, or says what is missing.
    ///
    /// # Errors
    /// No library, no function, a driver that is too old, no device. Asked again, it looks again.
    pub fn open() -> Result<Driver, GpuError> {
        if let Some(&driver) = OPEN.get() {
            return initialise().map(|()| driver);
        }
        // SAFETY: opening a library runs its initialisers; it is the driver, or what the user put in its place.
        if !unsafe { sys::is_culib_present() } {
            let names = ["cuda", "nvcuda"].map(cudarc::get_lib_name_candidates);
            let mut looked_for: Vec<String> = names.concat();
            let mut seen = std::collections::HashSet::new();
            looked_for.retain(|name| seen.insert(name.clone()));
            return Err(GpuError::NoLibrary { looked_for });
        }
        symbol("cuDriverGetVersion")?;
        symbol("cuGetErrorName")?;
        symbol("cuGetErrorString")?;
        let version = version()?;
        if version < NEEDED {
            return Err(GpuError::DriverTooOld { found: version, needed: NEEDED });
        }
        SYMBOLS.iter().try_for_each(|name| symbol(name))?;
        initialise()?;
        Ok(*OPEN.get_or_init(|| Driver { version }))
    }

    /// The newest CUDA that the driver serves.
    pub fn version(&self) -> Version {
        self.version
    }
}

fn symbol(name: &str) -> Result<(), GpuError> {
    // SAFETY: the library is present, so this opens it; the symbol is looked up and not called.
    let found = unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()).is_ok() };
    if found { Ok(()) } else { Err(GpuError::NoSymbol { symbol: name.to_string() }) }
}

fn version() -> Result<Version, GpuError> {
    let mut number = 0;
    // SAFETY: the function is there, and writes one number.
    said(unsafe { sys::cuDriverGetVersion(&mut number) }, "cuDriverGetVersion", "none")?;
    Ok(Version::of(number))
}

fn initialise() -> Result<(), GpuError> {
    // SAFETY: the function is there; its argument must be 0.
    match unsafe { sys::cuInit(0) } {
        CUresult::CUDA_SUCCESS => Ok(()),
        CUresult::CUDA_ERROR_NO_DEVICE => Err(GpuError::NoDevice),
        code => Err(fault(code, "cuInit", "none")),
    }
}

#[cfg(test)]
mod tests {
    use super::SYMBOLS;

    /// Names of `sys::cu…(` in a source text.
    fn called(text: &str) -> impl Iterator<Item = &str> {
        let after = text.split("sys::cu").skip(1);
        after.filter_map(|rest| rest.split_once('(').map(|(name, _)| name))
    }

    #[test]
    fn every_function_that_is_called_is_looked_for() {
        let sources = [
            include_str!("../driver.rs"),
            include_str!("compile.rs"),
            include_str!("device.rs"),
            include_str!("graph.rs"),
            include_str!("ipc.rs"),
            include_str!("kernel.rs"),
            include_str!("library.rs"),
            include_str!("memory.rs"),
            include_str!("pinned.rs"),
            include_str!("stream.rs"),
        ];
        let mut names: Vec<String> = sources
            .iter()
            .map(|text| text.split("#[cfg(test)]").next().unwrap_or(""))
            .flat_map(|text| called(text).map(|name| format!("cu{name}")).collect::<Vec<_>>())
            .filter(|name| name != "culib")
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names, SYMBOLS);
    }
}
