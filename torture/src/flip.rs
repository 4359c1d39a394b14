//! `flip`: a wrong byte is never a wrong value.
//!
//! Of every kind of file the live bytes are damaged: one bit, a run of 64 bytes, two places swapped, a stale place (what
//! another file of the kind, or the file itself in an earlier life, has there). Then the folder is opened and all of it
//! read. What is read must be right, or an error must name the damaged file. Of a table's file damage is always an error
//! at the latest when the file is proved. Of the manifest it is an error, and its copy mends it without a loss. Of the log
//! it is an error below the mark up to which the log itself says that it was on disk; above, it is a torn tail: what was
//! written last may be gone, from its end on.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use basalt_engine::io::{FileSystem as _, Rng, SimFs, SplitMix};

use crate::folder::{Folder, copy};
use crate::tickets;

mod build;

/// Damages of one folder, before the next one is written.
const FLIPS_A_FOLDER: u64 = 250;
const RUN_BYTES: usize = 64;
/// Both marks at the manifest's end and the zeros between. Layout: `docs/formats/manifest.md`.
const MARK_BYTES: usize = 4096 + 32;

/// What became of the damages.
#[derive(Debug, Default)]
struct Tally(BTreeMap<(&'static str, Noticed), u64>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Noticed {
    Told,
    TornTail,
    Harmless,
}

/// A damaged file: its bytes, and the first that differs.
struct Damage {
    name: String,
    how: &'static str,
    bytes: Vec<u8>,
    at: usize,
}

pub(crate) fn run(seed: u64, flips: u64) -> Result<String> {
    let folders = flips.div_ceil(FLIPS_A_FOLDER);
    let tallies = tickets::each(seed..seed + folders, |seed| {
        let folder = build::mixed(seed).with_context(|| format!("seed {seed}: building"))?;
        let mut rng = SplitMix::new(seed);
        let mut tally = Tally::default();
        for flip in 0..FLIPS_A_FOLDER.min(flips) {
            let damage = draw(&folder, &mut rng);
            let noticed = judge(&folder.folder, &damage).with_context(|| {
                format!("seed {seed}, flip {flip}: {} in {} at {}", damage.how, damage.name, damage.at)
            })?;
            *tally.0.entry((kind_of(&damage.name), noticed)).or_default() += 1;
        }
        Ok(tally)
    })?;
    let mut all = Tally::default();
    for (what, count) in tallies.into_iter().flat_map(|tally| tally.0) {
        *all.0.entry(what).or_default() += count;
    }
    let told: Vec<String> =
        all.0.iter().map(|((kind, noticed), count)| format!("{kind} {noticed:?} {count}")).collect();
    Ok(format!("{} flips, 0 wrong values: {}", folders * FLIPS_A_FOLDER.min(flips), told.join(", ")))
}

fn kind_of(name: &str) -> &'static str {
    match name {
        "MANIFEST" => "manifest",
        _ if name.starts_with("wal-") => "log",
        _ if name.starts_with("sst-") => "table",
        _ => "other",
    }
}

/// Draws a damage that changes something.
fn draw(folder: &build::Mixed, rng: &mut SplitMix) -> Damage {
    loop {
        let kind = match rng.below(20) {
            0..9 => "table",
            9..14 => "log",
            14..19 => "manifest",
            _ => "other",
        };
        let files = &folder.folder.files;
        let of_kind: Vec<(&String, &Vec<u8>)> = files.iter().filter(|(name, _)| kind_of(name) == kind).collect();
        let Some((name, before)) = of_kind.get(index(rng, of_kind.len())) else { continue };
        let live = live_bytes(&folder.folder, name, before);
        if live == 0 {
            continue;
        }
        // What closes a file is small and tells the most.
        let at = if rng.chance(1, 4) { live - 1 - index(rng, live.min(400)) } else { index(rng, live) };
        let mut bytes = (*before).clone();
        let how = match rng.below(4) {
            0 => {
                flip_bit(&mut bytes, at, rng);
                "a flipped bit"
            }
            1 => {
                run_of_junk(&mut bytes, at, rng);
                "64 bytes of junk"
            }
            2 => {
                swap(&mut bytes, at, index(rng, live), 1 << (4 + rng.below(7)));
                "two places swapped"
            }
            _ => {
                let other = stale(folder, name, &of_kind, rng);
                overwrite(&mut bytes, other, at, 1 << (4 + rng.below(9)));
                "a stale place"
            }
        };
        if let Some(at) = bytes.iter().zip(before.iter()).position(|(now, was)| now != was) {
            return Damage { name: (*name).clone(), how, bytes, at };
        }
    }
}

