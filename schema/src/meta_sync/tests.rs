use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_store::{CheckAndMutate, ManualClock, MemoryStore, Pending, Store};

use super::*;
use crate::{BaseTime, SchemaConfig};

/// A series with rows at two hours and one at a third, as they were put to the real server.
fn schema(realtime: Realtime) -> Schema {
    schema_on(Arc::new(MemoryStore::new(Arc::new(ManualClock::default()))), realtime)
}

fn schema_on(store: Arc<dyn Store>, realtime: Realtime) -> Schema {
    let schema = Schema::open(store, SchemaConfig { realtime, ..SchemaConfig::default() }).unwrap();
    for (host, hour) in [("x", 1_356_998_400), ("x", 1_357_009_200), ("y", 1_357_002_000)] {
        let tsuid = schema.resolve("a.m", &[("host", host)]).unwrap();
        let key = schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(hour));
        let mut batch = MutationBatch::new(Durability::Fsync);
        batch.row(&key).unwrap().put(DATA_FAMILY, &[0, 0], None, &[1]).unwrap();
        schema.store().apply(&schema.tables().data, batch).wait().unwrap();
    }
    schema
}

/// Every cell of family `name` in both tables but the reverse maps: row in hex, column, value.
fn cells(schema: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    for table in [&schema.tables().uid, &schema.tables().meta] {
        let scan = Scan::all().with_columns(Columns::family(UID_NAME_FAMILY));
        let mut scanner = schema.store().scan(table, scan).unwrap();
        while let Some(batch) = scanner.next_wait() {
            for row in batch.unwrap().rows() {
                let cells = row.cells().filter(|cell| cell.qualifier.contains(&b'_'));
                found.extend(cells.map(|cell| {
                    let row = crate::hex::lower(row.key());
                    format!("{row} {} {}", cell.qualifier.escape_ascii(), cell.value.escape_ascii()).replace('\\', "")
                }));
            }
        }
    }
    found
}

const NAMES: [&str; 4] = [
    r#"000001 metric_meta {"type":"METRIC","displayName":"","description":"","notes":"","created":1356998400,"custom":null}"#,
    r#"000001 tagk_meta {"type":"TAGK","displayName":"","description":"","notes":"","created":1356998400,"custom":null}"#,
    r#"000001 tagv_meta {"type":"TAGV","displayName":"","description":"","notes":"","created":1356998400,"custom":null}"#,
    r#"000002 tagv_meta {"type":"TAGV","displayName":"","description":"","notes":"","created":1357002000,"custom":null}"#,
];
const COUNTERS: [&str; 2] =
    ["000001000001000001 ts_ctr x00x00x00x00x00x00x00x01", "000001000001000002 ts_ctr x00x00x00x00x00x00x00x01"];
const OBJECTS: [&str; 2] = [
    r#"000001000001000001 ts_meta {"tsuid":"000001000001000001","displayName":"","description":"","notes":"","created":1356998400,"custom":null,"units":"","dataType":"","retention":0,"max":"NaN","min":"NaN"}"#,
    r#"000001000001000002 ts_meta {"tsuid":"000001000001000002","displayName":"","description":"","notes":"","created":1357002000,"custom":null,"units":"","dataType":"","retention":0,"max":"NaN","min":"NaN"}"#,
];

/// `C-META`: what the real server's tables held after the same puts and one, then two runs of its `uid metasync`.
#[test]
fn a_sync_makes_the_servers_cells() {
    let whole = [&NAMES[..], &[COUNTERS[0], OBJECTS[0], COUNTERS[1], OBJECTS[1]]].concat();
    let strict = schema(Realtime { strict: true, ..Realtime::default() });
    let done = strict.sync_metas().unwrap();
    assert_eq!((done.series, done.names_changed, done.counters_made, done.series_made), (2, 4, 2, 0));
    assert_eq!(cells(&strict), [&NAMES[..], &COUNTERS].concat());
    assert_eq!(strict.sync_metas().unwrap(), MetaSync { series: 2, series_made: 2, ..MetaSync::default() });
    assert_eq!(cells(&strict), whole);
    let ours = schema(Realtime::default());
    assert_eq!(ours.sync_metas().unwrap().series_made, 2);
    assert_eq!(cells(&ours), whole, "at once, where OpenTSDB needs two runs");
    assert_eq!(ours.sync_metas().unwrap(), MetaSync { series: 2, ..MetaSync::default() });
}

