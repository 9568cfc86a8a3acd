//! TOML text to a description.

use super::table::{Faults, Table};
use crate::codes;
use crate::description::{
    COUNT_MAX, Description, DeviceFigures, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl, OwnFigures, Pairs,
};
use crate::pattern;
use crate::units;
use coll_base::{Diagnostic, FileId, Span};
use toml::de::DeTable;

const FILE_KEYS: [&str; 8] = ["name", "note", "defaults", "machine", "device", "nic", "switch", "link"];
const DEFAULTS_KEYS: [&str; 3] = ["message", "reduce", "copy"];
const MACHINE_KEYS: [&str; 7] = ["name", "count", "note", "device", "nic", "switch", "link"];
const DEVICE_KEYS: [&str; 8] = ["name", "count", "note", "bandwidth", "forward", "message", "reduce", "copy"];
const NODE_KEYS: [&str; 4] = ["name", "count", "note", "bandwidth"];
const LINK_KEYS: [&str; 7] = ["between", "pairs", "bandwidth", "latency", "duplex", "count", "note"];

/// What a link takes that states no latency, in microseconds.
pub(crate) const LATENCY_DEFAULT_US: f64 = 1.0;

/// Reads a file's text, or says all that is wrong with its form.
pub(crate) fn read(file: FileId, text: &str) -> Result<Description, Vec<Diagnostic>> {
    let mut faults = Faults { file, found: Vec::new() };
    let document = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().lines().next().unwrap_or("it cannot be read").to_string();
        let code = if message.contains("recurs") { codes::BOUNDS } else { codes::FORM };
        let message = match code {
            codes::BOUNDS => "this is nested deeper than 80 levels".to_string(),
            _ => format!("this is no TOML: {message}"),
        };
        vec![Diagnostic::new(code, clip(file, text, span.start, span.end), message)]
    })?;
    let whole = Span::new(file, 0, 0);
    let description = Reader { faults: &mut faults }.file(document.get_ref(), whole);
    if faults.found.is_empty() { Ok(description) } else { Err(faults.found) }
}

/// A place within the text, and between its letters.
fn clip(file: FileId, text: &str, start: usize, end: usize) -> Span {
    let inside = |at: usize| {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = inside(start);
    Span::new(file, start, inside(end).max(start))
}

struct Reader<'f> {
    faults: &'f mut Faults,
}

impl Reader<'_> {
    fn file(&mut self, entries: &DeTable<'_>, span: Span) -> Description {
        let file = Table::new(entries, span, "a topology", &FILE_KEYS, self.faults);
        let name = file.text("name", self.faults).map(|(name, _)| name.to_string());
        file.text("note", self.faults);
        let figures = match file.table("defaults", self.faults) {
            Some((entries, span)) => {
                let table = Table::new(entries, span, "[defaults]", &DEFAULTS_KEYS, self.faults);
                self.figures(&table).or(DeviceFigures::default())
            }
            None => DeviceFigures::default(),
        };
        let machines = file
            .tables("machine", self.faults)
            .into_iter()
            .filter_map(|(t, span)| self.machine(t, span))
            .collect();
        let (nodes, links) = (self.nodes(&file), self.links(&file));
        Description { name, figures, machines, nodes, links, ..Description::default() }
    }

    fn machine(&mut self, entries: &DeTable<'_>, span: Span) -> Option<MachineDecl> {
        let table = Table::new(entries, span, "a [[machine]]", &MACHINE_KEYS, self.faults);
        let name = self.name(&table);
        let count = table.count("count", COUNT_MAX, self.faults);
        table.text("note", self.faults);
        let (nodes, links) = (self.nodes(&table), self.links(&table));
        if nodes.is_empty() && name.is_some() {
            let fault = Diagnostic::new(codes::SHAPE, span, "a [[machine]] has nothing in it");
            self.faults.add(fault.help("give it a [[machine.device]]"));
        }
        Some(MachineDecl { name: name?, count, nodes, links, span })
    }

    fn nodes(&mut self, table: &Table<'_>) -> Vec<NodeDecl> {
        let kinds: [(Kind, &'static str, &[&str]); 3] = [
            (Kind::Device, "a [[device]]", &DEVICE_KEYS),
            (Kind::Nic, "a [[nic]]", &NODE_KEYS),
            (Kind::Switch, "a [[switch]]", &NODE_KEYS),
        ];
        let mut nodes = Vec::new();
        for (kind, what, keys) in kinds {
            for (entries, span) in table.tables(kind.name(), self.faults) {
                let table = Table::new(entries, span, what, keys, self.faults);
                let name = self.name(&table);
                let is_device = kind == Kind::Device;
                let node = NodeDecl {
                    kind,
                    name: name.unwrap_or_default(),
                    count: table.count("count", COUNT_MAX, self.faults),
                    forwards: !is_device || table.flag("forward", self.faults).unwrap_or(true),
                    bytes_per_us: table.figure("bandwidth", units::bandwidth, self.faults),
                    figures: if is_device { self.figures(&table) } else { OwnFigures::default() },
                    note: table.text("note", self.faults).map(|(note, _)| note.to_string()),
                    span,
                };
                nodes.push(node);
            }
        }
        nodes
    }

    fn figures(&mut self, table: &Table<'_>) -> OwnFigures {
        OwnFigures {
            message_us: table.figure("message", units::time_us, self.faults),
            reduce_ns: table.figure("reduce", units::byte_time_ns, self.faults),
            copy_ns: table.figure("copy", units::byte_time_ns, self.faults),
        }
    }

    fn name(&mut self, table: &Table<'_>) -> Option<String> {
        table.demand("name", None, self.faults);
        let (name, span) = table.text("name", self.faults)?;
        if !pattern::is_name(name) {
            let shown: String = name.chars().take(60).collect();
            let fault = Diagnostic::new(codes::FORM, span, format!("`{shown}` is no name"));
            self.faults.add(fault.expected("letters, digits, `_`, `-` and `:`"));
            return None;
        }
        Some(name.to_string())
    }

    fn links(&mut self, table: &Table<'_>) -> Vec<LinkDecl> {
        let tables = table.tables("link", self.faults);
        tables.into_iter().filter_map(|(entries, span)| self.link(entries, span)).collect()
    }

    fn link(&mut self, entries: &DeTable<'_>, span: Span) -> Option<LinkDecl> {
        let table = Table::new(entries, span, "a [[link]]", &LINK_KEYS, self.faults);
        let between = table.two("between", self.faults);
        let words = [Pairs::Same, Pairs::All, Pairs::Next].map(|pairs| (pairs.name(), pairs));
        let pairs = table.word("pairs", &words, self.faults);
        let bandwidth = table.figure("bandwidth", units::bandwidth, self.faults);
        table.demand("bandwidth", Some("say what it carries: `bandwidth = \"25GB/s\"`"), self.faults);
        let latency_us = table.figure("latency", units::time_us, self.faults).unwrap_or(LATENCY_DEFAULT_US);
        let words = [Duplex::Full, Duplex::Half, Duplex::OneWay].map(|duplex| (duplex.name(), duplex));
        let duplex = table.word("duplex", &words, self.faults).unwrap_or_default();
        let count = table.count("count", 4096, self.faults).unwrap_or(1);
        table.text("note", self.faults);
        let ((between, span), bytes_per_us) = (between?, bandwidth?);
        Some(LinkDecl { between, pairs, bytes_per_us, latency_us, duplex, count, span })
    }
}
