//! What there is: the driver, its devices and which reach which, the compiler.

use crate::driver::{self, Device, Driver};
use crate::{GpuError, Version};
use std::sync::Arc;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Probe {
    /// The newest CUDA that the driver serves.
    pub driver: Version,
    /// All devices, by number.
    pub devices: Vec<DeviceFound>,
    /// Pairs of devices of which the first can read the second's memory.
    pub reaches: Vec<(u32, u32)>,
    /// NVRTC's version, or the names that were looked for.
    pub nvrtc: Result<Version, Vec<String>>,
}

/// A device.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceFound {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of it that are free.
    pub free_bytes: u64,
    /// Its compute capability.
    pub capability: (u32, u32),
    /// Its multiprocessors.
    pub processors: u32,
    /// Where it is on the PCI bus: `0000:1b:00.0`.
    pub pci: String,
}

/// The one door to devices: what is there, or what is missing and what was looked for. Nothing is left open.
///
/// # Errors
/// There is no driver library, it is too old or not whole, or it finds no device.
pub fn probe() -> Result<Probe, GpuError> {
    let driver = Driver::open()?;
    let count = Device::count(driver)?;
    if count == 0 {
        return Err(GpuError::NoDevice);
    }
    let devices: Vec<Arc<Device>> =
        (0..count).map(|number| Device::open(driver, number)).collect::<Result<_, _>>()?;
    let mut reaches = Vec::new();
    for from in &devices {
        for to in devices.iter().filter(|to| to.number() != from.number()) {
            if from.can_reach(to)? {
                reaches.push((from.number(), to.number()));
            }
        }
    }
    let found = devices.iter().map(|device| DeviceFound::of(device)).collect::<Result<_, _>>()?;
    let nvrtc = driver::nvrtc().map(|found| found.version);
    Ok(Probe { driver: driver.version(), devices: found, reaches, nvrtc })
}

impl DeviceFound {
    fn of(device: &Device) -> Result<DeviceFound, GpuError> {
        Ok(DeviceFound {
            number: device.number(),
            name: device.name()?,
            memory_bytes: device.memory_bytes()?,
            free_bytes: device.free_bytes()?.0,
            capability: device.capability()?,
            processors: device.processors()?,
            pci: device.pci()?,
        })
    }
}
