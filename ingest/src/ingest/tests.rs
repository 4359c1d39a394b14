//! The facade over a memory store that can be told to fail.

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use basalt_schema::{AutoCreate, SchemaConfig, UidKind, Value};
use basalt_store::{Completer, Get, ManualClock, MemoryStore, MutationBatch, RowBatch, RowFailure, Scan, TableName};
use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{PutReport, parse_import_line, parse_put, parse_put_line};

mod cells;

/// What the next batches of points meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Rows of this place are refused as too large.
    Row(usize),
    /// Rows of this place find a full memtable.
    ThrottledRow(usize),
    /// The whole batch meets a store that only reads.
    ReadOnly,
    /// The batch is not answered until it is told to.
    Held,
    /// No name is read.
    Away,
}

/// A memory store with faults in its `apply` and a count of its `get`s.
#[derive(Debug)]
struct FaultyStore {
    inner: MemoryStore,
    fault: Mutex<Fault>,
    held: Mutex<Vec<Completer<Applied>>>,
    gets: AtomicU64,
}

impl FaultyStore {
    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn answer_held(&self) {
        for completer in self.held.lock().unwrap().drain(..) {
            completer.complete(Ok(Applied::default()));
        }
    }
}

impl basalt_store::Forward for FaultyStore {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
        let fault = *self.fault.lock().unwrap();
        let refuse = |row, error| {
            let failed = if row < batch.rows().len() { vec![RowFailure { row, error }] } else { Vec::new() };
            Pending::ready(Ok(Applied { failed }))
        };
        match fault {
            Fault::None | Fault::Away => self.inner.apply(table, batch),
            Fault::Row(row) => refuse(row, basalt_store::Error::TooLarge { what: "row", size: 2, limit: 1 }),
            Fault::ThrottledRow(row) => refuse(row, basalt_store::Error::Throttled { what: "memtable" }),
            Fault::ReadOnly => Pending::ready(Err(basalt_store::Error::ReadOnly { reason: "the disk is full".into() })),
            Fault::Held => {
                let (completer, pending) = Pending::channel();
                self.held.lock().unwrap().push(completer);
                pending
            }
        }
    }

    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch> {
        self.gets.fetch_add(1, Ordering::Relaxed);
        if *self.fault.lock().unwrap() == Fault::Away {
            return Pending::ready(Err(basalt_store::Error::Closed));
        }
        self.inner.get(table, get)
    }
}

struct Bench {
    store: Arc<FaultyStore>,
    schema: Arc<Schema>,
    ingest: Ingest,
    clock: Arc<ManualClock>,
}

fn bench_with(config: SchemaConfig, limits: IngestLimits) -> Bench {
    let clock = Arc::new(ManualClock::default());
    let store = Arc::new(FaultyStore {
        inner: MemoryStore::new(Arc::<ManualClock>::clone(&clock)),
        fault: Mutex::new(Fault::None),
        held: Mutex::default(),
        gets: AtomicU64::new(0),
    });
    let shared: Arc<dyn Store> = Arc::<FaultyStore>::clone(&store);
    let schema = Arc::new(Schema::open(Arc::clone(&shared), config).unwrap());
    let ingest = Ingest::new(Arc::clone(&schema), shared, limits);
    Bench { store, schema, ingest, clock }
}

fn bench() -> Bench {
    bench_with(SchemaConfig::default(), IngestLimits::default())
}

impl Bench {
    /// Puts a body as the daemon does.
    fn put(&self, body: &str) -> PutReport {
        let points = self.ingest.parse_put(body).unwrap();
        let submission = self.ingest.submit_known(&points, Door::Http).unwrap();
        submission.unwrap_or_else(|| self.ingest.submit(&points, Door::Http).unwrap()).wait()
    }

    fn put_line(&self, line: &str) -> PutReport {
        let read = self.ingest.parse_put_lines(std::iter::once(line)).remove(0);
        self.ingest.submit(&[read.unwrap()], Door::Telnet).unwrap().wait()
    }

