//! A description becomes a topology: copies are made and numbered, patterns are looked up, and it is seen that the whole is
//! one network.

use crate::codes;
use crate::connected;
use crate::description::{Description, DeviceFigures, Kind, LinkDecl, MachineDecl, NodeDecl, Pairs};
use crate::pattern::{self, Names, Pattern};
use crate::topology::{Node, Topology, Wire};
use coll_base::{Diagnostic, Span, nearest};
use std::collections::{HashMap, HashSet};

/// The most nodes that a topology has.
pub const NODES_MAX: usize = 1_000_000;
/// The most wires that a topology has.
pub const WIRES_MAX: usize = 4_000_000;
/// The most names that patterns are compared with, in all.
const COMPARISONS_MAX: u64 = 50_000_000;
/// After so many faults the rest is not looked for.
const FAULTS_MAX: usize = 20;

/// Writes a description out, or says what is wrong with it. A topology without devices is let through: of an imported file it
/// is no fault.
pub(crate) fn expand(name: &str, description: &Description) -> Result<Topology, Vec<Diagnostic>> {
    let mut expansion = Expansion {
        topology: Topology {
            name: description.name.clone().unwrap_or_else(|| name.to_string()),
            machines: Vec::new(),
            nodes: Vec::new(),
            wires: Vec::new(),
            shape: description.shape.clone(),
        },
        figures: description.figures,
        declared: Vec::new(),
        by_name: HashMap::new(),
        machines: HashSet::new(),
        comparisons: 0,
        faults: Vec::new(),
    };
    expansion.all(description);
    if expansion.faults.is_empty()
        && let Some((a, b)) = connected::apart(&expansion.topology)
    {
        let names = [a, b].map(|at| expansion.topology.nodes[at as usize].name.clone());
        let [here, there] = [a, b].map(|at| expansion.declared[at as usize]);
        let message = format!("there is no way from device `{}` to device `{}`", names[0], names[1]);
        let fault = Diagnostic::new(codes::SHAPE, here, message)
            .also(there, "")
            .expected("a way between any two devices")
            .help("join them with a [[link]], perhaps through a [[switch]]; devices with `forward = false` are no way");
        expansion.faults.push(fault);
    }
    if expansion.faults.is_empty() { Ok(expansion.topology) } else { Err(expansion.faults) }
}

struct Expansion {
    topology: Topology,
    figures: DeviceFigures,
    /// Where each node is declared.
    declared: Vec<Span>,
    by_name: HashMap<String, u32>,
    machines: HashSet<String>,
    comparisons: u64,
    faults: Vec<Diagnostic>,
}

/// Which nodes a link's pattern is looked for among, and what their names begin with.
#[derive(Clone, Copy)]
struct Scope<'s> {
    first: u32,
    end: u32,
    prefix: &'s str,
}

impl Expansion {
    fn all(&mut self, description: &Description) {
        for machine in &description.machines {
            self.machines(machine);
        }
        for node in &description.nodes {
            self.nodes(node, None, "");
        }
        for link in &description.links {
            let scope = Scope { first: 0, end: self.topology.nodes.len() as u32, prefix: "" };
            for [a, b] in self.pairs(link, scope) {
                self.wire(link, a, b);
            }
        }
    }

    fn fault(&mut self, fault: Diagnostic) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    fn is_full(&mut self, nodes: u64, span: Span) -> bool {
        let total = self.topology.nodes.len() as u64 + nodes;
        if total > NODES_MAX as u64 {
            let message = format!("this makes {total} nodes, and a topology has at most {NODES_MAX}");
            self.fault(Diagnostic::new(codes::BOUNDS, span, message));
            return true;
        }
        false
    }

    /// A new machine, unless there is one of that name.
    fn machine(&mut self, name: String, span: Span) -> Option<u32> {
        if !self.machines.insert(name.clone()) {
            let message = format!("two machines are called `{name}`");
            self.fault(Diagnostic::new(codes::SHAPE, span, message).help("names are unique"));
            return None;
        }
        self.topology.machines.push(name);
        Some(self.topology.machines.len() as u32 - 1)
    }

