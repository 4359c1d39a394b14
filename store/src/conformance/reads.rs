//! GET and SCAN rows.

use bytes::Bytes;

use super::Fixture;
use super::scene::{Scene, change};
use crate::{
    CellKind, Columns, Comparator, Comparison, Durability, ErrorKind, FamilyColumns, FamilyDescriptor, Filter,
    FuzzyKey, Get, ListOperator, MutationBatch, RowRange, Scan, TimeRange, Timestamp,
};

fn columns(family: &'static str, qualifiers: &[&'static str]) -> Columns {
    let qualifiers = qualifiers.iter().map(|&q| q.into()).collect();
    Columns(vec![FamilyColumns { family: family.into(), qualifiers }])
}

/// Rows of one column each, spread over memtable and two files.
fn scatter(scene: &Scene<'_>, rows: &[&str]) {
    for (index, row) in rows.iter().enumerate() {
        scene.put(row, "f:q", 1, "v");
        if index % 3 == 1 {
            scene.flush();
        }
    }
}

/// A get gives what was asked of a row, and nothing of an absent one.
pub fn s_get_1_what_was_asked(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f", "g"].map(FamilyDescriptor::new));
    for column in ["f:a", "f:b", "f:c", "g:a"] {
        scene.put("r", column, 1, "v");
    }
    scene.at_every_stage(|scene| {
        let get = |columns| scene.get(Get::row("r").with_columns(columns));
        assert_eq!(get(Columns::all()).len(), 4);
        assert_eq!(get(Columns::family("g")), ["g:a@1=v"]);
        assert_eq!(get(Columns::column("f", "b")), ["f:b@1=v"]);
        assert_eq!(get(columns("f", &["c", "a", "none"])), ["f:a@1=v", "f:c@1=v"]);
        assert_eq!(scene.row("absent"), [""; 0]);
        let many = Get::rows(["absent", "r", "r"].map(Bytes::from).to_vec()).with_columns(Columns::family("g"));
        assert_eq!(scene.get(many).len(), 2);
    });
    let unknown = scene.store().get(&scene.table, Get::row("r").with_columns(Columns::family("x"))).wait();
    assert_eq!(unknown.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(scene.store().get(&scene.table, Get::row("")).wait().unwrap_err().kind(), ErrorKind::Invalid);
}

/// A get is a scan of length one.
pub fn s_get_2_a_get_is_a_short_scan(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 2);
    for (index, row) in ["a", "b", "c", "d"].into_iter().enumerate() {
        scene.put_at(row, "f:q", &[1, 2, 3, 4]);
        scene.put_at(row, "f:p", &[2]);
        scene.delete(row, "f:q", 1 + index as u64);
    }
    scene.delete_family("d", "f", 3);
    scene.at_every_stage(|scene| {
        for row in ["a", "b", "c", "d", "e"] {
            let scan = Scan { versions: 3, limit_rows: Some(1), ..Scan::range(row, format!("{row}\0")) };
            let scanned: Vec<_> =
                scene.scan(scan).iter().map(|cell| cell.replacen(&format!("{row} "), "", 1)).collect();
            assert_eq!(scanned, scene.row(row));
        }
    });
}

/// The default is the largest version, not the last written.
pub fn s_get_3_the_largest_version(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put("r", "f:q", 20, "v1");
    scene.flush();
    scene.put("r", "f:q", 10, "v2");
    scene.at_every_stage(|scene| assert_eq!(scene.get(Get::row("r")), ["f:q@20=v1"]));
}

/// More versions when asked for, the newest first.
pub fn s_get_4_versions_newest_first(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 4);
    scene.put_at("r", "f:q", &[1, 2, 3, 4]);
    scene.at_every_stage(|scene| {
        assert_eq!(scene.get(Get { versions: 3, ..Get::row("r") }), ["f:q@4=4", "f:q@3=3", "f:q@2=2"]);
        assert_eq!(scene.get(Get::row("r")), ["f:q@4=4"]);
    });
    let none = scene.store().get(&scene.table, Get { versions: 0, ..Get::row("r") }).wait();
    assert_eq!(none.unwrap_err().kind(), ErrorKind::Invalid);
}

