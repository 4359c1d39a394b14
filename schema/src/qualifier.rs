//! Qualifiers of points: where in the hour, and what kind of value.
//!
//! ```text
//! seconds       2 bytes   oooo oooo oooo ffff                             offset 0..3599 s, flags
//! milliseconds  4 bytes   1111 oooo oooo oooo oooo oooo oo00 ffff         offset 0..3599999 ms, flags
//! flags         f = 1xxx float, 0xxx integer; xxx = bytes of the value - 1
//! ```
//!
//! A seconds qualifier never begins with the four ones of a milliseconds one: 3599 s is `E0F`. *Source*: OpenTSDB 2.4
//! `Const`, `Internal.buildQualifier`.

use crate::InlineBytes;

/// Bits that the flags take in a seconds qualifier.
pub(crate) const SECOND_SHIFT: u32 = 4;
/// Bits that zeros and flags take in a milliseconds qualifier.
pub(crate) const MILLI_SHIFT: u32 = 6;
/// The four ones that mark a milliseconds qualifier.
pub(crate) const MILLI_MARK: u32 = 0xF000_0000;
/// The mark in a qualifier's first byte.
pub(crate) const MILLI_MARK_BYTE: u8 = 0xF0;
/// The zeros in the last byte of a milliseconds qualifier.
pub(crate) const UNUSED_BITS: u8 = 0x30;

/// The bytes of one point's qualifier.
pub type QualifierBytes = InlineBytes<4>;

/// What is told of a point beside its time and value: integer or float, on how many bytes, in which resolution.
///
/// *Shape*: one byte; bits 0–3 the flags of the qualifier (8: float; 0–2: bytes of the value − 1), bit 4: milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PointKind(u8);

impl PointKind {
    const FLOAT: u8 = 0x8;
    const LENGTH: u8 = 0x7;
    const FLAGS: u8 = 0xF;
    const MILLIS: u8 = 0x10;

    /// A value of `bytes` bytes (1 to 8), float or integer, of a point in seconds.
    pub(crate) const fn new(is_float: bool, bytes: u8) -> Self {
        assert!(bytes >= 1 && bytes <= 8, "BUG: a value is 1 to 8 bytes long");
        Self(if is_float { Self::FLOAT | (bytes - 1) } else { bytes - 1 })
    }

    /// By the flags of a qualifier.
    const fn from_flags(flags: u8, is_millis: bool) -> Self {
        Self((flags & Self::FLAGS) | if is_millis { Self::MILLIS } else { 0 })
    }

    /// The same kind of value at a point of the other resolution.
    #[must_use]
    pub const fn with_millis(self, is_millis: bool) -> Self {
        Self::from_flags(self.0, is_millis)
    }

    /// The same with the value on `bytes` bytes.
    #[must_use]
    pub(crate) const fn with_value_bytes(self, bytes: u8) -> Self {
        Self((self.0 & (Self::FLOAT | Self::MILLIS)) | (bytes.wrapping_sub(1) & Self::LENGTH))
    }

    /// Whether the value is a float.
    pub const fn is_float(self) -> bool {
        self.0 & Self::FLOAT != 0
    }

    /// Whether the point was written in milliseconds.
    pub const fn is_millis(self) -> bool {
        self.0 & Self::MILLIS != 0
    }

    /// Bytes of the value, 1 to 8.
    pub const fn value_bytes(self) -> usize {
        self.value_len() as usize
    }

    pub(crate) const fn value_len(self) -> u8 {
        (self.0 & Self::LENGTH) + 1
    }

    pub(crate) const fn flags(self) -> u8 {
        self.0 & Self::FLAGS
    }

    /// The byte that tells it.
    pub(crate) const fn code(self) -> u8 {
        self.0
    }
}

/// The kind of a value in seconds by the flags in its qualifier's last byte.
pub(crate) const fn point_kind(last: u8) -> PointKind {
    PointKind::from_flags(last, false)
}

/// A point's qualifier, decoded.
///
/// ```
/// use basalt_schema::Qualifier;
/// let (qualifier, used) = Qualifier::decode_first(&[0xF0, 0x00, 0x7D, 0x0B]).unwrap();
/// assert_eq!((qualifier.offset_ms, used), (500, 4));
/// assert!(qualifier.kind.is_float() && qualifier.kind.value_bytes() == 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Qualifier {
    /// Milliseconds into the row; a multiple of 1000 when the kind is in seconds. Below 3,600,000 where we write; a
    /// reader takes what the bits can hold (4,194,303).
    pub offset_ms: u32,
    /// Kind of the point.
    pub kind: PointKind,
}

impl Qualifier {
    /// The qualifier's bytes: 2 or 4.
    #[inline]
    pub fn encode(self) -> QualifierBytes {
        if self.kind.is_millis() {
            InlineBytes::of(Self::of_millis(self.offset_ms, self.kind.flags()))
        } else {
            debug_assert!(self.offset_ms.is_multiple_of(1000), "BUG: {} ms in seconds", self.offset_ms);
            InlineBytes::of(Self::of_seconds(self.offset_ms / 1000, self.kind.flags()))
        }
    }

    /// The bytes for an offset in seconds, below 4096, and a kind's flags.
    #[inline]
    pub(crate) const fn of_seconds(offset_s: u32, flags: u8) -> [u8; 2] {
        let [_, _, high, low] = ((offset_s << SECOND_SHIFT) | flags as u32).to_be_bytes();
        [high, low]
    }

    /// The bytes for an offset in milliseconds, below 2²², and a kind's flags.
    #[inline]
    pub(crate) const fn of_millis(offset_ms: u32, flags: u8) -> [u8; 4] {
        (MILLI_MARK | (offset_ms << MILLI_SHIFT) | flags as u32).to_be_bytes()
    }