    /// All copies of a machine. Its links are looked up in the first, and are the same in the others.
    fn machines(&mut self, decl: &MachineDecl) {
        let copies = decl.count.unwrap_or(1);
        let each: u64 = decl.nodes.iter().map(|node| u64::from(node.count.unwrap_or(1))).sum();
        if self.is_full(each.max(1).saturating_mul(u64::from(copies)), decl.span) {
            return;
        }
        let mut template: Vec<(usize, [u32; 2])> = Vec::new();
        let mut first_of_template = 0;
        for copy in 0..copies {
            let name = numbered(&decl.name, decl.count, copy);
            let first = self.topology.nodes.len() as u32;
            let prefix = format!("{name}.");
            let Some(machine) = self.machine(name, decl.span) else { return };
            let faults = self.faults.len();
            for node in &decl.nodes {
                self.nodes(node, Some(machine), &prefix);
            }
            if self.faults.len() > faults {
                return;
            }
            if copy == 0 {
                first_of_template = first;
                let scope = Scope { first, end: self.topology.nodes.len() as u32, prefix: &prefix };
                for (at, link) in decl.links.iter().enumerate() {
                    template.extend(self.pairs(link, scope).into_iter().map(|pair| (at, pair)));
                }
            }
            for &(at, [a, b]) in &template {
                let moved = first - first_of_template;
                if !self.wire(&decl.links[at], a + moved, b + moved) {
                    return;
                }
            }
        }
    }

    fn nodes(&mut self, decl: &NodeDecl, machine: Option<u32>, prefix: &str) {
        let copies = decl.count.unwrap_or(1);
        if self.is_full(u64::from(copies), decl.span) {
            return;
        }
        for copy in 0..copies {
            let name = prefix.to_string() + &numbered(&decl.name, decl.count, copy);
            let at = self.topology.nodes.len() as u32;
            if let Some(&other) = self.by_name.get(&name) {
                let message = format!("two nodes are called `{name}`");
                let there = self.declared[other as usize];
                let fault =
                    Diagnostic::new(codes::SHAPE, decl.span, message).also(there, "the other is here");
                self.fault(fault.help("names are unique; `count` numbers them from 0"));
                return;
            }
            self.by_name.insert(name.clone(), at);
            let machine = match machine {
                // A device that stands alone is a machine of its own.
                None if decl.kind == Kind::Device => {
                    let Some(own) = self.machine(name.clone(), decl.span) else { return };
                    Some(own)
                }
                given => given,
            };
            self.declared.push(decl.span);
            self.topology.nodes.push(Node {
                name,
                kind: decl.kind,
                machine,
                forwards: decl.forwards,
                bytes_per_us: decl.bytes_per_us,
                figures: decl.figures.or(self.figures),
                note: decl.note.clone(),
            });
        }
    }

    /// The pairs of nodes that a link joins.
    fn pairs(&mut self, link: &LinkDecl, scope: Scope<'_>) -> Vec<[u32; 2]> {
        let [left, right] = &link.between;
        let (Some(a), Some(b)) = (self.named(left, link.span, scope), self.named(right, link.span, scope))
        else {
            return Vec::new();
        };
        let is_ambiguous = a.len() > 1 && b.len() > 1;
        let pairs: Vec<[u32; 2]> = match link.pairs {
            None if is_ambiguous => {
                let message = format!(
                    "`{left}` are {} nodes and `{right}` are {}: which are joined?",
                    a.len(),
                    b.len()
                );
                let fault = Diagnostic::new(codes::SHAPE, link.span, message);
                self.fault(fault.help("add `pairs = \"same\"`, `\"all\"` or `\"next\"`"));
                return Vec::new();
            }
            Some(Pairs::Same) if a.len() != b.len() => {
                let message = format!(
                    "`{left}` are {} nodes and `{right}` are {}, which make no pairs",
                    a.len(),
                    b.len()
                );
                self.fault(
                    Diagnostic::new(codes::SHAPE, link.span, message).expected("as many on both sides"),
                );
                return Vec::new();
            }
            Some(Pairs::Same) => a.iter().zip(&b).map(|(&a, &b)| [a, b]).collect(),
            Some(Pairs::Next) if a != b => {
                let message = "`pairs = \"next\"` joins nodes of one list, and these are two";
                let fault = Diagnostic::new(codes::SHAPE, link.span, message);
                self.fault(fault.help(format!("write `between = [\"{left}\", \"{left}\"]`")));
                return Vec::new();
            }
            Some(Pairs::Next) => {
                let steps = if a.len() == 2 { 1 } else { a.len() };
                (0..steps).map(|i| [a[i], a[(i + 1) % a.len()]]).collect()
            }
            _ if a.len() as u64 * b.len() as u64 > 2 * WIRES_MAX as u64 => {
                let count = a.len() as u64 * b.len() as u64;
                let message =
                    format!("this joins {count} pairs, and a topology has at most {WIRES_MAX} links");
                self.fault(Diagnostic::new(codes::BOUNDS, link.span, message));
                return Vec::new();
            }
            _ if a == b && a.len() > 1 => (0..a.len())
                .flat_map(|i| (i + 1..a.len()).map(move |j| (i, j)))
                .map(|(i, j)| [a[i], a[j]])
                .collect(),
            _ => a.iter().flat_map(|&a| b.iter().map(move |&b| [a, b])).collect(),
        };
        if let Some([node, _]) = pairs.iter().find(|[a, b]| a == b) {
            let name = &self.topology.nodes[*node as usize].name;
            let message = format!("a link joins `{name}` with itself");
            let fault = Diagnostic::new(codes::SHAPE, link.span, message);
            self.fault(
                fault.expected("two nodes").help("what stays on a device is copied, and needs no link"),
            );
            return Vec::new();
        }
        pairs
    }

