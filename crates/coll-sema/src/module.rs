//! A loaded file: what it declares, ready to be instantiated.

use crate::codes;
use crate::concerns::Declaration;
use crate::elaborate::{elaborate, elaborate_rank};
use crate::lists::{append, left_for_last, listed};
use crate::resolve::with_parameters;
use crate::resolved::{Collective, Function, GLOBAL_PARAMS, Schedule, Value};
use coll_base::{Diagnostic, Span};
use coll_ir::Program;
use coll_kernel::UserOperator;

/// The most ranks that a schedule is instantiated for.
pub(crate) const RANKS_MAX: u32 = 65_536;

/// A file with all that it uses.
#[derive(Clone, Debug, Default)]
pub struct Module {
    pub(crate) functions: Vec<Function>,
    pub(crate) collectives: Vec<Collective>,
    /// The main file's schedules and those of the files that it uses.
    pub(crate) schedules: Vec<Schedule>,
    /// Which of them [`Module::schedules`] lists, in its order.
    pub(crate) listed: Vec<u32>,
    pub(crate) infos: Vec<ScheduleInfo>,
    pub(crate) operators: Vec<UserOperator>,
    /// The main file's declarations.
    pub(crate) declarations: Vec<Declaration>,
}

/// A schedule of the main file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleInfo {
    /// Its name, without its collective.
    pub name: String,
    /// The collective it is for.
    pub collective: String,
    /// The `///` lines before it.
    pub docs: Vec<String>,
    /// Parameters with their defaults: the collective's own (but for `root`), whose default is 0, then the schedule's.
    /// Of a list, the first number.
    pub params: Vec<(String, i64)>,
    /// Those of them that are lists.
    pub lists: Vec<String>,
    /// True if the collective has a root.
    pub rooted: bool,
    /// Where its name stands.
    pub span: Span,
    /// True if it has errors of syntax, names or types, or uses something that has: it is not instantiated.
    pub broken: bool,
}

/// What to instantiate a schedule for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Number of ranks, from 1 to 65,536.
    pub ranks: u32,
    /// The root, where the collective has one.
    pub root: u32,
    /// Parameters that differ from their defaults. One that is a list stands here once for each of its numbers, in order.
    pub params: Vec<(String, i64)>,
}

/// A schedule, instantiated.
#[derive(Clone, Debug)]
pub struct Instantiated {
    /// What it does.
    pub program: Program,
    /// What is worth knowing.
    pub warnings: Vec<Diagnostic>,
}

/// Why there is no program.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// A `require` says that the schedule is not for this number of ranks, or these parameters.
    DoesNotApply {
        /// The `require`.
        span: Span,
        /// Its words.
        reason: String,
    },
    /// It has errors. None are listed for a schedule that is [broken](ScheduleInfo::broken): [`load`](crate::load())
    /// has reported them.
    Errors(Vec<Diagnostic>),
}

impl Module {
    /// The schedules of the main file, in its order.
    pub fn schedules(&self) -> &[ScheduleInfo] {
        &self.infos
    }

    /// The operators of the main file that have no errors, in its order.
    pub fn operators(&self) -> &[UserOperator] {
        &self.operators
    }

    /// Runs schedule number `schedule` of [`Module::schedules`] and writes down its transfers.
    pub fn instantiate(&self, schedule: usize, at: &Instance) -> Result<Instantiated, Refusal> {
        let (id, globals) = self.prepare(schedule, at)?;
        elaborate(self, id, globals)
    }

    /// One rank's part of what [`Module::instantiate`] yields, in time and memory that do not grow with the other
    /// ranks' parts: the transfers that begin or end at `rank`, in their order and with their steps' numbers, and the
    /// contract's [slice](coll_contract::Contract::slice). Cuts, lines of origins and numbers of steps are the whole
    /// program's, if it makes use of all cuts and no drop of it matters.
    ///
    /// None if it cannot be done for this schedule, or if the schedule has errors: these only the whole tells.
    ///
    /// # Errors
    /// If the schedule does not apply, or there is no such schedule, rank count or root.
    pub fn instantiate_rank(
        &self,
        schedule: usize,
        at: &Instance,
        rank: u32,
    ) -> Result<Option<Instantiated>, Refusal> {
        let (id, globals) = self.prepare(schedule, at)?;
        if rank >= at.ranks {
            return Ok(None);
        }
        elaborate_rank(self, id, globals, rank)
    }

