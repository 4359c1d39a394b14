//! Bytes a point on disk, once each server has compacted what it holds and ended. What Basalt makes beforehand whatever it stores, the
//! reserve for a full disk, is told apart.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::data::Deal;
use crate::load::Door;
use crate::peer::{Kind, VICTORIA_METRICS};
use crate::server::Server;
use crate::{data, load};

/// What VictoriaMetrics calls the merges that run.
const MERGES: [&str; 2] = ["vm_active_force_merges", "vm_active_merges{"];
const MERGE_LOOK_EVERY: Duration = Duration::from_millis(200);
/// Looks without a merge until there comes none.
const IDLE_LOOKS: u32 = 5;
/// Ten minutes.
const MERGE_LOOKS_MAX: u32 = 3_000;

/// Stores `points`, compacts, stops, and divides what the folder holds; beside it, the bytes made beforehand.
pub(crate) fn bytes_a_point(kind: Kind, program: &Path, dir: &Path, points: usize) -> Result<(f64, u64)> {
    let server = Server::start(kind, program, dir)?;
    let deal = Deal { door: Door::Json, batch: 5000, connections: 4 };
    let (port, path) = kind.door(deal.door).context("no such door")?;
    load::send(port, path, &data::bodies(points, deal))?;
    let (bytes, beforehand) = compacted(kind, program, server)?;
    Ok((bytes as f64 / points as f64, beforehand))
}

/// Has everything merged, ends the server, and counts the bytes of its folder: what it holds, and what was made beforehand.
pub(crate) fn compacted(kind: Kind, program: &Path, server: Server) -> Result<(u64, u64)> {
    if kind.is_victoria_metrics() {
        flush()?;
        get("/internal/force_merge")?;
        merged()?;
    }
    let folder = server.stop()?;
    if kind.is_basalt() {
        let status = Command::new(program).arg("compact").arg("--data-dir").arg(&folder).status()?;
        ensure!(status.success(), "basalt compact failed");
    }
    let beforehand = if kind.is_basalt() { std::fs::metadata(folder.join("RESERVE"))?.len() } else { 0 };
    Ok((size(&folder)? - beforehand, beforehand))
}

/// Has VictoriaMetrics make what it took findable.
pub(crate) fn flush() -> Result<()> {
    get("/internal/force_flush")
}

/// Waits until VictoriaMetrics merges no more. It answers before a forced merge begins, and one may follow another: it must be
/// seen idle several times in a row.
fn merged() -> Result<()> {
    let url = format!("http://127.0.0.1:{VICTORIA_METRICS}/metrics");
    let mut idle = 0;
    for _ in 0..MERGE_LOOKS_MAX {
        std::thread::sleep(MERGE_LOOK_EVERY);
        let text = ureq::get(&url).call().context("/metrics")?.body_mut().read_to_string()?;
        let merges: Vec<&str> = text.lines().filter(|line| MERGES.iter().any(|name| line.starts_with(name))).collect();
        ensure!(!merges.is_empty(), "VictoriaMetrics does not tell its merges");
        idle = if merges.iter().all(|line| line.ends_with(" 0")) { idle + 1 } else { 0 };
        if idle == IDLE_LOOKS {
            return Ok(());
        }
    }
    bail!("VictoriaMetrics still merges");
}

fn get(path: &str) -> Result<()> {
    ureq::get(format!("http://127.0.0.1:{VICTORIA_METRICS}{path}")).call().with_context(|| path.to_owned())?;
    Ok(())
}

/// Bytes of all files in and below a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}
