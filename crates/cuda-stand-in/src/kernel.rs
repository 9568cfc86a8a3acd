//! Kernels by their names: what each one's arguments are, what it reads and writes, and what it does.
//!
//! Names say all: `collc_combine2_sum_f32` is known, and is run by `coll-kernel`, whose bits GPU code has to give. Kernels of
//! users' operators are of an image that a host compiler made, and run as they are; the image says how wide elements are.

use crate::image::Image;
use crate::space;
use crate::work::Touch;
use coll_base::{DType, RedOp};
use coll_kernel::{Cast, Reducer};
use std::sync::Arc;

/// A kernel of a module.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    shape: Shape,
    /// What [`aligned`] says.
    aligned: (u64, u64),
    body: Body,
}

/// What arguments there are, and how wide elements are. Counts are of working elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// target, sources, count
    Combine { sources: usize, width: u64 },
    /// working, input, count, and for built-in ones ranks, factor
    Prepare { working: u64, input: u64, user: bool },
    /// output, working, count, and for built-in ones ranks, leaves
    Finish { output: u64, working: u64, user: bool },
    /// to, from, count
    Cast { to: u64, from: u64 },
    /// target, source, bytes
    Copy,
}

#[derive(Debug)]
enum Body {
    Combine(Reducer),
    /// The factor comes with the arguments.
    Prepare(Reducer),
    Finish(Reducer),
    Cast(Cast, bool),
    Copy,
    Image(Arc<Image>),
    /// It is known by name, but there is nothing to run.
    Text,
}

impl Kernel {
    /// A kernel by its name; None if it is none of ours. `image` is what it comes from, if that is code of the host.
    pub(crate) fn named(name: &str, image: Option<&Arc<Image>>) -> Option<Kernel> {
        let (shape, body) = match name.strip_prefix("collc_user_") {
            Some(rest) => {
                let shape = user(rest, image)?;
                (shape, Body::Text)
            }
            None => builtin(name.strip_prefix("collc_")?)?,
        };
        let aligned = aligned(shape, &body);
        let body = image.map_or(body, |image| Body::Image(image.clone()));
        Some(Kernel { name: name.into(), shape, aligned, body })
    }

    /// The number of its arguments, of eight bytes each.
    pub(crate) fn arity(&self) -> usize {
        match self.shape {
            Shape::Combine { sources, .. } => sources + 2,
            Shape::Prepare { user, .. } | Shape::Finish { user, .. } => 5 - 2 * usize::from(user),
            Shape::Cast { .. } | Shape::Copy => 3,
        }
    }

    /// False if it is known but cannot be run here: there is no code, or nothing says how wide its elements are.
    pub(crate) fn runs(&self) -> bool {
        let widths = match self.shape {
            Shape::Combine { width, .. } => [width, width],
            Shape::Prepare { working, input: element, .. }
            | Shape::Finish { working, output: element, .. } => [working, element],
            Shape::Cast { .. } | Shape::Copy => [1, 1],
        };
        !matches!(self.body, Body::Text) && !widths.contains(&0)
    }

    /// What it reads and writes.
    pub(crate) fn touches(&self, arguments: &[u64]) -> Vec<Touch> {
        let bytes = |count: u64, width: u64| count.saturating_mul(width);
        let (target, source) = (arguments[0], arguments[1]);
        match self.shape {
            Shape::Combine { sources, width } => {
                let all = bytes(arguments[sources + 1], width);
                let mut touches: Vec<Touch> =
                    arguments[1..=sources].iter().map(|&source| Touch::reads(source, all)).collect();
                touches.push(Touch::writes(target, all));
                touches
            }
            Shape::Prepare { working: to, input: from, .. }
            | Shape::Finish { output: to, working: from, .. }
            | Shape::Cast { to, from } => {
                let count = arguments[2];
                vec![Touch::reads(source, bytes(count, from)), Touch::writes(target, bytes(count, to))]
            }
            Shape::Copy => vec![Touch::reads(source, arguments[2]), Touch::writes(target, arguments[2])],
        }
    }

    /// The first pointer that is no multiple of what its elements must lie at.
    pub(crate) fn misaligned(&self, arguments: &[u64]) -> Option<u64> {
        let (working, element) = self.aligned;
        let pointers: Vec<(u64, u64)> = match self.shape {
            Shape::Combine { sources, .. } => {
                arguments[..=sources].iter().map(|&pointer| (pointer, working)).collect()
            }
            Shape::Prepare { .. } => vec![(arguments[0], working), (arguments[1], element)],
            Shape::Finish { .. } | Shape::Cast { .. } => {
                vec![(arguments[0], element), (arguments[1], working)]
            }
            Shape::Copy => Vec::new(),
        };
        pointers.into_iter().find(|(pointer, width)| pointer % width != 0).map(|(pointer, _)| pointer)
    }

