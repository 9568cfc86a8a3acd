//! NCCL's and RCCL's topology XML: `<system>`, in it `<cpu>`, `<pci>`, `<gpu>` with `<nvlink>` or `<xgmi>`, `<nic>` with
//! `<net>`.
//!
//! One file is one machine. Processors and PCI bridges become switches, a `<nic>` with its ports one NIC, whose ports lead to
//! a switch `fabric` outside the machine; so a file is made a cluster by a `count`. A PCI device of a GPU's class is a GPU
//! even without a `<gpu>` in it, and one of a NIC's class a NIC: Azure's files have no more.

mod gpu_links;
mod whole;

use super::Imported;
use super::figures;
use super::warnings::Warnings;
use super::xml::{self, Element};
use crate::codes;
use crate::pattern::to_name;
use crate::units::show_bandwidth;
use coll_base::{Diagnostic, FileId, Span, nearest};
use std::collections::HashSet;

/// Elements and their attributes, those that mean nothing here included.
const KNOWN: [(&str, &[&str]); 9] = [
    ("system", &["version"]),
    ("cpu", &["numaid", "affinity", "arch", "vendor", "familyid", "modelid", "host_hash"]),
    (
        "pci",
        &[
            "busid",
            "class",
            "vendor",
            "device",
            "subsystem_vendor",
            "subsystem_device",
            "link_speed",
            "link_width",
        ],
    ),
    ("gpu", &["dev", "sm", "gcn", "arch", "rank", "gdr", "mnnvl"]),
    ("nvlink", &["target", "count", "tclass"]),
    ("xgmi", &["target", "count", "tclass"]),
    ("nic", &[]),
    ("net", &["name", "dev", "speed", "port", "latency", "guid", "maxconn", "gdr", "coll", "keep"]),
    ("c2c", &["bw", "count"]),
];

/// Reads a file's text.
pub(crate) fn import(file: FileId, text: &str) -> Result<Imported, Vec<Diagnostic>> {
    let elements = xml::parse(file, text).map_err(|fault| vec![fault])?;
    if let Some(fault) = of_another_kind(&elements[0]) {
        return Err(vec![fault]);
    }
    let mut importer = Importer {
        elements: &elements,
        warnings: Warnings::default(),
        faults: Vec::new(),
        gpus: Vec::new(),
        nics: Vec::new(),
        switches: Vec::new(),
        links: Vec::new(),
        ports: HashSet::new(),
    };
    importer.system();
    importer.finish()
}

/// A message about a file that is XML and no topology.
fn of_another_kind(root: &Element) -> Option<Diagnostic> {
    let what = match root.tag.as_str() {
        "system" => return None,
        "graphs" | "graph" => {
            "an NCCL graph file: the rings and trees that NCCL chose, not the machine".to_string()
        }
        "algo" => "an MSCCL algorithm, not a topology".to_string(),
        other => format!("`<{}>`, which is no topology", other.chars().take(40).collect::<String>()),
    };
    Some(
        Diagnostic::new(codes::OTHER_KIND, root.span, format!("this is {what}"))
            .expected("a `<system>`, as NCCL writes with NCCL_TOPO_DUMP_FILE"),
    )
}

/// A node to be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Part {
    Gpu(usize),
    Nic(usize),
    Switch(usize),
    Fabric,
}

struct Gpu {
    bus: Option<String>,
    dev: Option<u64>,
    rank: Option<u64>,
    sm: Option<u64>,
    gcn: Option<u64>,
    /// Its `<gpu>`, if it has one.
    element: Option<usize>,
    span: Span,
    cpu: usize,
}

struct Nic {
    name: Option<String>,
    note: Option<String>,
    span: Span,
}

struct Switch {
    name: String,
    note: Option<String>,
    span: Span,
}

struct Joined {
    ends: [Part; 2],
    bytes_per_us: f64,
    latency_us: f64,
    count: u32,
    span: Span,
}

