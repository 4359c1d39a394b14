//! Rule S-SCAN-8, filter by filter: what the store leaves out before anything crosses to the reader.

use bytes::Bytes;

use super::Fixture;
use super::scene::Scene;
use crate::{
    ColumnRange, ColumnTest, Comparator, Comparison, ErrorKind, FamilyDescriptor, Filter, Get, ListOperator, Scan,
    Timestamp,
};

fn binary(text: &'static str) -> Comparator {
    Comparator::Binary(text.into())
}

fn scene(fixture: &mut dyn Fixture, versions: u32) -> Scene<'_> {
    Scene::new(fixture, ["f", "g"].map(|name| FamilyDescriptor::new(name).with_versions(versions)))
}

fn test(column: &'static str, comparison: Comparison, comparator: Comparator) -> ColumnTest {
    let (family, qualifier) = column.split_once(':').unwrap();
    ColumnTest { family: family.into(), qualifier: qualifier.into(), comparison, comparator }
}

fn single(column: &'static str, comparison: Comparison, value: &'static str) -> Filter {
    let test = test(column, comparison, binary(value));
    Filter::SingleColumnValue { test, if_missing: false, latest_only: true, exclude: false }
}

fn all(list: Vec<Filter>) -> Filter {
    Filter::List(ListOperator::All, list)
}

fn one(list: Vec<Filter>) -> Filter {
    Filter::List(ListOperator::One, list)
}

/// Row keys by each comparison, and a stop that is itself in.
pub fn s_scan_8_filters_of_row_keys(fixture: &mut dyn Fixture) {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let mut scene = scene(fixture, 1);
    for row in ["a", "ab", "b", "bb", "c"] {
        scene.put(row, "f:q", 1, "v");
    }
    let prefix = || Comparator::BinaryPrefix("b".into());
    let cases = [
        (Filter::Row(Less, binary("b")), vec!["a", "ab"]),
        (Filter::Row(LessOrEqual, binary("b")), vec!["a", "ab", "b"]),
        (Filter::Row(Equal, binary("b")), vec!["b"]),
        (Filter::Row(NotEqual, binary("b")), vec!["a", "ab", "bb", "c"]),
        (Filter::Row(GreaterOrEqual, binary("b")), vec!["b", "bb", "c"]),
        (Filter::Row(Greater, binary("b")), vec!["bb", "c"]),
        (Filter::Row(Equal, prefix()), vec!["b", "bb"]),
        (Filter::Row(Greater, prefix()), vec!["c"]),
        (Filter::Row(NotEqual, Comparator::Substring("B".into())), vec!["a", "c"]),
        (Filter::Row(Equal, Comparator::Regex(regex::bytes::Regex::new("^.b$").unwrap())), vec!["ab", "bb"]),
    ];
    scene.at_every_stage(|scene| {
        for (filter, rows) in &cases {
            assert_eq!(&scene.keys(Scan::all().with_filter(filter.clone())), rows, "{filter:?}");
        }
        let stop = Scan::all().with_filter(Filter::InclusiveStop("b".into()));
        assert_eq!(scene.keys(stop.clone()), ["a", "ab", "b"]);
        assert_eq!(scene.keys(Scan { reversed: true, ..stop }), ["c", "bb", "b"]);
    });
}

