//! DEL rows, with U-6, U-9 and U-10.

use super::Fixture;
use super::scene::{NOW, Scene, change};
use crate::{
    CellKind, Compaction, Durability, ErrorKind, FamilyDescriptor, Filter, Get, KeepDeletedCells, MutationBatch, Scan,
    TableDescriptor, TimeRange, Timestamp,
};

/// A delete writes a tombstone; it and what it masks go at a major compaction.
pub fn s_del_1_tombstones_mask_and_go_at_major_compaction(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put("r", "f:q", 1, "v");
    scene.flush();
    scene.delete_column("r", "f:q", 1);
    scene.until_major(|scene| assert_eq!(scene.row("r"), [""; 0]));
    assert!(scene.raw().contains(&"f:q@1 DeleteColumn".to_owned()));
    scene.major();
    assert_eq!(scene.raw(), [""; 0]);
}

/// A raw read shows tombstone and value both while they lie in memtable and file apart.
pub fn s_del_1_a_raw_read_shows_the_dead(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 3);
    scene.put("r", "f:q", 1, "v");
    scene.flush();
    scene.delete_column("r", "f:q", 1);
    assert_eq!(scene.raw(), ["f:q@1 DeleteColumn", "f:q@1=v"]);
}

/// One exact version.
pub fn s_del_2_delete_one_version(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put_at("r", "f:q", &[1, 2, 3]);
    scene.delete("r", "f:q", 2);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@3=3", "f:q@1=1"]));
}

/// A column's versions at or below a time.
pub fn s_del_3_delete_a_column(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put_at("r", "f:q", &[1, 2, 3]);
    scene.put("r", "f:other", 1, "v");
    scene.delete_column("r", "f:q", 2);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:other@1=v", "f:q@3=3"]));
}

/// A family's columns at or below a time, and no other family's.
pub fn s_del_4_delete_a_family(fixture: &mut dyn Fixture) {
    let families = ["f", "g"].map(|name| FamilyDescriptor::new(name).with_versions(3));
    let mut scene = Scene::new(fixture, families);
    for column in ["f:a", "f:b", "g:a"] {
        scene.put("r", column, 1, "v");
    }
    scene.put("r", "f:", 1, "v");
    scene.delete_family("r", "f", 1);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["g:a@1=v"]));
}

/// A family's tombstone is found although the column of the empty qualifier gave all it may.
pub fn s_del_4_a_family_tombstone_below_the_empty_qualifier(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    for (column, time) in [("f:", 20), ("f:", 18), ("f:a", 5)] {
        scene.put("r", column, time, "v");
    }
    scene.delete_family("r", "f", 10);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:@20=v"]));
}

/// Nor does a filter that seeks to its columns pass over it: what it masks stays masked.
pub fn s_del_4_a_column_prefix_passes_over_no_family_tombstone(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.put("r", "f:", 20, "v");
    scene.put("r", "f:p", 5, "dead");
    scene.put("r", "f:pq", 15, "v");
    scene.delete_family("r", "f", 10);
    scene.until_major(|scene| {
        let prefix = Filter::ColumnPrefix("p".into());
        assert_eq!(scene.scan(Scan::all().with_filter(prefix.clone())), ["r f:pq@15=v"]);
        assert_eq!(scene.get(Get { filter: Some(prefix), ..Get::row("r") }), ["f:pq@15=v"]);
    });
}

