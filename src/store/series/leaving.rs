//! Series that leave the index while others write: whatever comes in between, one that has a row is known.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use basalt_engine::{Engine, EngineOptions, Workers};
use basalt_ingest::{Door, IngestLimits, parse_put_line};
use basalt_schema::{IndexedStore, SchemaConfig, SeriesId, Tsuid};
use basalt_store::{Clock, Columns, Compaction, ManualClock, Scan, Store, Timestamp};

use super::*;

/// Turns that a pass takes, at most, while nobody holds it up.
const TURNS_MAX: usize = 40;
const TTL_S: u64 = 1000;
/// Hosts that many writers put.
const HOSTS: u32 = 60;
/// When points are put, in seconds.
const NOW_S: u64 = 1_700_000_000;

struct Folder {
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    schema: Arc<Schema>,
    ingest: Arc<Ingest>,
}

fn open(path: &Path) -> Folder {
    open_at(path, NOW_S)
}

fn open_at(path: &Path, now_s: u64) -> Folder {
    let clock = Arc::new(ManualClock::new(Timestamp(now_s * 1000)));
    let mut options = EngineOptions::new(path);
    options.limits.reserve_bytes = 0;
    (options.workers, options.clock) = (Workers::Threads, Arc::clone(&clock) as Arc<dyn Clock>);
    let engine = Engine::open(options).unwrap();
    let store = Arc::clone(&engine) as Arc<dyn Store>;
    let schema = Arc::new(
        Schema::open(Arc::clone(&store), SchemaConfig { auto_create: auto(), ..SchemaConfig::default() }).unwrap(),
    );
    let ingest = Arc::new(Ingest::new(Arc::clone(&schema), store, IngestLimits::default()));
    Folder { clock, engine, schema, ingest }
}

fn auto() -> basalt_schema::AutoCreate {
    basalt_schema::AutoCreate { metric: true, ..basalt_schema::AutoCreate::default() }
}

impl Folder {
    fn with_ttl(self, ttl_s: Option<u64>) -> Self {
        self.set_ttl(ttl_s);
        self
    }

    fn set_ttl(&self, ttl_s: Option<u64>) {
        let store = IndexedStore::new(Arc::clone(&self.schema));
        let mut table = store.describe_table(&self.schema.tables().data).unwrap();
        table.families.iter_mut().for_each(|family| family.ttl_seconds = ttl_s);
        store.alter_table(table).unwrap();
    }

    /// Puts a point of a host, as a sender does.
    fn put(&self, host: u32) {
        let line = format!("put m {NOW_S} {host} host=h{host}");
        let submitted = self.ingest.submit(&[parse_put_line(&line).unwrap()], Door::Telnet).unwrap();
        let report = submitted.wait();
        assert_eq!(report.stored, 1, "{report:?}");
    }

    fn tsuid(&self, host: u32) -> Tsuid {
        self.schema.find("m", &[("host", &format!("h{host}"))]).unwrap()
    }

    fn knows(&self, host: u32) -> bool {
        self.schema.index().id(&self.tsuid(host)).is_some()
    }

    /// Keys of the rows that are seen now.
    fn rows(&self) -> Vec<Vec<u8>> {
        let mut scanner =
            self.engine.scan(&self.schema.tables().data, Scan::all().with_columns(Columns::all())).unwrap();
        let batches = std::iter::from_fn(|| scanner.next_wait());
        batches.flat_map(|batch| batch.unwrap().rows().map(|row| row.key().to_vec()).collect::<Vec<_>>()).collect()
    }

    /// Later than the points put so far are kept.
    fn expire(&self) {
        self.clock.advance(TTL_S * 1000 + 1);
    }

    fn turn(&self) -> Departed {
        self.schema.let_series_go(1, &mut |goes| self.ingest.forget(goes)).unwrap()
    }

