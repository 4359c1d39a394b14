//! A point as it is written (the row's hour, the qualifier and the value, on the stack) and as it lies in a cell.

use crate::value::stored_bytes;
use crate::{BaseTime, Door, PointTime, Qualifier, QualifierBytes, Result, Value, ValueBytes};

/// One point's cell, but for the row key's other bytes ([`crate::SeriesKey`]).
///
/// Numbers, of which the bytes are made where they are written: bytes that were just put together one by one are slow to
/// copy as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointCell {
    /// The hour of the row.
    pub base: BaseTime,
    /// Where in it and what kind.
    pub qualifier: Qualifier,
    word: u64,
}

/// Encodes a point. *Cost*: no allocation.
///
/// ```
/// use basalt_schema::{Door, PointTime, Value, point_cell};
/// let cell = point_cell(PointTime::from_number(1_356_998_400_500)?, Value::Float(42.5), Door::Telnet)?;
/// assert_eq!(cell.base.seconds(), 1_356_998_400);
/// assert_eq!(&*cell.qualifier_bytes(), &[0xF0, 0x00, 0x7D, 0x0B]);
/// assert_eq!(&*cell.value(), &[0x42, 0x2A, 0x00, 0x00]);
/// # Ok::<(), basalt_schema::Error>(())
/// ```
///
/// # Errors
/// `Invalid`: a value that is NaN or infinite.
#[inline]
pub fn point_cell(time: PointTime, value: Value, door: Door) -> Result<PointCell> {
    let (kind, word) = value.into_word(door)?;
    let (base, offset_ms) = time.split();
    Ok(PointCell { base, qualifier: Qualifier { offset_ms, kind: kind.with_millis(time.is_millis()) }, word })
}

impl PointCell {
    /// The qualifier's bytes.
    #[inline]
    pub fn qualifier_bytes(&self) -> QualifierBytes {
        self.qualifier.encode()
    }

    /// The value's bytes.
    #[inline]
    pub fn value(&self) -> ValueBytes {
        stored_bytes(self.qualifier.kind, self.word)
    }
}

/// A point as it lies in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPoint<'a> {
    /// Where and what.
    pub qualifier: Qualifier,
    /// The value's bytes, as many as the qualifier says.
    pub value: &'a [u8],
}
