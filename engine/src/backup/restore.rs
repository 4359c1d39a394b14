//! The way back: a backup's files, each proved, into an empty folder.

use std::path::Path;

use basalt_store::with_causes;

use crate::data_folder::{LOCK, lock_dir};
use crate::error::{Error, Result};
use crate::io::{FileSystem, IoOp};
use crate::progress::Progress;

use super::BackedUp;
use super::copy::{copy, create_copy};
use super::index::{BackupIndex, INDEX, IndexedFile};

/// Lies in a folder while a restore fills it: such a folder is not opened, it might lack anything.
const UNFINISHED: &str = "RESTORING";

/// Whether a folder may be opened as a store.
///
/// # Errors
/// `Unfinished`: a restore into it was interrupted. `IsBackup`.
pub(crate) fn check_openable(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    check_finished(fs, dir)?;
    let names = fs.list(dir).map_err(Error::io(IoOp::List, dir))?;
    let is_backup = names.iter().any(|name| name == INDEX);
    if is_backup { Err(Error::IsBackup { dir: dir.to_path_buf() }) } else { Ok(()) }
}

/// Whether a folder is all that it is to be: one that a restore was filling lacks files that nobody lost.
///
/// # Errors
/// `Unfinished`: a restore into it was interrupted.
pub(crate) fn check_finished(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let names = fs.list(dir).map_err(Error::io(IoOp::List, dir))?;
    let is_filling = names.iter().any(|name| name == UNFINISHED);
    if is_filling { Err(Error::Unfinished { dir: dir.to_path_buf() }) } else { Ok(()) }
}

/// Copies a backup into `target`, which must be absent, empty, or left by a restore that was interrupted, of this backup or another:
/// what it left goes first. Every byte is held against the backup's index. `tell` is called after each file.
///
/// # Errors
/// [`Error::NoBackup`]; [`Error::NotEmpty`]; [`Error::Corrupt`] names the damaged file of the backup; [`Error::Locked`]; any
/// I/O error. After each of them no file is left in `target` that a restore made, or where it cannot be removed the folder stays
/// [`Error::Unfinished`]: it is not opened, and the next restore takes away what there is. A folder that this made for it stays.
pub fn restore(
    fs: &dyn FileSystem,
    backup: &Path,
    target: &Path,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<BackedUp> {
    let index = BackupIndex::read(fs, backup)?;
    // Whoever lists nothing here finds out why when the folder is locked.
    let before = fs.list(target).unwrap_or_default();
    let was_there = |wanted: &str| before.iter().any(|name| name == wanted);
    let lock = lock_dir(fs, target)?;
    let filled = fill(fs, &index, (backup, target), tell);
    if filled.is_err() && (was_there(UNFINISHED) || !was_there(LOCK)) && !is_marked(fs, target) {
        // While it is held: whoever waits at its door finds that it lost its name.
        drop(fs.remove(&target.join(LOCK)));
    }
    drop(lock);
    filled?;
    let bytes = index.bytes_total();
    let BackupIndex { created_ms, sequence, files } = index;
    Ok(BackedUp { files_count: files.len() as u64, bytes, sequence, created_ms })
}

/// Whether a restore into the folder is under way, or was not ended; also where nobody can tell.
fn is_marked(fs: &dyn FileSystem, target: &Path) -> bool {
    fs.list(target).map_or(true, |names| names.iter().any(|name| name == UNFINISHED))
}

/// Fills a folder that is locked; after an error it is as empty as before, or marked.
fn fill(
    fs: &dyn FileSystem,
    index: &BackupIndex,
    (backup, target): (&Path, &Path),
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<()> {
    let names = fs.list(target).map_err(Error::io(IoOp::List, target))?;
    let was_begun = names.iter().any(|name| name == UNFINISHED);
    if !was_begun && names.iter().any(|name| name != LOCK) {
        return Err(Error::NotEmpty { dir: target.to_path_buf() });
    }
    if was_begun {
        // They may be of another backup, whose log begins elsewhere: two logs are no store.
        for name in names.iter().filter(|name| *name != LOCK && *name != UNFINISHED) {
            let path = target.join(name);
            fs.remove(&path).map_err(Error::io(IoOp::Remove, &path))?;
        }
    } else {
        let mark = target.join(UNFINISHED);
        let file = fs.create(&mark).map_err(Error::io(IoOp::Create, &mark))?;
        file.sync_data().map_err(Error::io(IoOp::SyncData, &mark))?;
        fs.sync_dir(target).map_err(Error::io(IoOp::SyncDir, target))?;
    }
    if let Err(error) = copy_all(fs, index, backup, target, tell) {
        // Nothing of a backup that cannot be believed stays.
        if let Err(left) = remove_all(fs, index, target) {
            let error = with_causes(&left);
            tracing::warn!(
                error,
                "what was restored is not removed: the folder stays unfinished until the next restore"
            );
        }
        return Err(error);
    }
    unmark(fs, target)
}

/// Removes what was copied, then the mark: the folder is as empty as before.
///
/// # Errors
/// Any I/O error. Unless all of it is gone for good the mark stays.
fn remove_all(fs: &dyn FileSystem, index: &BackupIndex, target: &Path) -> Result<()> {
    let remove = |file: &IndexedFile| {
        let path = target.join(&file.name);
        match fs.remove(&path) {
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(Error::io(IoOp::Remove, &path)),
        }
    };
    // All of them, also behind one that stays: space is given back.
    let removed: Vec<_> = index.files.iter().map(remove).collect();
    removed.into_iter().collect::<Result<()>>()?;
    unmark(fs, target)
}

/// Takes the mark away once what the folder holds now, or that it holds nothing, is what it holds after a loss of power.
fn unmark(fs: &dyn FileSystem, target: &Path) -> Result<()> {
    let mark = target.join(UNFINISHED);
    fs.sync_dir(target).map_err(Error::io(IoOp::SyncDir, target))?;
    fs.remove(&mark).map_err(Error::io(IoOp::Remove, &mark))?;
    fs.sync_dir(target).map_err(Error::io(IoOp::SyncDir, target))
}

fn copy_all(
    fs: &dyn FileSystem,
    index: &BackupIndex,
    backup: &Path,
    target: &Path,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<()> {
    let bytes_total = index.bytes_total();
    let mut bytes_done = 0;
    for file in &index.files {
        copy_proved(fs, file, backup, target)?;
        bytes_done += file.bytes;
        tell(Progress { file: &file.name, bytes_done, bytes_total });
    }
    Ok(())
}

fn copy_proved(fs: &dyn FileSystem, file: &IndexedFile, backup: &Path, target: &Path) -> Result<()> {
    let from = backup.join(&file.name);
    let corrupt = |what, expected, found| Error::Corrupt { file: from.clone(), offset: 0, what, expected, found };
    let to = target.join(&file.name);
    let made = create_copy(fs, &to)?;
    let (bytes, crc) = match copy(fs, &from, (&to, &*made), || Ok(())) {
        Err(Error::Io { op: IoOp::Open, source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Missing { file: from.clone(), bytes: file.bytes });
        }
        copied => copied?,
    };
    if bytes != file.bytes {
        return Err(corrupt("file length", file.bytes, bytes));
    }
    if crc != file.crc {
        return Err(corrupt("checksum of a whole file", file.crc.into(), crc.into()));
    }
    Ok(())
}
