//! MAP, NAME, PUT, TYPE, KEY, CNT and ACID rows: what rows hold and how they change.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::Fixture;
use super::scene::{NOW, Scene, change};
use crate::{
    CellKind, CheckAndMutate, Columns, Comparison, Durability, ErrorKind, FamilyDescriptor, Get, MutationBatch,
    RowHandle, Scan, TableName,
};

/// A put to a table never made makes nothing.
pub fn s_map_3_unknown_tables_are_refused(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    let other: TableName = "other".parse().unwrap();
    let mut batch = MutationBatch::new(Durability::Os);
    change(&mut batch, CellKind::Put, b"r", "f:q", None, b"v").unwrap();
    let store = scene.store();
    assert_eq!(store.apply(&other, batch).wait().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.get(&other, Get::row("r")).wait().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.scan(&other, Scan::all()).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.list_tables().unwrap(), std::slice::from_ref(&scene.table));
}

/// Row keys are bytes, and identify one row.
pub fn s_map_4_row_keys_are_bytes(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    for key in [&b"\x00"[..], b"\xff\xff", b"a", b"\xc3\x28"] {
        scene.put(key, "f:1", 1, "v");
        scene.put(key, "f:2", 1, "v");
    }
    scene.at_every_stage(|scene| {
        assert_eq!(scene.keys(Scan::all()), ["\\x00", "a", "\\xc3(", "\\xff\\xff"]);
        assert_eq!(scene.scan(Scan::all()).len(), 8);
    });
}

/// Rows lie in the order of unsigned bytes, a prefix before its extensions.
pub fn s_map_5_rows_are_sorted(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    for key in [&b"b"[..], b"a", b"\xff", b"a\x00", b"aa", b"\x00"] {
        scene.put(key, "f:q", 1, "v");
        if key == b"a" {
            scene.flush();
        }
    }
    let sorted = ["\\x00", "a", "a\\x00", "aa", "b", "\\xff"];
    scene.at_every_stage(|scene| assert_eq!(scene.keys(Scan::all()), sorted));
}

/// The empty key stands for both ends, and is no row's; others are up to 32,767 bytes.
pub fn s_map_6_the_empty_key_is_both_ends(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let long = vec![b'x'; 32_000];
    scene.put(&long, "f:q", 1, "v");
    scene.put("a", "f:q", 1, "v");
    scene.at_every_stage(|scene| {
        assert_eq!(scene.keys(Scan::range("", "")).len(), 2);
        let got = scene.get(Get::row(long.clone()));
        assert_eq!(got, ["f:q@1=v"]);
    });
    let regions = scene.store().regions(&scene.table).unwrap();
    assert!(regions.first().is_some_and(|r| r.start.is_empty()) && regions.last().is_some_and(|r| r.end.is_empty()));
    assert_eq!(scene.increment("", "f:q", 1).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(scene.append("", "f:q", "v").unwrap_err().kind(), ErrorKind::Invalid);
}

/// A row need store nothing in a family, and is then absent from its scans.
pub fn s_map_7_rows_absent_from_a_family(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f1", "f2"].map(FamilyDescriptor::new));
    scene.put("r", "f1:q", 1, "v");
    scene.at_every_stage(|scene| {
        assert_eq!(scene.keys(Scan::all().with_columns(Columns::family("f2"))), [""; 0]);
        assert_eq!(scene.row("r"), ["f1:q@1=v"]);
    });
}

/// Qualifiers are any bytes, colons and none too, never declared.
pub fn s_map_8_qualifiers_are_bytes(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let mut batch = MutationBatch::new(Durability::Os);
    for qualifier in [&b"html"[..], b"\x00\xff", b"b:c", b"\x01:", b""] {
        batch.row(b"r").unwrap().put(b"f", qualifier, Some(crate::Timestamp(1)), b"v").unwrap();
    }
    scene.apply(batch);
    let told = ["f:@1=v", "f:\\x00\\xff@1=v", "f:\\x01:@1=v", "f:b:c@1=v", "f:html@1=v"];
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), told));
}

/// Row, column and version name one cell.
pub fn s_map_10_each_version_by_its_time(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put_at("r", "f:q", &[1, 2, 3]);
    scene.at_every_stage(|scene| {
        for time in 1..=3 {
            let time_range = crate::TimeRange { min: crate::Timestamp(time), max: crate::Timestamp(time + 1) };
            assert_eq!(scene.get(Get { time_range, ..Get::row("r") }), [format!("f:q@{time}={time}")]);
        }
    });
}

