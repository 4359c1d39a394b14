//! A data folder: its lock, and the files in it that a manifest names.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{FileLock, FileSystem, IoOp};
use crate::manifest::FileEntry;
use crate::sstable::{BlockCache, BlockCodecs, Sstable};

/// The file whose lock is the folder's.
pub(crate) const LOCK: &str = "LOCK";

/// Makes the folder if need be and takes its lock.
///
/// # Errors
/// `Locked` when another process has it; any I/O error.
pub(crate) fn lock_dir(fs: &dyn FileSystem, dir: &Path) -> Result<Box<dyn FileLock>> {
    fs.create_dir_all(dir).map_err(Error::io(IoOp::Create, dir))?;
    let path = dir.join(LOCK);
    fs.lock(&path).map_err(|source| {
        if source.kind() == std::io::ErrorKind::WouldBlock {
            Error::Locked { dir: dir.to_path_buf() }
        } else {
            Error::io(IoOp::Lock, &path)(source)
        }
    })
}

/// Opens a file that the manifest names, of the length that it names.
pub(crate) fn open_file(
    fs: &dyn FileSystem,
    dir: &Path,
    file: &FileEntry,
    codecs: &BlockCodecs,
    cache: &Arc<BlockCache>,
) -> Result<Sstable> {
    let path = file.id.path(dir);
    let opened = match fs.open(&path) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Missing { file: path, bytes: file.bytes });
        }
        opened => opened.map_err(Error::io(IoOp::Open, &path))?,
    };
    let len = opened.len().map_err(Error::io(IoOp::Len, &path))?;
    if len != file.bytes {
        let what = "file length";
        return Err(Error::Corrupt { file: path, offset: 0, what, expected: file.bytes, found: len });
    }
    Sstable::open(opened, &path, file.id, codecs, Arc::clone(cache))
}
