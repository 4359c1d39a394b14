//! `power`: the file system under the daemon is switched off in the midst of the load.
//!
//! The kernel's own shutdown (`EXT4_IOC_SHUTDOWN`, `XFS_IOC_GOINGDOWN`, without a flush of the journal) forgets all that
//! was never synced, names too. The daemon meets an input/output error and must end by itself within a second; the file
//! system is mounted anew, and what was acknowledged must be there.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::campaign::Campaign;
use crate::cli::Bounds;
use crate::daemon::{Daemon, Program};
use crate::disk::Disk;

mod switch;

pub(crate) fn run(program: &Program, bounds: &Bounds, kind: &str, cycles: u64) -> Result<String> {
    let disk = Disk::image(kind, program.scratch())?;
    let data = disk.path().join("data");
    let mut campaign = Campaign::new(program, &data, bounds.seed);
    let mut longest = Duration::ZERO;
    for cycle in crate::verdict::rounds("power", cycles) {
        let mut daemon = campaign.open()?;
        let ended = campaign.load(&mut daemon, |daemon, _| cut(daemon, &disk, bounds));
        longest = longest.max(ended.with_context(|| format!("cycle {cycle}"))?);
        disk.unmount()?;
        disk.mount()?;
    }
    let figures = campaign.close()?;
    disk.unmount()?;
    Ok(format!("{cycles} cycles, {figures}; the daemon ended within {} ms", longest.as_millis()))
}

/// Switches the power off; answers how long the daemon went on.
fn cut(daemon: &mut Daemon, disk: &Disk, bounds: &Bounds) -> Result<Duration> {
    switch::off(disk.path())?;
    let off = Instant::now();
    let status = daemon.ends_within(bounds.ends_within);
    let took = off.elapsed();
    if status.is_none() {
        daemon.kill()?;
    }
    let status = status.with_context(|| format!("it goes on after {} ms: {}", took.as_millis(), daemon.told()))?;
    ensure!(!status.success(), "it ends as if nothing had been");
    Ok(took)
}
