//! Rows of points by columns: what a read may ask for instead of cells, where a store keeps a row so.
//!
//! A row is packed only if one cell is all there is of it, and a reader sees that cell; else it comes as cells. So who
//! asks for columns must take cells too, and the answer means the same either way.
//!
//! Invariants: a packed row's offsets ascend strictly, and its points are all integers or all floats.

/// How a read would have rows of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packing {
    /// As cells.
    #[default]
    Cells,
    /// As arrays of offsets and values.
    Points,
}

/// Packed rows as a struct of arrays. A store's codec fills them, one row at a time.
#[derive(Debug, Clone, Default)]
pub struct PackedRows {
    offsets_ms: Vec<u32>,
    words: Vec<u64>,
    rows: Vec<PackedEntry>,
}

#[derive(Debug, Clone, Copy)]
struct PackedEntry {
    start: usize,
    is_float: bool,
}

/// A packed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedRow<'a> {
    /// Milliseconds into the row, strictly ascending.
    pub offsets_ms: &'a [u32],
    /// 64-bit words, as many: integers sign-extended, or the bits of floats widened to 64 bits.
    pub words: &'a [u64],
    /// Whether the words are floats.
    pub is_float: bool,
}

impl PackedRows {
    /// Adds a row of `count` points, which `fill` writes; where it says false, nothing is added. Says whether it was.
    ///
    /// *Cost*: no allocation once warm.
    pub fn push(&mut self, count: usize, is_float: bool, fill: impl FnOnce(&mut [u32], &mut [u64]) -> bool) -> bool {
        let start = self.words.len();
        self.offsets_ms.resize(start + count, 0);
        self.words.resize(start + count, 0);
        let filled = match (self.offsets_ms.get_mut(start..), self.words.get_mut(start..)) {
            (Some(offsets_ms), Some(words)) => fill(offsets_ms, words),
            _ => false,
        };
        if filled {
            self.rows.push(PackedEntry { start, is_float });
        } else {
            self.offsets_ms.truncate(start);
            self.words.truncate(start);
        }
        filled
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of offsets and values.
    pub fn data_bytes(&self) -> usize {
        self.words.len() * (size_of::<u32>() + size_of::<u64>())
    }

    /// The row at `index`, below [`PackedRows::len`].
    pub fn row(&self, index: usize) -> Option<PackedRow<'_>> {
        let PackedEntry { start, is_float } = *self.rows.get(index)?;
        let end = self.rows.get(index + 1).map_or(self.words.len(), |next| next.start);
        Some(PackedRow { offsets_ms: self.offsets_ms.get(start..end)?, words: self.words.get(start..end)?, is_float })
    }

    /// Takes back the rows from `index` on.
    pub(crate) fn truncate(&mut self, index: usize) {
        if let Some(first) = self.rows.get(index) {
            self.offsets_ms.truncate(first.start);
            self.words.truncate(first.start);
            self.rows.truncate(index);
        }
    }

    /// Empty ones with room for as much.
    pub(crate) fn anew(&self) -> Self {
        Self {
            offsets_ms: Vec::with_capacity(self.offsets_ms.capacity()),
            words: Vec::with_capacity(self.words.capacity()),
            rows: Vec::with_capacity(self.rows.capacity()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_points_and_one_that_is_not_filled_leaves_nothing() {
        let mut rows = PackedRows::default();
        let fill = |offsets_ms: &mut [u32], words: &mut [u64]| {
            offsets_ms.copy_from_slice(&[5, 9]);
            words.copy_from_slice(&[1, 2]);
            true
        };
        assert!(rows.push(2, false, fill));
        assert!(!rows.push(100, true, |_, _| false));
        assert!(rows.push(2, true, fill));
        assert_eq!(rows.len(), 2);
        let of = |is_float| Some(PackedRow { offsets_ms: &[5, 9], words: &[1, 2], is_float });
        assert_eq!((rows.row(0), rows.row(1), rows.row(2)), (of(false), of(true), None));
        rows.truncate(1);
        assert_eq!((rows.len(), rows.data_bytes(), rows.row(0)), (1, 24, of(false)));
    }
}
