//! Streams: making, waiting, words in memory, host functions, captures.

use super::{api, code, get_all, open, put, waiting_api};
use crate::code::{Answer, Code};
use crate::driver::{Driver, Held};
use crate::schedule::Step;
use crate::stream::Role;
use crate::wait::{Wait, call};
use crate::work::{Compare, Work};

fn create(driver: &mut Driver, out: *mut u64, flags: u32, priority: i32) -> Answer {
    let context = driver.current_context()?;
    let role = match flags {
        0 => Role::Blocking,
        1 => Role::NonBlocking,
        _ => return Err(driver.wrong(Code::INVALID_VALUE, format!("a stream with flags {flags}"))),
    };
    put(out, driver.create_stream(context, role, priority.clamp(-5, 0))?)
}

/// A stream that the host may wait for: none that is being captured.
fn to_wait_for(driver: &mut Driver, handle: u64) -> Answer<u64> {
    let stream = driver.stream(handle)?;
    driver.may_enqueue(stream)?;
    if let Some(capture) = driver.streams[&stream].capture {
        driver.invalidate(capture);
        return Err(driver.wrong(Code::STREAM_CAPTURE_UNSUPPORTED, "the stream is being captured"));
    }
    driver.no_capture_minds()?;
    driver.order_with_default(stream);
    Ok(stream)
}

/// Takes some steps, calling host functions on the way. How many there were.
pub(super) fn advance(mut held: Held, most: u64) -> (Held, u64) {
    for done in 0..most {
        match held.driver().map(Driver::step) {
            Ok(Step::Ran) => {}
            Ok(Step::Call { stream, function, data }) => held = call(held, stream, function, data),
            Ok(Step::Idle) | Err(_) => return (held, done),
        }
    }
    (held, most)
}

/// Something may have advanced since somebody asked last.
pub(super) fn advance_a_little(mut held: Held) -> Answer<Held> {
    let steps = held.driver()?.random.below(8) as u64;
    Ok(advance(held, steps).0)
}

fn query(handle: u64) -> Answer {
    let mut held = open("cuStreamQuery")?;
    let stream = to_wait_for(held.driver()?, handle)?;
    let mut held = advance_a_little(held)?;
    let driver = held.driver()?;
    let Some((idle, clock, context)) = driver
        .streams
        .get(&stream)
        .map(|stream| (stream.queue.is_empty() && !stream.busy, stream.clock.clone(), stream.context))
    else {
        return Err(Code::INVALID_HANDLE);
    };
    driver.sound(context)?;
    if !idle {
        return Err(Code::NOT_READY);
    }
    driver.host_learns(&clock);
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: u64) -> Code {
    code(query(stream))
}

/// An address of a word that a stream of a context may wait for or write.
fn word(driver: &mut Driver, stream: u64, at: u64, wide: bool) -> Answer {
    let bytes = if wide { 8 } else { 4 };
    let context = driver.streams[&stream].context;
    let usable = match driver.memory.within(at, bytes) {
        Ok(Some(allocation)) if driver.may_use(context, allocation) => Ok(()),
        Ok(Some(allocation)) => Err(format!("a word of {allocation}, without access to it")),
        Ok(None) => Err(format!("a word at {at:#x}, which the driver does not know")),
        Err(text) => Err(format!("a word in {text}")),
    };
    usable.map_err(|text| driver.wrong(Code::INVALID_VALUE, text))?;
    match at % bytes {
        0 => Ok(()),
        _ => Err(driver.wrong(Code::INVALID_VALUE, format!("{at:#x} is no multiple of {bytes}"))),
    }
}

fn wait_word(driver: &mut Driver, stream: u64, at: u64, wide: bool, value: u64, flags: u32) -> Answer {
    const FLUSH: u32 = 1 << 30;
    let compare = match flags & !FLUSH {
        0 => Compare::AtLeast,
        1 => Compare::Equal,
        2 => Compare::And,
        3 => Compare::Nor,
        _ => {
            return Err(
                driver.wrong(Code::INVALID_VALUE, format!("a wait for a value with flags {flags:#x}"))
            );
        }
    };
    word(driver, stream, at, wide)?;
    driver.enqueue(stream, Work::WaitWord { at, wide, value, compare })
}

fn write_word(driver: &mut Driver, stream: u64, at: u64, wide: bool, value: u64, flags: u32) -> Answer {
    // A write that need not come after what the stream did before says nothing of it; here it always does.
    if flags > 1 {
        return Err(driver.wrong(Code::INVALID_VALUE, format!("a write of a value with flags {flags:#x}")));
    }
    word(driver, stream, at, wide)?;
    driver.enqueue(stream, Work::WriteWord { at, wide, value })
}

/// One of several operations on words, 48 bytes: kind, address, value, flags.
fn batched(driver: &mut Driver, stream: u64, [kind, at, value, flags, ..]: [u64; 6]) -> Answer {
    let flags = flags as u32;
    match kind as u32 {
        1 => wait_word(driver, stream, at, false, value & u64::from(u32::MAX), flags),
        2 => write_word(driver, stream, at, false, value & u64::from(u32::MAX), flags),
        4 => wait_word(driver, stream, at, true, value, flags),
        5 => write_word(driver, stream, at, true, value, flags),
        kind => Err(driver.wrong(Code::NOT_SUPPORTED, format!("operation {kind} on a word"))),
    }
}

