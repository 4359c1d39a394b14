//! Rule C-FSCK: each kind of damage that OpenTSDB's fsck knows is found, left alone without `fix`, and mended with it.

use basalt_store::{SeqNo, Timestamp};
use proptest::prelude::Strategy as _;

use super::*;
use crate::{Duplicates, RowPoints, Salting, UidWidths, Value};

const KEY: [u8; 13] = [0, 0, 1, 0x50, 0xE2, 0x27, 0, 0, 0, 1, 0, 0, 1];

type Slices<'a> = (&'a [u8], &'a [u8]);
type Column = (Vec<u8>, Vec<u8>);
type Cells = Vec<Column>;

const ALL: RowFsckOptions = RowFsckOptions {
    fix: true,
    compact: false,
    resolve_duplicates: true,
    first_write_wins: false,
    data_times: None,
    delete_orphans: true,
    delete_unknown_columns: true,
    delete_bad_values: true,
    delete_bad_rows: true,
    delete_bad_compacts: true,
    histogram_id: Some(42),
};

fn fsck(options: RowFsckOptions) -> RowFsck {
    RowFsck::new(KeyLayout { salting: Salting::NONE, widths: UidWidths::default() }, options)
}

/// Cells in the order written.
fn run(cells: &Cells, options: RowFsckOptions) -> (RowMend, RowFsck) {
    let mut fsck = fsck(options);
    let cells: Vec<RowCell<'_>> = (1..)
        .zip(cells)
        .map(|(time, (qualifier, value))| RowCell { qualifier, value, timestamp: Timestamp(time), seq: SeqNo(time) })
        .collect();
    (fsck.check(&KEY, &cells), fsck)
}

/// What readers see of the cells: milliseconds into the row and value.
fn points(cells: &[Column]) -> Vec<(u32, Value)> {
    let mut points = RowPoints::default();
    decode(cells, &mut points).unwrap();
    (0..points.len()).map(|at| (points.offsets_ms()[at], points.value(at).unwrap())).collect()
}

/// The same bit for bit; `None` where a cell cannot be read.
fn read(cells: &[Column]) -> Option<Vec<(u32, u64)>> {
    let mut points = RowPoints::default();
    decode(cells, &mut points).ok()?;
    Some(points.offsets_ms().iter().copied().zip(points.values().iter().copied()).collect())
}

fn decode(cells: &[Column], points: &mut RowPoints) -> crate::Result<()> {
    let cells = (1..).zip(cells).map(|(time, (qualifier, value))| RowCell {
        qualifier,
        value,
        timestamp: Timestamp(time),
        seq: SeqNo(time),
    });
    points.decode(cells, Duplicates::NewestWins)
}

fn mended(cells: &Cells, mend: &RowMend) -> Cells {
    let mut cells = cells.clone();
    cells.retain(|(qualifier, _)| !mend.deletes.contains(qualifier) && !mend.puts.contains_key(qualifier));
    cells.extend(mend.puts.iter().map(|(qualifier, (value, _))| (qualifier.clone(), value.clone())));
    cells
}

fn cells(of: &[(&[u8], &[u8])]) -> Cells {
    of.iter().map(|(qualifier, value)| (qualifier.to_vec(), value.to_vec())).collect()
}

/// `errors` are found, nothing is changed dry, and everything mended leaves no error; gives the cells then.
fn check(of: &[(&[u8], &[u8])], errors: u64, text: &str) -> Cells {
    let before = cells(of);
    let (mend, mut dry) = run(&before, RowFsckOptions { fix: false, ..ALL });
    let findings = dry.take_findings();
    assert_eq!(dry.counts().errors(), errors, "{findings:#?}");
    assert!(findings.iter().any(|finding| finding.text.contains(text)), "{findings:#?}");
    assert!(mend.is_empty() && dry.counts().mended() == 0, "{mend:?}");
    let mut after = Vec::new();
    for compact in [true, false] {
        let options = RowFsckOptions { compact, ..ALL };
        let (mend, mending) = run(&before, options);
        assert_eq!(mending.counts().mended(), errors, "all are told to be mended");
        after = mended(&before, &mend);
        let (mend, again) = run(&after, options);
        assert_eq!(again.counts().errors(), 0, "{after:02x?}");
        assert!(mend.is_empty(), "{mend:?}");
    }
    after
}

