//! A filter at work: one scan's or get's state over the tree of a [`Filter`].
//!
//! A store asks it about each row before it reads the row ([`FilterRun::judge_row`]), and then about each cell that
//! retention lets through ([`FilterRun::judge_cell`]). Filters that judge a whole row by its cells answer at its end
//! ([`FilterRun::keeps_row`]). Pure: no clock, no store.
//!
//! Source: `org.apache.hadoop.hbase.filter` of HBase 2.6; accidents of its lists are kept where a reader can see them.

use bytes::Bytes;

use super::Filter;
use super::node::Node;
use super::row::is_beyond;
use crate::CellRef;

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

/// A [`Filter`] at work over the rows of one scan or get.
///
/// ```
/// # use basalt_store::{Filter, FilterRun, RowVerdict};
/// let filter = Filter::Prefix("b".into());
/// let mut run = FilterRun::new(&filter, false);
/// assert_eq!(run.judge_row(b"a"), RowVerdict::SeekTo("b".into()));
/// assert_eq!(run.judge_row(b"bc"), RowVerdict::Pass);
/// assert_eq!(run.judge_row(b"c"), RowVerdict::Done);
/// ```
#[derive(Debug)]
pub struct FilterRun {
    root: Node,
    reversed: bool,
}

impl FilterRun {
    /// A run over a scan of this direction. Ranges may come in any order and overlap.
    pub fn new(filter: &Filter, reversed: bool) -> Self {
        Self { root: Node::new(filter), reversed }
    }

    /// Begins a row and judges it by its key. Rows come in the scan's direction.
    ///
    /// Cost: logarithmic in ranges, linear in fuzzy keys; allocates for fuzzy hints only.
    pub fn judge_row(&mut self, row: &[u8]) -> RowVerdict {
        self.root.reset();
        let verdict = self.root.judge_row(row, self.reversed);
        debug_assert!(
            !matches!(&verdict, RowVerdict::SeekTo(key) if !is_beyond(key, row, self.reversed)),
            "BUG: a hint leads on"
        );
        verdict
    }

    /// Judges a cell of the row begun last; cells come in cell order.
    pub fn judge_cell(&mut self, cell: &CellRef<'_>) -> CellVerdict {
        if self.root.is_done() {
            return CellVerdict { kept: Kept::No, advance: Advance::NextRow };
        }
        self.root.judge_cell(cell)
    }

    /// Whether the answer goes without a cell that was kept: a column that is tested and not wanted.
    pub fn excludes(&self, cell: &CellRef<'_>) -> bool {
        self.root.excludes(cell)
    }

    /// At the end of a row of which cells were kept: whether they are to be given.
    pub fn keeps_row(&mut self) -> bool {
        !self.root.rejects_row()
    }

    /// Whether no later row can pass.
    pub fn is_done(&self) -> bool {
        self.root.is_done()
    }
}

#[cfg(test)]
mod tests;