api! {
    fn cuStreamCreate(out: *mut u64, flags: u32) => |driver| create(driver, out, flags, 0);
    fn cuStreamCreateWithPriority(out: *mut u64, flags: u32, priority: i32) => |driver| {
        create(driver, out, flags, priority)
    };
    fn cuStreamDestroy_v2(handle: u64) => |driver| {
        let stream = match driver.streams.get(&handle) {
            Some(stream) if stream.is_callers() => handle,
            _ => return Err(driver.wrong(Code::INVALID_HANDLE, format!("{handle:#x} is no stream to destroy"))),
        };
        if let Some(capture) = driver.streams[&stream].capture {
            driver.invalidate(capture);
        }
        driver.streams.entry(stream).and_modify(|stream| stream.dying = true);
        driver.bury(stream);
        Ok(())
    };
    fn cuStreamWaitEvent(stream: u64, event: u64, flags: u32) => |driver| {
        let stream = driver.stream(stream)?;
        match (flags, driver.streams[&stream].capture) {
            (0, _) => driver.wait_event(stream, event),
            // It would be a node that waits for what is not captured.
            (1, Some(capture)) => {
                driver.invalidate(capture);
                Err(driver.wrong(Code::NOT_SUPPORTED, "a wait for an event outside of the capture"))
            }
            _ => Err(driver.wrong(Code::INVALID_VALUE, format!("a wait for an event with flags {flags}"))),
        }
    };
    fn cuStreamGetPriority(stream: u64, out: *mut i32) => |driver| {
        let stream = driver.stream(stream)?;
        put(out, driver.streams[&stream].priority)
    };
    fn cuStreamGetFlags(stream: u64, out: *mut u32) => |driver| {
        let stream = driver.stream(stream)?;
        put(out, (driver.streams[&stream].role == Role::NonBlocking).into())
    };
    fn cuStreamGetCtx(stream: u64, out: *mut u64) => |driver| {
        let stream = driver.stream(stream)?;
        put(out, driver.streams[&stream].context)
    };
    fn cuStreamGetId(stream: u64, out: *mut u64) => |driver| {
        let stream = driver.stream(stream)?;
        put(out, driver.streams[&stream].actor as u64)
    };
    fn cuStreamWaitValue32_v2(stream: u64, at: u64, value: u32, flags: u32) => |driver| {
        let stream = driver.stream(stream)?;
        wait_word(driver, stream, at, false, value.into(), flags)
    };
    fn cuStreamWaitValue64_v2(stream: u64, at: u64, value: u64, flags: u32) => |driver| {
        let stream = driver.stream(stream)?;
        wait_word(driver, stream, at, true, value, flags)
    };
    fn cuStreamWriteValue32_v2(stream: u64, at: u64, value: u32, flags: u32) => |driver| {
        let stream = driver.stream(stream)?;
        write_word(driver, stream, at, false, value.into(), flags)
    };
    fn cuStreamWriteValue64_v2(stream: u64, at: u64, value: u64, flags: u32) => |driver| {
        let stream = driver.stream(stream)?;
        write_word(driver, stream, at, true, value, flags)
    };
    fn cuStreamBatchMemOp_v2(stream: u64, count: u32, list: *const [u64; 6], flags: u32) => |driver| {
        let stream = driver.stream(stream)?;
        if flags != 0 || count > 256 {
            let text = format!("{count} operations on words with flags {flags}");
            return Err(driver.wrong(Code::INVALID_VALUE, text));
        }
        get_all(list, count as usize)?.into_iter().try_for_each(|one| batched(driver, stream, one))
    };
    fn cuLaunchHostFunc(stream: u64, function: usize, data: usize) => |driver| {
        let stream = driver.stream(stream)?;
        match function {
            0 => Err(driver.wrong(Code::INVALID_VALUE, "there is no function")),
            function => driver.enqueue(stream, Work::Call { function, data }),
        }
    };
    fn cuStreamBeginCapture_v2(stream: u64, mode: u32) => |driver| {
        let stream = driver.stream(stream)?;
        driver.begin_capture(stream, mode)
    };
    fn cuStreamEndCapture(stream: u64, out: *mut u64) => |driver| {
        let stream = driver.stream(stream)?;
        put(out, 0)?;
        put(out, driver.end_capture(stream)?)
    };
    fn cuStreamIsCapturing(stream: u64, out: *mut u32) => |driver| {
        let stream = driver.stream(stream)?;
        let status = match driver.streams[&stream].capture {
            None => 0,
            Some(capture) => 1 + u32::from(driver.is_broken(capture)),
        };
        put(out, status)
    };
}

waiting_api! {
    fn cuStreamSynchronize(stream: u64) =>
        |driver| -> Answer<Wait> {
            let stream = to_wait_for(driver, stream)?;
            Ok(driver.wait_for_streams(&[stream]))
        },
        |_| Ok(());
}
