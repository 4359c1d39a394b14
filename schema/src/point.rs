//! A point as it is written: the row's hour, the qualifier and the value, on the stack.

use crate::{BaseTime, Door, PointTime, Qualifier, QualifierBytes, Result, StoredPoint, Value, ValueBytes};

/// One point's cell, but for the row key's other bytes ([`crate::SeriesKey`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointCell {
    /// The hour of the row.
    pub base: BaseTime,
    /// Where in it and what kind, decoded.
    pub qualifier: Qualifier,
    /// The qualifier's bytes.
    pub qualifier_bytes: QualifierBytes,
    /// The value's bytes.
    pub value: ValueBytes,
}

/// Encodes a point. *Cost*: no allocation.
///
/// ```
/// use basalt_schema::{Door, PointTime, Value, point_cell};
/// let cell = point_cell(PointTime::from_number(1_356_998_400_500)?, Value::Float(42.5), Door::Telnet)?;
/// assert_eq!(cell.base.seconds(), 1_356_998_400);
/// assert_eq!(&*cell.qualifier_bytes, &[0xF0, 0x00, 0x7D, 0x0B]);
/// assert_eq!(&*cell.value, &[0x42, 0x2A, 0x00, 0x00]);
/// # Ok::<(), basalt_schema::Error>(())
/// ```
///
/// # Errors
/// `Invalid`: a value that is NaN or infinite.
#[inline]
pub fn point_cell(time: PointTime, value: Value, door: Door) -> Result<PointCell> {
    let (kind, value) = value.encode(door)?;
    let (base, offset_ms) = time.split();
    let qualifier = Qualifier { offset_ms, kind: kind.with_millis(time.is_millis()) };
    Ok(PointCell { base, qualifier, qualifier_bytes: qualifier.encode(), value })
}

impl PointCell {
    /// The point as the other codecs take it: to append it, or to join it to others.
    pub fn stored(&self) -> StoredPoint<'_> {
        StoredPoint { qualifier: self.qualifier, value: &self.value }
    }
}
