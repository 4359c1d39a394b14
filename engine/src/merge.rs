//! One ordered stream out of many: memtables and SSTables of a region's family, merged.
//!
//! Forward, cells come in cell order (rule S-SCAN-6). In reverse, rows descend and the cells of a row ascend as ever
//! (rule S-SCAN-7). What a reader may see of them is not decided here.
//!
//! Invariant: cells of equal address and sequence number come in the order of their sources; none is dropped.

use std::cmp::Ordering;

use basalt_store::{CellRef, RowPut};

use crate::error::Result;

/// Which way rows are walked; the cells of a row always ascend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the smallest row key.
    Forward,
    /// From the largest row key.
    Reverse,
}

impl Direction {
    /// The order in which two cells of one family come.
    #[cfg(test)]
    pub(crate) fn order(self, a: &CellRef<'_>, b: &CellRef<'_>) -> Ordering {
        let rows = match self {
            Self::Forward => a.row.cmp(b.row),
            Self::Reverse => b.row.cmp(a.row),
        };
        rows.then_with(|| a.order_in_family(b))
    }
}

/// What a source knows of the row that it came to by a step, so that nobody compares keys to learn it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It stands on a cell of the row that it stood on before.
    SameRow,
    /// It does not.
    OtherRow,
    /// It did not look: compare.
    Untold,
}

/// A sorted stream of cells that stands on one of them, or past the last.
///
/// A new one stands nowhere: `rewind` or `seek` comes first. Its direction is its own; what a [`Merge`] is given must
/// agree.
pub(crate) trait CellSource {
    /// The cell it stands on; `None` past the last.
    fn cell(&self) -> Option<CellRef<'_>>;

    /// The row key of that cell. Much is decided by it alone, and a cell is put together of many parts.
    fn row(&self) -> Option<&[u8]> {
        self.cell().map(|cell| cell.row)
    }

    /// Makes a cell of the row that it stands on, where it has none yet: a source that is asked for columns stands on rows.
    fn unpack(&mut self) -> Result<()> {
        Ok(())
    }

