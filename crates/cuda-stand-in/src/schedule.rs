//! The scheduler: which queue goes on, what an operation does, and what it means for who knows what.
//!
//! Nothing runs when it is enqueued. When something must advance, one step after the other is taken: of the queues whose head
//! can go on, one is drawn. A head can go on unless it waits: for a point in another queue, or for a word in memory. By the
//! seed, queues are drawn alike, or some are preferred for a while, as in probabilistic concurrency testing (Burckhardt,
//! Kothari, Musuvathi and Nagarakatte, ASPLOS 2010), so that one falls far behind another.

use crate::clock::{Clock, Epoch};
use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::memory::Memory;
use crate::space;
use crate::stream::Operation;
use crate::work::{Done, Record, Touch, Work};

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// No queue can go on.
    Idle,
    Ran,
    /// A function of the host is to be called, without the lock, and [`Driver::called`] then.
    Call {
        stream: u64,
        function: usize,
        data: usize,
    },
}

/// Of so many steps one changes which queue is preferred.
const CHANGES: usize = 12;

impl Driver {
    /// One step.
    pub(crate) fn step(&mut self) -> Step {
        let ready: Vec<u64> = self
            .streams
            .iter()
            .filter(|(_, s)| !s.busy)
            .filter_map(|(&handle, stream)| {
                stream.queue.front().filter(|operation| self.is_ready(&operation.work)).map(|_| handle)
            })
            .collect();
        let Some(&first) = ready.first() else { return Step::Idle };
        let drawn = self.random.below(ready.len());
        let chosen = match self.config.seed % 3 {
            0 => ready[drawn],
            _ => ready.iter().copied().max_by_key(|handle| self.streams[handle].weight).unwrap_or(first),
        };
        let weight = (self.random.below(CHANGES) == 0).then(|| self.random.next());
        let Some(stream) = self.streams.get_mut(&chosen) else { return Step::Idle };
        stream.weight = weight.unwrap_or(stream.weight);
        let Some(operation) = stream.queue.pop_front() else { return Step::Idle };
        let step = self.execute(chosen, operation);
        if step == Step::Ran {
            self.bury(chosen);
        }
        step
    }

    /// Whether a head can go on.
    pub(crate) fn is_ready(&self, work: &Work) -> bool {
        match work {
            Work::Wait(record) => record.done.get().is_some(),
            Work::WaitShared { word, number, .. } => space::load(*word, true) >= *number,
            Work::WaitWord { at, wide, value, compare } => {
                // Memory that has gone meanwhile: the step says so.
                let there = self.memory.within(*at, if *wide { 8 } else { 4 });
                !matches!(there, Ok(Some(_))) || compare.holds(space::load(*at, *wide), *value, *wide)
            }
            _ => true,
        }
    }

    /// A stream that was to end and has nothing to do any more ends.
    pub(crate) fn bury(&mut self, handle: u64) {
        let done = |stream: &crate::stream::Stream| stream.dying && stream.queue.is_empty() && !stream.busy;
        if self.streams.get(&handle).is_some_and(done) {
            self.streams.remove(&handle);
        }
    }

    /// A host function has returned.
    pub(crate) fn called(&mut self, handle: u64) {
        if let Some(stream) = self.streams.get_mut(&handle) {
            stream.busy = false;
        }
        self.bury(handle);
    }