/// A row delete costs one tombstone a family, however many columns there are.
pub fn s_del_5_a_row_delete_is_one_tombstone_a_family(fixture: &mut dyn Fixture) {
    let scene = Scene::new(fixture, ["f", "g"].map(FamilyDescriptor::new));
    let mut batch = MutationBatch::new(Durability::Os);
    for i in 0..1000 {
        for family in ["f", "g"] {
            change(&mut batch, CellKind::Put, b"r", &format!("{family}:{i}"), Some(1), b"v").unwrap();
        }
    }
    scene.apply(batch);
    let mut delete = MutationBatch::new(Durability::Os);
    for family in ["f", "g"] {
        change(&mut delete, CellKind::DeleteFamily, b"r", family, None, b"").unwrap();
    }
    scene.apply(delete);
    assert_eq!(scene.row("r"), [""; 0]);
    let tombstones: Vec<_> = scene.raw().into_iter().filter(|cell| !cell.contains('=')).collect();
    assert_eq!(tombstones, [format!("f:@{NOW} DeleteFamily"), format!("g:@{NOW} DeleteFamily")]);
}

/// Without a time a delete reaches up to the server's own, and no further.
pub fn s_del_6_no_time_means_the_servers_own(fixture: &mut dyn Fixture) {
    let hour = NOW + 3_600_000;
    let mut scene = Scene::versions(fixture, 3);
    scene.put("past", "f:q", 100, "v");
    scene.put("future", "f:q", hour, "v");
    for row in ["past", "future"] {
        scene.delete_family(row, "f", None);
    }
    let future = format!("f:q@{hour}=v");
    scene.until_major(|scene| {
        assert_eq!(scene.row("past"), [""; 0]);
        assert_eq!(scene.row("future"), [future.as_str()]);
    });
    scene.delete_family("future", "f", hour);
    scene.at_every_stage(|scene| assert_eq!(scene.row("future"), [""; 0]));
}

/// A tombstone masks what is put below it later too, until a major compaction has run.
pub fn s_del_7_deletes_mask_later_puts_until_major_compaction(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.delete_family("r", "f", 15);
    scene.flush();
    scene.put("r", "f:q", 12, "v");
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), [""; 0]));
    scene.put("r", "f:q", 12, "v2");
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@12=v2"]));
}

/// A delete and a put within one millisecond: the put is masked.
pub fn s_del_8_a_put_within_the_deletes_millisecond_is_masked(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.delete_family("r", "f", None);
    scene.put("r", "f:q", None, "v");
    scene.until_major(|scene| assert_eq!(scene.row("r"), [""; 0]));
    scene.set_clock(NOW + 1);
    scene.put("r", "f:q", None, "v");
    let told = format!("f:q@{}=v", NOW + 1);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), [told.as_str()]));
}

/// A clock that was set back is behind for as long as it was ahead: that is no one millisecond.
pub fn s_del_8_a_put_after_a_delete_is_seen_though_the_clock_went_back(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put("r", "f:q", None, "v");
    scene.set_clock(NOW - 100);
    scene.delete_family("r", "f", None);
    scene.put("r", "f:q", None, "v");
    let told = format!("f:q@{}=v", NOW + 1);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), [told.as_str()]));
}

/// A deleted version lets an older one be seen again, as long as that is still stored.
pub fn s_del_9_a_delete_before_compaction_shows_an_older_version(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 2);
    for time in [1, 2, 3] {
        scene.put_at("r", "f:q", &[time]);
        scene.flush();
    }
    assert_eq!(scene.row("r"), ["f:q@3=3", "f:q@2=2"]);
    scene.delete("r", "f:q", 2);
    assert_eq!(scene.row("r"), ["f:q@3=3", "f:q@1=1"]);
}

/// After a compaction it is not.
pub fn s_del_9_a_delete_after_compaction_shows_none(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 2);
    for time in [1, 2, 3] {
        scene.put_at("r", "f:q", &[time]);
        scene.flush();
    }
    scene.major();
    scene.delete("r", "f:q", 2);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@3=3"]));
}

/// Families that keep deleted cells keep their tombstones through a major compaction.
pub fn s_del_10_kept_deletes_keep_their_tombstones(fixture: &mut dyn Fixture) {
    let family = FamilyDescriptor { keep_deleted: KeepDeletedCells::True, ..FamilyDescriptor::new("f") };
    let mut scene = Scene::new(fixture, [family]);
    scene.put("r", "f:q", 10, "v");
    scene.delete_column("r", "f:q", 10);
    scene.at_every_stage(|scene| assert_eq!(scene.raw(), ["f:q@10 DeleteColumn", "f:q@10=v"]));
}