    /// Runs it on memory. All that it touches has been looked up.
    pub(crate) fn run(&self, arguments: &[u64], grid: u32, block: u32) -> Result<(), String> {
        if let Body::Image(image) = &self.body {
            return image.call(&self.name, arguments, grid, block);
        }
        let touches = self.touches(arguments);
        let (target, sources) = touches.split_last().expect("invariant: every kernel writes");
        let read: Vec<Vec<u8>> = sources.iter().map(|touch| space::read(touch.at, touch.bytes)).collect();
        let mut written = vec![0; target.bytes as usize];
        match &self.body {
            Body::Combine(reducer) => {
                let operands: Vec<&[u8]> = read.iter().map(Vec::as_slice).collect();
                reducer.combine_many(&mut written, &operands);
            }
            Body::Prepare(reducer) => {
                let op = reducer.builtin_op().unwrap_or(RedOp::Sum);
                let made = prepared(op, reducer.dtype(), f64::from_bits(arguments[4]), reducer.is_in_f32());
                made?.prepare(arguments[3], &read[0], &mut written);
            }
            Body::Finish(reducer) => reducer.finish(arguments[3], arguments[4], &read[0], &mut written),
            Body::Cast(cast, true) => cast.narrow(&read[0], &mut written),
            Body::Cast(cast, false) => cast.widen(&read[0], &mut written),
            Body::Copy => written.copy_from_slice(&read[0]),
            Body::Image(_) | Body::Text => return Err("there is nothing to run".into()),
        }
        space::write(target.at, &written);
        Ok(())
    }
}

/// What elements of a kernel must lie at: working elements, or what is cast, and elements of the caller's, or what is made.
/// Complex numbers, pairs and 128-bit integers lie as one of their parts.
fn aligned(shape: Shape, body: &Body) -> (u64, u64) {
    let own = |width: u64| width.clamp(1, 8);
    let of = |reducer: &Reducer| {
        let working = reducer.working_dtype().map_or(reducer.working_size_bytes(), |d| d.part().size_bytes());
        (own(working), reducer.dtype().part().size_bytes())
    };
    match (shape, body) {
        (_, Body::Combine(reducer) | Body::Prepare(reducer) | Body::Finish(reducer)) => of(reducer),
        (Shape::Combine { width, .. }, _) => (own(width), own(width)),
        (Shape::Prepare { working, input: element, .. }, _)
        | (Shape::Finish { working, output: element, .. }, _)
        | (Shape::Cast { from: working, to: element }, _) => (own(working), own(element)),
        (Shape::Copy, _) => (1, 1),
    }
}

fn dtype(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.name() == name)
}

fn op(name: &str) -> Option<RedOp> {
    RedOp::ALL.into_iter().find(|op| op.name() == name)
}

/// `combine{K}`, with how many sources.
fn sources(word: &str) -> Option<usize> {
    let number = word.strip_prefix("combine")?.parse().ok()?;
    [2, 3, 4, 8].contains(&number).then_some(number)
}

/// A built-in kernel by what follows `collc_`.
fn builtin(name: &str) -> Option<(Shape, Body)> {
    if name == "copy" {
        return Some((Shape::Copy, Body::Copy));
    }
    let (what, rest) = name.split_once('_')?;
    let (first, last) = rest.rsplit_once('_')?;
    match what {
        "cast" => {
            let (from, to) = (dtype(first)?, dtype(last)?);
            let (cast, narrows) = match Cast::narrowing(from, to) {
                Some(cast) => (cast, true),
                None => (Cast::narrowing(to, from)?, false),
            };
            // A complex number is cast part by part, as floats.
            if from.is_complex() || to.is_complex() {
                return None;
            }
            Some((Shape::Cast { to: to.size_bytes(), from: from.size_bytes() }, Body::Cast(cast, narrows)))
        }
        "prepare" | "finish" => {
            let (rest, in_f32) = rest.strip_suffix("_in_f32").map_or((rest, false), |rest| (rest, true));
            let (first, last) = rest.rsplit_once('_')?;
            // The factor does not matter for its shape.
            let reducer = prepared(op(first)?, dtype(last)?, 1.0, in_f32).ok()?;
            let (working, element) = (reducer.working_size_bytes(), reducer.dtype().size_bytes());
            Some(match what {
                "prepare" => {
                    (Shape::Prepare { working, input: element, user: false }, Body::Prepare(reducer))
                }
                _ => (Shape::Finish { output: element, working, user: false }, Body::Finish(reducer)),
            })
        }
        combine => {
            let sources = sources(combine)?;
            let reducer = match (first, last) {
                ("sum", "i128") => Reducer::builtin(RedOp::Avg, DType::I64).ok()?,
                ("sum", "u128") => Reducer::builtin(RedOp::Avg, DType::U64).ok()?,
                _ => Reducer::builtin(op(first)?, dtype(last)?).ok()?,
            };
            // An average or a scaled sum combines by a sum, and has no kernels of its own.
            if !reducer.is_direct() && !matches!(last, "i128" | "u128") {
                return None;
            }
            let width = reducer.working_size_bytes();
            Some((Shape::Combine { sources, width }, Body::Combine(reducer)))
        }
    }
}

