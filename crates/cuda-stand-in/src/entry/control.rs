//! Functions that set the stand-in up and ask what it found. `crate::control` is how Rust calls them.

use super::{at_once, code, get_all, get_text, put, put_text};
use crate::code::{Answer, Code};
use crate::config::{Config, Stats};
use crate::driver::{Driver, Held};
use std::ffi::c_char;

/// With the driver as it is, whether it may be called or not.
fn with<T>(otherwise: T, body: impl FnOnce(&mut Driver) -> T) -> T {
    let mut held = Held::take();
    match held.driver() {
        Ok(driver) => {
            driver.calling = "control";
            body(driver)
        }
        Err(_) => otherwise,
    }
}

/// Another machine; all handles and addresses of the one before are void.
#[unsafe(no_mangle)]
extern "C" fn collcStandInConfigure(
    devices: u32,
    seed: u64,
    device_bytes: u64,
    peers: *const u64,
    patience_ms: u64,
    depth: u64,
    threads_apart: u32,
) -> Code {
    let body = || {
        let devices = devices as usize;
        if devices > 64 {
            return Err(Code::INVALID_VALUE);
        }
        let peers = if peers.is_null() { Vec::new() } else { get_all(peers, devices)? };
        let threads_apart = threads_apart != 0;
        Held::take().replace(Config {
            devices,
            seed,
            device_bytes,
            peers,
            patience_ms,
            depth: depth as usize,
            threads_apart,
        })
    };
    code(body())
}

/// What was found: races if `kind` is 0, errors if it is 1, heads of queues that cannot go on if it is 2, one a line. As much
/// as there is room for, and a NUL; the bytes of all of it.
#[unsafe(no_mangle)]
extern "C" fn collcStandInText(kind: u32, out: *mut c_char, room: u64) -> u64 {
    with(0, |driver| {
        let text = match kind {
            0 => driver.reports.texts.join("\n"),
            1 => driver.log.join("\n"),
            _ => driver.blocked().join("\n"),
        };
        // Without room only the length is asked for.
        let _ = put_text(out, room as usize, &text);
        text.len() as u64
    })
}

/// How many races there were.
#[unsafe(no_mangle)]
extern "C" fn collcStandInRaces() -> u64 {
    with(0, |driver| driver.reports.count)
}

/// Races and errors are forgotten.
#[unsafe(no_mangle)]
extern "C" fn collcStandInForget() {
    with((), |driver| {
        driver.reports = Default::default();
        driver.log.clear();
    });
}

/// The call of a function after so many others of it fails.
#[unsafe(no_mangle)]
extern "C" fn collcStandInFailNext(function: *const c_char, after: u64, failure: u32) -> Code {
    let answer = |driver: &mut Driver| -> Answer {
        driver.fail_next(&get_text(function)?, after, Code(failure));
        Ok(())
    };
    code(with(Err(Code::UNKNOWN), answer))
}

/// What is counted.
#[unsafe(no_mangle)]
extern "C" fn collcStandInStats(out: *mut Stats) -> Code {
    code(with(Err(Code::UNKNOWN), |driver| put(out, driver.stats())))
}

/// Takes up to so many steps; how many there were.
#[unsafe(no_mangle)]
extern "C" fn collcStandInStep(most: u64) -> u64 {
    super::stream::advance(Held::take(), most).1
}

/// The host says that it reads or writes memory now, and may do so.
#[unsafe(no_mangle)]
extern "C" fn collcStandInHostTouches(at: u64, bytes: u64, writes: u32) -> Code {
    code(with(Err(Code::UNKNOWN), |driver| driver.host_touches(at, bytes, writes != 0)))
}

/// The host says that it reads or writes memory now, whoever's it is: what the driver does not know is passed over.
#[unsafe(no_mangle)]
extern "C" fn collcStandInWitness(at: u64, bytes: u64, writes: u32) {
    with((), |driver| {
        if matches!(driver.memory.within(at, bytes), Ok(Some(_))) {
            // It is there, so nothing is wrong with that.
            let _ = driver.host_touches(at, bytes, writes != 0);
        }
    });
}

/// The host says that it has seen what a stream wrote to a word.
#[unsafe(no_mangle)]
extern "C" fn collcStandInHostSaw(at: u64) -> Code {
    code(with(Err(Code::UNKNOWN), |driver| driver.host_saw(at)))
}

/// Under a number, a thread tells what it knows (`gives`), or learns what was told.
#[unsafe(no_mangle)]
extern "C" fn collcStandInHandsOver(token: u64, gives: u32) {
    with((), |driver| driver.hands_over(token, gives != 0));
}

/// Reports call a stream so.
#[unsafe(no_mangle)]
extern "C" fn collcStandInNameStream(stream: u64, name: *const c_char) -> Code {
    at_once("collcStandInNameStream", |driver| {
        let (stream, name) = (driver.stream(stream)?, get_text(name)?);
        driver.streams.entry(stream).and_modify(|stream| stream.label = name);
        Ok(())
    })
}
