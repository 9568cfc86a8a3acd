//! The text form of a plan: what people read, write by hand in tests, and what importers of foreign formats make.
//!
//! ```text
//! plan 3
//! name "allgather.pair"
//! channels 1                          // the default
//! slots 0                             // the default
//! slices 1                            // the default
//! accumulate f32                      // left out: elements are reduced in their own type
//! wire bf16                           // left out: elements travel as they lie in memory
//! placement "cluster" order 2 0       // left out: not meant for a topology; rank 0 on its device 2. Such plans are `plan 4`
//! cuts 0 1/2 1                        // or: cuts equal 2
//! claim same_reduction_tree           // proved besides; also: claim ordered
//! line 0 "pair.coll" 3
//!
//! contract "allgather"
//! ranks 2                             // a slice adds: only 1
//! buffer inout data[2]
//! given data r0[0] r1[1]              // or: all, none
//! classes 2
//! class r0..2 data[0..2] = 0 step 1   // block 0 has class 0, block 1 class 1
//! value 0..2 = copy r0.data[0] next rank block
//! ensure r0..2 data[0..2] = 0 step 1
//!
//! rank 0
//!   slot 0: c0[0..1] c1[0..2]
//!   lane 0
//!     op0 copy data.in[0:0..2] to data.out[0:0..2] ; step 0 line 0
//!     op1 send data.in[0:0..2] to r1 channel 0 ; step 0 line 0
//!   lane 1
//!     op2 recv data.out[1:0..2] from r1 channel 0 ; step 0 line 0
//! ```
//!
//! A region is `buffer.store[block:low..high]` or `slotN[cCLASS:low..high]`; `nothing` is the empty list. The other
//! actions are `recv_reduce TARGET from r1 channel 0 with OPERAND`, `reduce SOURCE into TARGET with OPERAND`, and
//! both with `_left`; `with` is left out where the operand is the target. Waits stand before the semicolon:
//! `after op1, along op2`. What the compiler made says where it comes from, `origin "HASH"`, and on which proof it rests:
//! `proof whole "HASH"`, or in a slice that was made alone `proof reference "HASH" on 15 root 0, 16 root 0`. A slice says
//! `reduces` if the whole contract does. Of version 2, which knew neither `accumulate` nor `wire`, texts are read as well. `//` begins a comment, `..` leaves its end out, and indentation means nothing.

mod read;
mod read_contract;
mod runs;
mod token;
mod write;

pub use read::from_text;
pub use token::TextError;
pub use write::{op_text, regions_text, to_text};

#[cfg(test)]
mod tests;