struct Importer<'e> {
    elements: &'e [Element],
    warnings: Warnings,
    faults: Vec<Diagnostic>,
    gpus: Vec<Gpu>,
    nics: Vec<Nic>,
    switches: Vec<Switch>,
    links: Vec<Joined>,
    /// Ports that were met: guid and number.
    ports: HashSet<(String, String)>,
}

/// Bandwidth of the link above a PCI device.
#[derive(Clone, Copy)]
struct Above {
    part: Part,
    cpu: usize,
}

impl<'e> Importer<'e> {
    fn system(&mut self) {
        let elements = self.elements;
        let root = &elements[0];
        self.attributes(root);
        let cpus: Vec<usize> =
            root.children.iter().copied().filter(|&at| elements[at].tag == "cpu").collect();
        for &at in root.children.iter().filter(|&&at| elements[at].tag != "cpu") {
            self.stray(&elements[at], "<system>");
        }
        let mut between = None;
        let first = self.switches.len();
        for (number, &at) in cpus.iter().enumerate() {
            let cpu = &elements[at];
            self.attributes(cpu);
            let numa = self.number(cpu, "numaid").unwrap_or(number as u64);
            if cpu.get("numaid").is_none() {
                self.assumed(cpu, "numaid", "processors are numbered in order");
            }
            let name = format!("cpu{numa}");
            let taken = self.switches.iter().any(|switch| switch.name == name);
            let name = if taken { format!("cpu{numa}-{number}") } else { name };
            let note = cpu.get("vendor").map(|vendor| vendor.value.clone());
            self.switches.push(Switch { name, note, span: cpu.span });
            if cpus.len() > 1 {
                let rate = self.between_cpus(cpu);
                between = Some(between.map_or(rate, |least: f64| least.min(rate)));
            }
        }
        for i in 0..cpus.len() {
            for j in i + 1..cpus.len() {
                self.join(
                    [Part::Switch(first + i), Part::Switch(first + j)],
                    between.unwrap_or(figures::BETWEEN_CPUS_DEFAULT),
                    figures::CPU_LINK_US,
                    1,
                    elements[cpus[i]].span,
                );
                if self.links.len() > crate::expand::WIRES_MAX / 8 {
                    let message = format!("{} processors, each joined with each, are too many", cpus.len());
                    self.faults.push(Diagnostic::new(codes::BOUNDS, elements[0].span, message));
                    return;
                }
            }
        }
        for (number, &at) in cpus.iter().enumerate() {
            let cpu = first + number;
            self.below(&elements[at], Above { part: Part::Switch(cpu), cpu });
        }
    }

    fn between_cpus(&mut self, cpu: &Element) -> f64 {
        let model = self.number(cpu, "modelid");
        let default = show_bandwidth(figures::BETWEEN_CPUS_DEFAULT);
        let (Some(arch), Some(vendor)) = (cpu.get("arch"), cpu.get("vendor")) else {
            let missing = if cpu.get("arch").is_none() { "arch" } else { "vendor" };
            self.assumed(cpu, missing, &format!("{default} between processors is assumed"));
            return figures::BETWEEN_CPUS_DEFAULT;
        };
        figures::between_cpus(&arch.value, &vendor.value, model).unwrap_or_else(|| {
            let (arch_name, vendor_name) = (&arch.value, &vendor.value);
            self.warnings.add("cpu", vendor.span, || {
                format!(
                    "a processor `{}` `{}` is not known; {default} between processors is assumed",
                    short(arch_name),
                    short(vendor_name)
                )
            });
            figures::BETWEEN_CPUS_DEFAULT
        })
    }

    /// What hangs below a processor or a bridge.
    fn below(&mut self, element: &'e Element, above: Above) {
        for &at in &element.children {
            let child = &self.elements[at];
            match child.tag.as_str() {
                "pci" => self.pci(child, above),
                "nic" => self.nic(child, above, None, None),
                "net" => self.nic(child, above, None, None),
                _ => self.stray(child, &format!("<{}>", element.tag)),
            }
        }
    }