/// Families and qualifiers by comparison, prefixes, range, number.
pub fn s_scan_8_filters_of_columns(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 2);
    for column in ["f:a", "f:b", "f:ba", "f:c", "g:b"] {
        scene.put_at("r", column, &[1, 2]);
    }
    let range = |min: Option<&'static str>, min_inclusive, max: Option<&'static str>, max_inclusive| {
        let [min, max] = [min, max].map(|end| end.map(Bytes::from));
        Filter::ColumnRange(ColumnRange { min, min_inclusive, max, max_inclusive })
    };
    let cases = [
        (Filter::Family(Comparison::Greater, binary("f")), "g:b"),
        (Filter::Qualifier(Comparison::Equal, binary("b")), "f:b g:b"),
        (Filter::Qualifier(Comparison::LessOrEqual, Comparator::BinaryPrefix("b".into())), "f:a f:b f:ba g:b"),
        (Filter::ColumnPrefixes(vec!["c".into(), "ba".into()]), "f:ba f:c"),
        (range(Some("b"), true, Some("c"), false), "f:b f:ba g:b"),
        (range(Some("b"), false, Some("c"), true), "f:ba f:c"),
        (range(None, true, Some("a"), true), "f:a"),
        (range(Some("ba"), true, None, true), "f:ba f:c"),
        (Filter::ColumnCount(2), "f:a f:b"),
        (Filter::ColumnPage { limit: 2, offset: 3 }, "f:c g:b"),
        (Filter::ColumnPage { limit: 0, offset: 0 }, ""),
    ];
    scene.at_every_stage(|scene| {
        for (filter, columns) in &cases {
            let told: Vec<_> = columns.split_whitespace().map(|column| format!("r {column}@2=2")).collect();
            assert_eq!(scene.scan(Scan::all().with_filter(filter.clone())), told, "{filter:?}");
            let got = scene.get(Get { filter: Some(filter.clone()), ..Get::row("r") });
            assert_eq!(got.len(), told.len(), "{filter:?} in a get");
        }
    });
}

/// Cells by their values: older versions are looked at where newer ones are left out.
pub fn s_scan_8_filters_of_values(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 3);
    scene.put("r1", "f:a", 1, "x");
    scene.put("r1", "f:a", 2, "y");
    scene.put("r1", "f:b", 1, "xyz");
    scene.put("r2", "g:a", 1, "z");
    scene.at_every_stage(|scene| {
        let scan = |filter| scene.scan(Scan::all().with_filter(filter));
        let value = Filter::Value;
        assert_eq!(scan(value(Comparison::Equal, binary("y"))), ["r1 f:a@2=y"]);
        assert_eq!(scan(value(Comparison::Equal, binary("x"))), ["r1 f:a@1=x"], "the newer version is left out");
        let prefix = Comparator::BinaryPrefix("x".into());
        assert_eq!(scan(value(Comparison::Equal, prefix)), ["r1 f:a@1=x", "r1 f:b@1=xyz"]);
        assert_eq!(scan(value(Comparison::Equal, Comparator::Substring("Z".into()))), ["r1 f:b@1=xyz", "r2 g:a@1=z"]);
        let column = Filter::ColumnValue(test("f:a", Comparison::NotEqual, binary("z")));
        assert_eq!(scan(column), ["r1 f:a@2=y"]);
    });
}

/// A row is given or not by one column's value; a row without the column is, unless told otherwise.
pub fn s_scan_8_one_columns_value_decides_about_its_row(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 1);
    for (row, value) in [("r1", "x"), ("r2", "y")] {
        scene.put(row, "f:a", 1, "v");
        scene.put(row, "f:k", 1, value);
        scene.put(row, "g:z", 1, "w");
    }
    scene.put("r3", "g:z", 1, "w");
    scene.at_every_stage(|scene| {
        let keys = |filter| scene.keys(Scan::all().with_filter(filter));
        let is_x = || test("f:k", Comparison::Equal, binary("x"));
        let single_column =
            |if_missing, exclude| Filter::SingleColumnValue { test: is_x(), if_missing, latest_only: true, exclude };
        assert_eq!(keys(single_column(false, false)), ["r1", "r3"]);
        assert_eq!(keys(single_column(true, false)), ["r1"]);
        assert_eq!(keys(single("f:k", Comparison::Greater, "x")), ["r2", "r3"]);
        let whole = scene.scan(Scan::all().with_filter(single_column(true, false)));
        assert_eq!(whole, ["r1 f:a@1=v", "r1 f:k@1=x", "r1 g:z@1=w"]);
        let without = scene.scan(Scan::all().with_filter(single_column(true, true)));
        assert_eq!(without, ["r1 f:a@1=v", "r1 g:z@1=w"]);
        let reversed = Scan { reversed: true, limit_rows: Some(1), ..Scan::all() };
        assert_eq!(scene.keys(reversed.with_filter(single_column(true, false))), ["r1"]);
    });
}

