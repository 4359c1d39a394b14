//! What a block tells by columns is what its cells tell.

use basalt_store::{Packed, PackedRows, Packing, RowSummary};

use super::*;
use crate::row::RowPoints;
use crate::{Duplicates, RowCell};

/// Every row of an open block against the image's; how many rows came as points. `None` where it does not open.
pub(super) fn compare(image: &[u8], stored: &[u8]) -> Option<usize> {
    let rows = Rows::of(image).unwrap();
    let cells: Vec<LoneCell<'_>> = rows.iter().filter_map(|row| row.unwrap().lone_cell(rows.base)).collect();
    let opened = Tsb1.open(stored.to_vec(), image.len());
    let Some(block) = opened else {
        let is_of_points = |cell: &LoneCell<'_>| SCRATCH.with_borrow_mut(|scratch| scratch.take(cell));
        assert!(cells.len() < rows.count() || !cells.iter().all(is_of_points), "a block of points alone is refused");
        return None;
    };
    assert_eq!((cells.len(), block.rows_count()), (rows.count(), rows.count()));
    let (mut packed, mut points) = (PackedRows::default(), RowPoints::default());
    let (mut qualifier, mut value) = (vec![1], vec![2]);
    for (row, (cell, found)) in cells.iter().zip(rows.iter()).enumerate() {
        assert!(block.row_key(row).ends_with(found.unwrap().suffix));
        let (timestamp, seq) = block.written(row);
        assert_eq!((timestamp.0, seq.0), (cell.at.timestamp, cell.at.seq));
        assert!(block.cell(row, &mut qualifier, &mut value), "a cell is refused");
        assert_eq!((&qualifier[..], &value[..]), (cell.qualifier, cell.value));
        let before = packed.len();
        if !block.pack(row, Packing::Points, &mut packed) {
            assert_eq!(packed.len(), before);
            continue;
        }
        let Some(Packed::Points(found)) = packed.row(before) else { panic!("no points") };
        let cell = RowCell { qualifier: cell.qualifier, value: cell.value, timestamp, seq };
        points.decode([cell], Duplicates::NewestWins).unwrap();
        assert_eq!(found.offsets_ms, points.offsets_ms());
        assert_eq!(found.words, points.values());
        assert!(points.kinds().iter().all(|kind| kind.is_float() == found.is_float));
        let mut together = PackedRows::default();
        assert!(block.pack(row, Packing::Summaries, &mut together));
        if let Some(Packed::Summary(summary)) = together.row(0) {
            assert_eq!(format!("{summary:?}"), format!("{:?}", summary_of(&points)));
            assert!(summary.is_of(&found));
        }
    }
    assert!(block.memory_bytes() > stored.len());
    Some(packed.len())
}

/// What a reader makes of a row's points.
fn summary_of(points: &RowPoints) -> RowSummary {
    let is_float = points.kinds()[0].is_float();
    let double = |word: u64| if is_float { f64::from_bits(word) } else { word as i64 as f64 };
    let words = || points.values().iter().copied();
    let order = |a: &u64, b: &u64| {
        if is_float { double(*a).total_cmp(&double(*b)) } else { (*a as i64).cmp(&(*b as i64)) }
    };
    RowSummary {
        count: points.len() as u32,
        first_ms: points.offsets_ms()[0],
        last_ms: *points.offsets_ms().last().unwrap(),
        is_float,
        min: words().min_by(order).unwrap(),
        max: words().max_by(order).unwrap(),
        last: words().next_back().unwrap(),
        sum: words().fold(0.0, |sum, word| sum + double(word)),
    }
}

/// How many rows of a block have a summary.
fn summaries(stored: &[u8], image: &[u8]) -> usize {
    let block = Tsb1.open(stored.to_vec(), image.len()).unwrap();
    let mut rows = PackedRows::default();
    for row in 0..block.rows_count() {
        block.pack(row, Packing::Summaries, &mut rows);
    }
    (0..rows.len()).filter(|row| matches!(rows.row(*row), Some(Packed::Summary(_)))).count()
}

#[test]
fn hours_of_gauges_have_summaries() {
    for scale in [1, 10, 100] {
        let image = gauges(45, scale);
        assert_eq!(summaries(&check(&image), &image), 45);
    }
}

