//! The UID maps over the memory store: layout, races, renames, bounds, damage.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use basalt_store::{
    Clock, ErrorKind, Get, ManualClock, MemoryStore, MutationBatch, Pending, RowBatch, RowChange, Scan, Timestamp,
    Trigger,
};
use bytes::Bytes;

use super::*;
use crate::uids::Uids;
use crate::{SchemaConfig, Tables, UidWidths};

mod kept;

/// A store whose clock goes on by a millisecond whenever it is read.
fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(Ticking(AtomicU64::new(1_700_000_000_000)))))
}

#[derive(Debug)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The UIDs of a daemon of its own on `store`.
fn daemon(store: &Arc<dyn Store>, config: &SchemaConfig) -> Uids {
    let tables = Tables::named(config).unwrap();
    tables.open(&**store, config).unwrap();
    Uids::new(store, &tables.uid, config, &Arc::new(NameRules::default()))
}

fn metrics(uids: &Uids) -> &UidTable {
    uids.of(UidKind::Metric)
}

fn create(table: &UidTable, names: &[&str]) {
    for name in names {
        table.uid_or_create(name).unwrap();
    }
}

fn put(table: &UidTable, row: &[u8], family: &[u8], value: &[u8]) {
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(row).unwrap().put(family, table.kind.qualifier().as_bytes(), None, value).unwrap();
    table.store.apply(&table.table, batch).wait().unwrap();
}

/// Every cell of the UID table as the dump prints it.
fn dumped(table: &UidTable) -> Vec<String> {
    let mut scanner = table.store.scan(&table.table, Scan::range(Bytes::new(), Bytes::new())).unwrap();
    let mut lines = Vec::new();
    while let Some(batch) = scanner.next_wait() {
        for row in batch.unwrap().rows() {
            lines.extend(row.cells().map(|cell| {
                let family = std::str::from_utf8(cell.family).unwrap();
                let [row, qualifier, value] = [row.key(), cell.qualifier, cell.value].map(hex::lower);
                format!("{row} {family} {qualifier} {value}")
            }));
        }
    }
    lines.sort();
    lines
}

#[test]
fn the_table_is_the_servers_byte_for_byte() {
    // S-UID-FWD, S-UID-REV, S-UID-COUNTER
    let golden = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/raw-rows.txt")).unwrap();
    let section = golden.lines().skip_while(|line| *line != "## tsdb-uid").skip(1).take_while(|line| !line.is_empty());
    let mut expected: Vec<_> = section.map(str::to_owned).collect();
    expected.sort();
    let uids = daemon(&memory(), &SchemaConfig::default());
    let names = ["int.w", "flt.w", "tel.w", "ms.w", "mix.w", "edge.w", "dup.w", "tag.w", "ann.w"];
    create(metrics(&uids), &names);
    create(uids.of(UidKind::Tagk), &["host", "app", "zone"]);
    create(uids.of(UidKind::Tagv), &["a", "c", "z", "b"]);
    assert_eq!(dumped(metrics(&uids)), expected);
}

#[test]
fn a_name_keeps_its_uid() {
    let store = memory();
    let uids = daemon(&store, &SchemaConfig::default());
    let table = metrics(&uids);
    assert_eq!(table.uid_or_create("a").unwrap(), Uid::new(1));
    assert_eq!(table.uid_or_create("b").unwrap(), Uid::new(2));
    uids.drop_caches();
    assert_eq!(table.uid_or_create("a").unwrap(), Uid::new(1));
    assert_eq!((table.uid("b").unwrap(), &*table.name(Uid::new(2)).unwrap()), (Uid::new(2), "b"));
    assert_eq!(metrics(&daemon(&store, &SchemaConfig::default())).uid("a").unwrap(), Uid::new(1));
    assert_eq!(table.usage().unwrap(), UidUsage { used: 2, available: 16_777_213 });
    assert_eq!(uids.of(UidKind::Tagk).usage().unwrap(), UidUsage { used: 0, available: 16_777_215 });
}

