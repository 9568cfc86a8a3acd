//! What a plan says of its own proof: what was found besides that it keeps its contract, and on what a slice rests.
//!
//! A whole plan is proved again by whoever loads it, so what it says of itself is checked and not believed. A slice
//! cannot be proved by itself; it names the proof that it rests on. Either the whole was compiled and proved, and the
//! slice has its hash. Or the slice was made alone: then the schedule was proved on other rank counts, on which the way
//! it was made was compared with cutting the whole, and the slice names these counts.
//!
//! [`crate::Plan::origin`] is what slices of one plan have in common, however they were made.

use crate::bytes::hex;
use crate::{Plan, PlanError, codes};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// What was proved of a plan besides its contract. What is not claimed may hold all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Every reduction keeps the operands in the contract's order, so that operators that do not commute are served.
    pub ordered: bool,
    /// Ranks that end with one reduced value have all made it by one reduction tree, but for the sides of its
    /// operands: they end with the same bits under every operator that commutes in bits.
    pub same_reduction_tree: bool,
}

impl Claims {
    /// What both claim.
    pub fn and(self, other: Claims) -> Claims {
        Claims {
            ordered: self.ordered && other.ordered,
            same_reduction_tree: self.same_reduction_tree && other.same_reduction_tree,
        }
    }
}

/// The proof that a plan, or a slice of it, rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    /// The whole plan of this [hash](crate::hash) was proved. In a whole plan, its own hash: it says that nothing was
    /// changed since.
    Whole(String),
    /// The slice was made alone.
    Reference(Reference),
}

/// A proof by reference: the whole was proved on other rank counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Hex SHA-256 over the plan's origin and the counts.
    pub hash: String,
    /// Rank counts, each with its root, on which the whole was proved and each of its slices was found to be what
    /// making it alone yields. At least one.
    pub counts: Vec<(u32, u32)>,
}

impl Reference {
    /// The proof of what has this origin on these counts.
    pub fn new(origin: &str, counts: Vec<(u32, u32)>) -> Reference {
        Reference { hash: Reference::hash_of(origin, &counts), counts }
    }

    pub(crate) fn hash_of(origin: &str, counts: &[(u32, u32)]) -> String {
        let mut hasher = Sha256::new();
        hasher.update(b"collc proof by reference\n");
        hasher.update(origin.as_bytes());
        for (ranks, root) in counts {
            hasher.update(format!("\n{ranks} {root}").as_bytes());
        }
        hex(&hasher.finalize())
    }
}

/// Checks that a whole plan which says of what hash it was proved still has that hash. A plan that says nothing of the
/// kind is as good as any: it is proved as it stands.
///
/// # Errors
/// If its content is another than the hash's. Without this, two plans with one origin could differ.
pub fn unchanged(plan: &Plan) -> Result<(), PlanError> {
    let due = match &plan.proof {
        Some(Proof::Whole(due)) if plan.is_whole() => due,
        _ => return Ok(()),
    };
    let found = crate::hash(plan);
    match found == *due {
        true => Ok(()),
        false => Err(PlanError {
            code: codes::CHANGED,
            rank: None,
            op: None,
            field: "proof".into(),
            expected: format!("a plan of hash {due}, as it was proved"),
            found: format!("one of hash {found}"),
        }),
    }
}

impl fmt::Display for Proof {
    /// `of the whole plan 1f2e…`, or `of 13, 14, 15 and 16 ranks 1f2e…`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::Whole(hash) => write!(f, "of the whole plan {}", start(hash)),
            Proof::Reference(Reference { hash, counts }) => {
                let counts: Vec<String> = counts.iter().map(|(ranks, _)| ranks.to_string()).collect();
                let words = match counts.split_last() {
                    Some((last, [])) => last.clone(),
                    Some((last, before)) => format!("{} and {last}", before.join(", ")),
                    None => "no".into(),
                };
                write!(f, "of {words} ranks {}", start(hash))
            }
        }
    }
}

fn start(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}
