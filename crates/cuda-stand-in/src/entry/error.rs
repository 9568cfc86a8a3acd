//! The start, the version, and what codes are called.

use super::{api, put};
use crate::code::{Answer, Code};
use std::ffi::c_char;

/// CUDA 12.8.
const VERSION: i32 = 12080;

fn told(code: u32, out: *mut *const c_char, sentence: bool) -> Answer {
    match Code(code).told() {
        Some((name, text)) => put(out, if sentence { text } else { name }.as_ptr()),
        None => {
            put(out, std::ptr::null())?;
            Err(Code::INVALID_VALUE)
        }
    }
}

api! {
    fn cuInit(flags: u32) => |driver| {
        if flags != 0 {
            return Err(driver.wrong(Code::INVALID_VALUE, format!("flags {flags}, which must be 0")));
        }
        if driver.config.devices == 0 {
            return Err(driver.wrong(Code::NO_DEVICE, "the machine has no device"));
        }
        driver.initialised = true;
        Ok(())
    };
    fn cuDriverGetVersion(out: *mut i32) => |_| put(out, VERSION);
    fn cuGetErrorName(error: u32, out: *mut *const c_char) => |_| told(error, out, false);
    fn cuGetErrorString(error: u32, out: *mut *const c_char) => |_| told(error, out, true);
}
