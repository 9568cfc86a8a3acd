//! What collc reads of its environment: every variable that there is, and a warning for one that there is not.

use crate::output;
use std::env;

/// Each with what it is for.
const VARIABLES: [(&str, &str); 7] = [
    (
        "COLLC_DETERMINISTIC",
        "`1`: schedules whose bits depend on the number of ranks alone, as `--deterministic` takes them",
    ),
    (
        "COLLC_FAULT",
        "failures to rehearse: `rank2:step5:drop`, or delay, corrupt, kill; several with commas between",
    ),
    ("COLLC_JIT", "`off`: operators of one's own are interpreted"),
    (
        "COLLC_LOG",
        "what to log: `error`, `warn`, `info`, `debug`, `trace`, or a level for each crate, `coll=debug`",
    ),
    ("COLLC_SCHEDULE", "schedules to take whatever they cost: `allreduce.ring`"),
    ("COLLC_TOKEN", "what ranks of this job know and others do not"),
    ("COLLC_TUNE", "the file of constants that `collc tune` wrote"),
];

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

/// For the help.
pub(crate) fn help() -> String {
    let lines: Vec<String> = VARIABLES.iter().map(|(name, what)| format!("  {name:<19} {what}")).collect();
    format!("Environment:\n{}", lines.join("\n"))
}
