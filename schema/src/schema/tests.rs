//! Opening, reopening and resolving over the memory store.

use std::sync::Arc;

use basalt_store::{
    Durability, ErrorKind, FamilyDescriptor, ManualClock, MemoryStore, MutationBatch, TableDescriptor, Timestamp,
};

use super::*;
use crate::{AutoCreate, BaseTime, DATA_FAMILY, RollupSettings, Rollups, Salting, UidWidth, UidWidths};

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp(1_700_000_000_000)))))
}

fn put(schema: &Schema, row: &[u8]) {
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(row).unwrap().put(DATA_FAMILY, &[0, 0], None, &[1]).unwrap();
    assert!(schema.store().apply(&schema.tables().data, batch).wait().unwrap().failed.is_empty());
}

#[test]
fn the_data_table_has_a_region_a_bucket() {
    let schema = Schema::open(memory(), SchemaConfig::default()).unwrap();
    let regions = schema.store().regions(&schema.tables().data).unwrap();
    assert_eq!(regions.len(), 16);
    assert_eq!((&regions[1].start[..], &regions[1].end[..]), (&[1][..], &[2][..]));
    assert_eq!(schema.store().list_tables().unwrap().len(), 4);
    let unsalted = SchemaConfig { salting: Salting::NONE, data_table: "plain".into(), ..SchemaConfig::default() };
    let schema = Schema::open(Arc::clone(schema.store()), unsalted).unwrap();
    assert_eq!(schema.store().regions(&schema.tables().data).unwrap().len(), 1);
}

#[test]
fn fold_and_encoding_are_named_in_the_data_family() {
    let config = SchemaConfig {
        fold: Some("f".into()),
        block_encoding: "E".into(),
        block_bytes: 4096,
        ..SchemaConfig::default()
    };
    let schema = Schema::open(memory(), config).unwrap();
    let table = schema.store().describe_table(&schema.tables().data).unwrap();
    let (_, family) = table.family(DATA_FAMILY).unwrap();
    assert_eq!((family.fold.as_deref(), &*family.block_encoding, family.versions), (Some("f"), "E", 1));
    assert_eq!(family.block_bytes, 4096);
}

