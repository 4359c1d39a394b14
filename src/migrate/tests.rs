//! Copies between memory and embedded stores: what comes out, what is refused, and what a copy that ended early leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use basalt_engine::{Engine, EngineOptions};
use basalt_rewrite::HourFold;
use basalt_schema::{APPEND_QUALIFIER, KeyLayout, Salting, Schema, SchemaConfig, Tsuid};
use basalt_store::{
    Compaction, Durability, ManualClock, MemoryStore, MutationBatch, RowChange, Scan, Store, TableName, Timestamp,
    Trigger,
};

use super::*;

/// 2023-11-14T22:00:00Z, the start of an hour.
const BASE_MS: u64 = 1_699_999_200_000;

fn schema(salting: Salting) -> SchemaConfig {
    SchemaConfig { salting, ..SchemaConfig::default() }
}

fn memory(name: &str, salting: Salting) -> End {
    memory_at(name, salting, &Arc::new(ManualClock::new(Timestamp(BASE_MS))))
}

fn memory_at(name: &str, salting: Salting, clock: &Arc<ManualClock>) -> End {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::<ManualClock>::clone(clock)));
    let schema = schema(salting);
    Schema::open(Arc::clone(&store), schema.clone()).unwrap();
    End { name: name.to_owned(), store, schema }
}

/// An embedded store that folds rows.
fn embedded(name: &str, folder: &std::path::Path, salting: Salting) -> End {
    embedded_of(name, EngineOptions::new(folder), salting)
}

fn embedded_of(name: &str, mut options: EngineOptions, salting: Salting) -> End {
    let mut schema = schema(salting);
    schema.fold = Some(HourFold::NAME.into());
    options.clock = Arc::new(ManualClock::new(Timestamp(BASE_MS + 86_400_000)));
    options.folds = HourFold::ALL.map(|fold| Arc::new(fold) as Arc<dyn basalt_store::Fold>).into();
    let store: Arc<dyn Store> = Engine::open(options).unwrap();
    Schema::open(Arc::clone(&store), schema.clone()).unwrap();
    End { name: name.to_owned(), store, schema }
}

/// Row, family, qualifier, time, value.
type Cell<'a> = (&'a [u8], &'a [u8], &'a [u8], u64, &'a [u8]);

