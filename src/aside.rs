//! Small files: read whole, up to a bound; those of progress and reports are replaced whole, written aside and renamed, so that a kill
//! or a full disk leaves the old one or the new.

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
    let bytes = serde_json::to_vec(progress).map_err(Error::from);
    bytes.and_then(|bytes| replace(file, &bytes)).map_err(|cause| not_written(file, &cause))
}

/// Puts a report in the place of what `file` holds. Devices and pipes are written to, and so is a file in a folder that takes no other.
///
/// # Errors
///
/// Exit code 75 on a full disk, where what a file held stays; what the file system says.
pub(crate) fn keep(file: &Path, report: &str) -> std::result::Result<(), Failure> {
    let is_other = file.metadata().is_ok_and(|there| !there.is_file());
    let kept = if is_other {
        std::fs::write(file, report)
    } else {
        // Where a link leads, not the link, is what is replaced.
        let place = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        replace(&place, report.as_bytes()).or_else(|cause| match cause.kind() {
            ErrorKind::PermissionDenied => std::fs::write(file, report),
            _ => Err(cause),
        })
    };
    kept.map_err(|cause| not_written(file, &cause))
}

fn not_written(file: &Path, cause: &Error) -> Failure {
    let is_full = matches!(cause.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let exit = if is_full { Exit::TryLater } else { Exit::Failure };
    Failure::new(exit, format!("cannot write {}: {cause}", file.display()))
}

#[expect(clippy::disallowed_methods, reason = "what is lost with the power is made again, nothing more")]
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

    #[test]
    fn a_report_that_a_full_disk_refuses_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("report"), folder.path().join("link"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        keep(&file, "old").unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join("report.tmp")).unwrap();
        for path in [&file, &link] {
            assert_eq!(keep(path, "new").unwrap_err().exit, Exit::TryLater);
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
            std::os::unix::fs::symlink("/dev/full", folder.path().join("report.tmp")).unwrap();
        }
        std::fs::remove_file(folder.path().join("report.tmp")).unwrap();
        keep(&link, "new").unwrap();
        assert!(link.is_symlink() && std::fs::read_to_string(&file).unwrap() == "new");
    }

    /// As standard output is, in a pipe.
    #[test]
    fn a_report_goes_into_a_pipe() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        keep(Path::new(&path), "report").unwrap();
        drop(writer);
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "report");
    }
}
