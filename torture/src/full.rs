//! `full`: the disk is full, in turn by a neighbour and by ourselves.
//!
//! Writes are refused with 503 and `Retry-After`, reads go on, the process lives, and when there is room it resumes by
//! itself. Then it is killed, and what was acknowledged must be there.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::check::{count, verify};
use crate::cli::Bounds;
use crate::daemon::{Daemon, MEMTABLES_BYTES, Program, pause};
use crate::disk::Disk;
use crate::ledger::{Epoch, TELNET_WRITERS};
use crate::load::Load;

const DISK_MIB: u64 = 64;
/// What a neighbour leaves when the daemon is to fill the rest by itself.
const LEFT_BYTES: u64 = 4 << 20;
/// How long a disk that is being filled may last.
const FULL_WITHIN: Duration = Duration::from_mins(2);

pub(crate) fn run(program: &Program, bounds: &Bounds, rounds: u64) -> Result<String> {
    program.configure(MEMTABLES_BYTES, "reserve_bytes = 8388608\n")?;
    let (mut acknowledged, mut refused, mut longest) = (0, 0, Duration::ZERO);
    for round in crate::verdict::rounds("full", rounds) {
        let epoch = Epoch::new(format!("full{round}"));
        let by_us = round % 2 == 1;
        let told = one(program, bounds, &epoch, by_us);
        let (refusals, resumed) = told.with_context(|| format!("round {round}, by ourselves: {by_us}"))?;
        acknowledged += epoch.acknowledged();
        refused += refusals;
        longest = longest.max(resumed);
    }
    Ok(format!(
        "{rounds} rounds, {acknowledged} points acknowledged, 0 lost, {refused} requests refused; resumed within {} ms",
        longest.as_millis()
    ))
}

/// One round on a disk of its own; answers the refusals, and how soon it resumed.
fn one(program: &Program, bounds: &Bounds, epoch: &Epoch, by_us: bool) -> Result<(u64, Duration)> {
    let disk = Disk::memory(&program.scratch().join("full"), DISK_MIB)?;
    let data = disk.path().join("data");
    let mut daemon = program.serve(&data)?;
    let load = Load::new(daemon.port(), epoch);
    let resumed = thread::scope(|scope| {
        let writers = load.start(scope);
        let resumed = fill_and_free(&daemon, &disk, &load, by_us, bounds);
        load.stop.store(true, Ordering::Relaxed);
        let joined = Load::join(writers);
        resumed.and_then(|resumed| joined.map(|()| resumed))
    });
    let resumed = resumed.with_context(|| daemon.told())?;
    verify(&daemon, epoch)?;
    daemon.kill()?;
    let mut daemon = program.serve(&data)?;
    verify(&daemon, epoch)?;
    daemon.kill()?;
    disk.unmount()?;
    Ok((load.refused.load(Ordering::Relaxed), resumed))
}

fn fill_and_free(daemon: &Daemon, disk: &Disk, load: &Load<'_>, by_us: bool, bounds: &Bounds) -> Result<Duration> {
    until(FULL_WITHIN, "the first points", || load.epoch.acknowledged() > 1000)?;
    disk.fill(if by_us { LEFT_BYTES } else { 0 })?;
    // Most likely each writer is refused by then, and none acknowledged any more.
    until(FULL_WITHIN, "the disk to be full", || load.refused.load(Ordering::Relaxed) > 40)?;
    let writer = TELNET_WRITERS;
    let before = load.epoch.ledgers.get(1).map_or(0, crate::ledger::Ledger::acknowledged);
    let there = count(daemon, &load.epoch.metric(writer)).context("a read on a full disk")?;
    ensure!(there >= before, "a read on a full disk finds {there} of {before} points");
    disk.free()?;
    let freed = Instant::now();
    let stuck = load.epoch.acknowledged();
    // More than was perhaps on its way.
    until(bounds.resumes_within, "it to resume", || load.epoch.acknowledged() > stuck + 1000)?;
    Ok(freed.elapsed())
}

fn until(bound: Duration, what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !is_so() {
        ensure!(begun.elapsed() < bound, "waited {} s for {what}", bound.as_secs());
        pause(Duration::from_millis(2));
    }
    Ok(())
}
