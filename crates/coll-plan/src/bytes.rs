//! The binary form: `COLLPLAN`, the format's version, the body's length, the SHA-256 of the body, the body
//! (postcard). Numbers of the frame are little-endian.
//!
//! A file that is cut short, damaged, of another version or no plan at all is told apart, and what is read has been
//! verified. Memory is bounded by a multiple of the input's size: lengths in the body are believed only as far as
//! the bytes that follow go.

use crate::{Plan, PlanError, normal_form, verify};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// The newest version of a plan's forms. Plans that say nothing which is new in it are written in an older one, so that
/// who knows no newer one can read them: see [`version`].
pub const FORMAT_VERSION: u32 = 4;

/// The version before placements: of plans without one, every form is the same in both.
const PLAIN_VERSION: u32 = 3;

/// The oldest version whose text and JSON are read: what came later is left out there.
pub(crate) const READABLE_VERSION_MIN: u32 = 2;

/// The first bytes of a binary plan.
pub const MAGIC: &[u8; 8] = b"COLLPLAN";
const FRAME_SIZE_BYTES: usize = 8 + 4 + 8 + 32;

/// Why bytes are no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// It begins otherwise.
    #[error(
        "not a compiled plan: expected it to begin with `COLLPLAN`, found {found}; compile the schedule first"
    )]
    NotAPlan {
        /// Its first bytes.
        found: String,
    },
    /// Another version wrote it.
    #[error(
        "plan format version {found}, and this build reads versions {PLAIN_VERSION} to {expected}; compile the schedule anew"
    )]
    ForeignVersion {
        /// The newest that this build reads.
        expected: u32,
        /// What the file says.
        found: u32,
    },
    /// The end is missing.
    #[error(
        "the plan is cut short: expected {expected_bytes} bytes, found {found_bytes}; copy the file again"
    )]
    Truncated {
        /// What the frame needs or announces.
        expected_bytes: u64,
        /// What there is.
        found_bytes: u64,
    },
    /// There is more than was announced.
    #[error(
        "bytes after the plan: expected {expected_bytes} bytes, found {found_bytes}; copy the file again"
    )]
    Trailing {
        /// What the frame announces.
        expected_bytes: u64,
        /// What there is.
        found_bytes: u64,
    },
    /// The body is not what was written.
    #[error(
        "the plan is damaged: expected a body with SHA-256 {expected}, found {found}; copy the file again"
    )]
    Corrupted {
        /// What the frame says.
        expected: String,
        /// What the body has.
        found: String,
    },
    /// The body is intact, and no plan.
    #[error("the plan's body does not read as a plan of format version {version}: {detail}; compile it anew")]
    Malformed {
        /// The format's version.
        version: u32,
        /// What the decoder says.
        detail: String,
    },
    /// It reads as a plan whose tables do not fit each other.
    #[error("the plan does not fit itself: {0}; compile the schedule anew")]
    Invalid(#[from] PlanError),
}

/// The version of a plan's forms: the oldest that can say what it says.
pub fn version(plan: &Plan) -> u32 {
    if plan.placement.is_some() { FORMAT_VERSION } else { PLAIN_VERSION }
}

/// A plan's binary form. The plan has been verified.
pub fn to_bytes(plan: &Plan) -> Vec<u8> {
    let mut body = body(&normal_form(plan));
    let version = version(plan);
    // The placement is the last field, and one byte if there is none: the version before ended without it.
    if version == PLAIN_VERSION {
        body.pop();
    }
    let mut bytes = Vec::with_capacity(FRAME_SIZE_BYTES + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&Sha256::digest(&body));
    bytes.extend_from_slice(&body);
    bytes
}

