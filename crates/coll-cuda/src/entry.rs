//! One entry of a module: its name, the shape of its arguments, its text.

use std::fmt::Write;

/// Numbers of operands that are combined in one pass.
pub const ARITIES: [usize; 4] = [2, 3, 4, 8];

/// Which arguments an entry takes. Pointers are addresses of the device; counts, ranks and leaves are unsigned 64-bit integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `(target, s0, .. , count)`
    Combine {
        /// Number of sources.
        sources: usize,
    },
    /// `(working, input, count, ranks, factor)`; the factor is an `f64`, and only a pre-multiplied sum looks at it.
    Prepare,
    /// `(output, working, count, ranks, leaves)`
    Finish,
    /// `(to, from, count)`: casts, copies (of bytes), and what a user's operator prepares and finishes.
    Map,
}

impl Shape {
    fn parameters(self) -> String {
        match self {
            Shape::Combine { sources } => {
                let mut text = "void* target".to_string();
                for index in 0..sources {
                    write!(text, ", const void* s{index}").expect("invariant: a string takes all");
                }
                text + ", u64 count"
            }
            Shape::Prepare => "void* to, const void* from, u64 count, u64 ranks, f64 factor".into(),
            Shape::Finish => "void* to, const void* from, u64 count, u64 ranks, u64 leaves".into(),
            Shape::Map => "void* to, const void* from, u64 count".into(),
        }
    }
}

/// One kernel.
#[derive(Clone, Debug)]
pub struct Entry {
    name: String,
    shape: Shape,
    /// Lines of its body, each with its semicolon.
    body: Vec<String>,
}

impl Entry {
    pub(crate) fn new(name: String, shape: Shape, body: Vec<String>) -> Entry {
        Entry { name, shape, body }
    }

    /// `target := s0 ⊕ s1 ⊕ …` by an operator of the text, on `count` of what it calls an element.
    pub(crate) fn combine(name: String, sources: usize, operator: &str, count: &str) -> Entry {
        let all: Vec<String> = (0..sources).map(|index| format!("s{index}")).collect();
        let body = vec![
            format!("const void* sources[] = {{{}}};", all.join(", ")),
            format!("combine<{operator}>(target, sources, {count});"),
        ];
        Entry::new(name, Shape::Combine { sources }, body)
    }

    /// Its name in a module.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which arguments it takes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("COLLC_ENTRY({}, {}) {{\n", self.name, self.shape.parameters());
        for line in &self.body {
            writeln!(text, "    {line}").expect("invariant: a string takes all");
        }
        text + "}\n"
    }
}