    fn execute(&mut self, handle: u64, operation: Operation) -> Step {
        let Operation { work, host, what } = operation;
        self.stats.steps += 1;
        let Some(stream) = self.streams.get_mut(&handle) else { return Step::Ran };
        stream.clock.join(&host);
        let known = stream.clock.clone();
        let released = self.acquired(&work, &known);
        let Some(stream) = self.streams.get_mut(&handle) else { return Step::Ran };
        released.iter().for_each(|clock| stream.clock.join(clock));
        let epoch = stream.clock.tick(stream.actor);
        let (context, clock) = (stream.context, stream.clock.clone());
        let sound = self.contexts.get(&context).is_some_and(|context| context.error.is_none());
        // Of a context that has come to grief nothing more is done, but nobody is left waiting for it.
        if let Work::Call { function, data } = work {
            if sound && let Some(stream) = self.streams.get_mut(&handle) {
                stream.busy = true;
                return Step::Call { stream: handle, function, data };
            }
            return Step::Ran;
        }
        if let Work::Allocate { base, .. } = work
            && let Some(allocation) = self.memory.find_mut(base)
        {
            allocation.live = true;
        }
        if let (Work::Free { base, .. }, false) = (&work, sound) {
            self.memory.release(*base);
        }
        if let (Work::Launch { kernel, arguments, .. }, true) = (&work, sound)
            && let Some(pointer) = kernel.misaligned(arguments)
        {
            let text = format!("{what}: {pointer:#x} is no place for an element");
            self.grief(context, Code::MISALIGNED_ADDRESS, &text);
            return Step::Ran;
        }
        if sound {
            for touch in work.touches() {
                if let Err(text) = self.look_up(context, touch, matches!(work, Work::Launch { .. })) {
                    self.grief(context, Code::ILLEGAL_ADDRESS, &format!("{what}: {text}"));
                    return Step::Ran;
                }
                self.note(touch.at, touch.bytes, touch.writes, epoch, &clock, &what);
            }
            if let Some((source, target)) = work.overlap() {
                let text = format!("{what}: {}", overlap_told(source, target));
                self.grief(context, Code::LAUNCH_FAILED, &text);
                return Step::Ran;
            }
            if let Err(text) = self.perform(&work, epoch, &clock) {
                self.grief(context, Code::LAUNCH_FAILED, &format!("{what}: {text}"));
            }
        }
        self.reach(work, clock);
        Step::Ran
    }

    /// What is known by whoever has waited for something, who knew `before`.
    fn acquired(&self, work: &Work, before: &Clock) -> Vec<Clock> {
        let known = |record: &Record| record.done.get().map(|done| done.clock.clone());
        match work {
            Work::Wait(record) => known(record).into_iter().collect(),
            Work::WaitShared { known: record, .. } => {
                let mine = record.iter().filter_map(|record| known(record));
                mine.chain([self.told_others.clone()]).collect()
            }
            Work::WaitWord { at, wide, value, compare } => {
                let Some(allocation) = self.memory.find(*at) else { return Vec::new() };
                let releases = allocation.releases.get(&(at - allocation.base));
                let there = space::load(*at, *wide);
                let releases = releases.filter(|releases| releases.last_value() == Some(there));
                // What the host or another process writes in between is not seen here: the last one it is then.
                let hidden = allocation.is_host() || allocation.is_shared();
                let known = releases.and_then(|releases| match hidden {
                    true => releases.last(),
                    false => releases.first(before, |word| compare.holds(word, *value, *wide)),
                });
                match known {
                    Some(clock) => vec![clock.clone()],
                    // No stream of this process wrote what is there, so the host or another process did.
                    None => vec![self.all_hosts(), self.told_others.clone()],
                }
            }
            _ => Vec::new(),
        }
    }

    /// What an operation does to memory.
    fn perform(&mut self, work: &Work, epoch: Epoch, clock: &Clock) -> Result<(), String> {
        match work {
            Work::Copy { to, from, bytes } => {
                space::copy(*to, *from, *bytes);
                self.count_copy(*bytes);
            }
            Work::Upload { to, bytes } => {
                space::write(*to, bytes);
                self.count_copy(bytes.len() as u64);
            }
            Work::Fill { to, pattern, width, count } => {
                space::write(*to, &pattern[..*width as usize].repeat(*count as usize));
                self.count_copy(width * count);
            }
            Work::Launch { kernel, arguments, grid, block } => {
                self.stats.launches += 1;
                kernel.run(arguments, *grid, *block)?;
            }
            Work::Allocate { base, bytes } => {
                let seed = self.random.next();
                Memory::scramble(*base, *bytes, seed);
            }
            Work::Free { base, .. } => self.memory.release(*base),
            Work::WaitWord { at, wide, .. } => {
                let bytes = if *wide { 8 } else { 4 };
                if self.memory.within(*at, bytes)?.is_none() {
                    return Err(format!("it waits for a word at {at:#x}, which the driver does not know"));
                }
            }
            Work::WriteWord { at, wide, value } => {
                let bytes = if *wide { 8 } else { 4 };
                self.memory.within(*at, bytes)?;
                let Some(allocation) = self.memory.find_mut(*at) else {
                    return Err(format!("it writes a word at {at:#x}, which the driver does not know"));
                };
                allocation.releases.entry(at - allocation.base).or_default().write(*value, epoch, clock);
                let shared = allocation.is_shared();
                if shared || allocation.is_host() {
                    self.told_others.join(clock);
                }
                if shared {
                    self.hosts_learn(clock);
                }
                space::store(*at, *wide, *value);
            }
            Work::Call { .. } | Work::Record(_) | Work::Wait(_) => {}
            Work::RecordShared { .. } | Work::WaitShared { .. } => {}
        }
        Ok(())
    }

