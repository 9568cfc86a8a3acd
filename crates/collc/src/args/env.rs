//! The options of `collc env`.

use super::Format;
use clap::Args;

#[derive(Args)]
pub(crate) struct EnvArgs {
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}
