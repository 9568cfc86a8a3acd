//! Lower bounds that follow from a contract alone, whatever the schedule.

use crate::Contract;
use coll_base::Fraction;

/// The least that any schedule of a contract must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that the busiest rank must send, as a fraction of the sized buffer.
    pub sent_max: Fraction,
    /// Bytes that the busiest rank must receive, as a fraction of the sized buffer.
    pub received_max: Fraction,
    /// Rounds needed when a rank may talk to one peer at a time.
    pub rounds_one_port: u32,
}

/// Works the bounds out.
pub fn bounds(_contract: &Contract) -> Bounds {
    Bounds { sent_max: Fraction::ZERO, received_max: Fraction::ZERO, rounds_one_port: 0 }
}
