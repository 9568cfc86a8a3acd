//! Interned fractions: where blocks are cut. While a schedule runs, cuts are only compared for equality; their order
//! is worked out at the end.

use crate::codes;
use crate::eval::Fault;
use coll_base::{Diagnostic, Fraction, Span};
use std::collections::HashMap;
use std::rc::Rc;

/// A fraction of a block, by number; equal fractions have equal numbers.
pub(super) type Cut = u32;

/// The most cuts that are kept.
const CUTS_MAX: usize = 1 << 22;

pub(super) struct Cutter {
    fractions: Vec<Fraction>,
    numbers: HashMap<Fraction, Cut>,
    /// Cuts of `low..high` into equal parts, by low, high and parts.
    tables: HashMap<(Cut, Cut, u32), Rc<[Cut]>>,
}

impl Cutter {
    pub(super) const ZERO: Cut = 0;
    pub(super) const ONE: Cut = 1;

    pub(super) fn new() -> Cutter {
        let fractions = vec![Fraction::ZERO, Fraction::ONE];
        let numbers = fractions.iter().zip(0..).map(|(&fraction, cut)| (fraction, cut)).collect();
        let whole: Rc<[Cut]> = Rc::new([Cutter::ZERO, Cutter::ONE]);
        Cutter { fractions, numbers, tables: HashMap::from([((Cutter::ZERO, Cutter::ONE, 1), whole)]) }
    }

    /// The cuts of a whole block that is not cut.
    pub(super) fn whole(&self) -> Rc<[Cut]> {
        self.tables[&(Cutter::ZERO, Cutter::ONE, 1)].clone()
    }

    pub(super) fn fraction(&self, cut: Cut) -> Fraction {
        self.fractions[cut as usize]
    }

    /// How many cuts there are; their numbers are `0..len`.
    pub(super) fn len(&self) -> usize {
        self.fractions.len()
    }

    /// The `parts + 1` cuts of `low..high` into equal parts.
    pub(super) fn table(&mut self, low: Cut, high: Cut, parts: u32, span: Span) -> Result<Rc<[Cut]>, Fault> {
        if let Some(table) = self.tables.get(&(low, high, parts)) {
            return Ok(table.clone());
        }
        let (from, to) = (self.fraction(low), self.fraction(high));
        let cuts = (0..=parts).map(|i| {
            let fraction = Fraction::between(from, to, u64::from(i), u64::from(parts));
            let fraction = fraction.map_err(|error| too_fine(span, error.to_string()))?;
            self.intern(fraction)
                .ok_or_else(|| too_fine(span, format!("more than {CUTS_MAX} different cuts")))
        });
        let table: Rc<[Cut]> = cuts.collect::<Result<Vec<Cut>, Fault>>()?.into();
        self.tables.insert((low, high, parts), table.clone());
        Ok(table)
    }

    fn intern(&mut self, fraction: Fraction) -> Option<Cut> {
        if let Some(&cut) = self.numbers.get(&fraction) {
            return Some(cut);
        }
        if self.fractions.len() >= CUTS_MAX {
            return None;
        }
        let cut = self.fractions.len() as Cut;
        self.fractions.push(fraction);
        self.numbers.insert(fraction, cut);
        Some(cut)
    }
}

fn too_fine(span: Span, message: String) -> Fault {
    Box::new(Diagnostic::new(codes::TOO_LARGE, span, message).help("cut blocks into fewer chunks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_a_grid_has_the_cuts_of_the_finer_grid() {
        let mut cutter = Cutter::new();
        let fine = cutter.table(Cutter::ZERO, Cutter::ONE, 6, Span::default()).unwrap();
        let row = cutter.table(fine[2], fine[4], 2, Span::default()).unwrap();
        assert_eq!(row[..], fine[2..=4]);
    }
}
