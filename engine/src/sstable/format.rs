//! The fixed-width parts of an SSTable: header, footer, and the frame around every section between them.
//!
//! The layout's only telling is `docs/formats/sstable.md`; here are its offsets and the code that checks them.
//!
//! Invariant: each checksum covers the file id and the offset of what it guards, so that an intact section at the
//! wrong place, or of another file, fails as a damaged one does.

use std::path::Path;

use super::place::Place;
use crate::error::{Error, Result};
use crate::id::FileId;

/// How data blocks are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The first cell of each row repeats nothing; wide row tables. Block codecs are made for it.
    V1,
    /// The first cell of a row may repeat the block's first cell; row tables as wide as they must be.
    V2,
}

/// A version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Version {
    V1 = 1,
    V2 = 2,
    /// As 1; the index may be in leaves.
    V3 = 3,
    /// As 2, likewise.
    V4 = 4,
}

impl Version {
    /// All that are read.
    pub(super) const ALL: [Version; 4] = [Version::V1, Version::V2, Version::V3, Version::V4];
    /// The newest.
    pub(super) const NEWEST: Version = Version::V4;

    /// What is written of a layout.
    pub(super) fn of_layout(layout: Layout) -> Version {
        match layout {
            Layout::V1 => Version::V3,
            Layout::V2 => Version::V4,
        }
    }

    /// How its data blocks are laid out.
    pub(super) fn layout(self) -> Layout {
        match self {
            Version::V1 | Version::V3 => Layout::V1,
            Version::V2 | Version::V4 => Layout::V2,
        }
    }

    fn of_number(number: u32) -> Option<Version> {
        Version::ALL.into_iter().find(|version| *version as u32 == number)
    }
}

const HEADER_MAGIC: [u8; 8] = *b"BASALTST";
const HEADER_VERSION: usize = HEADER_MAGIC.len();
const HEADER_FILE_ID: usize = HEADER_VERSION + 4;
const HEADER_CRC: usize = HEADER_FILE_ID + 8;
/// Bytes of the header; the first data block begins here.
pub(super) const HEADER_BYTES: usize = HEADER_CRC + 4;

const FOOTER_INDEX_OFFSET: usize = 0;
const FOOTER_BLOOM_OFFSET: usize = FOOTER_INDEX_OFFSET + 8;
const FOOTER_METADATA_OFFSET: usize = FOOTER_BLOOM_OFFSET + 8;
const FOOTER_FILE_BYTES: usize = FOOTER_METADATA_OFFSET + 8;
const FOOTER_VERSION: usize = FOOTER_FILE_BYTES + 8;
const FOOTER_CRC: usize = FOOTER_VERSION + 4;
const FOOTER_MAGIC_AT: usize = FOOTER_CRC + 4;
const FOOTER_MAGIC: [u8; 8] = *b"TSTLASAB";
/// Bytes of the footer, the last ones of the file.
pub(super) const FOOTER_BYTES: usize = FOOTER_MAGIC_AT + FOOTER_MAGIC.len();

const FRAME_CRC: usize = 0;
const FRAME_KIND: usize = FRAME_CRC + 4;
const FRAME_ENCODING: usize = FRAME_KIND + 1;
const FRAME_RESERVED: usize = FRAME_ENCODING + 1;
const FRAME_STORED_BYTES: usize = FRAME_RESERVED + 2;
const FRAME_RAW_BYTES: usize = FRAME_STORED_BYTES + 4;
/// Bytes of a frame before its payload.
pub(super) const FRAME_HEAD_BYTES: usize = FRAME_RAW_BYTES + 4;

/// A section is refused above this size, decoded or stored, so that no length in a file asks for more memory.
pub(super) const SECTION_BYTES_MAX: usize = 512 * 1024 * 1024;

const _: () = assert!(HEADER_BYTES == 24 && FOOTER_BYTES == 48 && FRAME_HEAD_BYTES == 16);

/// What a section holds. The codes are the file's; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SectionKind {
    /// Cells.
    Data = 1,
    /// The key and time range of every data block.
    Index = 2,
    /// The bloom filter.
    Bloom = 3,
    /// Counts and ranges of the whole file.
    Metadata = 4,
    /// The same of the data blocks before it, up to the leaf before.
    IndexLeaf = 5,
    /// The key and time range of every leaf.
    IndexRoot = 6,
}

impl SectionKind {
    const ALL: [SectionKind; 6] = [
        SectionKind::Data,
        SectionKind::Index,
        SectionKind::Bloom,
        SectionKind::Metadata,
        SectionKind::IndexLeaf,
        SectionKind::IndexRoot,
    ];
}

