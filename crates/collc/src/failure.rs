//! What ends a command before it could give its answer.

use std::fmt;
use std::process::ExitCode;

/// One message and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
    code: u8,
}

impl Failure {
    /// The input, the options or the output cannot be used: exit code 2.
    pub(crate) fn unusable(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), help: None, code: 2 }
    }

    /// What was asked for was tried and went wrong: exit code 1.
    pub(crate) fn wrong(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), help: None, code: 1 }
    }

    /// Stopped by the user: exit code 130, as shells have it for an interrupt.
    pub(crate) fn interrupted() -> Failure {
        Failure { message: "interrupted".into(), help: None, code: 130 }
    }

    /// The way out.
    pub(crate) fn help(self, help: impl Into<String>) -> Failure {
        Failure { help: Some(help.into()), ..self }
    }

    /// The exit code it asks for.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// The message without its help.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl From<coll::ReadError> for Failure {
    fn from(error: coll::ReadError) -> Failure {
        Failure::unusable(error.to_string())
    }
}
