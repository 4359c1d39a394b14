use std::sync::Arc;

use super::super::Fixture;
use super::*;
use crate::{ManualClock, MemoryStore, Store, Timestamp};

/// The memory store, and what it gets wrong on purpose.
struct Flawed {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    forgets: bool,
}

impl Flawed {
    fn new(forgets: bool) -> Self {
        let clock = Arc::new(ManualClock::default());
        Self { store: Arc::new(MemoryStore::new(Arc::<ManualClock>::clone(&clock))), clock, forgets }
    }
}

impl Fixture for Flawed {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<MemoryStore>::clone(&self.store)
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn reopen(&mut self) {
        if self.forgets {
            let mut batch = MutationBatch::default();
            batch.row(b"r1").unwrap().delete_family(b"a", Some(Timestamp(u64::MAX >> 2))).unwrap();
            self.store.apply(&table(), batch).wait().unwrap();
        }
    }
}

#[test]
fn a_store_is_like_itself() {
    for seed in 0..8 {
        run_history(seed, 400, &mut Flawed::new(false), &mut Flawed::new(false)).unwrap();
    }
}

#[test]
fn a_store_that_loses_a_row_is_found_out() {
    let difference = run_history(1, 400, &mut Flawed::new(false), &mut Flawed::new(true)).unwrap_err();
    assert!(difference.operation.starts_with("everything after "), "{difference}");
    assert!(missing(&difference.left, &difference.right).iter().all(|word| word.starts_with("r1 a:")), "{difference}");
    let again = run_history(1, 400, &mut Flawed::new(false), &mut Flawed::new(true)).unwrap_err();
    assert_eq!(again, difference, "one seed, one history");
}

#[test]
fn histories_see_something() {
    let mut fixture = Flawed::new(false);
    run_history(3, 400, &mut fixture, &mut Flawed::new(false)).unwrap();
    let words = everything(&fixture);
    for family in ["a", "k", "t", "v"] {
        assert!(words.iter().any(|word| word.contains(&format!(" {family}:"))), "nothing of {family} is left");
    }
}