#[test]
fn what_the_tables_were_made_with_may_not_change() {
    // S-KEY-SALT, S-UID-WIDTH
    let store = memory();
    let reopen = |config: SchemaConfig| {
        let checked = Schema::check_tables(&*store, &config);
        let found = Schema::open_existing(Arc::clone(&store), config.clone()).map(|_| ());
        let opened = Schema::open(Arc::clone(&store), config).map(|_| ());
        assert_eq!(format!("{checked:?}"), format!("{opened:?}"));
        if checked.is_err() {
            assert_eq!(format!("{found:?}"), format!("{opened:?}"));
        }
        opened
    };
    reopen(SchemaConfig::default()).unwrap();
    reopen(SchemaConfig { tags_max: 20, ..SchemaConfig::default() }).unwrap();
    let check = |config: SchemaConfig, expected: &str| {
        let error = reopen(config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    let salting = Salting::new(1, 20).unwrap();
    check(
        SchemaConfig { salting, ..SchemaConfig::default() },
        "salt.buckets is 20 in the configuration but 16 in table 'tsdb'",
    );
    check(
        SchemaConfig { salting: Salting::NONE, ..SchemaConfig::default() },
        "salt.width is 0 in the configuration but 1 in table 'tsdb'",
    );
    let mut config = SchemaConfig::default();
    config.widths.tagv = UidWidth::new(4).unwrap();
    check(config, "uid.width.tagv is 4 in the configuration but 3 in table 'tsdb-uid'");
}

/// As by who is given the store alone, which another was told how to make.
#[test]
fn what_tables_record_is_taken_where_it_is_not_set() {
    let made = || {
        let mut config = SchemaConfig { salting: Salting::new(2, 300).unwrap(), ..SchemaConfig::default() };
        config.widths.tagk = UidWidth::new(2).unwrap();
        config.widths.tagv = UidWidth::new(4).unwrap();
        config
    };
    let store = memory();
    let taken = |set: &[&str]| {
        let mut config = SchemaConfig::default();
        Schema::take_recorded(&*store, &mut config, |setting| set.contains(&setting)).unwrap();
        (config.salting, config.widths)
    };
    let (none, all) = (SchemaConfig::default(), made());
    assert_eq!(taken(&[]), (none.salting, none.widths), "there are no tables");
    Schema::open(Arc::clone(&store), made()).unwrap();
    assert_eq!(taken(&[]), (all.salting, all.widths));
    assert_eq!(taken(&["uid.width.tagv"]).1, UidWidths { tagv: none.widths.tagv, ..all.widths });
    for set in ["salt.width", "salt.buckets"] {
        assert_eq!(taken(&[set]).0, none.salting, "{set}");
    }
    let unsalted = memory();
    Schema::open(Arc::clone(&unsalted), SchemaConfig { salting: Salting::NONE, ..made() }).unwrap();
    let mut config = SchemaConfig::default();
    Schema::take_recorded(&*unsalted, &mut config, |_| false).unwrap();
    assert_eq!(config.salting, Salting::NONE);
}

#[test]
fn tables_that_record_nothing_are_taken_as_configured() {
    let store = memory();
    make(&store, "tsdb", &[DATA_FAMILY]);
    make(&store, "tsdb-uid", &[b"id", b"name"]);
    let config = SchemaConfig { salting: Salting::NONE, ..SchemaConfig::default() };
    Schema::open(store, config).unwrap();
}

fn make(store: &Arc<dyn Store>, name: &str, families: &[&'static [u8]]) {
    let families = families.iter().map(|family| FamilyDescriptor::new(*family)).collect();
    store.create_table(TableDescriptor::new(name.parse().unwrap(), families), &[]).unwrap();
}

fn names(store: &Arc<dyn Store>) -> Vec<String> {
    store.list_tables().unwrap().iter().map(ToString::to_string).collect()
}

/// `S-TABLES`: a slip in a setting would give points the names of others.
#[test]
fn no_uid_table_is_made_beside_points() {
    let store = memory();
    Schema::open(Arc::clone(&store), SchemaConfig::default()).unwrap();
    let before = names(&store);
    for config in [
        SchemaConfig { uid_table: "tsdb-uidd".into(), ..SchemaConfig::default() },
        // Of these points there are rollups alone.
        SchemaConfig {
            uid_table: "u".into(),
            data_table: "d".into(),
            rollups: Some(rollups("tsdb")),
            ..SchemaConfig::default()
        },
    ] {
        let uid = config.uid_table.clone();
        for open in [Schema::open, Schema::open_existing] {
            let error = open(Arc::clone(&store), config.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("there is no UID table '{uid}', but a table of points 'tsdb'")),
                "{text}"
            );
        }
    }
    assert_eq!(names(&store), before);
    // Tables of their own have names of their own.
    let other = SchemaConfig { uid_table: "b-uid".into(), data_table: "b".into(), ..SchemaConfig::default() };
    Schema::open(Arc::clone(&store), other).unwrap();
    assert_eq!(names(&store).len(), before.len() + 2);
}

fn rollups(table: &str) -> Rollups {
    let json = format!(
        r#"{{"aggregationIds":{{"sum":0}},"intervals":[
            {{"table":"{table}","preAggregationTable":"{table}","interval":"10m","rowSpan":"1d"}}]}}"#
    );
    Rollups::parse(&json, RollupSettings::default()).unwrap()
}

/// Who only reads or mends makes no table, and needs those of points and names.
#[test]
fn tools_make_no_table() {
    let store = memory();
    let open = || {
        Schema::open_existing(Arc::clone(&store), SchemaConfig { salting: Salting::NONE, ..SchemaConfig::default() })
    };
    let absent = |table: &str| {
        let error = open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().starts_with(&format!("there is no table '{table}'")), "{error}");
    };
    absent("tsdb");
    make(&store, "tsdb-uid", &[b"id", b"name"]);
    absent("tsdb");
    make(&store, "tsdb", &[DATA_FAMILY]);
    open().unwrap();
    assert_eq!(names(&store), ["tsdb", "tsdb-uid"]);
}

#[test]
fn names_become_a_series_and_back() {
    // S-KEY-TAGSORT: by UID, in the order in which names first came.
    let schema = Schema::open(memory(), SchemaConfig::default()).unwrap();
    let tsuid = schema.resolve("m", &[("zone", "z"), ("host", "b")]).unwrap();
    assert_eq!(tsuid.to_string(), "000001000001000001000002000002");
    assert_eq!(schema.resolve("m", &[("host", "b"), ("zone", "z")]).unwrap(), tsuid);
    assert_eq!(schema.find("m", &[("host", "b"), ("zone", "z")]).unwrap(), tsuid);
    let names = schema.names(&tsuid).unwrap();
    let tags: Vec<_> = names.tags.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!((&*names.metric, tags), ("m", vec![("zone", "z"), ("host", "b")]));
}

