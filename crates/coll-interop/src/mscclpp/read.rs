//! From JSON to the model, each value checked where it stands.

use super::model::{Act, Block, ExecutionPlan, Gpu, Op, Side};
use crate::Limits;
use crate::codes::{CHUNKS, NUMBERING, UNSUPPORTED};
use crate::json::{Json, Read, parse};
use crate::layout::Buffer;
use coll_base::{Diagnostic, FileId};
use std::collections::BTreeMap;

const RANKS_MAX: usize = 1 << 12;
const CHUNKS_MAX: u64 = 1 << 20;
/// The most thread blocks of a group.
const GROUP_MAX: u64 = 64;

/// Reads a plan and checks all that can be checked before its collective is known.
///
/// # Errors
/// What is wrong with it, at its place.
pub fn read(file: FileId, text: &str) -> Result<ExecutionPlan, Vec<Diagnostic>> {
    let json = parse(file, text).map_err(|told| vec![*told])?;
    plan(&json).map_err(|told| vec![*told])
}

fn plan(json: &Json) -> Read<ExecutionPlan> {
    let gpus = json.need("gpus")?;
    let list = gpus.list("gpus")?;
    if list.is_empty() || list.len() > RANKS_MAX {
        return Err(gpus.wrong("gpus", format!("a list of 1 to {RANKS_MAX} ranks")));
    }
    let in_place = json.need("inplace")?.flag("inplace")?;
    let size = |name, none| json.get(name).map_or(Ok(none), |value| value.int(name, 0..=u64::MAX));
    let max = size("max_message_size", u64::MAX)?;
    let limits = Limits {
        in_place,
        out_of_place: !in_place,
        min_bytes: size("min_message_size", 0)?,
        max_bytes: (max != u64::MAX).then_some(max),
        chunks: 1,
    };
    of_the_executor(json)?;
    let mut read = Vec::new();
    for (rank, gpu) in (0..).zip(list) {
        in_order(gpu, "rank", rank)?;
        read.push(Rank::new(gpu, rank as u32, list.len() as u64)?.gpu()?);
    }
    Ok(ExecutionPlan {
        name: json.get("name").map_or(Ok("unnamed"), |name| name.word("name"))?.to_string(),
        collective: json.need("collective")?.word("collective")?.to_string(),
        limits,
        gpus: read,
        span: json.span(),
    })
}

/// What only MSCCL++'s executor needs: it is read, and makes no difference to a plan.
fn of_the_executor(json: &Json) -> Read<()> {
    for name in ["reuse_resources", "use_double_scratch_buffer"] {
        json.get(name).map_or(Ok(false), |value| value.flag(name))?;
    }
    for name in ["num_threads_per_block", "buffer_alignment"] {
        json.get(name).map_or(Ok(1), |value| value.int(name, 1..=u64::from(u32::MAX)))?;
    }
    json.get("protocol").map_or(Ok(""), |value| value.word("protocol"))?;
    Ok(())
}

/// Ids of ranks and thread blocks: from 0, in their order.
fn in_order(json: &Json, what: &str, due: u64) -> Read<()> {
    let id = json.need("id")?;
    let found = id.int("id", 0..=u64::from(u32::MAX))?;
    if found == due {
        return Ok(());
    }
    let told = Diagnostic::new(NUMBERING, id.span(), format!("a {what}'s `id` is out of order"))
        .expected(format!("`id` {due}, as they are numbered from 0 in their order"))
        .found(format!("`id` {found}"))
        .help("number them anew");
    Err(Box::new(told))
}

/// A rank that is being read: the tables that its thread blocks point into.
struct Rank<'j, 't> {
    json: &'j Json<'t>,
    /// For each type of channel, all of them: the peer, and which of those to that peer.
    channels: BTreeMap<&'t str, Vec<(u32, u32)>>,
    /// Buffers of other ranks.
    remote: Vec<(u32, Buffer)>,
    chunks: [u32; 3],
}

