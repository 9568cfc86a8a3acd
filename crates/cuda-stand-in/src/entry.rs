//! The driver's functions, as C calls them. Each is a line or a few: what it is given goes to the driver, and what comes of it
//! out. All pointers that callers hand in are read and written through the functions of this file: hence `unsafe`.
//!
//! What is missing is simply not there: bindings look functions up when they are first called.

#![allow(unsafe_code)]
#![allow(non_snake_case)]

mod context;
mod control;
mod copy;
mod device;
mod error;
mod event;
mod graph;
mod ipc;
mod memory;
mod module;
mod stream;

use crate::code::{Answer, Code};
use crate::driver::{Driver, Held, WITHIN};
use crate::wait::{Wait, make_room};
use std::ffi::{CStr, c_char};

/// Functions that do not wait: `fn NAME(ARGUMENTS) => |driver| …;`.
macro_rules! api {
    ($($(#[$note:meta])* fn $name:ident($($argument:ident: $kind:ty),* $(,)?) => $body:expr;)*) => {$(
        $(#[$note])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind),*) -> $crate::code::Code {
            $crate::entry::at_once(stringify!($name), $body)
        }
    )*};
}

/// Functions that wait: `fn NAME(ARGUMENTS) => |driver| what to wait for, |driver| what to do then;`.
macro_rules! waiting_api {
    ($($(#[$note:meta])* fn $name:ident($($argument:ident: $kind:ty),* $(,)?) => $first:expr, $then:expr;)*) => {$(
        $(#[$note])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind),*) -> $crate::code::Code {
            $crate::entry::waiting(stringify!($name), $first, $then)
        }
    )*};
}

use {api, waiting_api};

/// Functions that need no `cuInit` before them.
const BEFORE: [&str; 4] = ["cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"];

/// The driver, if the function may be called now.
fn open(name: &'static str) -> Answer<Held> {
    let mut held = Held::take();
    let driver = held.driver()?;
    driver.calling = name;
    driver.called_from(crate::driver::thread());
    if WITHIN.get().is_some() {
        return Err(driver.wrong(Code::NOT_PERMITTED, "a host function may not call the driver"));
    }
    if let Some(code) = driver.fails(name) {
        return Err(code);
    }
    if !driver.initialised && !BEFORE.contains(&name) {
        return Err(driver.wrong(Code::NOT_INITIALIZED, "cuInit was not called"));
    }
    Ok(held)
}

fn code(answer: Answer) -> Code {
    answer.err().unwrap_or(Code::SUCCESS)
}

fn at_once(name: &'static str, body: impl FnOnce(&mut Driver) -> Answer) -> Code {
    let body = || {
        let mut held = open(name)?;
        body(held.driver()?)?;
        make_room(held)
    };
    code(body())
}

fn waiting(
    name: &'static str,
    first: impl FnOnce(&mut Driver) -> Answer<Wait>,
    then: impl FnOnce(&mut Driver) -> Answer,
) -> Code {
    let body = || {
        let mut held = open(name)?;
        let wait = first(held.driver()?)?;
        let (mut held, answer) = wait.wait(held);
        answer?;
        let driver = held.driver()?;
        driver.calling = name;
        then(driver)
    };
    code(body())
}

/// A result put where the caller wants it.
fn put<T>(at: *mut T, value: T) -> Answer {
    if at.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: by the interface, a pointer that is not null has room for the result.
    unsafe { at.write_unaligned(value) };
    Ok(())
}

/// An argument that is behind a pointer.
fn get<T: Copy>(at: *const T) -> Answer<T> {
    if at.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: by the interface, a pointer that is not null points to an argument.
    Ok(unsafe { at.read_unaligned() })
}

/// Some arguments behind a pointer.
fn get_all<T: Copy>(at: *const T, count: usize) -> Answer<Vec<T>> {
    (0..count).map(|place| get(at.wrapping_add(place))).collect()
}

/// A name behind a pointer.
fn get_text(at: *const c_char) -> Answer<String> {
    if at.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: by the interface, it ends with a NUL.
    Ok(unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

/// As much of a text as there is room for, and a NUL.
fn put_text(at: *mut c_char, room: usize, text: &str) -> Answer {
    if at.is_null() || room == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let bytes = &text.as_bytes()[..text.len().min(room - 1)];
    crate::space::write(at as u64, bytes);
    put(at.wrapping_add(bytes.len()), 0)
}

/// Calls a function that a caller enqueued.
pub(crate) fn host_function(stream: u64, function: usize, data: usize) {
    WITHIN.set(Some(stream));
    // SAFETY: the caller said that it is a function of this kind, to be called with that.
    let function: extern "C" fn(usize) = unsafe { std::mem::transmute(function) };
    function(data);
    WITHIN.set(None);
}
