//! Many operands at once: `target := x₀ ⊕ x₁ ⊕ … ⊕ xₖ`, from left to right, in one pass over memory.

/// Bytes of the target that all operands are combined into before the next: they stay in the first cache, as does what
/// was prefetched of the operands.
const BLOCK_BYTES: usize = 4 << 10;

/// Combines all operands block by block with `combine`, which takes a target, the left operand unless it is the target,
/// and the right one. No operand leaves the target as it is; one is copied.
pub(crate) fn many(target: &mut [u8], operands: &[&[u8]], combine: impl Fn(&mut [u8], Option<&[u8]>, &[u8])) {
    match operands {
        [] => {}
        [only] => target.copy_from_slice(only),
        [first, second, rest @ ..] => {
            for (index, target) in target.chunks_mut(BLOCK_BYTES).enumerate() {
                let block = index * BLOCK_BYTES..index * BLOCK_BYTES + target.len();
                combine(target, Some(&first[block.clone()]), &second[block.clone()]);
                rest.iter().for_each(|operand| combine(target, None, &operand[block.clone()]));
            }
        }
    }
}
