//! Which entries a reducer needs, and where they come from.

use crate::builtin::{combine_name, finish_name, prepare_name};
use crate::entry::ARITIES;
use crate::ptx::ptx_of;
use crate::user;
use crate::working::Working;
use coll_base::RedOp;
use coll_kernel::{Reducer, Unsupported};

/// The entries of one reducer.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// Of each of [`ARITIES`].
    combine: [String; ARITIES.len()],
    prepare: Option<String>,
    finish: Option<String>,
    source: Option<String>,
    working_size_bytes: u64,
}

impl Kernels {
    /// Of a reducer, built in or a user's, accumulated in `f32` or not.
    ///
    /// # Errors
    /// A user's operator is larger than a compiler may be asked to take.
    pub fn of(reducer: &Reducer) -> Result<Kernels, Unsupported> {
        match (reducer.builtin_op(), reducer.user_operator()) {
            (Some(op), _) => Ok(Kernels::of_builtin(op, reducer)),
            (None, Some((operator, params))) => {
                let source = user::source(operator, params, reducer).map_err(|reason| Unsupported {
                    operator: operator.name.clone(),
                    dtype: reducer.dtype(),
                    reason,
                })?;
                let in_f32 = reducer.is_in_f32();
                Ok(Kernels {
                    combine: ARITIES.map(user::combine_name),
                    prepare: (in_f32 || operator.given.is_some()).then(|| user::PREPARE.into()),
                    finish: (in_f32 || operator.ensure.is_some()).then(|| user::FINISH.into()),
                    source: Some(source),
                    working_size_bytes: reducer.working_size_bytes(),
                })
            }
            (None, None) => unreachable!("invariant: a reducer is built in or a user's"),
        }
    }

    fn of_builtin(op: RedOp, reducer: &Reducer) -> Kernels {
        let (dtype, in_f32) = (reducer.dtype(), reducer.is_in_f32());
        let working = match (op, reducer.working_dtype()) {
            (RedOp::Avg, None) => Working::of_average(dtype),
            (_, working) => Working::Type(working.unwrap_or(dtype)),
        };
        Kernels {
            combine: ARITIES.map(|sources| combine_name(sources, op, working)),
            prepare: prepare_name(op, dtype, in_f32),
            finish: finish_name(op, dtype, in_f32),
            source: None,
            working_size_bytes: reducer.working_size_bytes(),
        }
    }

    /// The entry that combines so many operands at once, if there is one: for each of [`ARITIES`].
    pub fn combine(&self, sources: usize) -> Option<&str> {
        ARITIES.iter().position(|&arity| arity == sources).map(|index| self.combine[index].as_str())
    }

    /// The entry that makes working elements of what a rank puts in. None if they are the same.
    pub fn prepare(&self) -> Option<&str> {
        self.prepare.as_deref()
    }

    /// The entry that makes elements of working elements. None if they are the same.
    pub fn finish(&self) -> Option<&str> {
        self.finish.as_deref()
    }

    /// Bytes of a working element.
    pub fn working_size_bytes(&self) -> u64 {
        self.working_size_bytes
    }

    /// True if preparing and finishing take the arguments of [`crate::Shape::Map`], and not those of
    /// [`crate::Shape::Prepare`] and [`crate::Shape::Finish`]: those of a user's operator do.
    pub fn is_user(&self) -> bool {
        self.source.is_some()
    }

    /// All entries.
    pub fn entries(&self) -> Vec<&str> {
        let maps = [self.prepare(), self.finish()];
        self.combine.iter().map(String::as_str).chain(maps.into_iter().flatten()).collect()
    }

    /// CUDA C++ of a user's operator, for a compiler at run time. None for a built-in one.
    pub fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// PTX of all entries of a built-in operator, which every device of compute capability 7.0 or later takes. None for a
    /// user's.
    pub fn ptx(&self) -> Option<String> {
        if self.is_user() { None } else { ptx_of(&self.entries()) }
    }
}
