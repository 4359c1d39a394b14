//! What a fold joins, what it leaves, and the law that it changes no point.

use proptest::prelude::*;

use super::*;
use crate::{APPEND_QUALIFIER, Door, PointCell, PointTime, point_cell};

fn cell<'a>(qualifier: &'a [u8], value: &'a [u8], time: u64) -> RowCell<'a> {
    RowCell { qualifier, value, timestamp: Timestamp(time), seq: SeqNo(time) }
}

fn check(cells: &[RowCell<'_>], expected: Option<(&[u8], &[u8], u64)>) {
    let mut fold = RowFold::default();
    let folded = fold.fold(cells, Duplicates::NewestWins).unwrap();
    assert_eq!(folded, expected.map(|(qualifier, value, time)| cell(qualifier, value, time)));
}

#[test]
fn points_are_joined_in_time_order() {
    // S-COMPACT-WRITE, S-COMPACT-MIXED
    let (four, five) = ([0, 0, 0, 0, 0, 0, 0, 4], [0, 0, 0, 0, 0, 0, 0, 5]);
    check(
        &[cell(&[0, 0x17], &five, 1), cell(&[0, 0x07], &four, 2)],
        Some((&[0, 0x07, 0, 0x17], &[0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0], 2)),
    );
    let milli = cell(&[0xF0, 0, 0x7D, 0], &[0x2B], 1);
    check(&[cell(&[0, 0], &[0x2A], 1), milli], Some((&[0, 0, 0xF0, 0, 0x7D, 0], &[0x2A, 0x2B, 1], 1)));
    check(&[milli, cell(&[0xF0, 0, 0, 0], &[1], 1)], Some((&[0xF0, 0, 0, 0, 0xF0, 0, 0x7D, 0], &[1, 0x2B, 0], 1)));
}

#[test]
fn nothing_is_done_where_nothing_is_to_do() {
    check(&[], None);
    check(&[cell(&[0, 0], &[1], 1)], None);
    check(&[cell(&[0, 0, 0, 0x10], &[1, 2, 0], 1)], None);
    check(&[cell(&[0x01, 0, 0], b"{}", 1), cell(&[0, 0], &[1], 1)], None);
    // Its points take their age from the whole append cell: joining the others could make them newer than it.
    check(&[cell(&[0, 0], &[1], 1), cell(&[0, 0x10], &[1], 3), cell(&APPEND_QUALIFIER, &[0, 0, 2], 2)], None);
    // The payload of a 4-byte NaN would not survive.
    check(&[cell(&[0, 0], &[1], 1), cell(&[0, 0x1B], &[0x7F, 0x80, 0, 1], 1)], None);
}

#[test]
fn the_newest_of_an_instant_is_kept_on_its_own_bytes() {
    // S-DUP-NEWEST
    let wide = [0x3F, 0xF8, 0, 0, 0, 0, 0, 0];
    check(&[cell(&[0, 0], &[5], 1), cell(&[0, 0x0F], &wide, 2)], Some((&[0, 0x0F], &wide, 2)));
    check(&[cell(&[0, 0], &[5], 3), cell(&[0, 0x0F], &wide, 2)], Some((&[0, 0], &[5], 3)));
}

#[test]
fn damage_keeps_the_row() {
    let mut fold = RowFold::default();
    assert!(fold.fold(&[cell(&[0, 0], &[5], 1), cell(&[0, 0x02], &[1, 2, 3], 2)], Duplicates::NewestWins).is_err());
}

/// What a fold makes of cells that it looks at point by point.
fn folded_slowly(cells: &[RowCell<'_>]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut fold = RowFold::default();
    fold.points.decode(cells.iter().copied(), Duplicates::NewestWins).ok()?;
    fold.join().then(|| (fold.cell.qualifier().to_vec(), fold.cell.value().to_vec()))
}

fn bytes_of(cell: RowCell<'_>) -> (Vec<u8>, Vec<u8>) {
    (cell.qualifier.to_vec(), cell.value.to_vec())
}

#[test]
fn what_is_joined_as_it_lies_is_what_its_points_give() {
    let (second, later): (&[u8], &[u8]) = (&[0x00, 0x20], &[0x00, 0x30]);
    let nan = [0x7F, 0xC0, 0, 1];
    let rows: &[&[(&[u8], &[u8])]] = &[
        &[(second, &[1]), (later, &[2])],
        &[(&[0x00, 0x21], &[1, 2]), (&[0x00, 0x33], &[1, 2, 3, 4]), (&[0x00, 0x47], &[1; 8])],
        &[(&[0x00, 0x2B], &[0x40, 0, 0, 0]), (&[0x00, 0x3F], &[0x40, 0, 0, 0, 0, 0, 0, 0])],
        &[(&[0x00, 0x00], &[1]), (&[0xF0, 0x00, 0xFA, 0x00], &[2])],
        // The same instant twice, values out of order, of a length that is not told, repaired, or of none that a value has.
        &[(second, &[1]), (&[0x00, 0x21], &[0, 2])],
        &[(later, &[1]), (second, &[2])],
        &[(second, &[1, 2]), (later, &[1])],
        &[(&[0x00, 0x2B], &[0, 0, 0, 0, 0x40, 0, 0, 0]), (later, &[1])],
        &[(&[0x00, 0x22], &[1, 2, 3]), (later, &[1])],
        &[(&[0x00, 0x28], &[1]), (later, &[1])],
        // Bits that no writer sets, and a number that does not come back.
        &[(&[0xF0, 0x00, 0x00, 0x30], &[1]), (&[0xF0, 0x00, 0xFA, 0x00], &[2])],
        &[(&[0x00, 0x2B], &nan), (later, &[1])],
    ];
    for (row, joins) in
        rows.iter().zip([true, true, true, true, false, false, false, false, false, false, false, false])
    {
        let cells: Vec<_> =
            row.iter().zip(1..).map(|((qualifier, value), time)| cell(qualifier, value, time)).collect();
        assert_eq!(CompactedCell::default().join(row.iter().copied()), joins, "{row:?}");
        let folded = RowFold::default().fold(&cells, Duplicates::NewestWins).ok().flatten().map(bytes_of);
        assert_eq!(folded, folded_slowly(&cells), "{row:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A cell that is passed as folded is one that its points give back.
    #[test]
    fn a_clean_cell_is_its_own_fold(qualifiers in proptest::collection::vec((0u16..40, 0u8..16), 0..6),
                                    offset in 0u16..40, meta in 0u8..3, longer in 0usize..2) {
        let mut last = offset;
        let mut bytes = Vec::new();
        let mut value = Vec::new();
        for (step, flags) in qualifiers {
            last += step % 7;
            bytes.extend((last << 4 | u16::from(flags)).to_be_bytes());
            value.extend(vec![0x7F; usize::from(flags & 7) + 1]);
        }
        value.extend(vec![meta; 1 + longer]);
        if is_clean(&bytes, &value) {
            prop_assert_eq!(folded_slowly(&[cell(&bytes, &value, 1)]), Some((bytes, value)));
        }
    }
}

fn points_of(cells: &[RowCell<'_>]) -> Vec<(u32, u64, crate::PointKind)> {
    let mut points = RowPoints::default();
    points.decode(cells.iter().copied(), Duplicates::NewestWins).unwrap();
    let columns = points.offsets_ms().iter().zip(points.values()).zip(points.kinds());
    columns.map(|((offset_ms, word), kind)| (*offset_ms, *word, *kind)).collect()
}

prop_compose! {
    fn any_point()(seconds in 0i64..60, millis in proptest::option::of(0i64..3), int: i64, shift in 0u32..64,
                   float in proptest::option::of(proptest::num::f64::NORMAL | proptest::num::f64::ZERO), telnet: bool)
                  -> PointCell {
        let seconds = seconds + 1_700_002_800;
        let time = PointTime::from_number(millis.map_or(seconds, |ms| seconds * 1000 + ms)).unwrap();
        let value = float.map_or(Value::Int(int >> shift), Value::Float);
        point_cell(time, value, if telnet { Door::Telnet } else { Door::Http }).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A fold changes no point, folded twice changes nothing, and folded in two steps is folded in one.
    #[test]
    fn a_fold_keeps_every_point(written in proptest::collection::vec(any_point(), 1..40), split in 0usize..40) {
        let bytes: Vec<_> = written.iter().map(|point| (point.qualifier_bytes(), point.value())).collect();
        let cells: Vec<RowCell<'_>> =
            bytes.iter().zip(1..).map(|((qualifier, value), time)| cell(qualifier, value, time)).collect();
        let mut fold = RowFold::default();
        if let Some(folded) = fold.fold(&cells, Duplicates::NewestWins).unwrap() {
            prop_assert_eq!(points_of(&[folded]), points_of(&cells));
            prop_assert!(RowFold::default().fold(&[folded], Duplicates::NewestWins).unwrap().is_none());
            let (early, late) = cells.split_at(split.min(cells.len()));
            let mut first = RowFold::default();
            let early = first.fold(early, Duplicates::NewestWins).unwrap().map_or_else(|| early.to_vec(), |cell| vec![cell]);
            let steps = [early, late.to_vec()].concat();
            let mut second = RowFold::default();
            let twice = second.fold(&steps, Duplicates::NewestWins).unwrap().unwrap_or_else(|| steps[0]);
            prop_assert_eq!(twice, folded);
        }
    }
}
