//! One door for topologies of every kind: TOML, NCCL's XML, `nvidia-smi topo -m`, a generator's text.

use crate::codes;
use crate::description::Description;
use crate::expand::expand;
use crate::generate::{GENERATORS, generate, is_generator};
use crate::import::{nccl, smi};
use crate::topology::Topology;
use crate::{Network, file};
use coll_base::{Diagnostic, FileId, SourceMap, Span};

/// The longest text that is read.
pub const TEXT_MAX_BYTES: usize = 256 << 20;

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A topology file.
    Toml,
    /// NCCL's or RCCL's topology.
    NcclXml,
    /// What `nvidia-smi topo -m` prints.
    SmiMatrix,
    /// `ring:8`
    Generator,
}

impl Format {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Format::Toml => "a topology file",
            Format::NcclXml => "NCCL's topology XML",
            Format::SmiMatrix => "the matrix of `nvidia-smi topo -m`",
            Format::Generator => "a generator",
        }
    }
}

/// What was found in a text: a topology unless there are errors, and what is to be said.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The text, for places.
    pub sources: SourceMap,
    /// What it was taken for.
    pub format: Format,
    /// Templates and patterns, as a file would have them.
    pub description: Option<Description>,
    /// All of it written out; none if a diagnostic is an error.
    pub topology: Option<Topology>,
    /// Errors, or warnings of an import.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// The network of the topology, or the first error as one line: `lab.toml:3:1: …`.
    pub fn network(&self) -> Result<Network, String> {
        match &self.topology {
            Some(topology) => Ok(topology.network()),
            None => Err(self.first_error()),
        }
    }

    /// The first error as one line, with its place and its way out.
    pub fn first_error(&self) -> String {
        let Some(fault) = self.diagnostics.iter().find(|diagnostic| diagnostic.is_error()) else {
            return "there is no error".to_string();
        };
        let place = fault.primary.as_ref().map_or(String::new(), |label| {
            let at = self.sources.start_of(label.span);
            format!("{}:{}:{}: ", self.sources.name(label.span.file), at.line, at.column)
        });
        let help = fault.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        format!("{place}{}{help}", fault.message)
    }
}

/// Reads a topology of any kind. The name is what messages call the text: a file's name, or the generator's text again.
pub fn load(name: &str, text: &str) -> Loaded {
    let mut sources = SourceMap::new();
    let is_long = text.len() > TEXT_MAX_BYTES;
    let file = sources.add(name, if is_long { "" } else { text });
    let format = sniff(text);
    let mut diagnostics = Vec::new();
    let description = if is_long {
        let message = format!("the text has {} bytes; at most {TEXT_MAX_BYTES} are read", text.len());
        Err(vec![Diagnostic::new(codes::BOUNDS, Span::new(file, 0, 0), message)])
    } else {
        describe(format, file, text, &mut diagnostics)
    };
    let (description, topology) = match description {
        Err(faults) => {
            diagnostics = faults;
            (None, None)
        }
        Ok(description) => match expand(name, &description) {
            Err(faults) => {
                diagnostics = faults;
                (Some(description), None)
            }
            Ok(topology) => {
                if topology.devices().is_empty() && format != Format::NcclXml {
                    let fault =
                        Diagnostic::new(codes::SHAPE, Span::new(file, 0, 0), "the topology has no device");
                    diagnostics.push(
                        fault.help("ranks run on devices: add a [[machine]] with a [[machine.device]]"),
                    );
                    (Some(description), None)
                } else {
                    (Some(description), Some(topology))
                }
            }
        },
    };
    Loaded { sources, format, description, topology, diagnostics }
}

fn describe(
    format: Format,
    file: FileId,
    text: &str,
    warnings: &mut Vec<Diagnostic>,
) -> Result<Description, Vec<Diagnostic>> {
    let imported = match format {
        Format::Toml => return file::read(file, text).map_err(|faults| maybe_generator(file, text, faults)),
        Format::Generator => return generate(file, text),
        Format::NcclXml => nccl::import(file, text)?,
        Format::SmiMatrix => smi::import(file, text)?,
    };
    warnings.extend(imported.warnings);
    Ok(imported.description)
}

/// By its first letters, or its only line.
fn sniff(text: &str) -> Format {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with('<') {
        Format::NcclXml
    } else if is_generator(start) && !start.trim_end().contains('\n') {
        Format::Generator
    } else if smi::is_matrix(text) {
        Format::SmiMatrix
    } else {
        Format::Toml
    }
}

/// One short line that is no TOML may be a generator's text that is spelt wrongly.
fn maybe_generator(file: FileId, text: &str, faults: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let line = text.trim();
    let is_word = |c: char| !c.is_control() && !matches!(c, '=' | '[');
    if line.is_empty() || line.len() > 100 || !line.chars().all(is_word) {
        return faults;
    }
    let forms: Vec<&str> = GENERATORS.iter().map(|&(_, form, _)| form).collect();
    let name = line.split(':').next().unwrap_or(line);
    let help = match coll_base::nearest(name, GENERATORS.iter().map(|&(name, ..)| name)) {
        Some(near) => format!("did you mean `{near}:…`? Generators are {}", forms.join(", ")),
        None => format!("a topology is a file, or a generator: {}", forms.join(", ")),
    };
    let message = format!("`{line}` is no topology");
    vec![Diagnostic::new(codes::GENERATOR, Span::new(file, 0, text.len()), message).help(help)]
}
