//! From text to the model. Each value is checked where it stands, so that a message can point at the attribute.
//!
//! What may be left out, and what it then is: `name` is `unnamed`; `outofplace` is 1 just if `inplace` is 0; `minBytes`
//! is 0; without `maxBytes`, as with 0, there is no limit; without `hasdep` nothing waits for the step. All else must be
//! there. The RCCL loader demands these too, and files without them are about.

use super::kind::Kind;
use super::model::{Algorithm, Block, Gpu, Spot, Step};
use crate::Limits;
use crate::codes::{MISSING, NUMBERING, SYNTAX, UNSUPPORTED, VALUE};
use crate::collectives;
use crate::layout::Buffer;
use crate::limits::Names;
use coll_base::{Diagnostic, FileId, Span};
use roxmltree::{Attribute, Document, Node, ParsingOptions};
use std::ops::RangeInclusive;

type Read<T> = Result<T, Box<Diagnostic>>;

/// The most ranks, thread blocks of a rank, channels, and chunks of a buffer: beyond all that runs, and far from overflow.
const RANKS_MAX: u32 = 1 << 16;
const CHANNELS_MAX: u32 = 1024;
const CHUNKS_MAX: u32 = 1 << 24;

pub(super) fn read(file: FileId, text: &str) -> Result<Algorithm, Vec<Diagnostic>> {
    let options = ParsingOptions::default();
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => return Err(vec![syntax(file, text, &error)]),
    };
    let reader = Reader { file };
    reader.algorithm(document.root_element()).map_err(|told| vec![*told])
}

/// The byte offset of a place that a parser tells as row and column.
fn syntax(file: FileId, text: &str, error: &roxmltree::Error) -> Diagnostic {
    let pos = error.pos();
    let line_start: usize = text.split_inclusive('\n').take(pos.row.max(1) as usize - 1).map(str::len).sum();
    let rest = &text[line_start.min(text.len())..];
    let column = rest.char_indices().nth(pos.col.max(1) as usize - 1).map_or(rest.len(), |(at, _)| at);
    let start = (line_start + column).min(text.len());
    let end = text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
    Diagnostic::new(SYNTAX, Span::new(file, start, end), "this is not the XML of an algorithm")
        .expected("one element `algo`, every tag closed, every value in quotes")
        .found(error.to_string())
        .help("mend the file there; `docs/formats.md` tells the form")
}

struct Reader {
    file: FileId,
}

impl Reader {
    fn span(&self, node: Node) -> Span {
        // The tag alone, not all that it holds.
        let range = node.range();
        let text = &node.document().input_text()[range.clone()];
        let end = text.find('>').map_or(range.end, |at| range.start + at + 1);
        Span::new(self.file, range.start, end)
    }

    fn at(&self, attribute: &Attribute) -> Span {
        let range = attribute.range();
        Span::new(self.file, range.start, range.end)
    }

    /// The span of an attribute, or of the element if it has none.
    fn span_of(&self, node: Node, name: &str) -> Span {
        node.attribute_node(name).map_or_else(|| self.span(node), |attribute| self.at(&attribute))
    }

    fn need<'a, 'i>(&self, node: Node<'a, 'i>, name: &str) -> Read<Attribute<'a, 'i>> {
        node.attribute_node(name).ok_or_else(|| {
            let tag = node.tag_name().name();
            let message = format!("`{tag}` has no attribute `{name}`");
            let told = Diagnostic::new(MISSING, self.span(node), message)
                .expected(format!("`{name}=\"…\"` in this tag"))
                .found(match node.attributes().len() {
                    0 => "no attributes".to_string(),
                    _ => node.attributes().map(|a| format!("`{}`", a.name())).collect::<Vec<_>>().join(", "),
                })
                .help(format!("add `{name}`; `docs/formats.md` tells what it says"));
            Box::new(told)
        })
    }

    fn wrong(&self, attribute: &Attribute, expected: impl Into<String>) -> Box<Diagnostic> {
        let name = attribute.name();
        let message = format!("`{name}` cannot be `{}`", attribute.value());
        Box::new(
            Diagnostic::new(VALUE, self.at(attribute), message)
                .expected(expected)
                .found(format!("`{}`", attribute.value()))
                .help(format!("give `{name}` such a value")),
        )
    }

