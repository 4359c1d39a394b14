//! The index of a folder that is opened again, whoever wrote to it meanwhile and whatever became of its log.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use basalt_engine::{Engine, EngineOptions, Workers};
use basalt_schema::{
    BaseTime, IndexedStore, Lookup, RollupSettings, Rollups, SchemaConfig, TagPair, Tsuid, Uid, UidKind, UidWidth,
    UidWidths,
};
use basalt_store::{Compaction, Durability, MutationBatch, Store};

use super::*;

/// Says so when dropped, also where what is done panics: whoever waits for it would wait for ever.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Folder {
    engine: Arc<Engine>,
    schema: Arc<Schema>,
}

fn engine(path: &Path) -> Arc<Engine> {
    let mut options = EngineOptions::new(path);
    options.workers = Workers::Manual;
    options.limits.reserve_bytes = 0;
    Engine::open(options).unwrap()
}

fn open(path: &Path) -> Folder {
    open_with(path, SchemaConfig::default())
}

fn open_with(path: &Path, config: SchemaConfig) -> Folder {
    open_by(path, |store| Schema::open(store, config))
}

fn open_by(path: &Path, open: impl FnOnce(Arc<dyn Store>) -> basalt_schema::Result<Schema>) -> Folder {
    let engine = engine(path);
    let schema = open(Arc::clone(&engine) as Arc<dyn Store>).unwrap();
    Folder { engine, schema: Arc::new(schema) }
}

fn tsuid(number: u32) -> Tsuid {
    Tsuid::parse(&format!("000001000001{number:06X}"), SchemaConfig::default().widths).unwrap()
}

/// A row of a series, written past its index.
fn write(store: &dyn Store, schema: &Schema, number: u32) {
    let key = schema.layout().series_key(&tsuid(number)).row_key(BaseTime::of_seconds(3600 * number));
    let mut batch = MutationBatch::new(Durability::Async);
    batch.row(&key).unwrap().put(b"t", &[0, 0], None, &[1]).unwrap();
    let _answered_later = store.apply(&schema.tables().data, batch);
}

impl Folder {
    /// As ingest does it: the index first.
    fn take(&self, number: u32) {
        self.schema.index().add(&tsuid(number)).unwrap();
        write(&*self.engine, &self.schema, number);
    }

    fn sync(&self) {
        let synced = self.engine.sync();
        self.engine.pump().unwrap();
        synced.wait().unwrap();
    }

    /// Checked: these series and no other are known, and what was read for it.
    fn knows(&self, numbers: impl Iterator<Item = u32>, log: LogRead, rows: u64) {
        let index = self.schema.index();
        let known = numbers.map(|number| assert!(index.id(&tsuid(number)).is_some(), "{number}")).count();
        assert_eq!(index.len(), known);
        let read = self.schema.rebuilt();
        assert_eq!((read.log, read.rows_count), (log, rows), "{read:?}");
    }

    /// Does what waits for the disk; the engine has no threads of its own.
    fn pumped<T>(&self, work: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    self.engine.pump().unwrap();
                    std::thread::yield_now();
                }
            });
            let _done = Done(&done);
            work()
        })
    }

    fn checkpoint(&self) {
        self.pumped(|| self.schema.checkpoint()).unwrap();
    }

    fn close(self) {
        self.sync();
        self.checkpoint();
        self.engine.close().unwrap();
    }

    /// As `kill -9` does: the log of changes is all that is left.
    fn kill(self) {
        self.sync();
        let Self { engine, schema } = self;
        drop(schema);
        std::mem::forget(engine);
    }
}

/// What a process killed leaves of a folder, without its lock.
fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
    }
    to
}

#[test]
fn a_closed_folder_is_opened_without_a_look_at_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    first.knows(0..0, LogRead::Absent, 0);
    (0..50).for_each(|number| first.take(number));
    first.close();
    let second = open(dir.path());
    second.knows(0..50, LogRead::Whole, 0);
    (50..60).for_each(|number| second.take(number));
    second.close();
    open(dir.path()).knows(0..60, LogRead::Whole, 0);
}

