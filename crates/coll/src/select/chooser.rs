//! Chooses, and says why.

use super::candidates::Candidate;
use super::family::{Known, Member, Runs, family};
use super::forced::Forced;
use super::question::Question;
use super::table::Table;
use coll_base::DType;
use coll_cost::{Layout, Tuning};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Chooses schedules by what they are predicted to take. It may be shared between threads.
pub struct Chooser {
    tuning: Tuning,
    forced: Forced,
    families: Mutex<BTreeMap<FamilyKey, Arc<Vec<Member>>>>,
    tables: Mutex<BTreeMap<TableKey, Arc<Table>>>,
}

type FamilyKey = (&'static str, u32, u32, Layout);
type TableKey = (FamilyKey, DType, [bool; 5], &'static str);

/// What is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The schedule with its parameters; [`Candidate::prove`] makes its plan.
    pub candidate: Candidate,
    /// What it is predicted to take, in microseconds.
    pub predicted_us: f64,
}

/// A candidate that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Considered {
    /// The schedule with its parameters.
    pub candidate: Candidate,
    /// What it would take, in microseconds, if it can run on so many ranks.
    pub predicted_us: Option<f64>,
    /// Messages on its longest chain, if it can run.
    pub steps: Option<u32>,
    /// Bytes that its busiest rank sends, as a share of the buffer's, if it can run.
    pub sent_share: Option<f64>,
    /// Whether it is taken, and why not.
    pub standing: Standing,
}

/// Why a candidate is taken or passed over.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// It is the cheapest.
    Taken,
    /// The user insists on it.
    Forced,
    /// It takes so many times as long as what is taken.
    Slower(f64),
    /// It is faster at this very size, by this factor, and what is taken is so for the interval of sizes around it.
    Rounded(f64),
    /// It is not as near to the cheapest over all sizes, of which one schedule must serve all.
    Unsteady,
    /// It cannot serve, in words that follow its name.
    Barred(String),
}

/// Why nothing can be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// No constants for the transport.
    #[error("no constants are known for transport `{transport}`; there are those of {known}")]
    Transport {
        /// The transport.
        transport: String,
        /// The transports that are known.
        known: String,
    },
    /// The root is no rank.
    #[error("root {root} is no rank among {ranks}")]
    Root {
        /// The root.
        root: u32,
        /// The ranks.
        ranks: u32,
    },
    /// What the user insists on cannot serve.
    #[error("{candidate} is to be taken, and cannot serve: it {reason}")]
    Forced {
        /// The schedule.
        candidate: String,
        /// Why not.
        reason: String,
    },
    /// No schedule of the operation can serve.
    #[error("no schedule of {operation} can serve on {ranks} ranks: {reasons}")]
    Nothing {
        /// The operation.
        operation: String,
        /// The ranks.
        ranks: u32,
        /// Each schedule with its reason.
        reasons: String,
    },
}

impl Chooser {
    /// Chooses by these constants.
    pub fn new(tuning: Tuning) -> Chooser {
        Chooser { tuning, forced: Forced::default(), families: Mutex::default(), tables: Mutex::default() }
    }

    /// Takes these schedules for their operations, whatever they cost.
    pub fn with_forced(self, forced: Forced) -> Chooser {
        Chooser { forced, tables: Mutex::default(), families: Mutex::default(), ..self }
    }