/// Without a time the server stamps; its times never go back.
pub fn s_map_11_the_server_stamps(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put("r", "f:own", 555, "v");
    scene.put("r", "f:q", None, "first");
    scene.set_clock(NOW - 5000);
    scene.put("r", "f:q", None, "second");
    let told = format!("f:q@{NOW}=second");
    scene.at_every_stage(|scene| {
        assert_eq!(scene.get(Get::row("r")), ["f:own@555=v", told.as_str()]);
    });
    scene.put("r", "f:q", None, "after reopening");
    let last = scene.get(Get::row("r").with_columns(Columns::column("f", "q")));
    assert!(last.iter().all(|cell| cell.ends_with("=after reopening")), "{last:?}");
}

/// The webtable: exact times, and the newest of each column.
///
/// D-20, D-21, D-24: the anchors are those of the tables, `my.look.ca` at its time, and the row has five cells with five
/// times, not five versions.
pub fn s_map_15_the_webtable(fixture: &mut dyn Fixture) {
    let families = ["contents", "anchor", "people"].map(|name| FamilyDescriptor::new(name).with_versions(3));
    let mut scene = Scene::new(fixture, families);
    scene.put_at("com.cnn.www", "contents:html", &[3, 5, 6]);
    scene.put("com.cnn.www", "anchor:cnnsi.com", 9, "CNN");
    scene.put("com.cnn.www", "anchor:my.look.ca", 8, "CNN.com");
    scene.put_at("com.example.www", "contents:html", &[5]);
    scene.put("com.example.www", "people:author", 5, "John Doe");
    scene.at_every_stage(|scene| {
        let at = |time: u64, columns| {
            let time_range = crate::TimeRange { min: crate::Timestamp(time), max: crate::Timestamp(time + 1) };
            scene.get(Get { time_range, ..Get::row("com.cnn.www").with_columns(columns) })
        };
        assert_eq!(at(8, Columns::column("contents", "html")), [""; 0]);
        assert_eq!(at(9, Columns::column("anchor", "my.look.ca")), [""; 0]);
        let newest = ["anchor:cnnsi.com@9=CNN", "anchor:my.look.ca@8=CNN.com", "contents:html@6=6"];
        assert_eq!(scene.get(Get::row("com.cnn.www")), newest);
        assert_eq!(scene.row("com.cnn.www").len(), 5);
        // S-MAP-16: each level of the map.
        assert_eq!(scene.get(Get::row("com.cnn.www").with_columns(Columns::family("anchor"))).len(), 2);
        let html = Get::row("com.cnn.www").with_columns(Columns::column("contents", "html"));
        assert_eq!(scene.get(Get { versions: 3, ..html }).len(), 3);
    });
}

/// A write to a family never declared fails for its row alone.
pub fn s_name_3_unknown_families_fail_their_row(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    let mut batch = MutationBatch::new(Durability::Os);
    for (row, column) in [(b"1", "f:q"), (b"2", "nofam:q"), (b"2", "f:q"), (b"3", "f:q")] {
        change(&mut batch, CellKind::Put, row, column, Some(1), b"v").unwrap();
    }
    let applied = scene.store().apply(&scene.table, batch).wait().unwrap();
    let failed: Vec<_> = applied.failed.iter().map(|f| (f.row, f.error.kind())).collect();
    assert_eq!(failed, [(1, ErrorKind::NotFound)]);
    assert_eq!(scene.keys(Scan::all()), ["1", "3"], "the refused row left no half");
}

/// A put makes the row or adds to it.
pub fn s_put_1_upsert(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.put("r", "f:a", 1, "v");
    scene.flush();
    scene.put("r", "f:b", 1, "v");
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:a@1=v", "f:b@1=v"]));
}

/// Each cell of a put may carry its own time, past or future.
pub fn s_put_3_times_of_ones_own(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let mut batch = MutationBatch::new(Durability::Os);
    let far = 9_000_000_000_000_000_000;
    for (column, time) in [("f:a", Some(555)), ("f:b", None), ("f:c", Some(far)), ("f:d", Some(0))] {
        change(&mut batch, CellKind::Put, b"r", column, time, b"v").unwrap();
    }
    scene.apply(batch);
    let told = ["f:a@555=v".to_owned(), format!("f:b@{NOW}=v"), format!("f:c@{far}=v"), "f:d@0=v".to_owned()];
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), told));
}

