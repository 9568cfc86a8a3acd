//! Words by which ranks that are processes wait for each other, where runs are graphs: nothing is told before what was told last
//! was heard, in any order of the work.

use crate::support::{Call, Case, Random, plan, seed};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_gpu::Layout;
use coll_gpu::stream_plan::{Deed, StreamPlan, Work};
use coll_plan::Plan;

fn parts(plan: &Plan) -> Vec<StreamPlan> {
    let call = Call::new(plan, &Case::new(RedOp::Sum, DType::F32));
    let world = plan.world();
    let whole = StreamPlan::new(call.outlines(), &Layout::one_device(world)).expect("it makes a stream plan");
    (0..world).map(|rank| whole.clone().of_rank(rank)).collect()
}

/// Ranks whose parts are graphs: a run of a rank begins when its run before is done, and nobody waits for anything else
/// but events and words.
struct Machine<'p> {
    parts: &'p [StreamPlan],
    runs: Vec<u32>,
    /// For each rank and stream, work of this run, the next one last.
    queues: Vec<Vec<Vec<&'p Work>>>,
    recorded: Vec<Vec<bool>>,
    words: Vec<Vec<bool>>,
}

impl<'p> Machine<'p> {
    fn new(parts: &'p [StreamPlan]) -> Machine<'p> {
        let each = || vec![vec![false; parts[0].events as usize]; parts.len()];
        let streams = vec![vec![Vec::new(); parts[0].streams.len()]; parts.len()];
        Machine { parts, runs: vec![0; parts.len()], queues: streams, recorded: each(), words: each() }
    }

    /// Begins the next run of each rank that is done with the one before.
    fn begin(&mut self, runs: u32) {
        for rank in 0..self.parts.len() {
            if self.runs[rank] < runs && self.queues[rank].iter().all(Vec::is_empty) {
                self.runs[rank] += 1;
                self.recorded[rank].fill(false);
                for work in self.parts[rank].work.iter().rev() {
                    self.queues[rank][work.stream as usize].push(work);
                }
            }
        }
    }

    fn can(&self, rank: usize, stream: usize) -> bool {
        match self.queues[rank][stream].last().map(|work| &work.deed) {
            None => false,
            Some(Deed::Wait(event)) => self.recorded[rank][*event as usize],
            Some(Deed::Await(event)) => self.words[rank][*event as usize],
            Some(_) => true,
        }
    }

    fn step(&mut self, rank: usize, stream: usize) {
        let work = self.queues[rank][stream].pop().expect("it can go on");
        match work.deed {
            Deed::Record(event) => self.recorded[rank][event as usize] = true,
            Deed::Await(event) => self.words[rank][event as usize] = false,
            Deed::Signal { event, rank: other } => {
                let word = &mut self.words[other as usize][event as usize];
                assert!(!*word, "rank {rank} tells rank {other} what it has not heard yet");
                *word = true;
            }
            _ => {}
        }
    }
}

#[test]
fn words_are_heard_before_they_are_told_again() {
    let mut random = Random(seed());
    let options = Options { lanes: Some(2), slices: Some(2), ..Options::default() };
    let (mut plans, mut behind) = (0, 0);
    for entry in coll::library::entries() {
        for ranks in 2..=4 {
            let Some(plan) = plan(entry.collective, entry.schedule, ranks, 0, &options) else { continue };
            let parts = parts(&plan);
            plans += 1;
            behind += parts.iter().map(records_behind_words).sum::<usize>();
            for _ in 0..4 {
                let mut machine = Machine::new(&parts);
                loop {
                    machine.begin(4);
                    let all = (0..parts.len()).flat_map(|rank| {
                        let streams = 0..parts[0].streams.len();
                        streams.map(move |stream| (rank, stream))
                    });
                    let able: Vec<_> = all.filter(|&(rank, stream)| machine.can(rank, stream)).collect();
                    if able.is_empty() {
                        break;
                    }
                    let (rank, stream) = able[random.below(able.len())];
                    machine.step(rank, stream);
                }
                let left = machine.queues.iter().flatten().any(|queue| !queue.is_empty());
                assert!(!left, "{} on {ranks} ranks: it hangs", plan.name);
                assert!(machine.words.iter().flatten().all(|word| !word), "{}: not heard", plan.name);
            }
        }
    }
    assert!(plans > 60 && behind > 0, "{plans} plans, {behind} words that several streams need");
}

/// Words that several streams of a rank need; each is waited for once.
fn records_behind_words(part: &StreamPlan) -> usize {
    let mut heard = vec![false; part.events as usize];
    let mut behind = 0;
    for (at, work) in part.work.iter().enumerate() {
        if let Deed::Await(event) = work.deed {
            assert!(!std::mem::replace(&mut heard[event as usize], true), "it is waited for twice");
            let next = part.work.get(at + 1).map(|work| &work.deed);
            behind += usize::from(next == Some(&Deed::Record(event)));
        }
    }
    behind
}
