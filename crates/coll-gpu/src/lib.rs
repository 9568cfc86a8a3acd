//! Plans on the streams of CUDA devices.
//!
//! [`probe`] says what there is, and is the one door: where there is no driver it says so, and nothing panics. A
//! [`Group`] is all ranks of a communicator in one process, each on a device; a call of it is [`Prepared`] once and put
//! on the callers' streams any number of times, or [`Captured`] into a graph. What it puts there is a [`StreamPlan`], plain
//! data, which is made without any driver.
//!
//! Results have the bits that the CPU's executor gives for the same plan: operands are combined in the same order, in the
//! same working elements.

mod across;
mod captured;
mod commands;
mod driver;
mod error;
mod group;
mod kernels;
mod measure;
mod network;
mod porter;
mod prepared;
mod probe;
mod shared;
pub mod stream_plan;

pub use captured::Captured;
pub use driver::{Device, DeviceBuffer, Driver, Pointer, Stream, StreamHandle};
pub use error::{GpuError, GroupError, Version};
pub use group::{Call, Group};
pub use kernels::{Compile, WithNvrtc};
pub use measure::{Measured, MeasuredPair, measure};
pub use network::{Network, OverTcp};
pub use prepared::{BufferPointers, Prepared};
pub use probe::{DeviceFound, Probe, probe};
pub use shared::{Exchange, Shared, SharedCall, SharedGraph};
pub use stream_plan::{Layout, StreamPlan, StreamPlanError};