/// The same row, column and time overwrite, within one batch too.
pub fn s_put_4_overwriting(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 10);
    scene.put("r", "f:q", 5, "x");
    scene.flush();
    scene.put("r", "f:q", 5, "y");
    let mut batch = MutationBatch::new(Durability::Os);
    for value in [b"x", b"y"] {
        change(&mut batch, CellKind::Put, b"entry", "f:q", Some(5), value).unwrap();
    }
    for (row, value) in [(b"rows", b"x"), (b"rowz", b"y"), (b"rows", b"y")] {
        change(&mut batch, CellKind::Put, row, "f:q", Some(5), value).unwrap();
    }
    scene.apply(batch);
    scene.at_every_stage(|scene| {
        for row in ["r", "entry", "rows"] {
            assert_eq!(scene.row(row), ["f:q@5=y"], "{row}");
        }
    });
}

/// Bytes in, bytes out.
pub fn s_type_1_values_are_bytes(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    let blob: Vec<u8> = noise.take(1 << 20).collect();
    let mut batch = MutationBatch::new(Durability::Os);
    change(&mut batch, CellKind::Put, b"r", "f:blob", Some(1), &blob).unwrap();
    change(&mut batch, CellKind::Put, b"r", "f:empty", Some(1), b"").unwrap();
    scene.apply(batch);
    scene.at_every_stage(|scene| {
        let got = scene.store().get(&scene.table, Get::row("r")).wait().unwrap();
        let values: Vec<_> = got.rows().flat_map(|row| row.cells()).map(|cell| cell.value).collect();
        assert!(values == [&blob[..], b""], "values differ");
    });
}

/// A value over 10 MiB is refused, and its row with it.
pub fn s_type_2_values_are_bounded(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    let mut batch = MutationBatch::new(Durability::Os);
    change(&mut batch, CellKind::Put, b"r", "f:a", Some(1), b"v").unwrap();
    change(&mut batch, CellKind::Put, b"r", "f:b", Some(1), &vec![0; (10 << 20) + 1]).unwrap();
    let applied = scene.store().apply(&scene.table, batch).wait().unwrap();
    assert_eq!(applied.failed.iter().map(|f| f.error.kind()).collect::<Vec<_>>(), [ErrorKind::Invalid]);
    assert_eq!(scene.row("r"), [""; 0]);
}

/// One key may be in each family without collision.
pub fn s_key_4_families_apart(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f1", "f2"].map(FamilyDescriptor::new));
    scene.put("r", "f1:q", 1, "one");
    scene.put("r", "f2:q", 1, "two");
    scene.delete_family("r", "f1", None);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f2:q@1=two"]));
}

/// Increments from many threads lose nothing and repeat nothing.
pub fn s_cnt_1_increments_are_atomic(fixture: &mut dyn Fixture) {
    const THREADS: usize = 8;
    const EACH: usize = 100;
    let mut scene = Scene::versions(fixture, 1);
    let (store, table) = (scene.store(), scene.table.clone());
    let add = || {
        let increment = crate::Increment {
            row: "r".into(),
            family: "f".into(),
            qualifier: "q".into(),
            amount: 1,
            durability: Durability::Os,
        };
        store.increment(&table, increment).wait().unwrap()
    };
    let mut answers: Vec<i64> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| (0..EACH).map(|_| add()).collect::<Vec<_>>())).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    drop(store);
    answers.sort_unstable();
    let total = i64::try_from(THREADS * EACH).unwrap();
    assert!(answers.into_iter().eq(1..=total), "each answer once");
    // S-CNT-2: what was answered is there after reopening.
    scene.reopen();
    assert_eq!(scene.increment("r", "f:q", 0).unwrap(), total);
}

/// A counter is 8 bytes, big-endian; anything else is left alone.
pub fn s_cnt_3_counters_are_big_endian(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    assert_eq!(scene.increment("r", "f:q", 1).unwrap(), 1);
    let told = format!("f:q@{NOW}=\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01");
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), [told.as_str()]));
    assert_eq!(scene.increment("r", "f:q", -3).unwrap(), -2);
    assert_eq!(scene.increment("r", "f:q", 0).unwrap(), -2);
    scene.put("r", "f:text", 1, "seven..");
    assert_eq!(scene.increment("r", "f:text", 1).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(scene.get(Get::row("r").with_columns(Columns::column("f", "text"))), ["f:text@1=seven.."]);
    scene.increment("max", "f:q", i64::MAX).unwrap();
    assert_eq!(scene.increment("max", "f:q", 1).unwrap(), i64::MIN, "it wraps");
}

