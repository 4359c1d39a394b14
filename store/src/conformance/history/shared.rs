//! Many histories in one table, each in rows of its own, in step with each other: they share the clock, and each flush,
//! compaction and change of settings is one for all. So a store whose compactions take long is asked of many histories
//! at the price of one.

use std::collections::BTreeMap;

use super::operation::{Generator, Operation};
use super::{Difference, Fixture, REOPEN_MS, everything, perform, perform_on, table, words};
use crate::conformance::scene::NOW;
use crate::{Store, TableDescriptor, Timestamp, TruncatedRegions};

/// How many of which histories.
#[derive(Debug, Clone, Copy)]
pub struct Shared {
    /// Seed of what the histories share; theirs are this one and those that follow.
    pub seed: u64,
    /// How many histories, at most 10,000.
    pub count: usize,
    /// Steps: each an operation in every history, or one upon the table.
    pub operations: usize,
    /// How many threads ask.
    pub threads: usize,
    /// At how many of the steps, spread evenly, both stores are closed and opened again.
    pub reopenings: usize,
}

/// One history, and whether it still runs: it ends at its first difference.
struct Led {
    seed: u64,
    prefix: String,
    generator: Generator,
    difference: Option<Difference>,
}

/// Leads both stores, which may hold nothing but the last run's table, through the histories; the first difference of
/// each is told.
pub fn run_shared(shared: &Shared, left: &mut dyn Fixture, right: &mut dyn Fixture) -> Vec<Difference> {
    let mut led: Vec<Led> = (0..shared.count)
        .map(|index| {
            let (seed, prefix) = (shared.seed + index as u64, format!("h{index:04}/"));
            let generator = Generator::new(seed, NOW).with_prefix(prefix.clone());
            Led { seed, prefix, generator, difference: None }
        })
        .collect();
    let middle = format!("h{:04}/r3", shared.count / 2);
    for fixture in [&*left, &*right] {
        fixture.clock().set(Timestamp(NOW));
        let store = fixture.store();
        if store.truncate_table(&table(), TruncatedRegions::Kept).is_err() {
            store.create_table(descriptor(), &[middle.clone().into()]).unwrap();
        }
        store.alter_table(descriptor()).unwrap();
    }
    let mut common = Generator::new(!shared.seed, NOW);
    let reopen_every = shared.operations.checked_div(shared.reopenings).unwrap_or(usize::MAX).max(1);
    for step in 0..shared.operations {
        common.tick();
        fixture_clocks(left, right, common.now);
        if step % reopen_every == reopen_every - 1 {
            of_table(step, &Operation::Reopen, &mut led, left, right);
            common.now += REOPEN_MS;
        } else if common.below(100) < 12 {
            let operation = common.next_of_table();
            of_table(step, &operation, &mut led, left, right);
            if let Operation::Compact(compaction) = operation {
                // Past the tombstones that went, so that no server time meets them again.
                common.now += 1;
                if compaction == crate::Compaction::Major && common.below(2) == 0 {
                    alter(1 + u32::try_from(common.below(3)).unwrap(), left, right);
                }
            }
        } else {
            of_rows(step, common.now, shared.threads, &mut led, [&*left.store(), &*right.store()]);
        }
    }
    of_table(shared.operations, &Operation::Flush, &mut led, left, right);
    led.into_iter().filter_map(|history| history.difference).collect()
}

/// The histories' families, but for the one that HBase itself cannot keep.
fn descriptor() -> TableDescriptor {
    let mut table = super::descriptor();
    table.families.retain(|family| !family.new_version_behavior);
    table
}

fn fixture_clocks(left: &dyn Fixture, right: &dyn Fixture, now: u64) {
    for fixture in [left, right] {
        fixture.clock().set(Timestamp(now));
    }
}

/// Sets VERSIONS of the family that counts them, just after a major compaction: what was in excess is then gone in
/// every store, and none can come back.
fn alter(versions: u32, left: &dyn Fixture, right: &dyn Fixture) {
    let TableDescriptor { mut families, .. } = descriptor();
    families.iter_mut().filter(|family| family.name == "v").for_each(|family| family.versions = versions);
    for fixture in [left, right] {
        fixture.store().alter_table(TableDescriptor::new(table(), families.clone())).unwrap();
    }
}

/// One operation in each history.
fn of_rows(step: usize, now: u64, threads: usize, led: &mut [Led], stores: [&dyn Store; 2]) {
    let share = led.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for led in led.chunks_mut(share) {
            scope.spawn(move || {
                for history in led.iter_mut().filter(|history| history.difference.is_none()) {
                    history.generator.now = now;
                    let operation = history.generator.next_of_rows();
                    let [left, right] = stores.map(|store| words(perform_on(&operation, store)));
                    history.compare(step, &operation, left, right);
                }
            });
        }
    });
}

/// One operation upon the table, and then all that each history has there.
fn of_table(step: usize, operation: &Operation, led: &mut [Led], left: &mut dyn Fixture, right: &mut dyn Fixture) {
    perform(operation, left).unwrap();
    perform(operation, right).unwrap();
    let [mut left, mut right] = [&*left, &*right].map(by_history);
    for history in led.iter_mut().filter(|history| history.difference.is_none()) {
        let [left, right] = [&mut left, &mut right].map(|all| all.remove(&history.prefix).unwrap_or_default());
        history.compare(step, operation, left, right);
    }
}

/// Everything that a reader sees, by the history it is of.
fn by_history(fixture: &dyn Fixture) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::<String, Vec<String>>::new();
    for word in everything(fixture) {
        let prefix = word.split_inclusive('/').next().unwrap_or_default().to_owned();
        all.entry(prefix).or_default().push(word);
    }
    all
}

impl Led {
    fn compare(&mut self, step: usize, operation: &Operation, left: Vec<String>, right: Vec<String>) {
        if left != right {
            let operation = format!("{operation:?}");
            self.difference = Some(Difference { seed: self.seed, step, operation, left, right });
        }
    }
}
