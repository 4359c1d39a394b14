//! NAME, ADMIN, CF, SPLIT and PERF rows: tables, their settings and their regions.

use bytes::Bytes;

use super::Fixture;
use super::scene::{Scene, change};
use crate::{
    BloomFilter, CellKind, Compression, Durability, ErrorKind, FamilyDescriptor, Get, KeepDeletedCells, MutationBatch,
    Result, Scan, SplitAt, TableDescriptor, TableName, TruncatedRegions,
};

fn table(name: &str, families: impl IntoIterator<Item = FamilyDescriptor>) -> TableDescriptor {
    TableDescriptor::new(name.parse().unwrap(), families.into_iter().collect())
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Family names are printable, without colon and slash, each once.
pub fn s_name_2_family_names(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    for families in [vec!["f\x01"], vec!["a:b"], vec!["f/g"], vec![".f"], vec![""], vec!["f", "f"], vec![]] {
        let made = scene.store().create_table(table("u", families.iter().map(|&f| FamilyDescriptor::new(f))), &[]);
        assert_eq!(kind(made), Some(ErrorKind::Invalid), "{families:?}");
    }
    assert_eq!(scene.store().list_tables().unwrap(), std::slice::from_ref(&scene.table));
}

/// Tables come, go and are emptied; what is gone stays gone.
pub fn s_admin_1_create_truncate_drop(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 3);
    scene.put("r", "f:q", 1, "v");
    scene.flush();
    scene.put("r", "f:p", 1, "v");
    scene.store().truncate_table(&scene.table, TruncatedRegions::Kept).unwrap();
    scene.at_every_stage(|scene| {
        assert_eq!(scene.raw(), [""; 0]);
        assert_eq!(scene.store().describe_table(&scene.table).unwrap().families[0].versions, 3);
    });
    scene.put("r", "f:q", 1, "v");
    scene.flush();
    scene.store().drop_table(&scene.table).unwrap();
    scene.reopen();
    let (store, name) = (scene.store(), scene.table.clone());
    assert_eq!(store.list_tables().unwrap(), []);
    let truncated = store.truncate_table(&name, TruncatedRegions::Kept);
    let gone = [store.describe_table(&name).err(), store.drop_table(&name).err(), truncated.err()];
    let more = [store.flush(&name).err(), store.regions(&name).err()];
    let kinds: Vec<_> = gone.into_iter().chain(more).map(|error| error.map(|e| e.kind())).collect();
    assert_eq!(kinds, [Some(ErrorKind::NotFound); 5]);
    store.create_table(table("t", [FamilyDescriptor::new("f")]), &[]).unwrap();
    assert_eq!(scene.raw(), [""; 0], "a new table of an old name is empty");
}

/// Families are added, removed with their data, and set anew while the table serves.
pub fn s_admin_2_alter_online(fixture: &mut dyn Fixture) {
    let mut scene = Scene::new(fixture, ["f", "g"].map(FamilyDescriptor::new));
    scene.put("r", "f:q", 1, "v");
    scene.put("r", "g:q", 1, "v");
    scene.flush();
    scene.put("r", "g:p", 1, "v");
    scene.store().alter_table(table("t", ["f", "h"].map(FamilyDescriptor::new))).unwrap();
    scene.put("r", "h:q", 1, "v");
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@1=v", "h:q@1=v"]));
    scene.store().alter_table(table("t", ["f", "g", "h"].map(FamilyDescriptor::new))).unwrap();
    scene.at_every_stage(|scene| assert_eq!(scene.row("r"), ["f:q@1=v", "h:q@1=v"]));
    assert_eq!(kind(scene.store().alter_table(table("u", [FamilyDescriptor::new("f")]))), Some(ErrorKind::NotFound));
    assert_eq!(kind(scene.store().alter_table(table("t", []))), Some(ErrorKind::Invalid));
}

/// Every setting is kept as it was made, over reopening too.
pub fn s_cf_7_settings_are_kept(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let family = FamilyDescriptor {
        min_versions: 2,
        keep_deleted: KeepDeletedCells::Ttl,
        bloom: BloomFilter::RowColumn,
        compression: Compression::None,
        block_bytes: 4096,
        in_memory: true,
        block_cache: false,
        new_version_behavior: true,
        ..FamilyDescriptor::new("g").with_versions(7).with_ttl(77)
    };
    // Of HBase's codecs the cluster decides, not the table: without one on both sides the answer is the same.
    let other = FamilyDescriptor { compression: Compression::None, ..FamilyDescriptor::new("f") };
    let made = table("u", [family, other]).with_attribute("salt", "16");
    scene.store().create_table(made.clone(), &["k".into()]).unwrap();
    scene.reopen();
    assert_eq!(scene.store().describe_table(&made.name).unwrap(), made);
}

