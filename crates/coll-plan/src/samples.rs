//! Plans that this crate's tests share.

use crate::{Plan, from_text};

/// An all-reduce of two ranks, two pieces, with staging, waits of both kinds, two lanes and two lines.
pub(crate) const PAIR: &str = r#"plan 3
name "allreduce.pair"
param "k" -4
root 1
channels 1
slots 0
cuts equal 2
line 0 "pair.coll" 3
line 1 "pair.coll" 7

contract "allreduce"
ranks 2
buffer inout data[1]
given data all
classes 1
class r0..2 data[0] = 0
value 0 = reduce r0..2.data[0]
ensure r0..2 data[0] = 0

rank 0
  slot 0: c0[0..1] c0[1..2]
  lane 0
    op0 send data.in[0:0..1] to r1 channel 0 ; step 0 line 0
    op1 send data.out[0:1..2] to r1 channel 0 along op2 ; step 1 line 1
  lane 1
    op2 recv_reduce data.out[0:1..2] from r1 channel 0 with data.in[0:1..2] ; step 0 line 0
    op3 recv slot0[c0:0..1] from r1 channel 0 ; step 1 line 1
    op4 copy slot0[c0:0..1] to data.out[0:0..1] after op0 ; step 1 line 1

rank 1
  lane 0
    op0 send data.in[0:1..2] to r0 channel 0 ; step 0 line 0
    op1 send data.out[0:0..1] to r0 channel 0 after op2 ; step 1 line 1
  lane 1
    op2 recv_reduce_left data.out[0:0..1] from r0 channel 0 with data.in[0:0..1] ; step 0 line 0
    op3 recv data.out[0:1..2] from r0 channel 0 after op0 ; step 1 line 1
"#;

pub(crate) fn pair() -> Plan {
    from_text(PAIR).expect("the sample reads")
}
