//! Writes an SSTable from cells that come in cell order, in one pass.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_store::{BloomFilter, CellKind, CellRef, Compression, FamilyDescriptor, SeqNo, Timestamp};
use bytes::Bytes;

use crate::bloom::{Bloom, BloomBuilder};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::io::{File, IoOp};

use super::block::BlockBuilder;
use super::codec::{self, BlockCodec, BlockCodecs, Encoder};
use super::filter;
use super::format::{self, FOOTER_BYTES, Footer, Frame, Layout, SECTION_BYTES_MAX, SectionKind, Version, width_u32};
use super::index::IndexBuilder;
use super::metadata::Metadata;
use super::place::Place;
use super::{CELL_BYTES_MAX, ROW_BYTES_MAX};

/// A family's BLOCKSIZE is taken into these bounds: smaller blocks make the index large, larger ones waste reads.
const BLOCK_BYTES_MIN: usize = 4 * 1024;
const BLOCK_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The metadata has two bytes for the length. New tables have shorter names; older versions took any.
const FAMILY_BYTES_MAX: usize = u16::MAX as usize;

/// A block ends between two rows if it can; in a row that goes on and on it ends at this many times its size.
const BLOCK_OVERFULL: usize = 2;

/// A leaf of the index is full at so many bytes: it is read whole where one block is looked for. Less in tests, that small files have several.
const LEAF_BYTES: usize = if cfg!(test) { 256 } else { 64 * 1024 };

/// What a file is written as.
#[derive(Debug, Clone)]
pub(crate) struct SstableOptions {
    /// The file's id, unique in the store for ever: checksums and the block cache rely on it.
    pub(crate) file_id: FileId,
    /// The column family's name.
    pub(crate) family: Bytes,
    /// Which keys the bloom filter holds.
    pub(crate) bloom: BloomFilter,
    /// How blocks are compressed when the codec, if any, declines.
    pub(crate) compression: Compression,
    /// The family's block codec, if it names one that is registered.
    pub(crate) codec: Option<Arc<dyn BlockCodec>>,
    /// When a block is full, in bytes before compression.
    pub(crate) block_bytes: usize,
}

impl SstableOptions {
    /// As a column family's descriptor says. A codec that is not registered is left out: its family's blocks are then
    /// row-wise, which every reader knows.
    pub(crate) fn of_family(file_id: FileId, family: &FamilyDescriptor, codecs: &BlockCodecs) -> Self {
        Self {
            file_id,
            family: family.name.clone(),
            bloom: family.bloom,
            compression: family.compression,
            codec: codecs.find(&family.block_encoding).map(Arc::clone),
            block_bytes: family.block_bytes as usize,
        }
    }
}

/// Writes one file. The owner made the file under a name aside, and publishes it after [`SstableWriter::finish`].
///
/// Memory: one block and its encoded form, of the index a leaf and the root (some 50 bytes and two row keys a leaf), the bloom filter
/// (1.5 bytes a key, and 8 MiB while it is collected; thrice that while it is written), which is given up beyond 512 MiB.
#[derive(Debug)]
pub(crate) struct SstableWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    file_id: FileId,
    version: Version,
    /// When a block is full; more where the index grows large.
    block_bytes: usize,
    /// When a leaf of the index is full.
    pub(super) leaf_bytes: usize,
    /// What the index's root may have, less in tests.
    pub(super) root_bytes_max: usize,
    encoder: Encoder,
    /// Of all sections but data blocks.
    sections: Encoder,
    /// Where the next section goes.
    offset: u64,
    block: BlockBuilder,
    index: IndexBuilder,
    bloom: BloomBuilder,
    bloom_kind: BloomFilter,
    metadata: Metadata,
    last: LastCell,
    frame: Vec<u8>,
}

/// The address of the cell before, to prove the order.
#[derive(Debug, Clone, Default)]
pub(super) struct LastCell {
    row: Vec<u8>,
    qualifier: Vec<u8>,
    timestamp: Timestamp,
    kind: Option<CellKind>,
    seq: SeqNo,
}

