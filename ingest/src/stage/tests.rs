//! Points staged, and the cells of the rows that they become.

use basalt_schema::{
    Door, KeyLayout, PointTime, Salting, SeriesIndex, TagPair, Tsuid, Uid, UidWidths, Value, point_cell,
};
use proptest::prelude::*;

use super::*;

fn series(tagv: u64) -> KnownSeries {
    let layout = KeyLayout { salting: Salting::NONE, widths: UidWidths::default() };
    let pair = TagPair { key: Uid::new(1), value: Uid::new(tagv) };
    let key = layout.series_key(&Tsuid::new(Uid::new(1), &[pair], layout.widths));
    KnownSeries { id: SeriesId(u32::try_from(tagv).unwrap()), key }
}

/// A row's place, a qualifier, a value.
type Cell = (usize, Vec<u8>, Vec<u8>);

/// Points `(series, time, value)`, and the cells they become.
fn sealed(points: &[(u64, i64, Value)], cells: PointCells) -> (StagedRows, Vec<Cell>) {
    let handles = SeriesIndex::new(UidWidths::default(), 1).row_handles();
    let mut stage = Stage::with_capacity(points.len(), Durability::Fsync, handles);
    for (index, (tagv, time, value)) in points.iter().enumerate() {
        let cell = point_cell(PointTime::from_number(*time).unwrap(), *value, Door::Http).unwrap();
        stage.push(index, &series(*tagv), cell).unwrap();
    }
    let (rows, batch) = stage.seal(cells);
    let batch = batch.unwrap();
    let cells = batch
        .rows()
        .enumerate()
        .flat_map(|(place, row)| row.cells().map(move |c| (place, c.qualifier.to_vec(), c.value.to_vec())));
    let cells = cells.collect();
    (rows, cells)
}

const HOUR: i64 = 1_699_999_200;

#[test]
fn a_row_is_one_entry_whatever_order_its_points_come_in() {
    let int = Value::Int;
    let points =
        [(1, HOUR, int(1)), (2, HOUR, int(2)), (1, HOUR + 3600, int(3)), (1, HOUR + 2, int(4)), (1, HOUR + 1, int(5))];
    let (rows, cells) = sealed(&points, PointCells::Each);
    assert_eq!(
        cells,
        [
            (0, vec![0, 0], vec![1]),
            (0, vec![0, 0x10], vec![5]),
            (0, vec![0, 0x20], vec![4]),
            (1, vec![0, 0], vec![2]),
            (2, vec![0, 0], vec![3])
        ]
    );
    assert_eq!((rows.points_of(0), rows.points_of(1), rows.points_of(2)), (&[0, 3, 4][..], &[1][..], &[2][..]));
    assert_eq!((rows.points_count(), rows.superseded), (5, 0));
    assert!(rows.points_of(3).is_empty());
}

#[test]
fn of_points_at_one_instant_the_last_is_written() {
    let points = [
        (1, HOUR + 1, Value::Int(1)),
        (1, HOUR, Value::Int(7)),
        (1, HOUR + 1, Value::Float(2.5)),
        // The same instant in milliseconds, as the last word.
        (1, (HOUR + 1) * 1000, Value::Int(3)),
    ];
    let (rows, cells) = sealed(&points, PointCells::Each);
    assert_eq!(cells, [(0, vec![0, 0], vec![7]), (0, vec![0xF0, 0, 0xFA, 0], vec![3])]);
    assert_eq!((rows.points_count(), rows.superseded), (4, 2));
}

/// S-DTCS: of 300 and 7 at one instant either may be the answer, so both are written, and of two of one width the last.
#[test]
fn s_dtcs_of_points_at_one_instant_the_last_of_each_width_is_written() {
    let int = Value::Int;
    let points =
        [(1, HOUR + 1, int(300)), (1, HOUR, int(9)), (1, HOUR + 1, int(8)), (1, HOUR + 1, int(7)), (2, HOUR, int(1))];
    let (rows, cells) = sealed(&points, PointCells::EachAtItsTime);
    assert_eq!(
        cells,
        [
            (0, vec![0, 0], vec![9]),
            (0, vec![0, 0x10], vec![7]),
            (0, vec![0, 0x11], vec![1, 0x2C]),
            (1, vec![0, 0], vec![1]),
        ]
    );
    assert_eq!((rows.points_count(), rows.superseded), (5, 1));
}

/// S-COMPACT-WRITE, S-COMPACT-MIXED: one byte of the value says whether seconds and milliseconds are mixed; a lone point has none.
#[test]
fn joined_points_are_a_cell_as_of_a_rewritten_row() {
    let points = [
        (1, HOUR + 2, Value::Int(4)),
        (2, HOUR, Value::Int(2)),
        (1, HOUR + 1, Value::Int(5)),
        (1, HOUR + 1, Value::Int(6)),
        (3, HOUR, Value::Int(7)),
        (3, HOUR * 1000 + 1, Value::Int(8)),
    ];
    let (rows, cells) = sealed(&points, PointCells::Joined);
    assert_eq!(
        cells,
        [
            (0, vec![0, 0x10, 0, 0x20], vec![6, 4, 0]),
            (1, vec![0, 0], vec![2]),
            (2, vec![0, 0, 0xF0, 0, 0, 0x40], vec![7, 8, 1]),
        ]
    );
    assert_eq!((rows.points_of(0), rows.points_count(), rows.superseded), (&[0, 2, 3][..], 6, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Rows that ascend for a while, as senders write them, then do not, and come again.
    #[test]
    fn points_find_their_rows_in_any_order(
        ascending in proptest::collection::btree_set(1..40_u64, 0..9),
        rest in proptest::collection::vec((1..40_u64, 0..3_i64), 0..40),
    ) {
        let all = ascending.into_iter().map(|series| (series, 0)).chain(rest);
        let all = all.enumerate().map(|(at, (series, hour))| {
            (series, HOUR + hour * 3600 + i64::try_from(at).unwrap(), Value::Int(1))
        });
        let all: Vec<_> = all.collect();
        let row_of = |point: &(u64, i64, Value)| (point.0, (point.1 - HOUR) / 3600);
        let mut expected: Vec<(_, Vec<usize>)> = Vec::new();
        for (at, point) in all.iter().enumerate() {
            match expected.iter_mut().find(|(row, _)| *row == row_of(point)) {
                Some((_, points)) => points.push(at),
                None => expected.push((row_of(point), vec![at])),
            }
        }
        let (rows, cells) = sealed(&all, PointCells::Each);
        prop_assert_eq!(cells.len(), all.len());
        for (place, (_, points)) in expected.iter().enumerate() {
            prop_assert_eq!(rows.points_of(place), &points[..]);
        }
        prop_assert!(rows.points_of(expected.len()).is_empty());
    }
}

#[test]
fn no_points_make_an_empty_batch() {
    let (rows, cells) = sealed(&[], PointCells::Each);
    assert_eq!((rows.points_count(), cells.len()), (0, 0));
}
