//! SSTable: an immutable file of sorted cells, one column family of one region.
//!
//! ```text
//! header │ data block … index leaf │ … │ data block … index leaf │ index root │ bloom filter │ metadata │ footer
//! ```
//!
//! The byte map is `docs/formats/sstable.md`, its only telling. [`SstableWriter`] writes a file in one pass from cells
//! in cell order; [`Sstable`] is an open one: the index's root, filter and metadata in memory, blocks and leaves of the index
//! read on demand through the block cache; [`SstableCursor`] walks it, forward or by rows backwards.
//!
//! Invariants:
//! - Every byte is under a checksum or is compared with a constant, and each checksum binds file id and offset: what
//!   was not written here and now by us is reported as `Corrupt`, never returned as a cell.
//! - Nothing in a file makes a reader panic, or take more memory than a named bound.
//! - No answer depends on the bloom filter: a file is read without one that is damaged, or that memory has no room for.
//! - A file is never changed once published.

mod block;
mod block_cache;
mod block_index;
mod codec;
mod cursor;
mod figures;
mod filter;
#[cfg(any(test, fuzzing))]
pub(crate) mod foreign;
mod format;
mod index;
mod input;
mod leaves;
mod marks;
mod metadata;
mod packed;
mod part;
mod place;
mod proof;
mod remains;
mod salvage;
mod sections;
mod span;
#[cfg(test)]
pub(crate) mod tests;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use basalt_store::with_causes;
use bytes::Bytes;

use crate::bloom::Bloom;
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::io::{File, IoOp};

use block_index::BlockIndex;
use codec::find_codec;
use format::{FOOTER_BYTES, Footer, Frame, HEADER_BYTES, SectionKind, Version};
use index::IndexEntry;
use input::Malformed;
use place::Place;
use sections::Sections;

pub(crate) use block::Block;
pub(crate) use block_cache::{BlockCache, Caching};
use block_cache::{Cached, FilterRoom};
pub use codec::{BlockCodec, BlockCodecs};
pub(crate) use cursor::{ReadOptions, SstableCursor};
pub use figures::BlockFigures;
pub(crate) use metadata::Metadata;
pub use packed::PackedBlock;
use packed::{Columns, Loaded};
pub(crate) use remains::Remains;
#[cfg(test)]
pub(crate) use span::TimeSpan;
pub(crate) use writer::{SstableOptions, SstableWriter};

/// The longest row key, HBase's limit.
pub(crate) const ROW_BYTES_MAX: usize = i16::MAX as usize;
/// The largest cell: row key, qualifier and value together.
pub(crate) const CELL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Set in the offset by which the cache keeps a block that was asked for by columns; no file is so long.
const PACKED_BLOCKS: u64 = 1 << 63;

/// An open SSTable. Shared by all that read it; the file may be unlinked while it is open.
#[derive(Debug)]
pub(crate) struct Sstable {
    file: Arc<dyn File>,
    path: PathBuf,
    file_id: FileId,
    file_bytes: u64,
    version: Version,
    footer: Footer,
    metadata: Metadata,
    index: BlockIndex,
    /// Unset while memory has no room for it; none where the file has none, or what it has does not read.
    filter: OnceLock<Option<HeldFilter>>,
    codec: Option<Arc<dyn BlockCodec>>,
    cache: Arc<BlockCache>,
}

/// A bloom filter in memory.
#[derive(Debug)]
struct HeldFilter {
    bloom: Bloom,
    #[expect(dead_code, reason = "gives its bytes back when the file is closed")]
    room: FilterRoom,
}

