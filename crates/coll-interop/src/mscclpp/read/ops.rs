//! A thread block's operations. What MSCCL++'s executor does with each is its `execution_kernel.hpp`: which lists of places it
//! looks at, and of which the first alone; [`SHAPES`] says so in a table, and what the executor would pass over in silence is
//! refused here.

use super::{CHUNKS_MAX, Rank, letter, switch};
use crate::codes::{CHUNKS, UNSUPPORTED};
use crate::json::{Json, Read};
use crate::layout::Buffer;
use crate::mscclpp::model::{Act, Block, Channel, Op, Side};
use coll_base::Diagnostic;
use std::collections::BTreeMap;

/// The most thread blocks of a group.
const GROUP_MAX: u64 = 64;

/// A thread block that is being read.
pub(super) struct ThreadBlock<'r, 'j, 't> {
    rank: &'r Rank<'j, 't>,
    json: &'r Json<'t>,
    /// For each type of channel, those of the rank that it uses.
    channels: BTreeMap<&'t str, Vec<Channel>>,
    remote: BTreeMap<&'t str, Vec<(u32, Buffer)>>,
}

/// A pipeline: its number in the thread block, and the chunks that its turns go through.
#[derive(Clone, Copy)]
struct Pipeline {
    number: u32,
    chunks: u32,
}

