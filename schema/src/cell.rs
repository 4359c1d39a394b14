//! One cell of a data row, and the walk over the points in it.

use basalt_store::{CellRef, CellView, RowPut, SeqNo, Timestamp};

use crate::append::AppendedPoints;
use crate::compacted::CompactedPoints;
use crate::value::repair_lone;
use crate::{ColumnKind, Damage, Error, Qualifier, Result, StoredPoint};

/// A cell of a data row, as the decoders and the fold need it: whatever store or buffer it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCell<'a> {
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Value.
    pub value: &'a [u8],
    /// When it was written: of two values at one instant the later wins.
    pub timestamp: Timestamp,
    /// In which order it was written: decides between equal times. 0 where a store cannot tell.
    pub seq: SeqNo,
}

impl<'a> From<CellView<'a>> for RowCell<'a> {
    fn from(cell: CellView<'a>) -> Self {
        Self { qualifier: cell.qualifier, value: cell.value, timestamp: cell.timestamp, seq: cell.seq }
    }
}

impl<'a> From<CellRef<'a>> for RowCell<'a> {
    fn from(cell: CellRef<'a>) -> Self {
        Self { qualifier: cell.qualifier, value: cell.value, timestamp: cell.timestamp, seq: cell.seq }
    }
}

impl<'a> From<RowPut<'a>> for RowCell<'a> {
    fn from(put: RowPut<'a>) -> Self {
        Self { qualifier: put.qualifier, value: put.value, timestamp: put.timestamp, seq: put.seq }
    }
}

impl<'a> RowCell<'a> {
    /// Calls `each` with every point of the cell in stored order; with none for a cell that holds no points.
    ///
    /// # Errors
    /// `Corrupt`: the cell does not hold what its qualifier says. `each` may have been called by then.
    pub fn for_each_point(&self, mut each: impl FnMut(StoredPoint<'a>)) -> Result<()> {
        let walked = match ColumnKind::of(self.qualifier) {
            ColumnKind::Point => self.lone_point().map(each),
            ColumnKind::Compacted => {
                CompactedPoints::new(self.qualifier, self.value).try_for_each(|point| point.map(&mut each))
            }
            ColumnKind::Appended => AppendedPoints::new(self.value).try_for_each(|point| point.map(&mut each)),
            ColumnKind::Annotation | ColumnKind::Histogram | ColumnKind::Unknown => Ok(()),
        };
        walked.map_err(|damage| self.corrupt(damage))
    }

    fn lone_point(&self) -> std::result::Result<StoredPoint<'a>, Damage> {
        let (qualifier, _) = Qualifier::decode_first(self.qualifier).ok_or(Damage::Qualifiers)?;
        let (kind, value) = repair_lone(qualifier.kind, self.value).ok_or_else(|| {
            if qualifier.kind.is_float() && self.value.len() == 8 { Damage::FloatPadding } else { Damage::ValueLength }
        })?;
        Ok(StoredPoint { qualifier: Qualifier { kind, ..qualifier }, value })
    }

    /// The error that names this cell.
    pub(crate) fn corrupt(&self, damage: Damage) -> Error {
        const SHOWN_BYTES_MAX: usize = 16;
        let shown = self.qualifier.get(..SHOWN_BYTES_MAX).unwrap_or(self.qualifier);
        Error::CorruptCell { qualifier: crate::hex::lower(shown).into(), value_bytes: self.value.len(), damage }
    }
}
