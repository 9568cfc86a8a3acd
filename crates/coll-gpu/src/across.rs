//! A rank whose peers are on several machines: what [`Shared`](crate::Shared) has beside memory that processes of one machine
//! open.

use crate::commands::{base_of, first_base};
use crate::driver::{Device, HostWords, Pointer};
use crate::porter::{Carriage, Freight, Porter, Seal, Waybill};
use crate::stream_plan::{Spot, StreamPlan};
use crate::{GpuError, GroupError, Network};
use coll_exec::FINGERPRINT_BYTES;
use std::sync::Arc;

/// Bytes of a slice: long enough that what a copy and a send take beside its bytes is little, short enough that the first is
/// sent soon.
const SLICE_BYTES: usize = 512 << 10;

/// Which ranks share a machine with this one, and the way to the others.
pub(crate) struct Across {
    /// The machine of each rank.
    pub(crate) machines: Vec<u32>,
    pub(crate) porter: Arc<Porter>,
    pub(crate) slice_bytes: usize,
}

impl Across {
    pub(crate) fn new(
        (rank, ranks): (u32, u32),
        machines: Vec<u32>,
        network: Box<dyn Network>,
    ) -> Result<Across, GroupError> {
        if machines.len() != ranks as usize {
            let (found, ranks) = (machines.len(), ranks as usize);
            return Err(GroupError::Ranks { what: "machines", found, ranks });
        }
        let porter = Porter::new(rank, network).map_err(|error| {
            let what = format!("the system has no thread left for messages to other machines: {error}");
            GroupError::Exchange { rank, what }
        })?;
        Ok(Across { machines, porter: Arc::new(porter), slice_bytes: SLICE_BYTES })
    }

    /// Has the porter carry a call's messages, whose memory is at these bases. Beside its hold on the porter, where the words lie
    /// by which streams and porter tell each other how far they are.
    pub(crate) fn take(
        &self,
        stream_plan: &StreamPlan,
        (rank, device): (u32, &Arc<Device>),
        bases: &[Pointer],
        fingerprint: [u8; FINGERPRINT_BYTES],
    ) -> Result<(Carriage, Pointer), GpuError> {
        let outline = &stream_plan.ranks[rank as usize].outline;
        let parcels = &stream_plan.parcels;
        let first = first_base(stream_plan, rank as usize);
        let address = |spot: &Spot| bases[base_of(first, spot.memory)].moved(spot.offset);
        let seal = Seal { fingerprint, prepared: !outline.prepares.is_empty() };
        let freight = Freight::new(device, parcels, address, seal, self.slice_bytes)?;
        let words = HostWords::new(device, 2 * parcels.len().max(1))?;
        let pointer = words.pointer();
        let places = parcels.iter().map(|parcel| outline.place(parcel.op)).collect();
        let name = stream_plan.name.clone();
        let waybill = Waybill::new((rank, name, device.number()), words, places);
        Ok((self.porter.take(Arc::new(waybill), freight), pointer))
    }
}

/// What tells a call from others: of the whole stream plan, which is the same on all ranks. FNV-1a of 128 bits (G. Fowler,
/// L. C. Noll, K.-P. Vo).
pub(crate) fn fingerprint(stream_plan: &StreamPlan) -> [u8; FINGERPRINT_BYTES] {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    let operator = stream_plan.arithmetic.as_ref().map(|arithmetic| {
        let operator = arithmetic.operator();
        let params: Vec<u64> = operator.params().iter().map(|param| param.to_bits()).collect();
        (operator.name().to_string(), operator.dtype(), arithmetic.narrow(), params)
    });
    let casts: Vec<_> = stream_plan.ranks.iter().map(|rank| rank.outline.cast).collect();
    let text = format!("{} {operator:?} {casts:?} {:?}", stream_plan.name, stream_plan.parcels);
    let step = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    text.bytes().fold(BASIS, step).to_le_bytes()
}
