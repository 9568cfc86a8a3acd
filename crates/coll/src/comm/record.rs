//! The flight recorder: the last operations of a communicator, for looking at when one fails or hangs. The form is that of
//! PyTorch's flight recorder (version 2.10), so that `torchfrtrace` reads it; `plan` and `schedule` are added.

use crate::comm::clock::{Clock, Scale, Ticks};
use crate::comm::resolve::Key;
use crate::comm::words::CallWords;
use serde::Serialize;
use std::sync::Arc;

/// An operation, as it is remembered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Recorded {
    /// Its number: counted on all ranks alike for collective operations, for each peer for messages.
    pub operation: u64,
    /// The call in words: `allreduce of 1024 f32, sum`.
    pub call: String,
    /// The schedule that ran.
    pub schedule: String,
    /// The plan's hash, or what stands for it.
    pub plan: String,
    /// When it began, in nanoseconds since 1970. The record's times are exact to less than a microsecond among themselves.
    pub started_ns: u64,
    /// When it ended, if it has.
    pub ended_ns: Option<u64>,
    /// Whether it is a message between two ranks.
    pub is_message: bool,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// The last operations, in a ring. Writing into it allocates nothing.
#[derive(Debug)]
pub(crate) struct Record {
    ring: Vec<Note>,
    capacity: usize,
    /// Operations begun so far.
    begun: u64,
    clock: Clock,
}

#[derive(Debug)]
struct Note {
    call: Arc<CallWords>,
    key: Key,
    operation: u64,
    started: Ticks,
    /// 0 if it has not.
    ended: Ticks,
    error: Option<String>,
}

impl Record {
    pub(crate) fn new(capacity: usize) -> Record {
        Record { ring: Vec::with_capacity(capacity), capacity, begun: 0, clock: Clock::new() }
    }

    /// Notes that an operation begins. Returns its number in the record.
    #[inline]
    pub(crate) fn begin(&mut self, call: &Arc<CallWords>, key: Key, operation: u64) -> u64 {
        let number = self.begun;
        self.begun += 1;
        if self.capacity == 0 {
            return number;
        }
        let call = Arc::clone(call);
        let note = Note { call, key, operation, started: self.clock.now(), ended: 0, error: None };
        match self.ring.len() < self.capacity {
            true => self.ring.push(note),
            false => self.ring[number as usize % self.capacity] = note,
        }
        number
    }

    /// Notes that an operation has ended well.
    #[inline]
    pub(crate) fn end(&mut self, number: u64) {
        let clock = self.clock;
        if let Some(note) = self.note(number) {
            note.ended = clock.now();
        }
    }

    /// Notes that an operation has failed.
    pub(crate) fn fail(&mut self, number: u64, error: String) {
        if let Some(note) = self.note(number) {
            note.error = Some(error);
        }
    }

    /// The collective call before one, with its number.
    pub(crate) fn before(&self, number: u64) -> Option<String> {
        let earlier = self.notes().filter(|&(earlier, _)| earlier < number);
        let collective = earlier.filter(|(_, note)| !note.key.what.is_between_two()).last();
        collective.map(|(_, note)| format!("{}, {}", note.operation, note.call.text))
    }

    fn note(&mut self, number: u64) -> Option<&mut Note> {
        if self.capacity == 0 || self.begun - number > self.capacity as u64 {
            return None;
        }
        self.ring.get_mut(number as usize % self.capacity)
    }

    /// Notes with their numbers, the oldest first.
    fn notes(&self) -> impl Iterator<Item = (u64, &Note)> {
        let first = self.begun - self.ring.len() as u64;
        (first..self.begun).map(|number| (number, &self.ring[number as usize % self.capacity]))
    }

    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        let scale = self.clock.scale();
        let recorded = |(_, note): (u64, &Note)| Recorded {
            operation: note.operation,
            call: note.call.text.clone(),
            schedule: note.call.schedule.clone(),
            plan: note.call.plan.clone(),
            started_ns: scale.ns(note.started),
            ended_ns: (note.ended > 0).then(|| scale.ns(note.ended)),
            is_message: note.key.what.is_between_two(),
            error: note.error.clone(),
        };
        self.notes().map(recorded).collect()
    }

    /// As `torchfrtrace` reads it.
    pub(crate) fn to_json(&self, rank: u32, world: u32, name: &str, timeout_ms: u64) -> String {
        let scale = self.clock.scale();
        let entries =
            self.notes().map(|(number, note)| entry(number, note, name, timeout_ms, &scale)).collect();
        let ranks: Vec<u32> = (0..world).collect();
        let config = Config { name, desc: name, ranks: format!("{ranks:?}") };
        let last = |state: fn(&Note) -> bool| {
            let collectives = self.notes().filter(|(_, note)| !note.key.what.is_between_two());
            let found = collectives.filter(|(_, note)| state(note)).map(|(_, note)| note.operation).last();
            found.map_or(-1, |operation| operation as i64)
        };
        let status = Status {
            last_enqueued_collective: last(|_| true),
            last_started_collective: last(|_| true),
            last_completed_collective: last(|note| note.ended > 0),
        };
        let dump = Dump {
            version: "2.10",
            comm_lib_version: concat!("collc ", env!("CARGO_PKG_VERSION")),
            rank,
            pg_config: [("0", config)].into(),
            pg_status: [("0", status)].into(),
            entries,
        };
        serde_json::to_string_pretty(&dump).expect("invariant: a record is plain data") + "\n"
    }
}

