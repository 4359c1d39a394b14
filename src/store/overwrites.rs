//! Points put again and again, deleted and appended, over a folder that is flushed, merged, killed and opened, with appends switched on
//! or off: against a model of what was put last, and where the larger or the smaller value wins against what was answered before.

use std::collections::BTreeMap;
use std::path::Path;

use basalt_engine::io::{Rng as _, SplitMix};
use basalt_engine::{Engine, Limits, Workers};
use basalt_ingest::{Door, Ingest, IngestLimits};
use basalt_query::{Cancel, Number, Options, QueryEngine, QueryRequest, SubQuery};
use basalt_schema::{LargerOrSmaller, Schema, SchemaConfig, Tsb1};
use basalt_store::{Clock as _, Compaction, Durability};
use tempfile::TempDir;

use super::*;

/// 2023-11-14T22:00:00Z, the start of an hour.
const BASE_S: i64 = 1_699_999_200;
const HOSTS: [&str; 3] = ["a", "b", "c"];

const LIVES: u64 = 3;
/// What happens in one of them.
const STEPS: u32 = 40;

/// Host and milliseconds of a point.
type Instant = (String, i64);

/// What the rows of a folder hold where the newest wins.
#[derive(Debug, Default)]
struct Model {
    /// By host and hour.
    rows: BTreeMap<(String, i64), RowModel>,
    /// Counts what was written.
    now: u64,
}

/// Points by their milliseconds. Those that were appended are all as old as what was appended last: they lie in one cell.
#[derive(Debug, Default)]
struct RowModel {
    put: BTreeMap<i64, (u64, f64)>,
    appended: BTreeMap<i64, f64>,
    appended_at: u64,
}

impl RowModel {
    fn points(&self) -> BTreeMap<i64, f64> {
        let mut points: BTreeMap<i64, f64> = self.put.iter().map(|(at, (_, value))| (*at, *value)).collect();
        let is_newer = |at: &i64| self.put.get(at).is_none_or(|(put_at, _)| *put_at < self.appended_at);
        points.extend(self.appended.iter().filter(|(at, _)| is_newer(at)));
        points
    }
}

impl Model {
    fn write(&mut self, points: &[(Instant, i64, String)], appends: bool) {
        self.now += 1;
        for ((host, at), _, value) in points {
            let row = self.rows.entry((host.clone(), at / 3_600_000)).or_default();
            let value = value.parse().unwrap();
            if appends {
                row.appended.insert(*at, value);
                row.appended_at = self.now;
            } else {
                row.put.insert(*at, (self.now, value));
            }
        }
    }

    /// What stays of a row is put again.
    fn delete(&mut self, (start_s, end_s): (i64, i64)) {
        self.now += 1;
        let goes = |at: &i64| (start_s * 1000..=end_s * 1000).contains(at);
        for row in self.rows.values_mut() {
            let (gone, stays): (Vec<_>, Vec<_>) = row.points().into_iter().partition(|(at, _)| goes(at));
            if !gone.is_empty() {
                let put = stays.into_iter().map(|(at, value)| (at, (self.now, value))).collect();
                *row = RowModel { put, ..RowModel::default() };
            }
        }
    }

    fn points(&self) -> BTreeMap<Instant, f64> {
        let of_row = |((host, _), row): (&(String, i64), &RowModel)| {
            let host = host.clone();
            row.points().into_iter().map(move |(at, value)| ((host.clone(), at), value))
        };
        self.rows.iter().flat_map(of_row).collect()
    }
}

/// How the points of a folder become cells.
#[derive(Debug, Clone, Copy)]
enum Cells {
    /// A cell of its own each.
    Put,
    Appended,
    /// Either, as each life has it.
    Mixed,
    /// Each with the time of its point.
    AtTheirTimes(LargerOrSmaller),
}

impl Cells {
    fn data_times(self) -> Option<LargerOrSmaller> {
        match self {
            Self::AtTheirTimes(kept) => Some(kept),
            Self::Put | Self::Appended | Self::Mixed => None,
        }
    }

    fn appends(self, random: &mut SplitMix) -> bool {
        match self {
            Self::Put | Self::AtTheirTimes(_) => false,
            Self::Appended => true,
            Self::Mixed => random.next_u64().is_multiple_of(2),
        }
    }
}

