//! Annotations: remarks at a time, on one series or on all.
//!
//! ```text
//! row        series: the data row of its TSUID and hour      global: zeros for salt and metric, base time, no tags
//! qualifier  seconds: 01, 2 bytes of offset in seconds       milliseconds: 01, 4 bytes of offset in ms
//! value      JSON: tsuid (series only), startTime, endTime, description, notes, custom
//! ```
//!
//! A millisecond stamp that is a whole second is stored as seconds. *Source*: OpenTSDB 2.4 `Annotation` (rule S-ANNOT).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta_json::{self, Pairs};
use crate::{BaseTime, ColumnKind, InlineBytes, PointTime, Result};

/// An annotation. Serialized as OpenTSDB answers it; [`Annotation::encode`] gives what is stored.
///
/// ```
/// use basalt_schema::Annotation;
/// let note = Annotation { start_time: 1_700_000_000, description: "deploy".into(), ..Annotation::default() };
/// let stored = br#"{"startTime":1700000000,"endTime":0,"description":"deploy","notes":"","custom":null}"#;
/// assert_eq!(note.encode(), stored);
/// assert_eq!(Annotation::decode(stored)?, note);
/// # Ok::<(), basalt_schema::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotation {
    /// The series in hex as the writer spelled it; empty for a global one.
    #[serde(deserialize_with = "meta_json::text")]
    pub tsuid: String,
    /// What happened, in a line.
    #[serde(deserialize_with = "meta_json::text")]
    pub description: String,
    /// What happened, at length.
    #[serde(deserialize_with = "meta_json::text")]
    pub notes: String,
    /// The writer's own members.
    #[serde(deserialize_with = "meta_json::pairs", skip_serializing_if = "Option::is_none")]
    pub custom: Option<BTreeMap<String, String>>,
    /// When it begins: seconds, or milliseconds from 2^32 on.
    pub start_time: i64,
    /// When it ends; 0 for an instant.
    pub end_time: i64,
}

/// [`Annotation`] in the order of its stored members.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stored<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    tsuid: &'a str,
    start_time: i64,
    end_time: i64,
    description: &'a str,
    notes: &'a str,
    custom: &'a Pairs,
}

impl Annotation {
    /// The bytes of its cell.
    pub fn encode(&self) -> Vec<u8> {
        let Self { tsuid, description, notes, custom, start_time, end_time } = self;
        let (start_time, end_time) = (*start_time, *end_time);
        meta_json::encode(&Stored { tsuid, start_time, end_time, description, notes, custom })
    }

    /// Reads a cell's bytes.
    ///
    /// # Errors
    /// `Corrupt`: no JSON of this shape.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        meta_json::decode("annotation", bytes)
    }
}

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
    remark_column(ColumnKind::ANNOTATION, time)
}

/// The row's hour and the qualifier of what lies beside points, told apart by `kind`.
pub(crate) fn remark_column(kind: u8, time: PointTime) -> (BaseTime, AnnotationQualifier) {
    let (base, offset_ms) = time.split();
    if offset_ms.is_multiple_of(1000) {
        let [_, _, high, low] = (offset_ms / 1000).to_be_bytes();
        (base, InlineBytes::new(&[kind, high, low]))
    } else {
        let [b3, b2, b1, b0] = offset_ms.to_be_bytes();
        (base, InlineBytes::new(&[kind, b3, b2, b1, b0]))
    }
}

/// Milliseconds into the row of an annotation; `None` if the qualifier is none of an annotation.
pub fn annotation_offset_ms(qualifier: &[u8]) -> Option<u32> {
    remark_offset_ms(ColumnKind::ANNOTATION, qualifier)
}

/// Milliseconds into the row of what lies beside points, if it is of this kind.
pub(crate) fn remark_offset_ms(kind: u8, qualifier: &[u8]) -> Option<u32> {
    match *qualifier {
        [first, high, low] if first == kind => Some(u32::from(u16::from_be_bytes([high, low])) * 1000),
        [first, b3, b2, b1, b0] if first == kind => Some(u32::from_be_bytes([b3, b2, b1, b0])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_and_null_is_nothing() {
        // S-ANNOT
        let custom = Some(BTreeMap::from([("dept".to_owned(), "ops".to_owned())]));
        let note =
            Annotation { tsuid: "00A1".into(), notes: "n \"".into(), custom, end_time: 7, ..Annotation::default() };
        assert_eq!(Annotation::decode(&note.encode()).unwrap(), note);
        let nulls = br#"{"tsuid":null,"startTime":5,"description":null,"custom":{"a":null},"other":[1]}"#;
        let expected = Annotation { start_time: 5, custom: Some(BTreeMap::new()), ..Annotation::default() };
        assert_eq!(Annotation::decode(nulls).unwrap(), expected);
        assert!(Annotation::decode(b"{\"startTime\":\"x\"}").is_err() && Annotation::decode(b"").is_err());
    }

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