fn put(end: &End, table: &str, cells: &[Cell<'_>]) {
    let mut batch = MutationBatch::new(Durability::Fsync);
    for (row, family, qualifier, time, value) in cells {
        batch.row(row).unwrap().put(family, qualifier, Some(Timestamp(*time)), value).unwrap();
    }
    let applied = end.store.apply(&table.parse().unwrap(), batch).wait().unwrap();
    assert!(applied.failed.is_empty());
}

/// Names, an object of meta data, a branch, an annotation of all, and ten points in each of so many rows.
fn fill(end: &End, rows: std::ops::Range<u64>) -> Vec<Tsuid> {
    let opened = Schema::open(Arc::clone(&end.store), end.schema.clone()).unwrap();
    let global = opened.layout().global_annotations_key(basalt_schema::BaseTime::of_seconds(1_699_999_200));
    put(end, "tsdb", &[(&global, b"t", &[1, 0, 10], 7, b"{}")]);
    put(end, "tsdb-tree", &[(b"\0\x01", b"t", b"tree", 3, b"{}")]);
    let mut tsuids = Vec::new();
    for host in rows {
        let tsuid = opened.resolve("m", &[("host", &format!("web{host:04}"))]).unwrap();
        put(end, "tsdb-meta", &[(tsuid.as_bytes(), b"name", b"ts_meta", 9, b"{}")]);
        let key = opened.layout().series_key(&tsuid).row_key(basalt_schema::BaseTime::of_seconds(1_699_999_200));
        for second in 0..10_u8 {
            let written = BASE_MS + u64::from(second) * 1000 + 5;
            put(end, "tsdb", &[(&key, b"t", &[0, second << 4], written, &[second])]);
        }
        tsuids.push(tsuid);
    }
    tsuids
}

fn job(source: End, target: End, folder: &std::path::Path) -> Job {
    let (progress, now) = (folder.join("progress.json"), Timestamp(BASE_MS));
    Job { source, target, progress, into_filled: false, only_verify: false, now, patience: Duration::ZERO }
}

/// Into a target that closes.
fn run(job: &Job) -> Result<Sum, Failure> {
    super::run(job, || Ok(()), |_| Ok(()))
}

fn count(end: &End, table: &str) -> (usize, usize) {
    let mut scanner = end.store.scan(&table.parse::<TableName>().unwrap(), Scan::all()).unwrap();
    let (mut rows, mut cells) = (0, 0);
    while let Some(batch) = scanner.next_wait() {
        let batch = batch.unwrap();
        rows += batch.len();
        cells += batch.cells_count();
    }
    (rows, cells)
}

#[test]
fn everything_is_copied_and_salted_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (memory("a", Salting::EMBEDDED), memory("b", Salting::NONE));
    let tsuids = fill(&source, 0..50);
    let job = job(source, target, folder.path());
    let sum = run(&job).unwrap();
    // 51 rows of points, 50 of meta data, one of a tree, those of names.
    assert_eq!((sum.tables, sum.resumed), (4, 0));
    assert_eq!(count(&job.target, "tsdb"), (51, 501));
    assert_eq!(count(&job.target, "tsdb-uid"), count(&job.source, "tsdb-uid"));
    let opened = Schema::open(Arc::clone(&job.target.store), job.target.schema.clone()).unwrap();
    let key = opened.layout().series_key(&tsuids[7]).row_key(basalt_schema::BaseTime::of_seconds(1_699_999_200));
    let row = job.target.store.get(&opened.tables().data, basalt_store::Get::row(key)).wait().unwrap();
    let times: Vec<u64> = row.row(0).unwrap().cells().map(|cell| cell.timestamp.0 - BASE_MS).collect();
    assert_eq!(times, [5, 1005, 2005, 3005, 4005, 5005, 6005, 7005, 8005, 9005], "cells keep their times");
    assert_eq!(&*opened.names(&tsuids[7]).unwrap().tags[0].1, "web0007");
    assert!(!job.progress.exists(), "a copy that is done is not gone on with");
    // And back.
    let back = self::job(job.target, memory("c", Salting::EMBEDDED), folder.path());
    run(&back).unwrap();
    let again = Job { source: job.source, only_verify: true, ..back };
    assert_eq!(run(&again).unwrap().cells, 0);
}

#[test]
fn a_store_that_folds_holds_the_same() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (memory("a", Salting::NONE), embedded("b", data.path(), Salting::EMBEDDED));
    fill(&source, 0..20);
    let first = job(source, target, folder.path());
    run(&first).unwrap();
    let table: TableName = "tsdb".parse().unwrap();
    first.target.store.flush(&table).unwrap();
    first.target.store.compact(&table, Compaction::Major).unwrap();
    assert_eq!(count(&first.target, "tsdb"), (21, 21), "rows are folded");
    let again = Job { only_verify: true, ..first };
    run(&again).unwrap();
    // The folded rows on to another.
    let next = Job { source: again.target, target: memory("c", Salting::NONE), only_verify: false, ..again };
    run(&next).unwrap();
    assert_eq!(count(&next.target, "tsdb"), (21, 21));
}

#[test]
fn a_difference_of_one_byte_one_time_or_one_row_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for damage in 0..3 {
        let first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder.path());
        let tsuid = fill(&first.source, 0..5).remove(3);
        run(&first).unwrap();
        let layout = KeyLayout { salting: Salting::NONE, widths: first.source.schema.widths };
        let key = layout.series_key(&tsuid).row_key(basalt_schema::BaseTime::of_seconds(1_699_999_200));
        match damage {
            0 => put(&first.target, "tsdb", &[(&key, b"t", &[0, 0x10], BASE_MS + 1005, &[99])]),
            1 => put(&first.target, "tsdb", &[(&key, b"t", &[0, 0x10], BASE_MS + 20_000, &[1])]),
            _ => put(&first.target, "tsdb", &[(&[0, 0, 9, 0, 0, 0, 0], b"t", &[0, 0x10], 1, &[1])]),
        }
        let failure = run(&Job { only_verify: true, ..first }).unwrap_err();
        assert!(failure.exit == Exit::Failure && failure.line.contains("table tsdb is not the same"), "{failure}");
    }
}