    /// The nodes of a name or pattern, in the order in which they are declared.
    fn named(&mut self, text: &str, span: Span, scope: Scope<'_>) -> Option<Vec<u32>> {
        if pattern::is_plain(text) {
            let full = format!("{}{text}", scope.prefix);
            if let Some(&at) = self.by_name.get(&full).filter(|at| (scope.first..scope.end).contains(at)) {
                return Some(vec![at]);
            }
        } else {
            let pattern = match Pattern::new(text) {
                Ok(pattern) => pattern,
                Err(message) => {
                    self.fault(Diagnostic::new(codes::FORM, span, message));
                    return None;
                }
            };
            let all = u64::from(scope.end - scope.first);
            let listed = pattern.names();
            // A list of more names than there are nodes has some in vain, and is not looked up.
            let wanted = listed.as_ref().map(Names::count);
            self.comparisons += wanted.map_or(all, |wanted| wanted.min(all));
            if self.comparisons > COMPARISONS_MAX {
                let message = "too many patterns on too many nodes";
                self.fault(Diagnostic::new(codes::BOUNDS, span, message).help("write machines with `count`"));
                return None;
            }
            let nodes = scope.first..scope.end;
            let found: Vec<u32> = match listed.filter(|names| names.count() <= all) {
                // Some names are looked up faster than all are compared.
                Some(names) => {
                    let named =
                        names.all().filter_map(|name| self.by_name.get(&format!("{}{name}", scope.prefix)));
                    let mut found: Vec<u32> = named.copied().filter(|at| nodes.contains(at)).collect();
                    found.sort_unstable();
                    found
                }
                None => {
                    let name = |at: &u32| &self.topology.nodes[*at as usize].name[scope.prefix.len()..];
                    nodes.filter(|at| pattern.fits(name(at))).collect()
                }
            };
            if let Some(wanted) = wanted.filter(|&wanted| wanted != found.len() as u64 && !found.is_empty()) {
                let message =
                    format!("`{text}` names {wanted} nodes, and there are {} of these", found.len());
                self.fault(Diagnostic::new(codes::UNKNOWN, span, message).help("`[a..b]` ends before b"));
                return None;
            }
            if !found.is_empty() {
                return Some(found);
            }
        }
        self.unknown(text, span, scope);
        None
    }

    fn unknown(&mut self, text: &str, span: Span, scope: Scope<'_>) {
        let nodes = &self.topology.nodes[scope.first as usize..scope.end as usize];
        let names = || nodes.iter().take(10_000).map(|node| &node.name[scope.prefix.len()..]);
        let place = if scope.prefix.is_empty() { "no node is" } else { "nothing in this machine is" };
        let mut fault = Diagnostic::new(codes::UNKNOWN, span, format!("{place} called `{text}`"));
        if let Some(near) = nearest(text, names()) {
            fault = fault.help(format!("did you mean `{near}`?"));
        } else if !nodes.is_empty() {
            let some: Vec<&str> = names().take(8).collect();
            let more = if nodes.len() > 8 { ", …" } else { "" };
            fault = fault.help(format!("there are {}{more}", some.join(", ")));
        }
        self.fault(fault);
    }

    fn wire(&mut self, link: &LinkDecl, a: u32, b: u32) -> bool {
        if self.topology.wires.len() >= WIRES_MAX {
            let message = format!("a topology has at most {WIRES_MAX} links");
            self.fault(Diagnostic::new(codes::BOUNDS, link.span, message));
            return false;
        }
        self.topology.wires.push(Wire {
            ends: [a, b],
            bytes_per_us: link.bytes_per_us * f64::from(link.count),
            latency_us: link.latency_us,
            duplex: link.duplex,
        });
        true
    }
}

fn numbered(name: &str, count: Option<u32>, copy: u32) -> String {
    if count.is_some() { format!("{name}{copy}") } else { name.to_string() }
}
