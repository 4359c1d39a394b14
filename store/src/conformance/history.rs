//! Random histories: one seed is one sequence of changes, reads, flushes, compactions and reopenings, led through two
//! stores side by side. Every answer must be the same word for word, times included (rule S-MAP-1).
//!
//! Histories keep off what HBase itself leaves to the moment of a compaction, or else two right stores would differ:
//! exact deletes and time ranges only where no version is ever in excess, puts below old tombstones only where those
//! go at the same step in both, and no raw reads. A clock never goes back in them. The suite's named rules cover these.
//! Those that are [shared](Shared) with HBase keep off its own faults as well, each of which is a rule of the suite.

mod operation;
mod shared;

use std::fmt;

use bytes::Bytes;

pub use self::shared::{Led, Shared, run_shared};

use self::operation::{Edit, Generator, Operation, Target};
use super::Fixture;
use super::scene::{NOW, change, told};
use crate::{
    Append, CheckAndMutate, Compaction, Durability, FamilyDescriptor, Increment, KeepDeletedCells, MutationBatch,
    Result, RowBatch, Scan, Store, TableDescriptor, TableName, Timestamp,
};

/// How far the clock moves while a store is closed: further than a store may reserve server times ahead.
const REOPEN_MS: u64 = 10_000;

/// Where two stores first answered differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The history's seed.
    pub seed: u64,
    /// Index of the operation, counted from 0; the history ran through all before it.
    pub step: usize,
    /// The operation.
    pub operation: String,
    /// What the first store answered.
    pub left: Vec<String>,
    /// What the second store answered.
    pub right: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, step, operation, left, right } = self;
        write!(f, "seed {seed}, step {step}, {operation}:")?;
        let (only_left, only_right) = (missing(left, right), missing(right, left));
        write!(f, " of {} and {} words, only left {only_left:?}, only right {only_right:?}", left.len(), right.len())
    }
}

impl std::error::Error for Difference {}

/// The words of `of` that `other` lacks.
fn missing<'a>(of: &'a [String], other: &[String]) -> Vec<&'a str> {
    of.iter().filter(|word| !other.contains(word)).map(String::as_str).collect()
}

/// Leads two empty stores through the history of `seed`, `operations` long, and compares everything they answer.
///
/// # Errors
/// The first difference. The same seed and length find it again.
pub fn run_history(
    seed: u64,
    operations: usize,
    left: &mut dyn Fixture,
    right: &mut dyn Fixture,
) -> std::result::Result<(), Difference> {
    let mut generator = Generator::new(seed, NOW);
    let compare = |step, operation: String, left: Vec<String>, right: Vec<String>| {
        if left == right { Ok(()) } else { Err(Difference { seed, step, operation, left, right }) }
    };
    for fixture in [&*left, &*right] {
        fixture.clock().set(Timestamp(NOW));
        fixture.store().create_table(descriptor(), &["r3".into()]).unwrap();
    }
    for step in 0..operations {
        let operation = generator.next();
        for fixture in [&*left, &*right] {
            fixture.clock().set(Timestamp(generator.now));
        }
        let [a, b] = [perform(&operation, left), perform(&operation, right)].map(words);
        compare(step, format!("{operation:?}"), a, b)?;
        match operation {
            Operation::Reopen => generator.now += REOPEN_MS,
            // Past the tombstones that went, so that no server time meets them again.
            Operation::Compact(_) => generator.now += 1,
            _ => continue,
        }
        compare(step, format!("everything after {operation:?}"), everything(left), everything(right))?;
    }
    compare(operations, "everything at the end".to_owned(), everything(left), everything(right))
}

/// An answer, or the kind of its error.
fn words(answer: Result<Vec<String>>) -> Vec<String> {
    answer.unwrap_or_else(|error| vec![format!("{:?}", error.kind())])
}

