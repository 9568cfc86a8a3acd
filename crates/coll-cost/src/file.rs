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
    /// What `coll` has found out by these constants: of no meaning here.
    answers: Option<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    transports: Vec<Constants>,
    /// In hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers: Option<String>,
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
        Tuning { transports: shipped::all(), answers: None }
    }

    /// A transport's constants, if it is known.
    pub fn of(&self, transport: &str) -> Option<&Constants> {
        self.transports.iter().find(|constants| constants.transport == transport)
    }

    /// The transports that have constants.
    pub fn transports(&self) -> impl Iterator<Item = &str> {
        self.transports.iter().map(|constants| constants.transport.as_str())
    }

    /// What was found out by these constants, if it came with them: for whoever made it to read.
    pub fn answers(&self) -> Option<&[u8]> {
        self.answers.as_deref()
    }

    /// The same constants, with what was found out by them.
    pub fn with_answers(self, answers: Vec<u8>) -> Tuning {
        Tuning { answers: Some(answers), ..self }
    }

    /// Takes a transport's constants in place of what was known of it. What was found out by others goes.
    pub fn set(&mut self, constants: Constants) {
        self.answers = None;
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
        if let Some(digits) = &file.answers {
            let damaged = || ConstantsError::Damaged("`answers` are no hexadecimal digits".into());
            tuning.answers = Some(bytes(digits).ok_or_else(damaged)?);
        }
        Ok(tuning)
    }

    /// The text of a file that holds what was measured, and nothing that is shipped.
    pub fn to_json(&self) -> String {
        let measured = self.transports.iter().filter(|constants| constants.fit.is_some());
        let digits = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = File {
            format: FORMAT.into(),
            version: VERSION,
            transports: measured.cloned().collect(),
            answers: self.answers.as_ref().map(digits),
        };
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

/// What two hexadecimal digits a byte stand for.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let [high, low] = *pair else { return None };
        let digit = |digit: u8| char::from(digit).to_digit(16);
        Some((digit(high)? << 4 | digit(low)?) as u8)
    };
    pairs.map(byte).collect()
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
        assert!(!tuning.to_json().contains("answers"));
    }

    #[test]
    fn what_was_measured_is_read_as_it_was_bit_for_bit() {
        let mut tuning = Tuning::shipped();
        let shm = tuning.of("shm").unwrap().clone();
        let fit = Fit { ranks: vec![2], cores: 2, probes: 40, error_factor: 1.2 + 1.0 / 30_001.0 };
        for number in 1..200u32 {
            // Numbers with all the digits that there are.
            let odd = f64::from(number) / 7.0;
            let measured = Constants {
                send_us: odd,
                wake_us: 1e-7 * odd,
                switch_us: 1e3 / odd,
                fit: Some(fit.clone()),
                ..shm.clone()
            };
            tuning.set(measured.rounded());
            let read = Tuning::from_json(&tuning.to_json()).unwrap();
            assert_eq!(read.fingerprint(), tuning.fingerprint(), "{odd}");
            let told = read.of("shm").unwrap().send_us;
            assert!((told / odd - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn what_was_found_out_stays_with_the_constants_that_it_was_found_by() {
        let mut tuning = measured().with_answers(vec![0, 0x7f, 0xa5, 0xff]);
        assert_eq!(tuning.fingerprint(), measured().fingerprint(), "it follows from them");
        let text = tuning.to_json();
        assert_eq!(Tuning::from_json(&text).unwrap().answers(), Some(&[0, 0x7f, 0xa5, 0xff][..]));
        for damaged in ["007fa5f", "007fa5fg", "+07fa5ff"] {
            let error = Tuning::from_json(&text.replace("007fa5ff", damaged)).unwrap_err().to_string();
            assert!(error.contains("`answers`"), "{damaged}: {error}");
        }
        tuning.set(tuning.of("tcp").unwrap().clone());
        assert_eq!(tuning.answers(), None);
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
