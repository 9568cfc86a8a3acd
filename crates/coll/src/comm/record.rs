//! The flight recorder: the last operations of a communicator, for looking at when one fails or hangs. The form is that of
//! PyTorch's flight recorder (version 2.10), so that `torchfrtrace` reads it; `call`, `plan`, `schedule` and `error` are added.
//!
//! That knows the operations of PyTorch, one library by every release, and sizes that have to do with each other; what else there
//! is here is told as what is nearest to it, with the rest behind a space, where it looks no further.

mod pickle;

use crate::comm::clock::{Clock, Scale, Ticks};
use crate::comm::request::What;
use crate::comm::resolve::Key;
use crate::comm::words::CallWords;
use serde::Serialize;
use std::collections::BTreeMap;
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
        let started = self.clock.now();
        let whole = self.ring.len() == self.capacity;
        match self.ring.get_mut(number as usize % self.capacity) {
            // In a loop the note that goes is often of the same call, which is then not counted up and down.
            Some(note) if whole && Arc::ptr_eq(&note.call, call) => {
                (note.key, note.operation, note.started, note.ended) = (key, operation, started, 0);
                note.error = None;
            }
            Some(note) if whole => {
                *note = Note { call: Arc::clone(call), key, operation, started, ended: 0, error: None };
            }
            _ => self.ring.push(Note {
                call: Arc::clone(call),
                key,
                operation,
                started,
                ended: 0,
                error: None,
            }),
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

    /// As a person reads it, and programs that read JSON.
    pub(crate) fn to_json(&self, rank: u32, world: u32, name: &str, timeout_ms: u64) -> String {
        let dump = self.dump(rank, world, name, timeout_ms);
        serde_json::to_string_pretty(&dump).expect("invariant: a record is plain data") + "\n"
    }

    /// As `torchfrtrace` reads it.
    pub(crate) fn to_pickle(&self, rank: u32, world: u32, name: &str, timeout_ms: u64) -> Vec<u8> {
        let dump = serde_json::to_value(self.dump(rank, world, name, timeout_ms));
        pickle::pickled(&dump.expect("invariant: a record is plain data"))
    }

    fn dump<'a>(&'a self, rank: u32, world: u32, name: &'a str, timeout_ms: u64) -> Dump<'a> {
        let scale = self.clock.scale();
        let entry = |note| entry(note, (rank, world), name, timeout_ms, &scale);
        let entries = self.notes().map(entry).collect();
        let ranks: Vec<u32> = (0..world).collect();
        let config = Config { desc: name.to_string(), name: name.to_string(), ranks: format!("{ranks:?}") };
        let mut pg_config = BTreeMap::from([(name.to_string(), config)]);
        for (_, note) in self.notes().filter(|(_, note)| note.key.what.is_between_two()) {
            let pair = Pair::of(rank, note.key.root);
            let (name, ranks) = (pair.group(name), format!("[{}, {}]", pair.low, pair.high));
            pg_config.insert(name.clone(), Config { desc: name.clone(), name, ranks });
        }
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
        Dump {
            version: "2.10",
            comm_lib_version: concat!("collc ", env!("CARGO_PKG_VERSION")),
            rank,
            pg_config,
            pg_status: [(name, status)].into(),
            entries,
        }
    }
}

fn entry<'a>(
    (number, note): (u64, &'a Note),
    (rank, world): (u32, u32),
    name: &'a str,
    timeout_ms: u64,
    scale: &Scale,
) -> Entry<'a> {
    let ended = note.ended > 0;
    let [started_ns, ended_ns] = [note.started, note.ended].map(|ticks| scale.ns(ticks));
    let message = note.key.what.is_between_two();
    let group = if message { Pair::of(rank, note.key.root).group(name) } else { name.to_string() };
    let [input_size, output_size] = torch_sizes(note, world);
    let dtype = torch_name(note.key.dtype.name());
    let state = if ended { "completed" } else { "started" };
    Entry {
        record_id: number,
        pg_id: 0,
        process_group: [group.clone(), group],
        collective_seq_id: if message { 0 } else { note.operation },
        p2p_seq_id: if message { note.operation } else { 0 },
        op_id: number,
        profiling_name: format!("nccl:{}", torch_operation(note, rank)),
        time_created_ns: started_ns,
        time_discovered_started_ns: started_ns,
        time_discovered_completed_ns: ended.then_some(ended_ns),
        duration_ms: ended.then(|| ended_ns.saturating_sub(started_ns) as f64 / 1e6),
        input_dtypes: vec![dtype.clone()],
        output_dtypes: vec![dtype],
        input_sizes: vec![vec![input_size]],
        output_sizes: vec![vec![output_size]],
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

/// The two ranks of a message, to the analyser a group of their own: in one of all ranks it would miss the others.
struct Pair {
    low: u32,
    high: u32,
}

impl Pair {
    fn of(rank: u32, peer: u32) -> Pair {
        Pair { low: rank.min(peer), high: rank.max(peer) }
    }

    fn group(&self, name: &str) -> String {
        format!("{name} {}-{}", self.low, self.high)
    }
}

/// Elements of the input and the output as the analyser expects them of an operation, on every rank the same. Where blocks
/// differ it is told of none.
fn torch_sizes(note: &Note, world: u32) -> [u64; 2] {
    let (block, all) = (note.key.count, note.key.count.saturating_mul(world.into()));
    match note.key.what {
        _ if note.key.unequal => [0, 0],
        What::Gather | What::AllGather => [block, all],
        What::Scatter | What::ReduceScatter => [all, block],
        What::AllToAll => [all, all],
        _ => [block, block],
    }
}

/// Names that the analyser knows; both ends of a message stand behind, as ranks of their pair.
fn torch_operation(note: &Note, rank: u32) -> String {
    let [this, other] = if rank < note.key.root { [0, 1] } else { [1, 0] };
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
        What::Scan => "all_reduce scan".into(),
        What::ExScan => "all_reduce exscan".into(),
        What::Send => format!("send {this}->{other}"),
        What::Receive => format!("recv {this}<-{other}"),
        What::Custom => format!("all_reduce {}", note.call.schedule.replace(':', " ")),
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
    pg_config: BTreeMap<String, Config>,
    pg_status: BTreeMap<&'a str, Status>,
    entries: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Config {
    name: String,
    desc: String,
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
    process_group: [String; 2],
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