/// A filter is shown one version more than is wanted, and no third (asked of HBase 2.6.4); with `latest_only` off it
/// judges the row by each that it is shown.
pub fn s_scan_8_a_filter_sees_one_version_more_than_wanted(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 4);
    for (time, value) in [(1, "w"), (2, "x"), (3, "y")] {
        scene.put("r", "f:k", time, value);
    }
    scene.at_every_stage(|scene| {
        let keys = |versions, value: &'static str, latest_only| {
            let test = test("f:k", Comparison::Equal, binary(value));
            let filter = Filter::SingleColumnValue { test, if_missing: true, latest_only, exclude: false };
            scene.keys(Scan { versions, ..Scan::all().with_filter(filter) })
        };
        assert_eq!(keys(1, "x", true), [""; 0]);
        assert_eq!(keys(2, "x", true), [""; 0]);
        assert_eq!(keys(1, "x", false), ["r"]);
        assert_eq!(keys(1, "w", false), [""; 0]);
        assert_eq!(keys(2, "w", false), ["r"]);
        let skip = Filter::Skip(Box::new(Filter::Value(Comparison::NotEqual, binary("x"))));
        assert_eq!(scene.keys(Scan::all().with_filter(skip)), [""; 0]);
        let first = Scan::all().with_filter(Filter::Value(Comparison::LessOrEqual, binary("y")));
        assert_eq!(scene.scan(first), ["r f:k@3=y"]);
    });
}

/// Cells of exactly the times asked.
pub fn s_scan_8_filters_of_times(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 9);
    scene.put_at("r", "f:a", &[1, 2, 3, 4]);
    scene.put_at("r", "g:a", &[2, 5]);
    scene.at_every_stage(|scene| {
        let scan = |times: &[u64], versions| {
            let filter = Filter::Timestamps(times.iter().map(|&time| Timestamp(time)).collect());
            scene.scan(Scan { versions, ..Scan::all().with_filter(filter) })
        };
        assert_eq!(scan(&[3, 2], 9), ["r f:a@3=3", "r f:a@2=2", "r g:a@2=2"]);
        assert_eq!(scan(&[3, 2], 1), ["r f:a@3=3", "r g:a@2=2"]);
        assert_eq!(scan(&[7], 9), [""; 0]);
        assert_eq!(scan(&[], 9), [""; 0]);
    });
}

/// A page is counted over the rows that the filters before it let through.
pub fn s_scan_8_pages_of_rows(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 1);
    for (row, value) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")] {
        scene.put(row, "f:a", 1, "v");
        scene.put(row, "f:k", 1, value);
    }
    scene.put("b2", "g:only", 1, "v");
    scene.at_every_stage(|scene| {
        let keys = |filter| scene.keys(Scan::all().with_filter(filter));
        assert_eq!(keys(Filter::Page(2)), ["a", "b"]);
        assert_eq!(keys(Filter::Page(0)), [""; 0]);
        assert_eq!(keys(Filter::Page(9)), ["a", "b", "b2", "c", "d"]);
        assert_eq!(keys(all(vec![single("f:k", Comparison::Equal, "x"), Filter::Page(3)])), ["a", "b2", "c"]);
        assert_eq!(keys(all(vec![Filter::Page(3), single("f:k", Comparison::Equal, "x")])), ["a", "b2"]);
        let page = Scan { reversed: true, ..Scan::all().with_filter(Filter::Page(2)) };
        assert_eq!(scene.keys(page), ["d", "c"]);
        let rows = ["a", "b", "c"].map(Bytes::from).to_vec();
        let got = scene.get(Get { filter: Some(Filter::Page(1)), ..Get::rows(rows) });
        assert_eq!(got.len(), 6, "each row of a get has a filter of its own");
    });
}