#[test]
fn what_is_unknown_is_said_and_asked_again() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let error = table.uid("x").unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::NotFound, "No such name for 'metrics': 'x'".into()));
    let error = table.name(Uid::new(128)).unwrap_err();
    assert_eq!(error.to_string(), "No such unique ID for 'metrics': [0, 0, -128]");
    assert!(table.name(Uid::new(u64::MAX)).is_err());
    assert!(table.uid("").is_err());
    table.create("x").unwrap();
    assert_eq!(table.uid("x").unwrap(), Uid::new(1));
    assert_eq!(table.create("x").unwrap_err().to_string(), "Name already exists with UID: 000001");
    assert!(table.uid_or_create("a b").is_err());
}

#[test]
fn one_assignment_of_a_name_at_a_time() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _caller in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                for name in 0..50 {
                    metrics(&uids).uid_or_create(&format!("m{name}")).unwrap();
                }
            });
        }
    });
    assert_eq!(metrics(&uids).usage().unwrap().used, 50);
}

#[test]
fn daemons_on_one_store_agree() {
    // S-UID-CAS
    let store = memory();
    let config = SchemaConfig::default();
    let daemons = [0; 4].map(|_| daemon(&store, &config));
    let barrier = Barrier::new(daemons.len());
    std::thread::scope(|scope| {
        for uids in &daemons {
            scope.spawn(|| {
                barrier.wait();
                for name in 0..100 {
                    metrics(uids).uid_or_create(&format!("m{name}")).unwrap();
                }
            });
        }
    });
    for name in 0..100 {
        let name = format!("m{name}");
        let uid = metrics(&daemons[0]).uid(&name).unwrap();
        assert!(daemons.iter().all(|uids| metrics(uids).uid(&name).unwrap() == uid));
        assert_eq!(&*metrics(&daemons[1]).name(uid).unwrap(), name);
    }
}

#[test]
fn who_loses_the_race_takes_the_winners_uid() {
    // S-UID-CAS: between the look and the last step another daemon gave the name its UID.
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let winner = table.uid_or_create("a").unwrap();
    assert_eq!(table.assign("a", Durability::Fsync).unwrap(), winner);
    assert_eq!(table.usage().unwrap().used, 2);
    // The UID that was drawn in vain has no name: `uid fsck` would find it.
    assert_eq!(table.name(Uid::new(2)).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(table.uid_or_create("b").unwrap(), Uid::new(3));
}

#[test]
fn a_uid_with_a_name_is_never_given_again() {
    // S-UID-CAS: the counter was set back.
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    create(table, &["a", "b"]);
    put(table, COUNTER_ROW, UID_ID_FAMILY, &0u64.to_be_bytes());
    assert_eq!(table.uid_or_create("c").unwrap(), Uid::new(3));
    assert_eq!(&*table.name(Uid::new(1)).unwrap(), "a");
    put(table, COUNTER_ROW, UID_ID_FAMILY, &0u64.to_be_bytes());
    assert!(matches!(table.uid_or_create("d"), Err(Error::AssignmentFailed { attempts: 3, .. })));
    assert_eq!(table.uid_or_create("d").unwrap(), Uid::new(4));
}

#[test]
fn a_full_width_is_an_error() {
    // S-UID-WIDTH
    let widths = UidWidths { metric: UidWidth::new(1).unwrap(), ..UidWidths::default() };
    let uids = daemon(&memory(), &SchemaConfig { widths, ..SchemaConfig::default() });
    let table = metrics(&uids);
    put(table, COUNTER_ROW, UID_ID_FAMILY, &254u64.to_be_bytes());
    assert_eq!(table.uid_or_create("last").unwrap(), Uid::new(255));
    let error = table.uid_or_create("more").unwrap_err();
    assert_eq!(error.to_string(), "All Unique IDs for metrics on 1 bytes are already assigned!");
    assert_eq!(table.uid_or_create("last").unwrap(), Uid::new(255));
    assert_eq!(table.usage().unwrap(), UidUsage { used: 255, available: 0 });
}

/// Each point with a new name asks for one, which changes nothing: the log would grow by points that nobody stores.
#[test]
fn where_no_uid_is_left_the_counter_stands_still() {
    // S-UID-WIDTH
    let widths = UidWidths { metric: UidWidth::new(1).unwrap(), ..UidWidths::default() };
    let uids = daemon(&memory(), &SchemaConfig { widths, ..SchemaConfig::default() });
    let table = metrics(&uids);
    put(table, COUNTER_ROW, UID_ID_FAMILY, &253u64.to_be_bytes());
    assert_eq!(table.usage_seen().used, 0);
    create(table, &["a", "b"]);
    assert_eq!(table.usage_seen(), UidUsage { used: 255, available: 0 });
    for name in ["c", "d", "e"] {
        assert!(matches!(table.uid_or_create(name), Err(Error::UidsExhausted { .. })));
        assert_eq!(table.counter().unwrap(), Some(255));
    }
    // As where the table was put back.
    put(table, COUNTER_ROW, UID_ID_FAMILY, &7u64.to_be_bytes());
    assert_eq!(table.uid_or_create("f").unwrap(), Uid::new(8));
}

#[test]
fn a_rename_keeps_the_uid() {
    // S-UID-RENAME
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let uid = table.uid_or_create("old").unwrap();
    table.uid_or_create("taken").unwrap();
    table.name(uid).unwrap();
    let generation = uids.generation();
    let error = table.rename("old", "taken").unwrap_err();
    assert_eq!(
        error.to_string(),
        "When trying rename(\"old\", \"taken\") on UniqueId(tsdb-uid, metrics, 3): new name already \
         assigned ID=[0, 0, 2]"
    );
    assert!(table.rename("old", "old").is_err() && table.rename("old", "a b").is_err());
    assert!(table.rename("none", "new").is_err());
    assert_eq!(uids.generation(), generation);
    table.rename("old", "new").unwrap();
    assert_ne!(uids.generation(), generation);
    assert_eq!((table.uid("new").unwrap(), &*table.name(uid).unwrap()), (uid, "new"));
    assert!(table.uid("old").is_err());
    assert_eq!(table.uid("taken").unwrap(), Uid::new(2));
}

/// One that no point may have is given no UID, and takes none.
#[test]
fn a_name_that_is_too_long_for_a_point_gets_no_uid() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let [longest, long] = [1024, 1025].map(|bytes| "x".repeat(bytes));
    for refused in [table.create(&long), table.uid_or_create(&"x".repeat(40_000))] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().ends_with("bytes, and 1024 are allowed"), "{error}");
    }
    assert_eq!(table.create(&longest).unwrap(), Uid::new(1));
    assert!(table.rename(&longest, &long).is_err());
    assert_eq!(table.uid(&longest).unwrap(), Uid::new(1));
}

