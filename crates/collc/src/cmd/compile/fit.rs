//! A plan that fits a topology, in three passes: `shape` sets the schedule's parameter for the ranks in a node, `place` puts
//! ranks where they send each other least over slow links, `pipeline` tries a few numbers of slices and lanes in virtual time.
//!
//! What they do changes where and how finely things are sent, and nothing of what is proved: the plan is proved as ever.

use super::shape;
use crate::args::{CompileArgs, Emit, Passes};
use crate::cmd::place::{self, Wish};
use crate::cmd::sim;
use crate::failure::Failure;
use coll::{Bytes, Outcome, Proved, Source};
use coll_base::DType;
use coll_compile::Options;
use coll_plan::{Placement, Plan};
use coll_sema::Instance;
use coll_sim::Simulator;
use coll_topo::Network;

/// The passes, for `--skip`.
pub(crate) const PASSES: [&str; 3] = ["shape", "place", "pipeline"];

/// What a plan is weighed at if nothing is said.
const BYTES: u64 = 1 << 20;

/// Lanes and slices that are tried.
const LANES: [u32; 2] = [1, 2];
const SLICES: [u32; 4] = [1, 2, 4, 8];

/// Plans of more operations are not compiled again and again.
const TRIED_OPS_MAX: usize = 100_000;

/// A way that is not a hundredth faster is not worth more messages.
const GAIN_MIN: f64 = 0.01;

/// A topology that plans are fitted to, and which passes run.
pub(crate) struct Fitting {
    network: Network,
    wish: Wish,
    /// Whether somebody said where ranks are to stand.
    is_wished: bool,
    bytes: u64,
    skip: Vec<&'static str>,
}

/// A plan that fits, and what was done for it.
pub(crate) struct Fitted {
    pub(crate) proved: Box<Proved>,
    /// A line for each pass, and one for what a run takes.
    pub(crate) lines: Vec<String>,
}

/// What is compiled.
pub(crate) struct Subject<'a> {
    pub(crate) source: &'a Source,
    pub(crate) schedule: usize,
    pub(crate) instance: &'a Instance,
}

impl Fitting {
    /// What the options ask for; nothing without a topology.
    pub(crate) fn new(args: &CompileArgs) -> Result<Option<Fitting>, Failure> {
        let Some(topology) = &args.fit.topology else { return Ok(None) };
        let bytes = args.fit.bytes.map_or(BYTES, |bytes| bytes.0);
        Fitting::of(topology, args.fit.place.as_deref(), bytes, &args.passes).map(Some)
    }

    /// Fits plans to a topology, weighed at so many bytes.
    pub(crate) fn of(
        topology: &str,
        place: Option<&str>,
        bytes: u64,
        passes: &Passes,
    ) -> Result<Fitting, Failure> {
        let skips = |name: &&&'static str| passes.no_opt || passes.skip.iter().any(|skip| skip == **name);
        let skip: Vec<&'static str> = PASSES.iter().filter(skips).copied().collect();
        let network = sim::ground::network(topology)?;
        let wish = match (place, skip.contains(&"place")) {
            (None, true) => Wish::Listed,
            (None, false) => Wish::Best,
            (Some(text), false) => Wish::read(&network, text)?,
            (Some(text), true) => {
                return Err(Failure::unusable(format!("`--place {text}`, and the pass `place` is left out"))
                    .help("leave one of them out; `--place none` takes the topology's order"));
            }
        };
        Ok(Fitting { network, wish, is_wished: place.is_some(), bytes, skip })
    }

    /// The topology.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Where ranks are to stand, if somebody said so.
    pub(crate) fn wish(&self) -> Option<&Wish> {
        self.is_wished.then_some(&self.wish)
    }

    /// One rank for each device.
    pub(crate) fn default_ranks(&self) -> u32 {
        u32::try_from(self.network.devices.len()).unwrap_or(u32::MAX).min(coll::RANKS_MAX)
    }

    /// Sets what the topology settles of a schedule's parameters, and says so.
    pub(crate) fn shape(&self, source: &Source, schedule: usize, instance: &mut Instance) -> Option<String> {
        match self.skip.contains(&"shape") {
            true => None,
            false => shape::shape(&self.network, source, schedule, instance),
        }
    }