    /// Reads the qualifier at the start of `bytes` and says how many bytes it took; `None` if they are too few.
    pub fn decode_first(bytes: &[u8]) -> Option<(Self, usize)> {
        if is_millis(bytes) {
            let bits = u32::from_be_bytes(*bytes.first_chunk()?);
            let offset_ms = (bits & !MILLI_MARK) >> MILLI_SHIFT;
            Some((Self { offset_ms, kind: kind_of(bits, true) }, 4))
        } else {
            let bits = u32::from(u16::from_be_bytes(*bytes.first_chunk()?));
            Some((Self { offset_ms: (bits >> SECOND_SHIFT) * 1000, kind: kind_of(bits, false) }, 2))
        }
    }
}

/// What a column of a data row is, by its qualifier alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// One point.
    Point,
    /// Many points: qualifiers joined, values joined, one byte more.
    Compacted,
    /// Points appended one after the other.
    Appended,
    /// An annotation.
    Annotation,
    /// A histogram.
    Histogram,
    /// Nothing that is known here; readers skip it.
    Unknown,
}

impl ColumnKind {
    /// First byte of an annotation's qualifier.
    pub(crate) const ANNOTATION: u8 = 0x01;
    /// First byte of an append cell's qualifier.
    pub(crate) const APPENDED: u8 = 0x05;
    /// First byte of a histogram's qualifier.
    pub(crate) const HISTOGRAM: u8 = 0x06;

    /// The kind of a qualifier. *Source*: OpenTSDB 2.4 `RowSeq`, `AppendDataPoints`, `HistogramDataPoint`.
    pub fn of(qualifier: &[u8]) -> Self {
        match (qualifier.len(), qualifier.first()) {
            (2, _) if !is_millis(qualifier) => Self::Point,
            (4, _) if is_millis(qualifier) => Self::Point,
            (length, _) if length >= 4 && length.is_multiple_of(2) => Self::Compacted,
            (3 | 5, Some(&Self::ANNOTATION)) => Self::Annotation,
            (3, Some(&Self::APPENDED)) => Self::Appended,
            (3 | 5, Some(&Self::HISTOGRAM)) => Self::Histogram,
            _ => Self::Unknown,
        }
    }
}

/// Whether a qualifier begins as one of milliseconds.
fn is_millis(qualifier: &[u8]) -> bool {
    qualifier.first().is_some_and(|first| first & MILLI_MARK_BYTE == MILLI_MARK_BYTE)
}

fn kind_of(bits: u32, is_millis: bool) -> PointKind {
    let [.., low] = bits.to_be_bytes();
    PointKind::from_flags(low, is_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(offset_ms: u32, kind: PointKind, bytes: &[u8]) {
        let qualifier = Qualifier { offset_ms, kind };
        assert_eq!(&*qualifier.encode(), bytes);
        assert_eq!(Qualifier::decode_first(bytes), Some((qualifier, bytes.len())));
        assert_eq!(ColumnKind::of(bytes), ColumnKind::Point);
    }

    #[test]
    fn qualifiers_of_the_reference() {
        // S-QUAL-SEC, S-QUAL-MS
        let (integer, float) = (|bytes| PointKind::new(false, bytes), |bytes| PointKind::new(true, bytes));
        check(0, integer(1), &[0x00, 0x00]);
        check(0, integer(8), &[0x00, 0x07]);
        check(3_599_000, integer(1), &[0xE0, 0xF0]);
        check(0, float(4), &[0x00, 0x0B]);
        check(10_000, integer(8), &[0x00, 0xA7]);
        check(500, integer(1).with_millis(true), &[0xF0, 0x00, 0x7D, 0x00]);
        check(500, float(4).with_millis(true), &[0xF0, 0x00, 0x7D, 0x0B]);
        check(3_599_999, float(8).with_millis(true), &[0xFD, 0xBB, 0x9F, 0xCF]);
    }

    #[test]
    fn columns_are_told_by_their_qualifiers() {
        let check = |qualifier: &[u8], kind| assert_eq!(ColumnKind::of(qualifier), kind, "{qualifier:02x?}");
        check(&[0x00, 0x07, 0x00, 0x17], ColumnKind::Compacted);
        check(&[0x00, 0x00, 0xF0, 0x00, 0x7D, 0x00], ColumnKind::Compacted);
        check(&[0xF0, 0, 0, 0, 0, 0], ColumnKind::Compacted);
        check(&[0x01, 0x03, 0x20], ColumnKind::Annotation);
        check(&[0x01, 0, 0, 0x36, 0xF4], ColumnKind::Annotation);
        check(&[0x05, 0x12, 0x34], ColumnKind::Appended);
        check(&[0x06, 0x03, 0x20], ColumnKind::Histogram);
        for unknown in [&[][..], &[0], &[0xF0, 0], &[0x07, 0, 0], &[0x05, 0, 0, 0, 0], &[0x01; 7]] {
            check(unknown, ColumnKind::Unknown);
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(seconds in 0u32..3600, millis in 0u32..3_600_000, float: bool, bytes in 1u8..=8) {
            let kind = PointKind::new(float, bytes);
            for qualifier in [
                Qualifier { offset_ms: seconds * 1000, kind },
                Qualifier { offset_ms: millis, kind: kind.with_millis(true) },
            ] {
                let encoded = qualifier.encode();
                prop_assert_eq!(Qualifier::decode_first(&encoded), Some((qualifier, encoded.len())));
            }
        }
    }
}