#[test]
fn a_rename_that_a_crash_cut_is_finished_by_the_next() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let uid = table.uid_or_create("old").unwrap();
    put(table, b"new", UID_ID_FAMILY, &uid.encode(table.width));
    table.rename("old", "new").unwrap();
    assert_eq!((table.uid("new").unwrap(), &*table.name(uid).unwrap()), (uid, "new"));
    assert!(table.uid("old").is_err());
}

/// Refuses one change of such a row.
#[derive(Debug, Default)]
struct Refuse(Mutex<Option<Vec<u8>>>);

impl Trigger for Refuse {
    fn name(&self) -> &'static str {
        "refuse"
    }

    fn before(&self, change: &RowChange<'_>, _more: &mut MutationBatch) -> basalt_store::Result<()> {
        let refused = self.0.lock().unwrap().take_if(|row| *row == change.row.key());
        refused.map_or(Ok(()), |_| Err(basalt_store::Error::Closed))
    }
}

/// Nobody knows whether a change that failed was made, or is made later, by this daemon or by another.
#[test]
fn a_change_that_fails_on_its_way_leaves_nothing_stale_in_memory() {
    let refuse = Arc::new(Refuse::default());
    let clock = Arc::new(Ticking(AtomicU64::new(1_700_000_000_000)));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock).with_triggers(vec![Arc::clone(&refuse) as _]));
    let [uids, other] = [0; 2].map(|_| daemon(&store, &SchemaConfig::default()));
    let table = metrics(&uids);
    let mut guarded = store.describe_table(&table.table).unwrap();
    guarded.attributes.insert("TRIGGERS".into(), "refuse".into());
    store.alter_table(guarded).unwrap();
    let uid = table.uid_or_create("from").unwrap();
    let row = uid.encode(table.width);
    for failing in [&b"to"[..], &row, b"from"] {
        table.name(uid).unwrap();
        let before = uids.generation();
        *refuse.0.lock().unwrap() = Some(failing.to_vec());
        assert_eq!(table.rename("from", "to").unwrap_err().kind(), ErrorKind::Unavailable);
        assert_ne!(uids.generation(), before, "{failing:?}");
    }
    metrics(&other).rename("from", "to").unwrap();
    assert_eq!(table.uid("from").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!((table.uid("to").unwrap(), &*table.name(uid).unwrap()), (uid, "to"));
    // Its forward cell goes, its reverse cell does not.
    *refuse.0.lock().unwrap() = Some(row.to_vec());
    assert_eq!(table.delete("to").unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(table.uid("to").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_look_up_that_a_change_overtakes_is_not_cached() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let uid = table.create("a").unwrap();
    let overtaken = |from: &str, change: &dyn Fn()| {
        let found = table.cached_uid(from, || {
            let read = table.stored_uid(from)?.unwrap();
            change();
            Ok(read)
        });
        assert_eq!(found.unwrap(), uid);
        assert!(!table.uids.contains_key(from));
    };
    overtaken("a", &|| table.rename("a", "b").unwrap());
    assert!(table.uid("a").is_err());
    overtaken("b", &|| uids.drop_caches());
    assert_eq!(table.uid("b").unwrap(), uid);
    let named = table.cached(&table.names, &uid, || {
        let read = table.stored_name(uid)?.unwrap();
        table.rename("b", "c")?;
        Ok(read)
    });
    assert_eq!((&*named.unwrap(), &*table.name(uid).unwrap()), ("b", "c"));
    uids.drop_caches();
    overtaken("c", &|| table.delete("c").unwrap());
    assert!(table.uid("c").is_err() && table.name(uid).is_err());
}

/// A store that answers a get of one row only when told to, with what was there before.
#[derive(Debug)]
struct Slow {
    store: Arc<dyn Store>,
    row: Bytes,
    asked: Sender<()>,
    answers: Mutex<Receiver<()>>,
}

impl basalt_store::Forward for Slow {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch> {
        let is_slow = get.rows.contains(&self.row);
        let batch = self.store.get(table, get).wait();
        if is_slow {
            self.asked.send(()).unwrap_or_default();
            self.answers.lock().unwrap().recv().unwrap_or_default();
        }
        Pending::ready(batch)
    }
}

/// Runs `meanwhile` while a get of `row` that `slow` asks for has no answer. Fails where it waits for that.
fn while_unanswered(
    row: &[u8],
    slow: impl Fn(&UidTable) + Send + Sync,
    meanwhile: impl Fn(&Uids) + Send + Sync,
) -> Uids {
    let ((asked, is_asked), (answer, answers)) = (channel(), channel());
    let store = memory();
    create(metrics(&daemon(&store, &SchemaConfig::default())), &["a", "slow", "other"]);
    let store: Arc<dyn Store> =
        Arc::new(Slow { store, row: Bytes::copy_from_slice(row), asked, answers: Mutex::new(answers) });
    let uids = daemon(&store, &SchemaConfig::default());
    std::thread::scope(|scope| {
        scope.spawn(|| slow(metrics(&uids)));
        is_asked.recv().unwrap();
        let (ended, is_over) = channel();
        let uids = &uids;
        let meanwhile = &meanwhile;
        scope.spawn(move || {
            meanwhile(uids);
            ended.send(()).unwrap();
        });
        let over = is_over.recv_timeout(Duration::from_secs(10));
        // All gets from now on are answered at once.
        drop(answer);
        over.expect("it waits for the get of another name");
    });
    uids
}

/// Over HBase a get may take a minute.
#[test]
fn a_slow_look_up_holds_up_no_other() {
    let uids = while_unanswered(
        b"slow",
        |table| assert_eq!(table.uid("slow").unwrap(), Uid::new(2)),
        |uids| {
            let table = metrics(uids);
            uids.drop_caches();
            assert_eq!(table.uid("a").unwrap(), Uid::new(1));
            table.rename("a", "b").unwrap();
            assert_eq!((table.uid("b").unwrap(), &*table.name(Uid::new(1)).unwrap()), (Uid::new(1), "b"));
            table.delete("other").unwrap();
            assert_eq!(table.uid_or_create("new").unwrap(), Uid::new(4));
            assert_eq!(table.create("newer").unwrap(), Uid::new(5));
        },
    );
    assert_eq!(metrics(&uids).uid("slow").unwrap(), Uid::new(2));
}

#[test]
fn a_slow_rename_holds_up_no_look_up() {
    let uids = while_unanswered(
        b"slow",
        |table| table.rename("slow", "fast").unwrap(),
        |uids| {
            let table = metrics(uids);
            assert_eq!((table.uid("a").unwrap(), &*table.name(Uid::new(1)).unwrap()), (Uid::new(1), "a"));
            assert_eq!(table.names(&[Uid::new(2), Uid::new(3)]).unwrap(), ["slow".into(), "other".into()]);
            uids.drop_caches();
            assert_eq!(table.uid_or_create("new").unwrap(), Uid::new(4));
        },
    );
    let table = metrics(&uids);
    assert!(table.uid("slow").is_err());
    assert_eq!((table.uid("fast").unwrap(), &*table.name(Uid::new(2)).unwrap()), (Uid::new(2), "fast"));
}

/// Names that were read at once before a rename are answered and not kept.
#[test]
fn names_that_a_rename_overtakes_are_not_cached() {
    let uids = while_unanswered(
        &[0, 0, 3],
        |table| assert_eq!(table.names(&[Uid::new(1), Uid::new(3)]).unwrap(), ["a".into(), "other".into()]),
        |uids| metrics(uids).rename("a", "b").unwrap(),
    );
    assert_eq!(&*metrics(&uids).name(Uid::new(1)).unwrap(), "b");
}

#[test]
fn no_reader_keeps_what_a_rename_changed() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let uid = table.uid_or_create("a").unwrap();
    std::thread::scope(|scope| {
        for _reader in 0..3 {
            scope.spawn(|| {
                for _look in 0..2000 {
                    let found = [table.uid("a"), table.uid("b")];
                    assert!(found.into_iter().flatten().all(|found| found == uid));
                    table.name(uid).unwrap();
                }
            });
        }
        for (from, to) in [("a", "b"), ("b", "a")].into_iter().cycle().take(400) {
            table.rename(from, to).unwrap();
            assert!(table.uid(from).is_err());
            assert_eq!((table.uid(to).unwrap(), &*table.name(uid).unwrap()), (uid, to));
        }
    });
}

#[test]
fn a_deleted_name_is_gone_and_its_uid_is_not_given_again() {
    // S-UID-DELETE
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    let uid = table.uid_or_create("a").unwrap();
    table.name(uid).unwrap();
    uids.of(UidKind::Tagk).uid_or_create("a").unwrap();
    let generation = uids.generation();
    table.delete("a").unwrap();
    assert_ne!(uids.generation(), generation);
    assert!(table.uid("a").is_err() && table.name(uid).is_err() && table.delete("a").is_err());
    assert_eq!(uids.of(UidKind::Tagk).uid("a").unwrap(), uid);
    assert_eq!(table.uid_or_create("a").unwrap(), Uid::new(2));
    uids.drop_caches();
    assert_eq!(table.uid("a").unwrap(), Uid::new(2));
}

#[test]
fn a_name_created_in_the_millisecond_it_was_deleted_is_not_lost() {
    let clock = Arc::new(ManualClock::new(Timestamp(1)));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let uids = daemon(&store, &SchemaConfig::default());
    let table = metrics(&uids);
    create(table, &["a", "b"]);
    clock.advance(1);
    table.delete("a").unwrap();
    let again = table.uid_or_create("a").unwrap();
    table.rename("b", "c").unwrap();
    table.rename("c", "b").unwrap();
    uids.drop_caches();
    assert_eq!((table.uid("a").unwrap(), table.uid("b").unwrap()), (again, Uid::new(2)));
    // Put, deleted and put all within one: refused until the clock goes on, never stored where nobody finds it.
    table.delete("a").unwrap();
    assert!(matches!(table.uid_or_create("a"), Err(Error::AssignmentFailed { .. })));
    clock.advance(1);
    let again = table.uid_or_create("a").unwrap();
    uids.drop_caches();
    assert_eq!(table.uid("a").unwrap(), again);
}

#[test]
fn suggestions_come_in_byte_order() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    create(table, &["sys.mem", "Sys", "sys.cpu", "é", "sys", "-"]);
    uids.of(UidKind::Tagk).uid_or_create("sys.tag").unwrap();
    let check = |prefix, max, expected: &[&str]| assert_eq!(table.suggest(prefix, max).unwrap(), expected);
    check("", usize::MAX, &["-", "Sys", "sys", "sys.cpu", "sys.mem", "é"]);
    check("sys", usize::MAX, &["sys", "sys.cpu", "sys.mem"]);
    check("sys.", 1, &["sys.cpu"]);
    check("sys", 0, &[]);
    check("x", 25, &[]);
}

