//! Why a run cannot be predicted.

use crate::stuck::BlockedStep;
use coll_contract::CountsError;
use std::fmt;

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq)]
pub enum SimError {
    /// Some ranks' parts are not there.
    NotWhole {
        /// Parts that are there.
        found: u32,
        /// Ranks of the plan.
        world: u32,
    },
    /// More operations than are counted.
    TooManyOps {
        /// Operations of all ranks.
        found: u64,
    },
    /// A size that the contract does not take.
    Bytes(CountsError),
    /// Fewer devices than ranks.
    TooFewDevices {
        /// The network.
        network: String,
        /// Its devices, or those that are listed.
        devices: u32,
        /// Ranks of the plan.
        ranks: u32,
    },
    /// A rank on a device that does not exist.
    NoDevice {
        /// The rank.
        rank: u32,
        /// The device's number.
        device: u32,
        /// How many there are.
        devices: u32,
    },
    /// Two ranks on one device.
    DeviceTwice {
        /// Its name.
        device: String,
    },
    /// A number of the network that is no time or rate.
    Constant {
        /// The device or link.
        what: String,
        /// Which number of it.
        field: String,
        /// What it is.
        value: f64,
    },
    /// Two devices that talk, with no way between them.
    NoWay {
        /// The sender.
        from: String,
        /// The receiver.
        to: String,
    },
    /// Nothing can happen any more, and these are not over.
    Stuck(Vec<BlockedStep>),
}

/// The most steps that a message lists.
const SHOWN_MAX: usize = 12;

impl SimError {
    /// The way out, if there is one to name.
    pub fn help(&self) -> Option<String> {
        match self {
            SimError::NotWhole { .. } => Some("give a whole plan, or compile the schedule here".into()),
            SimError::TooFewDevices { devices, .. } => Some(format!("take at most {devices} ranks")),
            SimError::Stuck(_) => Some("more message slots may help: `--slots N`".into()),
            _ => None,
        }
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::NotWhole { found, world } => {
                write!(f, "the plan is for {world} ranks, and the parts of {found} are here")
            }
            SimError::TooManyOps { found } => {
                write!(f, "the plan has {found} operations; at most {} are simulated", u32::MAX - 1)
            }
            SimError::Bytes(error) => error.fmt(f),
            SimError::TooFewDevices { network, devices, ranks } => {
                write!(f, "`{network}` gives {devices} devices to {ranks} ranks")
            }
            SimError::NoDevice { rank, device, devices } => {
                write!(
                    f,
                    "rank {rank} is placed on device {device}; there are devices 0 to {}",
                    devices.saturating_sub(1)
                )
            }
            SimError::DeviceTwice { device } => write!(f, "two ranks are placed on `{device}`"),
            SimError::Constant { what, field, value } => write!(f, "the {field} of `{what}` is {value}"),
            SimError::NoWay { from, to } => write!(f, "there is no way from `{from}` to `{to}`"),
            SimError::Stuck(blocked) => {
                let count = blocked.len();
                write!(
                    f,
                    "nothing can go on, and {count} lane{} blocked:",
                    if count == 1 { " is" } else { "s are" }
                )?;
                blocked.iter().take(SHOWN_MAX).try_for_each(|step| write!(f, "\n  {step}"))?;
                match count.saturating_sub(SHOWN_MAX) {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for SimError {}
