//! Small files: read whole, up to a bound; those of progress are replaced whole, written aside and renamed, so that a kill leaves
//! the old one or the new.

use std::fs::File;
use std::io::{Error, Read as _, Result};
use std::path::Path;

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

/// Puts `bytes` in the place of what `file` holds.
///
/// # Errors
///
/// What the file system says.
#[expect(clippy::disallowed_methods, reason = "progress lost with the power is progress made again, nothing more")]
pub(crate) fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut aside = file.as_os_str().to_owned();
    aside.push(".tmp");
    std::fs::write(&aside, bytes)?;
    std::fs::rename(aside, file)
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
}
