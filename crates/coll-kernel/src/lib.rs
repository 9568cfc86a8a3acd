//! Reductions, casts and operator expressions on runs of elements.

mod expr;

pub use expr::{Binary, Expr, Unary, UserOperator};
