//! A simulated file: what was synced, what was done since, what reads see.

use std::io;
use std::ops::Range;

/// A change of a file's bytes or length.
#[derive(Debug, Clone)]
pub(super) enum FileEdit {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
}

/// `bytes` equals `synced` with every edit applied in order, until a sync fails:
/// then reads go on seeing pages that no longer have a way to the disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    edits: Vec<FileEdit>,
    /// What the disk does not give any more.
    pub(super) unreadable: Vec<Range<u64>>,
}

impl FileEdit {
    pub(super) fn apply(&self, to: &mut Vec<u8>) {
        match self {
            FileEdit::Write { offset, bytes } => write(to, *offset, bytes),
            FileEdit::SetLen(len) => to.resize(index(*len), 0),
        }
    }
}

/// Writes `bytes` into `to` at `offset`, with zeros before it where it grows.
pub(super) fn write(to: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (index(offset), index(offset) + bytes.len());
    if to.len() < end {
        to.resize(end, 0);
    }
    if let Some(range) = to.get_mut(start..end) {
        range.copy_from_slice(bytes);
    }
}

pub(super) fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

impl Inode {
    /// A file that holds `bytes`, all synced.
    pub(super) fn with_bytes(bytes: Vec<u8>) -> Inode {
        Inode { synced: bytes.clone(), bytes, edits: Vec::new(), unreadable: Vec::new() }
    }

    pub(super) fn synced(&self) -> &[u8] {
        &self.synced
    }

    pub(super) fn edits(&self) -> &[FileEdit] {
        &self.edits
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let rest = self.bytes.get(index(offset)..).unwrap_or_default();
        let read = rest.len().min(buf.len());
        for (to, from) in buf.iter_mut().zip(rest) {
            *to = *from;
        }
        read
    }

    pub(super) fn edit(&mut self, edit: FileEdit) {
        edit.apply(&mut self.bytes);
        self.edits.push(edit);
    }

    /// Cost: the edits since the last sync, not the file.
    pub(super) fn sync(&mut self) {
        for edit in self.edits.drain(..) {
            edit.apply(&mut self.synced);
        }
    }

    /// What a failed sync leaves: pages that read back and will never be written.
    pub(super) fn forget_unsynced(&mut self) {
        self.edits.clear();
    }

    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) -> io::Result<()> {
        let flip = |bytes: &mut Vec<u8>| {
            let byte = bytes.get_mut(index(offset)).ok_or(io::ErrorKind::InvalidInput)?;
            *byte ^= 1 << (bit % 8);
            Ok::<(), io::Error>(())
        };
        flip(&mut self.bytes)?;
        // A byte that was never synced has no durable twin to flip.
        flip(&mut self.synced).or(Ok(()))
    }
}