/// Where the sections after the data blocks begin. They follow each other without a gap: the index or its root, bloom filter (absent
/// when it begins where the metadata does), metadata, footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) index_offset: u64,
    pub(super) bloom_offset: u64,
    pub(super) metadata_offset: u64,
    /// Length of the whole file, footer included.
    pub(super) file_bytes: u64,
}

/// The header of a file.
pub(super) fn encode_header(place: &Place<'_>, version: Version) -> [u8; HEADER_BYTES] {
    assert!(place.offset == 0, "BUG: a header is written at offset {}", place.offset);
    let mut header = [0; HEADER_BYTES];
    put(&mut header, 0, &HEADER_MAGIC);
    put(&mut header, HEADER_VERSION, &(version as u32).to_le_bytes());
    put(&mut header, HEADER_FILE_ID, &place.file_id.0.to_le_bytes());
    let crc = place.checksum(prefix(&header, HEADER_CRC));
    put(&mut header, HEADER_CRC, &crc.to_le_bytes());
    header
}

/// Checks a header: magic, then version, then checksum, then whose file it is.
pub(super) fn check_header(place: &Place<'_>, header: &[u8; HEADER_BYTES]) -> Result<Version> {
    place.require("magic", u64::from_le_bytes(HEADER_MAGIC), u64_at(header, 0))?;
    let found = u32_at(header, HEADER_VERSION);
    let Some(version) = Version::of_number(found) else {
        let supported = Version::NEWEST as u32;
        return Err(Error::Version { file: place.path.to_path_buf(), found, supported });
    };
    place.require("file id", place.file_id.0, u64_at(header, HEADER_FILE_ID))?;
    let crc = place.checksum(prefix(header, HEADER_CRC));
    place.require("header checksum", crc.into(), u32_at(header, HEADER_CRC).into())?;
    Ok(version)
}

/// The id by which a header is sound, whatever the file's name says.
pub(super) fn header_id(path: &Path, header: &[u8; HEADER_BYTES]) -> Option<FileId> {
    let file_id = FileId(u64_at(header, HEADER_FILE_ID));
    check_header(&Place { path, file_id, offset: 0 }, header).ok().map(|_| file_id)
}

impl Footer {
    /// The footer's bytes; `place` is where they go.
    pub(super) fn encode(&self, place: &Place<'_>, version: Version) -> [u8; FOOTER_BYTES] {
        assert!(self.file_bytes == place.offset + FOOTER_BYTES as u64, "BUG: the footer is not the file's end");
        let mut footer = [0; FOOTER_BYTES];
        put(&mut footer, FOOTER_INDEX_OFFSET, &self.index_offset.to_le_bytes());
        put(&mut footer, FOOTER_BLOOM_OFFSET, &self.bloom_offset.to_le_bytes());
        put(&mut footer, FOOTER_METADATA_OFFSET, &self.metadata_offset.to_le_bytes());
        put(&mut footer, FOOTER_FILE_BYTES, &self.file_bytes.to_le_bytes());
        put(&mut footer, FOOTER_VERSION, &(version as u32).to_le_bytes());
        let crc = place.checksum(prefix(&footer, FOOTER_CRC));
        put(&mut footer, FOOTER_CRC, &crc.to_le_bytes());
        put(&mut footer, FOOTER_MAGIC_AT, &FOOTER_MAGIC);
        footer
    }

    /// Reads and checks the footer at `place`, which must be [`FOOTER_BYTES`] before the file's end; `version` is the
    /// header's.
    pub(super) fn decode(place: &Place<'_>, footer: &[u8; FOOTER_BYTES], version: Version) -> Result<Self> {
        place.require("footer magic", u64::from_le_bytes(FOOTER_MAGIC), u64_at(footer, FOOTER_MAGIC_AT))?;
        let crc = place.checksum(prefix(footer, FOOTER_CRC));
        place.require("footer checksum", crc.into(), u32_at(footer, FOOTER_CRC).into())?;
        place.require("footer version", (version as u32).into(), u32_at(footer, FOOTER_VERSION).into())?;
        let read = Self {
            index_offset: u64_at(footer, FOOTER_INDEX_OFFSET),
            bloom_offset: u64_at(footer, FOOTER_BLOOM_OFFSET),
            metadata_offset: u64_at(footer, FOOTER_METADATA_OFFSET),
            file_bytes: u64_at(footer, FOOTER_FILE_BYTES),
        };
        place.require("file length", place.offset + FOOTER_BYTES as u64, read.file_bytes)?;
        let borders = [HEADER_BYTES as u64, read.index_offset, read.bloom_offset, read.metadata_offset, place.offset];
        if borders.is_sorted() { Ok(read) } else { Err(place.corrupt("section order", 1, 0)) }
    }
}

