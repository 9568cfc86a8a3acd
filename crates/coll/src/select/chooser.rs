//! Chooses, and says why.

use super::answers::Answers;
use super::candidates::Candidate;
use super::family::Family;
use super::forced::Forced;
use super::ground::Ground;
use super::imposed::Imposed;
use super::question::Question;
use super::table::{AS_GOOD, Looks, Table};
use coll_base::DType;
use coll_check::program::Properties;
use coll_cost::{Layout, Tuning};
use coll_plan::Plan;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Chooses schedules by what they are predicted to take. It may be shared between threads.
pub struct Chooser {
    tuning: Tuning,
    forced: Forced,
    ground: Option<Arc<Ground>>,
    imposed: Vec<Imposed>,
    looks: Looks,
    /// What came with the constants.
    answers: Option<Arc<Answers>>,
    families: Mutex<BTreeMap<(FamilyKey, bool), Arc<Family>>>,
    tables: Mutex<BTreeMap<TableKey, Arc<Table>>>,
}

type FamilyKey = (&'static str, u32, u32, Layout);
type TableKey = (FamilyKey, Layout, (DType, Option<DType>), [bool; 6], &'static str);

/// What is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The schedule with its parameters; [`Candidate::prove`] makes its plan.
    pub candidate: Candidate,
    /// What it is predicted to take, in microseconds.
    pub predicted_us: f64,
}

/// A whole plan, and what was proved of it.
pub(crate) struct Made {
    pub(crate) properties: Properties,
    pub(crate) plan: Arc<Plan>,
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
    /// It is the cheapest, or as good as that and has the fewest steps.
    Taken,
    /// The user insists on it.
    Forced,
    /// It takes so many times as long as what is taken.
    Slower(f64),
    /// It is predicted to take as long, or a little less by this factor, than predictions can tell, and has more steps.
    AsGood(f64),
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
    /// A file is to be taken, and a communicator alone takes files.
    #[error(
        "`{file}` is to be taken for {operation}, so there is nothing to choose; calls of a communicator take it, and `collc run {file}` runs it"
    )]
    Imposed {
        /// The file.
        file: String,
        /// The operation.
        operation: String,
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
    /// Chooses by these constants. Answers that come with them are used if they are of this library and of these very
    /// constants.
    pub fn new(tuning: Tuning) -> Chooser {
        let answers = tuning.answers().and_then(|file| Answers::read(file.to_vec().into(), &tuning));
        if tuning.answers().is_some() && answers.is_none() {
            log::warn!(
                "the answers beside the constants are of other constants or another release: first calls look for \
                 themselves; `collc tune` makes them anew"
            );
        }
        Chooser {
            answers: answers.map(Arc::new),
            tuning,
            forced: Forced::default(),
            ground: None,
            imposed: Vec::new(),
            looks: Looks::AsNeeded,
            families: Mutex::default(),
            tables: Mutex::default(),
        }
    }

    /// Compiles, proves and compares all candidates, also those that cannot turn out best. The answers are the same, and
    /// take many times as long: for those who want to see that they are.
    pub fn exhaustive(self) -> Chooser {
        Chooser { looks: Looks::AtAll, tables: Mutex::default(), families: Mutex::default(), ..self }
    }

    /// Takes these schedules for their operations, whatever they cost.
    pub fn with_forced(self, forced: Forced) -> Chooser {
        Chooser { forced, tables: Mutex::default(), families: Mutex::default(), ..self }
    }

    /// Weighs candidates for as many ranks as stand on this ground by simulated runs there, and for any others by constants. Where
    /// bits must not change ([`Question::deterministic`]), places do not count.
    pub fn on(self, ground: Arc<Ground>) -> Chooser {
        Chooser { ground: Some(ground), tables: Mutex::default(), families: Mutex::default(), ..self }
    }

    /// What candidates are simulated on, if they are.
    pub fn ground(&self) -> Option<&Arc<Ground>> {
        self.ground.as_ref()
    }

    /// A chooser for some of the ranks alone, which are numbered anew as they are given; none if it would choose as this one.
    pub fn among(&self, ranks: &[u32]) -> Option<Chooser> {
        Some(self.moved(self.ground.as_ref()?.among(ranks)?))
    }

    /// The same chooser on another ground.
    pub(crate) fn moved(&self, ground: Ground) -> Chooser {
        let chooser = Chooser::new(self.tuning.clone()).with_forced(self.forced.clone());
        Chooser { looks: self.looks, imposed: self.imposed.clone(), ..chooser.on(Arc::new(ground)) }
    }

    /// The ground that a question is about.
    fn ground_of(&self, question: &Question) -> Option<&Arc<Ground>> {
        let is_about = |ground: &&Arc<Ground>| !question.deterministic && ground.ranks() == question.ranks;
        self.ground.as_ref().filter(is_about)
    }

    /// Has communicators take the schedules of these files for their operations.
    pub fn with_imposed(self, imposed: Vec<Imposed>) -> Chooser {
        Chooser { imposed, ..self }
    }

    /// The file whose schedule is to be taken for an operation.
    pub(crate) fn imposed(&self, operation: &str) -> Option<&Imposed> {
        self.imposed.iter().find(|imposed| imposed.operation == operation)
    }

    /// The constants.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// A number that tells choosers apart that may choose differently: of constants, schedules and files that are forced, and
    /// ground.
    pub fn fingerprint(&self) -> u64 {
        let ground = self.ground.as_ref().map_or(String::new(), |ground| ground.fingerprint());
        let mut forced = format!("{:?}{ground}", self.forced);
        self.imposed.iter().for_each(|imposed| forced += &crate::plans::identity(&imposed.plan));
        forced.bytes().fold(self.tuning.fingerprint(), |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// The schedule for a call.
    pub fn choose(&self, question: &Question) -> Result<Choice, ChooseError> {
        let table = self.table(question)?;
        let at = table.index(question.bytes);
        let predicted_us = table.predict_us(at, question.bytes).unwrap_or(0.0);
        Ok(Choice { candidate: table.family.members[at].candidate.clone(), predicted_us })
    }

    /// The schedule for a call, and its proved plan, if that was made for this root.
    pub(crate) fn choose_proved(
        &self,
        question: &Question,
    ) -> Result<(Candidate, Option<Made>), ChooseError> {
        let table = self.table(question)?;
        let at = table.index(question.bytes);
        if log::log_enabled!(log::Level::Debug) {
            let Question { operation, bytes, ranks, transport, .. } = question;
            let place = match self.ground_of(question) {
                Some(ground) => format!("of {}", ground.network().name),
                None => format!("over {transport}"),
            };
            let (candidate, us) = (&table.family.members[at].candidate, table.predict_us(at, *bytes));
            let us = us.unwrap_or_default();
            log::debug!(
                "{operation} of {bytes} B on {ranks} ranks {place}: {candidate}, predicted to take {us:.1} µs"
            );
        }
        let made = table.family.proved(at).ok().and_then(|proved| {
            let (properties, plan) = (proved.properties.clone(), Arc::clone(proved.plan.as_ref()?));
            plan.root.is_none_or(|root| root == question.root).then_some(Made { properties, plan })
        });
        Ok((table.family.members[at].candidate.clone(), made))
    }

    /// The answers for calls that differ from this one in size alone: what a communicator keeps for each kind of call.
    pub fn table(&self, question: &Question) -> Result<Arc<Table>, ChooseError> {
        if let Some(Imposed { file, operation, .. }) = self.imposed(question.operation) {
            return Err(ChooseError::Imposed { file: file.clone(), operation: (*operation).to_string() });
        }
        let question = &self.placed(question);
        let key = (
            self.family_key(question),
            question.layout,
            (question.dtype, question.wire),
            [
                question.accumulate,
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

    /// Every candidate with its standing, what is taken first, then by time. All of them are compiled and proved.
    pub fn explain(&self, question: &Question) -> Result<Vec<Considered>, ChooseError> {
        let question = &self.placed(question);
        let table = self.table(question)?;
        let taken = table.index(question.bytes);
        let taken_us = table.predict_us(taken, question.bytes).unwrap_or(0.0);
        let forced = self.forced.of(question.operation).is_some();
        let mut all: Vec<Considered> = Vec::new();
        for (at, member) in table.family.members.iter().enumerate() {
            let proved = table.family.proved(at);
            let predicted_us = proved.is_ok().then(|| table.predict_us(at, question.bytes)).flatten();
            let bar = table.bar(at).or(proved.err());
            let standing = match (bar, predicted_us) {
                (Some(reason), _) => Standing::Barred(reason.to_string()),
                _ if at == taken && forced => Standing::Forced,
                _ if at == taken => Standing::Taken,
                (None, Some(us)) if us >= taken_us => Standing::Slower(us / taken_us),
                (None, _) if question.deterministic => Standing::Unsteady,
                (None, us) => {
                    let factor = taken_us / us.unwrap_or(taken_us);
                    if factor <= AS_GOOD { Standing::AsGood(factor) } else { Standing::Rounded(factor) }
                }
            };
            all.push(Considered {
                candidate: member.candidate.clone(),
                predicted_us,
                steps: table.family.steps(at),
                sent_share: table.family.sent_share(at),
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
        let family = self.family(question);
        let excluded = match self.forced.of(question.operation) {
            None => family.members.iter().map(|_| None).collect(),
            Some(forced) => insist(forced, &family, question)?,
        };
        let table = Table::new(
            Arc::clone(&family),
            excluded,
            constants.clone(),
            question.clone(),
            self.looks,
            self.answers.clone(),
        );
        table.ok_or_else(|| {
            let reasons = family.members.iter().enumerate().filter_map(|(at, member)| {
                let reason = question.bar(&family, at);
                let reason = reason.or_else(|| family.proved(at).err().map(str::to_string))?;
                Some(format!("{} {reason}", member.candidate))
            });
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            ChooseError::Nothing { operation: question.operation.to_string(), ranks, reasons }
        })
    }

    /// The question that is answered: with the ground's nodes for where ranks are.
    fn placed(&self, question: &Question) -> Question {
        let mut question = question.clone().in_order();
        if let Some(ground) = self.ground_of(&question) {
            question.layout = ground.layout();
        }
        question
    }

    /// What a family depends on. Roots are alike, but for what is promised of order, and for where they stand.
    fn family_key(&self, question: &Question) -> FamilyKey {
        let alike = question.commutative && self.ground_of(question).is_none();
        let root = if alike { 0 } else { question.root };
        // What is taken where bits must not change depends on the number of ranks alone, and so do the candidates.
        let layout = if question.deterministic { Layout::one_host(question.ranks) } else { question.layout };
        (question.operation, question.ranks, root, layout)
    }

    fn family(&self, question: &Question) -> Arc<Family> {
        let key = self.family_key(question);
        let on_ground = self.ground_of(question).is_some();
        if let Some(family) = lock(&self.families).get(&(key, on_ground)) {
            return family.clone();
        }
        let (operation, ranks, root, layout) = key;
        let mut family = Family::new(operation, ranks, root, layout);
        if let Some(ground) = self.ground_of(question) {
            family.stand_on(Arc::clone(ground));
        }
        // A value of a parameter that is not among those that are tried.
        if let Some(forced) = self.forced.of(operation)
            && !family.members.iter().any(|member| member.candidate == *forced)
        {
            family.add(forced.clone());
        }
        let family = Arc::new(family);
        lock(&self.families).insert((key, on_ground), family.clone());
        family
    }
}

/// Bars all but the schedule that the user insists on; with the values of its parameters, if some are named.
fn insist(
    forced: &Candidate,
    family: &Family,
    question: &Question,
) -> Result<Vec<Option<String>>, ChooseError> {
    let is_it = |candidate: &Candidate| {
        candidate.schedule == forced.schedule
            && (forced.params.is_empty() || candidate.params == forced.params)
    };
    let mut first_bar = None;
    let able =
        family.members.iter().enumerate().filter(|(_, member)| is_it(&member.candidate)).any(|(at, _)| {
            let bar = question.bar(family, at);
            let barred = bar.is_some();
            first_bar = first_bar.take().or(bar);
            !barred
        });
    if !able {
        let reason = first_bar.unwrap_or_default();
        return Err(ChooseError::Forced { candidate: forced.to_string(), reason });
    }
    let others = format!("is passed over for {forced}, which is to be taken");
    let excluded = |candidate: &Candidate| (!is_it(candidate)).then(|| others.clone());
    Ok(family.members.iter().map(|member| excluded(&member.candidate)).collect())
}

/// A panic elsewhere leaves a map as it was: entries are put in whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
