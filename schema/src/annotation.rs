//! Annotations: remarks at a time, on one series or on all.
//!
//! ```text
//! row        series: the data row of its TSUID and hour      global: zeros for salt and metric, base time, no tags
//! qualifier  seconds: 01, 2 bytes of offset in seconds       milliseconds: 01, 4 bytes of offset in ms
//! value      JSON, kept as bytes here
//! ```
//!
//! A millisecond stamp that is a whole second is stored as seconds. *Source*: OpenTSDB 2.4 `Annotation` (rule S-ANNOT).

use crate::{BaseTime, ColumnKind, InlineBytes, PointTime};

/// The bytes of an annotation's qualifier: 3 or 5.
pub type AnnotationQualifier = InlineBytes<5>;

/// The row's hour and the qualifier of an annotation that begins at `time`.
///
/// ```
/// use basalt_schema::{PointTime, annotation_column};
/// let (base, qualifier) = annotation_column(PointTime::from_number(1_356_998_410).unwrap());
/// assert_eq!((base.seconds(), &*qualifier), (1_356_998_400, &[0x01, 0x00, 0x0A][..]));
/// ```
pub fn annotation_column(time: PointTime) -> (BaseTime, AnnotationQualifier) {
    let (base, offset_ms) = time.split();
    if offset_ms.is_multiple_of(1000) {
        let [_, _, high, low] = (offset_ms / 1000).to_be_bytes();
        (base, InlineBytes::new(&[ColumnKind::ANNOTATION, high, low]))
    } else {
        let [b3, b2, b1, b0] = offset_ms.to_be_bytes();
        (base, InlineBytes::new(&[ColumnKind::ANNOTATION, b3, b2, b1, b0]))
    }
}

/// Milliseconds into the row of an annotation; `None` if the qualifier is none of an annotation.
pub fn annotation_offset_ms(qualifier: &[u8]) -> Option<u32> {
    match *qualifier {
        [ColumnKind::ANNOTATION, high, low] => Some(u32::from(u16::from_be_bytes([high, low])) * 1000),
        [ColumnKind::ANNOTATION, b3, b2, b1, b0] => Some(u32::from_be_bytes([b3, b2, b1, b0])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_seconds_are_stored_as_seconds() {
        // S-ANNOT
        let check = |number: i64, offset_ms: u32, bytes: &[u8]| {
            let (base, qualifier) = annotation_column(PointTime::from_number(number).unwrap());
            assert_eq!((base.seconds(), &*qualifier), (1_356_998_400, bytes), "{number}");
            assert_eq!(annotation_offset_ms(bytes), Some(offset_ms));
        };
        check(1_356_998_410, 10_000, &[0x01, 0x00, 0x0A]);
        check(1_356_998_410_000, 10_000, &[0x01, 0x00, 0x0A]);
        check(1_356_998_410_500, 10_500, &[0x01, 0x00, 0x00, 0x29, 0x04]);
        assert_eq!(annotation_offset_ms(&[0x05, 0, 0]), None);
    }
}
