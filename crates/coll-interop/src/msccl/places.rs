//! That an algorithm's chunk counts fit its collective, and its steps their buffers. `nchunksperloop` chunks make up the
//! larger of the two buffers, of a gather or a scatter one block of it; a block is as many of them as there are for each.

use super::model::{Algorithm, Gpu, Step, chunks_attribute};
use crate::codes::{CHUNKS, SHAPE};
use crate::collectives::Known;
use crate::layout::{Buffer, Layout};
use coll_base::Diagnostic;
use coll_contract::Contract;

/// The layout of an algorithm's chunks.
///
/// # Errors
/// If chunk counts do not fit the collective, or a step names chunks outside their buffer.
pub(super) fn layout(
    algorithm: &Algorithm,
    known: Option<&'static Known>,
    contract: &Contract,
) -> Result<Layout, Vec<Diagnostic>> {
    let all = contract.buffers.first().map_or(1, |decl| decl.blocks);
    let blocks = known.map_or(all, |known| all / known.blocks_apart(all));
    let chunks = match known {
        None => 1,
        Some(_) if algorithm.chunks_per_loop.is_multiple_of(blocks) => algorithm.chunks_per_loop / blocks,
        Some(_) => {
            let (chunks, name) = (algorithm.chunks_per_loop, &algorithm.collective);
            let message = format!("`nchunksperloop` {chunks} does not fit `{name}`");
            let told = Diagnostic::new(SHAPE, algorithm.chunks_span, message)
                .expected(format!("a multiple of {blocks}, the blocks of the larger buffer"))
                .found(chunks.to_string())
                .help("mend `nchunksperloop` or `coll`");
            return Err(vec![told]);
        }
    };
    let is_one = algorithm.limits.in_place && !algorithm.limits.out_of_place;
    let layout = Layout::new(known, contract, chunks, is_one, &algorithm.declared());
    let mut told = Vec::new();
    for (rank, gpu) in (0..).zip(&algorithm.gpus) {
        told.extend(declared(&layout, algorithm, rank, gpu));
        for (id, block) in gpu.blocks.iter().enumerate() {
            for (number, step) in block.steps.iter().enumerate() {
                told.extend(bounds(&layout, rank, (id, number), step));
            }
        }
    }
    told.truncate(6);
    if told.is_empty() { Ok(layout) } else { Err(told) }
}

/// The counts that a rank declares are those that the collective asks for; 0 where a buffer is not needed.
fn declared(layout: &Layout, algorithm: &Algorithm, rank: u32, gpu: &Gpu) -> Option<Diagnostic> {
    let known = layout.known?;
    let spans = layout.spans(known);
    let may_lack = layout.is_one || known.root.is_some();
    for (buffer, due) in [(Buffer::Input, spans[0]), (Buffer::Output, spans[1])] {
        let found = gpu.chunks[buffer as usize];
        if found == due || found == 0 && may_lack {
            continue;
        }
        let attribute = chunks_attribute(buffer);
        let message = format!("`{attribute}` {found} of gpu {rank} does not fit `{}`", algorithm.collective);
        let told = Diagnostic::new(SHAPE, gpu.span, message)
            .also(algorithm.chunks_span, "from which the chunks of both buffers follow")
            .expected(format!("{due}{}", if may_lack { ", or 0" } else { "" }))
            .found(found.to_string())
            .help(format!("mend `{attribute}` or `nchunksperloop`"));
        return Some(told);
    }
    None
}

fn bounds(layout: &Layout, rank: u32, (id, number): (usize, usize), step: &Step) -> Option<Diagnostic> {
    let kind = step.kind;
    let sides = [(kind.reads(), step.source, "srcoff"), (kind.writes(), step.target, "dstoff")];
    for (is_used, spot, attribute) in sides {
        let size = layout.size(rank, spot.buffer);
        let end = spot.offset + i64::from(step.count);
        if !is_used || spot.offset >= 0 && end <= i64::from(size) {
            continue;
        }
        let word = spot.buffer.word();
        let message =
            format!("step {number} of thread block {id} of gpu {rank} uses chunks outside buffer `{word}`");
        let found = match spot.offset {
            ..0 => {
                format!("`{attribute}` {}, which is none, on a side that `{}` uses", spot.offset, kind.word())
            }
            first => {
                format!("`{attribute}` {first} and `cnt` {}, so chunks {first} to {}", step.count, end - 1)
            }
        };
        let told = Diagnostic::new(CHUNKS, step.span, message)
            .expected(format!("chunks below {size}, which is all of `{word}` on gpu {rank}"))
            .found(found)
            .help(format!("mend `{attribute}` or `cnt`, or the chunks of the buffer"));
        return Some(told);
    }
    None
}
