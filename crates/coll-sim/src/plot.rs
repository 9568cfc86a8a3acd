//! Curves on logarithmic axes: times over sizes.

use crate::svg::{COLOURS, Svg};

/// A curve, with its name in the legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What the legend calls it.
    pub name: String,
    /// `(bytes, microseconds)`, by size.
    pub points: Vec<(u64, f64)>,
}

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 44.0;
const RIGHT: f64 = 30.0;
const BOTTOM: f64 = 56.0;
const LEGEND_ROW: f64 = 18.0;

/// Draws curves as an SVG. What is not above 0 has no place on a logarithmic axis and is left out; sizes of 0 too.
pub fn plot(title: &str, curves: &[Curve]) -> String {
    let legend = LEGEND_ROW * curves.len() as f64;
    let mut svg = Svg::new(WIDTH, HEIGHT + legend);
    svg.text((WIDTH / 2.0, 24.0), "middle", title);
    let shown = |curve: &Curve| -> Vec<(f64, f64)> {
        let points = curve.points.iter().map(|&(bytes, us)| (bytes as f64, us));
        points.filter(|&(x, y)| x > 0.0 && y > 0.0 && y.is_finite()).collect()
    };
    let all: Vec<(f64, f64)> = curves.iter().flat_map(shown).collect();
    if all.is_empty() {
        svg.text((WIDTH / 2.0, HEIGHT / 2.0), "middle", "nothing takes any time here");
        return svg.finish();
    }
    let x = Axis::new(all.iter().map(|p| p.0), 2.0, (LEFT, WIDTH - RIGHT));
    let y = Axis::new(all.iter().map(|p| p.1), 10.0, (HEIGHT - BOTTOM, TOP));
    grid(&mut svg, &x, &y);
    for ((curve, colour), row) in curves.iter().zip(COLOURS.iter().cycle()).zip(0..) {
        let points: Vec<_> = shown(curve).into_iter().map(|p| (x.place(p.0), y.place(p.1))).collect();
        svg.begin(&curve.name);
        svg.path(&points, &format!("stroke=\"{colour}\" stroke-width=\"2\""));
        points.iter().for_each(|&point| svg.dot(point, 2.5, colour));
        svg.end();
        let at = HEIGHT + LEGEND_ROW * f64::from(row);
        svg.line(
            (LEFT, at - 4.0),
            (LEFT + 24.0, at - 4.0),
            &format!("stroke=\"{colour}\" stroke-width=\"2\""),
        );
        svg.text((LEFT + 32.0, at), "start", &curve.name);
    }
    svg.finish()
}

/// A logarithmic axis, from a power of its base to another.
struct Axis {
    base: f64,
    low: f64,
    high: f64,
    span: (f64, f64),
}

impl Axis {
    fn new(values: impl Iterator<Item = f64> + Clone, base: f64, span: (f64, f64)) -> Axis {
        let log = |value: f64| value.ln() / base.ln();
        let low = values.clone().map(log).fold(f64::INFINITY, f64::min);
        let high = values.map(log).fold(f64::NEG_INFINITY, f64::max);
        // A hair's breadth of rounding is no power more.
        let low = (low + 1e-9).floor();
        let high = (high - 1e-9).ceil().max(low + 1.0);
        Axis { base, low, high, span }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.ln() / self.base.ln() - self.low) / (self.high - self.low);
        self.span.0 + share * (self.span.1 - self.span.0)
    }

    /// Powers of the base, at most a dozen or so.
    fn ticks(&self) -> Vec<f64> {
        let step = ((self.high - self.low) / 12.0).ceil().max(1.0);
        let count = ((self.high - self.low) / step).floor() as i32;
        (0..=count).map(|at| self.base.powf(self.low + f64::from(at) * step)).collect()
    }
}

fn grid(svg: &mut Svg, x: &Axis, y: &Axis) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for tick in x.ticks() {
        let at = x.place(tick);
        svg.line((at, TOP), (at, bottom), "stroke=\"#dddddd\"");
        svg.text((at, bottom + 18.0), "middle", &bytes(tick));
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        svg.line((LEFT, at), (right, at), "stroke=\"#dddddd\"");
        svg.text((LEFT - 8.0, at + 4.0), "end", &microseconds(tick));
    }
    svg.line((LEFT, bottom), (right, bottom), "stroke=\"black\"");
    svg.line((LEFT, TOP), (LEFT, bottom), "stroke=\"black\"");
    svg.text((f64::midpoint(LEFT, right), bottom + 38.0), "middle", "size");
}

/// `64 KiB`
fn bytes(value: f64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units.into_iter().find(|&(_, power)| value >= 2f64.powi(power));
    unit.map_or(format!("{value:.0} B"), |(unit, power)| format!("{:.0} {unit}", value / 2f64.powi(power)))
}

/// `10 µs`, `1 ms`
fn microseconds(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{} s", value / 1e6),
        _ if value >= 1e3 => format!("{} ms", value / 1e3),
        _ if value >= 0.999 => format!("{value:.0} µs"),
        _ => format!("{:.3} ns", value * 1e3).replace(".000", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_run_from_power_to_power_and_say_their_units() {
        let axis = Axis::new([1024.0, 65536.0].into_iter(), 2.0, (0.0, 600.0));
        assert_eq!(
            axis.ticks().iter().map(|&tick| bytes(tick)).collect::<Vec<_>>().join(" "),
            "1 KiB 2 KiB 4 KiB 8 KiB 16 KiB 32 KiB 64 KiB"
        );
        assert!((axis.place(8192.0) - 300.0).abs() < 1e-6);
        let axis = Axis::new([0.5, 2e6].into_iter(), 10.0, (100.0, 0.0));
        let ticks: Vec<String> = axis.ticks().into_iter().map(microseconds).collect();
        assert_eq!(ticks.join(", "), "100 ns, 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s");
        assert_eq!(Axis::new([7.0].into_iter(), 10.0, (0.0, 1.0)).ticks(), [1.0, 10.0]);
    }

    #[test]
    fn a_plot_has_a_curve_and_a_name_for_each_and_escapes_them() {
        let curve = |name: &str, points: &[(u64, f64)]| Curve { name: name.into(), points: points.to_vec() };
        let picture =
            plot("a & b", &[curve("ring", &[(1024, 5.0), (2048, 9.0)]), curve("<none>", &[(0, 1.0)])]);
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        assert!(
            picture.contains("a &amp; b") && picture.contains("&lt;none&gt;") && !picture.contains("<none>")
        );
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert_eq!(picture.matches("<circle").count(), 2);
        assert!(plot("empty", &[]).contains("nothing takes any time"));
    }
}
