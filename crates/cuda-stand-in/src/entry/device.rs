//! Devices: how many, what they are, which reach which.

use super::{api, get_text, put, put_text};
use crate::code::{Answer, Code};
use crate::driver::Driver;
use std::ffi::c_char;

fn bus_id(device: usize) -> String {
    format!("0000:{:02x}:00.0", device + 1)
}

/// Attributes of a device like those of one of compute capability 9.0; what is not there is 0.
fn attribute(number: u32, device: usize) -> i32 {
    match number {
        // Threads of a block and their dimensions.
        1..=3 => 1024,
        4 => 64,
        // Blocks of a grid and their dimensions.
        5 => i32::MAX,
        6 | 7 => 65535,
        // Shared memory of a block, constant memory, threads of a warp, kHz, multiprocessors.
        8 => 49152,
        9 => 65536,
        10 => 32,
        13 => 1_000_000,
        16 => 132,
        // What it can do: map host memory, run kernels at once, copy by engines, unified addresses.
        19 | 31 | 41 => 1,
        40 => 3,
        33 => device as i32 + 1,
        38 => 50 << 20,
        39 => 2048,
        75 => 9,
        // Priorities, words in memory that streams wait for, cooperative launches, host registration, pools, shared events.
        78 | 91 | 92 | 93 | 94 | 95 | 99 | 115 | 122 | 123 | 125 => 1,
        _ => 0,
    }
}

fn uuid(device: usize) -> [u8; 16] {
    let mut bytes = *b"collc stand-in \0";
    bytes[15] = device as u8;
    bytes
}

fn reaches(driver: &mut Driver, from: i32, to: i32) -> Answer<i32> {
    let (from, to) = (driver.device(from)?, driver.device(to)?);
    Ok(driver.config.reaches(from, to).into())
}

api! {
    fn cuDeviceGetCount(out: *mut i32) => |driver| put(out, driver.config.devices as i32);
    fn cuDeviceGet(out: *mut i32, ordinal: i32) => |driver| put(out, driver.device(ordinal)? as i32);
    fn cuDeviceGetName(out: *mut c_char, room: i32, device: i32) => |driver| {
        let device = driver.device(device)?;
        put_text(out, usize::try_from(room).unwrap_or(0), &format!("Stand-in {device}"))
    };
    fn cuDeviceGetUuid(out: *mut [u8; 16], device: i32) => |driver| put(out, uuid(driver.device(device)?));
    fn cuDeviceGetUuid_v2(out: *mut [u8; 16], device: i32) => |driver| put(out, uuid(driver.device(device)?));
    fn cuDeviceTotalMem_v2(out: *mut u64, device: i32) => |driver| {
        driver.device(device)?;
        put(out, driver.config.device_bytes)
    };
    fn cuDeviceGetAttribute(out: *mut i32, number: u32, device: i32) => |driver| {
        put(out, attribute(number, driver.device(device)?))
    };
    fn cuDeviceGetPCIBusId(out: *mut c_char, room: i32, device: i32) => |driver| {
        let device = driver.device(device)?;
        put_text(out, usize::try_from(room).unwrap_or(0), &bus_id(device))
    };
    fn cuDeviceGetByPCIBusId(out: *mut i32, text: *const c_char) => |driver| {
        let text = get_text(text)?;
        match (0..driver.config.devices).find(|&device| bus_id(device) == text) {
            Some(device) => put(out, device as i32),
            None => Err(driver.wrong(Code::INVALID_DEVICE, format!("there is no device at {text}"))),
        }
    };
    fn cuDeviceCanAccessPeer(out: *mut i32, device: i32, peer: i32) => |driver| {
        put(out, reaches(driver, device, peer)?)
    };
    fn cuDeviceGetP2PAttribute(out: *mut i32, number: u32, from: i32, to: i32) => |driver| {
        let reaches = reaches(driver, from, to)?;
        // Access and atomics; ranks of performance are all the same, and there are no arrays.
        put(out, if matches!(number, 2 | 3) { reaches } else { 0 })
    };
}
