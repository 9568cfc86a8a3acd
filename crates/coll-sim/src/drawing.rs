//! A plan as a picture: ranks are rows, the program's steps columns, messages arrows. What stays within a rank is a dot.

use crate::SimError;
use crate::svg::{COLOURS, Svg};
use crate::table::Parts;
use coll_plan::{Action, Plan};
use std::collections::BTreeMap;

/// The most arrows and dots that a picture has; beyond, nobody sees anything.
pub(crate) const SHAPES_MAX: usize = 20_000;

const LEFT: f64 = 70.0;
const TOP: f64 = 60.0;
const ROW: f64 = 44.0;
const COLUMN: f64 = 90.0;

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq)]
pub enum DrawError {
    /// A part of the plan is missing.
    Plan(SimError),
    /// There is too much to be seen.
    TooMuch {
        /// Messages, copies and reductions.
        shapes: usize,
    },
}

impl std::fmt::Display for DrawError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DrawError::Plan(error) => error.fmt(f),
            DrawError::TooMuch { shapes } => write!(
                f,
                "the picture would have {shapes} arrows and dots; at most {SHAPES_MAX} are drawn: take fewer ranks"
            ),
        }
    }
}

impl std::error::Error for DrawError {}

/// Draws a whole plan as an SVG: for each step, who sends to whom.
///
/// # Errors
/// A slice, or more than a picture can show.
pub fn drawing(plan: &Plan) -> Result<String, DrawError> {
    let parts = Parts::new(&[plan]).map_err(DrawError::Plan)?;
    let receives = |action: Action| action.receives_from().is_some();
    let shapes = plan.ranks.iter().flat_map(|part| &part.ops).filter(|op| !receives(op.action)).count();
    if shapes > SHAPES_MAX {
        return Err(DrawError::TooMuch { shapes });
    }
    let steps = plan.ranks.iter().flat_map(|part| &part.ops).map(|op| op.step + 1).max().unwrap_or(1);
    let ranks = plan.world();
    let x = |step: f64| LEFT + step * COLUMN;
    let y = |rank: u32| TOP + f64::from(rank) * ROW;
    let margin = if plan.placement.is_some() { 100.0 } else { 30.0 };
    let mut svg = Svg::new(x(f64::from(steps)) + margin, y(ranks) + 10.0 + legend_height(plan));
    let place =
        plan.placement.as_ref().map_or(String::new(), |placed| format!(", placed on {}", placed.topology));
    svg.text((LEFT, 20.0), "start", &format!("{} on {ranks} ranks{place}", plan.name));
    for rank in 0..ranks {
        svg.text((LEFT - 12.0, y(rank) + 4.0), "end", &format!("rank {rank}"));
        svg.line((LEFT, y(rank)), (x(f64::from(steps)), y(rank)), "stroke=\"#bbbbbb\"");
        if let Some(device) = plan.placement.as_ref().and_then(|placed| placed.order.get(rank as usize)) {
            svg.text((x(f64::from(steps)) + 12.0, y(rank) + 4.0), "start", &format!("device {device}"));
        }
    }
    for step in 0..=steps {
        let at = x(f64::from(step));
        svg.line((at, TOP - 16.0), (at, y(ranks) - ROW / 2.0), "stroke=\"#eeeeee\"");
        if step < steps {
            svg.text((at + COLUMN / 2.0, TOP - 22.0), "middle", &format!("step {step}"));
        }
    }
    let colours = colours(plan);
    // What reduces is told apart by how its arrow is drawn, and only the receive knows.
    let reducing = reducing(&parts);
    let mut seen: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for part in &plan.ranks {
        let mut locals: BTreeMap<u32, u32> = BTreeMap::new();
        for (id, op) in part.ops.iter().enumerate() {
            let line = plan.lines.get(op.line as usize);
            let place = line.map_or(String::new(), |line| format!(", {}:{}", line.file, line.line));
            let colour = COLOURS[colours.get(&op.line).copied().unwrap_or(0) % COLOURS.len()];
            let from = x(f64::from(op.step));
            match op.action {
                Action::Send { peer, channel } => {
                    let nth = seen.entry((part.rank, peer, channel)).or_default();
                    let reduces = reducing.get(&(part.rank, peer, channel)).and_then(|all| all.get(*nth));
                    *nth += 1;
                    let dashes = if reduces == Some(&true) { " stroke-dasharray=\"5 3\"" } else { "" };
                    svg.begin(&format!(
                        "rank {} to rank {peer}, op {id}, step {}{place}",
                        part.rank, op.step
                    ));
                    let style =
                        format!("stroke=\"{colour}\" stroke-width=\"1.5\" marker-end=\"url(#tip)\"{dashes}");
                    svg.line((from + 8.0, y(part.rank)), (from + COLUMN - 8.0, y(peer)), &style);
                    svg.end();
                }
                Action::Copy | Action::Reduce { .. } => {
                    let nth = locals.entry(op.step).or_default();
                    let at = from + 14.0 + 7.0 * f64::from(*nth % 9);
                    *nth += 1;
                    let what = if op.action == Action::Copy { "copy" } else { "reduce" };
                    svg.begin(&format!("rank {} {what}, op {id}, step {}{place}", part.rank, op.step));
                    svg.dot((at, y(part.rank)), if what == "copy" { 2.5 } else { 4.0 }, colour);
                    svg.end();
                }
                Action::Recv { .. } | Action::RecvReduce { .. } => {}
            }
        }
    }
    legend(&mut svg, plan, &colours, y(ranks));
    Ok(svg.finish())
}

/// For each connection, whether its messages are reduced where they come.
fn reducing(parts: &Parts) -> BTreeMap<(u32, u32, u32), Vec<bool>> {
    let mut found: BTreeMap<(u32, u32, u32), Vec<bool>> = BTreeMap::new();
    for rank in 0..parts.world() {
        for op in &parts.part(rank).ops {
            let reduces = matches!(op.action, Action::RecvReduce { .. });
            if let Some((peer, channel)) = op.action.receives_from() {
                found.entry((peer, rank, channel)).or_default().push(reduces);
            }
        }
    }
    found
}

/// A colour for each source line that sends, in the order of the lines.
fn colours(plan: &Plan) -> BTreeMap<u32, usize> {
    let lines: std::collections::BTreeSet<u32> =
        plan.ranks.iter().flat_map(|part| &part.ops).map(|op| op.line).collect();
    lines.into_iter().enumerate().map(|(at, line)| (line, at)).collect()
}

fn legend_height(plan: &Plan) -> f64 {
    18.0 * (colours(plan).len() as f64 + 1.0)
}

fn legend(svg: &mut Svg, plan: &Plan, colours: &BTreeMap<u32, usize>, top: f64) {
    let row = |at: usize| top + 18.0 * at as f64;
    for (&line, &at) in colours {
        let colour = COLOURS[at % COLOURS.len()];
        svg.line(
            (LEFT, row(at) - 4.0),
            (LEFT + 24.0, row(at) - 4.0),
            &format!("stroke=\"{colour}\" stroke-width=\"2\""),
        );
        let name =
            plan.lines.get(line as usize).map_or("no line".into(), |l| format!("{}:{}", l.file, l.line));
        svg.text((LEFT + 32.0, row(at)), "start", &name);
    }
    let style = "stroke=\"#555555\" stroke-width=\"2\" stroke-dasharray=\"5 3\"";
    let at = row(colours.len());
    svg.line((LEFT, at - 4.0), (LEFT + 24.0, at - 4.0), style);
    svg.text((LEFT + 32.0, at), "start", "reduced where it comes");
}