#[test]
fn unknown_names_are_refused_where_none_are_created() {
    let auto_create = AutoCreate { metric: false, ..AutoCreate::default() };
    let schema = Schema::open(memory(), SchemaConfig { auto_create, ..SchemaConfig::default() }).unwrap();
    let error = schema.resolve("x", &[("host", "a")]).unwrap_err();
    assert_eq!(error.to_string(), "No such name for 'metrics': 'x'");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    schema.uids().of(UidKind::Metric).create("x").unwrap();
    schema.resolve("x", &[("host", "a")]).unwrap();
    assert_eq!(schema.find("x", &[("no", "a")]).unwrap_err().to_string(), "No such name for 'tagk': 'no'");
    assert!(schema.resolve("x y", &[("host", "a")]).is_err());
}

/// By a kind that says so, names would be refused, and rows taken for orphans, that have names in a table which is back soon.
#[test]
fn a_name_is_not_unknown_since_its_table_is_gone() {
    let schema = Schema::open(memory(), SchemaConfig::default()).unwrap();
    schema.store().drop_table(&schema.tables().uid).unwrap();
    let unread = [
        schema.find("x", &[("host", "a")]).map(drop).unwrap_err(),
        schema.uids().of(UidKind::Metric).name(Uid::new(1)).map(drop).unwrap_err(),
    ];
    for error in unread {
        assert_eq!(error.kind(), ErrorKind::Bug, "{error}");
    }
}

#[test]
fn the_index_is_read_back_from_row_keys() {
    let schema = Schema::open(memory(), SchemaConfig::default()).unwrap();
    let tsuids: Vec<_> =
        ["a", "b", "c"].iter().map(|host| schema.resolve("m", &[("host", host), ("dc", "x")]).unwrap()).collect();
    for tsuid in &tsuids {
        let series = schema.layout().series_key(tsuid);
        for seconds in [0, 3600, 1_700_000_000] {
            put(&schema, &series.row_key(BaseTime::of_seconds(seconds)));
        }
    }
    put(&schema, &schema.layout().global_annotations_key(BaseTime::of_seconds(0)));
    put(&schema, b"foreign");
    assert!(schema.index().is_empty());

    let again = Schema::open(Arc::clone(schema.store()), SchemaConfig::default()).unwrap();
    assert_eq!(again.rebuilt(), RebuildReport { rows_count: 9, rows_skipped: 2, ..RebuildReport::default() });
    let index = again.index();
    let metric = tsuids[0].metric(index.widths());
    let found: Vec<_> = index.tsuids(&index.series(metric)).into_iter().map(|(_, tsuid)| tsuid).collect();
    assert_eq!(found, tsuids);
    let host_b = tsuids[1].pairs(index.widths()).next().unwrap();
    assert_eq!(index.with_tag(metric, host_b).len(), 1);
}

#[test]
fn tables_that_others_write_too_are_not_read_at_open() {
    let schema = Schema::open(memory(), SchemaConfig::default()).unwrap();
    let tsuid = schema.resolve("m", &[("host", "a")]).unwrap();
    put(&schema, &schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(0)));
    let config = SchemaConfig { is_shared: true, ..SchemaConfig::default() };
    let shared = Schema::open(Arc::clone(schema.store()), config).unwrap();
    assert!(shared.index().is_empty());
    assert_eq!(shared.rebuilt(), RebuildReport::default());
}

/// `S-UID-RANDOM`: OpenTSDB draws no more than seven bytes.
#[test]
fn random_uids_have_a_largest_width() {
    let widths = UidWidths { metric: UidWidth::new(8).unwrap(), ..UidWidths::default() };
    let config = SchemaConfig { widths, random_metrics: Some(UidDice::new(|| 1)), ..SchemaConfig::default() };
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
    assert!(matches!(Schema::open(store, config), Err(Error::RandomWidth { width: 8, max: 7 })));
}

/// `S-UID-WIDTH`: every width from 1 to 8 makes series that are read back.
#[test]
fn uids_of_every_width_make_series() {
    for bytes in 1..=8 {
        let width = UidWidth::new(bytes).unwrap();
        let config =
            SchemaConfig { widths: UidWidths { metric: width, tagk: width, tagv: width }, ..SchemaConfig::default() };
        let schema = Schema::open(Arc::new(MemoryStore::new(Arc::new(ManualClock::default()))), config).unwrap();
        let tsuid = schema.resolve("m", &[("host", "a"), ("dc", "x")]).unwrap();
        assert_eq!(tsuid.as_bytes().len(), usize::from(bytes) * 5);
        assert_eq!(schema.names(&tsuid).unwrap().tags.len(), 2);
        assert_eq!(Tsuid::parse(&tsuid.to_string(), schema.layout().widths).unwrap(), tsuid);
    }
}
