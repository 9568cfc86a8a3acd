//! Reductions, casts and operator expressions on runs of elements.
//!
//! A [`Reducer`] is an operator bound to an element type, built in or a user's own; it works on bytes of any
//! alignment, and says what a rank puts in and what is made of the result. [`oracle`] says what a reduction should
//! give and how far off it may be; [`sample_laws`] tries whether an operator is what it must be for schedules to
//! regroup it.
//!
//! # What operators compute
//! Integers wrap. `f16` and `bf16` are computed in `f32` and rounded to nearest even at each combination. `min` and
//! `max` propagate NaN, and `-0` is less than `0`. `avg` puts in `x / n` for floats; integers are summed in twice the
//! width or more and divided once, toward zero.

mod average;
mod combine;
mod element;
mod expr;
mod interpret;
mod laws;
mod narrow;
mod native;
mod number;
pub mod oracle;
mod program;
mod reducer;
mod unsupported;

pub use expr::{Binary, Expr, Unary, UserOperator};
pub use laws::{Law, LawBreak, sample_laws};
pub use native::UserCode;
pub use reducer::Reducer;
pub use unsupported::Unsupported;