    fn int(&self, attribute: &Attribute, range: RangeInclusive<i64>) -> Read<i64> {
        let value: Option<i64> = attribute.value().trim().parse().ok();
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            self.wrong(attribute, format!("a whole number from {} to {}", range.start(), range.end()))
        })
    }

    fn number(&self, node: Node, name: &str, range: RangeInclusive<i64>) -> Read<i64> {
        self.int(&self.need(node, name)?, range)
    }

    fn number_or(&self, node: Node, name: &str, range: RangeInclusive<i64>, default: i64) -> Read<i64> {
        node.attribute_node(name).map_or(Ok(default), |attribute| self.int(&attribute, range))
    }

    fn algorithm(&self, node: Node) -> Read<Algorithm> {
        if node.tag_name().name() != "algo" {
            let found = format!("`{}`", node.tag_name().name());
            let told = Diagnostic::new(SYNTAX, self.span(node), "this is not the XML of an algorithm")
                .expected("`algo` as the outermost element")
                .found(found)
                .help("topologies and graphs in XML are other forms");
            return Err(Box::new(told));
        }
        let ranks = self.number(node, "ngpus", 1..=i64::from(RANKS_MAX))? as u32;
        let proto = self.need(node, "proto")?;
        if !["Simple", "LL", "LL128"].contains(&proto.value()) {
            return Err(self.wrong(&proto, "`Simple`, `LL` or `LL128`"));
        }
        let collective = self.need(node, "coll")?;
        if collective.value().trim().is_empty() {
            return Err(self.wrong(&collective, "a collective, such as `allreduce`"));
        }
        let chunks_per_loop = self.number(node, "nchunksperloop", 1..=i64::from(CHUNKS_MAX))? as u32;
        let channels = self.number(node, "nchannels", 1..=i64::from(CHANNELS_MAX))? as u32;
        let in_place = self.number(node, "inplace", 0..=1)? == 1;
        let out_of_place = self.number_or(node, "outofplace", 0..=1, i64::from(!in_place))? == 1;
        let max = self.number_or(node, "maxBytes", 0..=i64::MAX, 0)? as u64;
        let limits = Limits {
            in_place,
            out_of_place,
            min_bytes: self.number_or(node, "minBytes", 0..=i64::MAX, 0)? as u64,
            max_bytes: (max > 0).then_some(max),
            chunks: chunks_per_loop,
            alignment_bytes: 1,
            blocks: collectives::by_word(collective.value().trim())
                .map_or(1, |known| known.blocks_apart(ranks)),
            names: &Names::MSCCL,
        };
        Ok(Algorithm {
            name: node.attribute("name").unwrap_or("unnamed").to_string(),
            collective: collective.value().trim().to_string(),
            limits,
            channels,
            chunks_per_loop,
            gpus: self.gpus(node, ranks)?,
            span: self.span(node),
            chunks_span: self.span_of(node, "nchunksperloop"),
            limits_span: self.span_of(node, "maxBytes"),
        })
    }

    /// Each rank once, in the order of ids.
    fn gpus(&self, algo: Node, ranks: u32) -> Read<Vec<Gpu>> {
        let mut gpus: Vec<Option<Gpu>> = (0..ranks).map(|_| None).collect();
        for node in elements(algo, "gpu") {
            let id = self.need(node, "id")?;
            let rank = self.int(&id, 0..=i64::from(ranks) - 1)? as usize;
            if gpus[rank].is_some() {
                let told = Diagnostic::new(NUMBERING, self.at(&id), format!("`gpu` has the id {rank} twice"))
                    .expected(format!("each of 0 to {} once, as `ngpus` is {ranks}", ranks - 1))
                    .found(format!("a second `gpu` with `id` {rank}"))
                    .help("give it another id");
                return Err(Box::new(told));
            }
            gpus[rank] = Some(self.gpu(node, rank as u32, ranks)?);
        }
        let missing = gpus.iter().position(Option::is_none);
        match missing {
            None => Ok(gpus.into_iter().flatten().collect()),
            Some(rank) => {
                let at = self.span_of(algo, "ngpus");
                let told = Diagnostic::new(NUMBERING, at, format!("no `gpu` has the id {rank}"))
                    .expected(format!("each of 0 to {} once, as `ngpus` is {ranks}", ranks - 1))
                    .found(format!("{} of them", gpus.iter().flatten().count()))
                    .help("add the rank, or mend `ngpus`");
                Err(Box::new(told))
            }
        }
    }

    fn gpu(&self, node: Node, rank: u32, ranks: u32) -> Read<Gpu> {
        let chunks = |name| self.number(node, name, 0..=i64::from(CHUNKS_MAX));
        let chunks = [chunks("i_chunks")? as u32, chunks("o_chunks")? as u32, chunks("s_chunks")? as u32];
        let mut blocks = Vec::new();
        for node in elements(node, "tb") {
            let id = self.need(node, "id")?;
            if self.int(&id, 0..=i64::from(u32::MAX))? as usize != blocks.len() {
                let message = format!("thread block `{}` of gpu {rank} is out of order", id.value());
                let told = Diagnostic::new(NUMBERING, self.at(&id), message)
                    .expected(format!(
                        "`id` {}, as thread blocks are numbered from 0 in their order",
                        blocks.len()
                    ))
                    .found(format!("`{}`", id.value()))
                    .help("number them anew; steps name thread blocks in `depid`");
                return Err(Box::new(told));
            }
            blocks.push(self.block(node, rank, ranks)?);
        }
        Ok(Gpu { chunks, blocks, span: self.span(node) })
    }

    fn block(&self, node: Node, rank: u32, ranks: u32) -> Read<Block> {
        let peer = |name: &str| {
            let attribute = self.need(node, name)?;
            let peer = self.int(&attribute, -1..=i64::from(ranks) - 1)?;
            match peer {
                peer if peer == i64::from(rank) => {
                    Err(self.wrong(&attribute, format!("another rank than {rank} itself, or -1 for none")))
                }
                peer => Ok(u32::try_from(peer).ok()),
            }
        };
        let (send, receive) = (peer("send")?, peer("recv")?);
        let channel = self.number(node, "chan", 0..=i64::from(CHANNELS_MAX) - 1)? as u32;
        let mut steps = Vec::new();
        for node in elements(node, "step") {
            let number = self.need(node, "s")?;
            if self.int(&number, 0..=i64::from(u32::MAX))? as usize != steps.len() {
                let told = Diagnostic::new(
                    NUMBERING,
                    self.at(&number),
                    format!("step `{}` of gpu {rank} is out of order", number.value()),
                )
                .expected(format!("`s` {}, as steps are numbered from 0 in their order", steps.len()))
                .found(format!("`{}`", number.value()))
                .help("number them anew; steps name each other in `deps`");
                return Err(Box::new(told));
            }
            steps.push(self.step(node)?);
        }
        Ok(Block { send, receive, channel, steps, span: self.span(node) })
    }

    fn step(&self, node: Node) -> Read<Step> {
        let word = self.need(node, "type")?;
        let kind = match Kind::of(word.value()) {
            Some(kind) => kind,
            None if word.value() == "ra" => {
                let message = "a step of the type `ra` adds a residual, which no plan can do";
                let told = Diagnostic::new(UNSUPPORTED, self.at(&word), message)
                    .expected(Kind::words())
                    .found("`ra`, of the classic MSCCL runtime")
                    .help("leave the addition to the caller");
                return Err(Box::new(told));
            }
            None => return Err(self.wrong(&word, Kind::words())),
        };
        let count = self.number(node, "cnt", 0..=i64::from(CHUNKS_MAX))? as u32;
        if count == 0 && kind != Kind::Nothing {
            return Err(self.wrong(&self.need(node, "cnt")?, "at least 1 chunk"));
        }
        let depends = self.depends(node)?;
        if kind == Kind::Nothing && depends.is_none() {
            let at = self.need(node, "depid")?;
            return Err(self.wrong(&at, "a thread block to wait for: a `nop` does nothing else"));
        }
        Ok(Step {
            kind,
            source: self.spot(node, "srcbuf", "srcoff", kind.reads())?,
            target: self.spot(node, "dstbuf", "dstoff", kind.writes())?,
            count,
            depends,
            is_awaited: self.number_or(node, "hasdep", 0..=1, 0)? == 1,
            span: self.span(node),
        })
    }

    /// `depid` and `deps`: both name something, or neither.
    fn depends(&self, node: Node) -> Read<Option<(u32, u32)>> {
        let block = self.number(node, "depid", -1..=i64::from(u32::MAX))?;
        let number = self.need(node, "deps")?;
        let step = self.int(&number, -1..=i64::from(u32::MAX))?;
        match (u32::try_from(block), u32::try_from(step)) {
            (Ok(block), Ok(step)) => Ok(Some((block, step))),
            (Err(_), Err(_)) => Ok(None),
            (Ok(block), Err(_)) => {
                Err(self.wrong(&number, format!("a step of thread block {block}, which `depid` names")))
            }
            (Err(_), Ok(_)) => Err(self.wrong(&number, "-1, as `depid` names no thread block")),
        }
    }

    /// Chunks that a step reads or writes. Of a side that it does not use, only that it can be read.
    fn spot(&self, node: Node, buffer: &str, offset: &str, is_used: bool) -> Read<Spot> {
        let none = Spot { buffer: Buffer::Scratch, offset: -1 };
        if !is_used && (node.attribute_node(buffer).is_none() || node.attribute_node(offset).is_none()) {
            return Ok(none);
        }
        let word = self.need(node, buffer)?;
        let buffer = Buffer::of(word.value()).ok_or_else(|| self.wrong(&word, "`i`, `o` or `s`"))?;
        Ok(Spot { buffer, offset: self.number(node, offset, -1..=i64::from(CHUNKS_MAX))? })
    }
}

fn elements<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}