/// Of a large folder they take seconds, for which a look at names does not wait.
#[test]
fn who_asks_for_no_series_reads_none_and_leaves_their_log_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    (0..5).for_each(|number| first.take(number));
    first.close();
    let log = || std::fs::read(dir.path().join("side-series.log")).unwrap();
    let before = log();
    for (number, open) in (5..).zip([Schema::open_without_series, Schema::open_to_assign]) {
        let tool = open_by(dir.path(), |store| open(store, SchemaConfig::default()));
        tool.knows(0..0, LogRead::None, 0);
        // Who asks all the same is not told that there are none.
        let (found, _) = tool.schema.lookup_tsuids(&Lookup { limit: usize::MAX, ..Lookup::default() }).unwrap();
        assert_eq!(found.len(), number as usize);
        write(&*tool.engine, &tool.schema, number);
        tool.close();
        assert_eq!(log(), before);
    }
    open(dir.path()).knows(0..7, LogRead::Whole, 2);
}

/// As a repair takes it away, or a damaged disk: then counters may be behind what occurs.
#[test]
fn who_assigns_looks_for_uids_where_the_log_of_the_series_is_not_whole() {
    let damages: [(LogRead, Damage); 3] =
        [(LogRead::Absent, Vec::clear), (LogRead::Cut, |bytes| bytes.extend([7; 100])), (LogRead::Whole, |_| {})];
    for (expected, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path());
        first.take(7);
        first.close();
        let path = dir.path().join("side-series.log");
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let tool = open_by(dir.path(), |store| Schema::open_to_assign(store, SchemaConfig::default()));
        let is_whole = expected == LogRead::Whole;
        assert_eq!(tool.schema.rebuilt().log, if is_whole { LogRead::None } else { expected });
        let drawn = tool.pumped(|| tool.schema.uids().of(UidKind::Tagv).uid_or_create("new")).unwrap();
        assert_eq!(drawn, Uid::new(if is_whole { 1 } else { 8 }), "{expected:?}");
        tool.close();
    }
}

/// A block has room for 16 MiB of tags.
#[test]
fn series_of_long_tags_are_kept_in_as_many_blocks_as_they_need() {
    let dir = tempfile::tempdir().unwrap();
    let wide = UidWidth::new(8).unwrap();
    let config = SchemaConfig { widths: UidWidths { metric: wide, tagk: wide, tagv: wide }, ..SchemaConfig::default() };
    let long = |number: u64| {
        let pair = TagPair { key: Uid::new(number), value: Uid::new(1) };
        Tsuid::new(Uid::new(1), &vec![pair; 2000], config.widths)
    };
    // All at once, in a log that is written anew, and then as many more.
    for known in [0, 600, 1200] {
        let folder = open_with(dir.path(), config.clone());
        let read = folder.schema.rebuilt();
        assert_eq!((read.log == LogRead::Whole, read.series_kept), (known > 0, known));
        assert!((1..=known).all(|number| folder.schema.index().id(&long(number)).is_some()));
        for number in known + 1..=known + 600 {
            folder.schema.index().add(&long(number)).unwrap();
        }
        folder.close();
    }
}

#[test]
fn after_a_kill_rows_behind_the_last_checkpoint_are_looked_at_wherever_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    (0..10).for_each(|number| first.take(number));
    first.sync();
    first.engine.flush(&first.schema.tables().data).unwrap();
    first.checkpoint();
    // One lies in a file then, one in the log of changes only.
    first.take(10);
    first.engine.flush(&first.schema.tables().data).unwrap();
    first.take(11);
    first.kill();
    let copied = copy(dir.path());
    open(copied.path()).knows(0..12, LogRead::Whole, 2);
}

/// What is not on disk a crash takes back, and its UIDs are given to other names.
#[test]
fn a_series_is_not_written_down_before_its_rows_are_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    first.take(0);
    std::thread::scope(|scope| {
        let (kept, is_kept) = channel();
        let schema = &first.schema;
        scope.spawn(move || kept.send(schema.checkpoint()));
        // It waits for the disk; were it to go on, it would be over long before the time is.
        let early = is_kept.recv_timeout(Duration::from_millis(200));
        assert!(early.is_err(), "a series was written down before its rows");
        first.pumped(|| is_kept.recv()).unwrap().unwrap();
    });
    let copied = copy(dir.path());
    open(copied.path()).knows(0..1, LogRead::Whole, 1);
}

