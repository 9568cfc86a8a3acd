//! Signals that ask this program to end: Ctrl-C, termination, and the end of the terminal.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fs, io, thread};

/// Who is told. While there is nobody, signals do what they do by default.
static TOLD: Mutex<Option<Told>> = Mutex::new(None);

/// Whether this program was asked to end since somebody is told, and how.
type Told = (Arc<AtomicBool>, Box<dyn Fn() + Send>);

/// While it lives, what asks this program to end is told and does not end it. The one that came last is told.
pub(crate) struct Interrupts {
    came: Arc<AtomicBool>,
}

impl Interrupts {
    /// Calls `tell`, on another thread, when this program is asked to end.
    pub(crate) fn catch(tell: impl Fn() + Send + 'static) -> Result<Interrupts, Failure> {
        static CAUGHT: OnceLock<Result<(), String>> = OnceLock::new();
        let caught = CAUGHT.get_or_init(|| listen().map_err(|error| error.to_string()));
        caught.clone().map_err(|error| Failure::unusable(format!("cannot catch Ctrl-C: {error}")))?;
        let came = Arc::new(AtomicBool::new(false));
        *told() = Some((Arc::clone(&came), Box::new(tell)));
        Ok(Interrupts { came })
    }

    /// If this program was asked to end.
    pub(crate) fn came(&self) -> bool {
        self.came.load(Ordering::SeqCst)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // Whoever came later stays.
        told().take_if(|(of, _)| Arc::ptr_eq(of, &self.came));
    }
}

fn told() -> MutexGuard<'static, Option<Told>> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen() -> io::Result<()> {
    let ignored = ignored();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&one| !ignored(one)))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            match &*told() {
                Some((came, tell)) => {
                    came.store(true, Ordering::SeqCst);
                    tell();
                }
                None => drop(low_level::emulate_default_handler(signal)),
            }
        }
    });
    Ok(())
}

/// Signals that whoever started this program had it ignore, as `nohup` does with a hangup: they stay ignored. Where the system
/// does not tell, none.
fn ignored() -> impl Fn(i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    move |signal| mask >> (signal - 1) & 1 == 1
}