    /// All cells of the data table: row key, qualifier, value.
    fn cells(&self) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
        self.cells_of(&self.schema.tables().data)
    }

    fn counts(&self, door: Door) -> crate::DoorCounts {
        self.ingest.stats().counts().doors[door.index()]
    }
}

/// Errors as a put's details show them, by the point's index.
fn texts(report: &PutReport) -> Vec<(usize, String)> {
    report.errors.iter().map(|error| (error.index, error.problem.http_text())).collect()
}

fn object(metric: &str, time: i64, value: &str, host: &str) -> String {
    format!(r#"{{"metric":"{metric}","timestamp":{time},"value":{value},"tags":{{"host":"{host}"}}}}"#)
}

const T: i64 = 1_700_000_000;

#[test]
fn s_val_float_cells_are_opentsdbs_at_each_door() {
    let bench = bench();
    assert!(
        bench.put(&format!("[{},{}]", object("m", T, "42.5", "a"), object("m", T + 1, "257", "a"))).is_all_stored()
    );
    assert!(bench.put_line(&format!("put m {} 42.5 host=a", T + 2)).is_all_stored());
    let line = format!("m {} 0.1 host=a\n", T + 3);
    let imported = bench.ingest.submit(&[parse_import_line(&line).unwrap()], Door::Import).unwrap().wait();
    assert!(imported.is_all_stored());
    let cells = bench.cells();
    // Base 1699999200; offsets 800 to 803 s.
    let key = &cells[0].0;
    assert_eq!(key[1..], [0, 0, 1, 0x65, 0x53, 0xED, 0xE0, 0, 0, 1, 0, 0, 1]);
    let written: Vec<_> =
        cells.iter().map(|(row, qualifier, value)| (row == key, &qualifier[..], &value[..])).collect();
    assert_eq!(
        written,
        [
            (true, &[0x32, 0x0F][..], &[0x40, 0x45, 0x40, 0, 0, 0, 0, 0][..]),
            (true, &[0x32, 0x11], &[1, 1]),
            (true, &[0x32, 0x2B], &[0x42, 0x2A, 0, 0]),
            (true, &[0x32, 0x3F], &0.1f64.to_be_bytes()),
        ]
    );
}

#[test]
fn w_put_batch_good_points_of_a_bad_batch_are_stored() {
    let bench = bench();
    let body = format!(
        "[{},null,{},{},{}]",
        object("m", T, "1", "a"),
        object("m", T, "\"x\"", "a"),
        object("a b", T, "1", "a"),
        object("m", T, "1", "b"),
    );
    let report = bench.put(&body);
    assert_eq!((report.stored, report.rejected, report.failed), (2, 3, 0));
    assert_eq!(
        texts(&report),
        [
            (1, "Unexpected null datapoint encountered in set.".into()),
            (2, "Unable to parse value to a number".into()),
            (3, "Invalid metric name (\"a b\"): illegal character:  ".into()),
        ]
    );
    assert_eq!(bench.cells().len(), 2);
}

/// Values and times are looked at, whether the series is known or not.
#[test]
fn points_of_known_series_are_checked_as_all_are() {
    let bench = bench();
    for _ in 0..2 {
        let body = format!(
            "[{},{},{},{},{},{}]",
            object("m", 0, "1", "a"),
            object("m", T, "\"\\u0034\"", "a"),
            object("m", -T, "2", "a"),
            object("m", T + 1, "\"7x\"", "a"),
            object("m", 4_294_967_296_000, "3", "a"),
            object("m", T + 2, "-5", "a"),
        );
        let report = bench.put(&body);
        assert_eq!(report.errors.iter().map(|error| error.index).collect::<Vec<_>>(), [0, 2, 3, 4]);
        let values: Vec<_> = bench.cells().into_iter().map(|(_, _, value)| value).collect();
        assert_eq!(values, [vec![4], vec![0xFB]]);
    }
}

#[test]
fn w_put_autocreate_unknown_metrics_are_told() {
    let config =
        SchemaConfig { auto_create: AutoCreate { metric: false, ..AutoCreate::default() }, ..SchemaConfig::default() };
    let bench = bench_with(config, IngestLimits::default());
    let before = bench.store.gets.load(Ordering::Relaxed);
    let body = format!("[{}]", vec![object("nope", T, "1", "a"); 50].join(","));
    let report = bench.put(&body);
    assert_eq!((report.rejected, report.failed), (50, 0));
    assert_eq!(texts(&report)[49], (49, "Unknown metric".into()));
    // A spelling that has no series is asked once a batch.
    assert_eq!(bench.store.gets.load(Ordering::Relaxed) - before, 1);
    let report = bench.put_line("put nope 1700000000 1 host=a");
    assert_eq!(report.errors[0].problem.telnet_text("put"), "put: unknown metric: No such name for 'metrics': 'nope'");
    bench.schema.uids().of(UidKind::Metric).create("nope").unwrap();
    assert!(bench.put_line("put nope 1700000000 1 host=a").is_all_stored());
}

/// While a body is read no new series is taken, and who waits to take one keeps all others out.
#[test]
fn fields_of_no_tags_take_no_square_of_time() {
    let body = format!(r#"{{"metric":"m",{}"timestamp":1}}"#, r#""tags":null,"#.repeat(2_000_000));
    assert_eq!(bench().ingest.parse_put(&body).unwrap().len(), 1);
}

#[test]
fn a_known_series_costs_no_io_and_a_new_spelling_is_no_new_series() {
    let bench = bench();
    assert!(bench.put(&object("m", T, "1", "a")).is_all_stored());
    let before = bench.store.gets.load(Ordering::Relaxed);
    assert!(bench.put(&object("m", T + 1, "2", "a")).is_all_stored());
    assert_eq!(bench.store.gets.load(Ordering::Relaxed), before);
    assert_eq!(bench.ingest.levels().known_series, 1);
    assert!(bench.put(&object("\\u006d", T + 2, "3", "a")).is_all_stored());
    assert!(bench.put_line(&format!("put m {} 4 host=a", T + 3)).is_all_stored());
    assert_eq!((bench.ingest.levels().known_series, bench.schema.index().len()), (3, 1));
    let is_known = |body: &str| {
        let points = bench.ingest.parse_put(body).unwrap();
        bench
            .ingest
            .submit_known(&points, Door::Http)
            .unwrap()
            .is_some_and(|submission| submission.wait().is_all_stored())
    };
    assert!(is_known(&object("m", T, "1", "a")));
    assert!(!is_known(&object("m", T, "1", "b")), "a new series needs the store");
    assert!(bench.counts(Door::Http).is_balanced());
    let cells = bench.cells();
    assert!(cells.len() == 4 && cells.iter().all(|cell| cell.0 == cells[0].0));
}

/// Tags that were resolved are not resolved again for the next metric: each point must fare as it does alone.
#[test]
fn points_that_share_their_tags_fare_as_each_alone() {
    let object =
        |metric: &str, tags: &str| format!(r#"{{"metric":"{metric}","timestamp":{T},"value":1,"tags":{tags}}}"#);
    let shared = r#"{"host":"a","dc":"b"}"#;
    let points = [
        object("m1", shared),
        object("m2", shared),
        object("no name", shared),
        object("m\\u0033", shared),
        object("m1", r#"{"dc":"b","host":"a"}"#),
        object("m4", r#"{"host":"a","dc":"b c"}"#),
        object("m5", r#"{"host":"a","dc":"b c"}"#),
        object("m5", r#"{"host":"a","dc":null}"#),
        object("m5", shared),
        object(&"m".repeat(70_000), shared),
    ];
    let (together, alone) = (bench(), bench());
    let found = texts(&together.put(&format!("[{}]", points.join(","))));
    let expected = points
        .iter()
        .enumerate()
        .flat_map(|(index, point)| texts(&alone.put(point)).into_iter().map(move |(_, text)| (index, text)));
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert_eq!(found.len(), 5, "{found:?}");
    assert_eq!(together.cells(), alone.cells());
    assert_eq!(together.schema.index().len(), 4);
}

/// Known spellings pass over tags by their bytes; what is read must be what a reader of every byte reads.
#[test]
fn a_body_of_known_series_is_read_as_when_they_were_new() {
    let bench = bench();
    let known = object("m", T, "1", "a");
    let twice = r#"{"tags":{"host":"b"},"metric":"n","tags":{"host":"a"},"metric":"m","timestamp":1,"value":1}"#;
    let later = r#"{"metric":"m","tags": {"host":"a"} ,"timestamp":1,"value":1,"more":{"tags":{"host":"a"}}}"#;
    let bodies = [known.clone(), format!("[{known}, {known}]"), twice.to_owned(), later.to_owned()];
    assert!(bodies.iter().all(|body| bench.put(body).is_all_stored()));
    let broken = ["{\"host\":\"a\"}", "{\"host\":\"a}\"}", "{\"host\":\"a\"", "{\"host\":\"a\",}", "{}", "null", "7}"];
    let broken = broken.map(|tags| format!(r#"[{known},{{"metric":"m","timestamp":1,"value":1,"tags":{tags}}}]"#));
    let again = [r#","tags":{"host":"a"}"#, r#","metric":"m""#, r#","tags":null"#]
        .map(|again| format!(r#"{{"metric":"m","timestamp":1,"value":1,"tags":{{"a":[}}{again}}}"#));
    for body in bodies.iter().chain(&broken).chain(&again) {
        let read = bench.ingest.parse_put(body).map(|mut points| {
            for point in &mut points {
                point.spelled = None;
            }
            points
        });
        assert_eq!(format!("{read:?}"), format!("{:?}", parse_put(body, bench.ingest.limits())), "{body}");
    }
    let points = bench.ingest.parse_put(&known).unwrap();
    assert!(points[0].spelled.is_some());
}

/// Values that are read on the way, and those that are not, by body, line and block.
#[test]
fn values_of_known_series_are_stored_as_they_were_written() {
    let values = ["0", "7", "42", "-3", "100", "1234567", "12345678", "4294967295", "-128", "1.5", "30", "0", "128"];
    let timed = || values.iter().zip(T..);
    let known = bench();
    assert!(known.put(&object("m", T - 1, "1", "a")).is_all_stored());
    assert!(known.put_line(&format!("put m {} 1 host=a", T - 1)).is_all_stored());
    let body = timed().map(|(value, time)| object("m", time, value, "a")).collect::<Vec<_>>().join(",");
    assert!(known.put(&format!("[{body}]")).is_all_stored());
    let by_body = known.cells();
    // Of a point that another's round repeats, metric and value alone differ.
    let round = values.iter().map(|value| object("m", T, value, "a")).collect::<Vec<_>>().join(",");
    let points = known.ingest.parse_put(&format!("[{round}]")).map(|points| {
        let told = points.iter().map(|point| (point.value.unwrap().raw().to_owned(), known_integer(point)));
        told.collect::<Vec<_>>()
    });
    for (value, read) in points.unwrap() {
        let expected = value.parse().map(Value::Int).ok();
        assert_eq!(read.map(|measured| measured.value), expected, "{value}");
    }
    let each = bench();
    assert!(each.put(&object("m", T - 1, "1", "a")).is_all_stored());
    assert!(timed().all(|(value, time)| each.put(&object("m", time, value, "a")).is_all_stored()));
    assert_eq!(each.cells(), by_body);
    let lines = bench();
    assert!(lines.put_line(&format!("put m {} 1 host=a", T - 1)).is_all_stored());
    let block = timed().map(|(value, time)| format!("put m {time} {value} host=a\n")).collect::<Vec<_>>().concat();
    let points = lines.ingest.parse_known_block(block.as_bytes()).unwrap();
    assert!(lines.ingest.submit_known(&points, Door::Telnet).unwrap().unwrap().wait().is_all_stored());
    let each = bench();
    assert!(block.lines().all(|line| each.put_line(line).is_all_stored()));
    assert!(each.put_line(&format!("put m {} 1 host=a", T - 1)).is_all_stored());
    assert_eq!(each.cells(), lines.cells());
}

/// The same of lines.
#[test]
fn lines_of_known_series_are_read_as_when_they_were_new() {
    let bench = bench();
    let known = "put m 1700000000 1 host=a dc=b";
    let lines = [known, "put m 1700000001 2 host=a dc=b\r\n", "put m 1 1 host=a  dc=b", "put m 1 1 host=a dc=b dc=c"];
    let broken = ["put", "put m", "put m 1 1", "put m x 1 host=a dc=b", "put m 1 1 host", "put  1 1 host=a dc=b"];
    assert!(bench.put_line(known).is_all_stored());
    let all: Vec<&str> = lines.into_iter().chain(broken).collect();
    for (line, read) in all.iter().zip(bench.ingest.parse_put_lines(all.iter().copied())) {
        let is_known = read.as_ref().is_ok_and(|point| point.spelled.is_some());
        assert_eq!(is_known, line.contains("host=a dc=b") && line.contains("m 1700"), "{line}");
        let read = read.map(|point| RawPoint { spelled: None, ..point });
        assert_eq!(read, parse_put_line(line), "{line}");
    }
}

#[test]
fn a_rename_is_obeyed_by_the_next_batch() {
    let bench = bench();
    assert!(bench.put(&object("m", T, "1", "a")).is_all_stored());
    bench.schema.uids().of(UidKind::Metric).rename("m", "n").unwrap();
    // Within one millisecond the tombstone of the old name would hide the new one (rule S-DEL-8).
    bench.clock.advance(1);
    assert!(bench.put(&object("m", T, "2", "a")).is_all_stored());
    assert!(bench.put(&object("n", T, "3", "a")).is_all_stored());
    let cells = bench.cells();
    let values: Vec<(u8, u8)> = cells.iter().map(|(row, _, value)| (row[3], value[0])).collect();
    // UID 1 is now n, whose point replaced m's first; m is a new metric.
    let mut sorted = values;
    sorted.sort_unstable();
    assert_eq!(sorted, [(1, 3), (2, 2)]);
}

#[test]
fn of_points_at_one_instant_the_last_wins_whatever_its_spelling() {
    let bench = bench();
    let body =
        format!("[{},{},{}]", object("m", T, "1", "a"), object("\\u006d", T, "2.5", "a"), object("m", T, "7", "a"));
    let report = bench.put(&body);
    assert_eq!((report.stored, bench.counts(Door::Http).superseded), (3, 2));
    let cells = bench.cells();
    assert_eq!((cells.len(), &cells[0].2[..]), (1, &[7][..]));
}

#[test]
fn a_refused_row_fails_its_points_alone() {
    let bench = bench();
    let body = format!(
        "[{},{},{},{}]",
        object("m", T, "1", "a"),
        object("m", T, "1", "b"),
        object("m", T + 1, "1", "a"),
        "{}"
    );
    bench.store.set(Fault::Row(0));
    let report = bench.put(&body);
    assert_eq!((report.stored, report.rejected, report.failed), (1, 1, 2));
    let refused = "Storage exception for good: row of 2 bytes is over the limit of 1 bytes";
    assert_eq!(texts(&report), [(3, "Metric name was empty".into()), (0, refused.into()), (2, refused.into())]);
    bench.store.set(Fault::ThrottledRow(1));
    let report = bench.put(&body);
    assert_eq!((report.stored, report.rejected, report.failed), (2, 1, 1));
    assert_eq!(texts(&report)[1], (1, "Please throttle writes: memtable is full; try again".into()));
}

#[test]
fn a_store_that_only_reads_fails_every_good_point() {
    let bench = bench();
    bench.store.set(Fault::ReadOnly);
    let report = bench.put(&format!("[{},{{}}]", object("m", T, "1", "a")));
    assert_eq!((report.stored, report.rejected, report.failed), (0, 1, 1));
    assert_eq!(texts(&report)[1], (0, "Storage exception: the store is read-only: the disk is full".into()));
    let report = bench.put_line("put m 1700000000 1 host=a");
    let text = report.errors[0].problem.telnet_text("put");
    assert_eq!(text, "put: HBase error: the store is read-only: the disk is full");
}

#[test]
fn w_put_throttle_too_much_under_way_is_an_answer() {
    let bench = bench_with(SchemaConfig::default(), IngestLimits { inflight_points_max: 2, ..IngestLimits::default() });
    let body = format!("[{},{}]", object("m", T, "1", "a"), object("m", T, "1", "b"));
    let points = parse_put(&body, bench.ingest.limits()).unwrap();
    bench.store.set(Fault::Held);
    let first = bench.ingest.submit(&points, Door::Http).unwrap();
    assert_eq!(bench.ingest.levels().inflight_points, 2);
    let refused = bench.ingest.submit(&points[..1], Door::Http).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Throttled);
    bench.store.answer_held();
    assert!(first.wait().is_all_stored());
    bench.store.set(Fault::None);
    assert!(bench.ingest.submit(&points, Door::Http).unwrap().wait().is_all_stored());
    let counts = bench.counts(Door::Http);
    assert_eq!((counts.received, counts.stored, counts.failed()), (5, 4, 1));
    assert_eq!(bench.ingest.levels().inflight_points, 0);
}

#[test]
fn a_submission_is_a_future_and_may_be_given_up() {
    let bench = bench();
    let body = object("m", T, "1", "a");
    let points = parse_put(&body, bench.ingest.limits()).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    bench.store.set(Fault::Held);
    {
        let mut submission = pin!(bench.ingest.submit(&points, Door::Http).unwrap());
        assert!(submission.as_mut().poll(&mut cx).is_pending());
        bench.store.answer_held();
        let Poll::Ready(report) = submission.poll(&mut cx) else { panic!("it was answered") };
        assert!(report.is_all_stored());
    }
    // W-PUT-SYNCTIMEOUT
    let late = bench.ingest.submit(&points, Door::Http).unwrap().time_out();
    assert_eq!((late.failed, texts(&late)), (1, vec![(0, "Write timedout".into())]));
    drop(bench.ingest.submit(&points, Door::Http).unwrap());
    let counts = bench.counts(Door::Http);
    assert_eq!((counts.received, counts.stored, counts.not[ProblemClass::TimedOut.index()]), (3, 1, 2));
    assert!(counts.is_balanced() && bench.ingest.levels().inflight_points == 0);
}

#[test]
fn a_series_is_in_the_index_before_its_rows_are_in_the_store() {
    let bench = bench();
    bench.store.set(Fault::Held);
    let body = object("m", T, "1", "a");
    let submission = bench.ingest.submit(&parse_put(&body, bench.ingest.limits()).unwrap(), Door::Http).unwrap();
    assert_eq!((bench.schema.index().len(), bench.cells().len()), (1, 0));
    bench.store.answer_held();
    assert!(submission.wait().is_all_stored());
}

#[test]
fn a_full_index_throttles_new_series_only() {
    let bench = bench_with(SchemaConfig { series_max: 1, ..SchemaConfig::default() }, IngestLimits::default());
    assert!(bench.put(&object("m", T, "1", "a")).is_all_stored());
    let report = bench.put(&format!("[{},{}]", object("m", T + 1, "1", "a"), object("m", T, "1", "b")));
    assert_eq!((report.stored, report.failed), (1, 1));
    assert_eq!(texts(&report), [(1, "Please throttle writes: the series index is full: 1 series".into())]);
}

/// Each try may wait for as long as the first.
#[test]
fn a_store_that_is_away_is_asked_for_one_name_of_a_batch() {
    let bench = bench();
    assert!(bench.put(&object("m", T, "1", "a")).is_all_stored());
    let body = format!(
        "[{},{},{},{}]",
        object("n", T, "1", "a"),
        object("m", T + 1, "1", "a"),
        object("o", T, "1", "a"),
        object("m", T, "1", "b")
    );
    let before = bench.store.gets.load(Ordering::Relaxed);
    bench.store.set(Fault::Away);
    let report = bench.put(&body);
    assert_eq!((report.stored, report.failed), (1, 3), "a known series needs no name");
    assert_eq!(bench.store.gets.load(Ordering::Relaxed) - before, 1);
    bench.store.set(Fault::None);
    assert!(bench.put(&body).is_all_stored());
}

#[test]
fn lines_that_are_no_points_are_counted() {
    let bench = bench();
    bench.ingest.reject_line(Door::Telnet, &parse_put_line("put m x 1 a=b").unwrap_err());
    let counts = bench.counts(Door::Telnet);
    assert_eq!((counts.received, counts.rejected()), (1, 1));
    assert_eq!(counts.not[ProblemClass::InvalidValue.index()], 1);
}

/// One point of a mixed batch.
fn any_object() -> impl Strategy<Value = String> {
    let metric = prop_oneof![4 => "[mn]", 1 => Just(String::new()), 1 => Just("a b".to_owned())];
    let value = prop_oneof![4 => (0u8..9).prop_map(|n| n.to_string()), 1 => Just("1.5".to_owned()), 1 => Just("\"x\"".to_owned()),
        1 => Just("1e999".to_owned()), 1 => Just("null".to_owned())];
    let time = prop_oneof![4 => T..T + 5, 1 => Just(0), 1 => Just(T * 10_000)];
    let point =
        (metric, time, value, "[ab,]?").prop_map(|(metric, time, value, host)| object(&metric, time, &value, &host));
    prop_oneof![8 => point, 1 => Just("null".to_owned()), 1 => Just("{}".to_owned())]
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        3 => Just(Fault::None),
        1 => (0usize..4).prop_map(Fault::Row),
        1 => (0usize..4).prop_map(Fault::ThrottledRow),
        1 => Just(Fault::ReadOnly),
        1 => Just(Fault::Held),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Received = stored + rejected + failed, whatever is sent and whatever fails; and the report says the same.
    #[test]
    fn every_point_is_accounted_for(
        batches in proptest::collection::vec(
            (proptest::collection::vec(any_object(), 1..12), any_fault(), 0u8..3, any::<bool>()), 1..8),
    ) {
        let limits = IngestLimits { inflight_points_max: 16, ..IngestLimits::default() };
        let bench = bench_with(SchemaConfig::default(), limits);
        let mut expected = [(0u64, 0u64, 0u64); Door::ALL.len()];
        let mut held: Vec<(Door, Submission)> = Vec::new();
        let tally = |expected: &mut [(u64, u64, u64)], door: Door, report: &PutReport| {
            assert_eq!(report.errors.len() as u64, report.rejected + report.failed);
            let told = &mut expected[door.index()];
            *told = (told.0 + report.stored, told.1 + report.rejected, told.2 + report.failed);
        };
        for (objects, fault, door, answered) in &batches {
            let door = Door::ALL[usize::from(*door)];
            let body = format!("[{}]", objects.join(","));
            let points = parse_put(&body, bench.ingest.limits()).unwrap();
            bench.store.set(*fault);
            match bench.ingest.submit(&points, door) {
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::Throttled);
                    expected[door.index()].2 += points.len() as u64;
                }
                Ok(submission) if *fault == Fault::Held => held.push((door, submission)),
                Ok(submission) => tally(&mut expected, door, &submission.wait()),
            }
            if *answered {
                bench.store.answer_held();
            }
            // Nothing is under way: every door balances.
            if *answered || held.is_empty() {
                for (door, submission) in held.drain(..) {
                    tally(&mut expected, door, &submission.wait());
                }
                let counts = bench.ingest.stats().counts();
                for door in Door::ALL {
                    let counts = counts.doors[door.index()];
                    prop_assert!(counts.is_balanced());
                    prop_assert_eq!((counts.stored, counts.rejected(), counts.failed()), expected[door.index()]);
                }
                prop_assert_eq!(bench.ingest.levels().inflight_points, 0);
            }
        }
        drop(held);
        prop_assert!(bench.ingest.stats().counts().doors.iter().all(crate::DoorCounts::is_balanced));
    }
}
