//! Reductions, casts and operator expressions on runs of elements.
//!
//! A [`Reducer`] is an operator bound to an element type, built in or a user's own; it works on bytes of any
//! alignment, and says what a rank puts in and what is made of the result. [`oracle`] says what a reduction should
//! give and how far off it may be; [`sample_laws`] tries whether an operator is what it must be for schedules to
//! regroup it.
//!
//! # What operators compute
//! The manual's page on operators is made from [`manual`]. In short: integers wrap; narrow floats are computed in `f32` and
//! rounded to nearest even at each combination; `min` and `max` propagate NaN, and `-0` is less than `0`; `avg` never
//! forms a sum that overflows where the mean does not. A pair that makes no sense is refused as [`Unsupported`].

mod average;
mod cast;
mod divide;
mod element;
mod expr;
mod interpret;
mod kernel;
mod laws;
mod manual;
mod many;
mod narrow;
mod narrow8;
mod native;
mod number;
pub mod oracle;
mod program;
mod reducer;
mod scale;
mod simd;
mod table;
mod unsupported;
mod wide;

pub use cast::Cast;
pub use expr::{Binary, Expr, Unary, UserOperator};
pub use laws::{Law, LawBreak, sample_laws};
pub use manual::manual;
pub use native::UserCode;
pub use reducer::Reducer;
pub use simd::copy_past_cache;
pub use unsupported::Unsupported;
