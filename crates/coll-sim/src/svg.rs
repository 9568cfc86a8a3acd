//! Pictures as SVG, in plain shapes that any browser draws: what [`plot`](crate::plot) and [`drawing`](crate::drawing) share.

use std::fmt::Write;

/// Colours that stay apart for most eyes (M. Okabe, K. Ito, *Color universal design*, 2008).
pub(crate) const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000"];

/// A picture that is being drawn.
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Svg {
        Svg { width, height, body: String::new() }
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), style: &str) {
        let _ = writeln!(
            self.body,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>"
        );
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], style: &str) {
        let points = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ");
        let _ = writeln!(self.body, "<polyline points=\"{points}\" fill=\"none\" {style}/>");
    }

    pub(crate) fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str) {
        let _ = writeln!(self.body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>");
    }

    /// Text with its anchor: `start`, `middle` or `end`.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(text)
        );
    }

    /// Opens a group whose title shows where the pointer rests on it.
    pub(crate) fn begin(&mut self, title: &str) {
        let _ = writeln!(self.body, "<g><title>{}</title>", escaped(title));
    }

    pub(crate) fn end(&mut self) {
        self.body.push_str("</g>\n");
    }

    pub(crate) fn finish(self) -> String {
        let Svg { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#444444\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