    /// For each parameter that is a list, how many ranks are left for the last of the numbers that cover all: the size of the
    /// last node. Rank counts in which these are equal have nodes of the same kinds. Empty where it does not apply.
    pub fn last_nodes(&self, schedule: usize, at: &Instance) -> Vec<i64> {
        let Ok((id, globals)) = self.prepare(schedule, at) else { return Vec::new() };
        let params = self.schedules[id as usize].params.iter().enumerate();
        let lists = params.filter(|(_, param)| param.is_list()).map(|(param, _)| GLOBAL_PARAMS + param);
        lists.map(|slot| left_for_last(listed(&globals, slot as u32), i64::from(at.ranks))).collect()
    }

    /// The schedule's number among all, and its globals.
    fn prepare(&self, schedule: usize, at: &Instance) -> Result<(u32, Vec<i64>), Refusal> {
        let refuse = |diagnostic| Refusal::Errors(vec![diagnostic]);
        let Some(&id) = self.listed.get(schedule) else {
            let message =
                format!("there is no schedule number {schedule}: the file has {}", self.listed.len());
            return Err(refuse(Diagnostic::unplaced(codes::UNKNOWN_SCHEDULE, message)));
        };
        let resolved = &self.schedules[id as usize];
        let Some(collective) = resolved.collective.filter(|_| !resolved.broken) else {
            return Err(Refusal::Errors(Vec::new()));
        };
        let rooted = self.collectives[collective as usize].rooted;
        let globals = globals(resolved, rooted, at).map_err(|diagnostic| refuse(*diagnostic))?;
        Ok((id, globals))
    }
}

/// The values of a schedule's globals at the top.
fn globals(schedule: &Schedule, rooted: bool, at: &Instance) -> Result<Vec<i64>, Box<Diagnostic>> {
    if at.ranks == 0 {
        let message = "a schedule needs at least one rank";
        return Err(Box::new(Diagnostic::new(codes::NOT_A_COUNT, schedule.span, message)));
    }
    if at.ranks > RANKS_MAX {
        let message = format!("{} ranks are more than {RANKS_MAX}", at.ranks);
        return Err(Box::new(Diagnostic::new(codes::TOO_LARGE, schedule.span, message)));
    }
    if rooted && at.root >= at.ranks {
        let message = format!("root {} is not among the ranks 0..{}", at.root, at.ranks);
        return Err(Box::new(Diagnostic::new(codes::RANK_RANGE, schedule.span, message)));
    }
    let mut globals = vec![i64::from(at.ranks), if rooted { i64::from(at.root) } else { 0 }];
    if let Some((name, _)) =
        at.params.iter().find(|(name, _)| !schedule.params.iter().any(|p| p.name == *name))
    {
        let message = format!("`{}.{}` has no parameter `{name}`", schedule.collective_name, schedule.name);
        let diagnostic = Diagnostic::new(codes::UNKNOWN_PARAMETER, schedule.span, message);
        return Err(Box::new(with_parameters(diagnostic, schedule, false, name)));
    }
    let mut values = Vec::new();
    for param in &schedule.params {
        let given = at.params.iter().filter(|(name, _)| *name == param.name).map(|&(_, value)| value);
        let given: Vec<i64> = given.collect();
        values.push(match (&param.default, &given[..]) {
            (default, []) => default.clone(),
            (Value::List(_), _) => Value::List(given),
            (Value::Number(_), &[value]) => Value::Number(value),
            (Value::Number(_), _) => {
                let message =
                    format!("parameter `{}` is one number, and {} are given", param.name, given.len());
                return Err(Box::new(Diagnostic::new(codes::NOT_A_LIST, schedule.span, message)));
            }
        });
    }
    set(&mut globals, &values);
    Ok(globals)
}

/// Appends the values of a schedule's parameters to its other globals: a slot for each, then the lists.
pub(crate) fn set(globals: &mut Vec<i64>, values: &[Value]) {
    let number = |value: &Value| if let Value::Number(number) = value { *number } else { 0 };
    globals.extend(values.iter().map(number));
    for (at, value) in values.iter().enumerate() {
        if let Value::List(list) = value {
            append(globals, GLOBAL_PARAMS + at, list);
        }
    }
}

/// The values of a schedule's parameters, by name: a list's numbers each for itself, in order.
pub(crate) fn values(schedule: &Schedule, globals: &[i64]) -> Vec<(String, i64)> {
    let mut all = Vec::new();
    for (at, param) in schedule.params.iter().enumerate() {
        let slot = GLOBAL_PARAMS + at;
        let numbers = if param.is_list() { listed(globals, slot as u32) } else { &globals[slot..=slot] };
        all.extend(numbers.iter().map(|&number| (param.name.clone(), number)));
    }
    all
}
