//! Small files of progress, replaced whole: written aside and renamed, so that a kill leaves the old one or the new.

use std::path::Path;

/// Puts `bytes` in the place of what `file` holds.
///
/// # Errors
///
/// What the file system says.
#[expect(clippy::disallowed_methods, reason = "progress lost with the power is progress made again, nothing more")]
pub(crate) fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut aside = file.as_os_str().to_owned();
    aside.push(".tmp");
    std::fs::write(&aside, bytes)?;
    std::fs::rename(aside, file)
}