#[test]
fn a_target_that_holds_rows_is_refused_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder.path());
    fill(&first.source, 0..3);
    run(&first).unwrap();
    let failure = run(&first).unwrap_err();
    assert!(failure.line.contains("holds rows already") && failure.line.contains("--into-filled"), "{failure}");
    first.into_filled = true;
    fill(&first.source, 3..5);
    run(&first).unwrap();
    assert_eq!(count(&first.target, "tsdb").0, 6);
    // Another server's names: the UID of `m` is that of another metric there.
    let other = memory("c", Salting::NONE);
    Schema::open(Arc::clone(&other.store), other.schema.clone()).unwrap().resolve("other", &[("host", "x")]).unwrap();
    let failure = run(&Job { target: other, ..first }).unwrap_err();
    assert!(failure.line.contains("names cannot become one's"), "{failure}");
}

/// A copy into a target that held rows is remembered as one, so that who goes on without the flag does not mix up names.
#[test]
fn names_are_compared_by_whoever_goes_on_into_a_filled_target() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder.path());
    fill(&first.source, 0..3);
    Schema::open(Arc::clone(&first.target.store), first.target.schema.clone())
        .unwrap()
        .resolve("other", &[("host", "x")])
        .unwrap();
    let mut told = Memory::load(&first.progress, "a", "b").unwrap();
    told.set_into_filled();
    told.advance("tsdb-uid", &progress::TableState::default()).unwrap();
    let failure = run(&first).unwrap_err();
    assert!(failure.line.contains("names cannot become one's"), "{failure}");
}

#[test]
fn a_copy_that_ended_early_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(memory("a", Salting::NONE), memory("b", Salting::EMBEDDED), folder.path());
    fill(&first.source, 0..30);
    let mut told = Memory::load(&first.progress, "a", "b").unwrap();
    let (mut shown, pairs) = (Shown::new(), plan::pairs(&first).unwrap());
    let table = &pairs.last().unwrap().to;
    first.target.store.disable_table(table).unwrap();
    for pair in &pairs {
        assert_eq!(copy::copy(&first, pair, &mut told, &mut shown).is_err(), pair.is_folded);
    }
    first.target.store.enable_table(table).unwrap();
    let before = told.rows();
    let sum = run(&first).unwrap();
    assert_eq!((sum.resumed, sum.rows), (before, before + 31));
    assert_eq!(count(&first.target, "tsdb"), (31, 301));
}

/// Has no room for rows of names, but for short ones, the first so many times.
#[derive(Debug)]
struct Nameless(AtomicU32);

impl Trigger for Nameless {
    fn name(&self) -> &'static str {
        "nameless"
    }

    fn before(&self, change: &RowChange<'_>, _more: &mut MutationBatch) -> basalt_store::Result<()> {
        let is_full = change.row.key().len() > 3
            && self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if is_full { Err(basalt_store::Error::Throttled { what: "table" }) } else { Ok(()) }
    }
}

/// A target that is [`Nameless`].
fn nameless(times: u32) -> End {
    let clock = Arc::new(ManualClock::new(Timestamp(BASE_MS)));
    let trigger = Arc::new(Nameless(AtomicU32::new(times)));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock).with_triggers(vec![trigger]));
    let schema = schema(Salting::EMBEDDED);
    Schema::open(Arc::clone(&store), schema.clone()).unwrap();
    let mut names = store.describe_table(&"tsdb-uid".parse().unwrap()).unwrap();
    names.attributes.insert("TRIGGERS".into(), "nameless".into());
    store.alter_table(names).unwrap();
    End { name: "b".to_owned(), store, schema }
}

/// From the first row on the target is one that holds rows, so the copy is remembered before.
#[test]
fn a_copy_that_ended_before_anything_was_durable_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(memory("a", Salting::NONE), nameless(1), folder.path());
    fill(&first.source, 0..3);
    assert_eq!(run(&first).unwrap_err().exit, Exit::TryLater);
    assert_ne!(count(&first.target, "tsdb-uid").0, 0);
    assert_eq!(run(&first).unwrap().tables, 4);
}

/// Memory is full until it is written out: a copy faster than the disk is the rule, not a failure.
#[test]
fn rows_that_find_no_room_are_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = job(memory("a", Salting::NONE), nameless(20), folder.path());
    first.patience = Duration::from_mins(10);
    fill(&first.source, 0..5);
    let sum = run(&first).unwrap();
    assert_eq!((sum.resumed, count(&first.target, "tsdb")), (0, (6, 51)));
    assert_eq!(count(&first.target, "tsdb-uid"), count(&first.source, "tsdb-uid"));
}

