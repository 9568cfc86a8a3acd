//! A picture as SVG text.

use super::layout::{BOW_ROOM, Frame, layout};
use super::{COLOURS, DrawError, bandwidths, check, colour_of, legend};
use crate::description::{Duplex, Kind};
use crate::topology::Topology;
use crate::units::{show_bandwidth, show_time};
use std::fmt::Write;

/// How far bows go out from the middle of a row.
const BOW_MIN: f64 = 18.0;
const BOW_MAX: f64 = BOW_ROOM + 12.0;
/// Nodes that are no further apart have nothing between them.
const NEAR: f64 = 40.0;
const FONT: &str = "font-family=\"sans-serif\"";

/// Draws a topology.
pub fn svg(topology: &Topology) -> Result<String, DrawError> {
    check(topology)?;
    let layout = layout(topology);
    let rates = bandwidths(topology);
    let legend = legend(&rates);
    let title_height = 34.0;
    let width = layout.width.max(360.0) + 12.0;
    let height = title_height + layout.height + 34.0 + 20.0 * legend.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"12\" y=\"22\" {FONT} font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        escaped(&topology.name)
    );
    let _ = writeln!(text, "<g transform=\"translate(0 {title_height})\">");
    for (machine, frame) in &layout.machines {
        let Frame { x, y, width, height } = frame;
        let name = escaped(&topology.machines[*machine as usize]);
        let _ = writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\" fill=\"#fafafa\" \
             stroke=\"#999\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" {FONT} font-size=\"12\" fill=\"#555\">{name}</text>",
            x + 8.0,
            y + 15.0
        );
    }
    for wire in &topology.wires {
        let names = wire.ends.map(|at| escaped(&topology.nodes[at as usize].name));
        let at = colour_of(&rates, wire);
        let dashes = if wire.duplex == Duplex::Full { "" } else { " stroke-dasharray=\"5 3\"" };
        let _ = writeln!(
            text,
            "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1}\"{dashes}>\
             <title>{} – {}: {}, {}</title></path>",
            line(wire.ends.map(|at| layout.nodes[at as usize])),
            COLOURS[at],
            2.6 - 0.3 * at as f64,
            names[0],
            names[1],
            show_bandwidth(wire.bytes_per_us),
            show_time(wire.latency_us)
        );
    }
    for ((node, frame), name) in topology.nodes.iter().zip(&layout.nodes).zip(&layout.names) {
        let Frame { x, y, width, height } = frame;
        let (fill, round) = match node.kind {
            Kind::Device => ("#dcebf7", 3),
            Kind::Nic => ("#fdf0d5", 3),
            Kind::Switch => ("#eeeeee", 11),
        };
        let _ = writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{round}\" fill=\"{fill}\" \
             stroke=\"#444\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" {FONT} font-size=\"12\" text-anchor=\"middle\">{}</text>",
            x + width / 2.0,
            y + height / 2.0 + 4.2,
            escaped(name)
        );
    }
    text += "</g>\n";
    let mut y = title_height + layout.height + 30.0;
    for (colour, meaning) in legend {
        let _ = writeln!(
            text,
            "<line x1=\"12\" y1=\"{y:.1}\" x2=\"48\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"3\"/>\
             <text x=\"56\" y=\"{:.1}\" {FONT} font-size=\"12\">{meaning}</text>",
            y + 4.0
        );
        y += 20.0;
    }
    text += "</svg>\n";
    Ok(text)
}

/// From middle to middle: straight, but in a bow between nodes of one row or column that others lie between.
fn line([a, b]: [Frame; 2]) -> String {
    let middle = |frame: &Frame| (frame.x + frame.width / 2.0, frame.y + frame.height / 2.0);
    let ((ax, ay), (bx, by)) = (middle(&a), middle(&b));
    let (across, down) = ((bx - ax).abs(), (by - ay).abs());
    let bow = BOW_MIN + (0.06 * across.max(down)).min(BOW_MAX - BOW_MIN);
    // The middle of a quadratic curve is half as far out as its control point.
    if down < 1.0 && across > (a.width + b.width) / 2.0 + NEAR {
        return format!("M{ax:.1} {ay:.1} Q{:.1} {:.1} {bx:.1} {by:.1}", (ax + bx) / 2.0, ay + 2.0 * bow);
    }
    if across < 1.0 && down > a.height + NEAR {
        let out = a.width.max(b.width) / 2.0 + bow;
        return format!("M{ax:.1} {ay:.1} Q{:.1} {:.1} {bx:.1} {by:.1}", ax + 2.0 * out, (ay + by) / 2.0);
    }
    format!("M{ax:.1} {ay:.1} L{bx:.1} {by:.1}")
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
