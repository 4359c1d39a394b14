//! The sections between a file's data blocks and its footer, read: index, bloom filter, metadata.
//!
//! Each ends where the next one begins, as the footer tells.

use std::sync::Arc;

use bytes::Bytes;

use super::block_index::BlockIndex;
use super::format::{FOOTER_BYTES, FRAME_HEAD_BYTES, Footer, Frame, HEADER_BYTES, SECTION_BYTES_MAX, SectionKind};
use super::index::IndexBlock;
use super::metadata::Metadata;
use super::place::Place;
use super::{codec, filter};
use crate::bloom::Bloom;
use crate::error::Result;
use crate::io::File;

/// Reads them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sections<'a> {
    pub(super) file: &'a dyn File,
    /// The file's first byte.
    pub(super) start: Place<'a>,
    pub(super) footer: Footer,
}

impl Sections<'_> {
    /// What the file knows about itself.
    pub(super) fn metadata(&self) -> Result<Metadata> {
        let place = self.start.at(self.footer.metadata_offset);
        let end = self.footer.file_bytes - FOOTER_BYTES as u64; // as its decoder checks
        let image = self.section(SectionKind::Metadata, place, end)?;
        Metadata::decode(&image).map_err(|malformed| place.malformed(malformed))
    }

    /// The index, if one leaf is all of it, else its root.
    pub(super) fn index(&self, metadata: &Metadata) -> Result<BlockIndex> {
        let place = self.start.at(self.footer.index_offset);
        let bytes = self.stored(place, self.footer.bloom_offset)?;
        let kind = bytes.first_chunk().and_then(Frame::measure).map(|(kind, _)| kind);
        let kind = kind.filter(|kind| *kind == SectionKind::IndexRoot).unwrap_or(SectionKind::Index);
        let image = Bytes::from(codec::decode(&place, &Frame::open(&place, kind, &bytes)?, None)?);
        let read = match kind {
            SectionKind::IndexRoot => IndexBlock::decode_root(image).map(BlockIndex::Root),
            _ => IndexBlock::decode_leaf(image, HEADER_BYTES as u64).map(|leaf| BlockIndex::Leaf(Arc::new(leaf))),
        };
        let index = read.map_err(|malformed| place.malformed(malformed))?;
        place.require("end of blocks", self.footer.index_offset, index.held().end())?;
        place.require("number of blocks", metadata.blocks_count.into(), index.blocks_count())?;
        Ok(index)
    }

    /// The bloom filter, if the file has one.
    pub(super) fn bloom(&self, metadata: &Metadata) -> Result<Option<Bloom>> {
        let place = self.start.at(self.footer.bloom_offset);
        if self.footer.bloom_offset == self.footer.metadata_offset {
            return Ok(None);
        }
        let image: Bytes = self.section(SectionKind::Bloom, place, self.footer.metadata_offset)?.into();
        let chunks = filter::decode(&image).map_err(|malformed| place.malformed(malformed))?;
        let count = chunks.len() as u64;
        let bloom = Bloom::from_chunks(metadata.bloom, chunks);
        bloom.map(Some).ok_or_else(|| place.corrupt("bloom filter chunks", count, 0))
    }

    fn section(&self, kind: SectionKind, place: Place<'_>, end: u64) -> Result<Vec<u8>> {
        codec::decode(&place, &Frame::open(&place, kind, &self.stored(place, end)?)?, None)
    }

    fn stored(&self, place: Place<'_>, end: u64) -> Result<Vec<u8>> {
        let length = end - place.offset; // the footer's offsets ascend, as its decoder checks
        let bounds = FRAME_HEAD_BYTES as u64..=(FRAME_HEAD_BYTES + SECTION_BYTES_MAX) as u64;
        let length = usize::try_from(length)
            .ok()
            .filter(|_| bounds.contains(&length))
            .ok_or_else(|| place.corrupt("section length", *bounds.end(), length))?;
        place.read_vec(self.file, length)
    }
}