/// An operator that prepares or finishes, accumulated in `f32` or not.
fn prepared(op: RedOp, dtype: DType, factor: f64, in_f32: bool) -> Result<Reducer, String> {
    let factor = [factor];
    let params = if op == RedOp::PremulSum { &factor[..] } else { &[] };
    let reducer = Reducer::builtin_with(op, dtype, params).map_err(|error| error.to_string())?;
    let none = || format!("{op} of {dtype} prepares nothing");
    match in_f32 {
        true => reducer.in_f32().ok_or_else(none),
        false => matches!(op, RedOp::Avg | RedOp::PremulSum).then_some(reducer).ok_or_else(none),
    }
}

/// A kernel of a user's operator by what follows `collc_user_`. Without an image its elements have no width, and nothing
/// runs it.
fn user(name: &str, image: Option<&Arc<Image>>) -> Option<Shape> {
    let (working, input) = image.map_or((0, 0), |image| image.widths());
    match name {
        "prepare" => Some(Shape::Prepare { working, input, user: true }),
        "finish" => Some(Shape::Finish { output: input, working, user: true }),
        combine => Some(Shape::Combine { sources: sources(combine)?, width: working }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_kernel_takes() {
        for (name, arity) in [
            ("collc_combine2_sum_f32", 4),
            ("collc_combine8_maxloc_f64i64", 10),
            ("collc_combine3_sum_i128", 5),
            ("collc_prepare_avg_f8e4m3", 5),
            ("collc_prepare_premul_sum_bf16", 5),
            ("collc_prepare_sum_f16_in_f32", 5),
            ("collc_finish_avg_bf16_in_f32", 5),
            ("collc_finish_avg_u64", 5),
            ("collc_cast_bf16_f32", 3),
            ("collc_cast_f64_f16", 3),
            ("collc_copy", 3),
            ("collc_user_combine4", 6),
            ("collc_user_prepare", 3),
            ("collc_user_finish", 3),
        ] {
            assert_eq!(
                Kernel::named(name, None).unwrap_or_else(|| panic!("{name}")).arity(),
                arity,
                "{name}"
            );
        }
        for name in [
            "collc_combine5_sum_f32",
            "collc_combine2_avg_f32",
            "collc_combine2_band_f32",
            "collc_combine2_sum_f31",
            "collc_prepare_sum_f32",
            "collc_prepare_sum_f32_in_f32",
            "collc_cast_i8_i32",
            "collc_cast_f32_f32",
            "saxpy",
            "collc_",
        ] {
            assert!(Kernel::named(name, None).is_none(), "{name}");
        }
    }

    #[test]
    fn elements_lie_as_their_parts() {
        let misaligned = |name: &str, arguments: &[u64]| {
            Kernel::named(name, None).unwrap_or_else(|| panic!("{name}")).misaligned(arguments)
        };
        assert_eq!(misaligned("collc_combine2_sum_i128", &[8, 24, 40, 1]), None);
        assert_eq!(misaligned("collc_combine2_sum_i128", &[8, 24, 44, 1]), Some(44));
        assert_eq!(misaligned("collc_combine2_prod_c64", &[4, 12, 20, 1]), None);
        assert_eq!(misaligned("collc_prepare_avg_c64", &[4, 12, 1, 2, 0]), None);
        assert_eq!(misaligned("collc_prepare_avg_i64", &[8, 4, 1, 2, 0]), Some(4));
        assert_eq!(misaligned("collc_finish_avg_i8", &[1, 4, 1, 2, 2]), None);
        assert_eq!(misaligned("collc_finish_avg_i8", &[1, 2, 1, 2, 2]), Some(2));
        assert_eq!(misaligned("collc_cast_f64_f16", &[2, 8, 1]), None);
        assert_eq!(misaligned("collc_cast_f64_f16", &[2, 4, 1]), Some(4));
    }

    #[test]
    fn a_sum_in_place() {
        let kernel = Kernel::named("collc_combine2_sum_i32", None).unwrap();
        let (mut a, b) = ([1i32, 2, 3], [10i32, 20, 30]);
        let (at_a, at_b) = (a.as_mut_ptr() as u64, b.as_ptr() as u64);
        kernel.run(&[at_a, at_a, at_b, 3], 1, 1).unwrap();
        assert_eq!(a, [11, 22, 33]);
        let touches = kernel.touches(&[at_a, at_a, at_b, 3]);
        assert_eq!(touches, [Touch::reads(at_a, 12), Touch::reads(at_b, 12), Touch::writes(at_a, 12)]);
        assert_eq!(kernel.misaligned(&[at_a, at_a, at_b + 2, 3]), Some(at_b + 2));
    }
}
