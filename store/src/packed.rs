//! Rows of points by columns: what a read may ask for instead of cells, where a store keeps a row so.
//!
//! A row is packed only if its cells are runs of points, one behind the other in time, and a reader sees them; else it comes as
//! cells. So who asks for columns must take cells too, and the answer means the same either way.
//!
//! Invariants: a packed row's offsets ascend strictly, and its points are all integers or all floats.

use std::cmp::Ordering;

/// How a read would have rows of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packing {
    /// As cells.
    #[default]
    Cells,
    /// As arrays of offsets and values.
    Points,
    /// As what is kept of all their points together; as arrays where nothing is.
    Summaries,
    /// As their newest point alone, or as what tells it: a summary, arrays.
    Newest,
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
    /// Where its points begin; a summary has none.
    start: usize,
    of: PackedOf,
}

#[derive(Debug, Clone, Copy)]
enum PackedOf {
    Points { is_float: bool },
    Summary(RowSummary),
}

/// A cell that is one point of a packed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedPoint {
    /// Milliseconds into the row.
    pub offset_ms: u32,
    /// As in [`PackedRow::words`].
    pub word: u64,
    /// Whether the word is a float.
    pub is_float: bool,
}

/// A packed row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Packed<'a> {
    /// Its points.
    Points(PackedRow<'a>),
    /// What they are together.
    Summary(RowSummary),
}

impl Packed<'_> {
    /// The last of its points; `None` of none.
    pub fn newest(&self) -> Option<PackedPoint> {
        let (offset_ms, word, is_float) = match self {
            Self::Summary(row) => (row.last_ms, row.last, row.is_float),
            Self::Points(row) => (*row.offsets_ms.last()?, *row.words.last()?, row.is_float),
        };
        Some(PackedPoint { offset_ms, word, is_float })
    }
}

/// What the points of a row are together. There is one at least, and they are all integers or all floats; no float is
/// not-a-number, infinite or −0.
///
/// Words are as in [`PackedRow::words`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSummary {
    /// How many.
    pub count: u32,
    /// Milliseconds into the row of the first.
    pub first_ms: u32,
    /// Of the last, which has the greatest.
    pub last_ms: u32,
    /// Whether the words are floats.
    pub is_float: bool,
    /// The word of the least.
    pub min: u64,
    /// The word of the greatest.
    pub max: u64,
    /// The word of the last.
    pub last: u64,
    /// Their running sum as doubles, in the order of time, bit for bit.
    pub sum: f64,
}

impl RowSummary {
    /// Whether it is what points are together, to the last bit.
    ///
    /// *Cost*: linear; no allocation.
    pub fn is_of(&self, points: &PackedRow<'_>) -> bool {
        let PackedRow { offsets_ms, words, is_float } = *points;
        let ends = (offsets_ms.first().copied(), offsets_ms.last().copied(), words.last().copied());
        let ends_fit = ends == (Some(self.first_ms), Some(self.last_ms), Some(self.last));
        if !ends_fit || self.is_float != is_float || usize::try_from(self.count) != Ok(words.len()) {
            return false;
        }
        // Floats are in the order of these integers, as `f64::total_cmp` has it.
        let rank = |word: u64| {
            let bits = word.cast_signed();
            if is_float { bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed() } else { bits }
        };
        #[expect(clippy::cast_precision_loss, reason = "the nearest double is what readers of points add")]
        let double = |word: u64| if is_float { f64::from_bits(word) } else { word.cast_signed() as f64 };
        let first = (i64::MAX, i64::MIN, 0.0);
        let (min, max, sum) = words
            .iter()
            .fold(first, |(min, max, sum), word| (min.min(rank(*word)), max.max(rank(*word)), sum + double(*word)));
        (min, max, sum.to_bits()) == (rank(self.min), rank(self.max), self.sum.to_bits())
    }
}