/// Families `a`: all versions, `k`: deleted cells kept, `n`: two versions and the new version behaviour, `t`: a minute's
/// TTL, `v`: one version.
fn descriptor() -> TableDescriptor {
    let all = i32::MAX.unsigned_abs();
    let families = vec![
        FamilyDescriptor::new("a").with_versions(all),
        FamilyDescriptor { keep_deleted: KeepDeletedCells::True, ..FamilyDescriptor::new("k").with_versions(all) },
        FamilyDescriptor { new_version_behavior: true, ..FamilyDescriptor::new("n").with_versions(2) },
        FamilyDescriptor::new("t").with_versions(all).with_ttl(60),
        FamilyDescriptor::new("v"),
    ];
    TableDescriptor::new(table(), families)
}

fn table() -> TableName {
    "history".parse().unwrap()
}

fn everything(fixture: &dyn Fixture) -> Vec<String> {
    words(all_of(fixture))
}

fn all_of(fixture: &dyn Fixture) -> Result<Vec<String>> {
    scan(&*fixture.store(), Scan { versions: u32::MAX, ..Scan::all() })
}

fn scan(store: &dyn Store, scan: Scan) -> Result<Vec<String>> {
    let mut scanner = store.scan(&table(), scan)?;
    let batches: Vec<RowBatch> = std::iter::from_fn(|| scanner.next_wait()).collect::<Result<_>>()?;
    Ok(batches.iter().flat_map(|batch| told(batch, true)).collect())
}

/// What a store answers to an operation.
fn perform(operation: &Operation, fixture: &mut dyn Fixture) -> Result<Vec<String>> {
    if let Operation::Reopen = operation {
        fixture.reopen();
        return Ok(Vec::new());
    }
    perform_on(operation, &*fixture.store())
}

/// [`perform`] of what needs no fixture.
fn perform_on(operation: &Operation, store: &dyn Store) -> Result<Vec<String>> {
    let table = table();
    Ok(match operation {
        Operation::Apply(edits) => {
            let applied = store.apply(&table, batch(edits)?).wait()?;
            applied.failed.iter().map(|failure| format!("{} {:?}", failure.row, failure.error.kind())).collect()
        }
        Operation::Increment(target, amount) => {
            let (row, family, qualifier) = target.bytes();
            let increment = Increment { row, family, qualifier, amount: *amount, durability: Durability::Os };
            vec![store.increment(&table, increment).wait()?.to_string()]
        }
        Operation::Append(target, value) => {
            let ((row, family, qualifier), value) = (target.bytes(), Bytes::copy_from_slice(value.as_bytes()));
            let append = Append { row, family, qualifier, value, durability: Durability::Os };
            vec![store.append(&table, append).wait()?.escape_ascii().to_string()]
        }
        Operation::Check { target, comparison, expected, edits } => {
            let (row, family, qualifier) = target.bytes();
            let expected = expected.as_ref().map(|value| Bytes::copy_from_slice(value.as_bytes()));
            let (comparison, mutation) = (*comparison, batch(edits)?);
            let check = CheckAndMutate { row, family, qualifier, comparison, expected, mutation };
            vec![store.check_and_mutate(&table, check).wait()?.to_string()]
        }
        Operation::Get(get) => told(&store.get(&table, get.clone()).wait()?, true),
        Operation::Scan(asked) => scan(store, asked.clone())?,
        Operation::Flush => store.flush(&table).map(|()| Vec::new())?,
        Operation::Compact(compaction) => {
            // A major compaction takes memtables in: whether it would of itself is the store's affair.
            if *compaction == Compaction::Major {
                store.flush(&table)?;
            }
            store.compact(&table, *compaction).map(|()| Vec::new())?
        }
        Operation::Reopen => Vec::new(),
    })
}

fn batch(edits: &[Edit]) -> Result<MutationBatch> {
    let mut batch = MutationBatch::new(Durability::Os);
    for Edit { target: Target { row, column }, kind, time, value } in edits {
        change(&mut batch, *kind, row.as_bytes(), column, *time, value.as_bytes())?;
    }
    Ok(batch)
}

#[cfg(test)]
mod tests;
