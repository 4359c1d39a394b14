//! Rule S-SCAN-8, and the seek hints that make it cheap.

use proptest::prelude::*;

use bytes::Bytes;

use super::*;
use crate::filter::{Comparator, FuzzyKey, ListOperator, RowRange};
use crate::{CellKind, Comparison, SeqNo, Timestamp};

fn range(start: &'static str, stop: &'static str) -> RowRange {
    RowRange { start: start.into(), stop: stop.into() }
}

fn fuzzy(key: &'static str, mask: &'static [u8]) -> Filter {
    Filter::FuzzyRow(vec![FuzzyKey { key: key.into(), mask: mask.into() }])
}

fn seek(key: &'static str) -> RowVerdict {
    RowVerdict::SeekTo(key.into())
}

fn check_rows(filter: &Filter, reversed: bool, expected: &[(&str, RowVerdict)]) {
    let mut run = FilterRun::new(filter, reversed);
    for (row, verdict) in expected {
        assert_eq!(&run.judge_row(row.as_bytes()), verdict, "{filter:?}, reversed: {reversed}, row {row}");
    }
}

fn check_cells(filter: &Filter, cells: &[(&'static str, Kept, Advance)]) {
    let mut run = FilterRun::new(filter, false);
    assert_eq!(run.judge_row(b"r"), RowVerdict::Pass);
    for &(qualifier, kept, advance) in cells {
        let cell = CellRef {
            row: b"r",
            family: b"f",
            qualifier: qualifier.as_bytes(),
            timestamp: Timestamp(1),
            kind: CellKind::Put,
            seq: SeqNo(1),
            value: b"v",
        };
        assert_eq!(run.judge_cell(&cell), CellVerdict { kept, advance }, "{filter:?}, column {qualifier}");
    }
}

#[test]
fn s_scan_8_a_prefix_seeks_to_its_rows_and_ends_after_them() {
    use RowVerdict::{Done, Pass, Skip};
    let prefix = Filter::Prefix("b".into());
    check_rows(&prefix, false, &[("a", seek("b")), ("b", Pass), ("bz", Pass), ("c", Done)]);
    check_rows(&prefix, true, &[("d", seek("c")), ("c", Skip), ("bz", Pass), ("a", Done)]);
}

#[test]
fn s_scan_8_ranges_are_sought_in_order() {
    use RowVerdict::{Done, Pass, Skip};
    let ranges = Filter::MultiRowRange(vec![range("e", "g"), range("b", "c"), range("f", "h"), range("z", "y")]);
    check_rows(&ranges, false, &[("a", seek("b")), ("b", Pass), ("c", seek("e")), ("g", Pass), ("h", Done)]);
    check_rows(
        &ranges,
        true,
        &[("i", seek("h")), ("h", Skip), ("g", Pass), ("d", seek("c")), ("b", Pass), ("a", Done)],
    );
    let open = Filter::MultiRowRange(vec![range("", "b"), range("x", "")]);
    check_rows(&open, false, &[("a", Pass), ("b", seek("x")), ("zzz", Pass)]);
    check_rows(&Filter::MultiRowRange(vec![]), false, &[("a", Done)]);
}

#[test]
fn s_scan_8_a_fuzzy_row_steps_over_its_holes() {
    use RowVerdict::{Done, Pass};
    let key = fuzzy("a??c", &[0, 1, 1, 0]);
    check_rows(
        &key,
        false,
        &[
            ("a00c", Pass),
            ("a00czz", Pass),
            ("a00", Pass),
            ("a00a", seek("a00c")),
            ("a00d", seek("a01")),
            ("A", seek("a")),
            ("b", Done),
        ],
    );
    let full = FuzzyKey { key: b"a\xffc"[..].into(), mask: [0, 1, 0][..].into() };
    let mut run = FilterRun::new(&Filter::FuzzyRow(vec![full]), false);
    assert_eq!(run.judge_row(b"a\xffd"), Done);
}

#[test]
fn lists_join_rows() {
    use RowVerdict::{Done, Pass, Skip};
    let parts = || {
        vec![
            Filter::Prefix("b".into()),
            Filter::Row(Comparison::Equal, Comparator::Regex(regex::bytes::Regex::new("1$").unwrap())),
        ]
    };
    let all = Filter::List(ListOperator::All, parts());
    check_rows(&all, false, &[("a1", seek("b")), ("b0", Skip), ("b1", Pass), ("c1", Done)]);
    let one = Filter::List(ListOperator::One, parts());
    check_rows(&one, false, &[("a1", Pass), ("a2", Skip), ("b0", Pass), ("c1", Pass), ("c2", Skip)]);
    let hints = |operator| Filter::List(operator, vec![Filter::Prefix("b".into()), Filter::Prefix("bb".into())]);
    check_rows(&hints(ListOperator::All), false, &[("a", seek("bb"))]);
    check_rows(&hints(ListOperator::One), false, &[("a", seek("b")), ("c", Done)]);
    for operator in [ListOperator::All, ListOperator::One] {
        check_rows(&Filter::List(operator, vec![]), false, &[("a", Pass)]);
    }
}

#[test]
fn cells_are_kept_in_part_or_whole() {
    use Advance::{NextCell, NextColumn, NextFamily, NextRow};
    use Kept::{Key, No, Whole};
    check_cells(&Filter::KeyOnly, &[("a", Key, NextCell), ("b", Key, NextCell)]);
    check_cells(&Filter::FirstKeyOnly, &[("a", Whole, NextRow), ("b", No, NextRow)]);
    let column = || Filter::ColumnPrefix("b".into());
    check_cells(&column(), &[("a", No, NextColumn), ("b", Whole, NextCell), ("c", No, NextFamily)]);
    let first = |operator| Filter::List(operator, vec![column(), Filter::FirstKeyOnly, Filter::KeyOnly]);
    check_cells(&first(ListOperator::All), &[("a", No, NextColumn), ("b", Key, NextRow), ("bb", No, NextRow)]);
    check_cells(&first(ListOperator::One), &[("a", Key, NextCell), ("b", Key, NextCell)]);
    // A filter that did not let the row pass has no say about its cells.
    let other = Filter::List(
        ListOperator::One,
        vec![Filter::List(ListOperator::All, vec![Filter::Prefix("x".into()), Filter::KeyOnly]), Filter::FirstKeyOnly],
    );
    check_cells(&other, &[("a", Whole, NextRow), ("b", No, NextRow)]);
}

fn any_filter() -> impl Strategy<Value = Filter> {
    let key = || prop::collection::vec(0u8..3, 0..4).prop_map(Bytes::from);
    let leaf = prop_oneof![
        key().prop_map(Filter::Prefix),
        prop::collection::vec((key(), key()), 0..4).prop_map(|ranges| {
            Filter::MultiRowRange(ranges.into_iter().map(|(start, stop)| RowRange { start, stop }).collect())
        }),
        prop::collection::vec(prop::collection::vec((0u8..3, 0u8..2), 1..4), 1..3).prop_map(|keys| {
            let key = |places: Vec<(u8, u8)>| {
                let (key, mask): (Vec<_>, Vec<_>) = places.into_iter().unzip();
                FuzzyKey { key: key.into(), mask: mask.into() }
            };
            Filter::FuzzyRow(keys.into_iter().map(key).collect())
        }),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        (prop::collection::vec(inner, 1..4), any::<bool>())
            .prop_map(|(list, all)| Filter::List(if all { ListOperator::All } else { ListOperator::One }, list))
    })
}

/// What a row filter says without any hint.
fn passes(filter: &Filter, row: &[u8]) -> bool {
    match filter {
        Filter::Prefix(prefix) => row.starts_with(prefix),
        Filter::MultiRowRange(ranges) => {
            ranges.iter().any(|r| &r.start[..] <= row && (r.stop.is_empty() || row < &r.stop[..]))
        }
        Filter::FuzzyRow(keys) => keys.iter().any(|k| {
            row.iter().zip(k.key.iter().zip(k.mask.iter())).all(|(byte, (wanted, mask))| *mask == 1 || byte == wanted)
        }),
        Filter::List(ListOperator::All, list) => list.iter().all(|f| passes(f, row)),
        Filter::List(ListOperator::One, list) => list.iter().any(|f| passes(f, row)),
        _ => unreachable!(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn hints_never_pass_over_a_row(filter in any_filter(), reversed: bool) {
        // Every key of up to three bytes of 0..=3 but the empty one, in the scan's order.
        let mut rows: Vec<Vec<u8>> = (1..125u8).map(|n| [n / 25, n / 5 % 5, n % 5]).map(|digits| {
            digits.into_iter().filter(|&d| d > 0).map(|d| d - 1).collect()
        }).collect();
        rows.retain(|row| !row.is_empty());
        rows.sort();
        rows.dedup();
        let expected: Vec<_> = rows.iter().filter(|row| passes(&filter, row)).collect();
        let mut run = FilterRun::new(&filter, reversed);
        let mut given = Vec::new();
        let mut hint: Option<Bytes> = None;
        let order: Vec<_> = if reversed { rows.iter().rev().collect() } else { rows.iter().collect() };
        for row in order {
            if hint.as_ref().is_some_and(|hint| is_beyond(hint, row, reversed)) {
                continue;
            }
            match run.judge_row(row) {
                RowVerdict::Pass => given.push(row),
                RowVerdict::Skip => {}
                RowVerdict::SeekTo(key) => hint = Some(key),
                RowVerdict::Done => break,
            }
        }
        if reversed {
            given.reverse();
        }
        prop_assert_eq!(given, expected);
    }
}