/// It is no damage that the name of the counters' row has no UID.
#[test]
fn the_row_of_the_counters_is_no_name() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    create(table, &["m"]);
    assert_eq!(table.uid("\0").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(table.suggest("\0", 25).unwrap(), [""; 0]);
}

#[test]
fn damaged_cells_are_told() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    put(table, b"bad", UID_ID_FAMILY, &[1, 2]);
    let error = table.uid("bad").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("the UID of metrics 'bad' has 2 bytes, expected 3"));
    put(table, COUNTER_ROW, UID_ID_FAMILY, &[1]);
    assert_eq!(table.usage().unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(table.uid_or_create("new").is_err());
}

/// `S-UID-LATIN1`
#[test]
fn latin_1_names_are_readable() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    put(table, &[0, 0, 9], UID_NAME_FAMILY, b"temp\xE9rature");
    assert_eq!(&*table.name(Uid::new(9)).unwrap(), "température");
}

/// `S-UID-LATIN1`: a name that OpenTSDB wrote is found by what is printed of it, and gets no second UID.
#[test]
fn latin_1_names_are_found_renamed_and_deleted() {
    let store = memory();
    let uids = daemon(&store, &SchemaConfig::default());
    let table = uids.of(UidKind::Tagv);
    let opentsdbs = |uid: u8, name: &[u8]| {
        put(table, name, UID_ID_FAMILY, &[0, 0, uid]);
        put(table, &[0, 0, uid], UID_NAME_FAMILY, name);
    };
    put(table, COUNTER_ROW, UID_ID_FAMILY, &9u64.to_be_bytes());
    opentsdbs(7, b"Z\xFCrich");
    opentsdbs(8, b"Gen\xE8ve");
    let cold = daemon(&store, &SchemaConfig::default());
    assert_eq!(cold.preload(100).unwrap(), 2);
    let zurich = Uid::new(7);
    assert_eq!(table.uid("Zürich").unwrap(), zurich);
    assert_eq!(table.uid_or_create("Zürich").unwrap(), zurich);
    assert!(matches!(table.create("Zürich"), Err(Error::NameExists { .. })));
    assert!(matches!(table.rename("Genève", "Zürich"), Err(Error::RenameTaken { .. })));
    table.rename("Zürich", "Bern").unwrap();
    assert!(table.uid("Zürich").is_err());
    assert_eq!((table.uid("Bern").unwrap(), &*table.name(zurich).unwrap()), (zurich, "Bern"));
    table.delete("Genève").unwrap();
    assert!(table.uid("Genève").is_err() && table.name(Uid::new(8)).is_err());
    assert_eq!(table.uid_or_create("Genève").unwrap(), Uid::new(10));
    let rows: Vec<_> = dumped(table).into_iter().filter(|line| line.contains(" id ")).collect();
    assert!(!rows.iter().any(|line| line.starts_with("5afc") || line.starts_with("47656ee8")), "{rows:?}");
}

