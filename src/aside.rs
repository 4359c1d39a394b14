//! Small files: read whole, up to a bound; those of progress are replaced whole, written aside and renamed, so that a kill leaves
//! the old one or the new.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

use serde::Serialize;

use crate::exit::{Exit, Failure};

/// The longest file of settings, tokens or limits; a device has no end.
const SETTINGS_BYTES_MAX: u64 = 16 << 20;

/// What a file of settings holds.
///
/// # Errors
///
/// What the file system says; the file is longer than such a file may be.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if File::open(file)?.take(SETTINGS_BYTES_MAX + 1).read_to_end(&mut bytes)? as u64 > SETTINGS_BYTES_MAX {
        return Err(Error::other(format!("it is longer than {SETTINGS_BYTES_MAX} bytes: name a file of settings")));
    }
    Ok(bytes)
}

/// As [`read`], of a file that is text.
///
/// # Errors
///
/// As [`read`]; the file is no UTF-8.
pub(crate) fn read_text(file: &Path) -> Result<String> {
    String::from_utf8(read(file)?).map_err(Error::other)
}

/// Puts progress in the place of what `file` holds, as JSON.
///
/// # Errors
///
/// Exit code 75 on a full disk; what the file system says. The file is as it was then, and nothing lies beside it.
pub(crate) fn remember(file: &Path, progress: &impl Serialize) -> std::result::Result<(), Failure> {
    serde_json::to_vec(progress).map_err(Error::from).and_then(|bytes| replace(file, &bytes)).map_err(|cause| {
        let is_full = matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        let exit = if is_full { Exit::TryLater } else { Exit::Failure };
        Failure::new(exit, format!("cannot write {}: {cause}", file.display()))
    })
}

#[expect(clippy::disallowed_methods, reason = "progress lost with the power is progress made again, nothing more")]
fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut aside = file.as_os_str().to_owned();
    aside.push(".tmp");
    let replaced = std::fs::write(&aside, bytes).and_then(|()| std::fs::rename(&aside, file));
    if replaced.is_err() {
        drop(std::fs::remove_file(&aside));
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_not_read_on() {
        let said = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(said, "it is longer than 16777216 bytes: name a file of settings");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'#'; 16 << 20]).unwrap();
        assert_eq!(read_text(file.path()).unwrap().len(), 16 << 20);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        remember(&file, &1).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"1");
        let taken = folder.path().join("taken");
        std::fs::create_dir_all(taken.join("by a folder")).unwrap();
        let failure = remember(&taken, &1).unwrap_err();
        assert!(failure.exit == Exit::Failure && failure.line.contains(taken.to_str().unwrap()), "{failure}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        // A disk without any room.
        std::os::unix::fs::symlink("/dev/full", folder.path().join("full.tmp")).unwrap();
        assert_eq!(remember(&folder.path().join("full"), &1).unwrap_err().exit, Exit::TryLater);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
