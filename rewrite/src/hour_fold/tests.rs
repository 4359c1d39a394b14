//! Each rule of the fold by name, and the law that readers see the same before and after.

use basalt_schema::{APPEND_QUALIFIER, Door, Duplicates, PointKind, PointTime, RowPoints, Value, point_cell};
use basalt_store::{CellKind, CellRef, SeqNo, Timestamp};
use proptest::prelude::*;

use super::*;

/// 2023-11-14T22:00:00Z, the start of an hour.
const BASE_S: u32 = 1_699_999_200;

/// A cell that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    qualifier: Vec<u8>,
    value: Vec<u8>,
    time: u64,
    seq: u64,
}

fn cell(qualifier: &[u8], value: &[u8], time: u64, seq: u64) -> Cell {
    Cell { qualifier: qualifier.into(), value: value.into(), time, seq }
}

fn refs(cells: &[Cell]) -> Vec<CellRef<'_>> {
    let mut cells: Vec<_> = cells
        .iter()
        .map(|cell| CellRef {
            row: b"r",
            family: b"t",
            qualifier: &cell.qualifier,
            timestamp: Timestamp(cell.time),
            kind: CellKind::Put,
            seq: SeqNo(cell.seq),
            value: &cell.value,
        })
        .collect();
    cells.sort_by(CellRef::order);
    cells
}

/// The row after a fold; `None` where it stays as it is.
fn folded(cells: &[Cell]) -> Option<Vec<Cell>> {
    let mut out = FoldedRow::default();
    let fold = HourFold::default();
    let puts: Vec<_> = refs(cells).into_iter().map(RowPut::from).collect();
    fold.fold(&puts, &mut out)
        .then(|| out.cells().map(|c| cell(c.qualifier, c.value, c.timestamp.0, c.seq.0)).collect())
}

/// What a reader sees.
fn read(cells: &[Cell]) -> Vec<(u32, u64, PointKind)> {
    let mut points = RowPoints::default();
    points.decode(refs(cells).into_iter().map(RowCell::from), Duplicates::NewestWins).unwrap();
    let columns = points.offsets_ms().iter().zip(points.values()).zip(points.kinds());
    columns.map(|((offset, word), kind)| (*offset, *word, *kind)).collect()
}

/// 42 at +0 s, 43 at +1 s, joined at time 5.
fn compacted() -> Cell {
    cell(&[0, 0, 0, 0x10], &[42, 43, 0], 5, 5)
}

fn annotation() -> Cell {
    cell(&[0x01, 0, 0x0A], b"{\"startTime\":1699999210}", 3, 3)
}

#[test]
fn points_of_a_row_become_one_cell() {
    let row = [cell(&[0, 0], &[42], 1, 1), cell(&[0xF0, 0, 0x7D, 0], &[43], 2, 2)];
    assert_eq!(folded(&row), Some(vec![cell(&[0, 0, 0xF0, 0, 0x7D, 0], &[42, 43, 1], 2, 2)]));
}

#[test]
fn late_points_join_the_cell_they_came_too_late_for() {
    let late = cell(&[0, 0x20], &[44], 9, 9);
    assert_eq!(folded(&[compacted(), late]), Some(vec![cell(&[0, 0, 0, 0x10, 0, 0x20], &[42, 43, 44, 0], 9, 9)]));
}

#[test]
fn of_two_values_at_an_instant_the_newest_stays() {
    let rewritten = cell(&[0, 0x10], &[99], 9, 9);
    assert_eq!(folded(&[compacted(), rewritten]), Some(vec![cell(&[0, 0, 0, 0x10], &[42, 99, 0], 9, 9)]));
    let older = cell(&[0, 0x10], &[99], 4, 4);
    assert_eq!(folded(&[compacted(), older]), Some(vec![cell(&[0, 0, 0, 0x10], &[42, 43, 0], 5, 5)]));
    // Of one time, the later sequence number; the other width of the value is no other point.
    let wide = cell(&[0, 0x11], &[1, 0], 5, 6);
    assert_eq!(folded(&[compacted(), wide]), Some(vec![cell(&[0, 0, 0, 0x11], &[42, 1, 0, 0], 5, 6)]));
}

#[test]
fn rows_with_versions_are_left_alone() {
    assert_eq!(folded(&[cell(&[0, 0], &[1], 1, 1), cell(&[0, 0], &[2], 2, 2), cell(&[0, 0x10], &[2], 2, 2)]), None);
}

#[test]
fn rows_with_an_append_cell_are_left_alone() {
    let appended = cell(&APPEND_QUALIFIER, &[0, 0, 2], 2, 2);
    assert_eq!(folded(&[cell(&[0, 0], &[1], 1, 1), cell(&[0, 0x10], &[1], 3, 3), appended]), None);
}

#[test]
fn annotations_histograms_and_unknown_columns_stay_beside() {
    let histogram = cell(&[0x06, 0, 0x0A], &[42, 1, 2], 3, 3);
    let unknown = cell(&[0xB5, 1, 0], b"?", 3, 3);
    let early = cell(&[0x00, 0xFF, 0xFF], b"?", 3, 3);
    let row = [
        cell(&[0x02, 0], &[42], 1, 1),
        cell(&[0x02, 0x10], &[43], 2, 2),
        annotation(),
        histogram.clone(),
        unknown.clone(),
        early.clone(),
    ];
    let points = cell(&[0x02, 0, 0x02, 0x10], &[42, 43, 0], 2, 2);
    assert_eq!(folded(&row), Some(vec![early, annotation(), points, histogram, unknown]));
}

