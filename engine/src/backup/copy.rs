//! Files copied into a backup and out of one, summed on the way.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{File, FileSystem, IoOp};

/// Bytes copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Makes the file of a copy. Nothing is written over: what is there may be another name of a file of the store.
pub(super) fn create_copy(fs: &dyn FileSystem, to: &Path) -> Result<Arc<dyn File>> {
    fs.create_new(to).map_err(Error::io(IoOp::Create, to))
}

/// Copies a file into one that was made for it and forces it to disk, as long as it may go on; answers its length and CRC-32C.
pub(super) fn copy(
    fs: &dyn FileSystem,
    from: &Path,
    (to, file): (&Path, &dyn File),
    go_on: impl Fn() -> Result<()>,
) -> Result<(u64, u32)> {
    let summed = read_through(fs, from, |offset, piece| {
        go_on()?;
        file.write_at(offset, piece).map_err(Error::io(IoOp::Write, to))
    })?;
    file.sync_data().map_err(Error::io(IoOp::SyncData, to))?;
    Ok(summed)
}

/// A file's length and CRC-32C.
pub(super) fn sum(fs: &dyn FileSystem, path: &Path) -> Result<(u64, u32)> {
    read_through(fs, path, |_, _| Ok(()))
}

/// Reads a file to its end, hands over piece by piece with its offset, and answers as [`sum`].
pub(super) fn read_through(
    fs: &dyn FileSystem,
    path: &Path,
    mut take: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<(u64, u32)> {
    let file = fs.open(path).map_err(Error::io(IoOp::Open, path))?;
    let len = file.len().map_err(Error::io(IoOp::Len, path))?;
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(len).unwrap_or(PIECE_BYTES))];
    let (mut offset, mut crc) = (0, 0);
    while offset < len {
        let wanted = usize::try_from(len - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let part = piece.get_mut(..wanted).unwrap_or_default();
        file.read_exact_at(offset, part).map_err(Error::io(IoOp::Read, path))?;
        crc = crc32c::crc32c_append(crc, part);
        take(offset, part)?;
        offset += wanted as u64;
    }
    Ok((len, crc))
}