impl SstableWriter {
    /// Begins a file: writes its header at offset 0 of `file`, which must be empty; `path` is for error reports.
    ///
    /// # Errors
    /// `TooLarge` for a family name that the file has no place for; `Io` from the write.
    pub(crate) fn create(file: Arc<dyn File>, path: &Path, options: SstableOptions) -> Result<Self> {
        if options.family.len() > FAMILY_BYTES_MAX {
            return Err(too_large("column family name", options.family.len(), FAMILY_BYTES_MAX));
        }
        let codec = options.codec.as_ref().map_or("", |codec| codec.name()).into();
        // Block codecs take the image of version 1 apart.
        let layout = if options.codec.is_some() { Layout::V1 } else { Layout::V2 };
        let version = Version::of_layout(layout);
        let mut writer = Self {
            file,
            path: path.to_path_buf(),
            file_id: options.file_id,
            version,
            block_bytes: options.block_bytes.clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX),
            leaf_bytes: LEAF_BYTES,
            root_bytes_max: SECTION_BYTES_MAX,
            encoder: Encoder::new(options.codec, options.compression == Compression::Zstd),
            sections: Encoder::new(None, true),
            offset: 0,
            block: BlockBuilder::new(layout),
            index: IndexBuilder::default(),
            bloom: BloomBuilder::new(options.bloom, SECTION_BYTES_MAX),
            bloom_kind: options.bloom,
            metadata: Metadata::new(options.family, codec),
            last: LastCell::default(),
            frame: Vec::new(),
        };
        let header = format::encode_header(&writer.place(), version);
        writer.write(&header)?;
        Ok(writer)
    }

    /// Adds a cell, which must come strictly after the one before it in cell order (time and kind descending, sequence
    /// number descending).
    ///
    /// # Errors
    /// `TooLarge` for a row key of no or over [`ROW_BYTES_MAX`] bytes, a cell over [`CELL_BYTES_MAX`], or an index over its bound, also of
    /// the largest blocks;
    /// `Io` when a full block cannot be written. After an error the file is worth nothing.
    ///
    /// # Panics
    /// When cells are out of order or of another family.
    pub(crate) fn push(&mut self, cell: &CellRef<'_>) -> Result<()> {
        check_bounds(cell)?;
        assert!(cell.family == self.metadata.family, "BUG: a cell of another column family");
        let (row, column, version) = self.last.order(cell);
        let new_row = row != Ordering::Equal;
        let new_column = new_row || column != Ordering::Equal;
        let in_order = row.then(column).then(version) == Ordering::Less;
        assert!(in_order, "BUG: cells of {} come out of order", self.path.display());
        let limit = if new_row { self.block_bytes } else { self.block_bytes * BLOCK_OVERFULL };
        if !self.block.is_empty() && self.block.image_bytes() >= limit {
            self.end_block()?;
        }
        self.index.push_cell(cell, self.block.is_empty());
        self.block.push(cell, new_row);
        self.bloom.push(cell, new_row, new_column);
        self.metadata.include(cell, new_row);
        self.last.set(cell, new_row, new_column);
        Ok(())
    }

    /// Cells so far. A file of none cannot be finished.
    pub(crate) fn cells_count(&self) -> u64 {
        self.metadata.cells_count
    }

    /// Writes what remains; answers the file's length. The file is complete but not synced: publish it.
    ///
    /// # Errors
    /// `Io` from the writes.
    ///
    /// # Panics
    /// When no cell was added.
    pub(crate) fn finish(mut self) -> Result<u64> {
        assert!(self.metadata.cells_count > 0, "BUG: an SSTable without a cell");
        self.end_block()?;
        self.metadata.last_row = Bytes::copy_from_slice(&self.last.row);
        self.metadata.blocks_count = self.index.blocks_count();

        let index_offset = self.write_last_of_index()?;
        let bloom_offset = self.offset;
        self.write_bloom()?;
        let metadata_offset = self.offset;
        let metadata = self.metadata.encode();
        self.write_section(SectionKind::Metadata, codec::plain(&metadata))?;

        let file_bytes = self.offset + FOOTER_BYTES as u64;
        let footer =
            Footer { index_offset, bloom_offset, metadata_offset, file_bytes }.encode(&self.place(), self.version);
        self.write(&footer)?;
        assert!(self.offset == file_bytes, "BUG: the footer tells {file_bytes} bytes of {}", self.offset);
        Ok(file_bytes)
    }

    fn end_block(&mut self) -> Result<()> {
        if self.index.leaf_bytes() >= self.leaf_bytes {
            self.end_leaf()?;
        }
        let cells_count = self.block.cells_count();
        let place = Place { path: &self.path, file_id: self.file_id, offset: self.offset };
        let (encoder, frame) = (&mut self.encoder, &mut self.frame);
        frame.clear();
        self.block.finish(|image| encoder.encode_block(image).seal_into(&place, SectionKind::Data, frame));
        self.index.push_block(width_u32(self.frame.len()), cells_count, &self.last.row);
        self.write_frame()
    }

    /// Writes the index where one leaf is all of it, else its last leaf and the root; answers where a reader begins.
    fn write_last_of_index(&mut self) -> Result<u64> {
        let (kind, image) = if self.index.has_root() {
            self.end_leaf()?;
            (SectionKind::IndexRoot, self.index.root())
        } else {
            (SectionKind::Index, self.index.leaf())
        };
        Ok(self.write_index(kind, &image)?.0)
    }

    fn end_leaf(&mut self) -> Result<()> {
        let leaf = self.index.leaf();
        let (offset, frame_bytes) = self.write_index(SectionKind::IndexLeaf, &leaf)?;
        self.index.push_leaf(offset, frame_bytes);
        let root_bytes = self.index.root_bytes();
        if root_bytes > self.root_bytes_max {
            return Err(too_large("block index of a file", root_bytes, self.root_bytes_max));
        }
        if root_bytes > self.root_bytes_max / 2 {
            // A merge that is refused is tried for ever. What is left of the root is for fewer and larger blocks.
            self.block_bytes = (self.block_bytes * 2).min(BLOCK_BYTES_MAX);
        }
        Ok(())
    }

    /// Writes a section of the index; answers where, and the length of its frame.
    fn write_index(&mut self, kind: SectionKind, image: &[u8]) -> Result<(u64, u32)> {
        let offset = self.offset;
        let place = Place { path: &self.path, file_id: self.file_id, offset };
        self.frame.clear();
        self.sections.encode_section(image).seal_into(&place, kind, &mut self.frame);
        let frame_bytes = width_u32(self.frame.len());
        self.write_frame()?;
        Ok((offset, frame_bytes))
    }

    /// A filter that is too large for a section is left out: the file is then read where it need not be.
    fn write_bloom(&mut self) -> Result<()> {
        let builder = std::mem::replace(&mut self.bloom, BloomBuilder::new(BloomFilter::None, 0));
        let section = builder.finish().as_ref().map(Bloom::chunks).map(filter::encode);
        let Some(image) = section.filter(|image| image.len() <= SECTION_BYTES_MAX) else { return Ok(()) };
        self.metadata.bloom = self.bloom_kind;
        // Filter bits are as good as random: compression gains nothing.
        self.write_section(SectionKind::Bloom, codec::plain(&image))
    }

    fn write_section(&mut self, kind: SectionKind, section: Frame<'_>) -> Result<()> {
        self.frame.clear();
        let place = Place { path: &self.path, file_id: self.file_id, offset: self.offset };
        section.seal_into(&place, kind, &mut self.frame);
        self.write_frame()
    }

    fn write_frame(&mut self) -> Result<()> {
        let frame = std::mem::take(&mut self.frame);
        let written = self.write(&frame);
        self.frame = frame;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(self.offset, bytes).map_err(Error::io(IoOp::Write, &self.path))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn place(&self) -> Place<'_> {
        Place { path: &self.path, file_id: self.file_id, offset: self.offset }
    }
}

