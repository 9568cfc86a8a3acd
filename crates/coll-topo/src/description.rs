//! What a topology file says: templates, counts and patterns, before they are written out. Files, generators and imports
//! all make one, so that each can be written as a file, and one place checks them.

use crate::topology::Shape;
use coll_base::Span;

/// The most copies that one `count` makes.
pub const COUNT_MAX: u64 = 1_000_000;

/// A file's contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// What it calls itself.
    pub name: Option<String>,
    /// Figures of devices that have none of their own.
    pub figures: DeviceFigures,
    /// Machines, each perhaps many times.
    pub machines: Vec<MachineDecl>,
    /// What stands outside machines. A device here is a machine of its own.
    pub nodes: Vec<NodeDecl>,
    /// Links between parts of different machines, or outside them.
    pub links: Vec<LinkDecl>,
    /// How ways are found.
    pub shape: Shape,
}

impl Default for Description {
    fn default() -> Description {
        Description {
            name: None,
            figures: DeviceFigures::default(),
            machines: Vec::new(),
            nodes: Vec::new(),
            links: Vec::new(),
            shape: Shape::Searched,
        }
    }
}

/// A machine, or so many of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineDecl {
    /// Its name; numbered from 0 if there is a count.
    pub name: String,
    /// How many there are.
    pub count: Option<u32>,
    /// What is in it.
    pub nodes: Vec<NodeDecl>,
    /// Links within it.
    pub links: Vec<LinkDecl>,
    /// Where it is declared.
    pub span: Span,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A rank runs on it.
    Device,
    /// A network interface.
    Nic,
    /// A switch, a bridge, a processor's fabric: it passes things on.
    Switch,
}

impl Kind {
    /// Its key in files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Device => "device",
            Kind::Nic => "nic",
            Kind::Switch => "switch",
        }
    }
}

/// A node, or so many of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDecl {
    /// What it is.
    pub kind: Kind,
    /// Its name; numbered from 0 if there is a count.
    pub name: String,
    /// How many there are.
    pub count: Option<u32>,
    /// Whether what is not for it may pass through it.
    pub forwards: bool,
    /// Bytes in a microsecond that it passes in all, if less than its links do.
    pub bytes_per_us: Option<f64>,
    /// Figures of its own.
    pub figures: OwnFigures,
    /// Words for people.
    pub note: Option<String>,
    /// Where it is declared.
    pub span: Span,
}

impl NodeDecl {
    /// A node that forwards and has nothing of its own.
    pub fn new(kind: Kind, name: impl Into<String>, span: Span) -> NodeDecl {
        NodeDecl {
            kind,
            name: name.into(),
            count: None,
            forwards: true,
            bytes_per_us: None,
            figures: OwnFigures::default(),
            note: None,
            span,
        }
    }

    /// So many of it, numbered from 0.
    #[must_use]
    pub fn times(self, count: u32) -> NodeDecl {
        NodeDecl { count: Some(count), ..self }
    }
}

/// What a device takes to work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceFigures {
    /// Processor time to send or to take a message, besides its bytes, in microseconds.
    pub message_us: f64,
    /// A byte reduced, in nanoseconds.
    pub reduce_ns: f64,
    /// A byte copied within the device, in nanoseconds.
    pub copy_ns: f64,
}

impl Default for DeviceFigures {
    /// 0.5 µs a message, 100 GB/s reduced, 200 GB/s copied: a device of no particular make.
    fn default() -> DeviceFigures {
        DeviceFigures { message_us: 0.5, reduce_ns: 0.01, copy_ns: 0.005 }
    }
}

/// Figures that a device has of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnFigures {
    /// As in [`DeviceFigures`].
    pub message_us: Option<f64>,
    /// As in [`DeviceFigures`].
    pub reduce_ns: Option<f64>,
    /// As in [`DeviceFigures`].
    pub copy_ns: Option<f64>,
}

impl OwnFigures {
    /// With what it lacks taken from the defaults.
    pub fn or(self, defaults: DeviceFigures) -> DeviceFigures {
        DeviceFigures {
            message_us: self.message_us.unwrap_or(defaults.message_us),
            reduce_ns: self.reduce_ns.unwrap_or(defaults.reduce_ns),
            copy_ns: self.copy_ns.unwrap_or(defaults.copy_ns),
        }
    }
}

/// A link, or one for each pair of nodes that its patterns name.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkDecl {
    /// Names or patterns: `gpu*`, `gpu[0..4]`, `node*.nic0`.
    pub between: [String; 2],
    /// Which pairs, where both name several nodes.
    pub pairs: Option<Pairs>,
    /// Bytes in a microsecond of one wire.
    pub bytes_per_us: f64,
    /// What the first byte takes to cross it, in microseconds.
    pub latency_us: f64,
    /// Which directions it has, and whether they share.
    pub duplex: Duplex,
    /// Parallel wires that act as one: bandwidths add up.
    pub count: u32,
    /// Where it is declared.
    pub span: Span,
}

/// Which pairs of nodes are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// The first with the first, the second with the second.
    Same,
    /// Each with each.
    All,
    /// Each with the next, the last with the first.
    Next,
}

impl Pairs {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Pairs::Same => "same",
            Pairs::All => "all",
            Pairs::Next => "next",
        }
    }
}

/// Which directions a link has, and whether they share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplex {
    /// Each direction has the bandwidth.
    #[default]
    Full,
    /// Both directions share it.
    Half,
    /// From the first to the second only.
    OneWay,
}

impl Duplex {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Duplex::Full => "full",
            Duplex::Half => "half",
            Duplex::OneWay => "one-way",
        }
    }
}
