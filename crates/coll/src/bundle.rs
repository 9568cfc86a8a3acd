//! A bundle: a schedule with all the texts it uses, proved for some rank counts, to be instantiated for the ranks
//! that are found when it runs. It needs no library and no other file.

use crate::Source;
use coll_base::SourceMap;
use coll_sema::Library;
use serde::{Deserialize, Serialize};

/// The first bytes of a bundle, so that it is known for what it is.
const FORMAT: &str = "collc bundle";
/// The version that this code writes and reads.
const VERSION: u32 = 1;

/// A schedule with all that it uses. Written as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundle {
    format: String,
    version: u32,
    /// The schedule's name.
    pub schedule: String,
    /// Its collective.
    pub collective: String,
    /// Parameters that were set.
    pub params: Vec<(String, i64)>,
    /// Rank counts it was proved for, with every root. It is proved again for those that it runs on.
    pub proved: Vec<u32>,
    /// Texts by name: the file itself first.
    files: Vec<(String, String)>,
}

/// Why bytes are no bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Not JSON of the right shape.
    #[error("it is no bundle, or a damaged one: {0}")]
    Damaged(String),
    /// Of another version.
    #[error(
        "it is a bundle of format version {found}; this program reads version {VERSION}: compile it again"
    )]
    Version {
        /// The version found.
        found: u64,
    },
}

impl Bundle {
    /// Packs a schedule with all that it uses.
    pub fn new(source: &Source, schedule: usize, params: Vec<(String, i64)>, proved: Vec<u32>) -> Bundle {
        let info = &source.schedules()[schedule];
        let file = |id| (source.map.name(id).to_string(), source.map.text(id).to_string());
        let others = (0..source.map.len() as u32).map(coll_base::FileId).filter(|&id| id != source.main);
        Bundle {
            format: FORMAT.into(),
            version: VERSION,
            schedule: info.name.clone(),
            collective: info.collective.clone(),
            params,
            proved,
            files: std::iter::once(source.main).chain(others).map(file).collect(),
        }
    }

    /// As text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("invariant: a bundle is strings and numbers, and writing to memory works")
            + "\n"
    }

    /// True if text claims to be a bundle.
    pub fn is_bundle(text: &str) -> bool {
        text.trim_start().starts_with('{') && text.contains(FORMAT)
    }

    /// Reads a bundle.
    pub fn from_json(text: &str) -> Result<Bundle, BundleError> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| BundleError::Damaged(error.to_string()))?;
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        if let Some(found) = version.filter(|&found| found != u64::from(VERSION)) {
            return Err(BundleError::Version { found });
        }
        let bundle: Bundle =
            serde_json::from_value(value).map_err(|error| BundleError::Damaged(error.to_string()))?;
        match bundle.format == FORMAT && !bundle.files.is_empty() {
            true => Ok(bundle),
            false => Err(BundleError::Damaged("it holds no schedule".into())),
        }
    }

    /// The source, resolved against the bundle's own texts.
    pub fn source(&self) -> Source {
        let (name, text) = &self.files[0];
        let mut map = SourceMap::new();
        let main = map.add(name, text);
        let (module, diagnostics) = coll_sema::load(&mut map, main, self);
        Source { map, main, module, diagnostics }
    }

    fn file(&self, name: &str) -> Option<(String, String)> {
        self.files[1..].iter().find(|(known, _)| known == name).cloned()
    }
}

impl Library for Bundle {
    fn schedule(&self, collective: &str, schedule: &str) -> Option<(String, String)> {
        self.file(&format!("schedules/{collective}/{schedule}.coll"))
    }

    fn collectives(&self) -> (String, String) {
        let name = "schedules/collectives.coll";
        self.file(name).unwrap_or((name.into(), String::new()))
    }

    fn names(&self) -> Vec<(String, String)> {
        let path = |name: &str| {
            let path = name.strip_prefix("schedules/")?.strip_suffix(".coll")?;
            let (collective, schedule) = path.split_once('/')?;
            Some((collective.to_string(), schedule.to_string()))
        };
        self.files.iter().filter_map(|(name, _)| path(name)).collect()
    }
}
