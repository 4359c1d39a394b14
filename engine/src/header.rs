//! The header that files of records begin with: the log's segments, the manifest, logs beside the tables.
//!
//! ```text
//! 0 magic, 8   8 version, u32   12 number, u32   16 number, u64   24 zeros, 4   28 CRC-32C of all before, u32
//! ```

use std::path::Path;

use crate::error::{Error, Result};
use crate::field::Fields;

pub(crate) const HEADER_BYTES: usize = 32;
const CRC_OFFSET: usize = HEADER_BYTES - 4;

/// A kind of such files.
pub(crate) struct Header {
    pub(crate) magic: &'static [u8; 8],
    pub(crate) version_min: u32,
    /// The newest version that is read, and the one that is written.
    pub(crate) version: u32,
    /// What errors call its length, its magic and its checksum.
    pub(crate) names: [&'static str; 3],
}

impl Header {
    /// The header with the file's own numbers.
    pub(crate) fn encode(&self, small: u32, large: u64) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&small.to_le_bytes());
        bytes.extend_from_slice(&large.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        assert!(bytes.len() == HEADER_BYTES, "BUG: a header of {} bytes", bytes.len());
        bytes
    }

    /// Version and own numbers of the file that `bytes` begin.
    ///
    /// # Errors
    /// `Corrupt` and `Version`.
    pub(crate) fn check(&self, bytes: &[u8], path: &Path) -> Result<(u32, u32, u64)> {
        let corrupt =
            |offset, what, expected, found| Error::Corrupt { file: path.to_path_buf(), offset, what, expected, found };
        let [length, magic, checksum] = self.names;
        let mut fields = Fields::new(bytes);
        let numbers = (fields.u64(), fields.u32(), fields.u32(), fields.u64(), fields.u32(), fields.u32());
        let (Some(found_magic), Some(version), Some(small), Some(large), Some(_), Some(found_crc)) = numbers else {
            return Err(corrupt(0, length, HEADER_BYTES as u64, bytes.len() as u64));
        };
        if found_magic != u64::from_le_bytes(*self.magic) {
            return Err(corrupt(0, magic, u64::from_le_bytes(*self.magic), found_magic));
        }
        let crc = crc32c::crc32c(bytes.get(..CRC_OFFSET).unwrap_or_default());
        if found_crc != crc {
            return Err(corrupt(CRC_OFFSET as u64, checksum, crc.into(), found_crc.into()));
        }
        if !(self.version_min..=self.version).contains(&version) {
            return Err(Error::Version { file: path.to_path_buf(), found: version, supported: self.version });
        }
        Ok((version, small, large))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header =
        Header { magic: b"BasltTST", version_min: 2, version: 3, names: ["length", "magic", "checksum"] };

    #[test]
    fn every_damaged_byte_of_a_header_is_told() {
        let path = Path::new("file");
        let whole = HEADER.encode(7, 1 << 40);
        assert_eq!(HEADER.check(&whole, path).unwrap(), (3, 7, 1 << 40));
        let what = |bytes: &[u8]| match HEADER.check(bytes, path) {
            Err(Error::Corrupt { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        for len in 0..whole.len() {
            assert_eq!(what(&whole[..len]), "length");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert_eq!(what(&bytes), if at < 8 { "magic" } else { "checksum" }, "{at}");
        }
        for (version, is_read) in [(1, false), (2, true), (3, true), (4, false)] {
            let of_version = Header { version, ..HEADER }.encode(7, 8);
            assert_eq!(HEADER.check(&of_version, path).is_ok(), is_read, "{version}");
        }
    }
}