/// The points of a packed row.
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
            self.rows.push(PackedEntry { start, of: PackedOf::Points { is_float } });
        } else {
            self.offsets_ms.truncate(start);
            self.words.truncate(start);
        }
        filled
    }

    /// Adds what a row's points are together.
    pub fn push_summary(&mut self, summary: RowSummary) {
        self.rows.push(PackedEntry { start: self.words.len(), of: PackedOf::Summary(summary) });
    }

    /// Makes one row of those from `first` on, which are pieces of it in the order of time; false, and all of them taken back,
    /// where they are not: where they overlap, where one is a summary, or where some are floats and others not.
    ///
    /// *Cost*: none for a point; they lie behind each other.
    pub fn join(&mut self, first: usize) -> bool {
        let pieces = || (first..self.rows.len()).map(|index| self.row(index));
        let are_behind = |(a, b): (Option<Packed<'_>>, Option<Packed<'_>>)| match (a, b) {
            (Some(Packed::Points(a)), Some(Packed::Points(b))) => {
                a.is_float == b.is_float && a.offsets_ms.last() < b.offsets_ms.first()
            }
            _ => false,
        };
        let is_one = pieces().zip(pieces().skip(1)).all(are_behind);
        if is_one {
            self.rows.truncate(first + 1);
        } else {
            self.truncate(first);
        }
        is_one
    }

    /// Makes one row of the newest point of those from `first` on, which are pieces of it; false, and all of them taken back, where
    /// two of them end at the same instant.
    pub fn keep_newest(&mut self, first: usize) -> bool {
        let (mut newest, mut is_told) = (None::<PackedPoint>, false);
        for last in (first..self.rows.len()).filter_map(|index| self.row(index)?.newest()) {
            match newest.map(|newest| newest.offset_ms.cmp(&last.offset_ms)) {
                Some(Ordering::Greater) => {}
                Some(Ordering::Equal) => is_told = false,
                Some(Ordering::Less) | None => (newest, is_told) = (Some(last), true),
            }
        }
        self.truncate(first);
        if let Some(point) = newest.filter(|_| is_told) {
            self.push_point(point);
        }
        is_told
    }

    /// Adds a row of one point.
    pub fn push_point(&mut self, point: PackedPoint) {
        self.rows.push(PackedEntry { start: self.words.len(), of: PackedOf::Points { is_float: point.is_float } });
        self.offsets_ms.push(point.offset_ms);
        self.words.push(point.word);
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
        self.words.len() * (size_of::<u32>() + size_of::<u64>()) + self.rows.len() * size_of::<PackedEntry>()
    }

    /// The row at `index`, below [`PackedRows::len`].
    pub fn row(&self, index: usize) -> Option<Packed<'_>> {
        let PackedEntry { start, of } = *self.rows.get(index)?;
        let is_float = match of {
            PackedOf::Summary(summary) => return Some(Packed::Summary(summary)),
            PackedOf::Points { is_float } => is_float,
        };
        let end = self.rows.get(index + 1).map_or(self.words.len(), |next| next.start);
        let (offsets_ms, words) = (self.offsets_ms.get(start..end)?, self.words.get(start..end)?);
        Some(Packed::Points(PackedRow { offsets_ms, words, is_float }))
    }

    /// Takes back the rows from `index` on.
    pub fn truncate(&mut self, index: usize) {
        if let Some(first) = self.rows.get(index) {
            self.offsets_ms.truncate(first.start);
            self.words.truncate(first.start);
            self.rows.truncate(index);
        }
    }

    /// Empty ones with room for so many summaries.
    pub(crate) fn with_room(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), ..Self::default() }
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
        let of = |is_float| Some(Packed::Points(PackedRow { offsets_ms: &[5, 9], words: &[1, 2], is_float }));
        assert_eq!((rows.row(0), rows.row(1), rows.row(2)), (of(false), of(true), None));
        rows.truncate(1);
        assert_eq!((rows.len(), rows.words.len(), rows.row(0)), (1, 2, of(false)));
    }

    #[test]
    fn a_summary_is_of_its_points_and_of_no_others() {
        let check = |words: &[u64], is_float, (min, max): (u64, u64), sum: f64| {
            let offsets_ms: Vec<u32> = (2..).take(words.len()).collect();
            let points = PackedRow { offsets_ms: &offsets_ms, words, is_float };
            let (count, last) = (u32::try_from(words.len()).unwrap(), *words.last().unwrap());
            let right = RowSummary { count, first_ms: 2, last_ms: count + 1, is_float, min, max, last, sum };
            assert!(right.is_of(&points), "{words:?}");
            for wrong in [
                RowSummary { count: count + 1, ..right },
                RowSummary { first_ms: 1, ..right },
                RowSummary { last_ms: 9, ..right },
                RowSummary { is_float: !is_float, ..right },
                RowSummary { min: min + 1, ..right },
                RowSummary { max: max - 1, ..right },
                RowSummary { last: last + 1, ..right },
                RowSummary { sum: sum.next_up(), ..right },
            ] {
                assert!(!wrong.is_of(&points), "{wrong:?}");
            }
        };
        check(&[5, (-7_i64).cast_unsigned(), 3], false, ((-7_i64).cast_unsigned(), 5), 1.0);
        let bits = f64::to_bits;
        check(&[bits(0.1), bits(-2.5), bits(-3.5), bits(0.2)], true, (bits(-3.5), bits(0.2)), 0.1 - 2.5 - 3.5 + 0.2);
        let none = RowSummary { count: 0, first_ms: 0, last_ms: 0, is_float: false, min: 0, max: 0, last: 0, sum: 0.0 };
        assert!(!none.is_of(&PackedRow { offsets_ms: &[], words: &[], is_float: false }));
    }

    #[test]
    fn pieces_of_a_row_are_joined_where_they_lie_behind_each_other() {
        let summary =
            RowSummary { count: 1, first_ms: 9, last_ms: 9, is_float: false, min: 1, max: 1, last: 1, sum: 1.0 };
        let piece = |rows: &mut PackedRows, (offset_ms, is_float): (u32, bool)| {
            rows.push(2, is_float, |offsets_ms, words| {
                offsets_ms.copy_from_slice(&[offset_ms, offset_ms + 1]);
                words.copy_from_slice(&[1, 2]);
                true
            })
        };
        for (pieces, is_one) in [
            (&[(5, false)][..], true),
            (&[(5, false), (7, false), (20, false)], true),
            (&[(5, true), (7, true)], true),
            (&[(5, false), (6, false)], false),
            (&[(5, false), (1, false)], false),
            (&[(5, false), (7, true)], false),
        ] {
            let mut rows = PackedRows::default();
            assert!(piece(&mut rows, (90, false)));
            assert!(pieces.iter().all(|of| piece(&mut rows, *of)));
            assert_eq!(rows.join(1), is_one);
            assert_eq!((rows.len(), rows.words.len()), if is_one { (2, 2 + 2 * pieces.len()) } else { (1, 2) });
            let Some(Packed::Points(joined)) = rows.row(1).filter(|_| is_one) else { continue };
            let expected: Vec<_> = pieces.iter().flat_map(|(offset_ms, _)| [*offset_ms, offset_ms + 1]).collect();
            assert_eq!((joined.offsets_ms, joined.words.len()), (&expected[..], expected.len()));
        }
        let mut rows = PackedRows::default();
        assert!(piece(&mut rows, (5, false)));
        rows.push_summary(summary);
        assert!(!rows.join(0) && rows.is_empty());
    }
}
