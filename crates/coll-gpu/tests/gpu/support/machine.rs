//! A machine of streams in host memory: a stream plan's work runs in any order that streams and events allow, drawn from a
//! seed.

use super::{Call, Random};
use coll_exec::Memory;
use coll_gpu::stream_plan::{Deed, Heading, Launch, Parcel, Spot, StreamPlan, Work};
use coll_kernel::Cast;
use std::collections::{BTreeMap, VecDeque};

/// What is in scratch before a run.
const NO_VALUE: u8 = 0x5A;

pub struct Machine<'s> {
    stream_plan: &'s StreamPlan,
    memory: BTreeMap<(u32, Memory), Vec<u8>>,
    /// Messages between machines on their way: by sender, receiver, channel and number.
    network: BTreeMap<(u32, u32, u32, u32), Vec<u8>>,
}

/// How far a parcel is.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Unknown,
    Posted,
    Carried,
}

impl<'s> Machine<'s> {
    pub fn new(stream_plan: &'s StreamPlan, call: &Call<'_>) -> Machine<'s> {
        let mut memory = BTreeMap::new();
        for (rank, part) in (0u32..).zip(&stream_plan.ranks) {
            memory.insert((rank, Memory::Scratch), vec![NO_VALUE; part.scratch_bytes as usize]);
            for (buffer, [input, output]) in (0u32..).zip(&call.before[rank as usize]) {
                memory.insert((rank, Memory::Input(buffer)), input.clone());
                memory.insert((rank, Memory::Output(buffer)), output.clone());
            }
        }
        Machine { stream_plan, memory, network: BTreeMap::new() }
    }

    /// Runs all work, and gives for each rank and buffer its output.
    pub fn run(mut self, seed: u64) -> Vec<Vec<Vec<u8>>> {
        let mut random = Random(seed);
        let mut queues: Vec<VecDeque<&Work>> = vec![VecDeque::new(); self.stream_plan.streams.len()];
        self.stream_plan.work.iter().for_each(|work| queues[work.stream as usize].push_back(work));
        let mut recorded = vec![false; self.stream_plan.events as usize];
        let mut parcels = vec![Stage::Unknown; self.stream_plan.parcels.len()];
        loop {
            let can = |queue: &VecDeque<&Work>| match queue.front().map(|work| &work.deed) {
                None => false,
                Some(Deed::Wait(event)) => recorded[*event as usize],
                Some(Deed::Collect(parcel)) => parcels[*parcel as usize] == Stage::Carried,
                Some(_) => true,
            };
            let streams = (0..queues.len()).filter(|&stream| can(&queues[stream]));
            let all = self.stream_plan.parcels.iter().enumerate();
            let carried =
                all.filter(|(at, parcel)| parcels[*at] == Stage::Posted && self.can_be_carried(parcel));
            let able: Vec<usize> = streams.chain(carried.map(|(at, _)| queues.len() + at)).collect();
            if able.is_empty() {
                break;
            }
            let drawn = able[random.below(able.len())];
            if let Some(parcel) = drawn.checked_sub(queues.len()) {
                self.carry(&self.stream_plan.parcels[parcel]);
                parcels[parcel] = Stage::Carried;
                continue;
            }
            let work = queues[drawn].pop_front().expect("it can go on");
            match &work.deed {
                Deed::Wait(_) | Deed::Collect(_) => {}
                Deed::Record(event) => recorded[*event as usize] = true,
                Deed::Post(parcel) => parcels[*parcel as usize] = Stage::Posted,
                Deed::Copy { target, source, bytes } => {
                    let moved = self.read(*source, *bytes);
                    self.write(*target, &moved);
                }
                Deed::Launch(launch) => self.launch(launch),
                Deed::Signal { .. } | Deed::Await(_) => panic!("one process has all ranks"),
            }
        }
        assert!(queues.iter().all(VecDeque::is_empty), "{}: streams wait for ever", self.stream_plan.name);
        let output = |rank: u32, buffer: u32| {
            self.memory.get(&(rank, Memory::Output(buffer))).cloned().unwrap_or_default()
        };
        let ranks = (0u32..).zip(&self.stream_plan.ranks);
        ranks
            .map(|(rank, part)| (0..part.outline.buffers.len() as u32).map(|at| output(rank, at)).collect())
            .collect()
    }

    fn can_be_carried(&self, parcel: &Parcel) -> bool {
        parcel.heading == Heading::Out || self.network.contains_key(&way(parcel))
    }

    fn carry(&mut self, parcel: &Parcel) {
        match parcel.heading {
            Heading::Out => {
                let parts = parcel.parts.iter().flat_map(|&(spot, bytes)| self.read(spot, bytes));
                let bytes = parts.collect();
                assert!(self.network.insert(way(parcel), bytes).is_none(), "{parcel:?} goes twice");
            }
            Heading::In => {
                let bytes = self.network.remove(&way(parcel)).expect("it can be carried");
                assert_eq!(bytes.len() as u64, parcel.bytes, "{parcel:?}");
                let mut rest = &bytes[..];
                for &(spot, bytes) in &parcel.parts {
                    let (part, others) = rest.split_at(bytes as usize);
                    self.write(spot, part);
                    rest = others;
                }
            }
        }
    }

    fn launch(&mut self, launch: &Launch) {
        let arithmetic = self.stream_plan.arithmetic.as_ref();
        let ranks = arithmetic.map_or(1, |arithmetic| u64::from(arithmetic.ranks()));
        match launch {
            Launch::Combine { target, sources, count } => {
                let arithmetic = arithmetic.expect("it reduces");
                let bytes = count * arithmetic.working_bytes();
                let operands: Vec<Vec<u8>> = sources.iter().map(|&source| self.read(source, bytes)).collect();
                let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
                let mut combined = vec![0; bytes as usize];
                arithmetic.operator().combine_many(&mut combined, &operands);
                self.write(*target, &combined);
            }
            Launch::Prepare { working, input, count } => {
                let operator = arithmetic.expect("it reduces").operator();
                let input = self.read(*input, count * operator.dtype().size_bytes());
                let mut made = vec![0; (count * operator.working_size_bytes()) as usize];
                operator.prepare(ranks, &input, &mut made);
                self.write(*working, &made);
            }
            Launch::Finish { output, working, count, leaves } => {
                let operator = arithmetic.expect("it reduces").operator();
                let working = self.read(*working, count * operator.working_size_bytes());
                let mut made = vec![0; (count * operator.dtype().size_bytes()) as usize];
                operator.finish(ranks, *leaves, &working, &mut made);
                self.write(*output, &made);
            }
            Launch::Cast { target, source, count, from, to } => {
                let source = self.read(*source, count * from.size_bytes());
                let mut made = vec![0; (count * to.size_bytes()) as usize];
                match Cast::narrowing(*from, *to) {
                    Some(cast) => cast.narrow(&source, &mut made),
                    None => Cast::narrowing(*to, *from).expect("it is a cast").widen(&source, &mut made),
                }
                self.write(*target, &made);
            }
        }
    }

    fn read(&self, spot: Spot, bytes: u64) -> Vec<u8> {
        let at = spot.offset as usize;
        self.memory[&(spot.rank, spot.memory)][at..at + bytes as usize].to_vec()
    }

    fn write(&mut self, spot: Spot, bytes: &[u8]) {
        let at = spot.offset as usize;
        let memory = self.memory.get_mut(&(spot.rank, spot.memory)).expect("there is such memory");
        memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// What both sides of a message have in common.
fn way(parcel: &Parcel) -> (u32, u32, u32, u32) {
    let (here, there) = (parcel.rank, parcel.link.peer);
    let (from, to) = if parcel.heading == Heading::Out { (here, there) } else { (there, here) };
    (from, to, parcel.link.channel, parcel.message)
}
