//! The engine's stages of a point's road, each alone: log and memtable, flush, compaction, a start that replays the log, scan, get.
//!
//! `cd benches && cargo bench --bench store`. 1,000 hosts, an hour or two, a point each 10 seconds, integers from 0 to 100, in the data table
//! as the program lays it out. Files lie where temporary files do; what is timed waits for no sync but that of the files.

use std::hint::black_box;
use std::sync::Arc;

use basalt_engine::{Engine, EngineOptions};
use basalt_rewrite::HourFold;
use basalt_schema::{
    BaseTime, DATA_FAMILY, Door, PointTime, Schema, SchemaConfig, SeriesKey, Tsb1, Value, point_cell,
};
use basalt_store::{Compaction, Durability, Get, MutationBatch, Packing, Scan, Store as _, TableName};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;

#[path = "../../src/store/columns.rs"]
mod columns;

/// As in the program.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const HOSTS: usize = 1000;
const POINTS_PER_ROW: i64 = 360;
const POINTS_PER_HOUR: u64 = HOSTS as u64 * POINTS_PER_ROW.unsigned_abs();
const START: i64 = 1_699_999_200;

/// A data folder of the program's, open.
struct World {
    engine: Arc<Engine>,
    table: TableName,
    series: Vec<SeriesKey>,
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("room for files");
        let (engine, schema) = open(&dir);
        let key = |host: usize| {
            let tsuid = schema.resolve("cpu", &[("host", &format!("host_{host}"))]).expect("names");
            schema.layout().series_key(&tsuid)
        };
        let (series, table) = ((0..HOSTS).map(key).collect(), schema.tables().data.clone());
        Self { engine, table, series, dir }
    }

    /// One with the points of so many hours, each flushed to files of its own.
    fn of_files(hours: i64) -> Self {
        let world = Self::new();
        for hour in 0..hours {
            world.put(hour);
            world.engine.flush(&world.table).expect("a flush");
        }
        world
    }

    /// Puts an hour of every host into the memtables, step by step as senders do.
    fn put(&self, hour: i64) {
        for at in 0..POINTS_PER_ROW {
            self.engine.apply(&self.table, self.step(hour, at)).wait().expect("a write");
        }
    }

    /// A point of every host.
    fn step(&self, hour: i64, at: i64) -> MutationBatch {
        let mut batch = MutationBatch::new(Durability::Os);
        let time = PointTime::from_number(START + hour * 3600 + at * 10).expect("a time");
        for (host, series) in (0..).zip(&self.series) {
            let point = point_cell(time, Value::Int((at * 7 + host * 3 + hour) % 101), Door::Http).expect("a point");
            let mut row = batch.row(&series.row_key(base(hour))).expect("a key");
            row.put(DATA_FAMILY, &point.qualifier_bytes(), None, &point.value()).expect("a cell");
        }
        batch
    }
}

fn base(hour: i64) -> BaseTime {
    BaseTime::of_seconds(u32::try_from(START + hour * 3600).expect("within this century"))
}

fn open(dir: &TempDir) -> (Arc<Engine>, Schema) {
    let mut schema = SchemaConfig {
        fold: Some(HourFold::NAME.into()),
        block_encoding: Tsb1::NAME.into(),
        block_bytes: Tsb1::BLOCK_BYTES,
        ..SchemaConfig::default()
    };
    schema.uid_cache_entries = HOSTS * 4;
    let mut options = EngineOptions::new(dir.path());
    options.limits.reserve_bytes = 0;
    options.codecs.register(Arc::new(columns::Columns));
    options.folds = vec![Arc::new(HourFold::default())];
    let engine = Engine::open(options).expect("an engine");
    let schema = Schema::open(Arc::clone(&engine) as Arc<_>, schema).expect("tables");
    (engine, schema)
}

fn write(c: &mut Criterion) {
    let mut group = c.benchmark_group("write");
    group.throughput(Throughput::Elements(HOSTS as u64));
    let world = World::new();
    let mut steps = (0..).map(|step| world.step(step / POINTS_PER_ROW, step % POINTS_PER_ROW));
    let mut next = || steps.next().expect("endless");
    group.bench_function("record, memtable, log", |b| {
        b.iter_batched(&mut next, |batch| world.engine.apply(&world.table, batch).wait(), BatchSize::SmallInput);
    });
    group.sample_size(10).throughput(Throughput::Elements(POINTS_PER_HOUR));
    let filled = || {
        let world = World::new();
        world.put(0);
        world
    };
    group.bench_function("flush of an hour", |b| {
        b.iter_batched_ref(filled, |world| world.engine.flush(&world.table), BatchSize::PerIteration);
    });
    group.throughput(Throughput::Elements(2 * POINTS_PER_HOUR));
    group.bench_function("compaction of two hours' files", |b| {
        let compact = |world: &mut World| world.engine.compact(&world.table, Compaction::Major);
        b.iter_batched_ref(|| World::of_files(2), compact, BatchSize::PerIteration);
    });
    group.finish();
}

fn start(c: &mut Criterion) {
    let world = World::new();
    world.put(0);
    // What a kill leaves: the log of a folder that nobody closed.
    let left = || {
        let copy = tempfile::tempdir().expect("room for files");
        for entry in std::fs::read_dir(world.dir.path()).expect("a folder").flatten() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("a copy");
        }
        copy
    };
    let mut group = c.benchmark_group("start");
    group.sample_size(10).throughput(Throughput::Elements(POINTS_PER_HOUR));
    group.bench_function("log of an hour replayed", |b| {
        // Closing it is not timed.
        b.iter_batched(left, |dir| (open(&dir), dir), BatchSize::PerIteration);
    });
    group.finish();
}

fn read(c: &mut Criterion) {
    let world = World::of_files(1);
    let rows = |packing| {
        let mut scanner = world.engine.scan(&world.table, Scan::all().with_packing(packing)).expect("a scan");
        std::iter::from_fn(|| scanner.next_wait()).map(|batch| batch.expect("rows").rows().count()).sum::<usize>()
    };
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Elements(POINTS_PER_HOUR));
    for (name, packing) in [("scan as cells", Packing::Cells), ("scan as columns", Packing::Points)] {
        assert_eq!(rows(packing), HOSTS);
        group.bench_function(name, |b| b.iter(|| rows(black_box(packing))));
    }
    group.throughput(Throughput::Elements(1));
    let key = world.series[HOSTS / 2].row_key(base(0));
    group.bench_function("get of a row", |b| {
        b.iter(|| world.engine.get(&world.table, Get::row(key.clone())).wait().map(|rows| rows.rows().count()));
    });
    group.finish();
}

criterion_group!(benches, write, start, read);
criterion_main!(benches);
