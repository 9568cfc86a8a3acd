//! What collc reads of its environment: every variable that there is, and a warning for one that there is not.

use crate::failure::Failure;
use crate::output;
use std::env;

/// Each with what it is for.
const VARIABLES: [(&str, &str); 14] = [
    ("COLLC_ACCUMULATE", "`f32`: narrow floats are reduced in it and rounded once, as `--accumulate` has it"),
    (CHECKSUM, "`1`: what goes over TCP carries checksums, so that damage on the way ends a run"),
    (
        "COLLC_DETERMINISTIC",
        "`1`: schedules whose bits depend on the number of ranks alone, as `--deterministic` takes them",
    ),
    ("COLLC_DEVICES", "the device of each rank on COLLC_TOPOLOGY: `0,2,1,3`"),
    (
        FAULT,
        "of `collc run`: failures to rehearse, `rank2:step5:drop`, or delay, corrupt, kill; several with commas between",
    ),
    ("COLLC_JIT", "`off`: operators of one's own are interpreted"),
    (
        "COLLC_LOG",
        "what to log: `error`, `warn`, `info`, `debug`, `trace`, or a level for each crate, `coll=debug`",
    ),
    (
        "COLLC_RECORD",
        "of programs that use the library: what the files begin with that flight records are written to on a failure",
    ),
    (
        "COLLC_SCHEDULE",
        "schedules to take whatever they cost: `allreduce.ring`, or files for a communicator: `ring8.xml`",
    ),
    (
        TLS,
        "`1`: what goes over TCP goes within TLS, whose key is made from the job's token, as `--tls` has it",
    ),
    (TOKEN, "what ranks of this job know and others do not"),
    (
        "COLLC_TOPOLOGY",
        "what ranks run on, a file or a generator: schedules are chosen for it, as `run --topology` does",
    ),
    ("COLLC_TUNE", "the file of constants that `collc tune` wrote"),
    ("COLLC_WIRE", "`bf16`, or another narrow float: wider floats travel as it, as `--wire` has it"),
];

const CHECKSUM: &str = "COLLC_CHECKSUM";
/// The variable that has failures rehearsed.
pub(crate) const FAULT: &str = "COLLC_FAULT";
const TLS: &str = "COLLC_TLS";
const TOKEN: &str = "COLLC_TOKEN";

/// Says that failures are not rehearsed by a command that measures: whoever set the variable may take its figures for others.
pub(crate) fn nothing_is_rehearsed() {
    if env::var_os(FAULT).is_some_and(|text| !text.is_empty()) {
        output::complain(&format!(
            "warning: the environment's {FAULT} is for `collc run`; nothing is rehearsed here"
        ));
    }
}

/// Whether payloads are to carry checksums.
pub(crate) fn checksums() -> Result<bool, Failure> {
    switch(CHECKSUM, "`1` has what goes over TCP carry checksums; `0`, or nothing, does not")
}

/// That payloads are not to carry checksums, where plans run without a communicator: `instead` says what to do without it.
pub(crate) fn no_checksums(instead: &str) -> Result<(), Failure> {
    match checksums()? {
        false => Ok(()),
        true => Err(Failure::unusable("plans that run without a communicator have no checksums")
            .help(format!("unset {CHECKSUM}{instead}"))),
    }
}

/// Whether what goes over TCP is to go within TLS, unless an option says so.
pub(crate) fn tls() -> Result<bool, Failure> {
    switch(TLS, "`1` has what goes over TCP go within TLS; `0`, or nothing, does not")
}

fn switch(variable: &str, help: &str) -> Result<bool, Failure> {
    match env::var(variable).as_deref() {
        Err(env::VarError::NotPresent) | Ok("" | "0") => Ok(false),
        Ok("1") => Ok(true),
        other => {
            let found = other.unwrap_or("no text");
            Err(Failure::unusable(format!("the environment's {variable} is `{found}`")).help(help))
        }
    }
}

/// Starts logging, and warns of variables that look like collc's own and mean nothing.
pub(crate) fn read() {
    env_logger::Builder::new().parse_env(env_logger::Env::new().filter_or("COLLC_LOG", "off")).init();
    let mut unknown: Vec<String> = env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("COLLC_") && VARIABLES.iter().all(|(known, _)| known != name))
        .collect();
    unknown.sort_unstable();
    for name in unknown {
        let nearest = coll_sema::nearest(&name, VARIABLES.iter().map(|&(known, _)| known));
        let hint = nearest.map_or_else(names, |known| format!("did you mean {known}?"));
        output::complain(&format!("warning: the environment's {name} means nothing to collc; {hint}"));
    }
}

fn names() -> String {
    let names: Vec<&str> = VARIABLES.iter().map(|&(name, _)| name).collect();
    format!("it reads {}", names.join(", "))
}

/// Every variable that collc reads, with what it is for.
pub(crate) fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    VARIABLES.iter().copied()
}

/// Whether a variable's value is not to be shown.
pub(crate) fn is_secret(name: &str) -> bool {
    name == "COLLC_TOKEN"
}

/// For the help.
pub(crate) fn help() -> String {
    let lines: Vec<String> = VARIABLES.iter().map(|(name, what)| format!("  {name:<19} {what}")).collect();
    format!("Environment:\n{}", lines.join("\n"))
}
