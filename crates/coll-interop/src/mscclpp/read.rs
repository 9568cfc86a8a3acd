//! From JSON to the model, each value checked where it stands. Here are the plan and its ranks; `ops` has the operations of
//! thread blocks.

mod ops;

use super::model::{Channel, ExecutionPlan, Gpu};
use crate::Limits;
use crate::codes::{NUMBERING, UNSUPPORTED};
use crate::json::{Json, Read, parse};
use crate::layout::Buffer;
use crate::limits::Names;
use coll_base::{Diagnostic, FileId};
use std::collections::BTreeMap;

const RANKS_MAX: usize = 1 << 12;
const CHUNKS_MAX: u64 = 1 << 20;

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
    let min_bytes = size("min_message_size", 0)?;
    let alignment_bytes = of_the_executor(json)?;
    let mut read = Vec::new();
    for (rank, gpu) in (0..).zip(list) {
        in_order(gpu, "rank", rank)?;
        read.push(Rank::new(gpu, rank as u32, list.len() as u64)?.gpu()?);
    }
    let chunks = |gpu: &Gpu| gpu.chunks[0].max(gpu.chunks[1]);
    let limits = Limits {
        in_place,
        out_of_place: !in_place,
        min_bytes,
        max_bytes: (max != u64::MAX).then_some(max),
        chunks: read.iter().map(chunks).max().unwrap_or(1).max(1),
        alignment_bytes,
        blocks: 1,
        names: &Names::MSCCLPP,
    };
    Ok(ExecutionPlan {
        name: json.get("name").map_or(Ok("unnamed"), |name| name.word("name"))?.to_string(),
        collective: json.need("collective")?.word("collective")?.to_string(),
        limits,
        gpus: read,
        span: json.span(),
    })
}

/// The executor's `buffer_alignment`, of which it asks that sizes are multiples for each chunk. What else only it needs is read, and
/// makes no difference to a plan.
fn of_the_executor(json: &Json) -> Read<u64> {
    for name in ["reuse_resources", "use_double_scratch_buffer"] {
        json.get(name).map_or(Ok(false), |value| value.flag(name))?;
    }
    let number = |name, default| {
        json.get(name).map_or(Ok(default), |value: &Json| value.int(name, 1..=u64::from(u32::MAX)))
    };
    number("num_threads_per_block", 1024)?;
    json.get("protocol").map_or(Ok(""), |value| value.word("protocol"))?;
    number("buffer_alignment", 16)
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
    /// For each type of channel, all of them.
    channels: BTreeMap<&'t str, Vec<Channel>>,
    /// Buffers of other ranks.
    remote: Vec<(u32, Buffer)>,
    chunks: [u32; 3],
}

impl<'j, 't> Rank<'j, 't> {
    fn new(json: &'j Json<'t>, rank: u32, ranks: u64) -> Read<Rank<'j, 't>> {
        let chunks = |name| json.number(name, 0..=CHUNKS_MAX).map(|count| count as u32);
        let chunks = [chunks("input_chunks")?, chunks("output_chunks")?, chunks("scratch_chunks")?];
        let mut channels: BTreeMap<&str, Vec<Channel>> = BTreeMap::new();
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
                let nth = list.iter().filter(|known| known.peer == number).count() as u32;
                list.push(Channel { peer: number, nth, is_port: word == "port" });
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
            blocks.push(ops::ThreadBlock::new(self, block)?.read(semaphores.len())?);
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
