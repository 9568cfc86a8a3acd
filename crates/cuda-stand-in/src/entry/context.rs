//! Contexts.

use super::{api, put, waiting_api};
use crate::code::{Answer, Code};
use crate::driver::{CURRENT, Driver};
use crate::wait::Wait;

fn create(driver: &mut Driver, out: *mut u64, flags: u32, device: i32) -> Answer {
    let device = driver.device(device)?;
    let context = driver.create_context(device, flags);
    put(out, context)?;
    CURRENT.with_borrow_mut(|stack| stack.push(context));
    Ok(())
}

/// The end of a context, once its work has been done.
fn ended(driver: &mut Driver, context: Option<u64>) -> Answer<Wait> {
    match context.filter(|context| driver.contexts.contains_key(context)) {
        // What came to grief is of no interest any more.
        Some(context) => Ok(Wait { contexts: Vec::new(), ..driver.wait_for_context(context) }),
        None => Ok(Wait::default()),
    }
}

api! {
    fn cuDevicePrimaryCtxRetain(out: *mut u64, device: i32) => |driver| {
        let device = driver.device(device)?;
        put(out, driver.retain_primary(device))
    };
    fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) => |driver| {
        let device = driver.device(device)?;
        put(flags, 0)?;
        put(active, driver.primaries.contains_key(&device).into())
    };
    fn cuCtxCreate_v2(out: *mut u64, flags: u32, device: i32) => |driver| create(driver, out, flags, device);
    fn cuCtxCreate_v3(out: *mut u64, affinities: usize, count: i32, flags: u32, device: i32) => |driver| {
        if affinities != 0 || count != 0 {
            return Err(driver.wrong(Code::NOT_SUPPORTED, "parts of a device are not given to contexts"));
        }
        create(driver, out, flags, device)
    };
    fn cuCtxCreate_v4(out: *mut u64, parameters: usize, flags: u32, device: i32) => |driver| {
        if parameters != 0 {
            return Err(driver.wrong(Code::NOT_SUPPORTED, "contexts have no parameters here"));
        }
        create(driver, out, flags, device)
    };
    fn cuCtxSetCurrent(context: u64) => |driver| {
        if context != 0 {
            driver.context(context)?;
        }
        CURRENT.with_borrow_mut(|stack| {
            stack.pop();
            stack.extend((context != 0).then_some(context));
        });
        Ok(())
    };
    fn cuCtxGetCurrent(out: *mut u64) => |driver| put(out, driver.current().unwrap_or(0));
    fn cuCtxPushCurrent_v2(context: u64) => |driver| {
        driver.context(context)?;
        CURRENT.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    };
    fn cuCtxPopCurrent_v2(out: *mut u64) => |driver| {
        let Some(context) = driver.current() else {
            return Err(driver.wrong(Code::INVALID_CONTEXT, "no context is current on this thread"));
        };
        CURRENT.with_borrow_mut(|stack| stack.pop());
        if out.is_null() { Ok(()) } else { put(out, context) }
    };
    fn cuCtxGetDevice(out: *mut i32) => |driver| {
        let context = driver.current_context()?;
        put(out, driver.context(context)?.device as i32)
    };
    fn cuCtxSetFlags(flags: u32) => |driver| {
        let context = driver.current_context()?;
        driver.context(context)?.flags = flags;
        Ok(())
    };
    fn cuCtxGetFlags(out: *mut u32) => |driver| {
        let context = driver.current_context()?;
        put(out, driver.context(context)?.flags)
    };
    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) => |driver| {
        driver.current_context()?;
        for (out, value) in [(least, 0), (greatest, -5)].into_iter().filter(|(out, _)| !out.is_null()) {
            put(out, value)?;
        }
        Ok(())
    };
    fn cuCtxEnablePeerAccess(peer: u64, flags: u32) => |driver| match flags {
        0 => driver.enable_peer(peer),
        _ => Err(driver.wrong(Code::INVALID_VALUE, format!("flags {flags}, which must be 0"))),
    };
    fn cuCtxDisablePeerAccess(peer: u64) => |driver| driver.disable_peer(peer);
}

waiting_api! {
    fn cuDevicePrimaryCtxRelease_v2(device: i32) =>
        |driver| {
            let device = driver.device(device)?;
            let last = driver.primaries.get(&device).is_some_and(|&(_, held)| held == 1);
            let context = last.then(|| driver.primaries[&device].0);
            ended(driver, context)
        },
        |driver| {
            let device = driver.device(device)?;
            if let Some(context) = driver.release_primary(device)? {
                driver.destroy_context(context);
            }
            Ok(())
        };
    fn cuCtxDestroy_v2(context: u64) =>
        |driver| {
            driver.context(context)?;
            ended(driver, Some(context))
        },
        |driver| {
            CURRENT.with_borrow_mut(|stack| stack.pop_if(|top| *top == context));
            driver.destroy_context(context);
            Ok(())
        };
    fn cuCtxSynchronize() =>
        |driver| {
            let context = driver.current_context()?;
            driver.captures_nothing(context)?;
            driver.no_capture_minds()?;
            Ok(driver.wait_for_context(context))
        },
        |_| Ok(());
}