/// The embedded store refuses whole batches then.
#[test]
fn batches_that_find_no_room_are_sent_again() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut options = EngineOptions::new(data.path());
    options.limits.memtables_bytes = 1;
    let target = embedded_of("b", options, Salting::EMBEDDED);
    let mut first = job(memory("a", Salting::NONE), target, folder.path());
    first.patience = Duration::from_mins(10);
    fill(&first.source, 0..5);
    assert_eq!(run(&first).unwrap().tables, 4);
}

#[test]
fn a_copy_within_a_table_begins_behind_what_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder.path());
    let tsuids = fill(&first.source, 0..20);
    let mut told = Memory::load(&first.progress, "a", "b").unwrap();
    let mut shown = Shown::new();
    for pair in plan::pairs(&first).unwrap() {
        copy::copy(&first, &pair, &mut told, &mut shown).unwrap();
    }
    // As if it had been killed at the last row of points: there is one more now.
    let mut state = told.of("tsdb");
    state.is_done = false;
    told.advance("tsdb", &state).unwrap();
    let layout = KeyLayout { salting: Salting::NONE, widths: first.source.schema.widths };
    let next = layout.series_key(&tsuids[19]).row_key(basalt_schema::BaseTime::of_seconds(1_700_002_800));
    put(&first.source, "tsdb", &[(&next, b"t", &[0, 0], BASE_MS + 3_600_000, &[1])]);
    let sum = run(&first).unwrap();
    assert!(sum.resumed > 40, "{sum:?}");
    assert_eq!(count(&first.target, "tsdb"), (22, 202));
    assert!(!first.progress.exists());
}

/// All is copied but compared, and the source's first row of points has one more cell.
fn written_behind(folder: &std::path::Path) -> Job {
    let first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder);
    fill(&first.source, 0..5);
    let mut told = Memory::load(&first.progress, "a", "b").unwrap();
    for pair in plan::pairs(&first).unwrap() {
        copy::copy(&first, &pair, &mut told, &mut Shown::new()).unwrap();
    }
    let layout = KeyLayout { salting: Salting::NONE, widths: first.source.schema.widths };
    let global = layout.global_annotations_key(basalt_schema::BaseTime::of_seconds(1_699_999_200));
    put(&first.source, "tsdb", &[(&global, b"t", &[1, 0, 20], 8, b"{}")]);
    first
}

#[test]
fn what_was_written_behind_the_copy_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let failure = run(&written_behind(folder.path())).unwrap_err();
    let line =
        "table tsdb of a was written to while it was copied: 6 rows then, 6 rows now; run it again with --into-filled";
    assert!(failure.exit == Exit::Failure && failure.line.starts_with(line), "{failure}");
}

#[test]
fn ends_that_differed_are_copied_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = written_behind(folder.path());
    run(&first).unwrap_err();
    let failure = run(&first).unwrap_err();
    assert!(failure.line.contains("holds rows already"), "{failure}");
    first.into_filled = true;
    let sum = run(&first).unwrap();
    assert_eq!((sum.resumed, count(&first.target, "tsdb")), (0, (6, 52)));
    // What only the target has is found each time, and is not what the file is kept for.
    put(&first.target, "tsdb", &[(&[0, 0, 9, 0, 0, 0, 0], b"t", &[0, 0x10], 1, &[1])]);
    let failure = run(&first).unwrap_err();
    assert!(failure.line.contains("table tsdb is not the same") && !first.progress.exists(), "{failure}");
}

#[test]
fn a_progress_file_of_another_copy_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p");
    Memory::load(&file, "a", "b").unwrap().advance("t", &progress::TableState::default()).unwrap();
    assert!(Memory::load(&file, "a", "c").unwrap_err().line.contains("from a to b"));
    assert!(!Memory::load(&file, "a", "b").unwrap().is_new());
}

/// What is remembered is not there: without the names, no point of the rest could be read.
#[test]
fn a_target_that_was_made_anew_is_refused_with_progress_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder.path());
    fill(&first.source, 0..5);
    let mut told = Memory::load(&first.progress, "a", "b").unwrap();
    let names = plan::pairs(&first).unwrap().remove(0);
    copy::copy(&first, &names, &mut told, &mut Shown::new()).unwrap();
    let mut anew = Job { target: memory("b", Salting::NONE), ..first };
    for into_filled in [false, true] {
        anew.into_filled = into_filled;
        let failure = run(&anew).unwrap_err();
        assert!(failure.line.contains("table tsdb-uid of b, which is empty"), "{failure}");
        assert_eq!(count(&anew.target, "tsdb"), (0, 0));
    }
    std::fs::remove_file(&anew.progress).unwrap();
    assert_eq!(run(&anew).unwrap().resumed, 0);
}

