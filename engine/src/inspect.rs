//! What one SSTable holds: its own figures, its blocks, its cells.

use std::path::Path;
use std::sync::Arc;

use basalt_store::{CellRef, Packing, Timestamp};
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::id::FileId;
use crate::io::{FileSystem, IoOp};
use crate::merge::{CellSource, Direction};
use crate::sstable::{BlockCache, BlockCodecs, BlockFigures, Caching, ReadOptions, Sstable, SstableCursor};

/// An SSTable, open to be looked at.
#[derive(Debug)]
pub struct SstableFile {
    table: Arc<Sstable>,
    /// What the file tells of itself.
    pub figures: SstableFigures,
}

/// What an SSTable tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SstableFigures {
    /// Names it in its store.
    pub id: u64,
    /// Its length.
    pub bytes: u64,
    /// Its column family.
    pub family: Bytes,
    /// Name of its block codec; empty for none.
    pub block_encoding: Box<str>,
    /// Different rows.
    pub rows_count: u64,
    /// Cells, tombstones included.
    pub cells_count: u64,
    /// Tombstones.
    pub tombstones_count: u64,
    /// Data blocks.
    pub blocks_count: u64,
    /// Bytes of rows, qualifiers and values before compression.
    pub cell_bytes: u64,
    /// The smallest and the largest time.
    pub times: (Timestamp, Timestamp),
    /// The smallest and the largest sequence number.
    pub sequences: (u64, u64),
    /// The first row.
    pub first_row: Bytes,
    /// The last row.
    pub last_row: Bytes,
}

impl SstableFile {
    /// Opens a file by its path; its name tells its id.
    ///
    /// # Errors
    /// [`NoSstable`](crate::Error::NoSstable) for another name; [`Corrupt`](crate::Error::Corrupt); any I/O error.
    pub fn open(fs: &dyn FileSystem, path: &Path, codecs: &BlockCodecs) -> Result<SstableFile> {
        let table = open_path(fs, path, codecs)?;
        let metadata = table.metadata();
        let figures = SstableFigures {
            id: table.file_id().0,
            bytes: table.file_bytes(),
            family: metadata.family.clone(),
            block_encoding: metadata.codec.clone(),
            rows_count: metadata.rows_count,
            cells_count: metadata.cells_count,
            tombstones_count: metadata.tombstones_count,
            blocks_count: metadata.blocks_count.into(),
            cell_bytes: metadata.cell_bytes,
            times: (Timestamp(metadata.times.min), Timestamp(metadata.times.max)),
            sequences: (metadata.seq_min.0, metadata.seq_max.0),
            first_row: metadata.first_row.clone(),
            last_row: metadata.last_row.clone(),
        };
        Ok(SstableFile { table: Arc::new(table), figures })
    }

    /// Its data blocks, in order.
    ///
    /// # Errors
    /// `Corrupt` where the index is damaged; any I/O error.
    pub fn blocks(&self) -> Result<Vec<BlockFigures>> {
        self.table.block_figures()
    }

    /// Shows every cell in order, until `show` answers false.
    ///
    /// # Errors
    /// `Corrupt` at the first damaged block; any I/O error.
    pub fn cells(&self, mut show: impl FnMut(&CellRef<'_>) -> bool) -> Result<()> {
        let time_range = basalt_store::TimeRange::ALL;
        let options = ReadOptions {
            direction: Direction::Forward,
            time_range,
            caching: Caching::Bypass,
            packing: Packing::Cells,
        };
        let mut cursor = SstableCursor::new(Arc::clone(&self.table), options);
        cursor.rewind()?;
        while cursor.cell().is_some_and(|cell| show(&cell)) {
            cursor.advance()?;
        }
        Ok(())
    }
}

/// Opens one SSTable by its path, wherever it is.
fn open_path(fs: &dyn FileSystem, path: &Path, codecs: &BlockCodecs) -> Result<Sstable> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let id = FileId::of_name(name).ok_or_else(|| Error::NoSstable { file: path.to_path_buf() })?;
    let file = fs.open(path).map_err(Error::io(IoOp::Open, path))?;
    Sstable::open(file, path, id, codecs, Arc::new(BlockCache::new(0, 0)))
}
