//! Random histories on HBase and the memory store side by side.

use std::time::Instant;

use anyhow::{Result, ensure};
use basalt_store::conformance::history::{Difference, Led, Shared, run_shared};

use super::driver::NO_ANSWER;
use super::fixture::{HBaseFixture, MemoryFixture, Reopening};

/// Histories that share a table.
const GROUP: usize = 100;
/// Threads that ask; as many as the driver answers with.
const THREADS: usize = 32;
/// How many differences are told in full.
const TOLD_MAX: usize = 20;

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
    let mut found = Led::default();
    let mut hbase = HBaseFixture::start("histories", Reopening::Regions)?;
    on(&mut hbase, asked, &mut found)?;
    drop(hbase);
    if asked.restarts > 0 {
        let mut hbase = HBaseFixture::start("histories", Reopening::Process)?;
        let seed = asked.seed + asked.count as u64;
        group(asked, seed, asked.restarts, asked.restarts, &mut hbase, &mut found)?;
    }
    println!(
        "{} histories of {} steps, seeds {} to {}, and {} over {} restarts: {} differ, {} unanswered {:?}; {:.0} s",
        asked.count,
        asked.operations,
        asked.seed,
        (asked.seed + asked.count as u64).saturating_sub(1),
        asked.restarts,
        asked.restarts,
        found.differences.len(),
        found.unanswered.len(),
        found.unanswered,
        begun.elapsed().as_secs_f64()
    );
    ensure!(found.differences.is_empty(), "left is the memory store, right is HBase");
    ensure!(found.unanswered.is_empty(), "HBase did not answer all of them");
    Ok(())
}

/// Asks an HBase that runs, without restarts.
pub(super) fn on(hbase: &mut HBaseFixture, asked: &Asked, found: &mut Led) -> Result<()> {
    let begun = Instant::now();
    println!("{} histories of {} steps against HBase {}", asked.count, asked.operations, hbase.version);
    let mut done = 0;
    while done < asked.count {
        let count = GROUP.min(asked.count - done);
        group(asked, asked.seed + done as u64, count, 1, hbase, found)?;
        done += count;
        println!(
            "{done} histories, {} differ, {} unanswered, {:.0} s",
            found.differences.len(),
            found.unanswered.len(),
            begun.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// Some histories that share a table. Where HBase stops answering, it begins anew without the histories that it left
/// unanswered, since a scan of its that never ends holds the region for ever.
fn group(
    asked: &Asked,
    seed: u64,
    count: usize,
    reopenings: usize,
    hbase: &mut HBaseFixture,
    found: &mut Led,
) -> Result<()> {
    let (operations, silence) = (asked.operations, NO_ANSWER);
    let mut shared = Shared { seed, count, operations, threads: THREADS, reopenings, without: Vec::new(), silence };
    loop {
        let led = run_shared(&shared, &mut MemoryFixture::default(), hbase);
        let Some(cut) = led.cut else {
            tell(&led.differences);
            found.differences.extend(led.differences);
            return Ok(());
        };
        println!("{cut}");
        tell(&led.differences);
        ensure!(!led.unanswered.is_empty(), "HBase did not answer what is upon the whole table");
        found.unanswered.extend(&led.unanswered);
        shared.without.extend(led.unanswered);
        hbase.renew()?;
    }
}

fn tell(differences: &[Difference]) {
    let mut shortest: Vec<_> = differences.iter().collect();
    shortest.sort_by_key(|difference| difference.step);
    for difference in shortest.into_iter().take(TOLD_MAX) {
        println!("{difference}");
    }
}
