//! Random histories on HBase and the memory store side by side.

use std::time::Instant;

use anyhow::{Result, ensure};
use basalt_store::conformance::history::{Difference, Shared, run_shared};

use super::fixture::{HBaseFixture, MemoryFixture, Reopening};

/// Histories that share a table.
const GROUP: usize = 100;
/// Threads that ask; as many as the driver answers with.
const THREADS: usize = 8;
/// How many differences are told in full.
const TOLD_MAX: usize = 10;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) seed: u64,
    pub(super) count: usize,
    /// Steps of each history.
    pub(super) operations: usize,
    /// Histories more, through which HBase is ended and started again once.
    pub(super) restarts: usize,
}

/// Runs them all.
pub(super) fn run(asked: &Asked) -> Result<()> {
    let begun = Instant::now();
    let mut differences = Vec::new();
    let mut hbase = HBaseFixture::start("histories", Reopening::Regions)?;
    println!("{} histories of {} steps against HBase {}", asked.count, asked.operations, hbase.version);
    let mut done = 0;
    while done < asked.count {
        let count = GROUP.min(asked.count - done);
        let seed = asked.seed + done as u64;
        let shared = Shared { seed, count, operations: asked.operations, threads: THREADS, reopenings: 1 };
        let found = run_shared(&shared, &mut MemoryFixture::default(), &mut hbase);
        tell(&found);
        differences.extend(found);
        done += count;
        println!("{done} histories, {} differ, {:.0} s", differences.len(), begun.elapsed().as_secs_f64());
    }
    drop(hbase);
    if asked.restarts > 0 {
        let mut hbase = HBaseFixture::start("histories", Reopening::Process)?;
        let (seed, count, operations) = (asked.seed + asked.count as u64, asked.restarts, asked.operations);
        let shared = Shared { seed, count, operations, threads: THREADS, reopenings: asked.restarts };
        let found = run_shared(&shared, &mut MemoryFixture::default(), &mut hbase);
        tell(&found);
        differences.extend(found);
    }
    println!(
        "{} histories of {} steps, seeds {} to {}, and {} over {} restarts: {} differ; {:.0} s",
        asked.count,
        asked.operations,
        asked.seed,
        asked.seed + asked.count as u64 - 1,
        asked.restarts,
        asked.restarts,
        differences.len(),
        begun.elapsed().as_secs_f64()
    );
    ensure!(differences.is_empty(), "left is the memory store, right is HBase");
    Ok(())
}

fn tell(differences: &[Difference]) {
    let mut shortest: Vec<_> = differences.iter().collect();
    shortest.sort_by_key(|difference| difference.step);
    for difference in shortest.into_iter().take(TOLD_MAX) {
        println!("{difference}");
    }
}