/// Exceptions, kinds of their own, few points, full doubles, and sums that nothing holds.
#[test]
fn rows_that_nothing_sums_up_have_none() {
    let doubles = |values: Vec<f64>| -> Vec<Point> {
        values.iter().zip(0..).map(|(value, at)| (at * 1000, DOUBLE, value.to_bits())).collect()
    };
    let mut exception = vec![20.5; 100];
    exception[3] = f64::NAN;
    let wide = |at: u32| (at * 1000, PointKind::new(false, 8), (i64::MAX - i64::from(at)) as u64);
    let odd = [
        doubles(exception),
        doubles((0..100).map(|at| f64::from(at).sqrt()).collect()),
        doubles(vec![1.5, 2.5]),
        (0..100).map(wide).collect(),
        (0..100).map(|at| (at * 1000, if at % 2 == 0 { INT } else { DOUBLE }, 0)).collect(),
        (0..100).map(|at| (at / 2 * 1000, INT, 1)).collect(),
    ];
    let contents = odd.into_iter().chain([gauge(&mut Dice(1), 1)]);
    let rows: Vec<TestRow> = contents.zip(0..).map(|(points, row)| (key(row), 1, 1, Content::Points(points))).collect();
    let image = image(&rows);
    assert_eq!(summaries(&check(&image), &image), 1);
}

/// Integers so large that a sum of doubles on the way to all of them is rounded: a summary tells that sum.
#[test]
fn sums_are_those_of_one_point_after_the_other() {
    for (first, rounds) in [(1 << 54, true), (-1 << 54, true), (1 << 40, false)] {
        let numbers = || (0..100_i64).map(move |at| first + at * 7 + 1);
        let point = |(at, number): (u32, i64)| (at * 1000, PointKind::new(false, 8), number.cast_unsigned());
        let rows = [(key(0), 1, 1, Content::Points((0..100).zip(numbers()).map(point).collect()))];
        let image = image(&rows);
        let stored = check(&image);
        assert_eq!((compare(&image, &stored), summaries(&stored, &image)), (Some(1), 1), "{first}");
        let running = numbers().fold(0.0, |sum, number| sum + number as f64);
        assert_eq!(running as i64 != numbers().sum::<i64>(), rounds, "{first}");
    }
}

#[test]
fn hours_of_gauges_come_as_points() {
    for scale in [1, 10, 100] {
        let image = gauges(45, scale);
        assert_eq!(compare(&image, &check(&image)), Some(45));
    }
}

/// A float on four bytes is read as the double that it widens to, not as the decimal it was rounded from.
#[test]
fn floats_on_four_bytes_come_as_their_cells_give_them() {
    let singles = |at: u32| (at * 1000, SINGLE, f64::from([0.1_f32, 85.7, -3.3][at as usize % 3]).to_bits());
    let rows = [(key(0), 1, 1, Content::Points((0..100).map(singles).collect()))];
    let image = image(&rows);
    assert_eq!(compare(&image, &check(&image)), Some(1));
}

/// Kinds of their own, an instant twice, and time that goes back are what a cell alone tells.
#[test]
fn rows_that_are_no_ascending_points_of_one_kind_come_as_cells() {
    let odd = [
        vec![(0, INT, 1), (1000, DOUBLE, 1.25_f64.to_bits())],
        vec![(5000, INT, 1), (5000, INT, 2), (6000, INT, 3)],
        vec![(9000, INT, 1), (8000, INT, 2), (1000, INT, 3)],
        vec![(9000, INT, 1), (8000, INT, 2), (7000, INT, 3)],
        vec![(0, INT, 1), (1500, INT.with_millis(true), 2)],
    ];
    let contents = odd.into_iter().chain([gauge(&mut Dice(1), 1)]);
    let rows: Vec<TestRow> = contents.zip(0..).map(|(points, row)| (key(row), 1, 1, Content::Points(points))).collect();
    let image = image(&rows);
    assert_eq!(compare(&image, &check(&image)), Some(1));
}

#[test]
fn a_block_with_another_row_is_not_opened() {
    let gauge = |row: u32| (key(row), 5, 9, Content::Points(gauge(&mut Dice(3), 1)));
    let note = (key(1), 5, 9, Content::Verbatim(1, [&[0x26, 3, 1, 0, 0, 4][..], b"note"].concat()));
    let image = image(&[gauge(0), note, gauge(2)]);
    assert_eq!(compare(&image, &check(&image)), None);
}

#[test]
fn hurt_bytes_panic_nobody() {
    let image = gauges(3, 100);
    let stored = check(&image);
    let (mut qualifier, mut value) = (Vec::new(), Vec::new());
    for at in 0..stored.len() {
        assert!(Tsb1.open(stored[..at].to_vec(), image.len()).is_none(), "cut at {at}");
        for flip in [1, 0x10, 0x80, 0xFF] {
            let mut hurt = stored.clone();
            hurt[at] ^= flip;
            let Some(block) = Tsb1.open(hurt, image.len()) else { continue };
            for row in 0..block.rows_count() {
                std::hint::black_box(block.pack(row, Packing::Points, &mut PackedRows::default()));
                std::hint::black_box(block.cell(row, &mut qualifier, &mut value));
            }
        }
    }
}
