//! Rows of every mixture of cells, their duplicates and their damage.

use proptest::prelude::*;

use basalt_store::PackedPoint;

use super::*;
use crate::{APPEND_QUALIFIER, Door, PointTime, Qualifier, Tsb1, append_point_into, point_cell};

fn cell<'a>(qualifier: &'a [u8], value: &'a [u8], time: u64, seq: u64) -> RowCell<'a> {
    RowCell { qualifier, value, timestamp: Timestamp(time), seq: SeqNo(seq) }
}

fn check(cells: &[RowCell<'_>], expected: &[(u32, Value)]) {
    let mut points = RowPoints::default();
    points.decode(cells.iter().copied(), Duplicates::NewestWins).unwrap();
    let found: Vec<_> =
        (0..points.len()).map(|index| (points.offsets_ms()[index], points.value(index).unwrap())).collect();
    assert_eq!(found, expected);
}

#[test]
fn cells_of_every_kind_are_one_row() {
    let cells = [
        cell(&[0x00, 0x20], &[3], 9, 0),
        cell(&[0x00, 0x00, 0xF0, 0x00, 0x7D, 0x00], &[1, 2, 1], 8, 0),
        cell(&APPEND_QUALIFIER, &[0x00, 0x30, 5, 0x00, 0x10, 4], 7, 0),
        cell(&[0x01, 0, 0], b"{}", 7, 0),
        cell(&[0x09, 0, 0], b"?", 7, 0),
    ];
    let ints = [(0, 1), (500, 2), (1000, 4), (2000, 3), (3000, 5)];
    check(&cells, &ints.map(|(offset_ms, value)| (offset_ms, Value::Int(value))));
}

#[test]
fn the_newest_write_of_an_instant_wins() {
    // S-DUP-NEWEST: time first, then sequence, then the lone point, then the one that OpenTSDB takes.
    let (narrow, wide): (&[u8], &[u8]) = (&[0, 0], &[0, 1]);
    check(&[cell(narrow, &[1], 5, 9), cell(wide, &[0, 2], 6, 1)], &[(0, Value::Int(2))]);
    check(&[cell(narrow, &[1], 6, 1), cell(wide, &[0, 2], 5, 9)], &[(0, Value::Int(1))]);
    check(&[cell(narrow, &[1], 5, 2), cell(wide, &[0, 2], 5, 1)], &[(0, Value::Int(1))]);
    check(&[cell(narrow, &[1], 5, 1), cell(wide, &[0, 2], 5, 1)], &[(0, Value::Int(1))]);
    let joined = cell(&[0, 0, 0, 0x10], &[7, 8, 0], 5, 1);
    check(&[joined, cell(wide, &[0, 2], 5, 1)], &[(0, Value::Int(2)), (1000, Value::Int(8))]);
    check(&[cell(wide, &[0, 2], 5, 1), joined], &[(0, Value::Int(2)), (1000, Value::Int(8))]);
    check(&[cell(wide, &[0, 2], 4, 1), joined], &[(0, Value::Int(7)), (1000, Value::Int(8))]);
}

#[test]
fn a_second_and_its_milliseconds_are_one_instant() {
    // S-DUP-SMS
    let (second, milli): (&[u8], &[u8]) = (&[0x00, 0x10], &[0xF0, 0x00, 0xFA, 0x00]);
    check(&[cell(second, &[1], 1, 0), cell(milli, &[2], 2, 0)], &[(1000, Value::Int(2))]);
    check(&[cell(second, &[1], 3, 0), cell(milli, &[2], 2, 0)], &[(1000, Value::Int(1))]);
}

#[test]
fn the_last_appended_wins() {
    // S-APPEND-READ
    let value = [0x00, 0x10, 1, 0x00, 0x00, 9, 0x00, 0x10, 2];
    check(&[cell(&APPEND_QUALIFIER, &value, 1, 0)], &[(0, Value::Int(9)), (1000, Value::Int(2))]);
}

#[test]
fn damage_is_an_error_and_names_the_cell() {
    let mut points = RowPoints::default();
    let mut error = |qualifier: &[u8], value: &[u8]| {
        points.decode([cell(qualifier, value, 1, 0)], Duplicates::NewestWins).unwrap_err().to_string()
    };
    assert!(error(&[0, 0], &[]).starts_with("corrupt cell (qualifier 0000, value of 0 bytes)"));
    assert!(error(&[0, 2], &[1, 2, 3]).contains("length"));
    assert!(error(&[0, 0x0B], &[1, 0, 0, 0, 0, 0, 0, 0]).contains("Corrupted floating point value"));
    assert!(error(&[0, 0, 0, 0x10], &[1, 0]).contains("consumed 2 bytes"));
    assert!(error(&APPEND_QUALIFIER, &[0, 0]).contains("consumed 0 bytes"));
}

prop_compose! {
    /// Time into the hour and a value that some door let in.
    fn any_point()(second in 0i64..3600, millis in proptest::option::of(0i64..1000), int: i64, shift in 0u32..64,
                   float in proptest::option::of(proptest::num::f64::NORMAL), telnet: bool)
                  -> crate::PointCell {
        let second = second + 1_700_002_800;
        let time = PointTime::from_number(millis.map_or(second, |ms| second * 1000 + ms)).unwrap();
        let value = float.map_or(Value::Int(int >> shift), Value::Float);
        point_cell(time, value, if telnet { Door::Telnet } else { Door::Http }).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Plain cells and the same points appended tell of the same row: the one a map by instant gives.
    #[test]
    fn decoding_agrees_with_a_map(written in proptest::collection::vec(any_point(), 0..40)) {
        let expected: std::collections::BTreeMap<u32, u64> = written
            .iter()
            .map(|point| (point.qualifier.offset_ms, decode_word(point.qualifier.kind, &point.value()).unwrap()))
            .collect();
        let bytes: Vec<_> = written.iter().map(|point| (point.qualifier_bytes(), point.value())).collect();
        let plain = bytes.iter().zip(1..).map(|((qualifier, value), time)| cell(qualifier, value, time, 0));
        let mut appended = Vec::new();
        for point in &written {
            append_point_into(StoredPoint { qualifier: point.qualifier, value: &point.value() }, &mut appended);
        }
        let appended = [cell(&APPEND_QUALIFIER, &appended, 1, 0)];
        let mut points = RowPoints::default();
        for cells in [plain.collect::<Vec<_>>(), appended.to_vec()] {
            points.decode(cells, Duplicates::NewestWins).unwrap();
            prop_assert!(points.offsets_ms().iter().eq(expected.keys()));
            prop_assert!(points.values().iter().eq(expected.values()));
            prop_assert_eq!(points.kinds().len(), points.len());
        }
    }

    /// A joined cell read run by run is what a walk point by point reads, damaged or not.
    #[test]
    fn a_joined_cell_reads_alike_by_runs_and_by_points(
        written in proptest::collection::vec((any_point(), 1usize..30), 0..8),
        damage in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>(), any::<bool>(), 0usize..3)),
    ) {
        let (mut qualifier, mut value) = (Vec::new(), Vec::new());
        for (point, times) in &written {
            qualifier.extend(point.qualifier_bytes().repeat(*times));
            value.extend(point.value().repeat(*times));
        }
        value.push(0);
        if let Some((at, byte, in_value, cut)) = damage {
            let bytes = if in_value { &mut value } else { &mut qualifier };
            bytes.truncate(bytes.len().saturating_sub(cut));
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let one = cell(&qualifier, &value, 1, 0);
        let (mut by_runs, mut by_points) = (RowPoints::default(), RowPoints::default());
        let mut readable = true;
        let walked = crate::compacted::CompactedPoints::new(&qualifier, &value)
            .try_for_each(|point| point.map(|point| readable &= by_points.push(point)));
        let joined = by_runs.push_joined(&qualifier, &value);
        prop_assert_eq!(joined, walked.is_ok() && readable);
        if joined {
            prop_assert_eq!(by_runs.offsets_ms(), by_points.offsets_ms());
            prop_assert_eq!(by_runs.values(), by_points.values());
            prop_assert_eq!(by_runs.kinds(), by_points.kinds());
        } else {
            prop_assert!(by_runs.is_empty());
            if ColumnKind::of(&qualifier) == ColumnKind::Compacted {
                prop_assert!(by_runs.decode([one], Duplicates::NewestWins).is_err());
            }
        }
    }

    /// Foreign bytes are read or refused; nothing panics.
    #[test]
    fn any_bytes_are_read_or_refused(
        qualifier in proptest::collection::vec(any::<u8>(), 0..12),
        value in proptest::collection::vec(any::<u8>(), 0..40),
        appended: bool,
    ) {
        let qualifier = if appended { APPEND_QUALIFIER.to_vec() } else { qualifier };
        let mut points = RowPoints::default();
        if points.decode([cell(&qualifier, &value, 1, 0)], Duplicates::NewestWins).is_ok() {
            prop_assert!(points.offsets_ms().is_sorted_by(|a, b| a < b));
        }
    }
}

proptest! {
    /// A row by columns has of a lone cell what a row of cells has, and nothing of any other cell.
    #[test]
    fn a_lone_point_by_columns_is_the_same(
        qualifier in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..7),
            any::<[u8; 2]>().prop_map(|bytes| bytes.to_vec()),
            any::<[u8; 3]>().prop_map(|[a, b, c]| vec![0xF0 | a, b, c, c]),
        ],
        value in prop::collection::vec(any::<u8>(), 0..10),
    ) {
        let mut points = RowPoints::default();
        let is_read = points.decode([cell(&qualifier, &value, 1, 1)], Duplicates::NewestWins).is_ok();
        let told = Tsb1.point(&qualifier, &value);
        if let Some(PackedPoint { offset_ms, word, is_float }) = told {
            prop_assert!(is_read);
            prop_assert_eq!((points.offsets_ms(), points.values()), (&[offset_ms][..], &[word][..]));
            prop_assert_eq!(points.kinds()[0].is_float(), is_float);
        }
        // What is told of nothing is no lone point, or one whose length is not its qualifier's.
        let is_plain = ColumnKind::of(&qualifier) == ColumnKind::Point
            && Qualifier::decode_first(&qualifier).is_some_and(|(of, _)| of.kind.value_bytes() == value.len());
        prop_assert!(told.is_some() || !is_plain || !is_read);
    }
}