    /// A whole pass; how many series left.
    fn pass(&self) -> u64 {
        for _turn in 0..TURNS_MAX {
            match self.turn() {
                Departed::Done(gone) => return gone,
                Departed::UnderWay => {}
                Departed::NotNow => panic!("not now"),
            }
        }
        panic!("a pass without end");
    }

    fn close(self) {
        self.schema.checkpoint().unwrap();
        self.engine.close().unwrap();
    }
}

#[test]
fn series_whose_points_went_leave_and_come_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path()).with_ttl(Some(TTL_S));
    (0..20).for_each(|host| folder.put(host));
    folder.schema.checkpoint().unwrap();
    assert_eq!(folder.pass(), 0);
    folder.expire();
    (0..5).for_each(|host| folder.put(host));
    assert_eq!(folder.ingest.levels().known_series, 20);
    assert_eq!(folder.pass(), 15);
    assert_eq!((folder.schema.index().len(), folder.ingest.levels().known_series), (5, 5));
    assert!((0..20).all(|host| folder.knows(host) == (host < 5)));
    // Names stay. A row of the same hour, which the memtable of before had too.
    folder.put(7);
    assert!(folder.knows(7) && folder.rows().len() == 6);
    assert_eq!(folder.pass(), 0);
    // The next start knows as much.
    folder.close();
    let again = open_at(dir.path(), NOW_S + TTL_S + 1);
    assert_eq!(
        (again.schema.index().len(), again.schema.rebuilt().log, again.schema.rebuilt().rows_count),
        (6, LogRead::Whole, 0)
    );
}

/// A point comes between two turns of a pass, whichever these are.
#[test]
fn a_point_that_comes_during_a_pass_is_never_of_a_series_that_left() {
    for at in 0..12 {
        for is_flushed in [false, true] {
            point_at(at, is_flushed);
        }
    }
}

fn point_at(at: usize, is_flushed: bool) {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path()).with_ttl(Some(TTL_S));
    (0..4).for_each(|host| folder.put(host));
    folder.expire();
    folder.put(3);
    let mut gone = None;
    for turn in 0..TURNS_MAX {
        if turn == at {
            folder.put(1);
            assert!(folder.knows(1), "turn {at}: as the row is there");
            if is_flushed {
                folder.engine.flush(&folder.schema.tables().data).unwrap();
            }
        }
        if let Departed::Done(count) = folder.turn() {
            gone.get_or_insert(count);
            if turn >= at {
                break;
            }
        }
    }
    assert!(folder.knows(1) && folder.knows(3) && !folder.knows(0), "turn {at}");
    assert_eq!(folder.rows().len(), 2, "turn {at}");
    assert!(gone.is_some_and(|gone| gone >= 2), "turn {at}: {gone:?}");
}

/// Who writes a row looks its series up at one turn, among those it remembers or in the index, and the store has the row at another.
#[test]
fn a_writer_that_found_a_series_at_any_turn_writes_a_row_of_one_that_is_known() {
    for found_at in 0..10 {
        for written_at in found_at..found_at + 4 {
            for remembers in [true, false] {
                write_at(found_at, written_at, remembers);
            }
        }
    }
}

fn write_at(found_at: usize, written_at: usize, remembers: bool) {
    let what = format!("found at {found_at}, written at {written_at}, remembers {remembers}");
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path()).with_ttl(Some(TTL_S));
    (0..2).for_each(|host| folder.put(host));
    folder.expire();
    let (schema, tsuid) = (&folder.schema, folder.tsuid(1));
    let remembered = Mutex::new(remembers.then(|| schema.index().id(&tsuid).unwrap()));
    let forget = &mut |goes: &dyn Fn(SeriesId) -> bool| {
        let mut remembered = remembered.lock().unwrap();
        *remembered = remembered.filter(|id| !goes(*id));
        folder.ingest.forget(goes);
    };
    let mut writing = None;
    for turn in 0..TURNS_MAX {
        if turn == found_at {
            writing = Some(schema.index().writing());
            let mut remembered = remembered.lock().unwrap();
            *remembered = Some(remembered.unwrap_or_else(|| schema.index().add(&tsuid).unwrap()));
        }
        if turn == written_at {
            write(&folder, &tsuid);
            writing = None;
            assert!(folder.knows(1), "{what}: as the row is there");
        }
        let departed = schema.let_series_go(1, forget).unwrap();
        if turn > written_at && matches!(departed, Departed::Done(_)) {
            break;
        }
    }
    drop(writing);
    assert!(folder.knows(1) && !folder.knows(0), "{what}");
    // What is remembered still is what the index has.
    let remembered = *remembered.lock().unwrap();
    assert!(remembered.is_none_or(|id| schema.index().id(&tsuid) == Some(id)), "{what}");
}