/// Regions tile the key space as they were split, and every key is in one.
pub fn s_split_1_regions_tile_the_keys(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let name: TableName = "split".parse().unwrap();
    let splits: Vec<Bytes> = vec!["b".into(), "b\0".into(), "m".into()];
    scene.store().create_table(table("split", [FamilyDescriptor::new("f")]), &splits).unwrap();
    scene.table = name;
    let rows = ["a", "b", "b\0", "c", "m", "z"];
    for row in rows {
        scene.put(row, "f:q", 1, "v");
    }
    scene.at_every_stage(|scene| {
        let regions = scene.store().regions(&scene.table).unwrap();
        let bounds: Vec<_> = regions.iter().map(|r| (&r.start[..], &r.end[..])).collect();
        assert_eq!(bounds, [(&b""[..], &b"b"[..]), (b"b", b"b\0"), (b"b\0", b"m"), (b"m", b"")]);
        assert_eq!(scene.keys(Scan::all()), rows.map(|row| row.replace('\0', "\\x00")));
        assert_eq!(scene.keys(Scan { reversed: true, ..Scan::range("c", "a") }), ["c", "b\\x00", "b"]);
        let got = scene.get(Get::rows(["z", "a", "none", "b"].map(Bytes::from).to_vec()));
        assert_eq!(got.len(), 3);
    });
}

/// Splits are sorted, apart and not empty.
pub fn s_split_1_bad_splits_are_refused(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    for splits in [vec!["b", "a"], vec!["a", "a"], vec!["", "a"]] {
        let splits: Vec<Bytes> = splits.into_iter().map(Bytes::from).collect();
        let made = scene.store().create_table(table("u", [FamilyDescriptor::new("f")]), &splits);
        assert_eq!(kind(made), Some(ErrorKind::Invalid), "{splits:?}");
    }
}

/// A region splits while the table serves: at a key that is told, or in the middle; every row is in one region still.
pub fn s_split_1_regions_split(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    let rows: Vec<String> = (0..40).map(|row| format!("row{row:02}")).collect();
    for row in &rows {
        scene.put(row, "f:q", 1, "v");
    }
    let split = |scene: &Scene<'_>, at| scene.store().split_region(&scene.table, &at);
    scene.flush();
    assert_eq!(split(&scene, SplitAt::Key("row10".into())).unwrap(), "row10");
    for row in &rows {
        scene.put(row, "f:q", 2, "w");
    }
    scene.delete_column("row11", "f:q", 5);
    let middle = split(&scene, SplitAt::MiddleOf("row30".into())).unwrap();
    assert!(middle > "row10" && middle <= "row39", "{middle:?}");
    assert_eq!(split(&scene, SplitAt::Key("zzz".into())).unwrap(), "zzz");
    scene.put("zzzz", "f:q", 2, "w");
    scene.at_every_stage(|scene| {
        let regions = scene.store().regions(&scene.table).unwrap();
        let starts: Vec<_> = regions.iter().map(|region| region.start.clone()).collect();
        assert_eq!(starts, ["".into(), "row10".into(), middle.clone(), Bytes::from("zzz")]);
        assert!(regions.iter().zip(&regions[1..]).all(|(one, next)| one.end == next.start && one.id != next.id));
        let mut expected: Vec<String> = rows.iter().filter(|row| *row != "row11").cloned().collect();
        expected.push("zzzz".into());
        assert_eq!(scene.keys(Scan::all()), expected);
        expected.reverse();
        assert_eq!(scene.keys(Scan { reversed: true, ..Scan::all() }), expected);
        assert_eq!(scene.keys(Scan::range("row08", "row12")), ["row08", "row09", "row10"]);
        assert_eq!(scene.keys(Scan { reversed: true, ..Scan::range("row12", "row08") }), ["row12", "row10", "row09"]);
        assert_eq!(scene.row("row10"), ["f:q@2=w"]);
        assert_eq!(scene.get(Get::rows(rows.iter().map(|row| row.clone().into()).collect())).len(), 39);
    });
}

