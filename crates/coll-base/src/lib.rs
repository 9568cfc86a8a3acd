//! The words every other crate shares: places in source text, diagnostics, exact fractions, checked
//! integer maths, element types and operator names, and the nearest of known names.
//!
//! Nothing here knows what a schedule or a plan is. The list of modules is the crate's whole contents;
//! growing it is a decision, so that the crate does not become an attic.

mod diagnostic;
mod dtype;
mod fraction;
pub mod math;
mod source;
mod suggest;
mod values;

pub use diagnostic::{Code, Diagnostic, Label, Severity};
pub use dtype::{DType, RedOp};
pub use fraction::{Fraction, FractionError};
pub use source::{FileId, LineColumn, SourceMap, Span};
pub use suggest::nearest;
pub use values::{named_options, named_values};