fn entry<'a>(number: u64, note: &'a Note, name: &'a str, timeout_ms: u64, scale: &Scale) -> Entry<'a> {
    let ended = note.ended > 0;
    let [started_ns, ended_ns] = [note.started, note.ended].map(|ticks| scale.ns(ticks));
    let message = note.key.what.is_between_two();
    let sizes = if note.key.unequal { Vec::new() } else { vec![vec![note.key.count]] };
    let dtype = torch_name(note.key.dtype.name());
    let state = if ended { "completed" } else { "started" };
    Entry {
        record_id: number,
        pg_id: 0,
        process_group: (name, name),
        collective_seq_id: if message { 0 } else { note.operation },
        p2p_seq_id: if message { note.operation } else { 0 },
        op_id: number,
        profiling_name: format!("collc:{}", torch_operation(note)),
        time_created_ns: started_ns,
        time_discovered_started_ns: started_ns,
        time_discovered_completed_ns: ended.then_some(ended_ns),
        duration_ms: ended.then(|| ended_ns.saturating_sub(started_ns) as f64 / 1e6),
        input_dtypes: vec![dtype.clone(); sizes.len()],
        output_dtypes: vec![dtype; sizes.len()],
        input_sizes: sizes.clone(),
        output_sizes: sizes,
        state,
        retired: ended,
        timeout_ms,
        is_p2p: message,
        frames: Vec::new(),
        call: &note.call.text,
        schedule: &note.call.schedule,
        plan: &note.call.plan,
        error: note.error.as_deref(),
    }
}

/// Names that the analyser knows; a root or a peer stands behind, as there.
fn torch_operation(note: &Note) -> String {
    use crate::comm::request::What;
    let root = note.key.root;
    match note.key.what {
        What::Barrier => "barrier".into(),
        What::Broadcast => "broadcast".into(),
        What::Reduce => "reduce".into(),
        What::AllReduce => "all_reduce".into(),
        What::Gather => "gather".into(),
        What::Scatter => "scatter".into(),
        What::AllGather => "all_gather".into(),
        What::ReduceScatter => "reduce_scatter".into(),
        What::AllToAll => "all_to_all".into(),
        What::Scan => "scan".into(),
        What::ExScan => "exscan".into(),
        What::Send => format!("send ->{root}"),
        What::Receive => format!("recv <-{root}"),
        What::Custom => note.call.schedule.clone(),
    }
}

/// `f32` is `Float` there.
fn torch_name(dtype: &str) -> String {
    let known = match dtype {
        "u8" => "Byte",
        "i8" => "Char",
        "i16" => "Short",
        "i32" => "Int",
        "i64" => "Long",
        "f16" => "Half",
        "bf16" => "BFloat16",
        "f32" => "Float",
        "f64" => "Double",
        "bool" => "Bool",
        other => other,
    };
    known.to_string()
}

#[derive(Serialize)]
struct Dump<'a> {
    version: &'static str,
    comm_lib_version: &'static str,
    rank: u32,
    pg_config: std::collections::BTreeMap<&'static str, Config<'a>>,
    pg_status: std::collections::BTreeMap<&'static str, Status>,
    entries: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Config<'a> {
    name: &'a str,
    desc: &'a str,
    ranks: String,
}

#[derive(Serialize)]
#[allow(clippy::struct_field_names, reason = "the format's names")]
struct Status {
    last_enqueued_collective: i64,
    last_started_collective: i64,
    last_completed_collective: i64,
}

#[derive(Serialize)]
struct Entry<'a> {
    record_id: u64,
    pg_id: u64,
    process_group: (&'a str, &'a str),
    collective_seq_id: u64,
    p2p_seq_id: u64,
    op_id: u64,
    profiling_name: String,
    time_created_ns: u64,
    time_discovered_started_ns: u64,
    time_discovered_completed_ns: Option<u64>,
    duration_ms: Option<f64>,
    input_sizes: Vec<Vec<u64>>,
    input_dtypes: Vec<String>,
    output_sizes: Vec<Vec<u64>>,
    output_dtypes: Vec<String>,
    state: &'static str,
    retired: bool,
    timeout_ms: u64,
    is_p2p: bool,
    frames: Vec<String>,
    call: &'a str,
    schedule: &'a str,
    plan: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}
