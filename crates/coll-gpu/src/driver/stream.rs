//! Streams and events.

use super::{Current, Device, Pointer, fault, said};
use crate::GpuError;
use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult, CUstream, CUstream_flags};
use std::sync::Arc;

/// A stream that somebody else owns and vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHandle(pub(super) CUstream);

// SAFETY: the driver's functions on a stream may be called from any thread.
unsafe impl Send for StreamHandle {}
// SAFETY: as above.
unsafe impl Sync for StreamHandle {}

impl StreamHandle {
    /// The default stream of whichever device it is given for.
    pub const DEFAULT: StreamHandle = StreamHandle(std::ptr::null_mut());

    /// A `CUstream` as the driver, another library or another language gives it; 0 is the default stream.
    ///
    /// # Safety
    /// It is a stream of the primary context of the device that it is given for, and lives until all work that was put on
    /// it is done.
    pub unsafe fn new(handle: u64) -> StreamHandle {
        StreamHandle(handle as usize as CUstream)
    }

    /// The number.
    pub fn handle(self) -> u64 {
        self.0 as usize as u64
    }

    /// Has it go on only after an event. The context of its device is current: the default stream is that context's.
    #[inline]
    pub(crate) fn wait(self, event: &Event) -> Result<(), GpuError> {
        // SAFETY: both are handles that are vouched for or held.
        said(
            unsafe { sys::cuStreamWaitEvent(self.0, event.raw, 0) },
            "cuStreamWaitEvent",
            event.device.number(),
        )
    }

    /// Waits until all that is on it is done.
    pub fn synchronize(self, device: &Device) -> Result<(), GpuError> {
        let _current = Current::of(device)?;
        // SAFETY: the stream is vouched for.
        said(unsafe { sys::cuStreamSynchronize(self.0) }, "cuStreamSynchronize", device.number())
    }

    /// Whether all that is on it is done.
    pub fn is_idle(self, device: &Device) -> Result<bool, GpuError> {
        let _current = Current::of(device)?;
        // SAFETY: the stream is vouched for.
        ended(unsafe { sys::cuStreamQuery(self.0) }, "cuStreamQuery", device)
    }

    /// Whether it is being captured into a graph.
    pub fn is_capturing(self, device: &Device) -> Result<bool, GpuError> {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let _current = Current::of(device)?;
        // SAFETY: the stream is vouched for; it writes one number.
        let asked = unsafe { sys::cuStreamIsCapturing(self.0, &mut status) };
        said(asked, "cuStreamIsCapturing", device.number())?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }
}

/// A stream of one's own, which does not wait for the default stream.
#[derive(Debug)]
pub struct Stream {
    device: Arc<Device>,
    raw: CUstream,
}

// SAFETY: as for handles.
unsafe impl Send for Stream {}
// SAFETY: as for handles.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new one.
    pub fn new(device: &Arc<Device>) -> Result<Stream, GpuError> {
        let _current = Current::of(device)?;
        let mut raw = std::ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current; it writes one handle.
        said(unsafe { sys::cuStreamCreate(&mut raw, flags) }, "cuStreamCreate", device.number())?;
        Ok(Stream { device: device.clone(), raw })
    }

    /// To put work on it; it must not outlive the stream.
    pub fn handle(&self) -> StreamHandle {
        StreamHandle(self.raw)
    }

    /// Its device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Waits until all that is on it is done.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.handle().synchronize(&self.device)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Ok(_current) = Current::of(&self.device) {
            // SAFETY: it was made once; what is on it goes on to its end.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// An event without a time.
#[derive(Debug)]
pub(crate) struct Event {
    device: Arc<Device>,
    raw: CUevent,
}

// SAFETY: the driver's functions on an event may be called from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// A new one. Until it is recorded, a wait for it is none.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Event, GpuError> {
        let _current = Current::of(device)?;
        let mut raw = std::ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: a context is current; it writes one handle.
        said(unsafe { sys::cuEventCreate(&mut raw, flags) }, "cuEventCreate", device.number())?;
        Ok(Event { device: device.clone(), raw })
    }

    /// Records it on a stream of its device.
    #[inline]
    pub(crate) fn record(&self, stream: StreamHandle) -> Result<(), GpuError> {
        // SAFETY: both are handles that are vouched for or held.
        said(unsafe { sys::cuEventRecord(self.raw, stream.0) }, "cuEventRecord", self.device.number())
    }

    /// Whether what it was recorded after is done.
    pub(crate) fn is_done(&self) -> Result<bool, GpuError> {
        // SAFETY: the event is held.
        ended(unsafe { sys::cuEventQuery(self.raw) }, "cuEventQuery", &self.device)
    }

    /// Waits until what it was recorded after is done.
    pub(crate) fn synchronize(&self) -> Result<(), GpuError> {
        // SAFETY: the event is held.
        said(unsafe { sys::cuEventSynchronize(self.raw) }, "cuEventSynchronize", self.device.number())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = Current::of(&self.device) {
            // SAFETY: it was made once; the driver keeps it as long as something waits for it.
            let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}

fn ended(code: CUresult, call: &'static str, device: &Device) -> Result<bool, GpuError> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(true),
        CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        code => Err(fault(code, call, device.number())),
    }
}

/// Copies between memories of one device or two, on a stream of one of them whose context is current.
#[inline]
pub(crate) fn copy(
    target: (Pointer, &Device),
    source: (Pointer, &Device),
    bytes: u64,
    stream: StreamHandle,
) -> Result<(), GpuError> {
    let ((to, here), (from, there), size) = (target, source, bytes as usize);
    if here.number() == there.number() {
        // SAFETY: whoever made the pointers and the stream vouches for them.
        let done = unsafe { sys::cuMemcpyAsync(to.address(), from.address(), size, stream.0) };
        return said(done, "cuMemcpyAsync", here.number());
    }
    let (to_context, from_context) = (here.context(), there.context());
    // SAFETY: as above; the contexts are held by the devices.
    let done = unsafe {
        sys::cuMemcpyPeerAsync(to.address(), to_context, from.address(), from_context, size, stream.0)
    };
    said(done, "cuMemcpyPeerAsync", here.number())
}
