//! How a rank sleeps, and how others wake it, with one flag.
//!
//! A rank that would sleep raises its flag, looks once more, and sleeps while the flag is up; a rank that has moved
//! something looks afterwards whether the other one's flag is up, and takes it down and wakes it. Between its two steps
//! each puts a full fence, so that at least one of them sees what the other did (`bell/model.rs` explores this).

#[cfg(test)]
mod model;

/// A flag that one rank raises and others take down.
pub(crate) trait Bell {
    /// Sets the flag, in no order with anything.
    fn set(&self, up: bool);
    /// Reads the flag, in no order with anything.
    fn is_up(&self) -> bool;
    /// Takes the flag down, and says whether it was up.
    fn take_down(&self) -> bool;
    /// A fence that orders everything before it before everything after it.
    fn fence(&self);
    /// Sleeps while the flag is up, or less long.
    fn doze(&self);
    /// Ends a doze.
    fn rouse(&self);
}

/// Sleeps until it is woken, or as long as a doze may take, unless there is something to do.
pub(crate) fn sleep(bell: &impl Bell, ready: impl FnOnce() -> bool) {
    bell.set(true);
    bell.fence();
    if !ready() {
        bell.doze();
    }
    bell.set(false);
}

/// Wakes the rank behind the bell if it sleeps or is about to. The caller has put a fence after what it is to see.
#[inline]
pub(crate) fn wake(bell: &impl Bell) {
    if bell.is_up() && bell.take_down() {
        bell.rouse();
    }
}
