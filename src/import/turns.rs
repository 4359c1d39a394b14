//! Turns: threads that work on blocks at the same time do some of it one after another, in the blocks' order.
//!
//! Of two points at one instant the later line wins, so blocks must reach the store in their order whatever is done
//! to them before. A turn that is dropped instead of passed breaks the row: all others are told that theirs never comes.

use std::sync::{Condvar, Mutex, PoisonError};

/// A row of turns, from 0.
#[derive(Debug)]
pub(super) struct Turns {
    /// Whose turn it is; none when the row is broken. The lowest rank: nothing is locked while it is held.
    next: Mutex<Option<u64>>,
    passed: Condvar,
}

/// The right to do what is done in order.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    of: &'a Turns,
    ticket: u64,
    is_done: bool,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { next: Mutex::new(Some(0)), passed: Condvar::new() }
    }

    /// Waits for a turn; `None` if it will not come.
    pub(super) fn take(&self, ticket: u64) -> Option<Turn<'_>> {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |next: &mut Option<u64>| next.is_some_and(|next| next < ticket);
        let next = self.passed.wait_while(next, waits).unwrap_or_else(PoisonError::into_inner);
        next.map(|_| Turn { of: self, ticket, is_done: false })
    }

    /// Whether all turns before this one are over.
    pub(super) fn is_next(&self, ticket: u64) -> bool {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) == Some(ticket)
    }

    fn set(&self, next: Option<u64>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = next;
        self.passed.notify_all();
    }
}

impl Turn<'_> {
    /// Lets the next one go on.
    pub(super) fn pass(mut self) {
        self.is_done = true;
        self.of.set(Some(self.ticket + 1));
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.of.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_order_and_a_dropped_one_ends_them() {
        let (turns, order) = (Turns::new(), Mutex::new(Vec::new()));
        let work = &|ticket| {
            let Some(turn) = turns.take(ticket) else { return };
            order.lock().unwrap().push(ticket);
            if ticket < 10 {
                turn.pass();
            }
        };
        std::thread::scope(|scope| {
            (0..20).rev().for_each(|ticket| drop(scope.spawn(move || work(ticket))));
        });
        assert_eq!(order.into_inner().unwrap(), (0..=10).collect::<Vec<_>>());
    }
}