impl<'r, 'j, 't> ThreadBlock<'r, 'j, 't> {
    pub(super) fn new(rank: &'r Rank<'j, 't>, json: &'r Json<'t>) -> Read<ThreadBlock<'r, 'j, 't>> {
        let (mut channels, mut remote) = (BTreeMap::new(), BTreeMap::new());
        for group in json.list_of("channels")? {
            let kind = group.need("channel_type")?;
            let word = kind.word("channel_type")?;
            let known = rank.channels.get(word).map_or(&[][..], |list| list);
            for id in group.need("channel_ids")?.list("channel_ids")? {
                let entry: &mut Vec<Channel> = channels.entry(word).or_default();
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

    pub(super) fn read(&self, semaphores: usize) -> Read<Block> {
        let (mut ops, mut pipelines, mut number) = (Vec::new(), 0, 0);
        // One of the file may be several here.
        let mut add = |op: &Json<'t>, within: Option<Pipeline>, ops: &mut Vec<Op>| -> Read<()> {
            let before = ops.len();
            self.op(op, semaphores, within, ops)?;
            ops[before..].iter_mut().for_each(|op| op.number = number);
            number += 1;
            Ok(())
        };
        for op in self.json.need("ops")?.list("ops")? {
            if op.need("name")?.word("name")? != "pipeline" {
                add(op, None, &mut ops)?;
                continue;
            }
            let turns = op.need("iter_context")?;
            turns.number("unit_size", 1..=u64::from(u32::MAX))?;
            let chunks = turns.number("num_chunks", 1..=CHUNKS_MAX)? as u32;
            for op in op.need("ops")?.list("ops")? {
                add(op, Some(Pipeline { number: pipelines, chunks }), &mut ops)?;
            }
            pipelines += 1;
        }
        Ok(Block { ops })
    }

    fn op(
        &self,
        json: &Json<'t>,
        semaphores: usize,
        within: Option<Pipeline>,
        ops: &mut Vec<Op>,
    ) -> Read<()> {
        let name = json.need("name")?;
        let word = name.word("name")?;
        if json.get("channel_type").is_some_and(|kind| kind.word("").ok() == Some("switch")) {
            return Err(switch(json.need("channel_type")?));
        }
        let Some(&(_, shape)) = SHAPES.iter().find(|(known, _)| *known == word) else {
            return Err(match word {
                "glre" | "glres" | "gstore" | "gstorepkt" => switch(name),
                "pipeline" => nested(name),
                _ => name.wrong("name", "an operation of MSCCL++"),
            });
        };
        self.refuse_operators(json)?;
        let kind = json.get("channel_type").map_or(Ok("memory"), |kind| kind.word("channel_type"))?;
        let mut op = Op {
            act: Act::Nop,
            sources: Vec::new(),
            targets: Vec::new(),
            channels: Vec::new(),
            numbers: numbers(json, shape, semaphores)?,
            meets: 0,
            part: part(json)?,
            pipeline: within.map(|pipeline| pipeline.number),
            tile: (0, 1),
            number: 0,
            span: json.span(),
        };
        match shape {
            Shape::Other(act) => {
                op.act = act;
                if act == Act::Barrier {
                    op.meets = json.number("num_threadblocks", 1..=CHUNKS_MAX)? as u32;
                }
                if matches!(act, Act::Signal { .. } | Act::Wait { .. }) {
                    op.channels = self.channels(json, kind)?;
                }
                if act == Act::Flush {
                    by_port(json, word, kind)?;
                    op.channels = self.channels(json, kind)?;
                }
                ops.push(op);
            }
            Shape::Moves(moves) => {
                op.act = if moves.reduces { Act::Reduce } else { Act::Move };
                op.sources = self.sides(json, "src_buff", kind, moves.reads)?;
                op.targets = self.sides(json, "dst_buff", kind, moves.writes)?;
                moves.lists(json, &op.sources, &op.targets)?;
                if moves.reduces {
                    // What is reduced with packets is no packet itself.
                    op.sources[0].packets = false;
                    op.targets[0].packets = false;
                }
                fits(json, &op.sources, &op.targets)?;
                if let Some(pipeline) = within {
                    in_turns(json, word, moves, &op, pipeline)?;
                }
                self.moves(json, kind, word, op, ops)?;
            }
        }
        Ok(())
    }

    /// An operation that moves data; a list of pairs is one for each.
    fn moves(&self, json: &Json<'t>, kind: &str, word: &str, op: Op, ops: &mut Vec<Op>) -> Read<()> {
        let signals = matches!(word, "pws" | "pwsf");
        if signals {
            by_port(json, word, kind)?;
        }
        let is_afar = op.sources.iter().chain(&op.targets).any(|side| side.peer.is_some());
        if is_afar && kind == "port" && (op.act == Act::Reduce || word == "get") {
            let wrong = format!("`memory`: threads do what `{word}` does, and a port channel has a proxy");
            return Err(json.need("channel_type")?.wrong("channel_type", wrong));
        }
        if op.act == Act::Reduce {
            ops.push(op);
            return Ok(());
        }
        let mut channels = vec![Vec::new(); op.targets.len()];
        if kind == "port" && is_afar {
            let list = self.channels(json, kind)?;
            let peers = list.iter().map(|channel| Some(channel.peer));
            if !peers.eq(op.targets.iter().map(|side| side.peer.map(|(peer, _)| peer))) {
                let ids = json.need("channel_ids")?;
                return Err(ids.wrong("channel_ids", "for each place in `dst_buff` a channel to its rank"));
            }
            channels = list.into_iter().map(|channel| vec![channel]).collect();
        }
        for (at, (target, channels)) in op.targets.iter().zip(channels).enumerate() {
            let source = op.sources[at.min(op.sources.len() - 1)];
            let moved = Op { sources: vec![source], targets: vec![*target], channels, ..op.clone() };
            let then = |act| Op { act, sources: Vec::new(), targets: Vec::new(), ..moved.clone() };
            let (signal, flush) = (then(Act::Signal { relaxed: false }), then(Act::Flush));
            ops.push(moved);
            if signals {
                ops.push(signal);
            }
            if word == "pwsf" {
                ops.push(flush);
            }
        }
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

    fn channels(&self, json: &Json<'t>, kind: &str) -> Read<Vec<Channel>> {
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

/// What an operation is.
#[derive(Clone, Copy)]
enum Shape {
    Moves(Moves),
    Other(Act),
}

/// An operation that moves data.
#[derive(Clone, Copy)]
struct Moves {
    reduces: bool,
    /// Its sources, and its targets, in scratch are packets.
    reads: bool,
    writes: bool,
    sources: List,
    targets: List,
}

/// Places of an operation: a letter for each that has to be there, then whether more may follow. `h` is here, `p` on a peer.
#[derive(Clone, Copy)]
struct List {
    first: &'static str,
    more: Option<char>,
}

const fn list(first: &'static str) -> List {
    List { first, more: None }
}

const fn any(first: &'static str, more: char) -> List {
    List { first, more: Some(more) }
}

const fn moves(reads: bool, writes: bool, sources: List, targets: List) -> Shape {
    Shape::Moves(Moves { reduces: false, reads, writes, sources, targets })
}

const fn reduces(packets: bool, sources: List, targets: List) -> Shape {
    Shape::Moves(Moves { reduces: true, reads: packets, writes: packets, sources, targets })
}

/// Every operation that is imported.
const SHAPES: [(&str, Shape); 26] = [
    ("nop", Shape::Other(Act::Nop)),
    ("flush", Shape::Other(Act::Flush)),
    ("copy", moves(false, false, list("h"), list("h"))),
    ("put", moves(false, false, any("h", 'h'), any("p", 'p'))),
    ("get", moves(false, false, any("p", 'p'), any("h", 'h'))),
    ("pws", moves(false, false, any("h", 'h'), any("p", 'p'))),
    ("pwsf", moves(false, false, any("h", 'h'), any("p", 'p'))),
    ("cpkt", moves(false, true, list("h"), list("h"))),
    ("ppkt", moves(false, true, any("h", 'h'), any("p", 'p'))),
    ("upkt", moves(true, false, list("h"), list("h"))),
    ("rppkt", moves(true, true, list("h"), any("p", 'p'))),
    ("re", reduces(false, any("h", 'h'), list("h"))),
    ("res", reduces(false, any("h", 'h'), any("h", 'p'))),
    ("rre", reduces(false, any("h", 'p'), list("h"))),
    ("rres", reduces(false, any("h", 'p'), any("h", 'p'))),
    ("repkt", reduces(true, any("h", 'h'), list("h"))),
    ("recpkt", reduces(true, any("h", 'h'), list("hh"))),
    ("respkt", reduces(true, any("h", 'h'), any("h", 'p'))),
    ("recspkt", reduces(true, any("h", 'h'), any("hh", 'p'))),
    ("signal", Shape::Other(Act::Signal { relaxed: false })),
    ("rlxsignal", Shape::Other(Act::Signal { relaxed: true })),
    ("wait", Shape::Other(Act::Wait { relaxed: false })),
    ("rlxwait", Shape::Other(Act::Wait { relaxed: true })),
    ("barrier", Shape::Other(Act::Barrier)),
    ("sem_acquire", Shape::Other(Act::Acquire)),
    ("sem_release", Shape::Other(Act::Release)),
];

impl Moves {
    /// Its places are as many, and where, as the executor takes them.
    fn lists(&self, json: &Json<'_>, sources: &[Side], targets: &[Side]) -> Read<()> {
        self.sources.fits(json, "src_buff", sources)?;
        self.targets.fits(json, "dst_buff", targets)?;
        if !self.reduces && sources.len() > 1 && sources.len() != targets.len() {
            let wrong = format!("as many places as `src_buff`, which has {}", sources.len());
            return Err(json.need("dst_buff")?.wrong("dst_buff", wrong));
        }
        if !self.reduces && self.sources.more.is_some() && sources.len() < targets.len() {
            let wrong = format!("a place for each of the {} in `dst_buff`", targets.len());
            return Err(json.need("src_buff")?.wrong("src_buff", wrong));
        }
        if sources[0].peer.is_none()
            && !self.reduces
            && sources.iter().any(|side| side.buffer != sources[0].buffer)
        {
            let wrong = "places of one buffer: MSCCL++'s executor takes all from the first one's";
            return Err(json.need("src_buff")?.wrong("src_buff", wrong));
        }
        Ok(())
    }
}

impl List {
    fn fits(&self, json: &Json<'_>, name: &str, sides: &[Side]) -> Read<()> {
        let mut due = self.first.chars();
        let fits = sides.iter().all(|side| {
            let here = if side.peer.is_none() { 'h' } else { 'p' };
            due.next().or(self.more) == Some(here)
        });
        if fits && due.next().is_none() {
            return Ok(());
        }
        let words =
            |letter: char| if letter == 'h' { "a place of the rank itself" } else { "one of another rank" };
        let mut expected: Vec<String> = self.first.chars().map(|letter| words(letter).to_string()).collect();
        if let Some(letter) = self.more {
            expected.push(format!(
                "any number of {}",
                if letter == 'h' { "its places" } else { "other ranks' places" }
            ));
        }
        Err(json.need(name)?.wrong(name, expected.join(", then ")))
    }
}

/// What proxies do is asked of port channels.
fn by_port(json: &Json<'_>, word: &str, kind: &str) -> Read<()> {
    match kind {
        "port" => Ok(()),
        _ => Err(json
            .need("channel_type")?
            .wrong("channel_type", format!("`port`, whose proxy does what `{word}` asks for"))),
    }
}

/// In a pipeline each turn takes the next tile of what its `num_chunks` are long: an operation of another length would end early, or
/// go on beyond its end; and operations on packets know no tiles.
fn in_turns(json: &Json<'_>, word: &str, moves: Moves, op: &Op, pipeline: Pipeline) -> Read<()> {
    let refuse = |code, message: String, expected: String, found: String, help: &str| {
        Err(Box::new(Diagnostic::new(code, json.span(), message).expected(expected).found(found).help(help)))
    };
    if moves.reads || moves.writes {
        return refuse(
            UNSUPPORTED,
            format!("`{word}` in a pipeline would do all of its packets in each turn"),
            "operations without packets, which take the turn's part of their chunks".into(),
            format!("`{word}`"),
            "take it out of the pipeline",
        );
    }
    let (chunks, share) = (pipeline.chunks, op.part.1);
    let size = op.sources[0].size;
    if size != chunks * share {
        return refuse(
            CHUNKS,
            "an operation in a pipeline is of another length than the pipeline".into(),
            match share {
                1 => format!("`size` {chunks}, as `num_chunks` says"),
                _ => format!(
                    "`size` {}, `num_chunks` {chunks} for each of {share} thread blocks",
                    chunks * share
                ),
            },
            format!("`size` {size}"),
            "mend `size` or `num_chunks`",
        );
    }
    Ok(())
}

fn nested(name: &Json<'_>) -> Box<Diagnostic> {
    let told = Diagnostic::new(UNSUPPORTED, name.span(), "a pipeline in a pipeline is not supported")
        .expected("operations that are no pipelines, for MSCCL++'s executor knows none within one")
        .found("`pipeline`")
        .help("put its operations into the outer one");
    Box::new(told)
}

fn pick<T: Copy>(id: &Json, name: &str, known: &[T]) -> Read<T> {
    let at = id.int(name, 0..=CHUNKS_MAX)? as usize;
    known.get(at).copied().ok_or_else(|| id.wrong(name, format!("an index below {}", known.len())))
}

fn part(json: &Json<'_>) -> Read<(u32, u32)> {
    let Some(group) = json.get("tbg_info") else { return Ok((0, 1)) };
    let size = group.number("tbg_size", 1..=GROUP_MAX)?;
    Ok((group.number("tb_id", 0..=size - 1)? as u32, size as u32))
}

fn numbers(json: &Json, shape: Shape, semaphores: usize) -> Read<Vec<u32>> {
    match shape {
        Shape::Other(Act::Barrier) => Ok(vec![json.number("barrier_id", 0..=CHUNKS_MAX)? as u32]),
        Shape::Other(Act::Acquire | Act::Release) => {
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