#[test]
fn what_is_right_stays() {
    let right: &[(&[u8], &[u8])] = &[
        (&[0, 0], &[1]),
        (&[0x00, 0x1B], &[0x3F, 0x80, 0, 0]),
        (&[0xF0, 0x01, 0x00, 0x07], &[0, 0, 0, 1, 0, 0, 0, 0]),
        (&[1, 0, 5], b"{}"),
        (&[6, 0, 0], &[42]),
    ];
    let (mend, fsck) = run(&cells(right), ALL);
    assert!(mend.is_empty());
    assert_eq!((fsck.counts().errors(), fsck.counts().valid_points, fsck.counts().annotations), (0, 3, 1));
}

#[test]
fn unknown_columns_go() {
    let point: (&[u8], &[u8]) = (&[0, 0], &[1]);
    let left = check(&[point, (&[7], &[1])], 1, "Invalid qualifier, must be on 2 bytes or more.");
    assert_eq!(left, cells(&[point]));
    check(&[point, (&[7; 7], &[1])], 1, "Unknown qualifier, must be 2, 3, 5 or an even number of bytes.");
    check(&[point, (&[0xF0, 0], &[1])], 1, "Unknown qualifier");
}

#[test]
fn columns_of_a_future_version_are_told_and_left() {
    for (qualifier, value) in [([9, 0, 0], &[1][..]), ([6, 0, 0], &[41, 0]), ([6, 0, 0], &[])] {
        assert_eq!(check(&[(&qualifier, value)], 0, "possibly from a future version").len(), 1);
    }
    let (_, mut fsck) = run(&cells(&[(&[6, 0, 0], &[42])]), RowFsckOptions { histogram_id: None, ..ALL });
    assert_eq!((fsck.counts().future, fsck.take_findings().len()), (1, 1));
}

#[test]
fn the_newest_of_duplicates_stays_and_the_oldest_when_asked() {
    let twice: &[(&[u8], &[u8])] = &[(&[0, 0], &[1]), (&[0, 0x0B], &[0x40, 0, 0, 0])];
    let left = check(twice, 1, "More than one column had a value for the same timestamp: (1356998400000)");
    assert_eq!(points(&left), [(0, Value::Float(2.0))]);
    let (mend, fsck) = run(&cells(twice), RowFsckOptions { first_write_wins: true, ..ALL });
    assert_eq!(points(&mended(&cells(twice), &mend)), [(0, Value::Int(1))]);
    assert_eq!(fsck.counts().duplicates_fixed, 1);
}

/// S-DUP-NEWEST: OpenTSDB, which may fold the row meanwhile, deletes the others too; were they not the same, none would be left.
#[test]
fn of_duplicates_that_are_equally_new_that_stays_which_readers_take() {
    let of_one_time = |qualifier, value| RowCell { qualifier, value, timestamp: Timestamp(1), seq: SeqNo(0) };
    let row = [of_one_time(&[0, 0], &[42]), of_one_time(&[0, 0x0B], &[0x40, 0, 0, 0]), of_one_time(&[0, 0x10], &[7])];
    let mut read = RowPoints::default();
    read.decode(row, Duplicates::NewestWins).unwrap();
    assert_eq!(read.value(0), Some(Value::Int(42)));
    let deleted: Vec<Vec<u8>> = fsck(ALL).check(&KEY, &row).deletes.into_iter().collect();
    assert_eq!(deleted, [[0, 0x0B]]);
}

#[test]
fn duplicates_in_a_compacted_cell_go_with_the_fold() {
    let left = check(&[(&[0, 0, 0, 0x10], &[1, 2, 0]), (&[0, 0x01], &[1, 0])], 1, "More than one column");
    assert_eq!(left, cells(&[(&[0, 0x01, 0, 0x10], &[1, 0, 2, 0])]));
}

#[test]
fn floats_of_early_versions_are_repaired() {
    let left = check(&[(&[0, 0x0B], &[0, 0, 0, 0, 0x3F, 0x80, 0, 0])], 1, "marked as 4 bytes long but was actually 8");
    assert_eq!(left, cells(&[(&[0, 0x0B], &[0x3F, 0x80, 0, 0])]));
    let left = check(&[(&[0, 0x0B], &[0xFF, 0xFF, 0xFF, 0xFF, 0xBF, 0x80, 0, 0])], 1, "sign extension bug");
    assert_eq!(left, cells(&[(&[0, 0x0B], &[0xBF, 0x80, 0, 0])]));
}

