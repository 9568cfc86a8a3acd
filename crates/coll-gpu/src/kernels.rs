//! Which kernels a stream plan launches, and where their code comes from: PTX that is shipped, and for users' operators a
//! compiler at run time.

use crate::GpuError;
use crate::driver::{self, Device, Kernel, Module};
use crate::stream_plan::{Arithmetic, Launch};
use coll_base::DType;
use coll_cuda::Kernels;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What makes code of an operator's CUDA C++. [`WithNvrtc`] is what serves unless something else is given, such as a cache
/// of machine code.
pub trait Compile: Send + Sync {
    /// PTX, or machine code, of a source for devices of a capability.
    ///
    /// # Errors
    /// There is no compiler, or it refuses the source.
    fn compile(&self, operator: &str, source: &str, capability: (u32, u32)) -> Result<Vec<u8>, GpuError>;
}

/// Compiles with the NVRTC that the dynamic linker finds.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithNvrtc;

impl Compile for WithNvrtc {
    fn compile(&self, operator: &str, source: &str, capability: (u32, u32)) -> Result<Vec<u8>, GpuError> {
        driver::compile(operator, source, capability)
    }
}

/// A kernel, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    Combine(usize),
    Prepare,
    Finish,
    Cast(DType, DType),
}

impl Wanted {
    pub(crate) fn of(launch: &Launch) -> Wanted {
        match launch {
            Launch::Combine { sources, .. } => Wanted::Combine(sources.len()),
            Launch::Prepare { .. } => Wanted::Prepare,
            Launch::Finish { .. } => Wanted::Finish,
            Launch::Cast { from, to, .. } => Wanted::Cast(*from, *to),
        }
    }
}

/// Modules that have been loaded, by device and by what they are made of.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<HashMap<(u32, String), Arc<Module>>>);

/// The kernels of one operator, on devices as they are needed.
pub(crate) struct Loader<'a> {
    shelf: &'a Shelf,
    compiler: &'a dyn Compile,
    operator: String,
    kernels: Option<Kernels>,
    found: HashMap<(u32, Wanted), Option<Kernel>>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(
        shelf: &'a Shelf,
        compiler: &'a dyn Compile,
        arithmetic: Option<&Arithmetic>,
    ) -> Result<Loader<'a>, GpuError> {
        let unsupported = |error: coll_kernel::Unsupported| GpuError::Unsupported { why: error.to_string() };
        let kernels = arithmetic.map(|arithmetic| Kernels::of(arithmetic.operator()).map_err(unsupported));
        let operator =
            arithmetic.map_or(String::new(), |arithmetic| arithmetic.operator().name().to_string());
        Ok(Loader { shelf, compiler, operator, kernels: kernels.transpose()?, found: HashMap::new() })
    }

    /// Whether preparing and finishing take ranks and a factor, or leaves, beside a count.
    pub(crate) fn is_user(&self) -> bool {
        self.kernels.as_ref().is_some_and(Kernels::is_user)
    }

    /// A kernel on a device; none if what it would do is a copy.
    pub(crate) fn kernel(
        &mut self,
        device: &Arc<Device>,
        wanted: Wanted,
    ) -> Result<Option<Kernel>, GpuError> {
        let key = (device.number(), wanted);
        if let Some(found) = self.found.get(&key) {
            return Ok(found.clone());
        }
        let kernel = self.load(device, wanted)?;
        self.found.insert(key, kernel.clone());
        Ok(kernel)
    }

    fn load(&self, device: &Arc<Device>, wanted: Wanted) -> Result<Option<Kernel>, GpuError> {
        let none = |what: String| GpuError::NoKernel { name: what, why: "none is made".to_string() };
        let kernels = || self.kernels.as_ref().ok_or_else(|| none(format!("{wanted:?}")));
        let name = match wanted {
            Wanted::Cast(from, to) => {
                let name = coll_cuda::cast(from, to).ok_or_else(|| none(format!("{from} to {to}")))?;
                let ptx = || coll_cuda::ptx_of(&[&name]).ok_or_else(|| none(name.clone()));
                let module = self.module(device, name.clone(), || Ok(ptx()?.into_bytes()))?;
                return module.kernel(&name).map(Some);
            }
            Wanted::Combine(sources) => {
                let name = kernels()?.combine(sources);
                Some(name.ok_or_else(|| none(format!("a combination of {sources}")))?)
            }
            Wanted::Prepare => kernels()?.prepare(),
            Wanted::Finish => kernels()?.finish(),
        };
        let Some(name) = name else { return Ok(None) };
        let kernels = kernels()?;
        let module = match kernels.source() {
            Some(source) => self.module(device, source.to_string(), || {
                self.compiler.compile(&self.operator, source, device.capability()?)
            })?,
            None => self.module(device, kernels.entries().join(" "), || {
                Ok(kernels.ptx().ok_or_else(|| none(name.to_string()))?.into_bytes())
            })?,
        };
        module.kernel(name).map(Some)
    }

    fn module(
        &self,
        device: &Arc<Device>,
        key: String,
        image: impl FnOnce() -> Result<Vec<u8>, GpuError>,
    ) -> Result<Arc<Module>, GpuError> {
        let key = (device.number(), key);
        let mut loaded = self.shelf.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded.get(&key) {
            return Ok(module.clone());
        }
        let module = Module::load(device, &image()?)?;
        loaded.insert(key, module.clone());
        Ok(module)
    }
}

impl fmt::Debug for dyn Compile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compile")
    }
}
