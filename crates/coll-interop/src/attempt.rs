//! The three ways in which a foreign schedule is woven, one after the other: pieces of blocks; each chunk a block, if chunks
//! change places; and given data copied away first, if it is for calls out of place and would go wrong in place.

use crate::Imported;
use crate::layout::Layout;
use crate::weave::{Staged, refined, unsafe_in_place};
use coll_base::Diagnostic;
use coll_contract::Contract;
use coll_plan::Plan;

/// Why a schedule cannot be woven as it stands.
pub(crate) enum Stop {
    /// Chunks change places.
    OtherPiece,
    Told(Box<Diagnostic>),
}

/// Weaves a schedule in the first way that serves. `weave` gives the plan and how many copies were put in.
pub(crate) fn attempt(
    mut contract: Contract,
    layout: &mut Layout,
    is_out_of_place_only: bool,
    warnings: Vec<Diagnostic>,
    weave: impl Fn(&Contract, &Layout, &Staged) -> Result<(Plan, u32), Stop>,
) -> Result<Imported, Vec<Diagnostic>> {
    let told = |stop| match stop {
        Stop::Told(told) => vec![*told],
        // Blocks of one class fit everywhere.
        Stop::OtherPiece => Vec::new(),
    };
    let (mut plan, mut copies) = match weave(&contract, layout, &Staged::new()) {
        Ok(woven) => woven,
        Err(Stop::OtherPiece) if !layout.refined => {
            contract = refined(&contract, layout.chunks);
            layout.refined = true;
            weave(&contract, layout, &Staged::new()).map_err(told)?
        }
        Err(stop) => return Err(told(stop)),
    };
    if layout.known.is_some() && is_out_of_place_only {
        let staged = unsafe_in_place(&plan);
        if !staged.is_empty() {
            (plan, copies) = weave(&contract, layout, &staged).map_err(told)?;
        }
    }
    let equal_chunks_only = layout.refined && layout.chunks > 1;
    let (races, unordered, sizes_bytes) = (0, Vec::new(), None);
    Ok(Imported { plan, copies, equal_chunks_only, warnings, races, unordered, sizes_bytes })
}

/// A name as plans have it: letters, digits and `_`.
pub(crate) fn word(name: &str) -> String {
    let word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if word.is_empty() { "unnamed".into() } else { word }
}
