//! What choices are made by: constants from a file, schedules that the environment insists on, the machine's cores.

use crate::args;
use crate::failure::Failure;
use coll::select::{Chooser, Forced, Imposed};
use coll_base::DType;
use coll_cost::Tuning;
use std::env;
use std::path::Path;

/// Schedules to take whatever they cost.
pub(crate) const SCHEDULE: &str = "COLLC_SCHEDULE";
/// Whether bits are to depend on the number of ranks alone.
const DETERMINISTIC: &str = "COLLC_DETERMINISTIC";
/// What narrow floats are accumulated in.
const ACCUMULATE: &str = "COLLC_ACCUMULATE";
/// What wider floats travel as.
const WIRE: &str = "COLLC_WIRE";
/// The file of constants.
const TUNE: &str = "COLLC_TUNE";

/// A chooser as options and environment have it.
pub(crate) fn chooser(constants: Option<&Path>) -> Result<Chooser, Failure> {
    let (tuning, _) = tuning(constants)?;
    let (forced, imposed) = insisted()?;
    Ok(Chooser::new(tuning).with_forced(forced).with_imposed(imposed))
}

/// The constants, and the file that they come from if they are not the shipped ones.
pub(crate) fn tuning(constants: Option<&Path>) -> Result<(Tuning, Option<String>), Failure> {
    let from_environment =
        || env::var_os(TUNE).filter(|path| !path.is_empty()).map(|path| (path.into(), TUNE));
    let named = constants.map(|path| (path.to_path_buf(), "--constants"));
    let Some((path, who)) = named.or_else(from_environment) else {
        return Ok((Tuning::shipped(), None));
    };
    let shown = path.display().to_string();
    let text = coll::read_text(&path).map_err(|error| Failure::unusable(format!("{who}: {error}")))?;
    let tuning =
        Tuning::from_json(&text).map_err(|error| Failure::unusable(format!("{who}: `{shown}`: {error}")))?;
    Ok((tuning, Some(shown)))
}

/// What the environment insists on: schedules of the library, and files.
pub(crate) fn insisted() -> Result<(Forced, Vec<Imposed>), Failure> {
    match env::var(SCHEDULE) {
        Err(env::VarError::NotPresent) => Ok(Default::default()),
        Err(error) => Err(Failure::unusable(format!("{SCHEDULE}: {error}"))),
        Ok(text) => {
            coll::select::insisted(&text).map_err(|error| Failure::unusable(format!("{SCHEDULE}: {error}")))
        }
    }
}

/// Whether bits are to depend on the number of ranks alone, as the option or the environment has it.
pub(crate) fn deterministic(option: bool) -> Result<bool, Failure> {
    match env::var(DETERMINISTIC).as_deref().map(str::trim) {
        Err(env::VarError::NotPresent) | Ok("" | "0") => Ok(option),
        Ok("1") => Ok(true),
        other => {
            let found = other.unwrap_or("no text");
            Err(Failure::unusable(format!("the environment's {DETERMINISTIC} is `{found}`"))
                .help("`1` has bits depend on the number of ranks alone; `0`, or nothing, does not"))
        }
    }
}

/// What narrow floats are accumulated in, and what wider ones travel as: as the options say, or else the environment.
pub(crate) fn types(
    accumulate: Option<DType>,
    wire: Option<DType>,
) -> Result<(Option<DType>, Option<DType>), Failure> {
    let from_environment = |name: &str, parse: fn(&str) -> Result<DType, String>| match env::var(name) {
        Err(env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(Failure::unusable(format!("{name}: {error}"))),
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => parse(text.trim())
            .map(Some)
            .map_err(|what| Failure::unusable(format!("the environment's {name} is `{text}`: {what}"))),
    };
    let accumulate = match accumulate {
        None => from_environment(ACCUMULATE, args::accumulate)?,
        some => some,
    };
    Ok((accumulate, if wire.is_some() { wire } else { from_environment(WIRE, args::wire)? }))
}

/// Cores of this machine that this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}