/// A section as it lies in the file, its checksum already proved.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// How the payload is encoded: a tag of [`super::codec`].
    pub(super) encoding: u8,
    /// Bytes of the payload when decoded.
    pub(super) raw_bytes: usize,
    /// The payload as stored.
    pub(super) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// What the head of a frame says that it holds, and how long it is; `None` for what is no head. Nothing is proved by it.
    pub(super) fn measure(head: &[u8; FRAME_HEAD_BYTES]) -> Option<(SectionKind, usize)> {
        let [_, _, _, _, kind, _, 0, 0, ..] = head else { return None };
        let kind = SectionKind::ALL.into_iter().find(|known| *known as u8 == *kind)?;
        let lengths = [FRAME_STORED_BYTES, FRAME_RAW_BYTES].map(|at| u32_at(head, at) as usize);
        let [stored_bytes, _] = lengths;
        lengths.iter().all(|length| *length <= SECTION_BYTES_MAX).then_some((kind, FRAME_HEAD_BYTES + stored_bytes))
    }

    /// Checks `bytes`, which must be one whole frame at `place`: checksum first, then every field.
    pub(super) fn open(place: &Place<'_>, kind: SectionKind, bytes: &'a [u8]) -> Result<Self> {
        let (Some(head), Some(payload)) = (bytes.first_chunk::<FRAME_HEAD_BYTES>(), bytes.get(FRAME_HEAD_BYTES..))
        else {
            return Err(place.corrupt("section length", FRAME_HEAD_BYTES as u64, bytes.len() as u64));
        };
        let crc = place.checksum(bytes.get(FRAME_KIND..).unwrap_or_default());
        place.require("section checksum", crc.into(), u32_at(head, FRAME_CRC).into())?;
        let [_, _, _, _, found_kind, encoding, reserved @ ..] = head;
        place.require("section kind", (kind as u8).into(), (*found_kind).into())?;
        let [low, high, ..] = reserved;
        place.require("reserved field", 0, u16::from_le_bytes([*low, *high]).into())?;
        place.require("section length", payload.len() as u64, u32_at(head, FRAME_STORED_BYTES).into())?;
        let raw_bytes = u32_at(head, FRAME_RAW_BYTES) as usize;
        if raw_bytes > SECTION_BYTES_MAX {
            return Err(place.corrupt("decoded length", SECTION_BYTES_MAX as u64, raw_bytes as u64));
        }
        Ok(Self { encoding: *encoding, raw_bytes, payload })
    }

    /// Appends the frame that [`Frame::open`] reads.
    pub(super) fn seal_into(&self, place: &Place<'_>, kind: SectionKind, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_KIND]);
        out.extend_from_slice(&[kind as u8, self.encoding, 0, 0]);
        out.extend_from_slice(&width_u32(self.payload.len()).to_le_bytes());
        out.extend_from_slice(&width_u32(self.raw_bytes).to_le_bytes());
        out.extend_from_slice(self.payload);
        let crc = place.checksum(out.get(start + FRAME_KIND..).unwrap_or_default());
        put(out, start + FRAME_CRC, &crc.to_le_bytes());
    }
}

/// A length as the file keeps it.
pub(super) fn width_u32(length: usize) -> u32 {
    let narrow = u32::try_from(length);
    assert!(narrow.is_ok(), "BUG: a length of {length} bytes has no place in 32 bits");
    narrow.unwrap_or(u32::MAX)
}

#[expect(clippy::indexing_slicing, reason = "offsets are constants below the length of the fixed-size arrays passed")]
fn put(out: &mut [u8], offset: usize, bytes: &[u8]) {
    out[offset..offset + bytes.len()].copy_from_slice(bytes);
}

#[expect(clippy::indexing_slicing, reason = "offsets are constants below the length of the fixed-size arrays passed")]
fn prefix(bytes: &[u8], length: usize) -> &[u8] {
    &bytes[..length]
}

#[expect(clippy::indexing_slicing, reason = "offsets are constants below the length of the fixed-size arrays passed")]
fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(word)
}

#[expect(clippy::indexing_slicing, reason = "offsets are constants below the length of the fixed-size arrays passed")]
fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}