impl<'j, 't> Rank<'j, 't> {
    fn new(json: &'j Json<'t>, rank: u32, ranks: u64) -> Read<Rank<'j, 't>> {
        let chunks = |name| json.number(name, 0..=CHUNKS_MAX).map(|count| count as u32);
        let chunks = [chunks("input_chunks")?, chunks("output_chunks")?, chunks("scratch_chunks")?];
        let mut channels: BTreeMap<&str, Vec<(u32, u32)>> = BTreeMap::new();
        for group in json.list_of("channels")? {
            let kind = group.need("channel_type")?;
            let word = kind.word("channel_type")?;
            match word {
                "memory" | "port" => {}
                "switch" => return Err(switch(kind)),
                _ => return Err(kind.wrong("channel_type", "`memory`, `port` or `switch`")),
            }
            let list = channels.entry(word).or_default();
            for peer in group.need("connected_to")?.list("connected_to")? {
                let number = peer.int("connected_to", 0..=ranks - 1)? as u32;
                if number == rank {
                    return Err(peer.wrong("connected_to", format!("another rank than {rank} itself")));
                }
                let nth = list.iter().filter(|(known, _)| *known == number).count() as u32;
                list.push((number, nth));
            }
        }
        let mut remote = Vec::new();
        for buffer in json.list_of("remote_buffers")? {
            let peer = buffer.number("rank", 0..=ranks - 1)? as u32;
            for kind in buffer.list_of("access_channel_types")? {
                kind.word("access_channel_types")?;
            }
            remote.push((peer, letter(buffer.need("type")?)?));
        }
        Ok(Rank { json, channels, remote, chunks })
    }

    fn gpu(&self) -> Read<Gpu> {
        let mut semaphores = Vec::new();
        for semaphore in self.json.list_of("semaphores")? {
            semaphores.push(semaphore.number("init_value", 0..=1 << 16)? as u32);
        }
        let mut blocks = Vec::new();
        for (id, block) in (0..).zip(self.json.need("threadblocks")?.list("threadblocks")?) {
            in_order(block, "thread block", id)?;
            blocks.push(ThreadBlock::new(self, block)?.read(semaphores.len())?);
        }
        Ok(Gpu { chunks: self.chunks, blocks, semaphores, span: self.json.span() })
    }
}

fn letter(json: &Json) -> Read<Buffer> {
    Buffer::of(json.word("type")?).ok_or_else(|| json.wrong("type", "`i`, `o` or `s`"))
}

fn switch(json: &Json) -> Box<Diagnostic> {
    let told = Diagnostic::new(UNSUPPORTED, json.span(), "switch channels are not supported")
        .expected("channels of the types `memory` and `port`")
        .found("`switch`: its operations add up and multiply within the network (multimem, NVLS)")
        .help("take a plan without switch channels");
    Box::new(told)
}

/// A thread block that is being read.
struct ThreadBlock<'r, 'j, 't> {
    rank: &'r Rank<'j, 't>,
    json: &'r Json<'t>,
    /// For each type of channel, those of the rank that it uses.
    channels: BTreeMap<&'t str, Vec<(u32, u32)>>,
    remote: BTreeMap<&'t str, Vec<(u32, Buffer)>>,
}

