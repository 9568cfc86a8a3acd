//! Plans on devices, without one: stream work as data, on the stand-in driver, and where there is no driver at all.
#![allow(clippy::print_stdout)]

mod by_name;
mod capture;
mod devices;
mod door;
mod lost;
mod machines;
mod mutation;
mod operators;
mod processes;
mod stream_plan;
mod support;
mod words;
