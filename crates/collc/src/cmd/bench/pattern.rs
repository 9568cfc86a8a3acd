//! Inputs and results of a benchmark: a pattern with a period of 13 elements, so that a result is known by its first 13
//! elements, and what is found can be compared at the speed of memory.

use super::settings::Settings;
use coll_base::{DType, RedOp};
use coll_contract::{Contract, Leaf, Value};
use coll_kernel::oracle::{self, Expected, Scalar};
use coll_kernel::{Cast, Reducer};

const PERIOD: usize = 13;

/// What ranks put in, and what comes of it.
#[derive(Clone, Copy)]
pub(super) struct Pattern {
    pub(super) dtype: DType,
    pub(super) op: RedOp,
    /// Narrow floats are accumulated in `f32`.
    pub(super) accumulate: bool,
    /// What wider floats travel as.
    pub(super) wire: Option<DType>,
}

impl Pattern {
    pub(super) fn of(settings: &Settings) -> Pattern {
        let Settings { dtype, op, accumulate, wire, .. } = *settings;
        Pattern { dtype, op, accumulate: accumulate.is_some(), wire }
    }

    fn scalar(self, leaf: Leaf, residue: usize) -> Scalar {
        let place = residue as u64 + 5 * u64::from(leaf.block);
        let value = match self.op {
            // Products of many ranks stay in range.
            RedOp::Prod => 1 + u64::from((place + u64::from(leaf.rank)).is_multiple_of(PERIOD as u64)),
            _ => (u64::from(leaf.rank) % 64 + 1) + place % PERIOD as u64,
        };
        let scalar = match self.dtype {
            // The same in every position, so that even a single wrong one among truth values shows.
            DType::Bool => Scalar::Int(1),
            DType::C64 | DType::C128 => Scalar::Complex(value as f64, 0.0),
            DType::I32I32 | DType::I64I64 => Scalar::IntAt(i128::from(value), i64::from(leaf.rank)),
            DType::F32I32 | DType::F64I64 => Scalar::FloatAt(value as f64, i64::from(leaf.rank)),
            dtype if dtype.is_float() => Scalar::Float(value as f64),
            _ => Scalar::Int(i128::from(value)),
        };
        // As the type holds it: 8-bit floats do not hold every such number.
        let mut held = Vec::new();
        oracle::write(self.dtype, scalar, &mut held);
        oracle::read(self.dtype, &held).unwrap_or(scalar)
    }

    /// Writes a leaf into memory of whole elements.
    pub(super) fn fill(self, leaf: Leaf, bytes: &mut [u8]) {
        let mut tile = Vec::new();
        (0..PERIOD).for_each(|residue| oracle::write(self.dtype, self.scalar(leaf, residue), &mut tile));
        for part in bytes.chunks_mut(tile.len()) {
            part.copy_from_slice(&tile[..part.len()]);
        }
    }

    /// Counts the elements of a block that are not what the contract asks for.
    pub(super) fn wrong(self, value: &Value, bytes: &[u8]) -> u64 {
        let width = self.dtype.size_bytes() as usize;
        let due: Vec<Option<Expected>> = (0..PERIOD).map(|residue| self.expected(value, residue)).collect();
        // What was accepted once need not be looked at again.
        let mut accepted: Vec<Option<&[u8]>> = vec![None; PERIOD];
        let mut wrong = 0;
        let period = PERIOD * width;
        let mut tile: &[u8] = &[];
        for part in bytes.chunks(period) {
            if part.len() == period && part == tile {
                continue;
            }
            let before = wrong;
            for (residue, element) in part.chunks(width).enumerate() {
                if accepted[residue] == Some(element) {
                    continue;
                }
                let found = oracle::read(self.dtype, element);
                match (found, due[residue]) {
                    (Some(found), Some(due)) if due.accepts(found) => accepted[residue] = Some(element),
                    _ => wrong += 1,
                }
            }
            if wrong == before && part.len() == period {
                tile = part;
            }
        }
        wrong
    }

    fn expected(self, value: &Value, residue: usize) -> Option<Expected> {
        let column: Vec<Scalar> = value.leaves().iter().map(|&leaf| self.scalar(leaf, residue)).collect();
        let due = match value {
            Value::Reduce(_) if self.working()?.is_in_f32() => {
                oracle::expected_in_f32(self.dtype, self.op, &[], &column)
            }
            Value::Reduce(_) => oracle::expected(self.dtype, self.op, &column),
            Value::Copy(_) => column.first().map(|&scalar| match scalar {
                Scalar::Int(value) => Expected::Int(value),
                Scalar::Float(value) => Expected::Float { value, bound: 0.0 },
                Scalar::Complex(real, imaginary) => Expected::Complex { real, imaginary, bounds: [0.0; 2] },
                at @ (Scalar::IntAt(..) | Scalar::FloatAt(..)) => Expected::At(at),
            }),
        };
        due.map(|due| self.travelled(value, &column, due))
    }

