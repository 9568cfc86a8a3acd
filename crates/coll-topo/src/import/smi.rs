//! What `nvidia-smi topo -m` prints: a matrix of how GPUs and NICs reach each other.
//!
//! `NV12` are twelve NVLinks. `PIX`, `PXB`, `PHB`, `NODE` and `SYS` say through how much of the machine the way leads: one PCI
//! bridge, several, a host bridge, a NUMA node, all of it. They become a tree of switches. The matrix has no speeds; those
//! that are assumed stand in the warnings.

use super::Imported;
use super::figures;
use super::warnings::Warnings;
use crate::codes;
use crate::description::{Description, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl, Pairs};
use crate::pattern::to_name;
use crate::units::show_bandwidth;
use coll_base::{Diagnostic, FileId, Span};
use std::collections::BTreeMap;

/// The levels of the tree: what the matrix calls it, what its switches are called.
const LEVELS: [(&[&str], &str); 4] =
    [(&["PIX", "PSB"], "pix"), (&["PXB"], "pxb"), (&["PHB"], "phb"), (&["NODE"], "numa")];

/// More NVLinks than one GPU has go to a switch.
const NVLINKS_OF_A_GPU: u64 = 18;
/// The most GPUs and NICs.
const ENDS_MAX: usize = 1024;

/// Whether a text looks like one.
pub(crate) fn is_matrix(text: &str) -> bool {
    rows(text)
        .any(|row| row.len() > 1 && row[0].0 == "GPU0" && (row[1].0 == "X" || row[1].0.starts_with("GPU")))
}

/// Lines as words with their places; escape sequences of terminals are left out.
fn rows(text: &str) -> impl Iterator<Item = Vec<(&str, usize)>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        let mut words = Vec::new();
        let mut rest = 0;
        while rest < line.len() {
            let tail = &line[rest..];
            if let Some(escape) = tail.strip_prefix("\u{1b}[") {
                rest +=
                    2 + escape.find(|c: char| c.is_ascii_alphabetic()).map_or(escape.len(), |end| end + 1);
            } else if tail.starts_with(char::is_whitespace) {
                rest += tail.chars().next().map_or(1, char::len_utf8);
            } else {
                let end =
                    tail.find(|c: char| c.is_whitespace() || c == '\u{1b}').unwrap_or(tail.len()).max(1);
                words.push((&tail[..end], at + rest));
                rest += end;
            }
        }
        words
    })
}

/// How two of them reach each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Itself,
    NvLinks(u64),
    Level(usize),
    /// Through the whole machine, or not told.
    System,
}

struct Matrix {
    names: Vec<String>,
    is_gpu: Vec<bool>,
    cells: Vec<Vec<Relation>>,
    numa: Vec<Option<String>>,
    span: Span,
}

/// Reads the matrix.
pub(crate) fn import(file: FileId, text: &str) -> Result<Imported, Vec<Diagnostic>> {
    let matrix = read(file, text).map_err(|fault| vec![fault])?;
    let mut warnings = Warnings::default();
    let span = matrix.span;
    let pci = figures::pci_x16(figures::PCI_DEFAULT).unwrap_or(12e3);
    warnings.add("speeds", span, || {
        format!(
            "the matrix has no speeds: PCI links and NICs of {}, NVLinks of {} and {} between NUMA nodes are assumed",
            show_bandwidth(pci),
            show_bandwidth(figures::nvlink(None)),
            show_bandwidth(figures::BETWEEN_CPUS_DEFAULT)
        )
    });
    let ends = matrix.names.len();
    let mut nodes = Vec::new();
    let mut nics = Vec::new();
    for at in 0..ends {
        match matrix.is_gpu[at] {
            true => nodes.push(NodeDecl::new(Kind::Device, &*matrix.names[at], span)),
            false => nics.push(NodeDecl::new(Kind::Nic, &*matrix.names[at], span)),
        }
    }
    let has_nics = !nics.is_empty();
    nodes.extend(nics);
    let mut links = nvlinks(&matrix, &mut nodes);
    tree(&matrix, pci, &mut nodes, &mut links);
    let machine = MachineDecl { name: "node".to_string(), count: Some(1), nodes, links, span };
    let mut description = Description { machines: vec![machine], ..Description::default() };
    if has_nics {
        description.nodes.push(NodeDecl::new(Kind::Switch, "fabric", span));
        for at in (0..ends).filter(|&at| !matrix.is_gpu[at]) {
            let name = format!("node*.{}", matrix.names[at]);
            let link = link(&name, "fabric", pci, figures::PORT_LINK_US, span);
            description.links.push(LinkDecl { pairs: Some(Pairs::All), ..link });
        }
    }
    Ok(Imported { description, warnings: warnings.told() })
}

