//! VERS, TTL and KEEP rows, with U-7 and U-8.

use super::Fixture;
use super::scene::{NOW, Scene};
use crate::{
    Compression, ErrorKind, FamilyDescriptor, Get, KeepDeletedCells, Scan, TableDescriptor, TimeRange, Timestamp,
};

const SECOND: u64 = 1000;

fn between(min: u64, max: u64) -> Get {
    let time_range = TimeRange { min: Timestamp(min), max: Timestamp(max) };
    Get { versions: u32::MAX, time_range, ..Get::row("r") }
}

/// Any number of versions, the newest first.
pub fn s_vers_1_any_number_of_versions(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, i32::MAX.unsigned_abs());
    let times: Vec<u64> = (1..=1000).collect();
    scene.put_at("r", "f:q", &times);
    let told: Vec<_> = times.iter().rev().map(|time| format!("f:q@{time}={time}")).collect();
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), told));
}

/// Of several writes with one time only the last is there, wherever the others lie.
pub fn s_vers_3_of_one_version_the_last_written_wins(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 10);
    for value in ["first", "second", "last"] {
        scene.put("r", "f:q", 5, value);
        scene.flush();
    }
    scene.put("memtable", "f:q", 5, "file");
    scene.flush();
    scene.put("memtable", "f:q", 5, "memtable");
    scene.at_every_stage(|scene| {
        assert_eq!(scene.row("r"), ["f:q@5=last"]);
        assert_eq!(scene.row("memtable"), ["f:q@5=memtable"]);
    });
}

/// Versions may be written in any order.
pub fn s_vers_4_versions_out_of_order(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put_at("r", "f:q", &[30, 10, 20]);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@30=30", "f:q@20=20", "f:q@10=10"]));
}

/// One version is kept unless told otherwise.
pub fn s_vers_5_one_version_by_default(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, [FamilyDescriptor::new("f")]);
    assert_eq!(scene.store().describe_table(&scene.table).unwrap().families[0].versions, 1);
    scene.put_at("r", "f:q", &[10, 20]);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@20=20"]));
}

/// Excess versions go at a major compaction.
pub fn s_vers_6_excess_versions_go_at_major_compaction(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 2);
    for time in [1, 2, 3, 4] {
        scene.put_at("r", "f:q", &[time]);
        scene.flush();
    }
    assert_eq!(scene.row("r"), ["f:q@4=4", "f:q@3=3"]);
    assert_eq!(scene.raw().len(), 4);
    scene.major();
    assert_eq!(scene.raw(), ["f:q@4=4", "f:q@3=3"]);
}

/// VERSIONS may be altered while the table serves.
pub fn s_vers_7_versions_are_altered(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let more = TableDescriptor::new(scene.table.clone(), vec![FamilyDescriptor::new("f").with_versions(5)]);
    scene.store().alter_table(more).unwrap();
    scene.put_at("r", "f:q", &[1, 2, 3, 4, 5, 6, 7]);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r").len(), 5));
}

/// `MIN_VERSIONS` is not above VERSIONS; HBase's documents say below, and HBase 2.6.4 takes both alike (D-2).
pub fn s_vers_8_min_versions_below_versions(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 5);
    let altered = |versions| {
        // Of HBase's codecs the cluster decides, not the table.
        let family = FamilyDescriptor { compression: Compression::None, ..FamilyDescriptor::new("f") };
        let family = FamilyDescriptor { min_versions: 2, ..family.with_versions(versions) };
        TableDescriptor::new("t".parse().unwrap(), vec![family])
    };
    assert_eq!(scene.store().alter_table(altered(1)).unwrap_err().kind(), ErrorKind::Invalid);
    scene.store().alter_table(altered(2)).unwrap();
    scene.store().alter_table(altered(5)).unwrap();
    scene.reopen();
    assert_eq!(scene.store().describe_table(&scene.table).unwrap(), altered(5));
}

/// TTL with `MIN_VERSIONS`: the last of each, and never fewer.
pub fn s_vers_9_min_versions_outlive_ttl(fixture: &mut dyn Fixture) {
    let kept = FamilyDescriptor { min_versions: 2, ..FamilyDescriptor::new("kept").with_versions(5).with_ttl(60) };
    let bare = FamilyDescriptor::new("bare").with_versions(5).with_ttl(60);
    let mut scene = Scene::new(fixture, [kept, bare]);
    let ago = |seconds: u64| NOW - seconds * SECOND;
    for column in ["kept:q", "bare:q"] {
        for seconds in [300, 200, 100, 10] {
            scene.put("r", column, ago(seconds), "v");
        }
    }
    let told = [format!("bare:q@{}=v", ago(10)), format!("kept:q@{}=v", ago(10)), format!("kept:q@{}=v", ago(100))];
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), told));
    assert_eq!(scene.raw(), told);
}

/// A cell past its TTL is gone from reads at once, and from the store at a major compaction.
pub fn s_ttl_1_expiry(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, [FamilyDescriptor::new("f").with_versions(3).with_ttl(10)]);
    scene.put("r", "f:q", None, "v");
    scene.set_clock(NOW + 10 * SECOND);
    scene.until_major(|scene| assert_eq!(scene.row("r").len(), 1));
    scene.set_clock(NOW + 11 * SECOND);
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), [""; 0]));
    assert_eq!(scene.raw(), [""; 0]);
}