/// The state at a time, and half-open ranges.
pub fn s_get_5_time_ranges(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 9);
    scene.put_at("r", "f:q", &[10, 20, 30]);
    scene.at_every_stage(|scene| {
        let get = |time_range| scene.get(Get { time_range, ..Get::row("r") });
        assert_eq!(get(TimeRange::as_of(Timestamp(20))), ["f:q@20=20"]);
        assert_eq!(get(TimeRange { min: Timestamp(0), max: Timestamp(20) }), ["f:q@10=10"]);
        assert_eq!(get(TimeRange { min: Timestamp(31), max: Timestamp(99) }), [""; 0]);
    });
}

/// Start is in, stop is out, and nothing lies between the wrong way round.
pub fn s_scan_1_ranges(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scatter(&scene, &["a", "b", "c"]);
    scene.at_every_stage(|scene| {
        assert_eq!(scene.keys(Scan::range("a", "c")), ["a", "b"]);
        assert_eq!(scene.keys(Scan::all()), ["a", "b", "c"]);
        assert_eq!(scene.keys(Scan::range("c", "a")), [""; 0]);
        assert_eq!(scene.keys(Scan::range("b", "b")), [""; 0]);
        assert_eq!(scene.keys(Scan { start_inclusive: false, ..Scan::range("a", "") }), ["b", "c"]);
    });
}

/// A dropped scanner ends its scan, and the store goes on.
pub fn s_scan_2_prefix_scans_and_dropped_scanners(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scatter(&scene, &["row1", "abc1", "row2", "abc2", "row3", "abc3"]);
    scene.at_every_stage(|scene| assert_eq!(scene.keys(Scan::prefix(b"row")), ["row1", "row2", "row3"]));
    for _ in 0..100 {
        drop(scene.store().scan(&scene.table, Scan { batch_bytes: 1, ..Scan::all() }).unwrap());
    }
    assert_eq!(scene.keys(Scan::all()).len(), 6);
}

/// The stop row can be in.
pub fn s_scan_3_inclusive_stop(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scatter(&scene, &["a", "b", "c", "c\0"]);
    let scan = Scan { stop_inclusive: true, ..Scan::range("a", "c") };
    scene.at_every_stage(|scene| assert_eq!(scene.keys(scan.clone()), ["a", "b", "c"]));
}

/// Families and columns can be chosen, and long rows come in pieces.
pub fn s_scan_5_columns_and_pieces(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f", "g"].map(FamilyDescriptor::new));
    let mut batch = MutationBatch::new(Durability::Os);
    for row in [b"r1", b"r2"] {
        for i in 0..7 {
            change(&mut batch, CellKind::Put, row, &format!("f:{i}"), Some(1), b"v").unwrap();
        }
        change(&mut batch, CellKind::Put, row, "g:x", Some(1), b"v").unwrap();
    }
    scene.apply(batch);
    scene.at_every_stage(|scene| {
        let chosen = Scan::all().with_columns(columns("f", &["6", "2"]));
        assert_eq!(scene.scan(chosen), ["r1 f:2@1=v", "r1 f:6@1=v", "r2 f:2@1=v", "r2 f:6@1=v"]);
        let pieces: Vec<_> = scene
            .batches(Scan { batch_cells: Some(3), ..Scan::all() })
            .iter()
            .flat_map(|batch| batch.rows().map(|row| (row.cells().len(), row.is_last_piece())).collect::<Vec<_>>())
            .collect();
        assert_eq!(pieces, [(3, false), (3, false), (2, true)].repeat(2));
    });
}

/// Rows, families and columns ascend, times descend.
pub fn s_scan_6_the_order_of_cells(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["g", "f"].map(|name| FamilyDescriptor::new(name).with_versions(9)));
    for (row, column, time) in [("b", "f:a", 5), ("a", "g:a", 7), ("a", "f:b", 3), ("a", "f:a", 2), ("a", "f:aa", 1)] {
        scene.put(row, column, time, "v");
        scene.flush();
    }
    scene.put_at("a", "f:a", &[3, 1]);
    scene.put("a", "f:", 4, "v");
    let told = ["a f:@4=v", "a f:a@3=3", "a f:a@2=v", "a f:a@1=1", "a f:aa@1=v", "a f:b@3=v", "a g:a@7=v", "b f:a@5=v"];
    scene.at_every_stage(|scene| assert_eq!(scene.scan(Scan { versions: 9, ..Scan::all() }), told));
}