    /// Places a proved plan's ranks, and tries whether it is faster in other slices and lanes; what is compiled anew is
    /// proved anew.
    pub(crate) fn fit(
        &self,
        subject: &Subject<'_>,
        proved: Box<Proved>,
        options: &Options,
        passes: &Passes,
    ) -> Result<Fitted, Failure> {
        let mut lines = Vec::new();
        let weighed = self.options(&proved.plan);
        let stand =
            place::stand(Some(&self.wish), std::slice::from_ref(&proved.plan), &self.network, &weighed)?;
        let order = stand.order.unwrap_or_else(|| (0..proved.plan.world()).collect());
        // Refuses what no run could do: ranks without a device, two ranks on one.
        let us = self.run(&proved.plan, &order)?;
        let how = stand.how.unwrap_or_else(|| "as the topology lists its devices".into());
        lines.push(format!("place: order {} ({how})", place::shown(&order)));
        let (mut proved, us) = self.pipeline(subject, (proved, us), options, (passes, &order), &mut lines)?;
        lines.push(format!("a run of {} on {} takes {us:.2} µs", Bytes(weighed.bytes), self.network.name));
        let placement = Placement { topology: self.network.name.clone(), order };
        proved.plan = coll::placed(proved.plan, placement);
        Ok(Fitted { proved, lines })
    }

    /// The fastest of a few ways to slice a plan and to spread it over lanes.
    fn pipeline(
        &self,
        subject: &Subject<'_>,
        (proved, us): (Box<Proved>, f64),
        options: &Options,
        (passes, order): (&Passes, &[u32]),
        lines: &mut Vec<String>,
    ) -> Result<(Box<Proved>, f64), Failure> {
        if self.skip.contains(&"pipeline") {
            return Ok((proved, us));
        }
        let ops: usize = proved.plan.ranks.iter().map(|part| part.ops.len()).sum();
        if ops > TRIED_OPS_MAX {
            lines.push(format!("pipeline: left as it is, as {ops} operations are too many to try ways"));
            return Ok((proved, us));
        }
        let now = (proved.plan.channels, proved.plan.slices);
        let mut best = (us * (1.0 - GAIN_MIN), None);
        let mut tried = 0;
        for (lanes, slices) in ways(passes, options, now) {
            let way = Options { lanes: Some(lanes), slices: Some(slices), ..options.clone() };
            let Ok(plan) = coll::compile(subject.source, subject.schedule, subject.instance, &way) else {
                continue;
            };
            tried += 1;
            let found = self.run(&plan, order)?;
            if found < best.0 {
                best = (found, Some((lanes, slices, way)));
            }
        }
        let (found, Some((lanes, slices, way))) = best else {
            lines.push(format!(
                "pipeline: as the schedule has it; none of {tried} other ways is a hundredth faster"
            ));
            return Ok((proved, us));
        };
        let Subject { source, schedule, instance } = *subject;
        // Warnings have been shown once.
        let proved = match coll::prove(source, schedule, instance, &way) {
            Outcome::Right(proved) => proved,
            other => super::settled(source, schedule, instance, other)?,
        };
        lines.push(format!(
            "pipeline: slices = {slices}, lanes = {lanes}: {found:.2} µs, not {us:.2}; {tried} other ways were tried"
        ));
        Ok((proved, found))
    }

    fn options(&self, plan: &Plan) -> coll_sim::Options {
        let element = sim::planned::element(plan, DType::F32);
        let options = coll_sim::Options { bytes: self.bytes, element, ..coll_sim::Options::default() };
        coll_sim::Options { bytes: coll_sim::size_taken_bytes(plan, &options), ..options }
    }

    fn run(&self, plan: &Plan, order: &[u32]) -> Result<f64, Failure> {
        let failure = |error| sim::failure(&error);
        let simulator = Simulator::new(vec![plan], &self.network, Some(order)).map_err(failure)?;
        Ok(simulator.run(&self.options(plan)).map_err(failure)?.time_us)
    }
}

/// Stages that come before there is a place for ranks, or anything that a topology settles.
pub(crate) fn refuse_unused(args: &CompileArgs) -> Result<(), Failure> {
    let fit = &args.fit;
    let (stage, given) = match args.emit {
        Some(Emit::Ast) => ("the syntax tree", vec![("--topology", fit.topology.is_some())]),
        Some(Emit::Program | Emit::Graph | Emit::Dot) => {
            ("a program", vec![("--place", fit.place.is_some()), ("--bytes", fit.bytes.is_some())])
        }
        _ => return Ok(()),
    };
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::unusable(format!("`{name}` changes nothing of {stage}"))
            .help("leave it out, or print `--emit plan`")),
    }
}

/// Lanes and slices other than those that a plan has, and what the user settled left as it is.
fn ways(passes: &Passes, options: &Options, now: (u32, u32)) -> Vec<(u32, u32)> {
    let lanes: &[u32] = if passes.lanes.is_some() { &[now.0] } else { &LANES };
    let sliced = passes.slices.is_some() || options.skip.iter().any(|name| name == "slice");
    let slices: &[u32] = if sliced { &[now.1] } else { &SLICES };
    let all = lanes.iter().flat_map(|&lanes| slices.iter().map(move |&slices| (lanes, slices)));
    all.filter(|&way| way != now).collect()
}
