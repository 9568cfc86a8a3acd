//! Events.

use super::stream::advance_a_little;
use super::{api, code, open, put, waiting_api};
use crate::code::{Answer, Code};
use crate::driver::Driver;

fn record(driver: &mut Driver, event: u64, stream: u64, flags: u32) -> Answer {
    let stream = driver.stream(stream)?;
    // An event that is recorded within a graph for those outside would be a node of it.
    if flags > 1 || (flags == 1 && driver.streams[&stream].capture.is_some()) {
        return Err(driver.wrong(Code::NOT_SUPPORTED, format!("an event recorded with flags {flags}")));
    }
    driver.record_event(event, stream)
}

fn query(event: u64) -> Answer {
    let mut held = open("cuEventQuery")?;
    let driver = held.driver()?;
    let wait = driver.wait_for_event(event)?;
    driver.no_capture_minds()?;
    let mut held = advance_a_little(held)?;
    let driver = held.driver()?;
    wait.contexts.iter().try_for_each(|&context| driver.sound(context))?;
    if !wait.is_over() {
        return Err(Code::NOT_READY);
    }
    wait.learn(driver);
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: u64) -> Code {
    code(query(event))
}

api! {
    fn cuEventCreate(out: *mut u64, flags: u32) => |driver| {
        let context = driver.current_context()?;
        put(out, driver.create_event(context, flags)?)
    };
    fn cuEventRecord(event: u64, stream: u64) => |driver| record(driver, event, stream, 0);
    fn cuEventRecordWithFlags(event: u64, stream: u64, flags: u32) => |driver| record(driver, event, stream, flags);
    fn cuEventDestroy_v2(event: u64) => |driver| {
        driver.event(event)?;
        driver.events.remove(&event);
        Ok(())
    };
    fn cuEventElapsedTime(out: *mut f32, start: u64, end: u64) => |driver| put(out, driver.elapsed(start, end)?);
    fn cuEventElapsedTime_v2(out: *mut f32, start: u64, end: u64) => |driver| put(out, driver.elapsed(start, end)?);
}

waiting_api! {
    fn cuEventSynchronize(event: u64) =>
        |driver| {
            let wait = driver.wait_for_event(event)?;
            driver.no_capture_minds()?;
            Ok(wait)
        },
        |_| Ok(());
}