/// It is as if it were not there.
#[test]
fn who_only_compares_needs_no_progress() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder.path());
    fill(&first.source, 0..5);
    run(&first).unwrap();
    let mut other = Memory::load(&first.progress, "c", "d").unwrap();
    other.advance("t", &progress::TableState::default()).unwrap();
    let compare = Job { only_verify: true, ..first };
    assert_eq!(run(&compare).unwrap().cells, 0);
    assert!(compare.progress.exists());
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut narrow = memory("b", Salting::NONE);
    narrow.schema.widths.tagk = basalt_schema::UidWidth::new(2).unwrap();
    let failure = run(&job(memory("a", Salting::NONE), narrow, folder.path())).unwrap_err();
    assert!(failure.exit == Exit::Config && failure.line.contains("different widths"), "{failure}");
    let mut mistold = memory("a", Salting::EMBEDDED);
    mistold.schema.salting = Salting::NONE;
    let failure = run(&job(mistold, memory("b", Salting::NONE), folder.path())).unwrap_err();
    assert!(failure.exit == Exit::Config && failure.line.contains("salt.width = 1"), "{failure}");
}

/// Gives the points of an end a TTL of so many days.
fn expire(end: &End, days: u64) {
    let mut table = end.store.describe_table(&"tsdb".parse().unwrap()).unwrap();
    table.families[0].ttl_seconds = Some(days * 86_400);
    end.store.alter_table(table).unwrap();
}

/// A row of points of the series `tsuid`, `age_hours` after its cells of 30 days begin to expire.
fn put_aged(end: &End, tsuid: &Tsuid, age_hours: u64) {
    let ms = BASE_MS - 30 * 86_400_000 + age_hours * 3_600_000;
    let base = basalt_schema::BaseTime::of_seconds(u32::try_from(ms / 1000).unwrap());
    let layout = KeyLayout { salting: end.schema.salting, widths: end.schema.widths };
    let key = layout.series_key(tsuid).row_key(base);
    put(end, "tsdb", &[(&key, b"t", &[0, 0], ms, &[1]), (&key, b"t", &[0, 0x10], ms + 5_000_000, &[2])]);
}

#[test]
fn cells_that_expire_meanwhile_make_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(Timestamp(BASE_MS)));
    let first = job(memory_at("a", Salting::NONE, &clock), memory_at("b", Salting::EMBEDDED, &clock), folder.path());
    let tsuid = fill(&first.source, 0..5).remove(2);
    expire(&first.source, 30);
    put_aged(&first.source, &tsuid, 1);
    let mut told = Memory::load(&first.progress, "a", "b").unwrap();
    let pairs = plan::pairs(&first).unwrap();
    for pair in &pairs {
        plan::take_over_settings(&first, pair).unwrap();
        copy::copy(&first, pair, &mut told, &mut Shown::new()).unwrap();
    }
    assert_eq!(count(&first.target, "tsdb"), (6, 52), "they are copied all the same");
    clock.set(Timestamp(BASE_MS + 3 * 3_600_000));
    assert_eq!((count(&first.source, "tsdb"), count(&first.target, "tsdb")), ((5, 50), (5, 50)));
    let compare = |pair| {
        let state = told.of("tsdb");
        verify::compare(&first, pair, Some(&state), &mut Shown::new()).unwrap()
    };
    let points = pairs.last().unwrap();
    assert_eq!(compare(points).unwrap().rows, 5);
    put_aged(&first.target, &tsuid, 49);
    assert!(compare(points).unwrap_err().line.contains("table tsdb is not the same"));
}

#[test]
fn a_store_that_folds_rows_that_expire_holds_the_same() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = job(memory("a", Salting::NONE), embedded("b", data.path(), Salting::EMBEDDED), folder.path());
    let tsuid = fill(&first.source, 0..5).remove(2);
    expire(&first.source, 30);
    // The earliest time that is compared is that of 48 hours: between the cells of one row.
    (46..50).for_each(|age_hours| put_aged(&first.source, &tsuid, age_hours));
    run(&first).unwrap();
    let table: TableName = "tsdb".parse().unwrap();
    first.target.store.flush(&table).unwrap();
    first.target.store.compact(&table, Compaction::Major).unwrap();
    assert_eq!(count(&first.target, "tsdb"), (9, 9), "rows are folded");
    run(&Job { only_verify: true, ..first }).unwrap();
}