    /// What the operator works with.
    fn working(self) -> Option<Reducer> {
        let reducer = Reducer::builtin(self.op, self.dtype).ok()?;
        let wide = if self.accumulate { reducer.in_f32() } else { None };
        Some(wide.unwrap_or(reducer))
    }

    /// What is due of elements that travelled as narrower ones.
    fn travelled(self, value: &Value, column: &[Scalar], due: Expected) -> Expected {
        let Some(wire) = self.wire else { return due };
        let reduces = value.is_reduction();
        let working = self.working().filter(|reducer| reduces && !reducer.is_direct());
        let memory = working.map_or(Some(self.dtype), |reducer| reducer.working_dtype());
        if memory.and_then(|memory| Cast::narrowing(memory, wire)).is_none() {
            return due;
        }
        // A mean's terms travel as shares of it.
        let share = if reduces && self.op == RedOp::Avg { 1.0 / column.len() as f64 } else { 1.0 };
        let put_in = |scalar: &Scalar| match *scalar {
            Scalar::Float(x) => Scalar::Float(x * share),
            Scalar::Complex(x, y) => Scalar::Complex(x * share, y * share),
            other => other,
        };
        let put_in: Vec<Scalar> = column.iter().map(put_in).collect();
        oracle::over_wire(wire, reduces.then_some(self.op), &put_in, due)
    }
}

/// One rank's buffers, filled and judged by the pattern.
pub(super) struct Side<'c> {
    pub(super) pattern: Pattern,
    /// The contract, or the rank's slice of it.
    pub(super) contract: &'c Contract,
    /// Elements by count class.
    pub(super) counts: &'c [u64],
    pub(super) rank: u32,
    /// Memory holds every block, not only those that are given or ensured.
    pub(super) in_place: bool,
}

impl Side<'_> {
    /// Fills a buffer's given blocks, one after the other, or, in place, every block. Gives the bytes it took.
    pub(super) fn fill(&self, buffer: u32, bytes: &mut [u8]) -> usize {
        let mut used = 0;
        for block in 0..self.contract.buffers[buffer as usize].blocks {
            let given = self.contract.is_given(self.rank, buffer, block);
            if !given && !self.in_place {
                continue;
            }
            let own = &mut bytes[used..][..self.size(buffer, block)];
            used += own.len();
            match given {
                true => self.pattern.fill(Leaf { rank: self.rank, buffer, block }, own),
                false => own.fill(0),
            }
        }
        used
    }

    /// Counts wrong elements of a buffer's ensured blocks, one after the other, or, in place, among all blocks. Gives the
    /// bytes it took as well.
    pub(super) fn wrong(&self, buffer: u32, bytes: &[u8]) -> (u64, usize) {
        let (mut wrong, mut used) = (0, 0);
        for block in 0..self.contract.buffers[buffer as usize].blocks {
            let ensured = self.contract.ensured(self.rank, buffer, block);
            if ensured.is_none() && !self.in_place {
                continue;
            }
            let own = &bytes[used..][..self.size(buffer, block)];
            used += own.len();
            wrong += ensured.map_or(0, |value| self.pattern.wrong(value, own));
        }
        (wrong, used)
    }

    fn size(&self, buffer: u32, block: u32) -> usize {
        let class = self.contract.class(self.rank, buffer, block);
        (self.counts[class as usize] * self.pattern.dtype.size_bytes()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_element_is_counted() {
        for dtype in DType::ALL {
            for op in [RedOp::Sum, RedOp::Min, RedOp::Prod] {
                // Any byte but zero is the same truth value.
                if coll_kernel::Reducer::builtin(op, dtype).is_err() || dtype == DType::Bool {
                    continue;
                }
                let pattern = Pattern { dtype, op, accumulate: false, wire: None };
                let leaf = |rank| Leaf { rank, buffer: 0, block: 1 };
                let value = Value::Reduce(vec![leaf(3)]);
                let width = dtype.size_bytes() as usize;
                let mut bytes = vec![0; 100 * width];
                pattern.fill(leaf(3), &mut bytes);
                assert_eq!(pattern.wrong(&value, &bytes), 0, "{dtype} {op}");
                for at in [0, 12, 13, 57, 99] {
                    bytes[at * width..][..width].fill(0x7B);
                }
                assert_eq!(pattern.wrong(&value, &bytes), 5, "{dtype} {op}");
                pattern.fill(leaf(3), &mut bytes);
                let two = Value::Reduce(vec![leaf(3), leaf(4)]);
                assert!(op != RedOp::Sum || pattern.wrong(&two, &bytes) == 100, "{dtype}");
            }
        }
    }
}
