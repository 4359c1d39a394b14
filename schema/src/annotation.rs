//! Annotations: remarks at a time, on one series or on all.
//!
//! ```text
//! row        series: the data row of its TSUID and hour      global: zeros for salt and metric, base time, no tags
//! qualifier  seconds: 01, 2 bytes of offset in seconds       milliseconds: 01, 4 bytes of offset in ms
//! value      JSON: tsuid (series only), startTime, endTime, description, notes, custom
//! ```
//!
//! A millisecond stamp that is a whole second is stored as seconds. Of a second whose number is a multiple of 1,000 OpenTSDB takes the
//! number for milliseconds when it makes the qualifier, so that such an annotation lies at another offset of its hour: it is read there,
//! and known by its `startTime`. *Source*: OpenTSDB 2.4 `Annotation` (rule S-ANNOT).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta_json::{self, Pairs};
use crate::{BaseTime, ColumnKind, InlineBytes, PointTime, Result};

/// Seconds whose number is a multiple of this OpenTSDB takes for milliseconds.
const MISTAKEN_S: u32 = 1000;

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

    /// Whether it begins at `time`, in whichever resolution.
    pub(crate) fn begins_at(&self, time: PointTime) -> bool {
        PointTime::from_number(self.start_time).is_ok_and(|start| start.millis() == time.millis())
    }

    /// Whether OpenTSDB put it into the cell of another time, `cell`.
    pub(crate) fn is_misplaced_in(&self, cell: PointTime) -> bool {
        misplaced_at(cell).is_some_and(|start| self.begins_at(start))
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

/// The time of that hour at whose place OpenTSDB keeps an annotation that begins at `start`, where that is another: of one second in a
/// thousand.
pub(crate) fn misplaced_to(start: PointTime) -> Option<PointTime> {
    let (base, offset_ms) = start.split();
    let second = base.seconds() + offset_ms / 1000;
    let place = base.seconds().checked_add(second / MISTAKEN_S % BaseTime::SPAN_S)?;
    let is_elsewhere = offset_ms.is_multiple_of(1000) && second.is_multiple_of(MISTAKEN_S) && place != second;
    is_elsewhere.then(|| PointTime::from_number(place.into()).ok())?
}

/// The time whose annotation OpenTSDB keeps at the place of `cell`, beside that of `cell` itself; hardly ever there is one.
pub(crate) fn misplaced_at(cell: PointTime) -> Option<PointTime> {
    let base = u64::from(cell.split().0.seconds());
    let mistaken =
        (base.next_multiple_of(u64::from(MISTAKEN_S))..base + u64::from(BaseTime::SPAN_S)).step_by(MISTAKEN_S as usize);
    let mut starts = mistaken.filter_map(|second| PointTime::from_number(second.cast_signed()).ok());
    starts.find(|start| misplaced_to(*start).is_some_and(|place| place.millis() == cell.millis()))
}

/// When the annotation of a cell begins, milliseconds; `base_ms` is its row's hour. `None` if the qualifier is none of an
/// annotation.
///
/// ```
/// use basalt_schema::annotation_start_ms;
/// let hour_ms = 1_699_999_200_000;
/// let start = |value: &str| annotation_start_ms(hour_ms, &[1, 0x03, 0x21], value.as_bytes());
/// assert_eq!(start(r#"{"startTime":1700000001}"#), Some(1_700_000_001_000));
/// // As OpenTSDB misplaces it.
/// assert_eq!(start(r#"{"startTime":1700001000}"#), Some(1_700_001_000_000));
/// ```
pub fn annotation_start_ms(base_ms: i64, qualifier: &[u8], value: &[u8]) -> Option<i64> {
    let cell_ms = base_ms + i64::from(annotation_offset_ms(qualifier)?);
    let misplaced = PointTime::from_number(cell_ms / 1000).ok().and_then(misplaced_at);
    let is_it = |start: &PointTime| Annotation::decode(value).is_ok_and(|note| note.begins_at(*start));
    Some(misplaced.filter(is_it).map_or(cell_ms, |start| start.millis().cast_signed()))
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

    /// `S-ANNOT`: as dumped from the real OpenTSDB, which put 1700001000 under 801 s of its hour.
    #[test]
    fn s_annot_opentsdb_misplaces_a_second_in_a_thousand() {
        let time = |number: i64| PointTime::from_number(number).unwrap();
        let place = |number| misplaced_to(time(number)).map(PointTime::number);
        assert_eq!(place(1_700_001_000), Some(1_700_000_001));
        assert_eq!(misplaced_at(time(1_700_000_001)), Some(time(1_700_001_000)));
        // By chance the right place, and times that are not mistaken.
        for number in [1_700_000_000, 1_700_001_001, 1_700_001_000_500, 1_700_000_001] {
            assert_eq!(place(number), None, "{number}");
        }
        // In the last hour before 2106.
        assert_eq!(place(4_294_966_000), Some(4_294_965_766));
        let note = Annotation { start_time: 1_700_001_000, ..Annotation::default() };
        assert!(note.is_misplaced_in(time(1_700_000_001)) && !note.is_misplaced_in(time(1_700_001_000)));
        let starts = |qualifier: &[u8], value: &[u8]| annotation_start_ms(1_699_999_200_000, qualifier, value);
        assert_eq!(starts(&[0x01, 0x03, 0x21], &note.encode()), Some(1_700_001_000_000));
        assert_eq!(starts(&[0x01, 0x03, 0x22], &note.encode()), Some(1_700_000_002_000));
        assert_eq!(starts(&[0x01, 0x03, 0x21], b"no JSON"), Some(1_700_000_001_000));
        assert_eq!(starts(&[0x06, 0x03, 0x21], &note.encode()), None);
    }
}
