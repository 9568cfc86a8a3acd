//! The hook for machine code: what code of a user's operator does, whoever makes it.
//!
//! This crate interprets operators and knows no compiler. One that has made machine code for an operator hands it in
//! through [`Reducer::user_native`](crate::Reducer::user_native); what it computes must equal what the interpreter does.

use std::sync::Arc;

/// Code of a user's operator for one element type and one value for each parameter. All slices of a call are as long,
/// whole elements, of any alignment.
pub trait UserCode: Send + Sync {
    /// `target := a ⊕ b`; where an operand is not given it is the target itself.
    fn combine(&self, target: &mut [u8], a: Option<&[u8]>, b: Option<&[u8]>);
    /// What a rank puts in: `given`, or the value as it is.
    fn prepare(&self, input: &[u8], working: &mut [u8]);
    /// What is made of the finished value: `ensure`, or the value as it is.
    fn finish(&self, working: &[u8], output: &mut [u8]);
    /// The same operator on `f32`, for [`Reducer::in_f32`](crate::Reducer::in_f32). None if there is no code for it: it is
    /// interpreted then.
    fn in_f32(&self) -> Option<Arc<dyn UserCode>> {
        None
    }
}
