//! `collc`: check, compile, run and format collectives written in the coll language.
//!
//! Exit codes: 0 all is well; 1 what was checked is wrong, or a run gave wrong numbers or failed; 2 the input or
//! the options cannot be used, or the output cannot be written.

mod args;
mod cmd;
mod environment;
mod failure;
mod interrupts;
mod output;
mod processes;
mod render;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    environment::read();
    let done = match cli.command {
        Command::Check(args) => cmd::check::run(&args),
        Command::Compile(args) => cmd::compile::run(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Import(args) => cmd::import::run(&args),
        Command::Export(args) => cmd::export::run(&args),
        Command::Fmt(args) => cmd::fmt::run(&args),
        Command::List(args) => cmd::list::run(&args),
        Command::Env(args) => cmd::env::run(&args),
        Command::Explain(args) => cmd::explain::run(&args),
        Command::ExplainChoice(args) => cmd::explain_choice::run(&args),
        Command::Sim(args) => cmd::sim::run(&args),
        Command::Compare(args) => cmd::compare::run(&args),
        Command::Rank => cmd::run::rank(),
        Command::DeviceRank => cmd::run::device_rank(),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Tune(args) => cmd::tune::run(&args),
        Command::Topo(args) => cmd::topo::run(&args),
        Command::ProbeRank => cmd::topo::probe_rank(),
        Command::BenchRank => cmd::bench::rank(),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            output::complain(&failure.to_string());
            failure.exit_code()
        }
    }
}

/// Help and version go to standard output and are no error; all else is a wrong command line.
fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let text = error.render();
        output::complain_raw(&if output::colours() { text.ansi().to_string() } else { text.to_string() });
        return ExitCode::from(2);
    }
    match output::print(&error.render().to_string()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(&failure.to_string());
            failure.exit_code()
        }
    }
}