/// The scan ends at the first thing that the filter within leaves out.
pub fn s_scan_8_while_something_matches(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 1);
    for (row, value) in [("a", "x"), ("b", "y"), ("c", "x")] {
        scene.put(row, "f:j", 1, "x");
        scene.put(row, "f:k", 1, value);
        scene.put(row, "f:l", 1, "x");
    }
    scene.at_every_stage(|scene| {
        let scan = |filter| scene.scan(Scan::all().with_filter(Filter::WhileMatch(Box::new(filter))));
        assert_eq!(
            scan(Filter::Value(Comparison::Equal, binary("x"))),
            ["a f:j@1=x", "a f:k@1=x", "a f:l@1=x", "b f:j@1=x"]
        );
        assert_eq!(scan(Filter::Row(Comparison::Less, binary("b"))).len(), 3);
        assert_eq!(scan(Filter::Prefix("b".into())), [""; 0]);
        assert_eq!(scan(single("f:k", Comparison::Equal, "x")).len(), 3);
    });
}

/// A row of which anything is left out is left out whole.
pub fn s_scan_8_rows_skipped_whole(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 1);
    for (row, value) in [("a", "1"), ("b", "0"), ("c", "2")] {
        scene.put(row, "f:j", 1, "1");
        scene.put(row, "f:k", 1, value);
    }
    scene.at_every_stage(|scene| {
        let keys = |filter| scene.keys(Scan::all().with_filter(Filter::Skip(Box::new(filter))));
        assert_eq!(keys(Filter::Value(Comparison::NotEqual, binary("0"))), ["a", "c"]);
        assert_eq!(keys(Filter::Qualifier(Comparison::Equal, binary("j"))), [""; 0]);
    });
}

/// Lists of filters of cells: all of them, or any; a filter is not asked again about what it passed over.
pub fn s_scan_8_lists_of_filters_of_cells(fixture: &mut dyn Fixture) {
    let mut scene = scene(fixture, 3);
    scene.put_at("r", "f:a", &[1, 2]);
    scene.put_at("r", "f:b", &[1, 2]);
    scene.put_at("r", "f:c", &[1, 2]);
    scene.put_at("s", "f:b", &[2]);
    scene.at_every_stage(|scene| {
        let scan = |filter| scene.scan(Scan { versions: 3, ..Scan::range("r", "s").with_filter(filter) });
        let is = |column: &'static str| Filter::Qualifier(Comparison::Equal, binary(column));
        let time = |time| Filter::Timestamps(vec![Timestamp(time)]);
        assert_eq!(scan(one(vec![is("a"), is("c")])), ["r f:a@2=2", "r f:a@1=1", "r f:c@2=2", "r f:c@1=1"]);
        assert_eq!(scan(all(vec![is("a"), time(1)])), ["r f:a@1=1"]);
        assert_eq!(scan(one(vec![is("a"), time(1)])), ["r f:a@2=2", "r f:a@1=1", "r f:b@1=1", "r f:c@1=1"]);
        let pages = one(vec![Filter::ColumnPage { limit: 1, offset: 1 }, time(1)]);
        assert_eq!(scan(pages), ["r f:a@1=1", "r f:b@2=2", "r f:b@1=1", "r f:c@1=1"]);
        let rows = |filter| scene.keys(Scan::all().with_filter(filter));
        let value = |value| single("f:a", Comparison::Equal, value);
        assert_eq!(rows(all(vec![value("2"), Filter::Prefix("r".into())])), ["r"]);
        assert_eq!(rows(one(vec![value("9"), Filter::Prefix("s".into())])), ["s"]);
    });
}

/// A row that comes in pieces cannot be judged whole.
pub fn s_scan_8_rows_in_pieces_are_judged_by_no_row_filter(fixture: &mut dyn Fixture) {
    let scene = scene(fixture, 1);
    for filter in [Filter::Page(1), single("f:k", Comparison::Equal, "x"), all(vec![Filter::Page(1)])] {
        let scan = Scan { batch_cells: Some(1), ..Scan::all().with_filter(filter.clone()) };
        assert_eq!(scene.store().scan(&scene.table, scan).unwrap_err().kind(), ErrorKind::Invalid, "{filter:?}");
    }
}
