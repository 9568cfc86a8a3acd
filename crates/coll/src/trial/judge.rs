//! Was every element right? Each ensured block is compared with a serial reduction of the leaves that the contract
//! names, worked out in wide arithmetic from the same inputs.

use crate::trial::Inputs;
use coll_base::{DType, RedOp};
use coll_contract::{Contract, Ensure, Leaf, Value};
use coll_kernel::Reducer;
use coll_kernel::oracle::{self, Expected, Scalar};

/// Elements that are judged at a time: what all leaves need of them stays in cache.
const STRIDE: u64 = 4096;

/// Judges what one rank holds at the end.
pub struct Judge<'a> {
    /// The contract, or the rank's slice of it.
    pub contract: &'a Contract,
    /// Elements by count class.
    pub counts: &'a [u64],
    /// What the ranks put in.
    pub inputs: Inputs,
    /// The built-in operator; none is the user's that `reducer` holds.
    pub op: Option<RedOp>,
    /// The operator, interpreted if it is the user's; in `f32` where the plan accumulates so.
    pub reducer: &'a Reducer,
    /// What elements travel as, if that is narrower than they are: see [`travels_as`](crate::trial::travels_as).
    pub wire: Option<DType>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Elements that are wrong.
    pub wrong: u64,
    /// The first of them, in words.
    pub first: Option<String>,
    /// For each ensured block, a key of the value it holds and a digest of its bytes: equal keys with different digests
    /// are ranks that disagree in bits.
    pub digests: Vec<(u64, u64)>,
}

impl Verdict {
    /// Adds what another judgement of the same rank found.
    pub fn take(&mut self, other: Verdict) {
        self.wrong += other.wrong;
        self.first = self.first.take().or(other.first);
        self.digests.extend(other.digests);
    }
}

impl Judge<'_> {
    /// Judges the ensured blocks of `rank`: `outputs` holds, for each buffer, their bytes in block order.
    pub fn verdict(&self, rank: u32, outputs: &[&[u8]]) -> Verdict {
        let mut verdict = Verdict { digests: self.digests(rank, outputs), ..Verdict::default() };
        let mut offsets = vec![0usize; outputs.len()];
        for ensure in self.contract.ensures_of(rank) {
            let class = self.contract.class(rank, ensure.buffer, ensure.block);
            let count = self.counts[class as usize];
            let size = (count * self.inputs.dtype.size_bytes()) as usize;
            let buffer = ensure.buffer as usize;
            let bytes = &outputs[buffer][offsets[buffer]..offsets[buffer] + size];
            offsets[buffer] += size;
            let value = &self.contract.values[ensure.value as usize];
            let name = || match self.contract.buffers[buffer].blocks {
                1 => self.contract.buffers[buffer].name.clone(),
                _ => format!("{}[{}]", self.contract.buffers[buffer].name, ensure.block),
            };
            self.block(value, count, bytes, &mut verdict, &|index, found, due| {
                format!("rank {rank}: element {index} of {} is {found}, and should be {due}", name())
            });
        }
        verdict
    }

    /// What [`Verdict::digests`] says of outputs, without judging them.
    pub fn digests(&self, rank: u32, outputs: &[&[u8]]) -> Vec<(u64, u64)> {
        let mut rest = outputs.to_vec();
        let one = |ensure: &Ensure| {
            let class = self.contract.class(rank, ensure.buffer, ensure.block);
            let size = (self.counts[class as usize] * self.inputs.dtype.size_bytes()) as usize;
            let (bytes, after) = rest[ensure.buffer as usize].split_at(size);
            rest[ensure.buffer as usize] = after;
            (key(&self.contract.values[ensure.value as usize]), digest(0, bytes))
        };
        self.contract.ensures_of(rank).iter().map(one).collect()
    }

    fn block(
        &self,
        value: &Value,
        count: u64,
        bytes: &[u8],
        verdict: &mut Verdict,
        describe: &dyn Fn(u64, String, String) -> String,
    ) {
        let width = self.inputs.dtype.size_bytes() as usize;
        for start in (0..count).step_by(STRIDE as usize) {
            let end = (start + STRIDE).min(count);
            let expected = self.expected(value, start, end);
            for index in start..end {
                let at = index as usize * width;
                let found = oracle::read(self.inputs.dtype, &bytes[at..at + width]);
                let found = found.expect("invariant: a whole element was cut out");
                let due = expected[(index - start) as usize];
                if !due.accepts(found) {
                    verdict.wrong += 1;
                    if verdict.first.is_none() {
                        verdict.first = Some(describe(index, show(found), show_due(due)));
                    }
                }
            }
        }
    }

    /// What elements `start..end` of a value should be.
    fn expected(&self, value: &Value, start: u64, end: u64) -> Vec<Expected> {
        let leaves: Vec<Vec<u8>> = value.leaves().iter().map(|&leaf| self.leaf(leaf, start, end)).collect();
        let width = self.inputs.dtype.size_bytes() as usize;
        let scalar = |bytes: &[u8], i: usize| {
            oracle::read(self.inputs.dtype, &bytes[i * width..])
                .expect("invariant: leaves are filled to the end")
        };
        let elements = (end - start) as usize;
        match (value, self.op) {
            (Value::Copy(_), _) => {
                let one = |i: usize| self.travelled(&[scalar(&leaves[0], i)], exactly(scalar(&leaves[0], i)));
                (0..elements).map(one).collect()
            }
            (Value::Reduce(_), Some(op)) => {
                let mut column = Vec::with_capacity(leaves.len());
                let one = |i: usize| {
                    column.clear();
                    column.extend(leaves.iter().map(|leaf| scalar(leaf, i)));
                    let expected = match self.reducer.is_in_f32() {
                        true => oracle::expected_in_f32,
                        false => oracle::expected_with,
                    };
                    let due = expected(self.inputs.dtype, op, self.reducer.params(), &column)
                        .expect("invariant: leaves are of the type, and the reducer works on it");
                    self.travelled(&column, due)
                };
                (0..elements).map(one).collect()
            }
            (Value::Reduce(_), None) => {
                let folded = self.fold(&leaves);
                let one = |i: usize| {
                    let column: Vec<Scalar> = leaves.iter().map(|leaf| scalar(leaf, i)).collect();
                    self.travelled(&column, self.around(scalar(&folded, i), &leaves, i, &scalar))
                };
                (0..elements).map(one).collect()
            }
        }
    }

    /// What is due of elements that travelled as narrower ones: what was put in did, and each partial result.
    fn travelled(&self, leaves: &[Scalar], due: Expected) -> Expected {
        let Some(wire) = self.wire else { return due };
        let factor = match self.op {
            Some(RedOp::Avg) => 1.0 / leaves.len() as f64,
            Some(RedOp::PremulSum) => self.reducer.params().first().copied().unwrap_or(1.0),
            _ => 1.0,
        };
        let put_in = |leaf: &Scalar| match *leaf {
            Scalar::Float(x) => Scalar::Float(x * factor),
            Scalar::Complex(x, y) => Scalar::Complex(x * factor, y * factor),
            other => other,
        };
        oracle::over_wire(wire, self.op, &leaves.iter().map(put_in).collect::<Vec<_>>(), due)
    }

    fn leaf(&self, leaf: Leaf, start: u64, end: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(((end - start) * self.inputs.dtype.size_bytes()) as usize);
        self.inputs.fill(leaf, start, end, &mut bytes);
        bytes
    }

    /// A user's operator has no wide form: it is folded serially, in the contract's order, in the type itself.
    fn fold(&self, leaves: &[Vec<u8>]) -> Vec<u8> {
        let (ranks, width) = (u64::from(self.contract.ranks), self.inputs.dtype.size_bytes());
        let elements = leaves[0].len() as u64 / width;
        let prepared = |leaf: &Vec<u8>| {
            let mut working = vec![0; (elements * self.reducer.working_size_bytes()) as usize];
            self.reducer.prepare(ranks, leaf, &mut working);
            working
        };
        let mut total = prepared(&leaves[0]);
        for leaf in &leaves[1..] {
            self.reducer.combine_into(&mut total, None, &prepared(leaf), false);
        }
        let mut result = vec![0; leaves[0].len()];
        self.reducer.finish(ranks, leaves.len() as u64, &total, &mut result);
        result
    }

    /// A float result of a user's operator may differ by what regrouping does to a sum of the same values: n roundings of
    /// their magnitude and the result's.
    fn around(
        &self,
        due: Scalar,
        leaves: &[Vec<u8>],
        i: usize,
        scalar: &dyn Fn(&[u8], usize) -> Scalar,
    ) -> Expected {
        let Scalar::Float(value) = due else { return exactly(due) };
        let magnitude = |leaf: &Vec<u8>| match scalar(leaf, i) {
            Scalar::Float(x) => x.abs(),
            _ => 0.0,
        };
        let total = leaves.iter().map(magnitude).sum::<f64>().max(value.abs());
        let dtype = self.inputs.dtype;
        let bound = |dtype| 4.0 * leaves.len() as f64 * oracle::unit_roundoff(dtype) * total;
        let bound = match self.reducer.is_in_f32() {
            // What is due was rounded once, and so was what was found.
            true => (0..2).fold(bound(DType::F32), |bound, _| oracle::rounded_once(dtype, value, bound)),
            false => bound(dtype),
        };
        Expected::Float { value, bound }
    }
}