#[test]
fn values_that_cannot_be_known_go() {
    let bad: [(&[u8], &[u8], &str); 5] = [
        (&[0, 0x0B], &[0, 0, 0, 1, 0x3F, 0x80, 0, 0], "the first four bytes were not zeroed"),
        (&[0, 0x0B], &[1, 2], "either on 4 or 8 bytes, but it's on 2 bytes."),
        (&[0, 0x01], &[1, 2, 3], "The integer value is 3 bytes long but should be 2 bytes."),
        (&[0, 0x02], &[1, 2, 3], "The integer value is 3 bytes long"),
        (&[0, 0x01], &[], "The integer value is 0 bytes long"),
    ];
    for (qualifier, value, text) in bad {
        let point: (&[u8], &[u8]) = (&[0x00, 0x10], &[7]);
        assert_eq!(check(&[(qualifier, value), point], 1, text), cells(&[point]));
    }
    check(&[(&[5, 0, 0], &[0, 0, 1, 0])], 1, "append data point");
}

/// Readers take a lone value by its own length: it is no less a point for the qualifier that it has.
#[test]
fn values_of_another_length_than_is_told_get_a_qualifier_that_tells_it() {
    let told: [(Slices<'_>, Slices<'_>, &str); 7] = [
        (
            (&[0, 0x0F], &[0x3F, 0x80, 0, 0]),
            (&[0, 0x0B], &[0x3F, 0x80, 0, 0]),
            "marked as 8 bytes long but was only 4 bytes.",
        ),
        (
            (&[0, 9], &[0x40, 0, 0, 0, 0, 0, 0, 0]),
            (&[0, 0x0F], &[0x40, 0, 0, 0, 0, 0, 0, 0]),
            "marked as 2 bytes long but was 8",
        ),
        ((&[0, 1], &[1]), (&[0, 0], &[1]), "The integer value is 1 bytes long but should be 2 bytes."),
        ((&[0, 0], &[1, 0]), (&[0, 1], &[1, 0]), "The integer value is 2 bytes long but should be 1 bytes."),
        ((&[0, 0], &[0, 0, 0, 0, 0, 0, 1, 0]), (&[0, 1], &[1, 0]), "The integer value is 8 bytes long"),
        (
            (&[0, 3], &[0, 0, 0, 1, 0, 0, 0, 0]),
            (&[0, 7], &[0, 0, 0, 1, 0, 0, 0, 0]),
            "The integer value is 8 bytes long",
        ),
        ((&[0xF0, 0, 0x40, 1], &[5]), (&[0xF0, 0, 0x40, 0], &[5]), "The integer value is 1 bytes long"),
    ];
    let point: Slices<'_> = (&[0x00, 0x10], &[7]);
    for (odd, own, text) in told {
        let before = cells(&[odd, point]);
        assert_eq!(check(&[odd, point], 1, text), cells(&[point, own]));
        for compact in [false, true] {
            let (mend, fsck) = run(&before, RowFsckOptions { compact, ..ALL });
            assert_eq!(points(&mended(&before, &mend)), points(&before));
            assert_eq!((fsck.counts().bad_values, fsck.counts().fixed()), (1, 1));
        }
        assert!(run(&before, RowFsckOptions { delete_bad_values: false, ..ALL }).0.is_empty());
    }
}