/// A counter of a time to come still counts.
pub fn s_cnt_1_a_counter_dated_ahead_counts_on(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.put("r", "f:q", NOW + 9000, "\0\0\0\0\0\0\0\x07");
    assert_eq!(scene.increment("r", "f:q", 1).unwrap(), 8);
    scene.flush();
    assert_eq!(scene.increment("r", "f:q", 1).unwrap(), 9);
    scene.reopen();
    assert_eq!(scene.increment("r", "f:q", 1).unwrap(), 10);
}

/// Increments and appends are versions of their own, within one millisecond too (asked of HBase 2.6.4).
pub fn s_cnt_1_each_change_is_a_version_of_its_own(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 9);
    for value in ["a", "b"] {
        assert_eq!(scene.increment("r", "f:n", 0).unwrap(), 0);
        scene.append("r", "f:s", value).unwrap();
    }
    let zero = "\\x00".repeat(8);
    let told = [
        format!("f:n@{}={zero}", NOW + 1),
        format!("f:n@{NOW}={zero}"),
        format!("f:s@{}=ab", NOW + 1),
        format!("f:s@{NOW}=a"),
    ];
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), told));
}

/// No delete of the same millisecond hides an increment or append that comes after it: it was acknowledged.
pub fn s_cnt_1_no_delete_within_the_millisecond_hides_a_change(fixture: &mut dyn Fixture) {
    type Delete = fn(&Scene<'_>, &str);
    let families = [FamilyDescriptor::new("f"), FamilyDescriptor::new("g").with_versions(3)];
    let mut scene = Scene::new(fixture, families);
    let deletes: [(&str, Delete); 4] = [
        ("family", |scene, row| scene.delete_family(row, "f", None)),
        ("column", |scene, row| scene.delete_column(row, "f:n", None)),
        ("newest", |scene, row| scene.delete(row, "f:n", None)),
        ("version", |scene, row| scene.delete_family_version(row, "f", NOW)),
    ];
    for (row, delete) in deletes {
        assert_eq!(scene.increment(row, "f:n", 1).unwrap(), 1, "{row}");
        delete(&scene, row);
        assert_eq!(scene.increment(row, "f:n", 1).unwrap(), 1, "{row}");
        assert_eq!(scene.increment(row, "f:n", 1).unwrap(), 2, "{row}");
    }
    // The newest version lies ahead of the clock, and so does its tombstone.
    for count in [1, 2] {
        assert_eq!(scene.increment("ahead", "f:n", 1).unwrap(), count);
    }
    scene.delete("ahead", "f:n", None);
    assert_eq!(scene.increment("ahead", "f:n", 1).unwrap(), 1);
    // An older version is seen behind the deleted one.
    scene.put("older", "g:n", 5, "\0\0\0\0\0\0\0\x05");
    assert_eq!(scene.increment("older", "g:n", 1).unwrap(), 6);
    scene.delete("older", "g:n", None);
    assert_eq!(scene.increment("older", "g:n", 1).unwrap(), 6);
    scene.append("text", "f:s", "ab").unwrap();
    scene.delete_family("text", "f", None);
    for told in ["cd", "cdcd"] {
        assert_eq!(scene.append("text", "f:s", "cd").unwrap(), told);
    }
    let count = |count| format!("={}\\x{count:02x}", "\\x00".repeat(7));
    scene.at_every_stage(|scene| {
        let newest = |row: &'static str| scene.get(Get::row(row)).pop().unwrap_or_default();
        let rows = [("family", 2), ("column", 2), ("newest", 2), ("version", 2), ("ahead", 1), ("older", 6)];
        for (row, value) in rows {
            assert!(newest(row).ends_with(&count(value)), "{row}: {}", newest(row));
        }
        assert!(newest("text").ends_with("=cdcd"), "{}", newest("text"));
    });
}

/// Appending goes on from what is there, or from nothing.
pub fn append_goes_on_from_what_is_there(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    assert_eq!(scene.append("r", "f:q", "ab").unwrap(), "ab");
    scene.flush();
    assert_eq!(scene.append("r", "f:q", "cd").unwrap(), "abcd");
    let told = format!("f:q@{}=abcd", NOW + 1);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), [told.as_str()]));
}

