//! Tries on sample values whether an operator is associative, and commutative if it says so. Schedules regroup and,
//! unless the operator is declared `ordered`, reorder: an operator that minds gives other results on other schedules.

use crate::expr::UserOperator;
use crate::interpret::interpreter;
use crate::native::UserCode;
use coll_base::DType;
use std::fmt;

/// What an operator must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// `(a ⊕ b) ⊕ c == a ⊕ (b ⊕ c)`
    Associative,
    /// `a ⊕ b == b ⊕ a`
    Commutative,
}

/// Values on which an operator breaks a law. Shown as `f(f(1, 2), 3) = 4, but f(1, f(2, 3)) = 5`.
#[derive(Clone, Debug, PartialEq)]
pub struct LawBreak {
    /// The operator's name.
    pub operator: String,
    /// The law.
    pub law: Law,
    /// The parameters' values that were tried, in order.
    pub params: Vec<f64>,
    /// Two or three operands.
    pub operands: Vec<f64>,
    /// What one side of the law gives.
    pub one: f64,
    /// What the other side gives.
    pub other: f64,
}

/// At most one counter-example for each law. Empty if none was found, or if the operator works on no type at all.
pub fn sample_laws(operator: &UserOperator) -> Vec<LawBreak> {
    // Whole numbers first: they show a break in values that are easy to follow. They are exact in both types.
    let params: Vec<f64> = (0..operator.params.len()).map(|index| [2.0, 3.0, 5.0][index % 3]).collect();
    let sampler = match interpreter(operator, DType::F64, &params) {
        Ok(code) => Sampler { code, encode: |x| x.to_ne_bytes(), decode: f64::from_ne_bytes },
        Err(_) => match interpreter(operator, DType::I64, &params) {
            Ok(code) => Sampler {
                code,
                encode: |x| (x as i64).to_ne_bytes(),
                decode: |bytes| i64::from_ne_bytes(bytes) as f64,
            },
            Err(_) => return Vec::new(),
        },
    };
    let found = |law, (operands, one, other)| LawBreak {
        operator: operator.name.clone(),
        law,
        params: params.clone(),
        operands,
        one,
        other,
    };
    let mut breaks = Vec::new();
    breaks.extend(sampler.associative().map(|example| found(Law::Associative, example)));
    if operator.commutative {
        breaks.extend(sampler.commutative().map(|example| found(Law::Commutative, example)));
    }
    breaks
}

/// Small values of both signs: sums and products of three are exact, so that a difference is no rounding.
const SAMPLES: [f64; 9] = [1.0, 2.0, 3.0, 0.0, -1.0, -2.0, 5.0, 7.0, -6.0];

type Example = (Vec<f64>, f64, f64);

struct Sampler {
    code: Box<dyn UserCode>,
    encode: fn(f64) -> [u8; 8],
    decode: fn([u8; 8]) -> f64,
}

impl Sampler {
    fn associative(&self) -> Option<Example> {
        let [a, b, c] = self.tuples::<3>();
        let one = self.combine(&self.combine(&a, &b), &c);
        let other = self.combine(&a, &self.combine(&b, &c));
        self.difference(&[a, b, c], &one, &other)
    }

    fn commutative(&self) -> Option<Example> {
        let [a, b] = self.tuples::<2>();
        self.difference(&[a.clone(), b.clone()], &self.combine(&a, &b), &self.combine(&b, &a))
    }

    /// Every tuple of samples, as a column for each place, those of small indices first.
    fn tuples<const K: usize>(&self) -> [Vec<u8>; K] {
        let mut order: Vec<usize> = (0..SAMPLES.len().pow(K as u32)).collect();
        let digit =
            |tuple: usize, place: usize| tuple / SAMPLES.len().pow((K - 1 - place) as u32) % SAMPLES.len();
        order.sort_by_key(|&tuple| (0..K).map(|place| digit(tuple, place)).max());
        std::array::from_fn(|place| {
            order.iter().flat_map(|&tuple| (self.encode)(SAMPLES[digit(tuple, place)])).collect()
        })
    }

    fn combine(&self, a: &[u8], b: &[u8]) -> Vec<u8> {
        let mut result = vec![0; a.len()];
        self.code.combine(&mut result, Some(a), Some(b));
        result
    }

    fn difference(&self, operands: &[Vec<u8>], one: &[u8], other: &[u8]) -> Option<Example> {
        let value = |column: &[u8], at: usize| (self.decode)(column.as_chunks::<8>().0[at]);
        (0..one.len() / 8).find(|&at| !agree(value(one, at), value(other, at))).map(|at| {
            let operands = operands.iter().map(|column| value(column, at)).collect();
            (operands, value(one, at), value(other, at))
        })
    }
}

/// Equal but for rounding: division and roots round even small values.
fn agree(x: f64, y: f64) -> bool {
    x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-9 * x.abs().max(y.abs())
}

impl fmt::Display for LawBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, x) = (&self.operator, &self.operands);
        let (one, other) = (self.one, self.other);
        match self.law {
            Law::Associative => {
                let [a, b, c] = [x[0], x[1], x[2]];
                write!(
                    f,
                    "{name}({name}({a}, {b}), {c}) = {one}, but {name}({a}, {name}({b}, {c})) = {other}"
                )
            }
            Law::Commutative => {
                write!(f, "{name}({a}, {b}) = {one}, but {name}({b}, {a}) = {other}", a = x[0], b = x[1])
            }
        }
    }
}