    fn pci(&mut self, pci: &'e Element, above: Above) {
        self.attributes(pci);
        let elements = self.elements;
        let has = |tag: &str| pci.children.iter().any(|&at| elements[at].tag == tag);
        let class = pci.get("class").map(|class| class.value.to_ascii_lowercase());
        let class = class.as_deref().unwrap_or("");
        let bus = pci.get("busid").map(|bus| bus.value.clone());
        if has("gpu") || class.starts_with("0x03") || class.starts_with("0x12") {
            self.gpu(pci, bus, above);
        } else if has("nic") || has("net") || class.starts_with("0x02") {
            let rate = self.pci_rate(pci);
            let children: Vec<usize> = pci.children.clone();
            let mut found = false;
            for at in children {
                match elements[at].tag.as_str() {
                    "nic" | "net" => {
                        self.nic(&elements[at], above, Some(rate), bus.as_deref());
                        found = true;
                    }
                    _ => self.stray(&elements[at], "a NIC's <pci>"),
                }
            }
            if !found {
                self.warnings.add("implied nic", pci.span, || {
                    "a PCI device of a NIC's class has no `<nic>`: one port as fast as its PCI link is assumed".to_string()
                });
                self.nics.push(Nic { name: None, note: bus, span: pci.span });
                let nic = Part::Nic(self.nics.len() - 1);
                self.join([above.part, nic], rate, figures::PCI_LINK_US, 1, pci.span);
                self.join([nic, Part::Fabric], rate, figures::PORT_LINK_US, 1, pci.span);
            }
        } else if class.starts_with("0x06") || !pci.children.is_empty() {
            if bus.is_none() {
                self.assumed(pci, "busid", "a bridge needs none");
            }
            let rate = self.pci_rate(pci);
            self.switches.push(Switch { name: format!("pci{}", self.bridges()), note: bus, span: pci.span });
            let part = Part::Switch(self.switches.len() - 1);
            self.join([above.part, part], rate, figures::PCI_LINK_US, 1, pci.span);
            self.below(pci, Above { part, ..above });
        } else if class.is_empty() {
            let shown = short(bus.as_deref().unwrap_or("without `busid`"));
            self.warnings.add_with_help("class", pci.span, || {
                let message = format!(
                    "PCI device {shown} has no `class`, so what it is cannot be told; it is not used"
                );
                (
                    message,
                    Some(
                        "NCCL asks the system for it; a dump of NCCL_TOPO_DUMP_FILE has all of it"
                            .to_string(),
                    ),
                )
            });
        } else {
            self.warnings.add("other class", pci.span, || {
                format!(
                    "a PCI device of class {} is neither GPU, NIC nor bridge; it is not used",
                    short(class)
                )
            });
        }
    }

    fn bridges(&self) -> usize {
        self.switches.iter().filter(|switch| switch.name.starts_with("pci")).count()
    }

    fn gpu(&mut self, pci: &'e Element, bus: Option<String>, above: Above) {
        let elements = self.elements;
        let rate = self.pci_rate(pci);
        if bus.is_none() {
            self.assumed(pci, "busid", "no link of another GPU can name it");
        }
        let mut gpus = Vec::new();
        for &at in &pci.children {
            match elements[at].tag.as_str() {
                "gpu" => gpus.push(at),
                _ => self.stray(&elements[at], "a GPU's <pci>"),
            }
        }
        if gpus.is_empty() {
            self.warnings.add("implied gpu", pci.span, || {
                "a PCI device of a GPU's class has no `<gpu>`: a GPU without NVLink is assumed".to_string()
            });
        }
        for &at in &gpus[..] {
            self.attributes(&elements[at]);
        }
        let each = if gpus.is_empty() { vec![None] } else { gpus.into_iter().map(Some).collect() };
        for element in each {
            let number = |this: &mut Self, name| element.and_then(|at| this.number(&elements[at], name));
            let (dev, rank) = (number(self, "dev"), number(self, "rank"));
            let sm = number(self, "sm");
            let gcn = element.and_then(|at| self.generation(&elements[at]));
            if let Some(at) = element
                && dev.is_none()
            {
                self.assumed(&elements[at], "dev", "GPUs are numbered in order");
            }
            self.gpus.push(Gpu {
                bus: bus.clone(),
                dev,
                rank,
                sm,
                gcn,
                element,
                span: pci.span,
                cpu: above.cpu,
            });
            let part = Part::Gpu(self.gpus.len() - 1);
            self.join([above.part, part], rate, figures::PCI_LINK_US, 1, pci.span);
        }
    }