impl<'r, 'j, 't> ThreadBlock<'r, 'j, 't> {
    fn new(rank: &'r Rank<'j, 't>, json: &'r Json<'t>) -> Read<ThreadBlock<'r, 'j, 't>> {
        let (mut channels, mut remote) = (BTreeMap::new(), BTreeMap::new());
        for group in json.list_of("channels")? {
            let kind = group.need("channel_type")?;
            let word = kind.word("channel_type")?;
            let known = rank.channels.get(word).map_or(&[][..], |list| list);
            for id in group.need("channel_ids")?.list("channel_ids")? {
                let entry: &mut Vec<(u32, u32)> = channels.entry(word).or_default();
                entry.push(pick(id, "channel_ids", known)?);
            }
        }
        for group in json.list_of("remote_buffer_refs")? {
            let word = group.need("access_channel_type")?.word("access_channel_type")?;
            for id in group.need("remote_buffer_ids")?.list("remote_buffer_ids")? {
                let entry: &mut Vec<(u32, Buffer)> = remote.entry(word).or_default();
                entry.push(pick(id, "remote_buffer_ids", &rank.remote)?);
            }
        }
        Ok(ThreadBlock { rank, json, channels, remote })
    }

    fn read(&self, semaphores: usize) -> Read<Block> {
        let mut ops = Vec::new();
        for op in self.json.need("ops")?.list("ops")? {
            self.op(op, semaphores, &mut ops)?;
        }
        Ok(Block { ops })
    }

    fn op(&self, json: &Json<'t>, semaphores: usize, ops: &mut Vec<Op>) -> Read<()> {
        let name = json.need("name")?;
        let word = name.word("name")?;
        if json.get("channel_type").is_some_and(|kind| kind.word("").ok() == Some("switch")) {
            return Err(switch(json.need("channel_type")?));
        }
        if word == "pipeline" {
            for op in json.need("ops")?.list("ops")? {
                self.op(op, semaphores, ops)?;
            }
            return Ok(());
        }
        let Some(&(_, shape)) = SHAPES.iter().find(|(known, _)| *known == word) else {
            return Err(match word {
                "glre" | "glres" | "gstore" | "gstorepkt" => switch(name),
                _ => name.wrong("name", "an operation of MSCCL++"),
            });
        };
        self.refuse_operators(json)?;
        let kind = json.get("channel_type").map_or(Ok("memory"), |kind| kind.word("channel_type"))?;
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        if let Shape::Move { reads, writes } | Shape::Reduce { reads, writes } = shape {
            sources = self.sides(json, "src_buff", kind, reads)?;
            targets = self.sides(json, "dst_buff", kind, writes)?;
            // What is reduced with packets is no packet itself.
            if matches!(shape, Shape::Reduce { .. }) {
                sources[0].packets = false;
                targets[0].packets = false;
            }
            fits(json, &sources, &targets)?;
        }
        let act = match shape {
            Shape::Nothing => return Ok(()),
            Shape::Other(Act::Nop) => {
                ops.push(Op {
                    act: Act::Nop,
                    sources,
                    targets,
                    channels: Vec::new(),
                    numbers: Vec::new(),
                    meets: 0,
                    part: (0, 1),
                    by_proxy: false,
                    span: json.span(),
                });
                return Ok(());
            }
            Shape::Move { .. } => Act::Move,
            Shape::Reduce { .. } => Act::Reduce,
            Shape::Other(act) => act,
        };
        let group = json.get("tbg_info");
        let part = match group {
            None => (0, 1),
            Some(group) => {
                let size = group.number("tbg_size", 1..=GROUP_MAX)?;
                (group.number("tb_id", 0..=size - 1)? as u32, size as u32)
            }
        };
        let signals = matches!(word, "pws" | "pwsf") || matches!(act, Act::Signal { .. } | Act::Wait { .. });
        let mut op = Op {
            act,
            sources,
            targets,
            channels: if signals { self.peers(json, kind)? } else { Vec::new() },
            numbers: numbers(json, act, semaphores)?,
            meets: 0,
            part,
            by_proxy: kind == "port" || matches!(word, "pws" | "pwsf"),
            span: json.span(),
        };
        if act == Act::Barrier {
            op.meets = json.number("num_threadblocks", 1..=CHUNKS_MAX)? as u32;
        }
        let with_signal = matches!(word, "pws" | "pwsf");
        let signal = with_signal.then(|| Op {
            act: Act::Signal { relaxed: false },
            sources: Vec::new(),
            targets: Vec::new(),
            ..op.clone()
        });
        ops.push(op);
        ops.extend(signal);
        Ok(())
    }

    /// The executor adds up, whatever a plan says; a plan that says otherwise would not do what it says.
    fn refuse_operators(&self, json: &Json<'t>) -> Read<()> {
        let Some(operator) = json.get("reduce_op") else { return Ok(()) };
        match operator.word("reduce_op")? {
            "sum" => Ok(()),
            other => {
                let told = Diagnostic::new(
                    UNSUPPORTED,
                    operator.span(),
                    format!("`reduce_op` `{other}` is not supported"),
                )
                .expected(
                    "`sum`: here the caller chooses the operator, and MSCCL++'s executor always adds up",
                )
                .found(format!("`{other}`"))
                .help("write `sum`, and choose the operator where the plan is run");
                Err(Box::new(told))
            }
        }
    }

    fn peers(&self, json: &Json<'t>, kind: &str) -> Read<Vec<(u32, u32)>> {
        let known = self.channels.get(kind).map_or(&[][..], |list| list);
        let ids = json.need("channel_ids")?.list("channel_ids")?;
        ids.iter().map(|id| pick(id, "channel_ids", known)).collect()
    }

    fn sides(&self, json: &Json<'t>, name: &str, kind: &str, packets: bool) -> Read<Vec<Side>> {
        let list = json.need(name)?;
        let items = list.list(name)?;
        if items.is_empty() {
            return Err(list.wrong(name, "at least one place"));
        }
        items.iter().map(|item| self.side(item, kind, packets)).collect()
    }

    fn side(&self, json: &Json<'t>, kind: &str, packets: bool) -> Read<Side> {
        if let Some(channel) = json.get("switch_channel_id") {
            return Err(switch(channel));
        }
        let (peer, buffer) = match json.get("buffer_id") {
            None => (None, letter(json.need("type")?)?),
            Some(id) => {
                let known = self.remote.get(kind).map_or(&[][..], |list| list);
                let (peer, buffer) = pick(id, "buffer_id", known)?;
                (Some((peer, buffer)), buffer)
            }
        };
        let index = json.number("index", 0..=CHUNKS_MAX)? as u32;
        let size = json.number("size", 1..=CHUNKS_MAX)? as u32;
        let all = self.rank.chunks[buffer as usize].max(match buffer {
            // In place, input and output are one.
            Buffer::Input => self.rank.chunks[1],
            Buffer::Output => self.rank.chunks[0],
            Buffer::Scratch => 0,
        });
        if peer.is_none() && index + size > all {
            let told =
                Diagnostic::new(CHUNKS, json.span(), format!("chunks outside buffer `{}`", buffer.word()))
                    .expected(format!("chunks below {all}"))
                    .found(format!("`index` {index} and `size` {size}"))
                    .help("mend `index` or `size`, or the chunks of the buffer");
            return Err(Box::new(told));
        }
        Ok(Side { peer, buffer, index, size, packets: packets && buffer == Buffer::Scratch })
    }
}

/// What an operation's sides are.
#[derive(Clone, Copy)]
enum Shape {
    Nothing,
    /// Whether its sources and its targets in scratch are packets.
    Move {
        reads: bool,
        writes: bool,
    },
    Reduce {
        reads: bool,
        writes: bool,
    },
    Other(Act),
}

/// Every operation that is imported.
const SHAPES: [(&str, Shape); 26] = [
    ("nop", Shape::Other(Act::Nop)),
    ("flush", Shape::Nothing),
    ("copy", Shape::Move { reads: false, writes: false }),
    ("put", Shape::Move { reads: false, writes: false }),
    ("get", Shape::Move { reads: false, writes: false }),
    ("pws", Shape::Move { reads: false, writes: false }),
    ("pwsf", Shape::Move { reads: false, writes: false }),
    ("cpkt", Shape::Move { reads: false, writes: true }),
    ("ppkt", Shape::Move { reads: false, writes: true }),
    ("upkt", Shape::Move { reads: true, writes: false }),
    ("rppkt", Shape::Move { reads: true, writes: true }),
    ("re", Shape::Reduce { reads: false, writes: false }),
    ("res", Shape::Reduce { reads: false, writes: false }),
    ("rre", Shape::Reduce { reads: false, writes: false }),
    ("rres", Shape::Reduce { reads: false, writes: false }),
    ("repkt", Shape::Reduce { reads: true, writes: false }),
    ("recpkt", Shape::Reduce { reads: true, writes: true }),
    ("respkt", Shape::Reduce { reads: true, writes: true }),
    ("recspkt", Shape::Reduce { reads: true, writes: true }),
    ("signal", Shape::Other(Act::Signal { relaxed: false })),
    ("rlxsignal", Shape::Other(Act::Signal { relaxed: true })),
    ("wait", Shape::Other(Act::Wait { relaxed: false })),
    ("rlxwait", Shape::Other(Act::Wait { relaxed: true })),
    ("barrier", Shape::Other(Act::Barrier)),
    ("sem_acquire", Shape::Other(Act::Acquire)),
    ("sem_release", Shape::Other(Act::Release)),
];

fn pick<T: Copy>(id: &Json, name: &str, known: &[T]) -> Read<T> {
    let at = id.int(name, 0..=CHUNKS_MAX)? as usize;
    known.get(at).copied().ok_or_else(|| id.wrong(name, format!("an index below {}", known.len())))
}

fn numbers(json: &Json, act: Act, semaphores: usize) -> Read<Vec<u32>> {
    match act {
        Act::Barrier => Ok(vec![json.number("barrier_id", 0..=CHUNKS_MAX)? as u32]),
        Act::Acquire | Act::Release => {
            let ids = json.need("semaphore_ids")?.list("semaphore_ids")?;
            let id = |id: &Json| {
                let at = id.int("semaphore_ids", 0..=CHUNKS_MAX)?;
                match at < semaphores as u64 {
                    true => Ok(at as u32),
                    false => Err(id.wrong("semaphore_ids", format!("an index below {semaphores}"))),
                }
            };
            ids.iter().map(id).collect()
        }
        _ => Ok(Vec::new()),
    }
}

/// All sides are of one length.
fn fits(json: &Json, sources: &[Side], targets: &[Side]) -> Read<()> {
    let size = sources[0].size;
    match sources.iter().chain(targets).find(|side| side.size != size) {
        None => Ok(()),
        Some(other) => {
            let told =
                Diagnostic::new(CHUNKS, json.span(), "the sides of an operation are of unlike lengths")
                    .expected(format!("`size` {size} on all sides"))
                    .found(format!("`size` {}", other.size))
                    .help("give all sides one `size`");
            Err(Box::new(told))
        }
    }
}
