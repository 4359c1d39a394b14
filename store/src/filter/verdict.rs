//! What a filter says of rows and cells.

use bytes::Bytes;

/// What a filter says of a row by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowVerdict {
    /// Read it.
    Pass,
    /// Leave it out.
    Skip,
    /// Leave it out, and all up to this key: the next row worth reading is at it or beyond it in the scan's direction.
    /// It always lies strictly further on than the row asked about.
    SeekTo(Bytes),
    /// Leave it out, and all that follow: the scan is over.
    Done,
}

/// How much of a cell is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// Nothing.
    No,
    /// All but its value, which comes empty.
    Key,
    /// All of it.
    Whole,
}

/// Where to look next within a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Advance {
    /// The next cell.
    NextCell,
    /// The next column.
    NextColumn,
    /// The next family.
    NextFamily,
    /// The next row.
    NextRow,
}

/// What a filter says of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellVerdict {
    /// How much of it is kept.
    pub kept: Kept,
    /// Where to go on; nothing before it can be kept.
    pub advance: Advance,
}

impl CellVerdict {
    /// Whole, and on to the next cell.
    pub const KEEP: Self = Self { kept: Kept::Whole, advance: Advance::NextCell };
}