/// A row is one row, whether it comes by its key or with a handle, before and behind a flush.
pub fn rows_come_with_handles_or_without(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f", "g"].map(FamilyDescriptor::new));
    let key = |row: u64| format!("r{}", row * 7 % 60);
    let mut expected = BTreeMap::new();
    // A row in five never comes with a handle, and those are in batches of their own; rounds are with, without, or half of each.
    let is_bare = |row: u64| row.is_multiple_of(5);
    let is_handled = |row: u64, round: u64| match round % 4 {
        1 => false,
        2 => !is_bare(row) && (row + round).is_multiple_of(2),
        _ => !is_bare(row),
    };
    for (round, bare) in (0..40_u64).flat_map(|round| [(round, true), (round, false)]) {
        let mut batch = MutationBatch::new(Durability::Os);
        for row in (0..60).filter(|row| (row + round) % 3 > 0 && is_bare(*row) == bare) {
            let handle = NonZeroU64::new(row + 1).filter(|_| is_handled(row, round)).map(RowHandle);
            let value = format!("{round}.{row}");
            let families = if row % 4 == 0 { &["f", "g"][..] } else { &["f"] };
            let mut cells = batch.row_of(key(row).as_bytes(), handle).unwrap();
            for family in families {
                cells.put(family.as_bytes(), b"q", Some(crate::Timestamp(NOW + round)), value.as_bytes()).unwrap();
                expected.insert((key(row), *family), format!("{} {family}:q@{}={value}", key(row), NOW + round));
            }
        }
        scene.apply(batch);
        if round % 16 == 9 {
            scene.flush();
        }
    }
    let expected: Vec<_> = expected.into_values().collect();
    scene.at_every_stage(|scene| assert_eq!(scene.scan(Scan::all()), expected));
}

/// Check-and-mutate acts on the newest value, or on its absence.
pub fn check_and_mutate_holds_the_newest_value(fixture: &mut dyn Fixture) {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let mut scene = Scene::versions(fixture, 1);
    assert!(!scene.check_and_put("r", "f:q", Some((NotEqual, "x")), "v"), "an absent cell has no value to differ");
    assert!(scene.check_and_put("r", "f:q", None, "m"));
    assert!(!scene.check_and_put("r", "f:q", None, "v"));
    scene.reopen();
    let cases = [(Equal, [false, true, false]), (NotEqual, [true, false, true]), (Less, [false, false, true])]
        .into_iter()
        .chain([(LessOrEqual, [false, true, true]), (Greater, [true, false, false])])
        .chain([(GreaterOrEqual, [true, true, false])]);
    for (comparison, expected) in cases {
        let told = ["l", "m", "n"].map(|value| scene.check_and_put("r", "f:q", Some((comparison, value)), "m"));
        assert_eq!(told, expected, "m {comparison:?} l, m, n");
    }
    scene.delete_column("r", "f:q", None);
    scene.set_clock(NOW + 1);
    assert!(scene.check_and_put("r", "f:q", None, "again"));
    // A put goes over a checked cell that is ahead of the clock, a tombstone has the clock's time (asked of HBase 2.6.4).
    scene.put("ahead", "f:q", NOW + 5000, "x");
    let mut mutation = MutationBatch::new(Durability::Os);
    change(&mut mutation, CellKind::DeleteFamily, b"ahead", "f", None, b"").unwrap();
    let check = CheckAndMutate {
        row: "ahead".into(),
        family: "f".into(),
        qualifier: "q".into(),
        comparison: Equal,
        expected: Some("x".into()),
        mutation,
    };
    assert!(scene.store().check_and_mutate(&scene.table, check).wait().unwrap());
    assert_eq!(scene.row("ahead"), [format!("f:q@{}=x", NOW + 5000)]);
    assert!(scene.check_and_put("ahead", "f:q", Some((Equal, "x")), "y"));
    assert_eq!(scene.row("ahead"), [format!("f:q@{}=y", NOW + 5000)]);
}

