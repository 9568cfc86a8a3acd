//! A generator's text, cut into its name, its extents and its options.

use super::{DEVICES_MAX, GENERATORS};
use crate::codes;
use crate::description::DeviceFigures;
use crate::units::{self, UnitError};
use coll_base::{Diagnostic, Span, nearest};

pub(super) struct Words {
    pub(super) name: String,
    pub(super) span: Span,
    form: &'static str,
    /// `4x4`
    extents: Option<Vec<u64>>,
    /// Options that were not asked for yet.
    options: Vec<(String, String)>,
    /// Options that were asked for.
    asked: Vec<&'static str>,
}

impl Words {
    pub(super) fn new(text: &str, span: Span) -> Result<Words, Diagnostic> {
        let (name, rest) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let name = name.trim();
        let names = || GENERATORS.iter().map(|&(name, ..)| name);
        let Some(&(_, form, _)) = GENERATORS.iter().find(|(known, ..)| *known == name) else {
            let shown: String = name.chars().take(40).collect();
            let fault = Diagnostic::new(codes::GENERATOR, span, format!("there is no generator `{shown}`"));
            return Err(match nearest(name, names()) {
                Some(near) => fault.help(format!("did you mean `{near}`?")),
                None => fault.help(format!("there are {}", names().collect::<Vec<_>>().join(", "))),
            });
        };
        let mut words = Words {
            name: name.to_string(),
            span,
            form,
            extents: None,
            options: Vec::new(),
            asked: Vec::new(),
        };
        for (at, part) in rest.split(',').map(str::trim).enumerate() {
            match part.split_once('=') {
                Some((key, value)) => {
                    let key = key.trim().to_string();
                    if words.options.iter().any(|(known, _)| *known == key) {
                        return Err(words.fault(format!("`{key}` is given twice")));
                    }
                    words.options.push((key, value.trim().to_string()));
                }
                None if at == 0 && part.is_empty() => {}
                None if at == 0 => {
                    let extents: Result<Vec<u64>, _> =
                        part.split('x').map(|extent| extent.trim().parse()).collect();
                    let extents = extents.map_err(|_| words.fault(format!("`{part}` are no extents")))?;
                    words.extents = Some(extents);
                }
                None => return Err(words.fault(format!("`{part}` sets nothing; write `NAME=VALUE`"))),
            }
        }
        Ok(words)
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(codes::GENERATOR, self.span, message)
            .help(format!("write {}, then options such as `,bw=25GB/s,lat=1us`", self.form))
    }

    /// The extents, if there are some: each at least 1, and not more devices in all than are made.
    pub(super) fn extents(&self) -> Result<Option<Vec<u32>>, Diagnostic> {
        let Some(extents) = &self.extents else { return Ok(None) };
        let total = extents.iter().try_fold(1u64, |total, &extent| total.checked_mul(extent));
        match total {
            Some(1..=DEVICES_MAX) => Ok(Some(extents.iter().map(|&extent| extent as u32).collect())),
            Some(0) => Err(self.fault("an extent of 0 leaves nothing")),
            _ => Err(Diagnostic::new(
                codes::BOUNDS,
                self.span,
                format!("a generator makes at most {DEVICES_MAX} devices"),
            )),
        }
    }

    /// Exactly so many extents.
    pub(super) fn exactly<const N: usize>(&self) -> Result<[u32; N], Diagnostic> {
        let extents = self.extents()?.unwrap_or_default();
        let found = extents.len();
        extents.try_into().map_err(|_| {
            let (is, plural) = if N == 1 { ("is", "") } else { ("are", "s") };
            self.fault(format!(
                "`{}` has {found} extents, and there {is} to be {N} number{plural}",
                self.name
            ))
        })
    }

    pub(super) fn option(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        let at = self.options.iter().position(|(key, _)| key == name)?;
        Some(self.options.remove(at).1)
    }

    /// A whole number of `1..=max`.
    pub(super) fn count(&mut self, name: &'static str, max: u32) -> Result<Option<u32>, Diagnostic> {
        let Some(text) = self.option(name) else { return Ok(None) };
        match text.parse::<u32>() {
            Ok(count) if (1..=max).contains(&count) => Ok(Some(count)),
            _ => Err(self.fault(format!("`{name}` is `{text}`; 1 to {max} are possible"))),
        }
    }

    fn figure(
        &mut self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<f64, UnitError>,
    ) -> Result<Option<f64>, Diagnostic> {
        let Some(text) = self.option(name) else { return Ok(None) };
        match parse(&text) {
            Ok(figure) => Ok(Some(figure)),
            Err(UnitError::Range(message)) => {
                Err(Diagnostic::new(codes::FIGURE, self.span, format!("`{name}`: {message}")))
            }
            Err(UnitError::Form(message)) => Err(self.fault(format!("`{name}`: {message}"))),
        }
    }

    pub(super) fn bandwidth(&mut self, name: &'static str, default: f64) -> Result<f64, Diagnostic> {
        Ok(self.figure(name, units::bandwidth)?.unwrap_or(default))
    }

    pub(super) fn latency_us(&mut self, name: &'static str, default: f64) -> Result<f64, Diagnostic> {
        Ok(self.figure(name, units::time_us)?.unwrap_or(default))
    }

    /// `message`, `reduce` and `copy`, which every generator knows.
    pub(super) fn device_figures(&mut self, figures: &mut DeviceFigures) -> Result<(), Diagnostic> {
        figures.message_us = self.figure("message", units::time_us)?.unwrap_or(figures.message_us);
        figures.reduce_ns = self.figure("reduce", units::byte_time_ns)?.unwrap_or(figures.reduce_ns);
        figures.copy_ns = self.figure("copy", units::byte_time_ns)?.unwrap_or(figures.copy_ns);
        Ok(())
    }

    /// Nothing is left that nobody asked for.
    pub(super) fn end(&self) -> Result<(), Diagnostic> {
        let Some((key, _)) = self.options.first() else { return Ok(()) };
        let known = self.asked.iter().copied();
        let fault = Diagnostic::new(
            codes::GENERATOR,
            self.span,
            format!("unknown key `{key}` of generator `{}`", self.name),
        );
        Err(match nearest(key, known) {
            Some(near) => fault.help(format!("did you mean `{near}`?")),
            None => fault.help(format!("it knows {}", self.asked.join(", "))),
        })
    }
}
