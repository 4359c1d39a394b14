//! The `opentsdb` fold of the data table's family.
//!
//! A row is kept as it is, rather than folded, when
//! - a column comes in several versions: a folded cell has one version of each point;
//! - it holds an append cell, whose points are as old as the whole cell;
//! - a cell does not hold what its qualifier says: the evidence stays for `fsck`.
//!
//! Annotations, histograms and columns of unknown kind stay beside the folded cell. The folded cell takes the newest time
//! and sequence number of its parts, so TTL counts from the last write, and a later write still wins over it.

use std::cell::RefCell;

use basalt_schema::{Duplicates, LargerOrSmaller, RowCell, RowFold};
use basalt_store::{Fold, FoldedRow, RowPut};

/// Folds rows of the data table. Which of two values at one instant wins is in the name that the family bears, so that whoever opens
/// the table folds alike: by default the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HourFold {
    data_times: Option<LargerOrSmaller>,
}

impl HourFold {
    /// The name under which a store registers it and family descriptors name it, where the newest wins.
    pub const NAME: &'static str = "opentsdb";
    /// Where the larger wins.
    const LARGER: &'static str = "opentsdb-larger";
    /// Where the smaller wins.
    const SMALLER: &'static str = "opentsdb-smaller";

    /// All that a family may name.
    pub const ALL: [Self; 3] =
        [Self::new(None), Self::new(Some(LargerOrSmaller::Larger)), Self::new(Some(LargerOrSmaller::Smaller))];

    /// The fold of a table whose cells bear the times of their points, where one is given, or else those of their writes.
    pub const fn new(data_times: Option<LargerOrSmaller>) -> Self {
        Self { data_times }
    }

    /// The fold that a family names, if it is one of these.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fold| fold.name() == name)
    }

    /// Which of two values wins, where no cell tells when it was written.
    pub const fn data_times(self) -> Option<LargerOrSmaller> {
        self.data_times
    }
}

impl Fold for HourFold {
    fn name(&self) -> &str {
        match self.data_times {
            None => Self::NAME,
            Some(LargerOrSmaller::Larger) => Self::LARGER,
            Some(LargerOrSmaller::Smaller) => Self::SMALLER,
        }
    }

    fn needs_whole_rows(&self) -> bool {
        self.data_times.is_some()
    }

    fn fold(&self, puts: &[RowPut<'_>], out: &mut FoldedRow) -> bool {
        let duplicates = self.data_times.map_or(Duplicates::NewestWins, Duplicates::ByValue);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.fold_in_order(puts, out) || (!has_versions(puts) && scratch.fold(puts, duplicates, out))
        })
    }
}

/// Whether a column has several versions. Puts are in cell order, so they lie side by side.
fn has_versions(puts: &[RowPut<'_>]) -> bool {
    puts.iter().zip(puts.iter().skip(1)).any(|(newer, older)| newer.qualifier == older.qualifier)
}

thread_local! {
    /// A thread's working memory: a store folds rows by the million.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[derive(Debug, Default)]
struct Scratch {
    fold: RowFold,
    /// Empty between rows; kept for its memory.
    cells: Vec<RowCell<'static>>,
}

impl Scratch {
    /// Fast path: points in time order, as they come.
    fn fold_in_order(&mut self, puts: &[RowPut<'_>], out: &mut FoldedRow) -> bool {
        let folded = self.fold.fold_in_order(puts.iter().map(|put| RowCell::from(*put)));
        folded.map(|cell| push(cell, out)).is_some()
    }

    fn fold(&mut self, puts: &[RowPut<'_>], duplicates: Duplicates, out: &mut FoldedRow) -> bool {
        let mut parts = recycle(std::mem::take(&mut self.cells));
        parts.extend(puts.iter().map(|put| RowCell::from(*put)));
        let folded = match self.fold.fold(&parts, duplicates) {
            Ok(Some(folded)) => {
                merge(folded, &parts, out);
                true
            }
            // Nothing to do, or damage: the row stays as it is.
            Ok(None) | Err(_) => false,
        };
        self.cells = recycle(parts);
        folded
    }
}

/// Puts the folded cell among those that stay, in cell order. Their qualifiers differ: what is joined is even in length,
/// all else is odd.
fn merge(folded: RowCell<'_>, parts: &[RowCell<'_>], out: &mut FoldedRow) {
    out.clear();
    let mut folded = Some(folded);
    for cell in parts.iter().filter(|cell| !RowFold::joins(cell.qualifier)) {
        if let Some(folded) = folded.take_if(|folded| folded.qualifier < cell.qualifier) {
            push(folded, out);
        }
        push(*cell, out);
    }
    if let Some(folded) = folded {
        push(folded, out);
    }
}

fn push(cell: RowCell<'_>, out: &mut FoldedRow) {
    let RowCell { qualifier, value, timestamp, seq } = cell;
    out.push(RowPut { qualifier, timestamp, seq, value });
}

/// The vector's memory, empty, for cells of another lifetime: collecting in place allocates nothing.
fn recycle<'b>(mut cells: Vec<RowCell<'_>>) -> Vec<RowCell<'b>> {
    cells.clear();
    let unborrowed =
        |cell: RowCell<'_>| RowCell { qualifier: &[], value: &[], timestamp: cell.timestamp, seq: cell.seq };
    cells.into_iter().map(unborrowed).collect()
}

#[cfg(test)]
mod tests;
