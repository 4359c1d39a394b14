//! What is asked of each engine, and the bounds that all of them are opened with.

use std::path::Path;

use anyhow::Result;

use crate::cells::Row;

/// Bytes of a memtable at which it is flushed.
pub(crate) const MEMTABLE_BYTES: u64 = 64 << 20;
/// How many memtables there may be before writers wait.
pub(crate) const MEMTABLES: u64 = 4;
/// Bytes of blocks kept in memory.
pub(crate) const CACHE_BYTES: u64 = 256 << 20;
/// Bytes of a data block.
pub(crate) const BLOCK_BYTES: u32 = 16 << 10;

/// When a batch is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// When the operating system has it.
    Os,
    /// When it is on disk.
    Fsync,
}

/// Rows of a batch: the numbers `from..to`, each with `columns` cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) columns: u64,
    pub(crate) order: crate::cells::Order,
}

/// What a scan met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) cells: u64,
    /// All bytes of keys, qualifiers and values: an engine that hands out nothing cannot count them.
    pub(crate) bytes: u64,
}

/// An engine at work in a folder of its own.
pub(crate) trait Subject {
    /// Puts rows as one batch and waits for its answer.
    fn put(&mut self, rows: Rows, durability: Durability) -> Result<()>;

    /// The value of a row's column.
    fn get(&mut self, row: &Row, qualifier: [u8; 4]) -> Result<Option<[u8; 8]>>;

    /// Every cell; blocks that are read are not kept.
    fn scan_all(&mut self) -> Result<Seen>;

    /// As many rows from a key on.
    fn scan_some(&mut self, from: &Row, rows: u64, columns: u64) -> Result<Seen>;

    /// Everything into files, and all files into one run.
    fn compact(&mut self) -> Result<()>;

    /// Whether a file holds cells, not the log nor space held back.
    fn is_data(&self, file: &Path) -> bool;
}