/// Without a purge delay, tombstones of a time to come go with the others.
pub fn s_del_11_future_tombstones_go_at_major_compaction(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    scene.delete_column("r", "f:q", NOW + 5000);
    scene.flush();
    assert_eq!(scene.raw().len(), 1);
    scene.major();
    assert_eq!(scene.raw(), [""; 0]);
    scene.put("r", "f:q", 1, "v");
    assert_eq!(scene.row("r"), ["f:q@1=v"]);
}

/// With a purge delay, a tombstone outlives major compactions until its time and the delay are past.
pub fn s_del_11_tombstones_outlive_major_compactions_by_the_purge_delay(fixture: &mut dyn Fixture) {
    let scene = purged_after(fixture, "2000");
    scene.set_clock(1000);
    scene.delete_column("r", "f:q", 5000);
    for (now, kept) in [(1000, true), (5000, true), (6999, true), (7000, true), (7001, false)] {
        scene.set_clock(now);
        scene.major();
        assert_eq!(!scene.raw().is_empty(), kept, "at {now}");
    }
}

/// A purge delay is a number of milliseconds; a table that says otherwise is refused.
pub fn s_del_11_a_purge_delay_is_a_number(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 3);
    let table = TableDescriptor::new("delayed".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
    let wrong = table.with_attribute("hbase.hstore.time.to.purge.deletes", "long");
    assert_eq!(scene.store().create_table(wrong, &[]).err().map(|error| error.kind()), Some(ErrorKind::Invalid));
}

/// A table that keeps tombstones for so long.
fn purged_after<'a>(fixture: &'a mut dyn Fixture, delay: &str) -> Scene<'a> {
    let mut scene = Scene::versions(fixture, 3);
    scene.table = "delayed".parse().unwrap();
    let family = FamilyDescriptor::new("f").with_versions(3);
    let table = TableDescriptor::new(scene.table.clone(), vec![family]);
    let table = table.with_attribute("hbase.hstore.time.to.purge.deletes", delay);
    scene.store().create_table(table, &[]).unwrap();
    scene
}

/// A family of so many versions in which tombstones mask only what was written before them.
fn in_order_of_writes(fixture: &mut dyn Fixture, versions: u32) -> Scene<'_> {
    let family = FamilyDescriptor { new_version_behavior: true, ..FamilyDescriptor::new("f") };
    Scene::new(fixture, [family.with_versions(versions)])
}

/// With the new version behaviour a tombstone masks nothing that is written after it (S-DEL-7 and -8 repaired).
pub fn u_4_tombstones_mask_earlier_writes_only(fixture: &mut dyn Fixture) {
    let mut scene = in_order_of_writes(fixture, 3);
    for (row, column) in [("family", "f"), ("column", "f:q")] {
        scene.put(row, "f:q", 11, "before");
        match column {
            "f" => scene.delete_family(row, column, 15),
            _ => scene.delete_column(row, column, 15),
        }
        scene.put(row, "f:q", 12, "after");
    }
    scene.put("version", "f:q", 12, "before");
    scene.delete("version", "f:q", 12);
    scene.put("version", "f:q", 12, "after");
    scene.delete_family("now", "f", None);
    scene.put("now", "f:q", None, "v");
    let now = format!("f:q@{NOW}=v");
    scene.at_every_stage(|scene| {
        for row in ["family", "column", "version"] {
            assert_eq!(scene.row(row), ["f:q@12=after"], "{row}");
        }
        assert_eq!(scene.row("now"), [now.as_str()]);
    });
}