    /// A `<nic>` with its ports, or a port by itself.
    fn nic(&mut self, element: &'e Element, above: Above, pci_rate: Option<f64>, bus: Option<&str>) {
        let elements = self.elements;
        let mut ports: Vec<&Element> = Vec::new();
        if element.tag == "net" {
            ports.push(element);
        } else {
            self.attributes(element);
            for &at in &element.children {
                match elements[at].tag.as_str() {
                    "net" => ports.push(&elements[at]),
                    _ => self.stray(&elements[at], "<nic>"),
                }
            }
        }
        let mut rate = 0.0;
        let mut latency_us = figures::PORT_LINK_US;
        let mut names = Vec::new();
        for port in &ports {
            self.attributes(port);
            if self.is_listed_twice(port) {
                continue;
            }
            rate += self.port_rate(port);
            if let Some(given) =
                port.get("latency").and_then(|latency| latency.value.trim().parse::<f64>().ok())
                && given > 0.0
                && given < crate::units::LATENCY_MAX_US
            {
                latency_us = given;
            }
            names.extend(port.get("name").map(|name| name.value.clone()));
        }
        if rate == 0.0 {
            if !ports.is_empty() {
                return; // All of it was listed before.
            }
            rate = pci_rate.unwrap_or(figures::PORT_DEFAULT);
            self.assumed(element, "net", &format!("one port of {} is assumed", show_bandwidth(rate)));
        }
        let note = bus.map(str::to_string).into_iter().chain(names.iter().skip(1).cloned());
        let note = note.map(|word| short(&word)).collect::<Vec<_>>().join(" ");
        self.nics.push(Nic {
            name: names.first().map(|name| to_name(name)).filter(|name| !name.is_empty()),
            note: Some(note).filter(|note| !note.is_empty()),
            span: element.span,
        });
        let nic = Part::Nic(self.nics.len() - 1);
        // A NIC that hangs on a processor, such as a virtual one, is as fast as its ports.
        self.join([above.part, nic], pci_rate.unwrap_or(rate), figures::PCI_LINK_US, 1, element.span);
        self.join([nic, Part::Fabric], rate, latency_us, 1, element.span);
    }

    fn port_rate(&mut self, port: &Element) -> f64 {
        match port.get("speed").map(|speed| (speed.value.trim().parse::<f64>(), speed.span)) {
            // Megabits in a second are an eighth of bytes in a microsecond.
            Some((Ok(megabits), _)) if megabits > 0.0 && megabits <= 8e10 => megabits / 8.0,
            None | Some((Ok(0.0), _)) => {
                self.assumed(port, "speed", &format!("{} is assumed", show_bandwidth(figures::PORT_DEFAULT)));
                figures::PORT_DEFAULT
            }
            Some((_, span)) => {
                let fault =
                    Diagnostic::new(codes::FIGURE, span, "attribute `speed` of a `<net>` is no speed");
                self.faults.push(fault.expected("megabits in a second, such as 200000"));
                figures::PORT_DEFAULT
            }
        }
    }

    /// A port is known by its guid and number; two names of one port are one link.
    fn is_listed_twice(&mut self, port: &Element) -> bool {
        let value = |name| port.get(name).map_or("", |attribute| attribute.value.trim()).to_string();
        let guid = value("guid");
        let is_known = guid.trim_start_matches("0x").chars().any(|c| c != '0');
        let is_twice = is_known && !self.ports.insert((guid.clone(), value("port")));
        if is_twice {
            let name = value("name");
            self.warnings.add("twice", port.span, || {
                format!(
                    "port `{}` of guid {} is listed twice; it is counted once",
                    short(&name),
                    short(&guid)
                )
            });
        }
        is_twice
    }

