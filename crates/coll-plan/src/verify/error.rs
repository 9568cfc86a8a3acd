//! What does not fit, told so that a person can find it.

use crate::{OpId, codes};
use coll_base::{Code, Diagnostic};
use std::fmt;

/// The first thing in a plan that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The kind.
    pub code: Code,
    /// The rank whose part it is in.
    pub rank: Option<u32>,
    /// The operation.
    pub op: Option<OpId>,
    /// The field, as a path: `target[0].block`.
    pub field: String,
    /// What would fit.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl PlanError {
    pub(super) fn new(
        code: Code,
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl ToString,
    ) -> PlanError {
        let (field, expected, found) = (field.into(), expected.into(), found.to_string());
        PlanError { code, rank: None, op: None, field, expected, found }
    }

    pub(super) fn on_rank(self, rank: u32) -> PlanError {
        PlanError { rank: Some(rank), ..self }
    }

    pub(super) fn in_op(self, op: usize) -> PlanError {
        PlanError { op: Some(op as OpId), ..self }
    }

    /// Where it is: `rank 2, op 5: target[0].block`.
    pub fn place(&self) -> String {
        let rank = self.rank.map(|rank| format!("rank {rank}")).unwrap_or_default();
        let op = self.op.map(|op| format!(", op {op}")).unwrap_or_default();
        let colon = if rank.is_empty() { "" } else { ": " };
        format!("{rank}{op}{colon}{}", self.field)
    }

    /// The same as a message to the user.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::unplaced(self.code, format!("{} does not fit", self.place()))
            .expected(self.expected.clone())
            .found(self.found.clone())
            .help(way_out(self.code))
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {} [{}]", self.place(), self.expected, self.found, self.code)
    }
}

impl std::error::Error for PlanError {}

fn way_out(code: Code) -> &'static str {
    match code {
        codes::CONTRACT_TABLE => {
            "write the contract's tables anew from the collective, for this number of ranks"
        }
        codes::HEADER => {
            "cuts ascend from 0 to 1, channels are at least 1, the root is a rank; leave `origin` and `proof` as the compiler wrote them"
        }
        codes::RANK_TABLE => {
            "lanes follow each other and cover the operations; runs stay within their tables"
        }
        codes::LINK => "name another rank of this plan and a channel below `channels`",
        codes::REGION => {
            "read `.in` of given blocks, write `.out` of ensured blocks and `.tmp` of others; declare each slot shape"
        }
        codes::SIDES => "list as many regions, of the same class and pieces, on every side of the operation",
        codes::WAIT => "wait only for other operations of the rank that do not themselves wait for this one",
        codes::CHANGED => {
            "take the lines `origin` and `proof` out: then it is proved as it stands; or compile the schedule anew"
        }
        _ => "let `along` name the one receive whose target is this send's source, or wait with `after`",
    }
}
