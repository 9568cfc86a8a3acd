//! Memory: taking and giving back, of devices and of the host, and what an address is.

use super::{api, get, get_all, put, waiting_api};
use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::memory::{Kind, Memory};
use crate::wait::Wait;
use crate::work::Work;

fn allocate(driver: &mut Driver, out: *mut u64, bytes: u64, kind: Kind, context: u64) -> Answer<u64> {
    if bytes == 0 || out.is_null() {
        return Err(driver.wrong(Code::INVALID_VALUE, "memory of no bytes"));
    }
    let device = driver.context(context)?.device;
    let Some(base) = driver.memory.allocate(device, bytes, kind, context) else {
        let free = driver.memory.free_bytes(device);
        let text = format!("{bytes} bytes of device {device}, which has {free} left");
        return Err(driver.wrong(Code::OUT_OF_MEMORY, text));
    };
    put(out, base)?;
    Ok(base)
}

/// An allocation that begins at an address, of one of some kinds.
fn begins(driver: &mut Driver, at: u64, kinds: &[Kind]) -> Answer<(usize, u64)> {
    match driver.memory.find(at) {
        Some(found) if found.base == at && kinds.contains(&found.kind) => Ok((found.device, found.bytes)),
        Some(found) => {
            let text = format!("{at:#x} is byte {} of {found}, and not what is freed so", at - found.base);
            Err(driver.wrong(Code::INVALID_VALUE, text))
        }
        None => {
            let text = driver.memory.within(at, 1).err().unwrap_or(format!("{at:#x} is no allocation"));
            Err(driver.wrong(Code::INVALID_VALUE, text))
        }
    }
}

/// Memory of the host, of which the driver is to forget.
fn forget_host(driver: &mut Driver, at: u64, kind: Kind) -> Answer<Wait> {
    driver.no_capture_minds()?;
    let (_, bytes) = begins(driver, at, &[kind])?;
    // Whoever still uses it is found before it is waited for.
    driver.host_touches(at, bytes, true)?;
    Ok(driver.wait_for_all())
}

fn host_allocate(driver: &mut Driver, out: *mut u64, bytes: u64, flags: u32) -> Answer {
    let context = driver.current_context()?;
    driver.no_capture_minds()?;
    if bytes == 0 || bytes > HOST_BYTES_MAX || flags > 7 {
        let text = format!("{bytes} bytes of host memory with flags {flags}");
        return Err(driver.wrong(Code::INVALID_VALUE, text));
    }
    let base = driver.memory.allocate_host(bytes, context).map_err(|_| Code::OUT_OF_MEMORY)?;
    let seed = driver.random.next();
    Memory::scramble(base, bytes, seed);
    if let Some(allocation) = driver.memory.find_mut(base) {
        allocation.flags = flags;
    }
    put(out, base)
}

/// What is written for an attribute of a pointer: its value and bytes. None if it has none.
fn attribute(driver: &Driver, number: u32, at: u64) -> Option<(u64, usize)> {
    let found = driver.memory.find(at)?;
    Some(match number {
        1 => (found.context, 8),
        2 => (if found.is_host() { 1 } else { 2 }, 4),
        3 => (at, 8),
        4 if found.is_host() => (at, 8),
        6 => (0, 4),
        7 => (found.number, 8),
        8 => (0, 4),
        9 => (found.device as u64, 4),
        10 => ((found.kind == Kind::Device).into(), 4),
        11 => (found.base, 8),
        12 => (found.bytes, 8),
        13 => (1, 4),
        _ => return None,
    })
}

fn put_attribute(out: u64, (value, bytes): (u64, usize)) -> Answer {
    match bytes {
        4 => put(out as *mut u32, value as u32),
        _ => put(out as *mut u64, value),
    }
}

fn pool(driver: &mut Driver, handle: u64) -> Answer<usize> {
    match handle.checked_sub(POOLS).filter(|&device| device < driver.config.devices as u64) {
        Some(device) => Ok(device as usize),
        None => Err(driver.wrong(Code::INVALID_VALUE, format!("{handle:#x} is no pool"))),
    }
}