/// `S-UID-LATIN1`: bytes that are UTF-8 are that, whatever they would be in Latin-1.
#[test]
fn what_is_utf_8_is_no_latin_1_name() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    create(table, &["ê"]);
    assert!(table.uid("Ãª").is_err());
    assert_eq!(table.uid_or_create("Ãª").unwrap(), Uid::new(2));
    assert_eq!(table.uid("ê").unwrap(), Uid::new(1));
}

/// `S-UID-LATIN1`
#[test]
fn suggestions_have_latin_1_names_after_the_others() {
    let uids = daemon(&memory(), &SchemaConfig::default());
    let table = metrics(&uids);
    create(table, &["züge", "Ãx", "é", "zug"]);
    put(table, b"z\xFCrich", UID_ID_FAMILY, &[0, 0, 9]);
    put(table, b"\xC3x", UID_ID_FAMILY, &[0, 0, 10]);
    let check = |prefix, max, expected: &[&str]| assert_eq!(table.suggest(prefix, max).unwrap(), expected);
    check("z", usize::MAX, &["zug", "züge", "zürich"]);
    check("zü", usize::MAX, &["züge", "zürich"]);
    check("zü", 1, &["züge"]);
    check("zür", usize::MAX, &["zürich"]);
    check("Ã", usize::MAX, &["Ãx", "Ãx"]);
    check("т", usize::MAX, &[]);
}