#[test]
fn how_long_cells_live_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder.path());
    let table: TableName = "tsdb".parse().unwrap();
    let mut told = first.source.store.describe_table(&table).unwrap();
    told.families[0].ttl_seconds = Some(1_000_000);
    first.source.store.alter_table(told).unwrap();
    run(&first).unwrap();
    assert_eq!(first.target.store.describe_table(&table).unwrap().families[0].ttl_seconds, Some(1_000_000));
}

/// `S-DTCS`: a target folds as the source is read.
#[test]
fn who_wins_at_an_instant_goes_along() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut source, target) = (memory("a", Salting::NONE), embedded("b", data.path(), Salting::NONE));
    fill(&source, 0..1);
    source.schema.data_times = Some(basalt_schema::LargerOrSmaller::Larger);
    let opened = Schema::open(Arc::clone(&source.store), source.schema.clone()).unwrap();
    let tsuid = opened.find("m", &[("host", "web0000")]).unwrap();
    let key = opened.layout().series_key(&tsuid).row_key(basalt_schema::BaseTime::of_seconds(1_700_002_800));
    // A second and the millisecond that is it: the larger is not the newer.
    let at = BASE_MS + 3_600_000;
    put(&source, "tsdb", &[(&key, b"t", &[0, 0], at, &[9])]);
    put(&source, "tsdb", &[(&key, b"t", &[0xF0, 0, 0, 0], at, &[7])]);
    let job = job(source, target, folder.path());
    run(&job).unwrap();
    let table: TableName = "tsdb".parse().unwrap();
    job.target.store.flush(&table).unwrap();
    job.target.store.compact(&table, Compaction::Major).unwrap();
    let row = job.target.store.get(&table, basalt_store::Get::row(key)).wait().unwrap();
    let values: Vec<Vec<u8>> = row.row(0).unwrap().cells().map(|cell| cell.value.to_vec()).collect();
    assert_eq!(values, [[9]]);
}

/// The source's clock was ahead, or the target's is behind: what is written there next would be older than what is copied.
#[test]
fn cells_with_times_after_the_clock_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let first = job(memory("a", Salting::NONE), memory("b", Salting::NONE), folder.path());
    fill(&first.source, 0..2);
    // The last points were written 9,005 ms later.
    assert_eq!(run(&first).unwrap().ahead_ms, 9005);
    let mut again = Job { only_verify: true, now: Timestamp(BASE_MS + 9000), ..first };
    assert_eq!(run(&again).unwrap().ahead_ms, 5);
    again.now = Timestamp(BASE_MS + 9005);
    assert_eq!(run(&again).unwrap().ahead_ms, 0);
}

/// Annotations lie among points that came alone, and beside the one cell that these are folded into.
#[test]
fn a_store_that_folds_rows_beside_annotations_holds_the_same() {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (memory("a", Salting::NONE), embedded("b", data.path(), Salting::EMBEDDED));
    let tsuid = fill(&source, 0..1).remove(0);
    let layout = KeyLayout { salting: Salting::NONE, widths: source.schema.widths };
    let key = layout.series_key(&tsuid).row_key(basalt_schema::BaseTime::of_seconds(1_699_999_200));
    // Of the second 5, and a point of the second 600, which is named behind it.
    put(&source, "tsdb", &[(&key, b"t", &[1, 0, 5], BASE_MS, b"{}"), (&key, b"t", &[0x25, 0x80], BASE_MS, &[1])]);
    let first = job(source, target, folder.path());
    run(&first).unwrap();
    let table: TableName = "tsdb".parse().unwrap();
    first.target.store.compact(&table, Compaction::Major).unwrap();
    assert_eq!((count(&first.source, "tsdb"), count(&first.target, "tsdb")), ((2, 13), (2, 3)), "rows are folded");
    run(&Job { only_verify: true, ..first }).unwrap();
}

