//! The suite over the memory store, and a look at whether the suite itself is whole.

use super::*;
use crate::{MemoryStore, Timestamp};

/// The memory store, which has nothing to reopen from.
struct MemoryFixture {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
}

fn fixture() -> MemoryFixture {
    let clock = Arc::new(ManualClock::new(Timestamp(0)));
    let store = Arc::new(MemoryStore::new(Arc::<ManualClock>::clone(&clock)).with_triggers(triggers()));
    MemoryFixture { clock, store }
}

impl Fixture for MemoryFixture {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<MemoryStore>::clone(&self.store)
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn reopen(&mut self) {}
}

mod suite {
    crate::conformance_suite!(super::fixture);
}

#[test]
fn every_rule_is_in_the_suite() {
    let rules = [
        include_str!("rows.rs"),
        include_str!("reads.rs"),
        include_str!("changes.rs"),
        include_str!("costs.rs"),
        include_str!("layouts.rs"),
        include_str!("contradictions.rs"),
        include_str!("deletes.rs"),
        include_str!("filters.rs"),
        include_str!("namespaces.rs"),
        include_str!("versions.rs"),
        include_str!("tables.rs"),
    ];
    let suite = include_str!("../conformance.rs");
    for source in rules {
        for line in
            source.lines().filter_map(|line| line.strip_prefix("pub fn ").filter(|line| line.contains("(fixture")))
        {
            let name = line.split('(').next().unwrap();
            assert!(suite.contains(&format!("            {name}\n")), "{name} is not in the suite");
        }
    }
}
