use std::sync::Arc;

use basalt_store::{Columns, FamilyDescriptor, Get, ManualClock, MemoryStore, TableDescriptor, Timestamp};

use super::*;
use crate::{Realtime, SchemaConfig, UidKind};

fn schema(realtime: Realtime) -> Schema {
    let clock = Arc::new(ManualClock::new(Timestamp(1_700_000_000_500)));
    let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as _));
    Schema::open(store, SchemaConfig { realtime, clock, ..SchemaConfig::default() }).unwrap()
}

const OFF: Realtime = Realtime { names: false, series: false, count: false, track: false, trees: false, strict: false };

/// Two batches, of three points and of one; then what the series' row holds: the counter, and whether there is an object.
fn check(realtime: Realtime, expected: (Option<i64>, bool)) {
    let schema = schema(realtime);
    let tsuid = schema.resolve("m", &[("host", "a")]).unwrap();
    for count in [3, 1] {
        schema.note_series(&tsuid);
        schema.note_points(&[(tsuid.clone(), count)]);
    }
    let get = Get::row(tsuid.as_bytes().to_vec()).with_columns(Columns::family(UID_NAME_FAMILY));
    let found = schema.store().get(&schema.tables().meta, get).wait().unwrap();
    let cell = |qualifier: &[u8]| {
        found
            .rows()
            .flat_map(|row| row.cells())
            .find(|cell| cell.qualifier == qualifier)
            .map(|cell| cell.value.to_vec())
    };
    let counter = cell(b"ts_ctr").map(|bytes| i64::from_be_bytes(bytes.try_into().unwrap()));
    let object = cell(b"ts_meta").map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!((counter, object.is_some()), expected, "{realtime:?}");
    let bytes = r#"{"tsuid":"000001000001000001","displayName":"","description":"","notes":"","created":1700000000,"custom":null,"units":"","dataType":"","retention":0,"max":"NaN","min":"NaN"}"#;
    assert!(object.is_none_or(|object| object == bytes));
    assert_eq!(schema.realtime_failures(), 0);
}

/// `S-TSMETA`: each switch does what its name says.
#[test]
fn switches_keep_objects_and_counters() {
    check(OFF, (None, false));
    check(Realtime { series: true, ..OFF }, (None, true));
    check(Realtime { count: true, ..OFF }, (Some(4), false));
    check(Realtime { track: true, ..OFF }, (Some(1), false));
    check(Realtime { series: true, track: true, ..OFF }, (Some(1), true));
    check(Realtime { series: true, count: true, track: true, ..OFF }, (Some(4), true));
}

/// `S-TSMETA`: OpenTSDB 2.4 does nothing without `tsd.core.meta.enable_tsuid_tracking`.
#[test]
fn strict_switches_do_as_opentsdb_does() {
    let off = Realtime { strict: true, ..OFF };
    check(off, (None, false));
    check(Realtime { series: true, ..off }, (None, false));
    check(Realtime { count: true, ..off }, (None, false));
    check(Realtime { series: true, count: true, ..off }, (None, false));
    check(Realtime { track: true, ..off }, (Some(1), false));
    check(Realtime { count: true, track: true, ..off }, (Some(1), false));
    check(Realtime { series: true, track: true, ..off }, (None, true));
    check(Realtime { series: true, count: true, track: true, ..off }, (Some(4), true));
}

/// `S-UIDMETA`: the object comes with the UID, in one change.
#[test]
fn new_names_get_their_objects() {
    let schema = schema(Realtime { names: true, ..OFF });
    let uid = schema.uids().of(UidKind::Tagv).uid_or_create("web01").unwrap();
    let get = Get::row(vec![0, 0, 1]).with_columns(Columns::column(UID_NAME_FAMILY, &b"tagv_meta"[..]));
    let found = schema.store().get(&schema.tables().uid, get).wait().unwrap();
    let cell = found.row(0).unwrap().cells().next().unwrap().value.to_vec();
    let bytes = r#"{"type":"TAGV","displayName":"","description":"","notes":"","created":1700000000,"custom":null}"#;
    assert_eq!(String::from_utf8(cell).unwrap(), bytes);
    assert_eq!(schema.uid_meta(UidKind::Tagv, uid).unwrap().created, 1_700_000_000);
}

/// `S-TSMETA`: an object that is deleted is made anew when the series is met again.
#[test]
fn a_deleted_object_raises_the_generation() {
    let schema = schema(Realtime { series: true, ..OFF });
    let tsuid = schema.resolve("m", &[("host", "a")]).unwrap();
    schema.note_series(&tsuid);
    let before = schema.uids().generation();
    assert!(schema.delete_ts_meta(&tsuid).unwrap());
    assert!(schema.uids().generation() > before, "who knows the series asks again");
}

/// A damaged counter refuses no point.
#[test]
fn a_cell_that_is_no_counter_is_left_alone() {
    let schema = schema(Realtime { count: true, ..OFF });
    let tsuid = schema.resolve("m", &[("host", "a")]).unwrap();
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(tsuid.as_bytes()).unwrap().put(UID_NAME_FAMILY, COUNTER_QUALIFIER, None, b"x").unwrap();
    schema.store().apply(&schema.tables().meta, batch).wait().unwrap();
    schema.note_points(&[(tsuid, 1)]);
    assert_eq!(schema.realtime_failures(), 0);
}

/// A row that the store refuses is a counter that is not kept, as where nobody answers.
#[test]
fn a_counter_whose_row_is_refused_is_told() {
    for realtime in [Realtime { count: true, ..OFF }, Realtime { track: true, ..OFF }] {
        let schema = schema(realtime);
        let tsuid = schema.resolve("m", &[("host", "a")]).unwrap();
        let (store, meta) = (schema.store(), &schema.tables().meta);
        store.drop_table(meta).unwrap();
        let other = TableDescriptor::new(meta.clone(), vec![FamilyDescriptor::new("other")]);
        store.create_table(other, &[]).unwrap();
        schema.note_points(&[(tsuid, 1)]);
        assert_eq!(schema.realtime_failures(), 1, "{realtime:?}");
    }
}
