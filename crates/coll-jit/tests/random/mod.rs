//! Random operators and elements, from a seed that is printed and can be given again.

use coll_base::DType;
use coll_kernel::oracle::{self, Scalar};
use coll_kernel::{Binary, Expr, Unary, UserOperator};
use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, 2014).
pub(crate) struct Random(u64);

/// Elements that begin at an odd place of a larger allocation.
#[derive(Clone)]
pub(crate) struct Elements {
    all: Vec<u8>,
    start: usize,
    end: usize,
}

impl Elements {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.all[self.start..self.end]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.all[self.start..self.end]
    }

    /// What lies before and behind them.
    pub(crate) fn around(&self) -> (&[u8], &[u8]) {
        (&self.all[..self.start], &self.all[self.end..])
    }
}

impl Random {
    /// The seed is that of `COLLC_TEST_SEED`, or a new one.
    pub(crate) fn seeded() -> Random {
        let given = std::env::var("COLLC_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
        let seed = given.unwrap_or_else(now);
        println!("COLLC_TEST_SEED={seed} replays this run");
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Elements at a random address: bit patterns, special values, small numbers.
    pub(crate) fn elements(&mut self, dtype: DType, elements: usize) -> Elements {
        let start = self.below(17);
        let mut all = vec![0xee; start];
        for _ in 0..elements {
            self.element(dtype, &mut all);
        }
        let end = all.len();
        all.extend([0xee; 32]);
        Elements { all, start, end }
    }

    fn element(&mut self, dtype: DType, bytes: &mut Vec<u8>) {
        const SPECIAL: [f64; 9] = [
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            1e-42,
        ];
        let size = dtype.size_bytes() as usize;
        match self.below(5) {
            0 => bytes.extend(&self.next().to_ne_bytes()[..size]),
            1 => {
                let pattern = self.one_of(&[0u64, !0, 1 << 63, !0 >> 1, 1, !0 << 1]);
                // The most significant bytes of the pattern, so that its first bit is the sign.
                bytes.extend((pattern >> (64 - 8 * size)).to_ne_bytes().into_iter().take(size));
            }
            2 if dtype.is_float() => {
                oracle::write(dtype, Scalar::Float(self.one_of(&SPECIAL)), bytes);
            }
            // Distances of shifts among them.
            2 => {
                let near = self.one_of(&[8i128, 16, 32, 64]) + self.below(3) as i128 - 1;
                oracle::write(dtype, Scalar::Int(near), bytes);
            }
            3 if dtype.is_float() => {
                let value = (self.below(2001) as f64 - 1000.0) / 64.0;
                oracle::write(dtype, Scalar::Float(value), bytes);
            }
            _ => {
                let small = self.below(13) as i128 - 6;
                oracle::write(dtype, Scalar::Int(small), bytes);
            }
        }
    }

    /// An operator that suits the type, but for one in ten.
    pub(crate) fn operator(&mut self, dtype: DType) -> (UserOperator, Vec<f64>) {
        let float = if self.below(10) == 0 { !dtype.is_float() } else { dtype.is_float() };
        let params: Vec<f64> = (0..self.below(3)).map(|_| self.below(9) as f64).collect();
        let made_of = |operands| Made { operands, float, params: params.len() };
        let (two, one) = (made_of(&[Expr::Left, Expr::Right]), made_of(&[Expr::Input]));
        let depth = 1 + self.below(5);
        let combine = self.number(&two, depth);
        let mut maybe = || (self.below(3) == 0).then(|| self.number(&one, 3));
        let (given, ensure) = (maybe(), maybe());
        let names = (0..params.len()).map(|index| format!("p{index}")).collect();
        let operator =
            UserOperator { name: "f".into(), commutative: true, params: names, combine, given, ensure };
        (operator, params)
    }

    fn number(&mut self, of: &Made, depth: usize) -> Expr {
        use Binary::{Add, BitAnd, BitOr, BitXor, Div, Max, Min, Mod, Mul, Shl, Shr, Sub};
        if depth == 0 {
            return self.leaf(of);
        }
        let part = |random: &mut Random| Box::new(random.number(of, depth - 1));
        match self.below(10) {
            0 => self.leaf(of),
            1 => {
                let all = [Unary::Neg, Unary::Abs, Unary::Sqrt];
                let op = self.one_of(if of.float { &all } else { &all[..2] });
                Expr::Unary(op, part(self))
            }
            2 | 3 => {
                let condition = Box::new(self.truth(of, depth - 1));
                Expr::If(condition, part(self), part(self))
            }
            _ => {
                let all = [Add, Sub, Mul, Div, Min, Max, Mod, BitAnd, BitOr, BitXor, Shl, Shr];
                // Remainders rarely, for they keep the whole from being computed in vectors.
                let op = match self.below(8) {
                    0 => Mod,
                    _ if of.float => self.one_of(&all[..6]),
                    _ => self.one_of(&all),
                };
                Expr::Binary(op, part(self), part(self))
            }
        }
    }

    fn truth(&mut self, of: &Made, depth: usize) -> Expr {
        use Binary::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 => Expr::Bool(self.below(2) == 0),
            1 | 2 if depth > 0 => Expr::Unary(Unary::Not, Box::new(self.truth(of, depth - 1))),
            6..=9 => {
                let (x, y) = (self.truth(of, depth - 1), self.truth(of, depth - 1));
                Expr::Binary(self.one_of(&[And, Or]), x.into(), y.into())
            }
            _ => {
                let (x, y) = (self.number(of, depth / 2), self.number(of, depth / 2));
                Expr::Binary(self.one_of(&[Eq, Ne, Lt, Le, Gt, Ge]), x.into(), y.into())
            }
        }
    }

    fn leaf(&mut self, of: &Made) -> Expr {
        match self.below(8) {
            0 if of.float => Expr::Float((self.below(65) as f64 - 32.0) / 8.0),
            0 | 1 => Expr::Int(self.below(10) as i64),
            2 if of.params > 0 => Expr::Param(self.below(of.params) as u32),
            _ => of.operands[self.below(of.operands.len())].clone(),
        }
    }

    /// An expression of nearly so many nodes, all of one operator.
    pub(crate) fn expression_of(&mut self, op: Binary, nodes: usize) -> Expr {
        if nodes < 3 {
            return match self.below(3) {
                0 => Expr::Left,
                1 => Expr::Right,
                _ => Expr::Int(self.below(100) as i64),
            };
        }
        let left = (nodes - 1) / 2;
        let x = self.expression_of(op, left).into();
        Expr::Binary(op, x, self.expression_of(op, nodes - 1 - left).into())
    }
}

/// What an expression may be made of.
struct Made<'a> {
    operands: &'a [Expr],
    float: bool,
    params: usize,
}