fn exactly(value: Scalar) -> Expected {
    match value {
        Scalar::Int(value) => Expected::Int(value),
        Scalar::Float(value) => Expected::Float { value, bound: 0.0 },
        Scalar::Complex(real, imaginary) => Expected::Complex { real, imaginary, bounds: [0.0; 2] },
        Scalar::IntAt(..) | Scalar::FloatAt(..) => Expected::At(value),
    }
}

fn show(value: Scalar) -> String {
    match value {
        Scalar::Int(value) => value.to_string(),
        Scalar::Float(value) => value.to_string(),
        Scalar::Complex(real, imaginary) => format!("({real}, {imaginary})"),
        Scalar::IntAt(value, index) => format!("{value} at {index}"),
        Scalar::FloatAt(value, index) => format!("{value} at {index}"),
    }
}

fn show_due(due: Expected) -> String {
    let near = |value: f64, bound: f64| match bound {
        0.0 => value.to_string(),
        bound => format!("{value} ± {bound:.1e}"),
    };
    match due {
        Expected::Int(value) => value.to_string(),
        Expected::Float { value, bound } => near(value, bound),
        Expected::Complex { real, imaginary, bounds } => {
            format!("({}, {})", near(real, bounds[0]), near(imaginary, bounds[1]))
        }
        Expected::At(value) => show(value),
    }
}

/// The same for equal values on every rank.
fn key(value: &Value) -> u64 {
    let kind = u64::from(value.is_reduction());
    value.leaves().iter().fold(kind, |key, leaf| {
        [leaf.rank, leaf.buffer, leaf.block].iter().fold(key, |key, &part| fnv(key, &part.to_le_bytes()))
    })
}

fn digest(seed: u64, bytes: &[u8]) -> u64 {
    fnv(seed, bytes)
}

/// FNV-1a: a difference in bits is to be noticed, not an adversary.
fn fnv(seed: u64, bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    bytes.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
