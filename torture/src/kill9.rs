//! `kill9`: the daemon is killed at random moments under load, with flush and compaction going on; at times it starts with less memory
//! than its log was written with.

use std::path::Path;

use anyhow::{Result, ensure};
use basalt_engine::io::Rng as _;

use crate::campaign::Campaign;
use crate::cli::Bounds;
use crate::daemon::{MEMTABLES_BYTES, Program};

pub(crate) fn run(program: &Program, bounds: &Bounds, cycles: u64) -> Result<String> {
    let data = program.scratch().join("data");
    let mut campaign = Campaign::new(program, &data, bounds.seed);
    for _ in crate::verdict::rounds("kill9", cycles) {
        let is_large = campaign.rng.chance(1, 2);
        program.configure(if is_large { 64 * MEMTABLES_BYTES } else { MEMTABLES_BYTES }, "")?;
        let mut daemon = campaign.open()?;
        campaign.load(&mut daemon, |daemon, _| daemon.kill())?;
    }
    let figures = campaign.close()?;
    let (made, left) = files(&data)?;
    // A few rounds on a busy machine may be too short for a flush each.
    ensure!(
        cycles < 50 || made > cycles && left < made,
        "neither flush nor compaction went on: {left} of {made} files"
    );
    Ok(format!("{cycles} cycles, {figures}; {made} files written, {left} left by compactions"))
}

/// How many files were ever numbered, and how many are there.
fn files(data: &Path) -> Result<(u64, u64)> {
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(data)? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        let id = name.strip_prefix("sst-").and_then(|name| name.strip_suffix(".sst")?.parse::<u64>().ok());
        ids.extend(id);
    }
    Ok((ids.iter().copied().max().unwrap_or(0), ids.len() as u64))
}