impl LastCell {
    /// How it compares with a cell that follows, by row, then by column, then by version; each byte is looked at once.
    /// No row key is empty, so before the first cell it comes before all.
    pub(super) fn order(&self, cell: &CellRef<'_>) -> (Ordering, Ordering, Ordering) {
        let row = self.row[..].cmp(cell.row);
        if row != Ordering::Equal {
            return (row, Ordering::Equal, Ordering::Equal);
        }
        let column = self.qualifier[..].cmp(cell.qualifier);
        if column != Ordering::Equal {
            return (row, column, Ordering::Equal);
        }
        // One column: what is left is how versions of it are told apart.
        let last = CellRef {
            row: &[],
            family: &[],
            qualifier: &[],
            timestamp: self.timestamp,
            kind: self.kind.unwrap_or(CellKind::Put),
            seq: self.seq,
            value: &[],
        };
        (row, column, last.order_in_family(&CellRef { qualifier: &[], ..*cell }))
    }

    /// Goes on to a cell; the two tell whether its row, and its column, is another one.
    pub(super) fn set(&mut self, cell: &CellRef<'_>, new_row: bool, new_column: bool) {
        if new_row {
            self.row.clear();
            self.row.extend_from_slice(cell.row);
        }
        if new_column {
            self.qualifier.clear();
            self.qualifier.extend_from_slice(cell.qualifier);
        }
        self.timestamp = cell.timestamp;
        self.kind = Some(cell.kind);
        self.seq = cell.seq;
    }
}

/// Whether a file has a place for a cell.
///
/// # Errors
/// `TooLarge`.
pub(super) fn check_bounds(cell: &CellRef<'_>) -> Result<()> {
    if cell.row.is_empty() || cell.row.len() > ROW_BYTES_MAX {
        return Err(too_large("row key", cell.row.len(), ROW_BYTES_MAX));
    }
    let cell_bytes = cell.row.len().saturating_add(cell.qualifier.len()).saturating_add(cell.value.len());
    if cell_bytes > CELL_BYTES_MAX {
        return Err(too_large("cell", cell_bytes, CELL_BYTES_MAX));
    }
    Ok(())
}

fn too_large(what: &'static str, size: usize, limit: usize) -> Error {
    basalt_store::Error::TooLarge { what, size: size as u64, limit: limit as u64 }.into()
}
