//! Who writes rows of series, so that one who takes series out knows when those are done who may have found them before.
//!
//! Writers are counted by turns. Who begins a turn waits until the writers of the one before are gone; those who come meanwhile are of the
//! new turn, so nobody waits for a writer, and writers wait for nobody.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts writers by turns.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// The turn. Sequentially consistent, as `inside`: a writer is counted and then looks at the turn again, who begins a turn changes it
    /// and then looks at the count, so one of them sees the other.
    turn: AtomicU64,
    /// Writers of the turn and of the one before it, by whether the turn is odd.
    inside: [AtomicU64; 2],
}

/// Held from before a series is looked up until the store has its row.
#[derive(Debug)]
#[must_use = "a writer that is not held is not waited for"]
pub struct Writing<'a> {
    of: &'a AtomicU64,
}

impl Gate {
    /// Counts a writer. *Cost*: two changes of memory that writers share, with the end.
    pub(super) fn enter(&self) -> Writing<'_> {
        loop {
            let turn = self.turn.load(Ordering::SeqCst);
            let of = self.of(turn);
            of.fetch_add(1, Ordering::SeqCst);
            let writing = Writing { of };
            if self.turn.load(Ordering::SeqCst) == turn {
                return writing;
            }
        }
    }

    /// Begins a turn. The writers of the one before the last are gone.
    pub(super) fn begin_turn(&self) {
        assert!(self.is_clear(), "BUG: a turn with writers of two before it");
        self.turn.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether those are gone that were writing when the turn began.
    pub(super) fn is_clear(&self) -> bool {
        self.of(self.turn.load(Ordering::SeqCst).wrapping_sub(1)).load(Ordering::SeqCst) == 0
    }

    const fn of(&self, turn: u64) -> &AtomicU64 {
        let [even, odd] = &self.inside;
        if turn.is_multiple_of(2) { even } else { odd }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.of.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_clear_of_those_before_it_and_waits_for_none_that_came_since() {
        let gate = Gate::default();
        let first = gate.enter();
        gate.begin_turn();
        assert!(!gate.is_clear());
        let second = gate.enter();
        assert!(!gate.is_clear());
        drop(first);
        assert!(gate.is_clear());
        gate.begin_turn();
        let _third = gate.enter();
        assert!(!gate.is_clear());
        drop(second);
        assert!(gate.is_clear());
    }
}