/// A folder as a daemon has it, whose engine has no threads of its own.
struct Daemon {
    folder: TempDir,
    engine: Arc<Engine>,
    schema: Arc<Schema>,
    ingest: Ingest,
}

impl Daemon {
    fn open(folder: TempDir, (data_times, appends): (Option<LargerOrSmaller>, bool)) -> Self {
        let mut config = Config::default();
        config.store.data_dir = folder.path().to_owned();
        let mut options = folder_options(&config);
        options.workers = Workers::Manual;
        options.limits = Limits { reserve_bytes: 0, compaction_files_min: 2, ..Limits::default() };
        let engine = Engine::open(options).unwrap();
        let schema = SchemaConfig {
            data_times,
            appends,
            fold: Some(HourFold::new(data_times).name().into()),
            block_encoding: Tsb1::NAME.into(),
            clock: Arc::new(WallClock),
            ..SchemaConfig::default()
        };
        let schema = Arc::new(Schema::open(Arc::clone(&engine) as Arc<dyn Store>, schema).unwrap());
        let limits = IngestLimits { durability: Durability::Async, ..IngestLimits::default() };
        let ingest = Ingest::new(Arc::clone(&schema), Arc::clone(schema.store()), limits);
        Self { folder, engine, schema, ingest }
    }

    fn put(&self, points: &[(Instant, i64, String)]) {
        let line = |((host, _), time, value): &(Instant, i64, String)| format!("put m {time} {value} host={host}");
        let lines: Vec<_> = points.iter().map(line).collect();
        let read = self.ingest.parse_put_lines(lines.iter().map(String::as_str));
        let points: Vec<_> = read.into_iter().map(Result::unwrap).collect();
        let report = self.ingest.submit(&points, Door::Telnet).unwrap().wait();
        assert!(report.errors.is_empty(), "{:?}", report.errors);
    }

    /// All points; and deletes them where that is asked for.
    fn ask(&self, (start_s, end_s): (i64, i64), delete: bool) -> BTreeMap<Instant, f64> {
        let engine = QueryEngine::new(Arc::clone(&self.schema), Options::default(), basalt_query::Limits::default());
        let request = QueryRequest {
            start: Some(start_s.to_string()),
            end: Some(end_s.to_string()),
            queries: vec![SubQuery::from_metric_text("none:m{host=*}").unwrap()],
            ms_resolution: true,
            delete,
            ..QueryRequest::default()
        };
        let mut answered = BTreeMap::new();
        for series in engine.run(&request, WallClock.now().0.cast_signed(), &Cancel::new()).unwrap().remove(0).series {
            for point in series.points {
                let value = match point.number {
                    #[expect(clippy::cast_precision_loss, reason = "the values are small")]
                    Number::Integer(value) => value as f64,
                    Number::Double(value) => value,
                };
                answered.insert((series.tags[0].1.to_string(), point.time_ms), value);
            }
        }
        answered
    }

    fn all(&self) -> BTreeMap<Instant, f64> {
        self.ask((BASE_S - 1, BASE_S + 7_300), false)
    }

    /// Does what waits for the disk while `work` runs.
    fn pumped<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            while !working.is_finished() {
                self.engine.pump().unwrap();
                std::thread::yield_now();
            }
            working.join().unwrap()
        })
    }

    fn flush(&self) {
        self.engine.flush(&self.schema.tables().data).unwrap();
    }

    fn compact(&self, compaction: Compaction) {
        self.engine.compact(&self.schema.tables().data, compaction).unwrap();
    }

    /// Kills it, or closes it; its folder.
    fn end(self, is_killed: bool) -> TempDir {
        let Self { folder, engine, schema, ingest } = self;
        drop((schema, ingest));
        if !is_killed {
            engine.close().unwrap();
            return folder;
        }
        let synced = engine.sync();
        engine.pump().unwrap();
        synced.wait().unwrap();
        std::mem::forget(engine);
        copy(folder.path())
    }
}

/// A folder without the lock of who was killed.
fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
    }
    to
}

/// One of `choices`.
fn pick<T: Copy>(random: &mut SplitMix, choices: &[T]) -> T {
    choices[usize::try_from(random.next_u64() % choices.len() as u64).unwrap()]
}