#[test]
fn the_newest_write_time_is_kept_for_ttl() {
    let row = [cell(&[0, 0], &[1], 70, 1), cell(&[0, 0x10], &[2], 90, 3), cell(&[0, 0x20], &[2], 80, 2)];
    let folded = folded(&row).unwrap();
    assert_eq!((folded[0].time, folded[0].seq), (90, 3));
}

#[test]
fn a_row_with_nothing_to_join_is_left_alone() {
    for row in [vec![], vec![cell(&[0, 0], &[1], 1, 1)], vec![compacted()], vec![annotation(), compacted()]] {
        assert_eq!(folded(&row), None);
    }
}

#[test]
fn a_damaged_row_is_left_alone() {
    assert_eq!(folded(&[cell(&[0, 0x02], &[1, 2, 3], 1, 1), cell(&[0, 0x10], &[2], 2, 2)]), None);
    assert_eq!(folded(&[cell(&[0, 0, 0, 0x10], &[1], 1, 1), cell(&[0, 0x20], &[2], 2, 2)]), None);
}

/// Points of one hour in the order they are written, each at its own time; some repeat an instant.
fn puts() -> impl Strategy<Value = Vec<Cell>> {
    let value = prop_oneof![
        any::<i8>().prop_map(|int| Value::Int(int.into())),
        any::<i64>().prop_map(Value::Int),
        any::<f32>().prop_filter("finite", |f| f.is_finite()).prop_map(|f| Value::Float(f.into())),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::Float),
    ];
    let time = prop_oneof![
        (0u32..40).prop_map(|s| i64::from(BASE_S + s * 90)),
        (0u32..40).prop_map(|s| i64::from(BASE_S + s * 90) * 1000),
        (0u32..3_600_000).prop_map(|ms| i64::from(BASE_S) * 1000 + i64::from(ms)),
    ];
    let door = prop_oneof![Just(Door::Http), Just(Door::Telnet)];
    proptest::collection::vec((time, value, door, 0u64..3), 1..80).prop_map(|points| {
        let (mut now, mut cells) = (100, Vec::<Cell>::new());
        for (seq, (time, value, door, pause)) in points.into_iter().enumerate() {
            // Server times never go back and often stand still.
            now += pause;
            let point = point_cell(PointTime::from_number(time).unwrap(), value, door).unwrap();
            // One version: a column written again replaces what it held.
            cells.retain(|cell| *cell.qualifier != *point.qualifier_bytes());
            cells.push(cell(&point.qualifier_bytes(), &point.value(), now, seq as u64 + 1));
        }
        cells
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_reader_sees_the_same_before_and_after(puts in puts(), annotated: bool, cut in any::<proptest::sample::Index>()) {
        let mut row = puts;
        let fold_or_keep = |cells: &[Cell]| folded(cells).unwrap_or_else(|| cells.to_vec());
        // Two flushes, each folded, then a compaction of both.
        let (first, second) = row.split_at(cut.index(row.len()));
        let files = [fold_or_keep(first), fold_or_keep(second)].concat();
        prop_assert_eq!(read(&files), read(&row));
        prop_assert_eq!(read(&fold_or_keep(&files)), read(&row));
        // All at once, with something beside.
        row.extend(annotated.then(annotation));
        let once = fold_or_keep(&row);
        prop_assert_eq!(read(&once), read(&row));
        prop_assert_eq!(once.contains(&annotation()), annotated);
        prop_assert!(refs(&once).is_sorted_by(|a, b| a.order(b).is_lt()));
        prop_assert_eq!(folded(&once), None, "folding what was folded changed it");
    }

    #[test]
    fn any_cells_are_folded_or_left(
        cells in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..7), proptest::collection::vec(any::<u8>(), 0..12)), 0..12),
    ) {
        let cells: Vec<Cell> = cells.iter().map(|(qualifier, value)| cell(qualifier, value, 1, 1)).collect();
        if let Some(out) = folded(&cells) {
            prop_assert!(out.len() <= cells.len());
        }
    }
}

/// `S-DTCS`: the name alone tells who wins.
#[test]
fn s_dtcs_a_fold_is_known_by_its_name() {
    // A second and the millisecond that is it, of one time.
    let cells = [cell(&[0, 0x10], &[9], 1000, 1), cell(&[0xF0, 0, 0xFA, 0], &[7], 1000, 2)];
    for (name, value) in [("opentsdb", 7), ("opentsdb-larger", 9), ("opentsdb-smaller", 7)] {
        let fold = HourFold::named(name).unwrap();
        assert_eq!((fold.name(), HourFold::new(fold.data_times())), (name, fold));
        let mut out = FoldedRow::default();
        let puts: Vec<_> = refs(&cells).into_iter().map(RowPut::from).collect();
        assert!(fold.fold(&puts, &mut out));
        let values: Vec<Vec<u8>> = out.cells().map(|cell| cell.value.to_vec()).collect();
        assert_eq!(values, [[value]], "{name}");
    }
    assert_eq!(HourFold::named("another"), None);
}
