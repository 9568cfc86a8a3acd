//! The JSON form, for other programs: `{"format": "collc plan", "version": 3, "plan": {…}}`; 4 with a placement.

use crate::bytes::{FORMAT_VERSION, READABLE_VERSION_MIN, version};
use crate::{Plan, PlanError, normal_form, verify};
use serde::{Deserialize, Serialize};

const FORMAT: &str = "collc plan";

/// Why JSON is no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// It is no JSON, or other fields than a plan's. Names line and column.
    #[error("not the JSON of a plan: {0}; `collc compile --emit json` writes one")]
    Malformed(#[from] serde_json::Error),
    /// It says that it is something else.
    #[error(
        "expected the format `{FORMAT}`, version {READABLE_VERSION_MIN} to {FORMAT_VERSION}, found `{format}`, version {version}"
    )]
    Foreign {
        /// What it says it is.
        format: String,
        /// And which version.
        version: u32,
    },
    /// Its tables do not fit each other.
    #[error("the plan does not fit itself: {0}; compile the schedule anew")]
    Invalid(#[from] PlanError),
}

#[derive(Serialize)]
struct Written<'a> {
    format: &'a str,
    version: u32,
    plan: &'a Plan,
}

#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u32,
    plan: Plan,
}

/// A plan as JSON. The plan has been verified.
pub fn to_json(plan: &Plan) -> String {
    let written = Written { format: FORMAT, version: version(plan), plan: &normal_form(plan) };
    serde_json::to_string_pretty(&written)
        .expect("invariant: a plan has string keys only, and writing to memory works")
}

/// Reads and verifies a plan in JSON.
///
/// # Errors
/// If it is no JSON, no plan, of another version, or does not fit itself.
pub fn from_json(text: &str) -> Result<Plan, JsonError> {
    let head: Head = serde_json::from_str(text)?;
    if head.format != FORMAT || !(READABLE_VERSION_MIN..=FORMAT_VERSION).contains(&head.version) {
        return Err(JsonError::Foreign { format: head.format, version: head.version });
    }
    let read: Read = serde_json::from_str(text)?;
    verify(&read.plan)?;
    Ok(read.plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::pair;

    #[test]
    fn what_is_written_reads_back() {
        assert_eq!(from_json(&to_json(&pair())).unwrap(), pair());
    }

    #[test]
    fn what_an_earlier_version_wrote_is_read() {
        let earlier = to_json(&pair()).replace("\"version\": 3", "\"version\": 2");
        let earlier = earlier.replacen("    \"accumulate\": null,\n    \"wire\": null,\n", "", 1);
        assert!(!earlier.contains("accumulate") && !earlier.contains("wire"));
        assert_eq!(from_json(&earlier).unwrap(), pair());
    }

    #[test]
    fn errors_name_what_was_found() {
        let words = |text: &str| from_json(text).unwrap_err().to_string();
        let json = to_json(&pair());
        assert!(words("rank 0").contains("line 1 column 1"));
        assert!(words(&json.replace("\"version\": 3", "\"version\": 7")).ends_with("version 7"));
        assert!(
            words(&json.replacen("\"channels\": 1", "\"channels\": 0", 1))
                .contains("channels: expected 1 to 1024")
        );
        assert!(words(&json.replacen("\"channels\"", "\"chanels\"", 1)).contains("missing field `channels`"));
    }
}
