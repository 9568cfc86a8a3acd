//! Memory and events of several processes.

use super::{api, put, waiting_api};
use crate::ipc::Handle;
use crate::wait::Wait;

api! {
    fn cuIpcGetMemHandle(out: *mut Handle, at: u64) => |driver| put(out, driver.handle_of_memory(at)?);
    fn cuIpcOpenMemHandle_v2(out: *mut u64, handle: Handle, flags: u32) => |driver| {
        put(out, driver.open_memory(&handle, flags)?)
    };
    fn cuIpcGetEventHandle(out: *mut Handle, event: u64) => |driver| put(out, driver.handle_of_event(event)?);
    fn cuIpcOpenEventHandle(out: *mut u64, handle: Handle) => |driver| put(out, driver.open_event(&handle)?);
}

waiting_api! {
    /// The last one who closes it waits for those who use it.
    fn cuIpcCloseMemHandle(at: u64) =>
        |driver| {
            driver.current_context()?;
            match driver.close_memory(at)? {
                true => Ok(driver.wait_for_all()),
                false => Ok(Wait::default()),
            }
        },
        |driver| {
            driver.forget_closed(at);
            Ok(())
        };
}