/// Up to where a file holds anything.
fn live_bytes(folder: &Folder, name: &str, bytes: &[u8]) -> usize {
    match kind_of(name) {
        "log" => folder.records(name).last().map_or(0, |last| last.end),
        // The first mark, not the zeros behind it.
        "manifest" => bytes.len().saturating_sub(MARK_BYTES - 32),
        _ => bytes.len(),
    }
}

fn index(rng: &mut SplitMix, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).unwrap_or(0)
}

fn flip_bit(bytes: &mut [u8], at: usize, rng: &mut SplitMix) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << rng.below(8);
    }
}

fn run_of_junk(bytes: &mut [u8], at: usize, rng: &mut SplitMix) {
    for byte in bytes.iter_mut().skip(at).take(RUN_BYTES) {
        *byte = rng.next_u64().to_le_bytes().first().copied().unwrap_or(0);
    }
}

/// Two places that do not overlap change their contents.
fn swap(bytes: &mut [u8], one: usize, other: usize, len: usize) {
    let (low, high) = (one.min(other), one.max(other));
    let len = len.min(high - low).min(bytes.len().saturating_sub(high));
    let (before, after) = bytes.split_at_mut(high);
    if let (Some(low), Some(high)) = (before.get_mut(low..low + len), after.get_mut(..len)) {
        low.swap_with_slice(high);
    }
}

/// What this file had in an earlier life, or what another of its kind has.
fn stale<'a>(
    folder: &'a build::Mixed,
    name: &str,
    of_kind: &[(&'a String, &'a Vec<u8>)],
    rng: &mut SplitMix,
) -> &'a [u8] {
    let earlier = folder.earlier.get(name).filter(|_| rng.chance(1, 2));
    earlier.or_else(|| of_kind.get(index(rng, of_kind.len())).map(|(_, bytes)| *bytes)).map_or(&[], Vec::as_slice)
}

fn overwrite(bytes: &mut [u8], from: &[u8], at: usize, len: usize) {
    for (byte, stale) in bytes.iter_mut().zip(from).skip(at).take(len) {
        *byte = *stale;
    }
}

fn damaged(folder: &Folder, damage: &Damage) -> Result<SimFs> {
    let fs = copy(&folder.files)?;
    fs.create(&Path::new(Folder::DIR).join(&damage.name))?.write_at(0, &damage.bytes)?;
    Ok(fs)
}

/// Opens the damaged folder and reads all of it.
fn judge(folder: &Folder, damage: &Damage) -> Result<Noticed> {
    let fs = damaged(folder, damage)?;
    let state = match folder.read(&fs) {
        Err(error) if format!("{error:#}").contains(&damage.name) => {
            if kind_of(&damage.name) == "manifest" {
                let mended = folder.mended(&damaged(folder, damage)?)?;
                ensure!(folder.states.last() == Some(&mended), "told, and mended to something else");
            }
            return Ok(Noticed::Told);
        }
        Err(error) => return Err(error.context("told, but not of the damaged file")),
        Ok(found) => folder.states.iter().rev().position(|state| *state == found),
    };
    let kind = kind_of(&damage.name);
    let is_synced = kind == "log" && is_below(folder, damage);
    match state {
        Some(_) if is_synced => bail!("not noticed, though below the mark"),
        Some(0) if kind == "table" => match Folder::is_proved_damaged(&damaged(folder, damage)?, &damage.name)? {
            Some(true) => Ok(Noticed::Told),
            Some(false) => bail!("not noticed by reading nor by proving the file"),
            None => Ok(Noticed::Harmless),
        },
        Some(0) => Ok(Noticed::Harmless),
        Some(_) if kind == "log" => Ok(Noticed::TornTail),
        Some(lost) => bail!("the last {lost} writes are gone"),
        None => bail!("what is read was never there"),
    }
}

/// Whether a damage of the log lies below what the log still says to have been on disk.
fn is_below(folder: &Folder, damage: &Damage) -> bool {
    let digits = damage.name.trim_start_matches("wal-").trim_end_matches(".log");
    let segment: u64 = digits.parse().unwrap_or(0);
    let is_live = damage.at < live_bytes(folder, &damage.name, &damage.bytes);
    is_live && (segment << 32 | damage.at as u64) < folder.synced(&damage.name, &damage.bytes)
}