/// With it a deleted version still counts, so that compactions change no answer (S-DEL-9, U-8 and U-10 repaired).
pub fn u_4_deleted_versions_still_count(fixture: &mut dyn Fixture) {
    let mut scene = in_order_of_writes(fixture, 2);
    for time in [1, 2, 3] {
        scene.put_at("r", "f:q", &[time]);
        scene.put_at("range", "f:q", &[time]);
        scene.flush();
    }
    scene.delete("r", "f:q", 2);
    scene.at_every_stage(|scene| {
        assert_eq!(scene.row("r"), ["f:q@3=3"]);
        let range = |max| TimeRange { min: Timestamp(0), max: Timestamp(max) };
        let ranged = |max| scene.get(Get { time_range: range(max), versions: 9, ..Get::row("range") });
        assert_eq!((ranged(3), ranged(2)), (vec!["f:q@2=2".to_owned()], vec![]), "in excess once, in excess for good");
    });
    scene.delete("r", "f:q", None);
    scene.put_at("r", "f:q", &[1]);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@1=1"]));
}

/// The delay holds for any tombstone that is younger, not only for those of a time to come.
pub fn u_11_the_delay_holds_for_every_recent_tombstone(fixture: &mut dyn Fixture) {
    let scene = purged_after(fixture, "500");
    scene.set_clock(1000);
    scene.put("r", "f:q", 900, "v");
    scene.delete_column("r", "f:q", None);
    for (now, kept) in [(1400, true), (1600, false)] {
        scene.set_clock(now);
        scene.major();
        assert_eq!(scene.raw(), if kept { vec!["f:q@1000 DeleteColumn"] } else { vec![] }, "at {now}");
    }
}

/// One exact time of all of a family's columns.
pub fn u_6_delete_a_familys_version(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    for (column, time) in [("f:a", 1), ("f:b", 1), ("f:a", 2)] {
        scene.put("r", column, time, "v");
    }
    scene.delete_family_version("r", "f", 1);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:a@2=v"]));
}

/// A version delete without a time takes the newest; a column delete takes all.
pub fn u_9_delete_the_newest_version(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    for row in ["one", "two", "all"] {
        scene.put_at(row, "f:q", &[1, 2, 3]);
    }
    scene.flush();
    scene.delete("one", "f:q", None);
    let mut batch = MutationBatch::new(Durability::Os);
    for _ in 0..2 {
        change(&mut batch, CellKind::Delete, b"two", "f:q", None, b"").unwrap();
    }
    scene.apply(batch);
    scene.delete_column("all", "f:q", None);
    scene.at_every_stage(|scene| {
        assert_eq!(scene.row("one"), ["f:q@2=2", "f:q@1=1"]);
        assert_eq!(scene.row("two"), ["f:q@1=1"]);
        assert_eq!(scene.row("all"), [""; 0]);
    });
}

/// Where one version is kept, deleting it brings no older one back.
pub fn u_10_deleting_the_only_version_brings_none_back(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.put_at("r", "f:q", &[1, 2]);
    scene.delete("r", "f:q", None);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), [""; 0]));
}

/// A delete of the newest version where there is none hides no put of an older time that comes later.
pub fn u_10_deleting_nothing_hides_no_older_put(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.delete("r", "f:q", None);
    scene.put_at("r", "f:q", &[1]);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@1=1"]));
}

/// D-35: a minor compaction may drop what is in excess among the files that it takes, but leaves tombstones for those
/// that take no part, and changes no answer.
pub fn d_35_minor_compactions_change_no_answer(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 2);
    for (time, deleted) in [(5, 1), (7, 6), (3, 4)] {
        scene.put_at("r", "f:q", &[time]);
        scene.flush();
        scene.delete_column("r", "f:q", deleted);
        scene.flush();
    }
    assert_eq!(scene.row("r"), ["f:q@7=7"]);
    scene.store().compact(&scene.table, Compaction::Minor).unwrap();
    assert_eq!(scene.row("r"), ["f:q@7=7"]);
    scene.put_at("r", "f:q", &[6]);
    assert_eq!(scene.row("r"), ["f:q@7=7"]);
}
