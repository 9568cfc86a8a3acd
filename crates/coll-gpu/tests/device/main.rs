//! Plans on the devices that are there. Where there is none each test says so and passes: `tests/gpu/device.sh` is the way to run
//! them where there is one. So that they are known to work before, `stand_in` runs all of them on the driver without a device.
#![allow(clippy::print_stdout)]

mod marks;
mod processes;
mod schedules;
mod stand_in;
mod streams;
mod support;

/// The door's answer, alone: the script asks for it first.
#[test]
fn door() {
    if let Some(found) = support::devices() {
        for device in &found.devices {
            println!("device {}: {}, {:?}", device.number, device.name, device.capability);
        }
        println!("CUDA {}, devices that reach each other: {:?}", found.driver, found.reaches);
    }
}
