//! What the operating system says of this process and its files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The kernel counts CPU time in ticks of this many to a second (`USER_HZ`, 100 on every Linux).
const TICKS_A_SECOND: f64 = 100.0;

/// CPU seconds of all threads so far.
pub(crate) fn cpu_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold spaces; user and system time are the 14th and 15th field.
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let ticks = |at: usize| -> Result<f64> { Ok(fields.split_whitespace().nth(at).context("a field")?.parse()?) };
    Ok((ticks(11)? + ticks(12)?) / TICKS_A_SECOND)
}

/// The largest memory this process had, in MiB.
pub(crate) fn peak_mib() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}

/// Bytes of the files below a folder that `counts`.
pub(crate) fn bytes(dir: &Path, counts: &dyn Fn(&Path) -> bool) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            sum += bytes(&path, counts)?;
        } else if counts(&path) {
            sum += fs::metadata(&path)?.len();
        }
    }
    Ok(sum)
}
