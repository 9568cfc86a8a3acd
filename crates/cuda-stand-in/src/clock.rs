//! Vector clocks: what has happened before what (Lamport 1978, Fidge 1988, Mattern 1989). Whoever does things one after the
//! other is an actor: a stream, a thread of the host, a branch of a graph.

/// A moment of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) actor: usize,
    pub(crate) time: u64,
}

/// For each actor, up to which moment of its it is known that all has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<u64>);

impl Clock {
    /// One step further of an actor.
    pub(crate) fn tick(&mut self, actor: usize) -> Epoch {
        if self.0.len() <= actor {
            self.0.resize(actor + 1, 0);
        }
        self.0[actor] += 1;
        Epoch { actor, time: self.0[actor] }
    }

    /// What the other knows is known here too.
    pub(crate) fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether that moment is known to have passed.
    pub(crate) fn covers(&self, epoch: Epoch) -> bool {
        self.0.get(epoch.actor).is_some_and(|&time| time >= epoch.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_known_to_those_who_were_told() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        let first = a.tick(0);
        assert!(a.covers(first) && !b.covers(first));
        b.join(&a);
        let second = a.tick(0);
        assert!(b.covers(first) && !b.covers(second));
        let other = b.tick(5);
        a.join(&b);
        assert!(a.covers(other) && a.covers(second));
    }
}
