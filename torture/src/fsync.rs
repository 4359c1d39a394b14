//! `fsync` and `io-error`: a failed sync is final, a failed write loses nothing.
//!
//! A library of ours fails one sync, or every one from then on, or writes. After a failed sync the daemon ends within a
//! second, no request sent after the failure is acknowledged (but for the moment in which the failure of a table's file
//! is on its way to the log, which is whole), and the file is never synced again: the kernel may count
//! its pages as clean, so that a second sync would succeed over lost data. The kernel's own way is tried too: ext4 on an
//! image that lies on a full tmpfs takes writes and fails their sync.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use basalt_engine::io::Rng as _;

use crate::campaign::Campaign;
use crate::cli::Bounds;
use crate::daemon::{Daemon, Program};
use crate::disk::Disk;
use crate::fault::{Failing, Faults};
use crate::ledger::now_ns;

/// Calls that are let through at most before one fails.
const CALLS_MAX: u64 = 60;
/// Room of the image: more than a store begins with, less than it wants.
const THIN_MIB: u64 = 48;

/// Failed syncs.
pub(crate) fn syncs(program: &mut Program, bounds: &Bounds, runs: u64) -> Result<String> {
    let faults = Faults::under(program)?;
    let data = program.scratch().join("data");
    let mut campaign = Campaign::new(program, &data, bounds.seed);
    let mut longest = Duration::ZERO;
    for run in crate::verdict::rounds("fsync", runs) {
        let mut daemon = campaign.open()?;
        let failing = if run % 2 == 0 { Failing::NextSync } else { Failing::EverySync };
        let after_calls = i64::try_from(campaign.rng.below(CALLS_MAX))?;
        let ended = campaign.load(&mut daemon, |daemon, _| {
            faults.set(failing, after_calls)?;
            let status = daemon.ends_within(bounds.ends_within + Duration::from_secs(5));
            let ended_ns = now_ns();
            let failed_ns = faults.failed_at_ns()?.context("no sync failed")?;
            let status = status.with_context(|| format!("it goes on after a failed sync: {}", daemon.told()))?;
            ensure!(!status.success(), "it ends as if nothing had been");
            let retried = faults.retried()?;
            ensure!(retried == 0, "a sync was tried again: {}; {}", faults.failed_file(&data)?, daemon.told());
            Ok((failed_ns, Duration::from_nanos(ended_ns.saturating_sub(failed_ns))))
        });
        let (failed_ns, took) = ended.with_context(|| format!("run {run}"))?;
        ensure!(took <= bounds.ends_within, "run {run}: it ended {} ms after the failure", took.as_millis());
        let acknowledged_of = campaign.epoch().acknowledged_of_ns();
        let settled_ns = failed_ns + u64::try_from(bounds.settles_within.as_nanos())?;
        ensure!(acknowledged_of <= settled_ns, "run {run}: a request of after the failure was acknowledged");
        longest = longest.max(took);
        faults.set(Failing::Nothing, 0)?;
    }
    let figures = campaign.close()?;
    Ok(format!("{runs} failed syncs, none tried again, ended within {} ms; {figures}", longest.as_millis()))
}

/// Failed writes: the daemon may go on or end, and is killed in the former case.
pub(crate) fn writes(program: &mut Program, bounds: &Bounds, runs: u64) -> Result<String> {
    let faults = Faults::under(program)?;
    let data = program.scratch().join("data");
    let mut campaign = Campaign::new(program, &data, bounds.seed);
    let mut ended = 0;
    for run in crate::verdict::rounds("io-error", runs) {
        let mut daemon = campaign.open()?;
        let failing = if run % 2 == 0 { Failing::NextWrite } else { Failing::EveryWrite };
        let after_calls = i64::try_from(campaign.rng.below(CALLS_MAX))?;
        let by_itself = campaign.load(&mut daemon, |daemon, _| {
            faults.set(failing, after_calls)?;
            end(daemon)
        });
        ended += u64::from(by_itself.with_context(|| format!("run {run}"))?);
        faults.set(Failing::Nothing, 0)?;
    }
    let figures = campaign.close()?;
    Ok(format!("{runs} failed writes, {ended} ended the daemon; {figures}"))
}

/// Waits a while for its end, then kills it; answers whether it ended by itself.
fn end(daemon: &mut Daemon) -> Result<bool> {
    let status = daemon.ends_within(Duration::from_secs(2));
    if status.is_none() {
        daemon.kill()?;
    }
    Ok(status.is_some())
}

/// The kernel's own failed sync.
pub(crate) fn thin(program: &Program, bounds: &Bounds, runs: u64) -> Result<String> {
    let mut ended = 0;
    let mut figures = String::new();
    for run in crate::verdict::rounds("thin", runs) {
        let memory = Disk::memory(&program.scratch().join("thin"), THIN_MIB)?;
        let disk = Disk::image("ext4", memory.path())?;
        let data = disk.path().join("data");
        let mut campaign = Campaign::new(program, &data, bounds.seed + run);
        let mut daemon = campaign.open()?;
        let by_itself = campaign.load(&mut daemon, |daemon, _| {
            memory.fill(0)?;
            let status = daemon.ends_within(Duration::from_secs(20));
            if status.is_none() {
                daemon.kill()?;
            }
            Ok(status.is_some())
        });
        ended += u64::from(by_itself.with_context(|| format!("run {run}"))?);
        // Writers of a dead daemon are gone; the image gets its room back and its journal is replayed.
        thread::yield_now();
        disk.unmount()?;
        memory.free()?;
        disk.mount()?;
        figures = campaign.close().with_context(|| format!("run {run}"))?;
        disk.unmount()?;
    }
    Ok(format!("{runs} images without room, {ended} ended the daemon; the last: {figures}"))
}