fn link(a: &str, b: &str, bytes_per_us: f64, latency_us: f64, span: Span) -> LinkDecl {
    let between = [a.to_string(), b.to_string()];
    LinkDecl { between, pairs: None, bytes_per_us, latency_us, duplex: Duplex::Full, count: 1, span }
}

fn read(file: FileId, text: &str) -> Result<Matrix, Diagnostic> {
    let rows: Vec<Vec<(&str, usize)>> = rows(text).filter(|row| !row.is_empty()).collect();
    let whole = |word: &(&str, usize)| Span::new(file, word.1, word.1 + word.0.len());
    let header =
        rows.iter().position(|row| row[0].0 == "GPU0" && row.get(1).is_none_or(|cell| cell.0 != "X"));
    let Some(header) = header else {
        let span = Span::new(file, 0, 0);
        return Err(Diagnostic::new(codes::FORM, span, "the matrix has no line of names above it"));
    };
    let named: Vec<(&str, usize)> = rows[header].iter().copied().take_while(|word| word.0 != "CPU").collect();
    let span = whole(&rows[header][0]);
    let ends = named.len();
    if ends > ENDS_MAX {
        let message = format!("the matrix has {ends} columns; at most {ENDS_MAX} are read");
        return Err(Diagnostic::new(codes::BOUNDS, span, message));
    }
    let mut cells = vec![None; ends];
    let mut numa = vec![None; ends];
    for row in &rows[header + 1..] {
        let Some(at) = named.iter().position(|name| name.0 == row[0].0) else { continue };
        if row.len() <= ends {
            let message = format!("the row of {} has {} cells", row[0].0, row.len() - 1);
            return Err(Diagnostic::new(codes::FORM, whole(&row[0]), message)
                .expected(format!("{ends}, as many as there are names"))
                .help("the text may have been cut short"));
        }
        if cells[at].is_some() {
            let message = format!("{} has two rows", row[0].0);
            return Err(Diagnostic::new(codes::SHAPE, whole(&row[0]), message));
        }
        let relations: Result<Vec<Relation>, Diagnostic> =
            row[1..=ends].iter().map(|cell| relation(cell.0, whole(cell))).collect();
        cells[at] = Some(relations?);
        // Behind the matrix: cores, then the NUMA node.
        numa[at] = row.get(ends + 2).map(|word| word.0.to_string()).filter(|word| word != "N/A");
    }
    if let Some(at) = cells.iter().position(Option::is_none) {
        let message = format!("{} has a column and no row", named[at].0);
        return Err(
            Diagnostic::new(codes::FORM, whole(&named[at]), message).help("the text may have been cut short")
        );
    }
    let name = |word: &str| match word.strip_prefix("GPU").filter(|tail| tail.parse::<u32>().is_ok()) {
        Some(number) => format!("gpu{number}"),
        None => to_name(word),
    };
    Ok(Matrix {
        names: named.iter().map(|word| name(word.0)).collect(),
        is_gpu: named.iter().map(|word| word.0.starts_with("GPU")).collect(),
        cells: cells.into_iter().flatten().collect(),
        numa,
        span,
    })
}

