//! Many histories in one table, each in rows of its own, in step with each other: they share the clock, and each flush,
//! compaction and change of settings is one for all. So a store whose compactions take long is asked of many histories
//! at the price of one.

use std::collections::BTreeMap;

use super::operation::{Generator, Operation};
use super::{Difference, Fixture, REOPEN_MS, all_of, perform, perform_on, table, words};
use crate::conformance::scene::NOW;
use crate::{ErrorKind, Store, TableDescriptor, Timestamp, TruncatedRegions};

/// How many of which histories.
#[derive(Debug, Clone)]
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
    /// Seeds of histories that take no part; the others are the same without them.
    pub without: Vec<u64>,
    /// The kind of error by which a store says that it answers no more: the run ends there.
    pub silence: ErrorKind,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Led {
    /// The first difference of each history that has one.
    pub differences: Vec<Difference>,
    /// Seeds of the histories whose question a store let go unanswered; where there is one, the run ended before its time.
    pub unanswered: Vec<u64>,
    /// What the whole table was asked when a store did not answer that.
    pub cut: Option<String>,
}

/// One history, and whether it still runs: it ends at its first difference.
struct History {
    seed: u64,
    prefix: String,
    generator: Generator,
    difference: Option<Difference>,
}

/// Leads both stores, which may hold nothing but the last run's table, through the histories, until their end or until
/// one of the stores answers no more.
pub fn run_shared(shared: &Shared, left: &mut dyn Fixture, right: &mut dyn Fixture) -> Led {
    let mut led: Vec<History> = (0..shared.count)
        .map(|index| {
            let (seed, prefix) = (shared.seed + index as u64, format!("h{index:04}/"));
            let generator = Generator::new(seed, NOW).with_prefix(prefix.clone());
            History { seed, prefix, generator, difference: None }
        })
        .filter(|history| !shared.without.contains(&history.seed))
        .collect();
    let cut = lead(shared, &mut led, left, right).err();
    let silence = vec![format!("{:?}", shared.silence)];
    let (unanswered, differences) = led
        .into_iter()
        .filter_map(|history| history.difference)
        .partition::<Vec<_>, _>(|one| one.left == silence || one.right == silence);
    Led { differences, unanswered: unanswered.into_iter().map(|one| one.seed).collect(), cut }
}

/// Every step.
///
/// # Errors
/// What the whole table was asked, or some rows, when a store did not answer.
fn lead(shared: &Shared, led: &mut [History], left: &mut dyn Fixture, right: &mut dyn Fixture) -> Result<(), String> {
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
            of_table(step, &Operation::Reopen, led, left, right)?;
            common.now += REOPEN_MS;
        } else if common.below(100) < 12 {
            let operation = common.next_of_table();
            of_table(step, &operation, led, left, right)?;
            if let Operation::Compact(compaction) = operation {
                // Past the tombstones that went, so that no server time meets them again.
                common.now += 1;
                if compaction == crate::Compaction::Major && common.below(2) == 0 {
                    alter(1 + u32::try_from(common.below(3)).unwrap(), left, right);
                }
            }
        } else {
            of_rows(step, common.now, shared.threads, led, [&*left.store(), &*right.store()]);
            let silence = [format!("{:?}", shared.silence)];
            let is_silent = |one: &Difference| one.left == silence || one.right == silence;
            if let Some(one) = led.iter().filter_map(|history| history.difference.as_ref()).find(|one| is_silent(one)) {
                return Err(one.to_string());
            }
        }
    }
    of_table(shared.operations, &Operation::Flush, led, left, right)
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
fn of_rows(step: usize, now: u64, threads: usize, led: &mut [History], stores: [&dyn Store; 2]) {
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
fn of_table(
    step: usize,
    operation: &Operation,
    led: &mut [History],
    left: &mut dyn Fixture,
    right: &mut dyn Fixture,
) -> Result<(), String> {
    let failed = |error: crate::Error| format!("step {step}, {operation:?}: {error}");
    perform(operation, left).and_then(|_| perform(operation, right)).map_err(failed)?;
    let (mut left, mut right) = (by_history(left).map_err(failed)?, by_history(right).map_err(failed)?);
    for history in led.iter_mut().filter(|history| history.difference.is_none()) {
        let [left, right] = [&mut left, &mut right].map(|all| all.remove(&history.prefix).unwrap_or_default());
        history.compare(step, operation, left, right);
    }
    Ok(())
}

/// Everything that a reader sees, by the history it is of.
fn by_history(fixture: &dyn Fixture) -> crate::Result<BTreeMap<String, Vec<String>>> {
    let mut all = BTreeMap::<String, Vec<String>>::new();
    for word in all_of(fixture)? {
        let prefix = word.split_inclusive('/').next().unwrap_or_default().to_owned();
        all.entry(prefix).or_default().push(word);
    }
    Ok(all)
}

impl History {
    fn compare(&mut self, step: usize, operation: &Operation, left: Vec<String>, right: Vec<String>) {
        if left != right {
            let operation = format!("{operation:?}");
            self.difference = Some(Difference { seed: self.seed, step, operation, left, right });
        }
    }
}