impl Sstable {
    /// Opens a published file: checks header, footer and every section but the data blocks and leaves of the index, which are checked
    /// when they are read. Of a bloom filter that does not read, or for which there is no room, it does without.
    ///
    /// Cost: five reads; the index's root stays in memory, and the bloom filter where the cache has room for it.
    ///
    /// # Errors
    /// `Corrupt` for damage or for a file of another id; `UnknownCodec` for a block codec that is not registered here; `Version`
    /// for a file of a later program; `Io`.
    pub(crate) fn open(
        file: Arc<dyn File>,
        path: &Path,
        file_id: FileId,
        codecs: &BlockCodecs,
        cache: Arc<BlockCache>,
    ) -> Result<Self> {
        let start = Place { path, file_id, offset: 0 };
        let file_bytes = file.len().map_err(Error::io(IoOp::Len, path))?;
        let least = (HEADER_BYTES + FOOTER_BYTES) as u64;
        if file_bytes < least {
            return Err(start.corrupt("file length", least, file_bytes));
        }
        let version = format::check_header(&start, &start.read_array(&*file)?)?;
        let footer_at = start.at(file_bytes - FOOTER_BYTES as u64);
        let footer = Footer::decode(&footer_at, &footer_at.read_array(&*file)?, version)?;

        let sections = Sections { file: &*file, start, footer };
        let metadata = sections.metadata()?;
        let codec = find_codec(path, &metadata.codec, codecs)?;
        let index = sections.index(&metadata)?;
        let (path, filter) = (path.to_path_buf(), OnceLock::new());
        let table = Self { file, path, file_id, file_bytes, version, footer, metadata, index, filter, codec, cache };
        match table.hold_filter() {
            Err(error) if !error.is_unreadable() => Err(error),
            _ => Ok(table),
        }
    }

    /// The id that a file was written under, by its header, where that is sound.
    pub(crate) fn own_id(file: &dyn File, path: &Path, named: FileId) -> Option<FileId> {
        let header = Place { path, file_id: named, offset: 0 }.read_array(file).ok()?;
        format::header_id(path, &header)
    }

    /// Reads the filter into memory, unless it is there, or there is no room, or it was found not to read.
    ///
    /// # Errors
    /// `Corrupt` and `Io`, once.
    pub(crate) fn hold_filter(&self) -> Result<()> {
        if self.filter.get().is_some() {
            return Ok(());
        }
        let Some(room) = self.cache.filter_room(self.filter_bytes()) else { return Ok(()) };
        let read = self.read_filter();
        let (held, told) = match read {
            Ok(bloom) => (bloom.map(|bloom| HeldFilter { bloom, room }), Ok(())),
            Err(error) => (None, Err(error)),
        };
        // Another thread may have been quicker.
        drop(self.filter.set(held));
        told
    }

    /// Whether the file has the bloom filter that it was written with, if any. No I/O where that is in memory.
    ///
    /// # Errors
    /// `Corrupt` and `Io`.
    pub(crate) fn check_filter(&self) -> Result<()> {
        if self.bloom().is_some() { Ok(()) } else { self.read_filter().map(drop) }
    }

    /// For what it is read without its filter, if that is not for want of room.
    pub(crate) fn damage_of_filter(&self) -> Option<Error> {
        if matches!(self.filter.get(), Some(None)) { self.read_filter().err() } else { None }
    }

    /// Whether it has a filter that is not in memory.
    pub(crate) fn is_without_filter(&self) -> bool {
        self.filter_bytes() > 0 && self.bloom().is_none()
    }

    fn filter_bytes(&self) -> u64 {
        self.footer.metadata_offset - self.footer.bloom_offset // they ascend, as its decoder checks
    }

    fn bloom(&self) -> Option<&Bloom> {
        Some(&self.filter.get()?.as_ref()?.bloom)
    }

    fn read_filter(&self) -> Result<Option<Bloom>> {
        Sections { file: &*self.file, start: self.place(0), footer: self.footer }.bloom(&self.metadata)
    }

    /// The file's id.
    pub(crate) fn file_id(&self) -> FileId {
        self.file_id
    }

