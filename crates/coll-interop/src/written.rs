//! What a writer gives: a text, and which limits of the runtimes that load its form it exceeds. A runtime would refuse such a
//! file, or load it and go wrong, so that whoever writes it has to ask for it.

use crate::codes::INEXPRESSIBLE;
use coll_base::Diagnostic;
use coll_plan::Plan;

/// A file's text.
#[derive(Clone, Debug)]
pub struct Written {
    /// All of it.
    pub text: String,
    /// Limits of runtimes that it exceeds, each with whose it is.
    pub beyond: Vec<String>,
    /// The form, and who loads it.
    pub(crate) form: &'static str,
    pub(crate) loaded_by: &'static str,
}

impl Written {
    /// The text, if it exceeds no limit.
    ///
    /// # Errors
    /// Which limits it exceeds.
    pub fn within_limits(self, plan: &Plan) -> Result<String, Box<Diagnostic>> {
        if self.beyond.is_empty() {
            return Ok(self.text);
        }
        let Written { form, loaded_by, beyond, .. } = self;
        let message = format!("{} would not run in {form}", plan.name);
        Err(Box::new(
            Diagnostic::unplaced(INEXPRESSIBLE, message)
                .expected(format!("a file that {loaded_by} can load"))
                .found(beyond.join("; "))
                .help(
                    "take another schedule, or fewer ranks; `--ignore-limits` writes it all the same, for tools that have others",
                ),
        ))
    }
}

/// A limit that is exceeded, in words.
pub(crate) fn over(most: u64, limit: u64, what: &str, whose: &str) -> Option<String> {
    (most > limit).then(|| format!("{most} {what}, where {whose} takes {limit}"))
}
