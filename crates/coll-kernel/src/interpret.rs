//! Runs a user's operator on runs of elements, a block of elements for each instruction: three to five times slower
//! than machine code made for the operator, and a hundred times faster than a walk of its tree for each element.

use crate::element::{Bf16, Element, F8E4M3, F8E5M2, F16};
use crate::expr::UserOperator;
use crate::native::UserCode;
use crate::number::Number;
use crate::program::{Instruction, Operands, Params, Program, compile};
use coll_base::DType;

/// Compiles an operator for an element type, or says why it has none.
pub(crate) fn interpreter(
    operator: &UserOperator,
    dtype: DType,
    params: &[f64],
) -> Result<Box<dyn UserCode>, String> {
    match dtype {
        DType::I8 => Interpreter::<1, i8>::boxed(operator, params),
        DType::U8 => Interpreter::<1, u8>::boxed(operator, params),
        DType::I16 => Interpreter::<2, i16>::boxed(operator, params),
        DType::U16 => Interpreter::<2, u16>::boxed(operator, params),
        DType::I32 => Interpreter::<4, i32>::boxed(operator, params),
        DType::U32 => Interpreter::<4, u32>::boxed(operator, params),
        DType::I64 => Interpreter::<8, i64>::boxed(operator, params),
        DType::U64 => Interpreter::<8, u64>::boxed(operator, params),
        DType::F8E4M3 => Interpreter::<1, F8E4M3>::boxed(operator, params),
        DType::F8E5M2 => Interpreter::<1, F8E5M2>::boxed(operator, params),
        DType::F16 => Interpreter::<2, F16>::boxed(operator, params),
        DType::Bf16 => Interpreter::<2, Bf16>::boxed(operator, params),
        DType::F32 => Interpreter::<4, f32>::boxed(operator, params),
        DType::F64 => Interpreter::<8, f64>::boxed(operator, params),
        DType::Bool => {
            Err("a user's operator computes numbers; `land`, `lor` and `lxor` are built in".into())
        }
        DType::C64 | DType::C128 => {
            Err("a user's operator computes real numbers; `sum` and `prod` are built in".into())
        }
        DType::I32I32 | DType::I64I64 | DType::F32I32 | DType::F64I64 => {
            Err("a user's operator computes numbers; `minloc` and `maxloc` are built in".into())
        }
    }
}

/// Elements of a block: few enough that a stack of blocks stays in the first-level cache.
const BLOCK_ELEMENTS: usize = 512;
/// Elements of all blocks of a stack together: 32 KiB of the widest type.
const STACK_ELEMENTS: usize = 4096;

struct Interpreter<const N: usize, E: Element<N>> {
    combine: Program<E::Number>,
    given: Option<Program<E::Number>>,
    ensure: Option<Program<E::Number>>,
}

impl<const N: usize, E: Element<N>> Interpreter<N, E> {
    fn boxed(operator: &UserOperator, params: &[f64]) -> Result<Box<dyn UserCode>, String> {
        let params = Params { names: &operator.params, values: params };
        let one = |expr| compile(expr, Operands::One, params);
        Ok(Box::new(Interpreter::<N, E> {
            combine: compile(&operator.combine, Operands::Two, params)?,
            given: operator.given.as_ref().map(one).transpose()?,
            ensure: operator.ensure.as_ref().map(one).transpose()?,
        }))
    }
}

impl<const N: usize, E: Element<N>> UserCode for Interpreter<N, E> {
    fn combine(&self, target: &mut [u8], a: Option<&[u8]>, b: Option<&[u8]>) {
        run::<N, E>(&self.combine, target, [a, b]);
    }

    fn prepare(&self, input: &[u8], working: &mut [u8]) {
        match &self.given {
            Some(program) => run::<N, E>(program, working, [Some(input), None]),
            None => working.copy_from_slice(input),
        }
    }

    fn finish(&self, working: &[u8], output: &mut [u8]) {
        match &self.ensure {
            Some(program) => run::<N, E>(program, output, [Some(working), None]),
            None => output.copy_from_slice(working),
        }
    }
}

