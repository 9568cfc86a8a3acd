//! One cell: a checked run, warm-up, timed runs with barriers between, and runs back to back.
//!
//! It is measured as the programs of `tests/peers` measure other libraries, step by step, so that figures can be
//! compared: an iteration is the subject's own barrier, a start barrier in shared memory, then the timed call; its time
//! is the largest over the ranks.

use super::control::{Control, Figure, ITERS_MAX};
use super::machine;
use super::settings::{Cell, Measured, Pace, Settings};
use super::subject::{Prepared, Subject};
use crate::failure::Failure;
use std::time::{Duration, Instant};

/// Others are busy if they use so much of a core.
const NOISE_CORES: f64 = 0.25;

/// Measures a cell. Rank 0 gets the figures.
pub(super) fn measure(
    subject: &mut impl Subject,
    control: &Control,
    settings: &Settings,
    number: usize,
) -> Result<Option<Measured>, Failure> {
    let cell = &settings.cells[number];
    let prepared = subject.prepare(cell)?;
    subject.fill();
    subject.sync()?;
    subject.run()?;
    let schedule = subject.schedule();
    let bad = settings.check.then(|| subject.wrong());
    subject.sync()?;
    let is_thread = settings.transport == super::wire::THREADS;
    let (pace, is_first) = (settings.pace, settings.rank == 0);
    let mut run = Run { subject, control, pace, is_first, is_thread };
    let estimate_s = run.warm_up()?;
    let iters = control.agree(run.iterations(cell, estimate_s).into())? as u32;
    let mut best: Option<Measured> = None;
    for attempt in 0..=settings.pace.retries {
        let measured = run.attempt(iters, bad)?;
        let noisy = measured.other_cores > NOISE_CORES;
        let measured = measured.of(number, &prepared, &schedule);
        if best.as_ref().is_none_or(|best| measured.other_cores < best.other_cores) {
            best = Some(measured);
        }
        if control.agree(u64::from(noisy))? == 0 || attempt == settings.pace.retries {
            break;
        }
    }
    Ok(best.filter(|_| settings.rank == 0))
}

struct Run<'s, S> {
    subject: &'s mut S,
    control: &'s Control,
    pace: Pace,
    is_first: bool,
    is_thread: bool,
}

/// The figures of an attempt, known to rank 0.
#[derive(Default)]
struct Figures {
    times_us: Vec<f64>,
    b2b_us: f64,
    b2b_iters: u32,
    other_cores: f64,
    pp_us: f64,
    bad: Option<u64>,
}