    /// Lends the row that it stands on, key and cells, where it has made no cell of it yet, and these are puts, each its column's
    /// only cell. Answers what `take` says of them; false where no row is lent.
    fn lend_row(&self, _take: &mut dyn FnMut(&[u8], &[RowPut<'_>]) -> bool) -> bool {
        false
    }

    /// Goes to the next cell; stays past the last.
    fn advance(&mut self) -> Result<Step>;

    /// Goes to the first cell of its direction.
    fn rewind(&mut self) -> Result<()>;

    /// Forward: goes to the first cell at or after the column `qualifier` of `row`; empty: the row's beginning.
    /// In reverse: goes to the beginning of the largest row that is not after `row`; `qualifier` plays no part.
    fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()>;
}

impl<S: CellSource + ?Sized> CellSource for Box<S> {
    fn cell(&self) -> Option<CellRef<'_>> {
        (**self).cell()
    }

    fn row(&self) -> Option<&[u8]> {
        (**self).row()
    }

    fn unpack(&mut self) -> Result<()> {
        (**self).unpack()
    }

    fn lend_row(&self, take: &mut dyn FnMut(&[u8], &[RowPut<'_>]) -> bool) -> bool {
        (**self).lend_row(take)
    }

    fn advance(&mut self) -> Result<Step> {
        (**self).advance()
    }

    fn rewind(&mut self) -> Result<()> {
        (**self).rewind()
    }

    fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        (**self).seek(row, qualifier)
    }
}

/// The merge of sources of one family, itself a source: a binary heap of those that stand on a cell.
///
/// Cost of a step: two comparisons while one source leads, twice log₂ of the sources at most, nearly all of them of two
/// numbers; none for a single source.
/// After an error it stands on no promised cell: seek, or give it up.
#[derive(Debug)]
pub(crate) struct Merge<S> {
    sources: Vec<S>,
    direction: Direction,
    /// The sources that stand on a cell; the next one to come is first.
    heap: Vec<Standing>,
}

/// A source that stands on a cell.
#[derive(Debug, Clone, Copy)]
struct Standing {
    /// Of the row that it stands in: nearly all comparisons end here, and touch no key.
    head: u128,
    /// The source's number.
    source: usize,
}

impl<S: CellSource> Merge<S> {
    /// Merges sources that all walk in `direction`. Stands nowhere yet.
    pub(crate) fn new(sources: Vec<S>, direction: Direction) -> Self {
        let heap = Vec::with_capacity(sources.len());
        Self { sources, direction, heap }
    }

    /// Whether there is nothing to merge.
    pub(crate) fn is_void(&self) -> bool {
        self.sources.is_empty()
    }

    /// The source that the current cell comes from, by its place in the list.
    #[cfg(test)]
    pub(crate) fn source_index(&self) -> Option<usize> {
        self.heap.first().map(|first| first.source)
    }

    /// The source that alone stands on the row that comes next.
    pub(crate) fn alone(&self) -> Option<&S> {
        let (top, others) = self.heap.split_first()?;
        let source = self.sources.get(top.source)?;
        let row = source.row()?;
        // The next in order is one of the first two of the others.
        let has_row =
            |other: &Standing| other.head == top.head && self.sources.get(other.source).and_then(S::row) == Some(row);
        (!others.iter().take(2).any(has_row)).then_some(source)
    }

    /// The sources that stand on the row that comes next, the oldest first.
    pub(crate) fn standing(&self) -> impl Iterator<Item = &S> {
        let row = self.heap.first().and_then(|top| self.sources.get(top.source)?.row());
        self.sources.iter().rev().filter(move |source| row.is_some() && source.row() == row)
    }

    /// The source that alone does, to be moved within the row.
    pub(crate) fn alone_mut(&mut self) -> Option<&mut S> {
        self.alone()?;
        self.heap.first().and_then(|top| self.sources.get_mut(top.source))
    }

    /// Makes cells of a row in every source that stands on it.
    pub(crate) fn unpack_row(&mut self, row: &[u8]) -> Result<()> {
        for source in self.sources.iter_mut().filter(|source| source.row() == Some(row)) {
            source.unpack()?;
        }
        if self.heap.len() > 1 {
            self.rebuild();
        }
        Ok(())
    }

    fn rebuild(&mut self) {
        self.heap.clear();
        let standing = |(source, cells): (usize, &S)| Some(Standing { head: head(cells.row()?), source });
        self.heap.extend(self.sources.iter().enumerate().filter_map(standing));
        for slot in (0..self.heap.len() / 2).rev() {
            self.sift_down(slot);
        }
    }

    /// Lets the source at `slot` sink below those that come before it.
    #[expect(clippy::indexing_slicing, reason = "slots are compared with the heap's length, as the loop says")]
    fn sift_down(&mut self, mut slot: usize) {
        loop {
            let left = 2 * slot + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let right_first = right < self.heap.len() && self.comes_first(self.heap[right], self.heap[left]);
            let child = if right_first { right } else { left };
            if !self.comes_first(self.heap[child], self.heap[slot]) {
                return;
            }
            self.heap.swap(slot, child);
            slot = child;
        }
    }

    fn comes_first(&self, a: Standing, b: Standing) -> bool {
        let heads = match self.direction {
            Direction::Forward => a.head.cmp(&b.head),
            Direction::Reverse => b.head.cmp(&a.head),
        };
        let order = if heads == Ordering::Equal { self.order_of(a.source, b.source) } else { heads };
        order == Ordering::Less
    }

    /// The order of two sources by the cells that they stand on; of equal ones the first source comes first.
    #[expect(clippy::indexing_slicing, reason = "the heap holds numbers of sources")]
    fn order_of(&self, a: usize, b: usize) -> Ordering {
        let rows = match (self.direction, self.sources[a].row(), self.sources[b].row()) {
            (Direction::Forward, Some(a), Some(b)) => a.cmp(b),
            (Direction::Reverse, Some(a), Some(b)) => b.cmp(a),
            (_, a, b) => b.is_some().cmp(&a.is_some()),
        };
        // Of a row that is not unpacked there is no cell: then its sources have no order, and need none.
        let cells = || match (self.sources[a].cell(), self.sources[b].cell()) {
            (Some(a), Some(b)) => a.order_in_family(&b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        rows.then_with(cells).then(a.cmp(&b))
    }
}

impl<S: CellSource> CellSource for Merge<S> {
    fn cell(&self) -> Option<CellRef<'_>> {
        let first = self.heap.first()?;
        self.sources.get(first.source)?.cell()
    }

    fn row(&self) -> Option<&[u8]> {
        let first = self.heap.first()?;
        self.sources.get(first.source)?.row()
    }

    fn advance(&mut self) -> Result<Step> {
        let is_alone = self.heap.len() == 1;
        let Some(top) = self.heap.first_mut() else { return Ok(Step::OtherRow) };
        let first = top.source;
        let Some(source) = self.sources.get_mut(first) else { return Ok(Step::OtherRow) };
        let step = source.advance()?;
        // Fast path: nobody else to come first.
        if is_alone {
            if step != Step::SameRow && source.row().is_none() {
                self.heap.clear();
            }
            return Ok(step);
        }
        if step != Step::SameRow {
            match source.row() {
                Some(row) => top.head = head(row),
                None => drop(self.heap.swap_remove(0)),
            }
        }
        self.sift_down(0);
        Ok(if self.heap.first().is_some_and(|top| top.source == first) { step } else { Step::Untold })
    }

    fn rewind(&mut self) -> Result<()> {
        self.heap.clear();
        self.sources.iter_mut().try_for_each(S::rewind)?;
        self.rebuild();
        Ok(())
    }

    fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        self.heap.clear();
        self.sources.iter_mut().try_for_each(|source| source.seek(row, qualifier))?;
        self.rebuild();
        Ok(())
    }
}

/// The first bytes of a row key as a number that orders as they do; rows with equal heads are compared whole.
fn head(row: &[u8]) -> u128 {
    if let Some(head) = row.first_chunk() {
        return u128::from_be_bytes(*head);
    }
    let mut padded = [0; size_of::<u128>()];
    for (place, byte) in padded.iter_mut().zip(row) {
        *place = *byte;
    }
    u128::from_be_bytes(padded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sstable::tests::{OwnedCell, any_cell, reversed, sorted};

    /// Cells in the order of a direction.
    #[derive(Debug)]
    struct List {
        cells: Vec<OwnedCell>,
        at: usize,
        direction: Direction,
    }

    impl CellSource for List {
        fn cell(&self) -> Option<CellRef<'_>> {
            self.cells.get(self.at).map(OwnedCell::borrow)
        }

        fn advance(&mut self) -> Result<Step> {
            let before = self.cells.get(self.at).map(|cell| cell.row.clone());
            self.at += 1;
            let after = self.cells.get(self.at).map(|cell| cell.row.clone());
            // Every other time it does not look.
            let told = if after.is_some() && before == after { Step::SameRow } else { Step::OtherRow };
            Ok(if self.at.is_multiple_of(2) { told } else { Step::Untold })
        }

        fn rewind(&mut self) -> Result<()> {
            self.at = 0;
            Ok(())
        }

        fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
            self.at = self.cells.partition_point(|cell| match self.direction {
                Direction::Forward => (&cell.row[..], &cell.qualifier[..]) < (row, qualifier),
                Direction::Reverse => cell.row[..] > *row,
            });
            Ok(())
        }
    }

    fn rest(merge: &mut Merge<List>) -> Vec<OwnedCell> {
        let mut cells: Vec<OwnedCell> = Vec::new();
        while let Some(cell) = merge.cell() {
            cells.push(OwnedCell::of(&cell));
            let step = merge.advance().unwrap();
            let is_same = merge.cell().is_some_and(|cell| cells.last().is_some_and(|last| last.row == cell.row));
            assert!(step == Step::Untold || (step == Step::SameRow) == is_same, "{step:?}");
        }
        merge.advance().unwrap();
        assert!(merge.cell().is_none() && merge.source_index().is_none());
        cells
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// S-SCAN-6, S-SCAN-7: merging sorted lists is sorting their cells.
        #[test]
        fn s_scan_6_merge_is_sort(
            lists in proptest::collection::vec(proptest::collection::vec(any_cell(), 0..60), 0..7),
            target in any_cell(),
            reverse: bool,
        ) {
            let direction = if reverse { Direction::Reverse } else { Direction::Forward };
            let arrange = |cells| if reverse { reversed(sorted(cells)) } else { sorted(cells) };
            let sources: Vec<_> =
                lists.into_iter().map(|cells| List { cells: arrange(cells), at: 0, direction }).collect();
            let mut expected: Vec<_> = sources.iter().flat_map(|list| list.cells.clone()).collect();
            expected.sort_by(|a, b| direction.order(&a.borrow(), &b.borrow())); // stable: ties by source
            let mut merge = Merge::new(sources, direction);
            merge.rewind().unwrap();
            prop_assert_eq!(&rest(&mut merge), &expected);
            merge.seek(&target.row, b"").unwrap();
            let from = expected.partition_point(|cell| match direction {
                Direction::Forward => cell.row < target.row,
                Direction::Reverse => cell.row > target.row,
            });
            prop_assert_eq!(&rest(&mut merge), &expected[from..]);
        }
    }

    /// S-VERS-3: of two cells at one address the one written last is met first.
    #[test]
    fn s_vers_3_the_larger_sequence_number_comes_first() {
        let of = |seq: u64| {
            let cells = vec![OwnedCell { seq, ..OwnedCell::put("r", b"q", 5, &seq.to_le_bytes()) }];
            List { cells, at: 0, direction: Direction::Forward }
        };
        let mut merge = Merge::new(vec![of(3), of(9), of(6)], Direction::Forward);
        merge.rewind().unwrap();
        assert_eq!(merge.source_index(), Some(1));
        assert_eq!(rest(&mut merge).iter().map(|cell| cell.seq).collect::<Vec<_>>(), [9, 6, 3]);
    }
}