    /// A point that was reached is so for good, even where the context has come to grief.
    fn reach(&mut self, work: Work, clock: Clock) {
        let step = self.stats.steps;
        match work {
            Work::Record(record) => {
                let _ = record.done.set(Done { clock, step });
            }
            Work::RecordShared { word, number, record } => {
                self.told_others.join(&clock);
                self.hosts_learn(&clock);
                let _ = record.done.set(Done { clock, step });
                space::raise(word, number);
            }
            _ => {}
        }
    }

    fn count_copy(&mut self, bytes: u64) {
        self.stats.copies += 1;
        self.stats.copied_bytes += bytes;
    }

    /// Work of a context failed: from now on all of it does.
    fn grief(&mut self, context: u64, code: Code, text: &str) {
        self.calling = "a stream";
        let code = self.wrong(code, text);
        if let Some(context) = self.contexts.get_mut(&context) {
            context.error.get_or_insert(code);
        }
    }

    /// What stands at the heads of the queues that cannot go on.
    pub(crate) fn blocked(&self) -> Vec<String> {
        let heads = self.streams.values().filter_map(|stream| stream.queue.front());
        heads.map(|operation| self.blocked_head(operation)).collect()
    }

    fn blocked_head(&self, operation: &Operation) -> String {
        match &operation.work {
            Work::WaitWord { at, wide, .. } => {
                let place = self.memory.find(*at).map_or("no memory".into(), |allocation| {
                    format!("byte {} of {allocation}", at - allocation.base)
                });
                let there = self.memory.within(*at, if *wide { 8 } else { 4 });
                let word = if matches!(there, Ok(Some(_))) { space::load(*at, *wide) } else { 0 };
                format!("{} at {place}, which holds {word}", operation.what)
            }
            _ => operation.what.to_string(),
        }
    }

    /// Whether nothing can ever go on: all heads wait for words that only streams of this process can write, or for others.
    pub(crate) fn is_stuck(&self) -> bool {
        use crate::memory::Kind;
        let heads = self.streams.values().filter_map(|stream| stream.queue.front());
        let mut words = 0;
        for operation in heads {
            match &operation.work {
                Work::Wait(_) => {}
                Work::WaitWord { at, .. } => match self.memory.find(*at) {
                    Some(allocation) if matches!(allocation.kind, Kind::Device | Kind::Pool) => {
                        // Another process may have opened it.
                        if allocation.openings > 1 {
                            return false;
                        }
                        words += 1;
                    }
                    _ => return false,
                },
                _ => return false,
            }
        }
        words > 0 && self.hosts_seen() == 1 && self.streams.values().all(|stream| !stream.busy)
    }

    /// Checks what is wrong already as an operation is enqueued.
    pub(crate) fn check(&mut self, stream: u64, work: &Work) -> Answer {
        let context = self.streams[&stream].context;
        if let Some((source, target)) = work.overlap() {
            let text = overlap_told(source, target);
            return Err(self.wrong(Code::INVALID_VALUE, format!("{}: {text}", work.told())));
        }
        for touch in work.touches() {
            let Touch { at, .. } = touch;
            // Memory that comes about in the order of a stream is looked up there.
            if self.memory.find(at).is_some_and(|allocation| !allocation.live) {
                continue;
            }
            if let Err(text) = self.look_up(context, touch, false) {
                return Err(self.wrong(Code::INVALID_VALUE, format!("{}: {text}", work.told())));
            }
        }
        Ok(())
    }
}

fn overlap_told(source: Touch, target: Touch) -> String {
    let beyond = i128::from(target.at) - i128::from(source.at);
    format!(
        "it reads {} bytes and writes {} bytes that begin {beyond} bytes behind them, which overlap",
        source.bytes, target.bytes
    )
}
