//! Why there is no machine code for an operator.

use coll_base::DType;
use cranelift_module::ModuleError;

/// Why an operator has no machine code. Nothing is lost: the interpreter runs what it accepts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JitError {
    /// The element type is not known to this crate.
    #[error("no machine code is made for elements of {dtype}")]
    Type {
        /// The element type.
        dtype: DType,
    },
    /// The expression is not well formed, or asks of the element type what it does not have.
    #[error("no machine code is made of such an expression: {reason}")]
    Expression {
        /// What is wrong with it.
        reason: String,
    },
    /// The expression is so large that compiling it might take long.
    #[error("its expression has more than {max} parts, and no machine code is made of so large a one")]
    Large {
        /// The most parts that are compiled.
        max: usize,
    },
    /// Cranelift has no back end for this processor, or this crate no experience with it.
    #[error("no machine code is made for this processor: {reason}")]
    Processor {
        /// Why.
        reason: String,
    },
    /// The system does not give memory that can be executed.
    #[error("the system gives no executable memory: {reason}")]
    Memory {
        /// What it said.
        reason: String,
    },
    /// Cranelift refused what it was given, which is a fault of this crate.
    #[error("Cranelift makes no machine code of it: {reason}")]
    Compiler {
        /// What it said.
        reason: String,
    },
}

impl From<ModuleError> for JitError {
    fn from(error: ModuleError) -> JitError {
        match error {
            ModuleError::Allocation { message, err } => {
                JitError::Memory { reason: format!("{message}: {err}") }
            }
            // The memory provider is the only back end that reports errors this way; the cause is what the system said.
            ModuleError::Backend(error) => JitError::Memory { reason: format!("{error:#}") },
            other => JitError::Compiler { reason: format!("{other:?}") },
        }
    }
}