/// Beside duplicates that stay and append cells it would become the newest.
#[test]
fn a_value_of_another_length_with_rivals_stays() {
    let [other, odd]: [Slices<'_>; 2] = [(&[0, 0], &[4]), (&[0, 1], &[9])];
    for row in [cells(&[other, odd]), cells(&[odd, other])] {
        let options = RowFsckOptions { resolve_duplicates: false, ..ALL };
        for first_write_wins in [true, false] {
            assert!(run(&row, RowFsckOptions { first_write_wins, ..options }).0.is_empty());
        }
        let newest = points(&row);
        assert_eq!(points(&mended(&row, &run(&row, ALL).0)), newest);
    }
    let (mend, fsck) = run(&cells(&[odd, (&[5, 0, 0], &[0, 0x10, 9])]), ALL);
    assert!(mend.is_empty(), "{mend:?}");
    assert_eq!((fsck.counts().bad_values, fsck.counts().fixed()), (1, 0));
}

/// A point never gives way to what is none, however much newer that is.
#[test]
fn of_duplicates_the_newest_that_can_be_read_stays() {
    let bad: (&[u8], &[u8]) = (&[0, 3], &[1, 2, 3]);
    let left = check(&[(&[0, 0], &[42]), bad], 1, "The integer value is 3 bytes long");
    assert_eq!(left, cells(&[(&[0, 0], &[42])]));
    let left = check(&[(&[0, 0, 0, 0x10], &[1, 2, 0]), (&[0, 1], &[9; 3])], 1, "The integer value is 3 bytes long");
    assert_eq!(left, cells(&[(&[0, 0, 0, 0x10], &[1, 2, 0])]));
    let left = check(&[(&[0, 0], &[1]), (&[0, 1], &[1, 0]), bad], 2, "More than one column");
    assert_eq!(left, cells(&[(&[0, 1], &[1, 0])]));
    // Nothing is deleted that may not be.
    let keep_values = RowFsckOptions { delete_bad_values: false, ..ALL };
    assert!(run(&cells(&[(&[0, 0], &[42]), bad]), keep_values).0.is_empty());
    // Where none can be read none stays, and each is counted once.
    assert_eq!(check(&[(&[0, 1], &[1; 3]), bad], 2, "The integer value is 3 bytes long"), cells(&[]));
}

#[test]
fn compacted_cells_are_sorted_or_go() {
    let left = check(&[(&[0, 0x10, 0, 0], &[2, 1, 0])], 1, "out of order or requires a fixup");
    assert_eq!(left, cells(&[(&[0, 0, 0, 0x10], &[1, 2, 0])]));
    let bad: [(&[u8], &[u8], &str); 3] = [
        (&[0, 0, 0, 0x10], &[1, 2], "The last byte of a compacted should be 0 or 1."),
        (&[0, 0, 0, 0x10], &[1, 2, 3, 0], "couldn't break down"),
        (&[0, 0, 0, 0x10], &[], "The last byte of a compacted should be 0 or 1."),
    ];
    for (qualifier, value, text) in bad {
        assert_eq!(check(&[(qualifier, value)], 1, text), cells(&[]));
    }
}

/// Readers look at no more than the last bit, so that all points are seen.
#[test]
fn a_compacted_cell_with_another_last_byte_keeps_its_points() {
    const TEXT: &str = "The last byte of a compacted should be 0 or 1.";
    let row: &[(&[u8], &[u8])] = &[(&[0, 0, 0, 0x10], &[1, 2, 9])];
    assert_eq!(check(row, 1, TEXT), cells(&[(&[0, 0, 0, 0x10], &[1, 2, 0])]));
    let row: &[(&[u8], &[u8])] = &[(&[0, 0, 0xF0, 1, 0, 0], &[1, 2, 0xFF]), (&[0, 0x20], &[3])];
    assert_eq!(check(row, 1, TEXT), cells(&[(&[0, 0, 0xF0, 1, 0, 0, 0, 0x20], &[1, 2, 3, 1])]));
    // Without leave to delete it is mended too, and in a row that is not folded it stays.
    let keep_compacts = RowFsckOptions { delete_bad_compacts: false, ..ALL };
    assert!(!run(&cells(row), keep_compacts).0.is_empty());
    let row: &[(&[u8], &[u8])] = &[(&[0, 0, 0, 0x10], &[1, 2, 9]), (&[5, 0, 0], &[0, 0, 4])];
    assert!(run(&cells(row), ALL).0.is_empty());
}

#[test]
fn integers_on_8_bytes_are_shortened() {
    let long: &[(&[u8], &[u8])] = &[(&[0, 7], &[0, 0, 0, 0, 0, 0, 1, 0]), (&[0xF0, 1, 0, 7], &[0xFF; 8])];
    let (mend, fsck) = run(&cells(long), ALL);
    assert_eq!(mended(&cells(long), &mend), cells(&[(&[0, 1], &[1, 0]), (&[0xF0, 1, 0, 0], &[0xFF])]));
    assert_eq!((fsck.counts().vle, fsck.counts().vle_fixed, fsck.counts().vle_bytes), (2, 2, 13));
    assert_eq!(fsck.counts().errors(), 0);
    assert!(run(&cells(long), RowFsckOptions { fix: false, ..ALL }).0.is_empty());
}

/// Written anew under the shorter name it would take another's place, or become the newest.
#[test]
fn of_duplicates_that_stay_none_is_shortened() {
    let eight: (&[u8], &[u8]) = (&[0, 7], &[0, 0, 0, 0, 0, 0, 0, 5]);
    for other in [(&[0, 0][..], &[4][..]), (&[0xF0, 0, 0, 0], &[4])] {
        for (first_write_wins, row) in [(true, [eight, other]), (false, [other, eight])] {
            let options = RowFsckOptions { resolve_duplicates: false, first_write_wins, ..ALL };
            let (mend, fsck) = run(&cells(&row), options);
            assert!(mend.is_empty(), "{mend:?}");
            assert_eq!((fsck.counts().vle, fsck.counts().vle_fixed), (1, 0));
            let (mend, _) = run(&cells(&row), RowFsckOptions { first_write_wins, ..ALL });
            assert_eq!(mended(&cells(&row), &mend), cells(&[(&[0, 0], &[5])]));
        }
    }
}

/// What cannot be read stays until it may be deleted: the shorter name may be its own.
#[test]
fn a_value_that_cannot_be_read_and_stays_is_not_written_over() {
    let eight: (&[u8], &[u8]) = (&[0, 7], &[0, 0, 0, 0, 0, 0, 0, 5]);
    for bad in [(&[0, 0][..], &[1, 2, 3][..]), (&[0, 3], &[1, 2, 3])] {
        let row = cells(&[eight, bad]);
        for resolve_duplicates in [true, false] {
            let options = RowFsckOptions { delete_bad_values: false, resolve_duplicates, ..ALL };
            let (mend, fsck) = run(&row, options);
            assert!(mend.is_empty(), "{mend:?}");
            assert_eq!((fsck.counts().bad_values, fsck.counts().vle, fsck.counts().vle_fixed), (1, 1, 0));
        }
        assert_eq!(mended(&row, &run(&row, ALL).0), cells(&[(&[0, 0], &[5])]));
    }
}

/// OpenTSDB drops an integer that needs its 8 bytes when it folds a row.
#[test]
fn a_fold_loses_no_point() {
    let row: &[(&[u8], &[u8])] = &[
        (&[0, 7], &[0, 0, 0, 1, 0, 0, 0, 0]),
        (&[0, 0x10, 0, 0x20], &[1, 2, 0]),
        (&[0xF0, 1, 0, 0x0F], &[0x40, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let before = cells(row);
    let after = mended(&before, &run(&before, RowFsckOptions { compact: true, ..ALL }).0);
    assert_eq!(after.len(), 1);
    assert_eq!(points(&after), points(&before));
    assert_eq!(points(&before).len(), 4);
}

#[test]
fn a_row_with_an_error_that_may_not_be_mended_is_not_folded() {
    let row: &[(&[u8], &[u8])] = &[(&[0, 0x10, 0, 0x20], &[1, 2, 0]), (&[0, 1], &[1])];
    let keep_values = RowFsckOptions { delete_bad_values: false, ..ALL };
    assert!(run(&cells(row), keep_values).0.is_empty());
    let twice: &[(&[u8], &[u8])] = &[(&[0, 0x10, 0, 0x20], &[1, 2, 0]), (&[0, 0x11], &[1, 1])];
    let keep_twice = RowFsckOptions { resolve_duplicates: false, ..ALL };
    assert!(run(&cells(twice), keep_twice).0.is_empty());
    // An error of a compacted cell stays with it.
    let unsorted: &[(&[u8], &[u8])] = &[(&[0, 0x20, 0, 0x10], &[1, 2, 0]), (&[0, 1], &[1])];
    let (mend, fsck) = run(&cells(unsorted), keep_values);
    assert_eq!((mend.is_empty(), fsck.counts().errors(), fsck.counts().mended()), (true, 2, 0));
}

#[test]
fn a_fold_over_a_compacted_cell_of_the_same_points_is_told() {
    let row: &[(&[u8], &[u8])] = &[(&[0, 0x10, 0, 0x20], &[1, 2, 0]), (&[0, 0x10], &[9])];
    let (mend, mut fsck) = run(&cells(row), ALL);
    assert_eq!(mended(&cells(row), &mend), cells(&[(&[0, 0x10, 0, 0x20], &[9, 2, 0])]));
    let told = |finding: &Finding| finding.text.starts_with("Overwriting compacted column with new value: ");
    assert_eq!(fsck.take_findings().iter().filter(|finding| told(finding)).count(), 1);
}

/// A fold would give its points another age than the append cell's.
#[test]
fn a_row_with_an_append_cell_is_not_folded() {
    let row: &[(&[u8], &[u8])] = &[(&[0, 0x10, 0, 0x20], &[1, 2, 0]), (&[5, 0, 0], &[0, 0x10, 9])];
    assert!(run(&cells(row), RowFsckOptions { compact: true, ..ALL }).0.is_empty());
}

#[test]
fn rows_without_a_key_or_names_go_when_asked() {
    for (options, goes) in [(ALL, true), (RowFsckOptions { fix: false, ..ALL }, false)] {
        let mut fsck = fsck(options);
        assert_eq!(fsck.check_key(&KEY), None);
        assert_eq!(fsck.check_key(&KEY[..9]).map(|mend| mend.delete_row), Some(goes));
        let gone = crate::Error::NoSuchId { kind: crate::UidKind::Metric, id: [0, 0, 1].into() };
        assert_eq!(fsck.orphan(&KEY, &gone).delete_row, goes);
        assert_eq!((fsck.counts().bad_keys, fsck.counts().orphans), (1, 1));
        assert_eq!(fsck.counts().fixed(), if goes { 2 } else { 0 });
    }
}

proptest::proptest! {
    /// Points that can be read are never lost, nor changed: not by what a mend deletes, nor by what it writes.
    #[test]
    fn no_point_that_readers_can_read_is_lost(
        row in proptest::collection::btree_map(
            (0u8..4, 0u8..16).prop_map(|(second, flags)| vec![0, second << 4 | flags]),
            proptest::collection::vec(proptest::prelude::any::<u8>(), 1..9),
            1..6,
        ),
        compact: bool,
    ) {
        let row: Cells = row.into_iter().collect();
        // Of one that cannot be read nobody can say what readers see.
        let before: Cells = row.into_iter().filter(|cell| read(std::slice::from_ref(cell)).is_some()).collect();
        let after = mended(&before, &run(&before, RowFsckOptions { compact, ..ALL }).0);
        proptest::prop_assert_eq!(read(&after), read(&before), "{:02x?} {:02x?}", before, after);
    }

    /// Whatever bytes: no panic, and what is mended has no error left.
    #[test]
    fn any_row_is_mended_to_one_without_errors(
        row in proptest::collection::btree_map(
            proptest::collection::vec(proptest::prelude::any::<u8>(), 0..9),
            proptest::collection::vec(proptest::prelude::any::<u8>(), 0..12),
            0..6,
        ),
        compact: bool,
    ) {
        let before: Cells = row.into_iter().collect();
        let options = RowFsckOptions { compact, ..ALL };
        let (mend, mending) = run(&before, options);
        let after = mended(&before, &mend);
        let errors = run(&after, options).1.counts().errors();
        let found = mending.counts().errors();
        // A point beside an append cell gets no other column, whatever its own tells.
        let has_appended = before.iter().any(|(qualifier, _)| ColumnKind::of(qualifier) == ColumnKind::Appended);
        proptest::prop_assert!(errors == 0 || has_appended, "{:02x?} {:02x?}", before, after);
        let told = mending.counts().mended();
        proptest::prop_assert!(told == found || (has_appended && told < found), "{} of {} {:02x?}", told, found, before);
    }
}

/// `S-DTCS`: of points at one instant the one that readers see is told to stay, whichever came later.
#[test]
fn with_times_of_points_the_larger_or_the_smaller_is_kept() {
    // A second and a millisecond; the old and the young one.
    let (second, milli) = ((vec![0, 0x10], vec![9]), (vec![0xF0, 0, 0xFA, 0], vec![7]));
    for (kept, is_second) in [(LargerOrSmaller::Larger, true), (LargerOrSmaller::Smaller, false)] {
        for cells in [vec![second.clone(), milli.clone()], vec![milli.clone(), second.clone()]] {
            let options = RowFsckOptions { data_times: Some(kept), ..RowFsckOptions::default() };
            let (mend, mut fsck) = run(&cells, options);
            assert_eq!((mend.is_empty(), fsck.counts().duplicates), (true, 1));
            let told: String = fsck.take_findings().into_iter().map(|finding| finding.text).collect();
            let line = told.lines().find(|line| line.contains("<--- keep")).unwrap();
            assert_eq!(line.contains("qualifier: 0010"), is_second, "{kept:?}: {told}");
        }
    }
}