/// An empty value and no cell are one, and every comparison with it but "not equal" is "equal" (asked of HBase 2.6.4).
pub fn check_and_mutate_takes_an_empty_value_for_none(fixture: &mut dyn Fixture) {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let mut scene = Scene::versions(fixture, 1);
    scene.put("empty", "f:q", 1, "");
    scene.put("full", "f:q", 1, "v");
    scene.at_every_stage(|scene| {
        for row in ["absent", "empty", "full"] {
            let is_empty = row != "full";
            assert!(!scene.check_and_put(row, "f:other", Some((NotEqual, "")), "v"), "{row}");
            for comparison in [Less, LessOrEqual, Equal, GreaterOrEqual, Greater] {
                let held = scene.check_and_put(row, "f:q", Some((comparison, "")), if is_empty { "" } else { "v" });
                assert_eq!(held, is_empty, "{row} {comparison:?}");
            }
            assert_eq!(scene.check_and_put(row, "f:q", Some((NotEqual, "")), "v"), !is_empty, "{row}");
            assert_eq!(scene.check_and_put(row, "f:q", None, ""), is_empty, "{row}");
        }
    });
}

/// The changes of a check-and-mutate are of the row that is checked, and all or nothing.
pub fn check_and_mutate_changes_one_row(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    let check = |mutation| {
        let check = CheckAndMutate {
            row: "r".into(),
            family: "f".into(),
            qualifier: "q".into(),
            comparison: Comparison::Equal,
            expected: None,
            mutation,
        };
        scene.store().check_and_mutate(&scene.table, check).wait().map_err(|error| error.kind())
    };
    let attempt = |rows: &[(&str, &str)]| {
        let mut mutation = MutationBatch::new(Durability::Os);
        for (row, column) in rows {
            change(&mut mutation, CellKind::Put, row.as_bytes(), column, Some(1), b"v").unwrap();
        }
        check(mutation)
    };
    let mut nothing = MutationBatch::new(Durability::Os);
    nothing.row(b"r").unwrap();
    assert_eq!(check(nothing), Err(ErrorKind::Invalid));
    assert_eq!(attempt(&[("other", "f:q")]), Err(ErrorKind::Invalid));
    assert_eq!(attempt(&[("r", "f:q"), ("other", "f:q")]), Err(ErrorKind::Invalid));
    assert_eq!(attempt(&[]), Err(ErrorKind::Invalid));
    assert_eq!(attempt(&[("r", "f:q"), ("r", "nofam:q")]), Err(ErrorKind::NotFound));
    assert_eq!(scene.keys(Scan::all()), [""; 0]);
    assert_eq!(attempt(&[("r", "f:a"), ("r", "f:q")]), Ok(true));
    assert_eq!(attempt(&[("r", "f:b")]), Ok(false));
    assert_eq!(scene.row("r"), ["f:a@1=v", "f:q@1=v"]);
}

/// A row's changes are seen together, across families, or not at all.
pub fn s_acid_1_rows_are_atomic(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f1", "f2"].map(FamilyDescriptor::new));
    let (store, table) = (scene.store(), scene.table.clone());
    let done = AtomicBool::new(false);
    let write = |worker: usize| {
        for n in 0..100 {
            let value = format!("{worker}.{n}");
            let mut batch = MutationBatch::new(Durability::Os);
            for column in ["f1:a", "f2:b"] {
                change(&mut batch, CellKind::Put, b"r", column, Some(1), value.as_bytes()).unwrap();
            }
            assert!(store.apply(&table, batch).wait().unwrap().failed.is_empty());
        }
    };
    let read = || {
        // Relaxed: it only ends the reading, and the threads are joined after.
        while !done.load(Ordering::Relaxed) {
            let got = store.get(&table, Get::row("r")).wait().unwrap();
            let mut scanner = store.scan(&table, Scan::all()).unwrap();
            let scanned = scanner.next_wait().transpose().unwrap().unwrap_or_default();
            for batch in [got, scanned] {
                let values: Vec<_> =
                    batch.rows().flat_map(|row| row.cells()).map(|c| Bytes::copy_from_slice(c.value)).collect();
                assert!(values.is_empty() || values.len() == 2 && values.first() == values.last(), "{values:?}");
            }
        }
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(read);
        let writers: Vec<_> = (0..4).map(|worker| scope.spawn(move || write(worker))).collect();
        let written: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        assert!(written.into_iter().all(|w| w.is_ok()) && reader.join().is_ok());
    });
    drop(store);
    // S-ACID-2: what was acknowledged is there after reopening.
    scene.at_every_stage(|scene| assert_eq!(scene.row("r").len(), 2));
}
