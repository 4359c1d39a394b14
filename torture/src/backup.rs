//! `backup`: backups of a busy daemon that is killed then; what is restored is one prefix of what each writer sent, with
//! all that was acknowledged before the backup began. A backup with a damaged file is refused.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use basalt_engine::io::Rng as _;

use crate::campaign::Campaign;
use crate::check::verify_prefix;
use crate::cli::Bounds;
use crate::daemon::Program;
use crate::ledger::Ledger;

/// The exit code of damage.
const DAMAGED: i32 = 5;

pub(crate) fn run(program: &Program, bounds: &Bounds, rounds: u64) -> Result<String> {
    let data = program.scratch().join("data");
    let mut campaign = Campaign::new(program, &data, bounds.seed);
    let mut refused = 0;
    for round in crate::verdict::rounds("backup", rounds) {
        let mut daemon = campaign.open()?;
        let target = program.scratch().join(format!("backup{round}"));
        let url = format!("http://127.0.0.1:{}", daemon.port());
        let arguments = [OsStr::new("backup"), OsStr::new("--url"), OsStr::new(&url), target.as_os_str()];
        let (before, after) = campaign.load(&mut daemon, |daemon, epoch| {
            let before: Vec<u64> = epoch.ledgers.iter().map(Ledger::acknowledged).collect();
            let (code, said) = program.run(&arguments)?;
            ensure!(code == Some(0), "a backup ends with {code:?}: {said}");
            let after: Vec<u64> = epoch.ledgers.iter().map(Ledger::sent).collect();
            daemon.kill()?;
            Ok((before, after))
        })?;
        let restored = program.scratch().join(format!("restored{round}"));
        restore(program, &target, &restored, 0)?;
        let look = program.serve(&restored)?;
        verify_prefix(&look, campaign.epoch(), &before, &after).with_context(|| format!("round {round}"))?;
        drop(look);
        if let Some(file) = largest_file(&target)? {
            damage(&file, campaign.rng.next_u64())?;
            restore(program, &target, &program.scratch().join(format!("refused{round}")), DAMAGED)?;
            refused += 1;
        }
        for folder in [&target, &restored] {
            std::fs::remove_dir_all(folder)?;
        }
    }
    let figures = campaign.close()?;
    Ok(format!("{rounds} backups restored to the ledger, {refused} damaged ones refused; {figures}"))
}

fn restore(program: &Program, backup: &Path, target: &Path, expected: i32) -> Result<()> {
    let (code, said) = program.run(&[OsStr::new("restore"), backup.as_os_str(), target.as_os_str()])?;
    ensure!(code == Some(expected), "a restore ends with {code:?}, not {expected}: {said}");
    Ok(())
}

fn largest_file(folder: &Path) -> Result<Option<PathBuf>> {
    let files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let tables = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "sst"));
    Ok(tables.max_by_key(|path| path.metadata().map_or(0, |of| of.len())))
}

/// Flips a bit in a copy of a file that takes its place: the store itself has the original by another name.
fn damage(file: &Path, draw: u64) -> Result<()> {
    let mut bytes = std::fs::read(file)?;
    let at = usize::try_from(draw)? % bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << (draw % 8);
    }
    std::fs::remove_file(file)?;
    Ok(std::fs::write(file, bytes)?)
}