/// A row of a series, past ingest.
fn write(folder: &Folder, tsuid: &Tsuid) {
    let base = basalt_schema::BaseTime::of_seconds(u32::try_from(NOW_S).unwrap() / 3600 * 3600);
    let key = folder.schema.layout().series_key(tsuid).row_key(base);
    let mut batch = basalt_store::MutationBatch::new(basalt_store::Durability::Fsync);
    batch.row(&key).unwrap().put(b"t", &[0, 0], None, &[1]).unwrap();
    assert!(folder.engine.apply(&folder.schema.tables().data, batch).wait().unwrap().failed.is_empty());
}

/// The points not merged away yet are seen again, and so are their series: in the server that runs, and by the next start.
#[test]
fn series_come_back_with_the_rows_that_a_longer_ttl_shows() {
    for is_running in [true, false] {
        for at in [0, 3, 5, 9] {
            lengthen_at(at, is_running);
        }
    }
}

fn lengthen_at(at: usize, is_running: bool) {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path()).with_ttl(Some(TTL_S));
    (0..3).for_each(|host| folder.put(host));
    // Into a file of which not all will be too old: that would go at once.
    folder.clock.advance(TTL_S * 500);
    folder.put(9);
    folder.engine.flush(&folder.schema.tables().data).unwrap();
    folder.clock.advance(TTL_S * 500 + 1);
    folder.put(0);
    for turn in 0..TURNS_MAX {
        if turn == at {
            folder.set_ttl(None);
            if is_running {
                folder.schema.checkpoint().unwrap();
            }
        }
        if turn > at + 7 {
            break;
        }
        folder.turn();
    }
    let rows = folder.rows();
    let is_there =
        |host: &u32| rows.iter().any(|row| folder.schema.layout().decode(row).unwrap().tsuid() == folder.tsuid(*host));
    let there: Vec<u32> = (0..10).filter(|host| *host < 3 || *host == 9).filter(is_there).collect();
    assert!(there.starts_with(&[0]) && there.ends_with(&[9]), "turn {at}: {there:?}");
    if is_running {
        assert!(there.iter().all(|host| folder.knows(*host)), "turn {at}: {there:?}");
    } else {
        folder.engine.close().unwrap();
        drop(folder);
        let again = open(dir.path());
        assert!(there.iter().all(|host| again.knows(*host)), "turn {at}: {there:?}");
    }
}

/// A shorter TTL, or the same, leaves the log as it is.
#[test]
fn a_shorter_ttl_reads_no_rows_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    folder.put(0);
    folder.schema.checkpoint().unwrap();
    let log = dir.path().join("side-series.log");
    for (ttl, is_kept) in [(Some(TTL_S), true), (Some(TTL_S), true), (Some(TTL_S + 1), false)] {
        folder.set_ttl(ttl);
        assert_eq!(log.exists(), is_kept, "{ttl:?}");
    }
}

