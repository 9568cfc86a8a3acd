//! Topologies of other tools: NCCL's and RCCL's XML, and what `nvidia-smi topo -m` prints. What an importer cannot use, or
//! has to assume, it says.

pub(crate) mod figures;
pub(crate) mod nccl;
pub(crate) mod smi;
mod warnings;
mod xml;

use crate::description::Description;
use coll_base::Diagnostic;

/// A description, and what was not used or assumed.
pub(crate) struct Imported {
    pub(crate) description: Description,
    pub(crate) warnings: Vec<Diagnostic>,
}