/// Expired tombstones at the same time as a put, all of the column without a name, end no scan early and hold none up.
pub fn s_ttl_1_expired_tombstones_hold_no_scan_up(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, [FamilyDescriptor::new("f").with_versions(3).with_ttl(10)]);
    // In each file something that lives on, or else its times would leave it out.
    let live = NOW + 9 * SECOND;
    scene.put("r", "f:", NOW, "v");
    scene.put("r", "f:p", live, "v");
    scene.flush();
    scene.delete("r", "f:", NOW);
    scene.put("r", "f:q", live, "v");
    scene.flush();
    scene.set_clock(NOW + 12 * SECOND);
    let told = [format!("f:p@{live}=v"), format!("f:q@{live}=v")];
    scene.until_major(|scene| assert_eq!(scene.row("r"), told));
}

/// TTL takes the newest version too, and then the row is absent.
pub fn s_ttl_2_expired_rows_are_absent(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, [FamilyDescriptor::new("f").with_ttl(10)]);
    scene.put("old", "f:q", NOW - 11 * SECOND, "v");
    scene.put("new", "f:q", NOW, "v");
    scene.at_every_stage(|scene| assert_eq!(scene.keys(Scan::all()), ["new"]));
}

/// TTL is reckoned from the cell's own time.
pub fn s_ttl_4_ttl_counts_from_the_cells_time(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, [FamilyDescriptor::new("f").with_ttl(60)]);
    scene.put("born expired", "f:q", NOW - 3600 * SECOND, "v");
    scene.put("lives long", "f:q", NOW + 3600 * SECOND, "v");
    scene.until_major(|scene| assert_eq!(scene.keys(Scan::all()), ["lives long"]));
    scene.set_clock(NOW + 3660 * SECOND);
    scene.until_major(|scene| assert_eq!(scene.keys(Scan::all()), ["lives long"]));
    scene.set_clock(NOW + 3660 * SECOND + 1);
    scene.at_every_stage(|scene| assert_eq!(scene.keys(Scan::all()), [""; 0]));
}

/// Kept deleted cells are read by a range that ends before their delete.
pub fn s_keep_1_deleted_cells_at_their_time(fixture: &mut dyn Fixture) {
    let kept = FamilyDescriptor { keep_deleted: KeepDeletedCells::True, ..FamilyDescriptor::new("k").with_versions(3) };
    let mut scene = Scene::new(fixture, [kept, FamilyDescriptor::new("f").with_versions(3)]);
    for column in ["f:q", "k:q"] {
        scene.put_at("r", column, &[10, 20]);
        scene.delete_column("r", column, 25);
    }
    scene.at_every_stage(|scene| {
        assert_eq!(scene.row("r"), [""; 0]);
        assert_eq!(scene.get(between(0, 25)), ["k:q@20=20", "k:q@10=10"]);
        assert_eq!(scene.get(between(0, 26)), [""; 0]);
    });
}

/// Kept deleted cells fall to VERSIONS and TTL.
pub fn s_keep_2_kept_deletes_are_bounded(fixture: &mut dyn Fixture) {
    let family = FamilyDescriptor {
        keep_deleted: KeepDeletedCells::True,
        ..FamilyDescriptor::new("f").with_versions(2).with_ttl(60)
    };
    let scene = Scene::new(fixture, [family]);
    for step in 1..=5 {
        scene.put("r", "f:q", NOW + step, "v");
    }
    scene.delete_column("r", "f:q", NOW + 6);
    scene.major();
    assert_eq!(scene.raw().iter().filter(|cell| cell.contains('=')).count(), 2);
    scene.set_clock(NOW + 61 * SECOND);
    scene.major();
    assert_eq!(scene.raw(), [""; 0]);
}

/// A raw scan gives every tombstone with its kind, before the values of its time.
pub fn s_keep_3_raw_scans_show_tombstones(fixture: &mut dyn Fixture) {
    let family =
        FamilyDescriptor { keep_deleted: KeepDeletedCells::True, ..FamilyDescriptor::new("f").with_versions(5) };
    let mut scene = Scene::new(fixture, [family]);
    scene.put_at("r", "f:q", &[1, 9]);
    scene.delete("r", "f:q", 9);
    scene.delete_column("r", "f:q", 9);
    scene.delete_family("r", "f", 9);
    let told = ["f:@9 DeleteFamily", "f:q@9 DeleteColumn", "f:q@9 Delete", "f:q@9=9", "f:q@1=1"];
    scene.at_every_stage(|scene| assert_eq!(scene.raw(), told));
}

/// `KEEP_DELETED_CELLS => TTL` keeps the deleted until they age.
pub fn u_7_kept_until_ttl(fixture: &mut dyn Fixture) {
    let keep_deleted = KeepDeletedCells::Ttl;
    let family = FamilyDescriptor { keep_deleted, ..FamilyDescriptor::new("f").with_versions(3).with_ttl(60) };
    let mut scene = Scene::new(fixture, [family]);
    scene.put("r", "f:q", NOW, "v");
    scene.delete_column("r", "f:q", NOW + 1);
    let told = format!("f:q@{NOW}=v");
    scene.at_every_stage(|scene| assert_eq!(scene.get(between(0, NOW + 1)), [told.as_str()]));
    scene.set_clock(NOW + 61 * SECOND);
    scene.major();
    assert_eq!(scene.raw(), [""; 0]);
}

/// The time range is looked at before versions are counted.
pub fn u_8_the_range_comes_before_the_count(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    for time in [10, 20] {
        scene.put_at("r", "f:q", &[time]);
        scene.flush();
    }
    assert_eq!(scene.get(between(0, 15)), ["f:q@10=10"]);
    scene.major();
    assert_eq!(scene.get(between(0, 15)), [""; 0]);
}