#[test]
fn a_merge_of_files_after_the_checkpoint_hides_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    first.take(0);
    first.sync();
    first.checkpoint();
    first.take(16);
    first.engine.compact(&first.schema.tables().data, Compaction::Major).unwrap();
    first.kill();
    let copied = copy(dir.path());
    let second = open(copied.path());
    assert!([0, 16].iter().all(|number| second.schema.index().id(&tsuid(*number)).is_some()));
}

/// The shell writes to a closed folder and knows no series.
#[test]
fn rows_written_without_an_index_are_found_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    first.take(0);
    first.close();
    let plain = open(dir.path());
    write(&*plain.engine, &plain.schema, 1);
    plain.sync();
    plain.engine.close().unwrap();
    open(dir.path()).knows(0..2, LogRead::Whole, 1);
}

/// The shell writes to a running daemon.
#[test]
fn rows_written_through_the_indexed_store_are_known_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let store = IndexedStore::new(Arc::clone(&folder.schema));
    write(&store, &folder.schema, 3);
    assert!(folder.schema.index().id(&tsuid(3)).is_some());
    folder.close();
    open(dir.path()).knows(3..4, LogRead::Whole, 0);
}

/// Rows of a snapshot are older than the log: at once where a daemon runs, at the next start where the folder was closed.
#[test]
fn series_of_a_snapshot_are_known_when_it_comes_back() {
    for is_running in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path());
        let data = first.schema.tables().data.clone();
        first.take(0);
        first.sync();
        first.engine.snapshot(&data, "s").unwrap();
        first.engine.disable_table(&data).unwrap();
        first.engine.truncate_table(&data, basalt_store::TruncatedRegions::Kept).unwrap();
        first.engine.enable_table(&data).unwrap_or_default();
        first.engine.close().unwrap();
        std::fs::remove_file(dir.path().join("side-series.log")).unwrap_or_default();
        let second = open(dir.path());
        second.knows(0..0, LogRead::Absent, 0);
        second.checkpoint();
        second.engine.disable_table(&data).unwrap();
        let store: Arc<dyn Store> = if is_running {
            Arc::new(IndexedStore::new(Arc::clone(&second.schema)))
        } else {
            Arc::clone(&second.engine) as Arc<dyn Store>
        };
        second.pumped(|| store.restore_snapshot("s").and_then(|()| store.enable_table(&data))).unwrap();
        drop(store);
        if is_running {
            second.checkpoint();
            assert!(second.schema.index().id(&tsuid(0)).is_some());
        }
        second.sync();
        second.engine.close().unwrap();
        let third = open(dir.path());
        assert!(third.schema.index().id(&tsuid(0)).is_some(), "{is_running}");
    }
}

/// Series of a table that was emptied or dropped: their UIDs may be given to other names.
#[test]
fn series_that_went_with_their_table_do_not_come_back() {
    for (is_running, restores) in [(true, true), (true, false), (false, true), (false, false)] {
        let what = format!("running {is_running}, restores {restores}");
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path());
        let data = first.schema.tables().data.clone();
        first.take(0);
        first.sync();
        first.engine.snapshot(&data, "s").unwrap();
        first.take(1);
        first.close();
        let second = open(dir.path());
        second.knows(0..2, LogRead::Whole, 0);
        let store: Arc<dyn Store> = if is_running {
            Arc::new(IndexedStore::new(Arc::clone(&second.schema)))
        } else {
            Arc::clone(&second.engine) as Arc<dyn Store>
        };
        if restores {
            store.disable_table(&data).unwrap();
            second.pumped(|| store.restore_snapshot("s").and_then(|()| store.enable_table(&data))).unwrap();
        } else {
            store.truncate_table(&data, basalt_store::TruncatedRegions::Kept).unwrap();
            second.take(0);
        }
        drop(store);
        if is_running {
            second.checkpoint();
            second.close();
        } else {
            second.sync();
            second.engine.close().unwrap();
        }
        let third = open(dir.path());
        assert!(third.schema.index().id(&tsuid(1)).is_none(), "{what}");
        third.knows(0..1, LogRead::Absent, 1);
        third.close();
        open(dir.path()).knows(0..1, LogRead::Whole, 0);
    }
}