fn run<const N: usize, E: Element<N>>(
    program: &Program<E::Number>,
    target: &mut [u8],
    operands: [Option<&[u8]>; 2],
) {
    let block = (STACK_ELEMENTS / program.numbers_max.max(program.truths_max).max(1)).min(BLOCK_ELEMENTS);
    let mut stack = Stack {
        numbers: [E::Number::default(); STACK_ELEMENTS],
        truths: [false; STACK_ELEMENTS],
        block,
        number: 0,
        truth: 0,
    };
    let (targets, _) = target.as_chunks_mut::<N>();
    let operands = operands.map(|operand| operand.map(|bytes| bytes.as_chunks::<N>().0));
    for (index, target) in targets.chunks_mut(block).enumerate() {
        let from = index * block;
        for instruction in &program.instructions {
            if let Instruction::Operand(operand) = *instruction {
                let elements = operands[operand].map_or(&*target, |all| &all[from..from + target.len()]);
                stack.load::<N, E>(elements);
            } else {
                stack.execute(instruction, target.len());
            }
        }
        stack.store::<N, E>(target);
    }
}

/// Blocks in use are the first `number` and `truth` ones; the program knows that they fit.
struct Stack<T> {
    numbers: [T; STACK_ELEMENTS],
    truths: [bool; STACK_ELEMENTS],
    block: usize,
    number: usize,
    truth: usize,
}

impl<T: Number> Stack<T> {
    fn execute(&mut self, instruction: &Instruction<T>, elements: usize) {
        match *instruction {
            // Operands are elements in memory, which this type knows nothing of: `run` loads them.
            Instruction::Operand(_) => {}
            Instruction::Number(value) => self.push_number(elements).fill(value),
            Instruction::Unary(function) => function(self.top_number(elements)),
            Instruction::Binary(function) => {
                let (xs, ys) = self.pop_number(elements);
                function(xs, ys);
            }
            Instruction::Compare(compare) => {
                let at = (self.number - 2) * self.block;
                let (xs, ys) = self.numbers[at..].split_at(self.block);
                let to = &mut self.truths[self.truth * self.block..][..elements];
                compare(&xs[..elements], &ys[..elements], to);
                self.number -= 2;
                self.truth += 1;
            }
            Instruction::Truth(value) => {
                self.truths[self.truth * self.block..][..elements].fill(value);
                self.truth += 1;
            }
            Instruction::Not => {
                let at = (self.truth - 1) * self.block;
                self.truths[at..][..elements].iter_mut().for_each(|x| *x = !*x);
            }
            Instruction::Logic(logic) => {
                let (xs, ys) = self.truths[(self.truth - 2) * self.block..].split_at_mut(self.block);
                for (x, y) in xs[..elements].iter_mut().zip(ys) {
                    *x = logic(*x, *y);
                }
                self.truth -= 1;
            }
            Instruction::Select => self.select(elements),
        }
    }

    fn select(&mut self, elements: usize) {
        self.truth -= 1;
        let (xs, ys) = self.numbers[(self.number - 2) * self.block..].split_at_mut(self.block);
        let conditions = &self.truths[self.truth * self.block..][..elements];
        for ((x, y), condition) in xs.iter_mut().zip(ys).zip(conditions) {
            *x = T::select(*condition, *x, *y);
        }
        self.number -= 1;
    }

    fn load<const N: usize, E: Element<N, Number = T>>(&mut self, elements: &[[u8; N]]) {
        for (number, bytes) in self.push_number(elements.len()).iter_mut().zip(elements) {
            *number = E::load(*bytes);
        }
    }

    fn store<const N: usize, E: Element<N, Number = T>>(&mut self, target: &mut [[u8; N]]) {
        for (bytes, number) in target.iter_mut().zip(&self.numbers) {
            *bytes = E::store(*number);
        }
        self.number = 0;
    }

    fn push_number(&mut self, elements: usize) -> &mut [T] {
        self.number += 1;
        self.top_number(elements)
    }

    fn top_number(&mut self, elements: usize) -> &mut [T] {
        &mut self.numbers[(self.number - 1) * self.block..][..elements]
    }

    /// Takes the top block off: it, and the one below that takes the result.
    fn pop_number(&mut self, elements: usize) -> (&mut [T], &[T]) {
        self.number -= 1;
        let (xs, ys) = self.numbers[(self.number - 1) * self.block..].split_at_mut(self.block);
        (&mut xs[..elements], &ys[..elements])
    }
}