    /// The file's length.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// What the file knows about itself.
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Bytes of memory that it keeps while open, blocks not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.index.held().memory_bytes() + self.bloom().map_or(0, Bloom::memory_bytes)
    }

    /// False when the file certainly has no cell of the row. No I/O.
    pub(crate) fn may_contain_row(&self, row: &[u8]) -> bool {
        // The filter knows the rows that it covers.
        self.bloom().map_or_else(|| self.covers(row), |bloom| bloom.may_contain_row(row))
    }

    /// False when the file certainly has neither a cell of the column nor a tombstone over its family. No I/O.
    pub(crate) fn may_contain_column(&self, row: &[u8], qualifier: &[u8]) -> bool {
        self.bloom().map_or_else(|| self.covers(row), |bloom| bloom.may_contain_column(row, qualifier))
    }

    fn covers(&self, row: &[u8]) -> bool {
        self.metadata.first_row[..] <= *row && *row <= self.metadata.last_row[..]
    }

    /// A block, from the cache or the file; its bytes, where it was read from there.
    fn read_block(&self, entry: &IndexEntry, caching: Caching) -> Result<(Block, Option<u64>)> {
        if let Some(Cached::Data(Loaded::Image(cached))) = self.cache.get(self.file_id, entry.offset) {
            return Ok((cached, None));
        }
        let read = self.read_block_from_file(entry)?;
        self.cache.insert(self.file_id, entry.offset, Cached::Data(Loaded::Image(read.clone())), caching);
        Ok((read, Some(entry.frame_bytes.into())))
    }

    /// A block by columns where its codec has them, else by rows; from the cache or the file.
    ///
    /// Both forms of a block may be kept: who wants cells never meets columns.
    fn load_packed(&self, entry: &IndexEntry, caching: Caching) -> Result<(Loaded, Option<u64>)> {
        let kept_at = entry.offset | PACKED_BLOCKS;
        if let Some(Cached::Data(cached)) = self.cache.get(self.file_id, kept_at) {
            return Ok((cached, None));
        }
        let place = self.place(entry.offset);
        let bytes = self.read_stored(entry)?;
        let frame = Frame::open(&place, SectionKind::Data, &bytes)?;
        let loaded = match codec::open_packed(&frame, self.codec.as_deref()) {
            Some(packed) => {
                place.require("number of cells", entry.count.into(), packed.rows_count() as u64)?;
                Loaded::Packed(Arc::new(Columns::new(packed)))
            }
            None => Loaded::Image(self.parse_block(entry, &frame, &bytes)?),
        };
        self.cache.insert(self.file_id, kept_at, Cached::Data(loaded.clone()), caching);
        Ok((loaded, Some(entry.frame_bytes.into())))
    }

    /// Reads, checks and decodes a block: checksum first, nothing is decoded that fails it.
    fn read_block_from_file(&self, entry: &IndexEntry) -> Result<Block> {
        let bytes = self.read_stored(entry)?;
        self.parse_block(entry, &Frame::open(&self.place(entry.offset), SectionKind::Data, &bytes)?, &bytes)
    }

    /// A block's frame as it lies in the file.
    fn read_stored(&self, entry: &IndexEntry) -> Result<Bytes> {
        self.place(entry.offset).read_vec(&*self.file, entry.frame_bytes as usize).map(Bytes::from)
    }

    /// The block of a frame in `bytes` whose checksum is proved.
    fn parse_block(&self, entry: &IndexEntry, frame: &Frame<'_>, bytes: &Bytes) -> Result<Block> {
        let place = self.place(entry.offset);
        let image = codec::decode_shared(&place, frame, bytes, self.codec.as_deref())?;
        let read = Block::parse(image, self.version.layout()).map_err(|malformed| place.malformed(malformed))?;
        place.require("number of cells", entry.count.into(), read.cells_count().into())?;
        Ok(read)
    }

    fn place(&self, offset: u64) -> Place<'_> {
        Place { path: &self.path, file_id: self.file_id, offset }
    }

    /// A checksum that fits over a layout that does not: written so, by us.
    #[cold]
    fn malformed(&self, offset: u64, malformed: Malformed) -> Error {
        self.place(offset).malformed(malformed)
    }
}

/// What a file is read without is damage all the same: there is often more of it.
pub(crate) fn tell_of_filter(error: &Error) {
    let error = with_causes(error);
    tracing::error!(error, "a file is read without its bloom filter; a compaction or a repair writes it anew");
}