/// Reads and verifies a binary plan.
///
/// # Errors
/// Whatever is wrong with the bytes, the first thing first.
pub fn from_bytes(bytes: &[u8]) -> Result<Plan, DecodeError> {
    if !bytes.starts_with(MAGIC) {
        // What agrees as far as it goes is cut short; all else is something else.
        if !bytes.is_empty() && MAGIC.starts_with(bytes) {
            return Err(truncated(FRAME_SIZE_BYTES as u64, bytes));
        }
        return Err(DecodeError::NotAPlan { found: beginning(bytes) });
    }
    let Some((version, rest)) = bytes[MAGIC.len()..].split_first_chunk::<4>() else {
        return Err(truncated(FRAME_SIZE_BYTES as u64, bytes));
    };
    let found = u32::from_le_bytes(*version);
    if !(PLAIN_VERSION..=FORMAT_VERSION).contains(&found) {
        return Err(DecodeError::ForeignVersion { expected: FORMAT_VERSION, found });
    }
    let split =
        rest.split_first_chunk::<8>().and_then(|(len, rest)| Some((len, rest.split_first_chunk::<32>()?)));
    let Some((len, (due, body))) = split else {
        return Err(truncated(FRAME_SIZE_BYTES as u64, bytes));
    };
    let expected_bytes = u64::from_le_bytes(*len).saturating_add(FRAME_SIZE_BYTES as u64);
    match expected_bytes.cmp(&(bytes.len() as u64)) {
        std::cmp::Ordering::Greater => return Err(truncated(expected_bytes, bytes)),
        std::cmp::Ordering::Less => {
            return Err(DecodeError::Trailing { expected_bytes, found_bytes: bytes.len() as u64 });
        }
        std::cmp::Ordering::Equal => {}
    }
    let digest = Sha256::digest(body);
    if digest.as_slice() != due {
        return Err(DecodeError::Corrupted { expected: hex(due), found: hex(&digest) });
    }
    let malformed = |detail: String| DecodeError::Malformed { version: found, detail };
    let body = match found {
        PLAIN_VERSION => Cow::Owned([body, &[0]].concat()),
        _ => Cow::Borrowed(body),
    };
    let (plan, rest) =
        postcard::take_from_bytes::<Plan>(&body).map_err(|error| malformed(error.to_string()))?;
    if !rest.is_empty() {
        return Err(malformed(format!("{} bytes are left over", rest.len())));
    }
    verify(&plan)?;
    Ok(plan)
}

/// A plan's name for comparing: hex SHA-256 of its binary body without [`Plan::origin`] and [`Plan::proof`]. Plans that
/// say the same have the same hash, however their tables are laid out and wherever they come from.
pub fn hash(plan: &Plan) -> String {
    let normal = normal_form(plan);
    // The body ends with origin, proof and placement: a byte each for none, so the rest need not be cloned to leave them out.
    let mut body = body(&normal);
    let serialised = "invariant: strings and numbers serialise";
    let tail = postcard::to_stdvec(&(&normal.origin, &normal.proof, &normal.placement)).expect(serialised);
    body.truncate(body.len() - tail.len());
    body.extend([0, 0]);
    if let Some(placement) = &normal.placement {
        body.extend(postcard::to_stdvec(placement).expect(serialised));
    }
    hex(&Sha256::digest(body))
}

fn body(plan: &Plan) -> Vec<u8> {
    postcard::to_stdvec(plan)
        .expect("invariant: a plan is made of numbers, strings and lists of known length")
}

fn truncated(expected_bytes: u64, bytes: &[u8]) -> DecodeError {
    DecodeError::Truncated { expected_bytes, found_bytes: bytes.len() as u64 }
}

