//! What moving bytes takes on devices and between them, measured with the host's clock: enough for a topology, not for a
//! benchmark.

use crate::GpuError;
use crate::driver::{Argument, Current, Device, DeviceBuffer, Driver, Module, Stream, copy};
use coll_base::{DType, RedOp};
use coll_kernel::Reducer;
use std::sync::Arc;
use std::time::Instant;

/// Copies whose mean is taken, of the least size and of the size that is asked for.
const SHORT_COPIES: u32 = 50;
const LONG_COPIES: u32 = 5;
const SHORT_BYTES: u64 = 8;

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The devices' names, by number.
    pub names: Vec<String>,
    /// Microseconds from putting a little work on a stream until the host knows that it is done, at the median device.
    pub message_us: f64,
    /// Nanoseconds for a byte that is copied within a device, at the slowest.
    pub copy_ns: f64,
    /// Nanoseconds for a byte of `f32` that is added to another within a device, at the slowest.
    pub reduce_ns: f64,
    /// Each pair of devices, the lower number first.
    pub pairs: Vec<MeasuredPair>,
}

/// Two devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredPair {
    /// Their numbers.
    pub devices: [u32; 2],
    /// Whether each reaches the other's memory; else copies go by way of the host.
    pub reach: bool,
    /// Microseconds for a copy of a few bytes until the host knows that it is done, the slower way.
    pub short_us: f64,
    /// Bytes in a microsecond of a large copy, the slower way.
    pub bytes_per_us: f64,
}

/// Measures all devices with copies of so many bytes.
///
/// # Errors
/// There is no driver, no device, or not enough memory on one.
pub fn measure(bytes: u64) -> Result<Measured, GpuError> {
    let driver = Driver::open()?;
    let count = Device::count(driver)?;
    let devices: Vec<Arc<Device>> =
        (0..count).map(|number| Device::open(driver, number)).collect::<Result<_, _>>()?;
    let places: Vec<Place> =
        devices.iter().map(|device| Place::new(device, bytes)).collect::<Result<_, _>>()?;
    let mut short_us = Vec::new();
    let (mut copy_ns, mut reduce_ns) = (0f64, 0f64);
    for place in &places {
        let within = place.copies(place, bytes)?;
        short_us.push(within.short_us);
        copy_ns = copy_ns.max(1e3 / within.bytes_per_us);
        reduce_ns = reduce_ns.max(place.reduction_us(bytes)? * 1e3 / bytes.max(1) as f64);
    }
    short_us.sort_by(f64::total_cmp);
    let mut pairs = Vec::new();
    for (at, a) in places.iter().enumerate() {
        for b in &places[at + 1..] {
            let reach = a.device.can_reach(&b.device)? && b.device.can_reach(&a.device)?;
            if reach {
                a.device.reach(&b.device)?;
                b.device.reach(&a.device)?;
            }
            let (there, back) = (a.copies(b, bytes)?, b.copies(a, bytes)?);
            pairs.push(MeasuredPair {
                devices: [a.device.number(), b.device.number()],
                reach,
                short_us: there.short_us.max(back.short_us),
                bytes_per_us: there.bytes_per_us.min(back.bytes_per_us),
            });
        }
    }
    let names = devices.iter().map(|device| device.name()).collect::<Result<_, _>>()?;
    let message_us = short_us.get(short_us.len() / 2).copied().unwrap_or(0.0);
    Ok(Measured { names, message_us, copy_ns, reduce_ns, pairs })
}

/// A device with memory and a stream.
struct Place {
    device: Arc<Device>,
    stream: Stream,
    buffers: [DeviceBuffer; 2],
}

struct Copies {
    short_us: f64,
    bytes_per_us: f64,
}

impl Place {
    fn new(device: &Arc<Device>, bytes: u64) -> Result<Place, GpuError> {
        let buffer = || {
            let mut buffer = DeviceBuffer::new(device, bytes.max(SHORT_BYTES))?;
            buffer.fill(0).map(|()| buffer)
        };
        Ok(Place { device: device.clone(), stream: Stream::new(device)?, buffers: [buffer()?, buffer()?] })
    }

    /// Copies from another place to this one, or within it.
    fn copies(&self, from: &Place, bytes: u64) -> Result<Copies, GpuError> {
        let mut current = Current::of(&self.device)?;
        current.switch(&self.device)?;
        let target = (self.buffers[0].pointer(), &*self.device);
        let source = (from.buffers[1].pointer(), &*from.device);
        let once = |bytes| copy(target, source, bytes, self.stream.handle());
        once(bytes)?;
        self.stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..SHORT_COPIES {
            once(SHORT_BYTES)?;
            self.stream.synchronize()?;
        }
        let short_us = start.elapsed().as_secs_f64() * 1e6 / f64::from(SHORT_COPIES);
        let start = Instant::now();
        for _ in 0..LONG_COPIES {
            once(bytes)?;
        }
        self.stream.synchronize()?;
        let long_us = start.elapsed().as_secs_f64() * 1e6 / f64::from(LONG_COPIES);
        Ok(Copies { short_us, bytes_per_us: bytes as f64 / long_us.max(1e-3) })
    }

    /// Microseconds of a sum of `f32`.
    fn reduction_us(&self, bytes: u64) -> Result<f64, GpuError> {
        let reducer = Reducer::builtin(RedOp::Sum, DType::F32);
        let reducer = reducer.expect("invariant: there is a sum of f32");
        let kernels = coll_cuda::Kernels::of(&reducer);
        let kernels = kernels.map_err(|error| GpuError::Unsupported { why: error.to_string() })?;
        let none =
            || GpuError::NoKernel { name: "a sum of f32".to_string(), why: "none is made".to_string() };
        let (name, ptx) = (kernels.combine(2).ok_or_else(none)?, kernels.ptx().ok_or_else(none)?);
        let kernel = Module::load(&self.device, ptx.as_bytes())?.kernel(name)?;
        let [target, source] = [0, 1].map(|at| Argument::Address(self.buffers[at].pointer().address()));
        let arguments = [target, target, source, Argument::Count(bytes / DType::F32.size_bytes())];
        let grid = self.device.processors()?.max(1) * 8;
        let _current = Current::of(&self.device)?;
        let once = || kernel.launch(&arguments, grid, 256, self.stream.handle());
        once()?;
        self.stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..LONG_COPIES {
            once()?;
        }
        self.stream.synchronize()?;
        Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(LONG_COPIES))
    }
}