/// `S-UID-RANDOM`: the dice decide, a taken UID is drawn again, ten times at most; the counter stays away.
#[test]
fn random_uids_of_metrics_are_drawn_until_one_is_free() {
    let rolls = Arc::new(AtomicU64::new(0));
    let drawn = [0xAB_0000_0000_0007, 7, 7, 0, 9];
    let dice = UidDice::new(move || {
        drawn.get(usize::try_from(rolls.fetch_add(1, Ordering::Relaxed)).unwrap()).copied().unwrap_or(9)
    });
    let store = memory();
    let uids = daemon(&store, &SchemaConfig { random_metrics: Some(dice), ..SchemaConfig::default() });
    let metrics = metrics(&uids);
    assert_eq!(metrics.uid_or_create("a").unwrap(), Uid::new(7), "cut to the width");
    assert_eq!(metrics.uid_or_create("b").unwrap(), Uid::new(1), "7 is taken, and 0 is none");
    assert_eq!(metrics.collisions_count(), 2);
    assert_eq!(metrics.create("c").unwrap(), Uid::new(9));
    let failed = metrics.uid_or_create("d").unwrap_err().to_string();
    assert_eq!(failed, "Failed to assign an ID for kind='metrics' name='d' after 10 attempts");
    assert_eq!(uids.of(UidKind::Tagk).uid_or_create("host").unwrap(), Uid::new(1), "tags are counted up");
    assert_eq!(metrics.usage().unwrap().used, 0);
    assert_eq!(&*metrics.name(Uid::new(7)).unwrap(), "a");
}