/// Rows of a snapshot come back, with numbers of before the pass.
#[test]
fn a_snapshot_that_comes_back_during_a_pass_brings_its_series() {
    for at in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let folder = open(dir.path()).with_ttl(Some(TTL_S));
        let (store, data) = (IndexedStore::new(Arc::clone(&folder.schema)), folder.schema.tables().data.clone());
        (0..3).for_each(|host| folder.put(host));
        folder.engine.snapshot(&data, "s").unwrap();
        store.truncate_table(&data, basalt_store::TruncatedRegions::Kept).unwrap();
        folder.put(0);
        folder.schema.checkpoint().unwrap();
        for turn in 0..at + 9 {
            if turn == at {
                store.disable_table(&data).unwrap();
                assert_eq!(folder.turn(), Departed::NotNow);
                store.restore_snapshot("s").unwrap();
                store.enable_table(&data).unwrap();
            }
            folder.turn();
        }
        assert!((0..3).all(|host| folder.knows(host)), "turn {at}");
    }
}

/// Where a series went with its table no log was written until the next start: it is, once that series left.
#[test]
fn the_log_is_written_again_when_what_it_must_not_tell_left() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    (0..3).for_each(|host| folder.put(host));
    folder.schema.checkpoint().unwrap();
    folder.engine.truncate_table(&folder.schema.tables().data, basalt_store::TruncatedRegions::Kept).unwrap();
    folder.put(1);
    folder.schema.checkpoint().unwrap();
    let log = dir.path().join("side-series.log");
    assert!(!log.exists());
    assert_eq!(folder.pass(), 2);
    folder.close();
    assert!(log.exists());
    assert_eq!(open(dir.path()).schema.index().len(), 1);
}

/// Many put while passes go on and time passes: every row that is seen is of a series that is known.
#[test]
fn passes_beside_many_writers_lose_no_series() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path()).with_ttl(Some(TTL_S));
    let (done, passes) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for writer in 0..3_u32 {
            let folder = &folder;
            scope.spawn(move || put_some(folder, writer));
        }
        let (folder, done, passes) = (&folder, &done, &passes);
        let leaver = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                if let Departed::Done(_) = folder.turn() {
                    passes.fetch_add(1, Ordering::Relaxed);
                    folder.schema.checkpoint().unwrap();
                }
            }
        });
        // The writers end by themselves, at their bound.
        while folder.ingest.stats().counts().doors[Door::Telnet.index()].stored < 3600 {
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        leaver.join().unwrap();
    });
    let known: BTreeSet<Vec<u8>> =
        (0..HOSTS).filter(|host| folder.knows(*host)).map(|host| folder.tsuid(host).as_bytes().to_vec()).collect();
    let rows = folder.rows();
    for row in &rows {
        let tsuid = folder.schema.layout().decode(row).unwrap().tsuid();
        assert!(known.contains(tsuid.as_bytes()), "a row of a series that is not known: {tsuid}");
    }
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len(), "each row once");
    assert!(passes.load(Ordering::Relaxed) > 0);
    folder.engine.compact(&folder.schema.tables().data, Compaction::Major).unwrap();
    folder.engine.verify().unwrap();
}

fn put_some(folder: &Folder, writer: u32) {
    let mut state = 88_172_645_463_325_252_u64 + u64::from(writer);
    for step in 0..1200 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Some hosts all the time, others now and then.
        let host = u32::try_from(state % u64::from(HOSTS)).unwrap();
        folder.put(if step % 3 == 0 { host } else { host % 5 });
        folder.clock.advance(TTL_S * 1000 / 40);
    }
}

/// A pass an hour after the start, then each hour or sixteenth of the TTL.
#[test]
fn passes_begin_an_hour_after_the_start_and_then_as_the_ttl_says() {
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path());
    let mut now = Instant::now();
    let mut pass = Pass::begun(now);
    folder.put(0);
    folder.expire();
    pass.turn(&folder.schema, &folder.ingest, (now, 0));
    now = pass.next.unwrap();
    assert_eq!(now.duration_since(Instant::now()).as_secs() / 60, 59);
    let mut seconds_until_next = |pass: &mut Pass| {
        for _turn in 0..TURNS_MAX {
            pass.turn(&folder.schema, &folder.ingest, (now, 0));
            if let Some(next) = pass.next {
                let seconds = next.duration_since(now).as_secs();
                now = next;
                return seconds;
            }
        }
        panic!("a pass without end");
    };
    assert_eq!(seconds_until_next(&mut pass), 10, "nothing goes without a TTL");
    assert_eq!(folder.schema.index().len(), 1);
    folder.set_ttl(Some(TTL_S));
    assert_eq!(seconds_until_next(&mut pass), 3600);
    assert_eq!(folder.schema.index().len(), 0);
    folder.set_ttl(Some(160 * 3600));
    folder.schema.checkpoint().unwrap();
    assert_eq!(seconds_until_next(&mut pass), 10 * 3600);
}

