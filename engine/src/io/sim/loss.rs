//! Which disk a power loss leaves.

use std::collections::{BTreeMap, BTreeSet};

use super::inode::{FileEdit, Inode, index, write};
use super::{Disk, LossMode, NameEdit, Rng, SplitMix};

/// Drives write sectors whole; what is larger may be torn between them.
const SECTOR_BYTES: usize = 512;

/// A legal disk after the power went.
pub(super) fn survivor(disk: &mut Disk, mode: LossMode) -> Disk {
    let edits = disk.name_edits.clone();
    let mut names = disk.synced_names.clone();
    for edit in surviving(&edits, mode, &mut disk.rng) {
        edit.apply(&mut names);
    }
    let rng = &mut disk.rng;
    let inodes = disk.inodes.iter().map(|inode| {
        let mut survivor = Inode::with_bytes(surviving_bytes(inode, mode, rng));
        survivor.unreadable.clone_from(&inode.unreadable);
        survivor
    });
    let inodes = inodes.collect();
    fresh(disk, names, inodes)
}

/// The disk as it is: what was not synced may still be lost, and what a failed sync forgot surely will be.
pub(super) fn copy(disk: &mut Disk) -> Disk {
    let (synced_names, name_edits) = (disk.synced_names.clone(), disk.name_edits.clone());
    Disk { synced_names, name_edits, ..fresh(disk, disk.names.clone(), disk.inodes.clone()) }
}

fn fresh(disk: &mut Disk, names: BTreeMap<std::path::PathBuf, usize>, inodes: Vec<Inode>) -> Disk {
    Disk {
        inodes,
        synced_names: names.clone(),
        names,
        name_edits: Vec::new(),
        dirs: disk.dirs.clone(),
        locked: BTreeSet::new(),
        capacity_bytes: disk.capacity_bytes,
        fault: None,
        dead: false,
        calls: 0,
        set_out: Vec::new(),
        rng: SplitMix::new(disk.rng.next_u64()),
    }
}

fn surviving<'a>(edits: &'a [NameEdit], mode: LossMode, rng: &mut SplitMix) -> Vec<&'a NameEdit> {
    match mode {
        LossMode::Ordered => {
            let kept = index(rng.below(edits.len() as u64 + 1));
            edits.iter().take(kept).collect()
        }
        LossMode::Hostile => edits.iter().filter(|_| rng.chance(1, 2)).collect(),
    }
}

fn surviving_bytes(inode: &Inode, mode: LossMode, rng: &mut SplitMix) -> Vec<u8> {
    let mut bytes = inode.synced().to_vec();
    let edits = inode.edits();
    match mode {
        LossMode::Ordered => {
            let kept = index(rng.below(edits.len() as u64 + 1));
            for edit in edits.iter().take(kept) {
                edit.apply(&mut bytes);
            }
            if let Some(FileEdit::Write { offset, bytes: written }) = edits.get(kept) {
                let torn = index(rng.below(written.len() as u64 + 1)) / SECTOR_BYTES * SECTOR_BYTES;
                write(&mut bytes, *offset, written.get(..torn).unwrap_or_default());
            }
        }
        LossMode::Hostile => {
            for edit in edits {
                survive_hostile(edit, &mut bytes, rng);
            }
        }
    }
    bytes
}

fn survive_hostile(edit: &FileEdit, bytes: &mut Vec<u8>, rng: &mut SplitMix) {
    let FileEdit::Write { offset, bytes: written } = edit else {
        if rng.chance(1, 2) {
            edit.apply(bytes);
        }
        return;
    };
    match rng.below(4) {
        0 => {}
        1 => edit.apply(bytes),
        2 => grow_without_bytes(*offset, written.len(), bytes, rng),
        _ => tear(*offset, written, bytes, rng),
    }
}

/// The new length reached the disk, the bytes did not.
fn grow_without_bytes(offset: u64, len: usize, bytes: &mut Vec<u8>, rng: &mut SplitMix) {
    let junk = rng.chance(1, 2);
    while bytes.len() < index(offset) + len {
        bytes.push(if junk { rng.next_u64().to_le_bytes()[0] } else { 0 });
    }
}

/// Keeps each sector of the write or not. Sectors are aligned in the file, so a
/// small write lies in one or two of them.
fn tear(offset: u64, written: &[u8], bytes: &mut Vec<u8>, rng: &mut SplitMix) {
    let mut at = 0;
    while at < written.len() {
        let start = index(offset) + at;
        let end = (written.len()).min(at + SECTOR_BYTES - start % SECTOR_BYTES);
        if rng.chance(1, 2) {
            write(bytes, start as u64, written.get(at..end).unwrap_or_default());
        }
        at = end;
    }
}
