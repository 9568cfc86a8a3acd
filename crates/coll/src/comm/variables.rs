//! What the environment says of a communicator that is to be opened.

use crate::comm::types::Types;
use crate::select::{Chooser, insisted};
use coll_base::DType;
use coll_cost::Tuning;
use coll_topo::Network;
use std::path::{Path, PathBuf};

/// What was found.
pub(super) struct Variables {
    /// Rank and world.
    pub(super) place: (u32, u32),
    pub(super) rendezvous: Option<String>,
    pub(super) token: Option<String>,
    pub(super) tls: Option<bool>,
    pub(super) checksums: Option<bool>,
    pub(super) deterministic: Option<bool>,
    pub(super) types: Types,
    /// What files of flight records begin with.
    pub(super) record_to: Option<PathBuf>,
    /// What schedules are chosen by, if that is not as shipped.
    pub(super) chooser: Option<Chooser>,
    /// What ranks stand on, and where if not as its devices are listed.
    pub(super) topology: Option<Topology>,
}

/// A network, and the device of each rank, if that is not the one of its number.
pub(super) type Topology = (Network, Option<Vec<u32>>);

impl Variables {
    /// Reads them. What is missing or makes no sense is named.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Variables, String> {
        let variable = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
        Ok(Variables {
            place: (number(&variable, "RANK")?, number(&variable, "WORLD_SIZE")?),
            rendezvous: rendezvous(&variable)?,
            token: variable("COLLC_TOKEN"),
            tls: switch(&variable, "COLLC_TLS")?,
            checksums: switch(&variable, "COLLC_CHECKSUM")?,
            deterministic: switch(&variable, "COLLC_DETERMINISTIC")?,
            types: types(&variable)?,
            record_to: variable("COLLC_RECORD").map(PathBuf::from),
            chooser: chooser(&variable)?,
            topology: topology(&variable)?,
        })
    }
}

type Lookup<'l> = &'l dyn Fn(&str) -> Option<String>;

fn number(variable: Lookup<'_>, name: &str) -> Result<u32, String> {
    let text = variable(name).ok_or_else(|| format!("the environment has no {name}"))?;
    let number = text.trim().parse::<u32>();
    number.map_err(|_| format!("the environment's {name} is `{text}`, which is no number of ranks"))
}

fn rendezvous(variable: Lookup<'_>) -> Result<Option<String>, String> {
    match (variable("MASTER_ADDR"), variable("MASTER_PORT")) {
        (Some(host), Some(port)) => Ok(Some(format!("{}:{port}", bracketed(&host)))),
        (Some(_), None) => Err("the environment has MASTER_ADDR and no MASTER_PORT".to_string()),
        (None, Some(_)) => Err("the environment has MASTER_PORT and no MASTER_ADDR".to_string()),
        (None, None) => Ok(None),
    }
}

/// An IPv6 address is bracketed before a port.
fn bracketed(host: &str) -> String {
    let bare = host.contains(':') && !host.starts_with('[');
    if bare { format!("[{host}]") } else { host.to_string() }
}

fn switch(variable: Lookup<'_>, name: &str) -> Result<Option<bool>, String> {
    match variable(name).as_deref().map(str::trim) {
        None => Ok(None),
        Some("1") => Ok(Some(true)),
        Some("0") => Ok(Some(false)),
        Some(found) => Err(format!("the environment's {name} is `{found}`; 1 or 0 it can be")),
    }
}

fn types(variable: Lookup<'_>) -> Result<Types, String> {
    let dtype = |name: &str| -> Result<Option<DType>, String> {
        let Some(text) = variable(name) else { return Ok(None) };
        let wrong = |what: String| format!("the environment's {name} is `{text}`: {what}");
        let dtype = text.trim().parse::<DType>().map_err(wrong)?;
        let types = match name {
            ACCUMULATE => Types { accumulate: Some(dtype), wire: None },
            _ => Types { accumulate: None, wire: Some(dtype) },
        };
        types.fault().map_or(Ok(Some(dtype)), |what| Err(wrong(what)))
    };
    Ok(Types { accumulate: dtype(ACCUMULATE)?, wire: dtype(WIRE)? })
}

const ACCUMULATE: &str = "COLLC_ACCUMULATE";
const WIRE: &str = "COLLC_WIRE";

fn chooser(variable: Lookup<'_>) -> Result<Option<Chooser>, String> {
    let (file, forced) = (variable("COLLC_TUNE"), variable("COLLC_SCHEDULE"));
    if file.is_none() && forced.is_none() {
        return Ok(None);
    }
    let tuning = match &file {
        None => Tuning::shipped(),
        Some(path) => {
            let text = crate::read_text(Path::new(path));
            let text = text.map_err(|error| format!("the environment's COLLC_TUNE: {error}"))?;
            Tuning::from_json(&text)
                .map_err(|error| format!("the environment's COLLC_TUNE: `{path}`: {error}"))?
        }
    };
    let forced = insisted(forced.as_deref().unwrap_or(""));
    let (forced, imposed) = forced.map_err(|error| format!("the environment's COLLC_SCHEDULE: {error}"))?;
    Ok(Some(Chooser::new(tuning).with_forced(forced).with_imposed(imposed)))
}

