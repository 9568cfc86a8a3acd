//! The file that `collc tune` writes: constants of some transports, as JSON. What it does not hold is as shipped.

use crate::{Constants, shipped};
use serde::{Deserialize, Serialize};

/// What the file claims to be.
const FORMAT: &str = "collc constants";
/// The version that this code writes and reads.
const VERSION: u32 = 1;

/// Constants of every transport that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    transports: Vec<Constants>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    transports: Vec<Constants>,
}

/// Why a text holds no constants that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantsError {
    /// Not JSON of the right shape.
    #[error("it holds no constants, or damaged ones: {0}")]
    Damaged(String),
    /// Of another version.
    #[error(
        "its format version is {found}, and this program reads version {VERSION}; `collc tune` writes a new one"
    )]
    Version {
        /// The version found.
        found: u64,
    },
    /// A value that no machine has.
    #[error("transport `{transport}`: {what}; `collc tune` measures it anew")]
    Value {
        /// Whose constants.
        transport: String,
        /// The field and its value.
        what: String,
    },
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning::shipped()
    }
}

impl Tuning {
    /// The constants that come with collc.
    pub fn shipped() -> Tuning {
        Tuning { transports: shipped::all() }
    }

    /// A transport's constants, if it is known.
    pub fn of(&self, transport: &str) -> Option<&Constants> {
        self.transports.iter().find(|constants| constants.transport == transport)
    }

    /// The transports that have constants.
    pub fn transports(&self) -> impl Iterator<Item = &str> {
        self.transports.iter().map(|constants| constants.transport.as_str())
    }

    /// Takes a transport's constants in place of what was known of it.
    pub fn set(&mut self, constants: Constants) {
        self.transports.retain(|known| known.transport != constants.transport);
        self.transports.push(constants);
    }

    /// Reads a file's text.
    pub fn from_json(text: &str) -> Result<Tuning, ConstantsError> {
        let damaged = |error: serde_json::Error| ConstantsError::Damaged(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(damaged)?;
        if value.get("format").and_then(serde_json::Value::as_str) != Some(FORMAT) {
            let what = format!("it does not begin with `\"format\": \"{FORMAT}\"`");
            return Err(ConstantsError::Damaged(what));
        }
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        if let Some(found) = version.filter(|&found| found != u64::from(VERSION)) {
            return Err(ConstantsError::Version { found });
        }
        let file: File = serde_json::from_value(value).map_err(damaged)?;
        let mut tuning = Tuning::shipped();
        for constants in file.transports {
            if let Some(what) = constants.fault() {
                return Err(ConstantsError::Value { transport: constants.transport, what });
            }
            tuning.set(constants);
        }
        Ok(tuning)
    }

    /// The text of a file that holds what was measured, and nothing that is shipped.
    pub fn to_json(&self) -> String {
        let measured = self.transports.iter().filter(|constants| constants.fit.is_some());
        let file = File { format: FORMAT.into(), version: VERSION, transports: measured.cloned().collect() };
        serde_json::to_string_pretty(&file).expect("invariant: constants are plain data") + "\n"
    }

    /// A number that tells constants apart: ranks whose numbers differ may choose differently, so it is compared before
    /// they do.
    pub fn fingerprint(&self) -> u64 {
        let bytes = serde_json::to_vec(&self.transports).expect("invariant: constants are plain data");
        // FNV-1a: a difference is to be noticed, not an adversary.
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fit;

    fn measured() -> Tuning {
        let mut tuning = Tuning::shipped();
        let fit = Fit { ranks: vec![2, 4], cores: 2, probes: 12, error_factor: 1.125 };
        let tcp = tuning.of("tcp").unwrap().clone();
        tuning.set(Constants { send_us: 3.5, fit: Some(fit), ..tcp });
        tuning
    }

    #[test]
    fn what_is_written_is_read() {
        let tuning = measured();
        let read = Tuning::from_json(&tuning.to_json()).unwrap();
        assert_eq!(read, tuning);
        assert_eq!(read.fingerprint(), tuning.fingerprint());
        assert_ne!(read.fingerprint(), Tuning::shipped().fingerprint());
    }

    #[test]
    fn a_damaged_file_is_one_clear_message() {
        let text = measured().to_json();
        let cases = [
            ("", "damaged"),
            ("{}", "does not begin with"),
            (&text[..text.len() / 2], "damaged"),
            (&text.replace("\"version\": 1", "\"version\": 7"), "version is 7"),
            (&text.replace("3.5", "-3.5"), "`send_us` is -3.5"),
            (&text.replace("send_us", "sent_us"), "sent_us"),
        ];
        for (text, expected) in cases {
            let error = Tuning::from_json(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