/// Which of two writes of one millisecond is the later is not in the cells, and the target counts anew.
#[test]
fn of_points_of_one_instant_the_one_that_readers_take_is_copied() {
    let (folder, from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (embedded("a", from.path(), Salting::NONE), embedded("b", to.path(), Salting::NONE));
    let tsuid = fill(&source, 0..1).remove(0);
    let layout = KeyLayout { salting: Salting::NONE, widths: source.schema.widths };
    let key = layout.series_key(&tsuid).row_key(basalt_schema::BaseTime::of_seconds(1_700_002_800));
    // An integer on 1 byte and then one on 8, at one second; another point, and an annotation.
    put(&source, "tsdb", &[(&key, b"t", &[0, 0], BASE_MS, &[9])]);
    let others: [Cell<'_>; 2] = [(&key, b"t", &[0, 0x10], BASE_MS, &[2]), (&key, b"t", &[1, 0, 10], BASE_MS, b"{}")];
    put(&source, "tsdb", &[(&key, b"t", &[0, 7], BASE_MS, &[0, 0, 1, 0, 0, 0, 0, 0]), others[0], others[1]]);
    let job = job(source, target, folder.path());
    run(&job).unwrap();
    let row = job.target.store.get(&"tsdb".parse().unwrap(), basalt_store::Get::row(key)).wait().unwrap();
    let cells: Vec<(&[u8], &[u8])> = row.row(0).unwrap().cells().map(|cell| (cell.qualifier, cell.value)).collect();
    assert_eq!(cells, [(&[0, 7, 0, 0x10][..], &[0, 0, 1, 0, 0, 0, 0, 0, 2, 0][..]), (&[1, 0, 10], b"{}")]);
}

/// The same beside an append cell, where points are not joined: whichever of three came last, of two widths or appended.
#[test]
fn of_points_of_one_instant_beside_an_append_cell_the_one_that_readers_take_is_copied() {
    let (short, wide): (Cell<'_>, Cell<'_>) =
        ((b"", b"t", &[0, 0], BASE_MS, &[9]), (b"", b"t", &[0, 1], BASE_MS, &[1, 0]));
    let appended: Cell<'_> = (b"", b"t", &APPEND_QUALIFIER, BASE_MS, &[0, 0, 7, 0, 0x10, 2]);
    for order in [[short, wide, appended], [appended, wide, short], [wide, short, appended], [appended, short, wide]] {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let (source, target) = (memory("a", Salting::NONE), embedded("b", folders[1].path(), Salting::NONE));
        let tsuid = fill(&source, 0..1).remove(0);
        let layout = KeyLayout { salting: Salting::NONE, widths: source.schema.widths };
        let key = layout.series_key(&tsuid).row_key(basalt_schema::BaseTime::of_seconds(1_700_002_800));
        for (_, family, qualifier, time, value) in order {
            put(&source, "tsdb", &[(&key, family, qualifier, time, value)]);
        }
        let points = |end: &End| {
            let row = end.store.get(&"tsdb".parse().unwrap(), basalt_store::Get::row(key.clone())).wait().unwrap();
            let mut points = basalt_schema::RowPoints::default();
            let cells = row.row(0).unwrap().cells().map(basalt_schema::RowCell::from);
            points.decode(cells, end.schema.duplicates()).unwrap();
            points.values().to_vec()
        };
        let job = job(source, target, folders[0].path());
        run(&job).unwrap();
        assert_eq!(points(&job.target), points(&job.source), "{order:?}");
        run(&Job { only_verify: true, ..job }).unwrap();
    }
}

/// Points without names are no copy.
#[test]
fn a_source_without_its_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (memory("a", Salting::NONE), memory("b", Salting::NONE));
    fill(&source, 0..2);
    let mut job = job(source, target, folder.path());
    job.source.schema.uid_table = "slip".into();
    let failure = run(&job).unwrap_err();
    assert!(failure.exit == Exit::Failure && failure.line.contains("slip"), "{failure}");
    assert_eq!(count(&job.target, "tsdb"), (0, 0));
}

/// What asks to be tried again goes on where it was.
#[test]
fn a_copy_into_a_target_that_does_not_close_is_ended_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (memory("a", Salting::EMBEDDED), memory("b", Salting::NONE));
    fill(&source, 0..5);
    let job = job(source, target, folder.path());
    let full = |_| Err(Failure::new(Exit::TryLater, "full"));
    assert_eq!(super::run(&job, || Ok(()), full).unwrap_err().exit, Exit::TryLater);
    let sum = run(&job).unwrap();
    assert!(sum.rows > 10 && sum.resumed == sum.rows, "{sum:?}");
    assert!(!job.progress.exists());
}
