//! A place in a file: what every checksum binds its bytes to, every report of damage names, and every read begins at.

use std::path::Path;

use super::input::Malformed;
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::io::{File, IoOp};

/// Where bytes lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The file's name.
    pub(super) path: &'a Path,
    /// The file's id.
    pub(super) file_id: FileId,
    /// Offset in the file.
    pub(super) offset: u64,
}

impl Place<'_> {
    /// The same file at another offset.
    pub(super) fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// So many bytes of the file from here on.
    pub(super) fn read_array<const N: usize>(&self, file: &dyn File) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        file.read_exact_at(self.offset, &mut bytes).map_err(Error::io(IoOp::Read, self.path))?;
        Ok(bytes)
    }

    /// The same of a length that is told as the program runs.
    pub(super) fn read_vec(&self, file: &dyn File, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        file.read_exact_at(self.offset, &mut bytes).map_err(Error::io(IoOp::Read, self.path))?;
        Ok(bytes)
    }

    /// The checksum of `bytes` that lie here: of file id and offset, then of these.
    pub(super) fn checksum(&self, bytes: &[u8]) -> u32 {
        let place = u128::from(self.offset) << 64 | u128::from(self.file_id.0);
        crc32c::crc32c_append(crc32c::crc32c(&place.to_le_bytes()), bytes)
    }

    /// A report of damage here.
    #[cold]
    pub(super) fn corrupt(&self, what: &'static str, expected: u64, found: u64) -> Error {
        Error::Corrupt { file: self.path.to_path_buf(), offset: self.offset, what, expected, found }
    }

    /// Refuses a field that is not what it must be.
    pub(super) fn require(&self, what: &'static str, expected: u64, found: u64) -> Result<()> {
        if expected == found { Ok(()) } else { Err(self.corrupt(what, expected, found)) }
    }

    /// A report of a checksum that fits over a layout that does not: written so, by us.
    #[cold]
    pub(super) fn malformed(&self, malformed: Malformed) -> Error {
        self.corrupt("last readable position of the decoded section", u64::MAX, malformed.position as u64)
    }
}