fn relation(cell: &str, span: Span) -> Result<Relation, Diagnostic> {
    if let Some(level) = LEVELS.iter().position(|(names, _)| names.contains(&cell)) {
        return Ok(Relation::Level(level));
    }
    if let Some(Ok(count)) = cell.strip_prefix("NV").map(str::parse)
        && (1..=4096).contains(&count)
    {
        return Ok(Relation::NvLinks(count));
    }
    match cell {
        "X" => Ok(Relation::Itself),
        "SYS" | "SOC" => Ok(Relation::System),
        _ => {
            let shown: String = cell.chars().take(20).collect();
            Err(Diagnostic::new(codes::UNKNOWN, span, format!("the matrix cannot have `{shown}`"))
                .expected("X, SYS, NODE, PHB, PXB, PIX or NV and a number"))
        }
    }
}

/// GPUs that all have as many links to all others, more than go into one GPU, are on a switch.
fn nvlinks(matrix: &Matrix, nodes: &mut Vec<NodeDecl>) -> Vec<LinkDecl> {
    let gpus: Vec<usize> = (0..matrix.names.len()).filter(|&at| matrix.is_gpu[at]).collect();
    let mut pairs = Vec::new();
    for (place, &a) in gpus.iter().enumerate() {
        for &b in &gpus[place + 1..] {
            if let Relation::NvLinks(count) = matrix.cells[a][b] {
                pairs.push((a, b, count));
            }
        }
    }
    let all = gpus.len() * gpus.len().saturating_sub(1) / 2;
    let first = pairs.first().map_or(0, |&(.., count)| count);
    let are_equal = pairs.len() == all && pairs.iter().all(|&(.., count)| count == first);
    let rate = figures::nvlink(None);
    if are_equal && first * (gpus.len() as u64 - 1) > NVLINKS_OF_A_GPU {
        nodes.push(NodeDecl::new(Kind::Switch, "nvswitch", matrix.span));
        let to_switch = |&at: &usize| LinkDecl {
            count: first as u32,
            ..link(&matrix.names[at], "nvswitch", rate, figures::NVSWITCH_LINK_US, matrix.span)
        };
        return gpus.iter().map(to_switch).collect();
    }
    let direct = |&(a, b, count): &(usize, usize, u64)| LinkDecl {
        count: count as u32,
        ..link(&matrix.names[a], &matrix.names[b], rate, figures::GPU_LINK_US, matrix.span)
    };
    pairs.iter().map(direct).collect()
}

/// The tree of switches that the levels tell of.
fn tree(matrix: &Matrix, pci: f64, nodes: &mut Vec<NodeDecl>, links: &mut Vec<LinkDecl>) {
    let ends = matrix.names.len();
    // Each end's group, and each group's topmost node.
    let mut group: Vec<usize> = (0..ends).collect();
    let mut top: Vec<String> = matrix.names.clone();
    for (level, (_, name)) in LEVELS.iter().enumerate() {
        let mut next = group.clone();
        for a in 0..ends {
            for b in 0..ends {
                let is_near = matches!(matrix.cells[a][b], Relation::Level(found) if found <= level);
                let shares =
                    level == LEVELS.len() - 1 && matrix.numa[a].is_some() && matrix.numa[a] == matrix.numa[b];
                if is_near || shares {
                    let (from, to) = (next[a].max(next[b]), next[a].min(next[b]));
                    next.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
                }
            }
        }
        let mut merged: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for end in 0..ends {
            let parts = merged.entry(next[end]).or_default();
            if !parts.contains(&group[end]) {
                parts.push(group[end]);
            }
        }
        for (number, (whole, parts)) in merged.iter().filter(|(_, parts)| parts.len() > 1).enumerate() {
            let switch = format!("{name}{number}");
            nodes.push(NodeDecl::new(Kind::Switch, &*switch, matrix.span));
            for &part in parts {
                links.push(link(&top[part], &switch, pci, figures::PCI_LINK_US, matrix.span));
            }
            top[*whole] = switch;
        }
        group = next;
    }
    let mut tops: Vec<usize> = group.clone();
    tops.sort_unstable();
    tops.dedup();
    if tops.len() > 1 {
        nodes.push(NodeDecl::new(Kind::Switch, "sys", matrix.span));
        for at in tops {
            let rate = figures::BETWEEN_CPUS_DEFAULT;
            links.push(link(&top[at], "sys", rate, figures::CPU_LINK_US / 2.0, matrix.span));
        }
    }
}
