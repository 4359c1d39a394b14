//! A joined cell decoded run by run: the fast path of a folded row.
//!
//! Neighbours of a folded row mostly share resolution, kind and width, so their qualifiers and values are read by loops
//! over slices that a compiler can make wide. What they read is what a walk point by point reads
//! ([`CompactedPoints`](crate::compacted::CompactedPoints)); that walk alone tells what is wrong with a damaged cell.

use super::RowPoints;
use crate::compacted::META_BYTES;
use crate::qualifier::{MILLI_MARK, MILLI_MARK_BYTE, MILLI_SHIFT, SECOND_SHIFT, point_kind};
use crate::{ColumnKind, PointKind, Qualifier, StoredPoint};

/// Bytes of a qualifier in seconds, and in milliseconds.
const SECONDS: usize = 2;
const MILLIS: usize = 4;
/// How many qualifiers are looked at together at first.
const STRETCH_MIN: usize = 8;
/// The flags in a qualifier's last byte.
const FLAGS: u8 = 0xF;

impl RowPoints {
    /// Replaces the points by those of a plain or a joined cell as they are stored, in its order; `None`, with the points
    /// unspecified, for any other cell, or one that does not hold what its qualifiers say to the last byte.
    pub(crate) fn take_cell(&mut self, qualifier: &[u8], value: &[u8]) -> Option<()> {
        self.clear();
        match ColumnKind::of(qualifier) {
            ColumnKind::Compacted => self.push_joined(qualifier, value).then_some(()),
            ColumnKind::Point => {
                let (qualifier, _) = Qualifier::decode_first(qualifier)?;
                self.push(StoredPoint { qualifier, value }).then_some(())
            }
            _ => None,
        }
    }

    /// Adds the points of a joined cell in stored order; `false`, and none is added, if it does not hold what its
    /// qualifiers say.
    ///
    /// *Cost*: some nanoseconds a run and a fraction of one a point; allocates only to grow.
    pub(super) fn push_joined(&mut self, qualifiers: &[u8], values: &[u8]) -> bool {
        let before = self.values.len();
        let whole = self.push_runs(qualifiers, values).is_some();
        if !whole {
            self.offsets_ms.truncate(before);
            self.values.truncate(before);
            self.kinds.truncate(before);
        }
        assert_eq!(self.offsets_ms.len(), self.values.len(), "BUG: offsets without values");
        whole
    }

    fn push_runs(&mut self, mut qualifiers: &[u8], mut values: &[u8]) -> Option<()> {
        while let Some(first) = qualifiers.first() {
            let (kind, taken) = if first & MILLI_MARK_BYTE == MILLI_MARK_BYTE {
                let kind = point_kind(*qualifiers.get(MILLIS - 1)?).with_millis(true);
                (kind, self.push_millis(qualifiers, kind))
            } else {
                let kind = point_kind(*qualifiers.get(SECONDS - 1)?);
                (kind, self.push_seconds(qualifiers, kind))
            };
            assert!(taken > 0, "BUG: a qualifier is not of its own run");
            let bytes = if kind.is_millis() { MILLIS } else { SECONDS };
            let (run, rest) = values.split_at_checked(taken * kind.value_bytes())?;
            self.push_values(run, kind)?;
            self.kinds.resize(self.kinds.len() + taken, kind);
            (qualifiers, values) = (qualifiers.get(taken * bytes..)?, rest);
        }
        (values.len() == META_BYTES).then_some(())
    }

    /// Adds the offsets of the run of this kind, in seconds, that `qualifiers` begin with; gives its length, at least 1.
    fn push_seconds(&mut self, qualifiers: &[u8], kind: PointKind) -> usize {
        let (all, _) = qualifiers.as_chunks::<SECONDS>();
        let is_of_run =
            |[high, low]: &[u8; SECONDS]| (high & MILLI_MARK_BYTE != MILLI_MARK_BYTE) & (low & FLAGS == kind.flags());
        let run = run_of(all, is_of_run);
        self.offsets_ms
            .extend(run.iter().map(|qualifier| u32::from(u16::from_be_bytes(*qualifier) >> SECOND_SHIFT) * 1000));
        run.len()
    }

    /// The same in milliseconds.
    fn push_millis(&mut self, qualifiers: &[u8], kind: PointKind) -> usize {
        let (all, _) = qualifiers.as_chunks::<MILLIS>();
        let is_of_run = |[high, _, _, low]: &[u8; MILLIS]| {
            (high & MILLI_MARK_BYTE == MILLI_MARK_BYTE) & (low & FLAGS == kind.flags())
        };
        let run = run_of(all, is_of_run);
        self.offsets_ms
            .extend(run.iter().map(|qualifier| (u32::from_be_bytes(*qualifier) & !MILLI_MARK) >> MILLI_SHIFT));
        run.len()
    }

    /// Adds values of one kind; `None` if no value has its width.
    fn push_values(&mut self, bytes: &[u8], kind: PointKind) -> Option<()> {
        let integer = |value: i64| value.cast_unsigned();
        match (kind.is_float(), kind.value_bytes()) {
            (false, 1) => self.values.extend(bytes.iter().map(|byte| integer(byte.cast_signed().into()))),
            (false, 2) => self.values.extend(whole(bytes).map(|bytes| integer(i16::from_be_bytes(bytes).into()))),
            (false, 4) => self.values.extend(whole(bytes).map(|bytes| integer(i32::from_be_bytes(bytes).into()))),
            (true, 4) => self.values.extend(whole(bytes).map(|bytes| f64::from(f32::from_be_bytes(bytes)).to_bits())),
            (_, 8) => self.values.extend(whole(bytes).map(u64::from_be_bytes)),
            _ => return None,
        }
        Some(())
    }
}

/// The values of one width that make up `bytes`.
fn whole<const WIDTH: usize>(bytes: &[u8]) -> impl ExactSizeIterator<Item = [u8; WIDTH]> {
    let (values, _) = bytes.as_chunks::<WIDTH>();
    values.iter().copied()
}

/// Those that `all` begin with and that are of a run. Looks at stretches that double, each without a branch: most rows are
/// one run, and where kinds alternate little is looked at twice.
fn run_of<T>(all: &[T], is_of_run: impl Fn(&T) -> bool) -> &[T] {
    let (mut len, mut stretch) = (0, STRETCH_MIN);
    while let Some(next) = all.get(len..).filter(|next| !next.is_empty()) {
        let next = next.get(..stretch).unwrap_or(next);
        if !next.iter().fold(true, |so_far, one| so_far & is_of_run(one)) {
            len += next.iter().take_while(|one| is_of_run(one)).count();
            break;
        }
        len += next.len();
        stretch *= 2;
    }
    all.get(..len).unwrap_or_default()
}

/// Whether offsets ascend strictly, and from `last` on.
pub(super) fn ascend(last: Option<u32>, offsets_ms: &[u32]) -> bool {
    let Some((first, rest)) = offsets_ms.split_first() else {
        return true;
    };
    let pairs = offsets_ms.iter().zip(rest);
    let misplaced: u32 = pairs.map(|(before, after)| u32::from(before >= after)).sum();
    misplaced == 0 && last.is_none_or(|last| last < *first)
}