/// More host memory is asked for by mistake.
const HOST_BYTES_MAX: u64 = 1 << 46;

/// Handles of pools: one for each device.
const POOLS: u64 = 0x100;

api! {
    fn cuMemAlloc_v2(out: *mut u64, bytes: u64) => |driver| {
        let context = driver.current_context()?;
        driver.no_capture_minds()?;
        let base = allocate(driver, out, bytes, Kind::Device, context)?;
        let seed = driver.random.next();
        Memory::scramble(base, bytes, seed);
        Ok(())
    };
    fn cuMemAllocAsync(out: *mut u64, bytes: u64, stream: u64) => |driver| {
        let stream = driver.stream(stream)?;
        // Of no bytes there is nothing, and an address of it.
        if bytes == 0 {
            return put(out, 0);
        }
        if let Some(capture) = driver.streams[&stream].capture {
            return driver.add_to_capture(capture, stream, Work::Allocate { base: 0, bytes });
        }
        let context = driver.streams[&stream].context;
        let base = allocate(driver, out, bytes, Kind::Pool, context)?;
        driver.enqueue(stream, Work::Allocate { base, bytes })
    };
    fn cuMemFreeAsync(at: u64, stream: u64) => |driver| {
        let stream = driver.stream(stream)?;
        if at == 0 {
            return Ok(());
        }
        let (_, bytes) = begins(driver, at, &[Kind::Pool, Kind::Device])?;
        driver.enqueue(stream, Work::Free { base: at, bytes })
    };
    fn cuMemGetInfo_v2(free: *mut u64, total: *mut u64) => |driver| {
        let context = driver.current_context()?;
        let device = driver.context(context)?.device;
        put(free, driver.memory.free_bytes(device))?;
        put(total, driver.config.device_bytes)
    };
    fn cuMemHostAlloc(out: *mut u64, bytes: u64, flags: u32) => |driver| host_allocate(driver, out, bytes, flags);
    fn cuMemAllocHost_v2(out: *mut u64, bytes: u64) => |driver| host_allocate(driver, out, bytes, 0);
    fn cuMemHostRegister_v2(at: u64, bytes: u64, flags: u32) => |driver| {
        let context = driver.current_context()?;
        let ends = at.checked_add(bytes).is_some();
        if at == 0 || bytes == 0 || !ends || flags > 15 || driver.memory.is_of_device(at) {
            let text = format!("{bytes} bytes at {at:#x} with flags {flags} cannot be registered");
            return Err(driver.wrong(Code::INVALID_VALUE, text));
        }
        if driver.memory.overlaps(at, bytes) {
            return Err(driver.wrong(Code::HOST_MEMORY_ALREADY_REGISTERED, format!("{at:#x} is registered")));
        }
        driver.memory.register(at, bytes, context);
        if let Some(allocation) = driver.memory.find_mut(at) {
            allocation.flags = flags;
        }
        Ok(())
    };
    fn cuMemHostGetDevicePointer_v2(out: *mut u64, at: u64, flags: u32) => |driver| {
        let known = driver.memory.find(at).is_some_and(|found| found.is_host());
        match known && flags == 0 {
            true => put(out, at),
            false => Err(driver.wrong(Code::INVALID_VALUE, format!("{at:#x} is no host memory of the driver's"))),
        }
    };
    fn cuMemHostGetFlags(out: *mut u32, at: u64) => |driver| {
        match driver.memory.find(at).filter(|found| found.is_host()).map(|found| found.flags) {
            Some(flags) => put(out, flags),
            None => Err(driver.wrong(Code::INVALID_VALUE, format!("{at:#x} is no host memory of the driver's"))),
        }
    };
    fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut u64, at: u64) => |driver| {
        let Some((start, all)) = driver.memory.find(at).map(|found| (found.base, found.bytes)) else {
            return Err(driver.wrong(Code::NOT_FOUND, format!("{at:#x} is no memory of the driver's")));
        };
        if !base.is_null() {
            put(base, start)?;
        }
        if bytes.is_null() { Ok(()) } else { put(bytes, all) }
    };
    fn cuPointerGetAttribute(out: u64, number: u32, at: u64) => |driver| match attribute(driver, number, at) {
        Some(value) => put_attribute(out, value),
        None => Err(driver.wrong(Code::INVALID_VALUE, format!("{at:#x} has no attribute {number}"))),
    };
    fn cuPointerGetAttributes(count: u32, numbers: *const u32, outs: *const u64, at: u64) => |driver| {
        let (numbers, outs) = (get_all(numbers, count as usize)?, get_all(outs, count as usize)?);
        for (number, out) in numbers.into_iter().zip(outs) {
            let wide = matches!(number, 1 | 3 | 4 | 7 | 11 | 12);
            let value = attribute(driver, number, at).unwrap_or((0, if wide { 8 } else { 4 }));
            put_attribute(out, value)?;
        }
        Ok(())
    };
    fn cuDeviceGetDefaultMemPool(out: *mut u64, device: i32) => |driver| {
        put(out, POOLS + driver.device(device)? as u64)
    };
    fn cuDeviceGetMemPool(out: *mut u64, device: i32) => |driver| put(out, POOLS + driver.device(device)? as u64);
    fn cuMemPoolSetAccess(handle: u64, list: *const [u32; 3], count: u64) => |driver| {
        let device = pool(driver, handle)?;
        for place in 0..count as usize {
            // Kind of place, which one, and what it may do.
            let [kind, peer, access] = get(list.wrapping_add(place))?;
            let peer = driver.device(peer as i32)?;
            if kind != 1 || !matches!(access, 0 | 3) || (peer == device && access == 0) {
                return Err(driver.wrong(Code::INVALID_VALUE, format!("access {access} of {kind} {peer}")));
            }
            if peer != device && !driver.config.reaches(peer, device) {
                let text = format!("device {peer} cannot reach the memory of device {device}");
                return Err(driver.wrong(Code::INVALID_DEVICE, text));
            }
            let devices = driver.pools.entry(device).or_default();
            if access == 3 { devices.insert(peer) } else { devices.remove(&peer) };
        }
        Ok(())
    };
}

