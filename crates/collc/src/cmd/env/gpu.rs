//! Devices, as the one door to them tells.

use super::size;
use coll_gpu::Probe;
use serde::Serialize;

/// What is there, or why there is nothing.
#[derive(Serialize)]
pub(super) struct Found {
    /// The door's message where there are no devices.
    error: Option<String>,
    /// The newest CUDA that the driver serves.
    driver: Option<String>,
    /// NVRTC's version; none where it is not found. Built-in operators do without.
    nvrtc: Option<String>,
    devices: Vec<Device>,
}

#[derive(Serialize)]
struct Device {
    number: u32,
    name: String,
    pci: String,
    capability: String,
    processors: u32,
    memory_bytes: u64,
    free_bytes: u64,
    /// Devices whose memory it can read.
    reaches: Vec<u32>,
}

impl Found {
    pub(super) fn here() -> Found {
        match coll_gpu::probe() {
            Ok(probe) => Found::of(&probe),
            Err(error) => {
                Found { error: Some(error.to_string()), driver: None, nvrtc: None, devices: Vec::new() }
            }
        }
    }

    fn of(probe: &Probe) -> Found {
        let device = |found: &coll_gpu::DeviceFound| Device {
            number: found.number,
            name: found.name.clone(),
            pci: found.pci.clone(),
            capability: format!("{}.{}", found.capability.0, found.capability.1),
            processors: found.processors,
            memory_bytes: found.memory_bytes,
            free_bytes: found.free_bytes,
            reaches: probe
                .reaches
                .iter()
                .filter(|(from, _)| *from == found.number)
                .map(|(_, to)| *to)
                .collect(),
        };
        Found {
            error: None,
            driver: Some(probe.driver.to_string()),
            nvrtc: probe.nvrtc.as_ref().ok().map(ToString::to_string),
            devices: probe.devices.iter().map(device).collect(),
        }
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        if let Some(error) = &self.error {
            return vec![error.clone()];
        }
        let version = |found: &Option<String>| found.clone().unwrap_or("not found".to_string());
        let mut lines = vec![
            format!("driver for CUDA {}", version(&self.driver)),
            format!("NVRTC, for operators of one's own: {}", version(&self.nvrtc)),
        ];
        for device in &self.devices {
            let reaches = match &device.reaches[..] {
                [] => "reaches no other".to_string(),
                some => format!("reaches {}", some.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
            };
            lines.push(format!(
                "device {}: {}, at {}, compute capability {}, {} multiprocessors, {} of memory ({} free), {reaches}",
                device.number,
                device.name,
                device.pci,
                device.capability,
                device.processors,
                size(device.memory_bytes),
                size(device.free_bytes),
            ));
        }
        lines
    }
}