fn topology(variable: Lookup<'_>) -> Result<Option<Topology>, String> {
    let order = match variable("COLLC_DEVICES") {
        None => None,
        Some(text) => {
            let device = |word: &str| word.trim().parse::<u32>().map_err(|_| word.trim().to_string());
            let order = text.split(',').map(device).collect::<Result<Vec<u32>, String>>();
            Some(order.map_err(|word| {
                format!("the environment's COLLC_DEVICES has `{word}`, which is no number of a device; write `0,2,1,3`")
            })?)
        }
    };
    match (variable("COLLC_TOPOLOGY"), order) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err("the environment has COLLC_DEVICES and no COLLC_TOPOLOGY".to_string()),
        (Some(text), order) => {
            let loaded = crate::load_topology(&text).map_err(|error| error.to_string());
            let network = loaded.and_then(|loaded| loaded.network());
            Ok(Some((network.map_err(|error| format!("the environment's COLLC_TOPOLOGY: {error}"))?, order)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Variables, String> {
        Variables::read(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        })
    }

    /// With a place, and more.
    fn also(name: &str, value: &str) -> Result<Variables, String> {
        from(&[("RANK", "0"), ("WORLD_SIZE", "1"), (name, value)])
    }

    #[test]
    fn launchers_variables_are_read() {
        let found =
            from(&[("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "::1"), ("MASTER_PORT", "29500")]);
        let found = found.unwrap_or_else(|what| panic!("{what}"));
        assert_eq!((found.place, found.rendezvous.as_deref()), ((1, 4), Some("[::1]:29500")));
        assert!(found.token.is_none() && found.deterministic.is_none() && found.chooser.is_none());
        let read = |name, value| also(name, value).unwrap_or_else(|what| panic!("{what}"));
        assert_eq!(read("COLLC_TOKEN", "x").token.as_deref(), Some("x"));
        assert_eq!(read("COLLC_TLS", "1").tls, Some(true));
        assert_eq!(read("COLLC_DETERMINISTIC", "1").deterministic, Some(true));
        assert_eq!(read("COLLC_CHECKSUM", "0").checksums, Some(false));
        assert_eq!(read("COLLC_CHECKSUM", "").checksums, None);
        assert_eq!(read("COLLC_RECORD", "/tmp/record").record_to, Some(PathBuf::from("/tmp/record")));
        assert_eq!(read("COLLC_ACCUMULATE", "f32").types.accumulate, Some(DType::F32));
        assert_eq!(read("COLLC_WIRE", "bf16").types, Types { accumulate: None, wire: Some(DType::Bf16) });
        let (network, order) = read("COLLC_TOPOLOGY", "dgx-h100:2").topology.expect("there is one");
        assert_eq!((network.devices.len(), order), (16, None));
        let forced = read("COLLC_SCHEDULE", "allreduce.ring").chooser.expect("it insists");
        assert_ne!(forced.fingerprint(), Chooser::new(Tuning::shipped()).fingerprint());
    }

    #[test]
    fn what_is_missing_or_makes_no_sense_is_named() {
        let wrong = |found: Result<Variables, String>| found.err().expect("it is refused");
        assert_eq!(wrong(from(&[("WORLD_SIZE", "4")])), "the environment has no RANK");
        let half = [("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "a")];
        assert!(wrong(from(&half)).contains("no MASTER_PORT"));
        assert!(wrong(from(&[("RANK", "-1"), ("WORLD_SIZE", "4")])).contains("`-1`"));
        assert!(wrong(also("COLLC_DETERMINISTIC", "perhaps")).contains("`perhaps`"));
        assert!(wrong(also("COLLC_CHECKSUM", "2")).contains("`2`"));
        assert!(wrong(also("COLLC_TOPOLOGY", "dgx-h10:2")).contains("did you mean `dgx-h100:…`"));
        assert!(wrong(also("COLLC_TOPOLOGY", "/nowhere/lab.toml")).contains("/nowhere/lab.toml"));
        assert!(wrong(also("COLLC_DEVICES", "0,1")).contains("no COLLC_TOPOLOGY"));
        assert!(wrong(also("COLLC_DEVICES", "0,x")).contains("`x`"));
        assert!(wrong(also("COLLC_SCHEDULE", "allreduce.rings")).contains("rings"));
        assert!(wrong(also("COLLC_ACCUMULATE", "f64")).contains("`f64`: nothing can be accumulated"));
        assert!(wrong(also("COLLC_WIRE", "i32")).contains("`i32`: nothing can travel"));
        assert!(wrong(also("COLLC_WIRE", "float")).contains("`float`"));
        assert!(wrong(also("COLLC_SCHEDULE", "nowhere.xml")).contains("nowhere.xml"));
        assert!(wrong(also("COLLC_TUNE", "/nowhere/to/be.found")).contains("/nowhere/to/be.found"));
    }
}