/// Points that were too old by a clock that stood too late, in the server that runs and by the next start: which tells only
/// where something was written by that clock.
#[test]
fn series_that_left_by_a_wrong_clock_come_back_once_it_is_set_back() {
    for is_running in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let folder = open(dir.path()).with_ttl(Some(TTL_S));
        let mut pass = Pass { next: None, judged_ms: 0 };
        (0..3).for_each(|host| folder.put(host));
        // Into files of which not all will be too old, in any bucket: those would go at once.
        folder.clock.advance(TTL_S * 500);
        (10..200).for_each(|host| folder.put(host));
        folder.engine.flush(&folder.schema.tables().data).unwrap();
        folder.clock.advance(TTL_S * 500 + 1);
        folder.put(0);
        for _turn in 0..TURNS_MAX {
            pass.meet_clock(&folder.schema, folder.clock.now().0);
            folder.schema.checkpoint().unwrap();
            pass.turn(&folder.schema, &folder.ingest, (Instant::now(), folder.clock.now().0));
            if pass.next.is_some() {
                break;
            }
        }
        assert!(folder.knows(0) && !folder.knows(1) && !folder.knows(2));
        folder.clock.set(Timestamp(NOW_S * 1000 + TTL_S * 500));
        assert_eq!(folder.rows().len(), 3 + 190);
        let folder = if is_running {
            pass.meet_clock(&folder.schema, folder.clock.now().0);
            folder.schema.checkpoint().unwrap();
            folder
        } else {
            folder.close();
            open_at(dir.path(), NOW_S + TTL_S / 2)
        };
        assert!((0..3).all(|host| folder.knows(host)), "is running: {is_running}");
    }
}

/// Prints what is resident after each of some generations of 300,000 series that come, and go by TTL:
/// `cargo test --bin basalt -- --ignored generations_of --nocapture`.
#[test]
#[ignore = "a measurement, not a check"]
fn generations_of_series() {
    const SERIES: u32 = 300_000;
    let statm = || std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident = || statm().split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096 / (1 << 20);
    let dir = tempfile::tempdir().unwrap();
    let folder = open(dir.path()).with_ttl(Some(TTL_S));
    let goes = std::env::var_os("KEEP").is_none();
    for generation in 0..5 {
        let lines: Vec<String> = (0..SERIES)
            .map(|series| {
                format!(
                    "put m{} {NOW_S} 1 host=h{generation}-{} dc=d{} rack=r{}",
                    series % 10,
                    series / 10,
                    series / 10 % 5,
                    series / 10 % 100
                )
            })
            .collect();
        for some in lines.chunks(500) {
            let points: Vec<_> = some.iter().map(|line| parse_put_line(line).unwrap()).collect();
            assert_eq!(folder.ingest.submit(&points, Door::Telnet).unwrap().wait().stored, 500);
        }
        let put = resident();
        folder.expire();
        let begun = std::time::Instant::now();
        let gone = if goes { folder.pass() } else { 0 };
        let took = begun.elapsed();
        folder.schema.checkpoint().unwrap();
        let log = std::fs::metadata(dir.path().join("side-series.log")).unwrap().len();
        println!(
            "generation {generation}: {put} MiB, then {} MiB; {gone} gone in {took:?}, {} known, index {} bytes, log {log} bytes",
            resident(),
            folder.schema.index().len(),
            folder.schema.index().memory_bytes()
        );
    }
}
