//! The library of schedules, built into the program: one algorithm a file, `allreduce/ring.coll`.

use coll_base::FileId;
use coll_syntax::Parsed;
use std::sync::{Arc, Mutex, PoisonError};

mod files {
    include!(concat!(env!("OUT_DIR"), "/schedules.rs"));
}

/// The schedules that come with collc.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtin;

/// One file of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The collective, `allreduce`.
    pub collective: &'static str,
    /// The algorithm, `ring`.
    pub schedule: &'static str,
    /// The file's text.
    pub text: &'static str,
}

impl Entry {
    /// The name that messages show: `schedules/allreduce/ring.coll`.
    pub fn file_name(&self) -> String {
        format!("schedules/{}/{}.coll", self.collective, self.schedule)
    }
}

/// Every schedule of the library, sorted by collective, then by name.
pub fn entries() -> impl Iterator<Item = Entry> {
    files::FILES.iter().filter_map(|&(name, text)| {
        let (collective, schedule) = name.split_once('/')?;
        Some(Entry { collective, schedule, text })
    })
}

/// A number that stands for all texts of the library.
pub(crate) const HASH: u64 = files::HASH;

/// One schedule of the library.
pub fn entry(collective: &str, schedule: &str) -> Option<Entry> {
    entries().find(|entry| entry.collective == collective && entry.schedule == schedule)
}

impl coll_sema::Library for Builtin {
    fn schedule(&self, collective: &str, schedule: &str) -> Option<(String, String)> {
        entry(collective, schedule).map(|entry| (entry.file_name(), entry.text.to_string()))
    }

    fn collectives(&self) -> (String, String) {
        let prelude = files::FILES.iter().find(|(name, _)| *name == "collectives");
        let text = prelude.map_or("", |(_, text)| text);
        ("schedules/collectives.coll".to_string(), text.to_string())
    }

    fn parsed_collectives(&self, file: FileId, text: &str) -> Arc<Parsed> {
        static PARSED: Mutex<Option<(FileId, Arc<Parsed>)>> = Mutex::new(None);
        let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*parsed {
            Some((of, parsed)) if *of == file => Arc::clone(parsed),
            _ => Arc::clone(&parsed.insert((file, Arc::new(coll_syntax::parse(file, text)))).1),
        }
    }

    fn names(&self) -> Vec<(String, String)> {
        entries().map(|entry| (entry.collective.to_string(), entry.schedule.to_string())).collect()
    }
}
