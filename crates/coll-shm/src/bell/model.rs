//! Every interleaving of one rank that goes to sleep and one that brings it something, with loom.

use super::{Bell, sleep, wake};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};

struct Modelled {
    flag: AtomicBool,
    lock: Mutex<()>,
    roused: Condvar,
}

impl Bell for Modelled {
    fn set(&self, up: bool) {
        self.flag.store(up, Ordering::Relaxed);
    }

    fn is_up(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    fn take_down(&self) -> bool {
        self.flag.swap(false, Ordering::AcqRel)
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    /// As a futex does: the flag is looked at under a lock that whoever rouses takes, too.
    fn doze(&self) {
        let mut held = self.lock.lock().unwrap();
        while self.flag.load(Ordering::Relaxed) {
            held = self.roused.wait(held).unwrap();
        }
    }

    fn rouse(&self) {
        drop(self.lock.lock().unwrap());
        self.roused.notify_one();
    }
}

#[test]
fn whoever_goes_to_sleep_is_woken_by_whoever_brings_something() {
    loom::model(|| {
        let flag = AtomicBool::new(false);
        let bell = Arc::new(Modelled { flag, lock: Mutex::new(()), roused: Condvar::new() });
        let brought = Arc::new(AtomicU32::new(0));
        let (its_bell, its_brought) = (bell.clone(), brought.clone());
        let bringer = loom::thread::spawn(move || {
            its_brought.store(1, Ordering::Release);
            its_bell.fence();
            wake(&*its_bell);
        });
        // A sleep that nobody ends is a deadlock, which the model reports.
        while brought.load(Ordering::Acquire) == 0 {
            sleep(&*bell, || brought.load(Ordering::Acquire) == 1);
        }
        bringer.join().unwrap();
    });
}
