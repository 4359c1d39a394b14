//! The stages of an answer: a folded row decoded, and whole queries over the memory store.
//!
//! `cd benches && cargo bench --bench query`. 100 hosts, 12 hours, a point each 10 seconds, integers from 0 to 100, every
//! hour folded.

use std::hint::black_box;
use std::sync::Arc;

use basalt_query::{Cancel, Limits, Options, QueryEngine, QueryRequest, SubQuery};
use basalt_schema::{
    BaseTime, CompactedCell, DATA_FAMILY, Door, Duplicates, PointTime, RowCell, RowPoints, Schema, SchemaConfig,
    StoredPoint, Value, point_cell,
};
use basalt_store::{ManualClock, MemoryStore, MutationBatch, SeqNo, Store, Timestamp};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const HOSTS: i64 = 100;
const HOURS: i64 = 12;
const POINTS_PER_ROW: i64 = 360;
const START: i64 = 1_699_999_200;

/// A folded hour.
fn folded(base: BaseTime, value: impl Fn(i64) -> Value) -> CompactedCell {
    let mut cell = CompactedCell::default();
    for at in 0..POINTS_PER_ROW {
        let time = PointTime::from_number(i64::from(base.seconds()) + at * 10).expect("a time");
        let point = point_cell(time, value(at), Door::Http).expect("a finite value");
        cell.push(StoredPoint { qualifier: point.qualifier, value: &point.value() });
    }
    cell.seal();
    cell
}

fn base(hour: i64) -> BaseTime {
    BaseTime::of_seconds(u32::try_from(START + hour * 3600).expect("within this century"))
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("row");
    group.throughput(Throughput::Elements(POINTS_PER_ROW.unsigned_abs()));
    let kinds: [(&str, fn(i64) -> Value); 3] = [
        ("one-byte integers", |at| Value::Int(at * 7 % 101)),
        ("doubles", |at| Value::Float(at as f64 / 8.0)),
        ("widths that alternate", |at| Value::Int(if at % 2 == 0 { at % 100 } else { 1000 + at })),
    ];
    for (name, value) in kinds {
        let cell = folded(base(0), value);
        let row = RowCell { qualifier: cell.qualifier(), value: cell.value(), timestamp: Timestamp(1), seq: SeqNo(0) };
        let mut points = RowPoints::default();
        group.bench_function(name, |b| {
            b.iter(|| points.decode([black_box(row)], Duplicates::NewestWins).map(|()| points.len()));
        });
    }
    group.finish();
}

/// An engine over every host's rows.
fn engine() -> QueryEngine {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
    let schema = Arc::new(Schema::open(Arc::clone(&store), SchemaConfig::default()).expect("an empty store"));
    for host in 0..HOSTS {
        let tsuid = schema.resolve("cpu", &[("host", &format!("host_{host}"))]).expect("names");
        schema.index().add(&tsuid).expect("room for a series");
        let series = schema.layout().series_key(&tsuid);
        for hour in 0..HOURS {
            let cell = folded(base(hour), |at| Value::Int((at * 7 + host * 3 + hour) % 101));
            let mut batch = MutationBatch::default();
            let mut row = batch.row(&series.row_key(base(hour))).expect("a key");
            row.put(DATA_FAMILY, cell.qualifier(), None, cell.value()).expect("a cell");
            store.apply(&schema.tables().data, batch).wait().expect("memory takes it");
        }
    }
    QueryEngine::new(schema, Options::default(), Limits::default())
}

fn answer(c: &mut Criterion) {
    let engine = engine();
    let mut group = c.benchmark_group("query");
    group.throughput(Throughput::Elements((HOSTS * HOURS * POINTS_PER_ROW).unsigned_abs()));
    for (name, metric) in [
        ("average of each hour and host", "avg:1h-avg:cpu{host=*}"),
        ("most of each minute over all hosts", "max:1m-max:cpu"),
        ("every point of each host", "none:cpu"),
        ("sum of all hosts at every point", "sum:cpu"),
    ] {
        let request = QueryRequest {
            start: Some(START.to_string()),
            end: Some((START + HOURS * 3600 - 1).to_string()),
            queries: vec![SubQuery::from_metric_text(metric).expect("a query")],
            ..QueryRequest::default()
        };
        group.bench_function(name, |b| {
            b.iter(|| engine.run(black_box(&request), 0, &Cancel::new()).map(|answers| answers.len()));
        });
    }
    group.finish();
}

criterion_group!(benches, decode, answer);
criterion_main!(benches);