waiting_api! {
    /// As real drivers do, it waits for all work of the memory's device, and for no other's. For memory of a pool it waits for
    /// nothing.
    fn cuMemFree_v2(at: u64) =>
        |driver| {
            driver.current_context()?;
            driver.no_capture_minds()?;
            if at == 0 {
                return Ok(Wait::default());
            }
            let (device, _) = begins(driver, at, &[Kind::Device, Kind::Pool])?;
            let found = driver.memory.find(at).map(|found| (found.kind, found.openings));
            match found {
                Some((Kind::Pool, _)) => Ok(Wait::default()),
                // One is its own, and one that others may have.
                Some((_, openings @ 3..)) => {
                    let text = format!("{at:#x} is freed, and {} who opened it have not closed it", openings - 2);
                    Err(driver.wrong(Code::INVALID_VALUE, text))
                }
                _ => Ok(driver.wait_for_device(device)),
            }
        },
        |driver| {
            if let Some((base, bytes)) = driver.memory.find(at).map(|found| (found.base, found.bytes)) {
                driver.host_touches(base, bytes, true)?;
                driver.memory.release(base);
            }
            Ok(())
        };
    fn cuMemFreeHost(at: u64) =>
        |driver| forget_host(driver, at, Kind::Pinned),
        |driver| {
            driver.memory.release(at);
            Ok(())
        };
    fn cuMemHostUnregister(at: u64) =>
        |driver| match driver.memory.find(at).is_some_and(|found| found.kind == Kind::Registered) {
            true => forget_host(driver, at, Kind::Registered),
            false => Err(driver.wrong(Code::HOST_MEMORY_NOT_REGISTERED, format!("{at:#x} is not registered"))),
        },
        |driver| {
            driver.memory.release(at);
            Ok(())
        };
}