    fn pci_rate(&mut self, pci: &Element) -> f64 {
        let default = || figures::pci_x16(figures::PCI_DEFAULT).unwrap_or(12e3);
        let x16 = match pci.get("link_speed") {
            None => {
                self.assumed(pci, "link_speed", &format!("`{}` is assumed", figures::PCI_DEFAULT));
                default()
            }
            Some(speed) => figures::pci_x16(&speed.value).unwrap_or_else(|| {
                let shown = short(&speed.value);
                self.warnings.add("link_speed", speed.span, || {
                    format!("`link_speed` `{shown}` is not known; `{}` is assumed", figures::PCI_DEFAULT)
                });
                default()
            }),
        };
        let width = match self.number(pci, "link_width") {
            Some(width @ 1..=32) => width as f64,
            None | Some(0) => {
                self.assumed(pci, "link_width", "16 lanes are assumed");
                figures::PCI_WIDTH_DEFAULT
            }
            Some(width) => {
                let message =
                    format!("attribute `link_width` of a `<pci>` is {width}; 1 to 32 lanes are possible");
                self.faults.push(Diagnostic::new(codes::FIGURE, pci.span, message));
                figures::PCI_WIDTH_DEFAULT
            }
        };
        x16 * width / 16.0
    }

    fn join(&mut self, ends: [Part; 2], bytes_per_us: f64, latency_us: f64, count: u32, span: Span) {
        self.links.push(Joined { ends, bytes_per_us, latency_us, count, span });
    }

    /// A whole number of 64 bits, decimal or as `0x…`.
    fn number(&mut self, element: &Element, name: &str) -> Option<u64> {
        let attribute = element.get(name)?;
        let text = attribute.value.trim();
        let number = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        // What is not known is -1 in NCCL's dumps.
        if number.is_err() && text != "-1" {
            let message = format!("attribute `{name}` of a `<{}>` is no whole number", element.tag);
            let fault = Diagnostic::new(codes::FORM, attribute.span, message).found(short(text));
            if self.faults.len() < 20 {
                self.faults.push(fault);
            }
        }
        number.ok()
    }

    /// `gcn` as a number, or as in `gfx942`. What the driver calls 90a has the number 910.
    fn generation(&mut self, gpu: &Element) -> Option<u64> {
        let name = gpu.get("gcn")?.value.trim().strip_prefix("gfx");
        match name {
            Some(letters) if letters.starts_with("90a") => Some(910),
            Some(letters) if letters.parse::<u64>().is_ok() => letters.parse().ok(),
            _ => self.number(gpu, "gcn"),
        }
    }

    fn assumed(&mut self, element: &Element, name: &str, what: &str) {
        let kind = format!("{}.{name}", element.tag);
        self.warnings.add(&kind, element.span, || format!("a `<{}>` has no `{name}`; {what}", element.tag));
    }

    fn stray(&mut self, element: &Element, within: &str) {
        let tag = short(&element.tag);
        self.warnings.add(&format!("stray {tag}"), element.span, || {
            format!("a `<{tag}>` within {within} is not used")
        });
    }

    /// Attributes that are not known are told: one of them may be misspelt.
    fn attributes(&mut self, element: &Element) {
        let Some((_, known)) = KNOWN.iter().find(|(tag, _)| *tag == element.tag) else { return };
        for attribute in
            element.attributes.iter().filter(|attribute| !known.contains(&attribute.name.as_str()))
        {
            let name = short(&attribute.name);
            self.warnings.add_with_help(&format!("{} {name}", element.tag), attribute.span, || {
                let near =
                    nearest(&name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
                (format!("attribute `{name}` of a `<{}>` is not known; it is not used", element.tag), near)
            });
        }
    }
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(40).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}