/// `P-UIDFILTER`: new names only, every expression of the kind, and a count of those refused.
#[test]
fn a_filter_refuses_new_names_and_no_old_ones() {
    let store = memory();
    create(metrics(&daemon(&store, &SchemaConfig::default())), &["OLD"]);
    let filter = UidFilter::none().with(UidKind::Metric, "^[a-z.]+$;^.{2,5}$", ";").unwrap();
    let filter = filter.with(UidKind::Tagk, "", ";").unwrap();
    let uids = daemon(&store, &SchemaConfig { uid_filter: filter, ..SchemaConfig::default() });
    assert_eq!(metrics(&uids).uid_or_create("OLD").unwrap(), Uid::new(1));
    for (name, allowed) in [("abc", true), ("a", false), ("abcdef", false), ("Abc", false)] {
        assert_eq!(metrics(&uids).uid_or_create(name).is_ok(), allowed, "{name}");
    }
    let refused = metrics(&uids).create("A").unwrap_err();
    let text = "Failed to assign ID for kind='metrics' name='A' after 0 attempts due to: Blocked by UID filter.";
    assert_eq!((refused.to_string().as_str(), refused.kind()), (text, ErrorKind::Invalid));
    assert_eq!(
        (metrics(&uids).rejected_count(), metrics(&uids).usage().unwrap().used),
        (4, 2),
        "no UID is spent on it"
    );
    assert!(uids.of(UidKind::Tagk).uid_or_create("A").is_ok());
    assert!(UidFilter::none().with(UidKind::Tagv, "a,(", ",").is_err());
}
