//! Where nodes lie.

use crate::description::Kind;
use crate::topology::{Shape, Topology};
use std::collections::VecDeque;

/// A place and a size, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Frame {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Where everything lies.
pub(super) struct Layout {
    /// Of each node.
    pub(super) nodes: Vec<Frame>,
    /// What is written in each node.
    pub(super) names: Vec<String>,
    /// Of each machine that has a frame.
    pub(super) machines: Vec<(u32, Frame)>,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Below devices, if some are joined with each other.
    bow_room: f64,
}

const HEIGHT: f64 = 24.0;
const GAP: f64 = 12.0;
/// Between rows, so that wires can be told apart.
const ROW: f64 = 56.0;
/// Room below a row for wires between its nodes.
pub(super) const BOW_ROOM: f64 = 26.0;
/// Room for a machine's name.
const TITLE: f64 = 22.0;
/// Pictures get no wider than this, if a machine or a node is not.
const WIDTH_MAX: f64 = 1500.0;
/// Hosts on a circle, at most.
const CIRCLE_MAX: usize = 48;

/// Lays a topology out.
pub(super) fn layout(topology: &Topology) -> Layout {
    let short = |at: usize| {
        let node = &topology.nodes[at];
        let machine = node.machine.map(|machine| topology.machines[machine as usize].as_str());
        let inner = machine.and_then(|machine| node.name.strip_prefix(machine)?.strip_prefix('.'));
        inner.unwrap_or(&node.name).to_string()
    };
    let names: Vec<String> = (0..topology.nodes.len()).map(short).collect();
    let sizes = names.iter().map(|name| Frame {
        width: 7.4 * name.chars().count() as f64 + 16.0,
        height: HEIGHT,
        ..Frame::default()
    });
    let mut layout = Layout {
        nodes: sizes.collect(),
        names,
        machines: Vec::new(),
        width: 0.0,
        height: 0.0,
        bow_room: 0.0,
    };
    let is_device = |at: u32| topology.nodes[at as usize].kind == Kind::Device;
    if topology.wires.iter().any(|wire| wire.ends.iter().all(|&at| is_device(at))) {
        layout.bow_room = BOW_ROOM;
    }
    let only_hosts = topology.nodes.iter().all(|node| node.kind == Kind::Device)
        && topology.machines.len() == topology.nodes.len();
    match &topology.shape {
        Shape::Grid { extents, .. } if extents.len() == 2 => layout.grid(extents[1] as usize),
        _ if only_hosts && topology.nodes.len() <= CIRCLE_MAX => layout.circle(),
        _ => layout.rows(topology),
    }
    layout.height += layout.bow_room;
    layout
}

impl Layout {
    fn widest(&self) -> f64 {
        self.nodes.iter().map(|node| node.width).fold(0.0, f64::max)
    }

    fn grid(&mut self, columns: usize) {
        let widest = self.widest();
        let step = widest + 3.0 * GAP;
        for (at, node) in self.nodes.iter_mut().enumerate() {
            // Of one width, so that columns are straight.
            node.width = widest;
            node.x = GAP + (at % columns) as f64 * step;
            node.y = GAP + (at / columns) as f64 * ROW;
        }
        self.width = columns as f64 * step + widest / 2.0 + BOW_ROOM;
        self.height = self.nodes.len().div_ceil(columns) as f64 * ROW;
    }