/// `C-META`: a time within the first row's hour stays, a later one is set back; what people wrote stays.
#[test]
fn times_are_set_back_to_the_first_row() {
    let schema = schema(Realtime::default());
    let [inside, later] = ["x", "y"].map(|host| schema.find("a.m", &[("host", host)]).unwrap());
    let said = |created| TsMetaEdit { created: Some(created), notes: Some("n".into()), ..TsMetaEdit::default() };
    schema.create_ts_meta(&inside, &said(1_356_998_400 + 3600)).unwrap();
    schema.create_ts_meta(&later, &said(1_357_002_000 + 3601)).unwrap();
    assert_eq!(schema.sync_metas().unwrap().series_changed, 1);
    let told = |tsuid| schema.ts_meta(tsuid).unwrap().unwrap().said;
    assert_eq!((told(&inside).created, &*told(&inside).notes), (1_356_998_400 + 3600, "n"));
    assert_eq!((told(&later).created, &*told(&later).notes), (1_357_002_000, "n"));
}

/// `C-META`: OpenTSDB's own leaves tagv 000002, beyond its largest metric.
#[test]
fn a_purge_removes_all_of_it_and_no_name() {
    let schema = schema(Realtime::default());
    schema.sync_metas().unwrap();
    assert_eq!(schema.purge_metas().unwrap(), MetaPurge { names: 4, series: 4 });
    assert_eq!(cells(&schema), [""; 0]);
    assert_eq!(&*schema.uids().of(UidKind::Tagv).name(Uid::new(2)).unwrap(), "y");
    assert_eq!(schema.purge_metas().unwrap(), MetaPurge::default());
}

/// `C-META`: a series one of whose names is gone is passed over, the others are not.
#[test]
fn a_lost_name_ends_nothing() {
    let schema = schema(Realtime::default());
    schema.uids().of(UidKind::Tagv).delete("x").unwrap();
    let done = schema.sync_metas().unwrap();
    assert_eq!((done.series, done.series_made, done.skipped), (2, 1, 2), "the name and its series");
}

/// A store that counts the waits for its disk.
#[derive(Debug)]
struct CountedStore {
    store: MemoryStore,
    syncs: AtomicU64,
}

impl basalt_store::Forward for CountedStore {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    fn check_and_mutate(&self, table: &TableName, check: CheckAndMutate) -> Pending<bool> {
        self.syncs.fetch_add(u64::from(check.mutation.durability() == Durability::Fsync), Ordering::Relaxed);
        self.store.check_and_mutate(table, check)
    }

    fn sync(&self) -> Pending<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.store.sync()
    }
}

/// `C-META`: millions of names would wait for the disk for hours.
#[test]
fn a_sync_waits_for_the_disk_once() {
    let store = MemoryStore::new(Arc::new(ManualClock::default()));
    let store = Arc::new(CountedStore { store, syncs: AtomicU64::new(0) });
    let schema = schema_on(Arc::<CountedStore>::clone(&store), Realtime::default());
    let later = schema.find("a.m", &[("host", "y")]).unwrap();
    let said = TsMetaEdit { created: Some(2_000_000_000), ..TsMetaEdit::default() };
    schema.create_ts_meta(&later, &said).unwrap();
    store.syncs.store(0, Ordering::Relaxed);
    let done = schema.sync_metas().unwrap();
    assert_eq!((done.names_changed, done.series_made, done.series_changed), (4, 1, 1));
    assert_eq!(store.syncs.load(Ordering::Relaxed), 1);
}