/// A point at one of few instants, of any width, kind and resolution.
fn point(random: &mut SplitMix) -> (Instant, i64, String) {
    let second = BASE_S + pick(random, &[0, 1, 2, 3_599, 3_600]);
    let time = pick(random, &[second, second, second * 1000, second * 1000 + 500]);
    let small = i64::try_from(random.next_u64() % 40).unwrap() - 20;
    let value = pick(random, &[small, small, small * 100, small << 20, small << 40]).to_string();
    let value = pick(random, &[&*value, &*value, &format!("{small}.5"), &format!("{small}.123456789")]).to_owned();
    let millis = if time < 1 << 32 { time * 1000 } else { time };
    ((pick(random, &HOSTS).to_owned(), millis), time, value)
}

/// Does so many random things to a folder, and looks at all points after each.
fn live(seed: u64, steps: u32, cells: Cells) {
    let mut random = SplitMix::new(seed);
    let (data_times, mut appends) = (cells.data_times(), cells.appends(&mut random));
    let mut daemon = Daemon::open(tempfile::tempdir().unwrap(), (data_times, appends));
    // Names wait for the disk.
    let first: Vec<_> =
        HOSTS.iter().map(|host| (((*host).to_owned(), BASE_S * 1000), BASE_S, "0".to_owned())).collect();
    daemon.pumped(|| daemon.put(&first));
    let mut last = daemon.all();
    let mut model = Model::default();
    model.write(&first, appends);
    let mut told = vec![format!("appends {appends}")];
    for _ in 0..steps {
        let mut is_put = false;
        match random.next_u64() % 20 {
            0..11 => {
                let points: Vec<_> = (0..pick(&mut random, &[1, 1, 2, 6])).map(|_| point(&mut random)).collect();
                told.push(format!("put {points:?}"));
                daemon.put(&points);
                model.write(&points, appends);
                is_put = true;
            }
            11 if data_times.is_none() => {
                let start = BASE_S + pick(&mut random, &[0, 1, 2, 3_600]);
                let end = start + pick(&mut random, &[1, 3_600]);
                told.push(format!("delete {start} {end}"));
                daemon.pumped(|| daemon.ask((start, end), true));
                model.delete((start, end));
            }
            11..15 => {
                told.push("flush".to_owned());
                daemon.flush();
            }
            15..18 => {
                let compaction = pick(&mut random, &[Compaction::Minor, Compaction::Minor, Compaction::Major]);
                told.push(format!("{compaction:?}"));
                daemon.compact(compaction);
            }
            _ => {
                let is_killed = random.next_u64().is_multiple_of(2);
                appends = cells.appends(&mut random);
                told.push(format!("end, killed {is_killed}, appends {appends}"));
                daemon = Daemon::open(daemon.end(is_killed), (data_times, appends));
            }
        }
        let now = daemon.all();
        if data_times.is_none() {
            last = model.points();
        } else if is_put {
            // Which of the values of an instant wins depends on what is folded; nothing but a put changes it.
            last.clone_from(&now);
        }
        let wrong: Vec<_> =
            last.iter().filter(|(at, value)| now.get(at).is_none_or(|now| (now - *value).abs() > 1e-4)).collect();
        assert!(wrong.is_empty() && now.len() == last.len(), "seed {seed}: {wrong:?} in {now:?} after {told:#?}");
    }
}

/// So many lives, each of its own seed; `BASALT_LIVES` asks for more.
fn lives(cells: Cells) {
    let lives = std::env::var("BASALT_LIVES").map_or(LIVES, |lives| lives.parse().unwrap());
    (0..lives).for_each(|seed| live(seed, STEPS, cells));
}

/// `S-DUP-NEWEST`.
#[test]
fn the_value_that_was_put_last_is_answered_whatever_becomes_of_the_folder() {
    lives(Cells::Put);
}

/// `S-APPEND-READ`.
#[test]
fn the_value_that_was_appended_last_is_answered_whatever_becomes_of_the_folder() {
    lives(Cells::Appended);
}

/// `S-APPEND-READ`: what was appended is as new as the last append to its row, also beside points that were put since, as in OpenTSDB.
#[test]
fn appends_may_be_switched_on_and_off() {
    lives(Cells::Mixed);
}

/// `S-DTCS`: what was put over in its own column does not come back.
#[test]
fn s_dtcs_nothing_but_a_put_changes_an_answer() {
    lives(Cells::AtTheirTimes(LargerOrSmaller::Larger));
    lives(Cells::AtTheirTimes(LargerOrSmaller::Smaller));
}
