//! The function of an expression: `f(target, a, b, bytes)` computes every element of the target.
//!
//! It is up to three loops, each going on where the one before left off: over several vectors of 16 bytes at a time, over
//! one, over single elements. A loop reads all that it computes from before it writes, so that an operand may be the
//! target itself. Addresses need not be aligned.

use crate::element::{Element, Storage};
use crate::emit::Emitter;
use crate::lower::Body;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, FuncRef, Function, InstBuilder, MemFlags, Signature, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

const VECTOR_BYTES: u32 = 16;
/// Nodes in the largest loop body: enough to keep the processor busy, few enough for its registers and for compiling.
const UNROLLED_NODES: usize = 48;
const UNROLL_MAX: usize = 4;

/// `extern "C" fn(*mut u8, *const u8, *const u8, i64)`
pub(crate) fn signature(call_conv: CallConv) -> Signature {
    let mut signature = Signature::new(call_conv);
    signature.params.extend([AbiParam::new(types::I64); 4]);
    signature
}

/// Writes the function.
pub(crate) fn write(
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    element: Element,
    body: &Body,
    vectors: bool,
    remainder: Option<FuncRef>,
) {
    let mut builder = FunctionBuilder::new(function, context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let params = builder.block_params(entry);
    let memory = Memory { target: params[0], operands: [params[1], params[2]], bytes: params[3] };
    let mut offset = builder.ins().iconst(types::I64, 0);
    let mut emitter = Emitter { builder: &mut builder, element, lanes: 1, exact: body.chooses(), remainder };
    if vectors && body.is_for_vectors(element.number) {
        emitter.lanes = VECTOR_BYTES / element.number.scalar().bytes();
        // A vector of narrow floats in memory is two of numbers.
        let numbers = if element.storage == Storage::Own { 1 } else { 2 };
        let unroll = (UNROLLED_NODES / (body.nodes.len() * numbers)).clamp(1, UNROLL_MAX);
        if unroll > 1 {
            offset = emitter.pass(body, &memory, offset, unroll as u32);
        }
        offset = emitter.pass(body, &memory, offset, 1);
        emitter.lanes = 1;
    }
    emitter.pass(body, &memory, offset, 1);
    builder.ins().return_(&[]);
    builder.finalize();
}

/// What the function is told.
struct Memory {
    target: Value,
    operands: [Value; 2],
    bytes: Value,
}

impl Emitter<'_, '_> {
    /// A loop from `offset` on, in bytes, while there is a step left. Gives where it ends.
    fn pass(&mut self, body: &Body, memory: &Memory, offset: Value, unroll: u32) -> Value {
        let step = i64::from(unroll * self.step_bytes());
        let [work, done] = [self.builder.create_block(), self.builder.create_block()];
        self.builder.append_block_param(work, types::I64);
        self.builder.append_block_param(done, types::I64);
        // The last offset where a whole step is left; negative if there is none. A slice has less than 2^63 bytes.
        let last = self.ins().iadd_imm(memory.bytes, -step);
        let enter = self.ins().icmp(IntCC::SignedLessThanOrEqual, offset, last);
        self.ins().brif(enter, work, &[offset.into()], done, &[offset.into()]);

        self.builder.switch_to_block(work);
        let here = self.builder.block_params(work)[0];
        self.step(body, memory, here, unroll);
        let next = self.ins().iadd_imm(here, step);
        let again = self.ins().icmp(IntCC::SignedLessThanOrEqual, next, last);
        self.ins().brif(again, work, &[next.into()], done, &[next.into()]);
        self.builder.seal_block(work);
        self.builder.seal_block(done);
        self.builder.switch_to_block(done);
        self.builder.block_params(done)[0]
    }

    /// Bytes in memory of what is computed at once.
    fn step_bytes(&self) -> u32 {
        if self.lanes == 1 { self.element.size_bytes() } else { VECTOR_BYTES }
    }

    fn step(&mut self, body: &Body, memory: &Memory, offset: Value, unroll: u32) {
        let addresses = memory.operands.map(|operand| self.ins().iadd(operand, offset));
        let mut read = Vec::new();
        for part in 0..unroll {
            let at = (part * self.step_bytes()) as i32;
            let [a, b] = addresses.map(|address| self.load(address, at));
            read.extend(a.into_iter().zip(b));
        }
        let computed: Vec<Value> = read.into_iter().map(|(a, b)| self.body(body, &[a, b])).collect();
        let target = self.ins().iadd(memory.target, offset);
        for (part, values) in computed.chunks(computed.len() / unroll as usize).enumerate() {
            self.store(values, target, (part as u32 * self.step_bytes()) as i32);
        }
    }

    /// The numbers of one step: one value, or two for a vector of narrow floats.
    fn load(&mut self, address: Value, at: i32) -> Vec<Value> {
        let (storage, number, flags) = (self.element.storage, self.number(), flags());
        match (storage, self.lanes) {
            (Storage::Own, _) => vec![self.ins().load(number, flags, address, at)],
            (_, 1) => {
                let narrow = self.ins().uload16(types::I32, flags, address, at);
                vec![self.widen(storage, narrow)]
            }
            _ => {
                let half = |emitter: &mut Self, at| {
                    let narrow = emitter.ins().uload16x4(flags, address, at);
                    emitter.widen(storage, narrow)
                };
                vec![half(self, at), half(self, at + VECTOR_BYTES as i32 / 2)]
            }
        }
    }

    fn store(&mut self, values: &[Value], address: Value, at: i32) {
        let (storage, flags) = (self.element.storage, flags());
        match (storage, values) {
            (Storage::Own, _) => {
                self.ins().store(flags, values[0], address, at);
            }
            (_, &[low, high]) => {
                let (low, high) = (self.narrow(storage, low), self.narrow(storage, high));
                let narrow: Type = types::I16X8;
                // What saturates here is above 16 bits, and nothing is.
                let both = self.ins().unarrow(low, high);
                debug_assert_eq!(self.builder.func.dfg.value_type(both), narrow);
                self.ins().store(flags, both, address, at);
            }
            _ => {
                let narrow = self.narrow(storage, values[0]);
                self.ins().istore16(flags, narrow, address, at);
            }
        }
    }
}

/// Memory of any alignment that is there.
fn flags() -> MemFlags {
    MemFlags::new().with_notrap()
}