/// One that has their names does: where every series has rows still, the log is written as before.
#[test]
fn a_table_that_is_none_of_series_costs_the_log_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let log = dir.path().join("side-series.log");
    first.take(0);
    first.sync();
    first.checkpoint();
    let tables = first.schema.tables();
    for (table, is_kept) in [(&tables.tree, true), (&tables.meta, true), (&tables.uid, false)] {
        first.engine.truncate_table(table, basalt_store::TruncatedRegions::Kept).unwrap();
        assert_eq!(log.exists(), is_kept, "{table}");
    }
    first.close();
    open(dir.path()).knows(0..1, LogRead::Whole, 0);
}

/// While a table of series is disabled nothing is written; one that is gone has no rows.
#[test]
fn a_table_of_rollups_may_go_from_under_the_index() {
    let json = r#"{"aggregationIds":{"sum":0},"intervals":[
        {"table":"t10","preAggregationTable":"p10","interval":"10m","rowSpan":"1d"}]}"#;
    let rollups = Rollups::parse(json, RollupSettings::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let first = open_with(dir.path(), SchemaConfig { rollups: Some(rollups), ..SchemaConfig::default() });
    let log = dir.path().join("side-series.log");
    first.take(0);
    first.sync();
    first.checkpoint();
    assert!(log.exists());
    let [gone, disabled] = ["t10", "p10"].map(|name| name.parse().unwrap());
    for table in [&gone, &disabled] {
        first.engine.disable_table(table).unwrap();
    }
    first.engine.drop_table(&gone).unwrap();
    first.checkpoint();
    assert!(!log.exists(), "rows of a disabled table are not known");
    first.engine.enable_table(&disabled).unwrap();
    // The end of a server does not wait for all row keys.
    first.pumped(|| first.schema.last_checkpoint()).unwrap();
    assert!(!log.exists());
    first.checkpoint();
    assert!(log.exists());
    first.take(1);
    first.sync();
    first.pumped(|| first.schema.last_checkpoint()).unwrap();
    first.engine.close().unwrap();
    let rollups = Rollups::parse(json, RollupSettings::default()).unwrap();
    let second = open_with(dir.path(), SchemaConfig { rollups: Some(rollups), ..SchemaConfig::default() });
    second.knows(0..2, LogRead::Whole, 0);
}

type Damage = fn(&mut Vec<u8>);

/// Damage, an older or a foreign log: what it lacks is read from rows, and the next start finds it whole again.
#[test]
fn a_log_that_does_not_read_is_made_anew_from_rows() {
    let damages: [(&str, Damage); 5] = [
        ("gone", Vec::clear),
        ("header", |bytes| bytes[3] ^= 1),
        ("first record", |bytes| bytes[40] ^= 1),
        ("cut", |bytes| bytes.truncate(50)),
        ("junk behind", |bytes| bytes.extend([7; 100])),
    ];
    for (what, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path());
        (0..20).for_each(|number| first.take(number));
        first.close();
        let path = dir.path().join("side-series.log");
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        let second = open(dir.path());
        assert_ne!(second.schema.rebuilt().log, LogRead::Whole, "{what}");
        assert_eq!(second.schema.index().len(), 20, "{what}");
        second.close();
        open(dir.path()).knows(0..20, LogRead::Whole, 0);
    }
}

/// The numbers that were lost are given out again: by then the log of before is not believed.
#[test]
fn a_log_from_a_later_state_is_gone_before_the_numbers_come_again() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    first.take(0);
    first.sync();
    first.checkpoint();
    let earlier = copy(dir.path());
    (1..9).for_each(|number| first.take(number));
    first.sync();
    first.checkpoint();
    let log = "side-series.log";
    std::fs::copy(dir.path().join(log), earlier.path().join(log)).unwrap();
    let second = open(earlier.path());
    assert_eq!(second.schema.rebuilt().log, LogRead::Ahead);
    // Those that only the log told were given UIDs that the store does not know.
    second.knows(0..1, LogRead::Ahead, 1);
    (20..40).for_each(|number| second.take(number));
    second.kill();
    let third = open(copy(earlier.path()).path());
    third.knows((0..1).chain(20..40), LogRead::Absent, 21);
}

#[test]
fn a_log_of_other_tables_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    first.take(0);
    first.close();
    let engine = engine(dir.path());
    let config = SchemaConfig { data_table: "other".into(), ..SchemaConfig::default() };
    let other = Schema::open(Arc::clone(&engine) as Arc<dyn Store>, config).unwrap();
    assert!(other.index().is_empty());
}
