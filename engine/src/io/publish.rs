//! The one way by which a file comes to be there.

use std::path::Path;

use super::{File, FileSystem, IoOp};
use crate::error::{Error, Result};

/// Makes `aside`, written in full through `file`, appear as `target` for good:
/// sync the file, rename it, sync the folder.
///
/// After `Ok` the file survives a power loss under its new name; after an error
/// either name may be there, so the caller must treat the target as unknown.
///
/// # Errors
/// [`Error::Io`] that names the step which failed; a failed sync is final.
///
/// # Panics
/// When both names are one: a bug of the caller.
pub fn publish(fs: &dyn FileSystem, file: &dyn File, aside: &Path, target: &Path) -> Result<()> {
    assert!(aside != target, "BUG: a file is published under its aside name");
    file.sync_data().map_err(Error::io(IoOp::SyncData, aside))?;
    fs.rename(aside, target).map_err(Error::io(IoOp::Rename, aside))?;
    let dir = target.parent().unwrap_or(Path::new("."));
    fs.sync_dir(dir).map_err(Error::io(IoOp::SyncDir, dir))
}
