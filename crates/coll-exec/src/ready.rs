//! A set of tasks as bits, which gives each its turn: what is put back comes after all others.

/// Tasks `0..tasks`, of which some are in the set.
pub(crate) struct Ready {
    words: Vec<u64>,
    /// The search for the next one starts here.
    next: usize,
}

impl Ready {
    /// An empty set.
    pub(crate) fn new(tasks: usize) -> Ready {
        Ready { words: vec![0; tasks.div_ceil(64)], next: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.next = 0;
    }

    #[inline]
    pub(crate) fn insert(&mut self, task: u32) {
        self.words[task as usize / 64] |= 1 << (task % 64);
    }

    #[inline]
    pub(crate) fn remove(&mut self, task: u32) {
        self.words[task as usize / 64] &= !(1 << (task % 64));
    }

    /// Takes out the next one after that which was taken out last, and the first after the last.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let task = self.find(self.next).or_else(|| self.find(0))?;
        self.next = task + 1;
        self.words[task / 64] &= !(1 << (task % 64));
        Some(task as u32)
    }

    /// The first one from `from` on.
    #[inline]
    fn find(&self, from: usize) -> Option<usize> {
        let mut mask = !0 << (from % 64);
        for (at, word) in self.words.iter().enumerate().skip(from / 64) {
            let word = word & mask;
            if word != 0 {
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
            mask = !0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Ready;

    #[test]
    fn each_has_its_turn() {
        for tasks in [1, 2, 63, 64, 65, 200] {
            let mut ready = Ready::new(tasks);
            assert_eq!(ready.pop(), None);
            (0..tasks as u32).for_each(|task| ready.insert(task));
            for round in 0..3 * tasks as u32 {
                let task = ready.pop().unwrap();
                assert_eq!(task, round % tasks as u32);
                ready.insert(task);
            }
            ready.remove(0);
            let left: Vec<u32> = std::iter::from_fn(|| ready.pop()).collect();
            assert_eq!(left, (1..tasks as u32).collect::<Vec<_>>());
            ready.insert(tasks as u32 - 1);
            ready.clear();
            assert_eq!(ready.pop(), None);
        }
    }
}
