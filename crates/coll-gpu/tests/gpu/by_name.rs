//! Collectives by name: every operation of `coll::Devices`, whatever stream plan is chosen, against sums by hand.

use crate::support::devices::{LIMIT, dealt, machine};
use crate::support::seed;
use coll::{DType, DeviceCall, Devices, DevicesError, RankPointers, RedOp};
use coll_gpu::{DeviceBuffer, Group, Stream, StreamHandle};

const RANKS: u32 = 4;
const COUNT: u64 = 5;

/// Element `index` of rank `rank`'s block `block`.
fn value(rank: u32, block: u32, index: u64) -> i32 {
    (1000 * rank + 100 * block) as i32 + index as i32
}

fn block(rank: u32, block: u32) -> Vec<i32> {
    (0..COUNT).map(|index| value(rank, block, index)).collect()
}

fn blocks(rank: u32) -> Vec<i32> {
    (0..RANKS).flat_map(|at| block(rank, at)).collect()
}

fn sum(all: &[Vec<i32>]) -> Vec<i32> {
    (0..COUNT as usize).map(|at| all.iter().map(|one| one[at]).sum()).collect()
}

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// Runs a call on what each rank puts in, and gives what each gets; `out` elements at most.
fn results(
    devices: &mut Devices,
    call: &DeviceCall,
    input: impl Fn(u32) -> Vec<i32>,
    out: u64,
) -> Vec<Vec<i32>> {
    let group = devices.group();
    let device = |rank| group.device(rank).expect("there is such a rank");
    let of = |rank: u32| DeviceBuffer::of(device(rank), &bytes(&input(rank))).expect("there is memory");
    let inputs: Vec<DeviceBuffer> = (0..RANKS).map(of).collect();
    let empty =
        |rank| DeviceBuffer::of(device(rank), &bytes(&vec![-1; out as usize])).expect("there is memory");
    let outputs: Vec<DeviceBuffer> = (0..RANKS).map(empty).collect();
    let streams: Vec<Stream> = (0..RANKS).map(|rank| Stream::new(device(rank)).expect("a stream")).collect();
    let handles: Vec<StreamHandle> = streams.iter().map(Stream::handle).collect();
    let pointers: Vec<RankPointers> =
        inputs.iter().zip(&outputs).map(|(a, b)| RankPointers::new(a.pointer(), b.pointer())).collect();
    for _ in 0..2 {
        devices.launch(call, &pointers, &handles).unwrap_or_else(|error| panic!("{call:?}: {error}"));
    }
    devices.wait(LIMIT).expect("it ends");
    let read = |buffer: &DeviceBuffer| {
        let bytes = buffer.to_vec().expect("a copy");
        let (words, _) = bytes.as_chunks::<4>();
        words.iter().map(|word| i32::from_ne_bytes(*word)).collect()
    };
    outputs.iter().map(read).collect()
}

#[test]
fn every_operation_by_its_name() {
    let session = machine(2, true, seed());
    {
        let mut devices = Devices::new(Group::new(&dealt(RANKS, 2)).expect("the devices open"));
        let (dtype, op, root) = (DType::I32, RedOp::Sum, 2);
        let one = |rank| block(rank, 0);
        let all: Vec<Vec<i32>> = (0..RANKS).map(one).collect();
        let nothing = vec![-1; COUNT as usize];
        let whole = || (0..RANKS).flat_map(one).collect::<Vec<i32>>();

        let found = results(&mut devices, &DeviceCall::all_reduce(COUNT, dtype, op), one, COUNT);
        assert_eq!(found, vec![sum(&all); 4]);
        let found = results(&mut devices, &DeviceCall::reduce(COUNT, dtype, op, root), one, COUNT);
        assert_eq!(found[root as usize], sum(&all));
        let found = results(&mut devices, &DeviceCall::broadcast(COUNT, dtype, root), one, COUNT);
        assert_eq!(found, vec![one(root); 4]);
        let found = results(&mut devices, &DeviceCall::all_gather(COUNT, dtype), one, COUNT * 4);
        assert_eq!(found, vec![whole(); 4]);
        let found = results(&mut devices, &DeviceCall::gather(COUNT, dtype, root), one, COUNT * 4);
        assert_eq!(found[root as usize], whole());
        let found = results(&mut devices, &DeviceCall::scatter(COUNT, dtype, root), blocks, COUNT);
        assert_eq!(found, (0..RANKS).map(|rank| block(root, rank)).collect::<Vec<_>>());
        let found = results(&mut devices, &DeviceCall::reduce_scatter(COUNT, dtype, op), blocks, COUNT);
        let column = |at: u32| sum(&(0..RANKS).map(|rank| block(rank, at)).collect::<Vec<_>>());
        assert_eq!(found, (0..RANKS).map(column).collect::<Vec<_>>());
        let found = results(&mut devices, &DeviceCall::all_to_all(COUNT, dtype), blocks, COUNT * 4);
        let turned = |at: u32| (0..RANKS).flat_map(|rank| block(rank, at)).collect::<Vec<i32>>();
        assert_eq!(found, (0..RANKS).map(turned).collect::<Vec<_>>());
        let found = results(&mut devices, &DeviceCall::scan(COUNT, dtype, op), one, COUNT);
        assert_eq!(found, (1..=RANKS as usize).map(|upto| sum(&all[..upto])).collect::<Vec<_>>());
        let found = results(&mut devices, &DeviceCall::exscan(COUNT, dtype, op), one, COUNT);
        assert_eq!(found[0], nothing);
        assert_eq!(found[1..], (1..RANKS as usize).map(|upto| sum(&all[..upto])).collect::<Vec<_>>());
        let found = results(&mut devices, &DeviceCall::barrier(), one, COUNT);
        assert_eq!(found, vec![nothing; 4]);
    }
    session.verdict().expect("nothing is left to chance");
}

#[test]
fn calls_that_cannot_be_are_refused_in_words() {
    let _session = machine(1, true, 1);
    let mut devices = Devices::new(Group::new(&[0, 0]).expect("the device opens"));
    let refused =
        devices.launch(&DeviceCall::broadcast(1, DType::F32, 2), &[], &[]).expect_err("no such root");
    assert!(refused.to_string().contains("root 2 is no rank among 2"), "{refused}");
    let refused = devices.launch(&DeviceCall::all_gather(u64::MAX, DType::F32), &[], &[]);
    assert!(refused.expect_err("too many").to_string().contains("more than can be counted"));
    let refused = devices.launch(&DeviceCall::all_reduce(1, DType::F32, RedOp::Band), &[], &[]);
    assert!(matches!(refused, Err(DevicesError::Unsupported(_))), "{refused:?}");
    let refused = devices.launch(&DeviceCall::all_reduce(1, DType::F32, RedOp::Sum), &[], &[]);
    assert!(matches!(refused, Err(DevicesError::Group(_))), "{refused:?}");
}