    fn circle(&mut self) {
        let count = self.nodes.len() as f64;
        let widest = self.widest();
        let radius = (count * (widest + GAP) / std::f64::consts::TAU).max(60.0);
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let angle = std::f64::consts::TAU * at as f64 / count - std::f64::consts::FRAC_PI_2;
            node.x = GAP + radius * (1.0 + angle.cos()) + (widest - node.width) / 2.0;
            node.y = GAP + radius * (1.0 + angle.sin());
        }
        (self.width, self.height) = (2.0 * (radius + GAP) + widest, 2.0 * (radius + GAP) + HEIGHT);
    }

    /// Machines in rows, and rows of what stands outside them above.
    fn rows(&mut self, topology: &Topology) {
        let level = levels(topology);
        let mut by_machine: Vec<Vec<usize>> = vec![Vec::new(); topology.machines.len()];
        let mut outside = Vec::new();
        for (at, node) in topology.nodes.iter().enumerate() {
            match node.machine {
                Some(machine) => by_machine[machine as usize].push(at),
                None => outside.push(at),
            }
        }
        let boxes: Vec<Frame> = by_machine.iter().map(|nodes| self.machine(nodes, &level)).collect();
        let across = if boxes.is_empty() { 0.0 } else { self.flow(&boxes) };
        let above = by_levels(&outside, &level);
        let row_width = |layout: &Layout, row: &[usize]| -> f64 {
            row.iter().map(|&at| layout.nodes[at].width + GAP).sum::<f64>() + GAP
        };
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for row in above.into_iter().rev() {
            rows.extend(self.wrapped(&row));
        }
        let width = rows.iter().map(|row| row_width(self, row)).fold(across, f64::max);
        let mut y = GAP;
        for row in &rows {
            let mut x = (width - row_width(self, row)) / 2.0 + GAP;
            for &at in row {
                (self.nodes[at].x, self.nodes[at].y) = (x, y);
                x += self.nodes[at].width + GAP;
            }
            y += ROW;
        }
        let frames = self.placed(&boxes, width, y);
        let mut bottom = y;
        for (machine, (frame, nodes)) in frames.iter().zip(&by_machine).enumerate() {
            for &at in nodes {
                self.nodes[at].x += frame.x;
                self.nodes[at].y += frame.y;
            }
            if nodes.len() > 1 {
                self.machines.push((machine as u32, *frame));
            }
            bottom = bottom.max(frame.y + frame.height);
        }
        (self.width, self.height) = (width + GAP, bottom);
    }

    /// Lays a machine's nodes out from its corner, and gives its size.
    fn machine(&mut self, nodes: &[usize], level: &[u32]) -> Frame {
        if let [host] = nodes {
            return Frame { width: self.nodes[*host].width, height: HEIGHT, ..Frame::default() };
        }
        let mut rows = Vec::new();
        for row in by_levels(nodes, level).into_iter().rev() {
            rows.extend(self.wrapped(&row));
        }
        let row_width =
            |layout: &Layout, row: &[usize]| row.iter().map(|&at| layout.nodes[at].width + GAP).sum::<f64>();
        let width = rows.iter().map(|row| row_width(self, row)).fold(80.0, f64::max) + GAP;
        let mut y = TITLE + GAP / 2.0;
        for row in &rows {
            let mut x = (width - row_width(self, row) + GAP) / 2.0;
            for &at in row {
                (self.nodes[at].x, self.nodes[at].y) = (x, y);
                x += self.nodes[at].width + GAP;
            }
            y += ROW;
        }
        Frame { width, height: y - ROW + HEIGHT + GAP + self.bow_room, ..Frame::default() }
    }

    /// A row, cut where it is too wide.
    fn wrapped(&self, row: &[usize]) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new()];
        let mut width = 0.0;
        for &at in row {
            let own = self.nodes[at].width + GAP;
            if width + own > WIDTH_MAX && width > 0.0 {
                rows.push(Vec::new());
                width = 0.0;
            }
            width += own;
            let last = rows.len() - 1;
            rows[last].push(at);
        }
        rows
    }

    /// How wide rows of machines are.
    fn flow(&self, boxes: &[Frame]) -> f64 {
        let total: f64 = boxes.iter().map(|frame| frame.width + GAP).sum::<f64>() + GAP;
        let widest = boxes.iter().map(|frame| frame.width).fold(0.0, f64::max) + 2.0 * GAP;
        total.min(WIDTH_MAX).max(widest)
    }

    /// Machines in rows of a width, from a height on.
    fn placed(&self, boxes: &[Frame], width: f64, top: f64) -> Vec<Frame> {
        let mut frames = Vec::new();
        let (mut x, mut y, mut tallest) = (GAP, top, 0.0f64);
        for frame in boxes {
            if x + frame.width > width && x > GAP {
                (x, y, tallest) = (GAP, y + tallest + ROW - HEIGHT, 0.0);
            }
            frames.push(Frame { x, y, ..*frame });
            x += frame.width + GAP;
            tallest = tallest.max(frame.height);
        }
        frames
    }
}

/// Links between each node and the nearest device.
fn levels(topology: &Topology) -> Vec<u32> {
    let mut near = vec![Vec::new(); topology.nodes.len()];
    for wire in &topology.wires {
        let [a, b] = wire.ends;
        near[a as usize].push(b);
        near[b as usize].push(a);
    }
    let mut level = vec![u32::MAX; topology.nodes.len()];
    let mut open: VecDeque<u32> = topology.devices().into();
    open.iter().for_each(|&at| level[at as usize] = 0);
    while let Some(at) = open.pop_front() {
        for &next in &near[at as usize] {
            if level[next as usize] == u32::MAX {
                level[next as usize] = level[at as usize] + 1;
                open.push_back(next);
            }
        }
    }
    level
}

/// Nodes by level, the lowest first, in their order.
fn by_levels(nodes: &[usize], level: &[u32]) -> Vec<Vec<usize>> {
    let mut found: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
    for &at in nodes {
        found.entry(level[at]).or_default().push(at);
    }
    found.into_values().collect()
}