impl<S: Subject> Run<'_, S> {
    /// At least 3 runs, at most 50 or 50 ms; or as many as are asked for. Gives a run's time in seconds.
    fn warm_up(&mut self) -> Result<f64, Failure> {
        let begun = Instant::now();
        let mut estimate_s = f64::INFINITY;
        let mut done = 0;
        while self.pace.warmup.is_none_or(|warmup| done < warmup) {
            self.subject.sync()?;
            self.control.barrier()?;
            let start = Instant::now();
            self.subject.run()?;
            let time_s = start.elapsed().as_secs_f64();
            estimate_s = if time_s < estimate_s { time_s } else { 0.7 * estimate_s + 0.3 * time_s };
            done += 1;
            let more = done < 3 || (done < 50 && begun.elapsed() < Duration::from_millis(50));
            if self.pace.warmup.is_none() && self.control.agree(u64::from(more))? == 0 {
                break;
            }
        }
        Ok(estimate_s)
    }

    fn iterations(&self, cell: &Cell, estimate_s: f64) -> u32 {
        let pace = self.pace;
        if let Some(iters) = pace.iters {
            return iters.min(ITERS_MAX);
        }
        let least = if cell.bytes <= 1 << 20 { pace.min_small } else { pace.min_big };
        let wanted = if estimate_s > 0.0 { pace.target_s / estimate_s } else { f64::from(pace.max_iters) };
        (wanted.min(f64::from(pace.max_iters)) as u32).max(least).clamp(1, ITERS_MAX)
    }

    fn attempt(&mut self, iters: u32, bad: Option<u64>) -> Result<Figures, Failure> {
        self.subject.sync()?;
        self.gate()?;
        let pp_us = self.control.ping_pong_us()?;
        self.subject.sync()?;
        self.subject.run()?;
        self.subject.sync()?;
        self.control.barrier()?;
        let (own, busy, begun) = (machine::own_cpu_s(self.is_thread), machine::busy_s(), Instant::now());
        for iteration in 0..iters {
            self.subject.sync()?;
            self.control.barrier()?;
            let start = Instant::now();
            self.subject.run()?;
            self.control.put_us(iteration, start.elapsed().as_secs_f64() * 1e6);
        }
        let b2b_iters = self.pace.iters.unwrap_or((iters / 2).max(3));
        self.subject.sync()?;
        self.control.barrier()?;
        let start = Instant::now();
        for _ in 0..b2b_iters {
            self.subject.run()?;
        }
        self.control.put(Figure::BackToBack, start.elapsed().as_secs_f64() * 1e6 / f64::from(b2b_iters));
        self.subject.sync()?;
        self.control.put(Figure::Cpu, machine::own_cpu_s(self.is_thread) - own);
        self.control.put(Figure::Bad, bad.unwrap_or(0) as f64);
        self.control.barrier()?;
        if !self.is_first {
            return Ok(Figures::default());
        }
        let wall_s = begun.elapsed().as_secs_f64();
        let ours_s: f64 = self.control.all(Figure::Cpu).sum();
        let others_s = machine::busy_s().zip(busy).map_or(0.0, |(after, before)| after - before - ours_s);
        let mut times_us: Vec<f64> = (0..iters).map(|i| self.control.slowest_us(i)).collect();
        times_us.sort_by(f64::total_cmp);
        Ok(Figures {
            times_us,
            b2b_us: self.control.all(Figure::BackToBack).fold(0.0, f64::max),
            b2b_iters,
            // Ticks are too coarse for less.
            other_cores: if wall_s > 0.05 { others_s / wall_s } else { 0.0 },
            pp_us,
            bad: bad.map(|_| self.control.all(Figure::Bad).sum::<f64>() as u64),
        })
    }

    /// Waits, all ranks asleep, for a quiet machine, but not for ever.
    fn gate(&mut self) -> Result<(), Failure> {
        const LOOK: Duration = Duration::from_millis(80);
        if self.pace.gate_s <= 0.0 {
            return Ok(());
        }
        let begun = Instant::now();
        loop {
            self.control.barrier()?;
            let (before, start) = (machine::busy_s(), Instant::now());
            std::thread::sleep(LOOK);
            let used = machine::busy_s().zip(before).map_or(0.0, |(after, before)| after - before);
            let noisy = used / start.elapsed().as_secs_f64() > NOISE_CORES;
            let more = noisy && begun.elapsed().as_secs_f64() < self.pace.gate_s;
            if self.control.agree(u64::from(more))? == 0 {
                return Ok(());
            }
        }
    }
}

impl Figures {
    fn of(self, cell: usize, prepared: &Prepared, schedule: &str) -> Measured {
        let times = &self.times_us;
        let at = |index: usize| times.get(index).copied().unwrap_or(0.0);
        let half = times.len() / 2;
        let median_us =
            if times.len() % 2 == 1 { at(half) } else { 0.5 * (at(half.saturating_sub(1)) + at(half)) };
        Measured {
            cell,
            schedule: schedule.to_string(),
            actual_bytes: prepared.actual_bytes,
            elements: prepared.elements,
            reduces: prepared.reduces,
            root: prepared.root,
            bus_factor: prepared.bus_factor,
            median_us,
            min_us: at(0),
            p99_us: at((0.99 * times.len() as f64) as usize),
            iters: times.len() as u32,
            b2b_us: self.b2b_us,
            b2b_iters: self.b2b_iters,
            other_cores: self.other_cores,
            pp_us: self.pp_us,
            bad: self.bad,
        }
    }
}