/// A scan can run from the larger key to the smaller; within a row nothing changes.
pub fn s_scan_7_reversed(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 2);
    scatter(&scene, &["a", "b", "c", "d"]);
    scene.put_at("b", "f:p", &[1, 2]);
    scene.at_every_stage(|scene| {
        let reversed = |start, stop| Scan { reversed: true, ..Scan::range(start, stop) };
        assert_eq!(scene.keys(reversed("c", "")), ["c", "b", "a"]);
        assert_eq!(scene.keys(reversed("", "b")), ["d", "c"]);
        assert_eq!(scene.keys(reversed("a", "c")), [""; 0]);
        assert_eq!(scene.keys(Scan { stop_inclusive: true, ..reversed("c", "b") }), ["c", "b"]);
        assert_eq!(scene.keys(Scan { limit_rows: Some(2), batch_bytes: 1, ..reversed("", "") }), ["d", "c"]);
        let row = Scan { versions: 2, limit_rows: Some(1), ..reversed("b", "") };
        assert_eq!(scene.scan(row), ["b f:p@2=2", "b f:p@1=1", "b f:q@1=v"]);
    });
}

/// Filters leave rows out at the store, forward and reversed.
pub fn s_scan_8_filters_of_rows(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scatter(&scene, &["a1", "a2", "b1", "b2", "c1", "c2", "d1"]);
    let range = |start: &'static str, stop: &'static str| RowRange { start: start.into(), stop: stop.into() };
    let regex = Filter::Row(Comparison::Equal, Comparator::Regex(regex::bytes::Regex::new("^[ad].*1$").unwrap()));
    let fuzzy = FuzzyKey { key: "?2".into(), mask: Bytes::from_static(&[1, 0]) };
    let cases = [
        (Filter::Prefix("b".into()), vec!["b1", "b2"]),
        (Filter::MultiRowRange(vec![range("c2", "d2"), range("a2", "b2")]), vec!["a2", "b1", "c2", "d1"]),
        (Filter::FuzzyRow(vec![fuzzy.clone()]), vec!["a2", "b2", "c2"]),
        (regex.clone(), vec!["a1", "d1"]),
        (
            Filter::List(ListOperator::One, vec![regex.clone(), Filter::Prefix("b".into())]),
            vec!["a1", "b1", "b2", "d1"],
        ),
        (Filter::List(ListOperator::All, vec![Filter::FuzzyRow(vec![fuzzy]), Filter::Prefix("c".into())]), vec!["c2"]),
        (Filter::List(ListOperator::All, vec![regex, Filter::Prefix("b".into())]), vec![]),
    ];
    scene.at_every_stage(|scene| {
        for (filter, rows) in &cases {
            let scan = Scan::all().with_filter(filter.clone());
            assert_eq!(&scene.keys(scan.clone()), rows, "{filter:?}");
            let backward: Vec<_> = rows.iter().rev().copied().collect();
            assert_eq!(scene.keys(Scan { reversed: true, ..scan }), backward, "{filter:?} reversed");
            let get = Get { filter: Some(filter.clone()), ..Get::rows(vec!["c2".into(), "a1".into()]) };
            assert_eq!(scene.get(get).len(), rows.iter().filter(|row| ["a1", "c2"].contains(row)).count());
        }
    });
}

/// Of two ranges of rows, the upper one open, both are read backward too.
pub fn s_scan_8_open_ranges_of_rows_reversed(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scatter(&scene, &["a1", "a2", "b1", "b2", "c2", "d1"]);
    let range = |start: &'static str, stop: &'static str| RowRange { start: start.into(), stop: stop.into() };
    let ranges = Filter::MultiRowRange(vec![range("c2", ""), range("a2", "b2")]);
    scene.at_every_stage(|scene| {
        let scan = Scan { reversed: true, ..Scan::all().with_filter(ranges.clone()) };
        assert_eq!(scene.keys(scan), ["d1", "c2", "b1", "a2"]);
    });
}

