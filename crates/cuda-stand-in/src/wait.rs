//! Where the host waits: queues advance until what is waited for has come about, or nothing can ever bring it about.

use crate::code::{Answer, Code};
use crate::driver::{CHANGED, Driver, Held};
use crate::entry::host_function;
use crate::schedule::Step;
use crate::space;
use crate::work::Record;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is waited for.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    pub(crate) records: Vec<Arc<Record>>,
    /// Words of shared events, and what each must reach.
    pub(crate) words: Vec<(u64, u64)>,
    /// Contexts whose errors come out.
    pub(crate) contexts: Vec<u64>,
    /// Nothing is learnt by it: whoever called did not ask to wait.
    pub(crate) silent: bool,
}

impl Wait {
    /// True once all of it has come about.
    pub(crate) fn is_over(&self) -> bool {
        self.records.iter().all(|record| record.done.get().is_some())
            && self.words.iter().all(|&(word, number)| space::load(word, true) >= number)
    }

    /// This thread knows what was known there.
    pub(crate) fn learn(&self, driver: &mut Driver) {
        for done in self.records.iter().filter_map(|record| record.done.get()).filter(|_| !self.silent) {
            driver.host_learns(&done.clock);
        }
    }

    /// Advances queues until it is over.
    pub(crate) fn wait(&self, held: Held) -> (Held, Answer) {
        let (mut held, answer) = advance_until(held, |_| self.is_over());
        let learn = |driver: &mut Driver| {
            self.learn(driver);
            self.contexts.iter().try_for_each(|&context| driver.sound(context))
        };
        let answer = answer.and_then(|()| learn(held.driver()?));
        (held, answer)
    }
}

/// Whoever has enqueued more than a queue holds waits until there is room.
pub(crate) fn make_room(mut held: Held) -> Answer {
    if !held.driver()?.full {
        return Ok(());
    }
    let fits = |driver: &Driver| driver.streams.values().all(|s| s.queue.len() <= driver.config.depth);
    let (mut held, answer) = advance_until(held, fits);
    held.driver()?.full = false;
    answer
}

/// Takes steps until something has come about, or nothing can bring it about.
fn advance_until(mut held: Held, over: impl Fn(&Driver) -> bool) -> (Held, Answer) {
    let mut idle: Option<Instant> = None;
    loop {
        let driver = match held.driver() {
            Ok(driver) => driver,
            Err(code) => return (held, Err(code)),
        };
        if over(driver) {
            return (held, Ok(()));
        }
        match driver.step() {
            Step::Ran => idle = None,
            Step::Call { stream, function, data } => {
                held = call(held, stream, function, data);
                idle = None;
            }
            Step::Idle => {
                let patience = Duration::from_millis(driver.config.patience_ms);
                let since = *idle.get_or_insert_with(Instant::now);
                if driver.is_stuck() || since.elapsed() > patience {
                    let code = given_up(driver);
                    return (held, Err(code));
                }
                held = held.pause();
            }
        }
    }
}

fn given_up(driver: &mut Driver) -> Code {
    let heads = driver.blocked();
    let shown = heads.iter().take(8).map(String::as_str).collect::<Vec<_>>().join("; ");
    let heads = match heads.len() {
        0 => "no queue of this process holds what is waited for".to_string(),
        all => format!("{all} queues cannot go on: {shown}"),
    };
    driver.wrong(Code::LAUNCH_TIMEOUT, format!("the wait is given up: {heads}"))
}

/// Calls a function of the host, which others may enqueue meanwhile but not wait for.
pub(crate) fn call(held: Held, stream: u64, function: usize, data: usize) -> Held {
    drop(held);
    host_function(stream, function, data);
    let mut held = Held::take();
    if let Ok(driver) = held.driver() {
        driver.called(stream);
    }
    CHANGED.notify_all();
    held
}

impl Driver {
    /// All that some streams have been given so far.
    pub(crate) fn wait_for_streams(&mut self, streams: &[u64]) -> Wait {
        let mut wait = Wait::default();
        for &stream in streams {
            let record = self.mark(stream);
            wait.records.push(record);
            wait.contexts.extend(self.streams.get(&stream).map(|stream| stream.context));
        }
        wait.contexts.sort_unstable();
        wait.contexts.dedup();
        wait
    }

    /// An error if a stream of a context is being captured, which a wait for all of them breaks.
    pub(crate) fn captures_nothing(&mut self, context: u64) -> Answer {
        let mut of_it = self.streams.values().filter(|stream| stream.context == context);
        if let Some(capture) = of_it.find_map(|stream| stream.capture) {
            self.invalidate(capture);
            return Err(self.wrong(Code::STREAM_CAPTURE_UNSUPPORTED, "a stream of it is being captured"));
        }
        Ok(())
    }

    /// All that a context has been given so far, graphs included.
    pub(crate) fn wait_for_context(&mut self, context: u64) -> Wait {
        let of_it = self.streams.iter().filter(|(_, stream)| stream.context == context);
        let streams: Vec<u64> = of_it.map(|(&handle, _)| handle).collect();
        Wait { contexts: vec![context], ..self.wait_for_streams(&streams) }
    }

    /// All that a device has been given so far; of no context in particular.
    pub(crate) fn wait_for_device(&mut self, device: usize) -> Wait {
        let contexts: Vec<u64> =
            self.contexts.iter().filter(|(_, c)| c.device == device).map(|(&handle, _)| handle).collect();
        let of_it = self.streams.iter().filter(|(_, stream)| contexts.contains(&stream.context));
        let streams: Vec<u64> = of_it.map(|(&handle, _)| handle).collect();
        Wait { contexts: Vec::new(), ..self.wait_for_streams(&streams) }
    }

    /// Everything, without anyone learning anything by it.
    pub(crate) fn wait_for_all(&mut self) -> Wait {
        let streams: Vec<u64> = self.streams.keys().copied().collect();
        Wait { contexts: Vec::new(), silent: true, ..self.wait_for_streams(&streams) }
    }
}