/// A split that makes no region is refused.
pub fn s_split_1_splits_that_cannot_be_are_refused(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 1);
    let split = |at| scene.store().split_region(&scene.table, &at);
    assert_eq!(kind(split(SplitAt::MiddleOf(Bytes::new()))), Some(ErrorKind::Invalid));
    scene.put("b", "f:q", 1, "v");
    assert_eq!(kind(split(SplitAt::MiddleOf(Bytes::new()))), Some(ErrorKind::Invalid));
    assert_eq!(kind(split(SplitAt::Key(Bytes::new()))), Some(ErrorKind::Invalid));
    split(SplitAt::Key("b".into())).unwrap();
    assert_eq!(kind(split(SplitAt::Key("b".into()))), Some(ErrorKind::Invalid));
    assert_eq!(scene.store().regions(&scene.table).unwrap().len(), 2);
    let unknown = scene.store().split_region(&"none".parse().unwrap(), &SplitAt::Key("b".into()));
    assert_eq!(kind(unknown), Some(ErrorKind::NotFound));
    let made = table("u", [FamilyDescriptor::new("f")]).with_attribute("SPLIT_ENABLED", "false");
    scene.store().create_table(made, &[]).unwrap();
    let forbidden = scene.store().split_region(&"u".parse().unwrap(), &SplitAt::Key("b".into()));
    assert_eq!(kind(forbidden), Some(ErrorKind::Invalid));
    let unreadable = table("w", [FamilyDescriptor::new("f")]).with_attribute("MAX_FILESIZE", "big");
    assert_eq!(kind(scene.store().create_table(unreadable, &[])), Some(ErrorKind::Invalid));
}

/// A table that exists is not made again, nor touched.
pub fn s_split_7_create_is_told_apart(fixture: &mut dyn Fixture) {
    let scene = Scene::versions(fixture, 3);
    scene.put("r", "f:q", 1, "v");
    let again = scene.store().create_table(table("t", [FamilyDescriptor::new("g")]), &["m".into()]);
    assert_eq!(kind(again), Some(ErrorKind::Conflict));
    assert_eq!(scene.row("r"), ["f:q@1=v"]);
    assert_eq!(scene.store().regions(&scene.table).unwrap().len(), 1);
}

/// Regions tell which of them is written and read.
pub fn s_split_8_regions_count_their_load(fixture: &mut dyn Fixture) {
    let mut scene = Scene::versions(fixture, 1);
    scene.store().create_table(table("split", [FamilyDescriptor::new("f")]), &["m".into()]).unwrap();
    scene.table = "split".parse().unwrap();
    for row in ["a", "x", "y", "z"] {
        scene.put(row, "f:q", 1, "v");
    }
    scene.row("a");
    let told: Vec<_> =
        scene.store().regions(&scene.table).unwrap().iter().map(|r| (r.writes_count, r.reads_count)).collect();
    assert_eq!(told, [(1, 1), (3, 0)]);
}

/// Settings of storage change no answer.
pub fn s_perf_settings_change_no_answer(fixture: &mut dyn Fixture) {
    let mut families = Vec::new();
    for bloom in [BloomFilter::None, BloomFilter::Row, BloomFilter::RowColumn] {
        for compression in [Compression::None, Compression::Zstd] {
            for encoding in ["NONE", "PREFIX"] {
                families.push(FamilyDescriptor {
                    bloom,
                    compression,
                    block_encoding: encoding.into(),
                    block_bytes: 1024,
                    ..FamilyDescriptor::new(format!("f{}", families.len()))
                });
            }
        }
    }
    let count = families.len();
    let mut scene = Scene::new(fixture, families);
    let mut batch = MutationBatch::new(Durability::Os);
    for row in 0..100 {
        for family in 0..count {
            let column = format!("f{family}:q{}", row % 7);
            change(&mut batch, CellKind::Put, format!("row{row:03}").as_bytes(), &column, Some(1), b"value").unwrap();
        }
    }
    scene.apply(batch);
    scene.at_every_stage(|scene| {
        for reversed in [false, true] {
            let scan = Scan { reversed, ..Scan::all() };
            assert_eq!(scene.batches(scan).iter().map(crate::RowBatch::cells_count).sum::<usize>(), 100 * count);
        }
        assert_eq!(scene.row("row013").len(), count);
        assert_eq!(scene.row("row0130"), [""; 0]);
    });
}
