//! A filter at work: one scan's or get's state over the tree of a [`Filter`].
//!
//! A store asks it about each row before it reads the row ([`FilterRun::judge_row`]), and then about each cell that
//! retention lets through ([`FilterRun::judge_cell`]). Filters that judge a whole row by its cells answer at its end
//! ([`FilterRun::keeps_row`]). Pure: no clock, no store.
//!
//! Source: `org.apache.hadoop.hbase.filter` of HBase 2.6; accidents of its lists are kept where a reader can see them.

use super::Filter;
use super::node::Node;
use super::row::is_beyond;
use super::verdict::{Advance, CellVerdict, Kept, RowVerdict};
use crate::CellRef;

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
