//! Results that are too large for any cache are written past it: a common store first reads the line that it is about
//! to overwrite, which is a quarter of all traffic of `c = a + b`.

use crate::kernel::CombineFn;

/// From this size on a result that is not in place is written past the caches. Smaller ones are likely to be read
/// again before they would leave the last cache.
pub(crate) const STREAM_BYTES: usize = 32 << 20;

/// Bytes that are computed in the first cache before they are written out.
const BLOCK_BYTES: usize = 4 << 10;

/// A block, as aligned as a line of the cache.
#[repr(align(64))]
struct Block([u8; BLOCK_BYTES]);

/// `target := a ⊕ b` on elements of `size_bytes`, written past the caches.
pub(crate) fn streamed(combine: CombineFn, size_bytes: usize, target: &mut [u8], a: &[u8], b: &[u8]) {
    let head = target.as_ptr().align_offset(64).min(target.len());
    let Some(whole) =
        head.is_multiple_of(size_bytes).then(|| (target.len() - head) / BLOCK_BYTES * BLOCK_BYTES)
    else {
        return combine(target, Some(a), b);
    };
    let (first, rest) = target.split_at_mut(head);
    combine(first, Some(&a[..head]), &b[..head]);
    let (middle, last) = rest.split_at_mut(whole);
    let (end, mut block) = (head + whole, Block([0; BLOCK_BYTES]));
    for (index, target) in middle.chunks_exact_mut(BLOCK_BYTES).enumerate() {
        let from = head + index * BLOCK_BYTES;
        combine(&mut block.0, Some(&a[from..from + BLOCK_BYTES]), &b[from..from + BLOCK_BYTES]);
        write_past(target, &block);
    }
    fence();
    combine(last, Some(&a[end..]), &b[end..]);
}

/// `target := source`, written past the caches: for what is not read soon, where that is more than caches hold. Written through
/// them, every line would be fetched from memory first. Both are as long.
#[cfg(target_arch = "x86_64")]
pub fn copy_past_cache(target: &mut [u8], source: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    let head = target.as_ptr().align_offset(64).min(target.len());
    let (first, rest) = target.split_at_mut(head);
    let (source_first, source) = source.split_at(head);
    first.copy_from_slice(source_first);
    let (lines, last) = rest.as_chunks_mut::<64>();
    let (source_lines, source_last) = source.as_chunks::<64>();
    for (line, source) in lines.iter_mut().zip(source_lines) {
        let (to, from) = (line.as_mut_ptr().cast::<__m128i>(), source.as_ptr().cast::<__m128i>());
        for quarter in 0..4 {
            // SAFETY: both hold four times 16 bytes, and the target starts a line of the cache; every x86-64 processor has
            // these instructions. `fence` follows before anyone reads.
            unsafe { _mm_stream_si128(to.add(quarter), _mm_loadu_si128(from.add(quarter))) };
        }
    }
    fence();
    last.copy_from_slice(source_last);
}

/// `target := source`: this processor is not asked for more.
#[cfg(not(target_arch = "x86_64"))]
pub fn copy_past_cache(target: &mut [u8], source: &[u8]) {
    target.copy_from_slice(source);
}

/// Copies a block to a place that is as aligned.
#[cfg(target_arch = "x86_64")]
fn write_past(target: &mut [u8], block: &Block) {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_stream_si128};
    assert!(target.len() == BLOCK_BYTES && target.as_ptr().align_offset(16) == 0);
    let (to, from) = (target.as_mut_ptr().cast::<__m128i>(), block.0.as_ptr().cast::<__m128i>());
    for index in 0..BLOCK_BYTES / 16 {
        // SAFETY: both hold BLOCK_BYTES bytes and are aligned to 16, as was asserted of the one and the type says of
        // the other; every x86-64 processor has these instructions. `fence` follows before anyone reads.
        unsafe { _mm_stream_si128(to.add(index), _mm_load_si128(from.add(index))) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn write_past(target: &mut [u8], block: &Block) {
    target.copy_from_slice(&block.0);
}

/// Orders what was written past the caches before what is written from now on.
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction, and it touches no memory.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