fn beginning(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        "nothing".into()
    } else {
        format!("`{}`", bytes[..bytes.len().min(8)].escape_ascii())
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::pair;
    use crate::{Placement, Proof};

    #[test]
    fn what_is_written_reads_back() {
        assert_eq!(from_bytes(&to_bytes(&pair())), Ok(pair()));
    }

    #[test]
    fn the_hash_leaves_origin_and_proof_out_and_sees_all_else() {
        let plan = pair();
        let mut proved = plan.clone();
        proved.proof = Some(Proof::Whole(hash(&plan)));
        assert_eq!(hash(&proved), hash(&plan));
        proved.origin = Some(hash(&plan));
        assert_eq!(hash(&proved), hash(&plan));
        assert_ne!(to_bytes(&proved), to_bytes(&plan));
        proved.claims.ordered = true;
        assert_ne!(hash(&proved), hash(&plan));
        let mut other = plan.clone();
        other.ranks[1].ops[0].step += 1;
        assert_ne!(hash(&other), hash(&plan));
    }

    #[test]
    fn each_kind_of_damage_has_its_own_words() {
        let bytes = to_bytes(&pair());
        let kind = |bytes: &[u8]| from_bytes(bytes).unwrap_err().to_string();
        assert!(kind(b"").starts_with("not a compiled plan"));
        assert!(kind(b"<algo name='ring'>").contains("found `<algo na`"));
        assert!(kind(&bytes[..bytes.len() - 1]).starts_with("the plan is cut short"));
        assert!(kind(&bytes[..5]).starts_with("the plan is cut short"));
        assert!(kind(&[&bytes[..], b"\n"].concat()).starts_with("bytes after the plan"));
        let mut later = bytes.clone();
        later[8] = 5;
        assert!(kind(&later).starts_with("plan format version 5, and this build reads versions 3 to 4"));
        later[8] = 2;
        assert!(kind(&later).starts_with("plan format version 2") && kind(&later).contains("compile"));
        later[8] = 1;
        assert!(kind(&later).contains("plan format version 1") && kind(&later).contains("compile"));
        let mut damaged = bytes.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(kind(&damaged).starts_with("the plan is damaged"));
    }

    fn placed() -> Plan {
        let placement = Placement { topology: "two \"boxes\"".into(), order: vec![5, 2] };
        Plan { placement: Some(placement), ..pair() }
    }

    #[test]
    fn a_placement_reads_back_and_raises_the_version() {
        let bytes = to_bytes(&placed());
        assert_eq!((bytes[8], to_bytes(&pair())[8]), (4, 3));
        assert_eq!(from_bytes(&bytes), Ok(placed()));
        assert_ne!(hash(&placed()), hash(&pair()));
        let mut plain = placed();
        plain.placement = None;
        assert_eq!(to_bytes(&plain), to_bytes(&pair()));
    }

    #[test]
    fn a_plan_of_the_version_before_ends_before_its_placement() {
        let bytes = to_bytes(&pair());
        let mut longer = super::body(&pair());
        assert_eq!(longer.pop(), Some(0));
        assert_eq!(bytes[FRAME_SIZE_BYTES..], longer);
        // And says so: with the byte for none it is no body of that version.
        let found = from_bytes(&framed(&super::body(&pair()))).unwrap_err();
        assert!(matches!(found, DecodeError::Malformed { version: 3, .. }), "{found}");
    }

    /// A frame that is right about any body of the version before placements.
    fn framed(body: &[u8]) -> Vec<u8> {
        let len = (body.len() as u64).to_le_bytes();
        [MAGIC.as_slice(), &PLAIN_VERSION.to_le_bytes(), &len, &Sha256::digest(body), body].concat()
    }

    #[test]
    fn every_byte_of_the_file_flipped_is_an_error() {
        let bytes = to_bytes(&pair());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(from_bytes(&flipped).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn every_byte_of_the_body_changed_under_a_right_frame_is_an_error_or_a_sound_plan() {
        let mut body = super::body(&pair());
        body.pop();
        let mut sound = 0;
        for at in 0..body.len() {
            for byte in [0, 1, 2, 0x7f, 0x80, 0xff, body[at] ^ 1, body[at].wrapping_add(1)] {
                let mut changed = body.clone();
                changed[at] = byte;
                if let Ok(plan) = from_bytes(&framed(&changed)) {
                    assert_eq!(verify(&plan), Ok(()));
                    assert_eq!(from_bytes(&to_bytes(&plan)).unwrap(), *normal_form(&plan));
                    sound += 1;
                }
            }
        }
        assert!(sound > 0, "names and numbers of lines may change");
    }

    #[test]
    fn a_claim_of_many_elements_costs_no_memory() {
        // An empty name, then parameters: a claim of 2^32 - 1 of them.
        let body = [0, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert!(matches!(from_bytes(&framed(&body)), Err(DecodeError::Malformed { .. })));
    }
}
