//! Shared by tests, also by those on real devices: library plans, calls of them on every rank, and what the CPU's executor makes
//! of them.

use coll::trial::{Inputs, Operator, RunMemory, placements};
use coll::{Instance, Options, Outcome, Source};
use coll_base::{DType, RedOp};
use coll_exec::world::World;
use coll_exec::{Binding, Bound, BufferMemory, Outline};
use coll_kernel::Reducer;
use coll_plan::Plan;

/// The seed of random choices: that of `COLLC_TEST_SEED`, or a new one, printed so that it can be replayed.
pub fn seed() -> u64 {
    let given = std::env::var("COLLC_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let now = || {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
    };
    let seed = given.unwrap_or_else(|| now() % 1_000_000);
    println!("COLLC_TEST_SEED={seed} replays this run");
    seed
}

/// A library schedule's proved plan, or nothing if a `require` excludes the rank count.
pub fn plan(collective: &str, schedule: &str, ranks: u32, root: u32, options: &Options) -> Option<Plan> {
    let source = Source::builtin(collective, schedule)?;
    let at = source.schedules().iter().position(|info| info.name == schedule)?;
    let root = if source.schedules()[at].rooted { root } else { 0 };
    match coll::prove(&source, at, &Instance { ranks, root, params: Vec::new() }, options) {
        Outcome::Right(proved) => Some(proved.plan),
        Outcome::DoesNotApply { .. } => None,
        Outcome::Wrong(diagnostics) => panic!("{collective}.{schedule} at {ranks} ranks: {diagnostics:#?}"),
    }
}

/// All plans of the library for a rank count.
pub fn library(ranks: u32, root: u32) -> Vec<Plan> {
    let entries = coll::library::entries();
    entries
        .filter_map(|entry| plan(entry.collective, entry.schedule, ranks, root, &Options::default()))
        .collect()
}

/// What a plan is called on.
#[derive(Clone, Debug)]
pub struct Case {
    pub operator: Operator,
    pub dtype: DType,
    pub elements: u64,
    pub in_place: bool,
    pub seed: u64,
}

impl Case {
    pub fn new(op: RedOp, dtype: DType) -> Case {
        let operator = match op {
            RedOp::PremulSum => Operator::PremulSum(3.0),
            op => Operator::Builtin(op),
        };
        Case { operator, dtype, elements: 61, in_place: false, seed: 1 }
    }

    /// Any operator on any type that it works on.
    pub fn any(random: &mut Random) -> Case {
        loop {
            let (op, dtype) =
                (RedOp::ALL[random.below(RedOp::ALL.len())], DType::ALL[random.below(DType::ALL.len())]);
            if let Some(case) = Case::of(op, dtype) {
                return case;
            }
        }
    }

    /// If the operator works on the type.
    pub fn of(op: RedOp, dtype: DType) -> Option<Case> {
        let case = Case::new(op, dtype);
        case.operator.reducer(dtype).is_ok().then_some(case)
    }
}

/// One buffer of one rank as bytes: the input, and the output or all of it in place.
pub type Bytes = [Vec<u8>; 2];

/// A call of all ranks.
pub struct Call<'p> {
    pub plan: &'p Plan,
    pub case: Case,
    pub reducer: Option<Reducer>,
    pub counts: Vec<u64>,
    /// For each rank and buffer, what is there before.
    pub before: Vec<Vec<Bytes>>,
}

impl<'p> Call<'p> {
    pub fn new(plan: &'p Plan, case: &Case) -> Call<'p> {
        let reducer = case.operator.reducer(case.dtype).expect("the operator works on the type");
        let counts = plan.contract.counts(case.elements).expect("it divides");
        let near_one = case.operator.builtin() == Some(RedOp::Prod);
        let inputs = Inputs { seed: case.seed, dtype: case.dtype, near_one };
        let before = |rank| {
            let size = case.dtype.size_bytes();
            let memory = RunMemory::new(&plan.contract, rank, &counts, size, case.in_place);
            let mut memory = memory.expect("there is memory");
            memory.fill(&inputs, false);
            memory.bound().iter().map(bytes).collect()
        };
        let before = (0..plan.world()).map(before).collect();
        Call { plan, case: case.clone(), reducer: plan.reduces.then_some(reducer), counts, before }
    }

    /// Binds each rank by `bind`.
    pub fn bind<T>(&self, bind: impl Fn(Binding<'_>) -> T) -> Vec<T> {
        let placements = placements(&self.plan.contract, self.case.in_place);
        let one = |rank| {
            bind(Binding {
                plan: self.plan,
                rank,
                counts: &self.counts,
                element_size_bytes: self.case.dtype.size_bytes(),
                reducer: self.reducer.as_ref(),
                placements: &placements,
            })
        };
        (0..self.plan.world()).map(one).collect()
    }

    /// The call as devices take it.
    pub fn asked<'c>(&'c self, placements: &'c [coll_exec::Placement]) -> coll_gpu::Call<'c> {
        coll_gpu::Call {
            plan: self.plan,
            counts: &self.counts,
            dtype: self.case.dtype,
            reducer: self.reducer.as_ref(),
            placements,
            spreads: &[],
        }
    }

    pub fn outlines(&self) -> Vec<Outline> {
        self.bind(|binding| Outline::new(binding, self.case.dtype, &[]).expect("it binds"))
    }

    /// What the CPU's executor leaves: for each rank and buffer, its output.
    pub fn on_cpu(&self) -> Vec<Vec<Vec<u8>>> {
        let mut bounds = self.bind(|binding| Bound::typed(binding, self.case.dtype).expect("it binds"));
        let mut memory = self.before.clone();
        let placements = placements(&self.plan.contract, self.case.in_place);
        let mut buffers: Vec<Vec<BufferMemory<'_>>> = memory
            .iter_mut()
            .map(|rank| {
                let both = rank.iter_mut().zip(&placements);
                both.map(|([input, output], placement)| match placement {
                    coll_exec::Placement::Separate => BufferMemory::Separate { input, output },
                    coll_exec::Placement::InPlace => BufferMemory::InPlace(output),
                })
                .collect()
            })
            .collect();
        for ended in World::new(self.case.seed).run(&mut bounds, &mut buffers, 0..1) {
            ended.expect("the CPU runs it");
        }
        drop(buffers);
        memory.into_iter().map(|rank| rank.into_iter().map(|[_, output]| output).collect()).collect()
    }
}

fn bytes(buffer: &BufferMemory<'_>) -> Bytes {
    match buffer {
        BufferMemory::Separate { input, output } => [input.to_vec(), output.to_vec()],
        BufferMemory::InPlace(all) => [Vec::new(), all.to_vec()],
    }
}

/// A small generator for choices of tests: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }
}