/// What one filter of a list passes is given backward too, whatever its neighbour would seek to.
pub fn s_scan_8_any_of_a_list_reversed(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    for row in ["r1", "r2"] {
        for column in ["f:a", "f:p", "f:pq"] {
            scene.put(row, column, 1, "v");
        }
    }
    let either = vec![Filter::Prefix("r1".into()), Filter::ColumnPrefix("p".into())];
    let scan = Scan::all().with_filter(Filter::List(ListOperator::One, either));
    scene.at_every_stage(|scene| {
        let told = ["r1 f:a@1=v", "r1 f:p@1=v", "r1 f:pq@1=v", "r2 f:p@1=v", "r2 f:pq@1=v"];
        assert_eq!(scene.scan(scan.clone()), told);
        let backward = scene.scan(Scan { reversed: true, ..scan.clone() });
        assert_eq!(backward, [&told[3..], &told[..3]].concat());
    });
}

/// Filters leave cells and values out at the store.
pub fn s_scan_8_filters_of_cells(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f", "g"].map(|name| FamilyDescriptor::new(name).with_versions(2)));
    for column in ["f:a", "f:b1", "f:b2", "g:b"] {
        scene.put_at("r", column, &[1, 2]);
    }
    scene.at_every_stage(|scene| {
        let scan = |filter| scene.scan(Scan::all().with_filter(filter));
        assert_eq!(scan(Filter::FirstKeyOnly), ["r f:a@2=2"]);
        assert_eq!(scan(Filter::KeyOnly), ["r f:a@2=", "r f:b1@2=", "r f:b2@2=", "r g:b@2="]);
        assert_eq!(scan(Filter::ColumnPrefix("b".into())), ["r f:b1@2=2", "r f:b2@2=2", "r g:b@2=2"]);
        let first_b = Filter::List(ListOperator::All, vec![Filter::ColumnPrefix("b".into()), Filter::FirstKeyOnly]);
        assert_eq!(scan(first_b), ["r f:b1@2=2"]);
    });
}

/// However small its batches, a scan gives the same.
pub fn s_scan_10_batches_change_no_answer(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let rows: Vec<_> = (0..300).map(|i| format!("row{i:04}")).collect();
    scatter(&scene, &rows.iter().take(20).map(String::as_str).collect::<Vec<_>>());
    let mut batch = MutationBatch::new(Durability::Os);
    for row in &rows {
        change(&mut batch, CellKind::Put, row.as_bytes(), "f:q", Some(1), b"0123456789").unwrap();
    }
    scene.apply(batch);
    scene.at_every_stage(|scene| {
        for batch_bytes in [1, 500, usize::MAX] {
            let batches = scene.batches(Scan { batch_bytes, ..Scan::all() });
            let keys: Vec<_> =
                batches.iter().flat_map(|b| b.rows().map(|r| r.key().to_vec()).collect::<Vec<_>>()).collect();
            assert!(keys.iter().map(Vec::as_slice).eq(rows.iter().map(String::as_bytes)), "{batch_bytes}");
            assert!(batches.iter().all(|batch| !batch.is_empty()), "a batch has rows");
            assert!(batch_bytes > 1 || batches.len() > 30, "{} batches", batches.len());
        }
    });
}

/// A scan stops at its limit of rows.
pub fn s_scan_11_limit(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scatter(&scene, &["a", "b", "c", "d"]);
    scene.delete_family("b", "f", 1);
    scene.at_every_stage(|scene| {
        let limit = |rows, batch_bytes| Scan { limit_rows: Some(rows), batch_bytes, ..Scan::all() };
        for batch_bytes in [1, 1 << 20] {
            assert_eq!(scene.keys(limit(2, batch_bytes)), ["a", "c"]);
            assert_eq!(scene.keys(limit(0, batch_bytes)), [""; 0]);
            assert_eq!(scene.keys(limit(9, batch_bytes)), ["a", "c", "d"]);
        }
    });
}