    /// The constants.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// A number that tells choosers apart that may choose differently: of constants and forced schedules.
    pub fn fingerprint(&self) -> u64 {
        let forced = format!("{:?}", self.forced);
        forced.bytes().fold(self.tuning.fingerprint(), |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The schedule for a call.
    pub fn choose(&self, question: &Question) -> Result<Choice, ChooseError> {
        let table = self.table(question)?;
        let at = table.index(question.bytes);
        let predicted_us = table.predict_us(at, question.bytes).unwrap_or(0.0);
        Ok(Choice { candidate: table.members[at].candidate.clone(), predicted_us })
    }

    /// The answers for calls that differ from this one in size alone: what a communicator keeps for each kind of call.
    pub fn table(&self, question: &Question) -> Result<Arc<Table>, ChooseError> {
        let key = (
            family_key(question),
            question.dtype,
            [
                question.commutative,
                question.user_operator,
                question.unequal_blocks,
                question.own_blocks_only,
                question.deterministic,
            ],
            question.transport,
        );
        if let Some(table) = lock(&self.tables).get(&key) {
            return Ok(table.clone());
        }
        let table = Arc::new(self.make(question)?);
        lock(&self.tables).insert(key, table.clone());
        Ok(table)
    }

    /// Every candidate with its standing, what is taken first, then by time.
    pub fn explain(&self, question: &Question) -> Result<Vec<Considered>, ChooseError> {
        let table = self.table(question)?;
        let taken = table.index(question.bytes);
        let taken_us = table.predict_us(taken, question.bytes).unwrap_or(0.0);
        let forced = self.forced.of(question.operation).is_some();
        let mut all: Vec<Considered> = Vec::new();
        for (at, member) in table.members.iter().enumerate() {
            let predicted_us = table.predict_us(at, question.bytes);
            let standing = match (&table.barred[at], predicted_us) {
                (Some(reason), _) => Standing::Barred(reason.clone()),
                _ if at == taken && forced => Standing::Forced,
                _ if at == taken => Standing::Taken,
                (None, Some(us)) if us >= taken_us => Standing::Slower(us / taken_us),
                (None, _) if question.deterministic => Standing::Unsteady,
                (None, us) => Standing::Rounded(taken_us / us.unwrap_or(taken_us)),
            };
            let runs = match &member.known {
                Known::Runs(runs) => Some(&**runs),
                Known::Not(_) => None,
            };
            all.push(Considered {
                candidate: member.candidate.clone(),
                predicted_us,
                steps: runs.map(Runs::steps),
                sent_share: runs.map(Runs::sent_share),
                standing,
            });
        }
        let rank = |c: &Considered| match c.standing {
            Standing::Taken | Standing::Forced => 0,
            Standing::Barred(_) => 2,
            _ => 1,
        };
        let time = |c: &Considered| c.predicted_us.unwrap_or(f64::INFINITY);
        all.sort_by(|a, b| rank(a).cmp(&rank(b)).then(time(a).total_cmp(&time(b))));
        Ok(all)
    }

    fn make(&self, question: &Question) -> Result<Table, ChooseError> {
        let (ranks, root) = (question.ranks, question.root);
        if root >= ranks {
            return Err(ChooseError::Root { root, ranks });
        }
        let constants = self.tuning.of(question.transport).ok_or_else(|| ChooseError::Transport {
            transport: question.transport.to_string(),
            known: self.tuning.transports().collect::<Vec<_>>().join(", "),
        })?;
        let members = self.family(question);
        let forced = self.forced.of(question.operation);
        let barred: Vec<Option<String>> = members.iter().map(|member| bar(member, question)).collect();
        let barred = match forced {
            None => barred,
            Some(forced) => insist(forced, &members, barred)?,
        };
        if barred.iter().all(Option::is_some) {
            let reasons = members
                .iter()
                .zip(&barred)
                .filter_map(|(member, reason)| Some(format!("{} {}", member.candidate, reason.as_ref()?)));
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            return Err(ChooseError::Nothing { operation: question.operation.to_string(), ranks, reasons });
        }
        Ok(Table::new(members, barred, constants.clone(), question.clone()))
    }

    fn family(&self, question: &Question) -> Arc<Vec<Member>> {
        let key = family_key(question);
        if let Some(members) = lock(&self.families).get(&key) {
            return members.clone();
        }
        let (operation, ranks, root, layout) = key;
        let mut members = family(operation, ranks, root, layout);
        // A value of a parameter that is not among those that are tried.
        if let Some(forced) = self.forced.of(operation)
            && !members.iter().any(|member| member.candidate == *forced)
        {
            members.push(super::family::member(forced.clone(), ranks, root, layout));
        }
        let members = Arc::new(members);
        lock(&self.families).insert(key, members.clone());
        members
    }
}

/// What a family depends on. Roots are alike, but for what is promised of order.
fn family_key(question: &Question) -> FamilyKey {
    let root = if question.commutative { 0 } else { question.root };
    (question.operation, question.ranks, root, question.layout)
}

/// Why a member cannot serve a question, if so.
fn bar(member: &Member, question: &Question) -> Option<String> {
    let (properties, direct) = match &member.known {
        Known::Not(reason) => return Some(reason.clone()),
        Known::Runs(runs) => (&runs.properties, runs.direct),
    };
    if question.own_blocks_only && !direct {
        return Some("passes blocks through ranks that do not know their sizes".into());
    }
    if !question.commutative && !properties.ordered {
        return Some("does not keep operands in rank order, and the operator does not commute".into());
    }
    if question.unequal_blocks && properties.equal_blocks_only.is_some() {
        return Some("serves blocks of equal size alone".into());
    }
    if question.deterministic && !(properties.same_tree_at_every_place && properties.same_reduction_tree) {
        return Some("reduces in an order that depends on an element's place".into());
    }
    None
}

/// Bars all but the schedule that the user insists on; with the values of its parameters, if some are named.
fn insist(
    forced: &Candidate,
    members: &[Member],
    barred: Vec<Option<String>>,
) -> Result<Vec<Option<String>>, ChooseError> {
    let is_it = |member: &Member| {
        member.candidate.schedule == forced.schedule
            && (forced.params.is_empty() || member.candidate.params == forced.params)
    };
    let able = members.iter().zip(&barred).any(|(member, bar)| is_it(member) && bar.is_none());
    if !able {
        let reason = members.iter().zip(&barred).find(|(member, _)| is_it(member));
        let reason = reason.and_then(|(_, bar)| bar.clone()).unwrap_or_default();
        return Err(ChooseError::Forced { candidate: forced.to_string(), reason });
    }
    let others = format!("is passed over for {forced}, which is to be taken");
    let bar = |(member, bar): (&Member, Option<String>)| match is_it(member) {
        true => bar,
        false => bar.or(Some(others.clone())),
    };
    Ok(members.iter().zip(barred).map(bar).collect())
}

/// A panic elsewhere leaves a map as it was: entries are put in whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
