//! The first stages of a point's road, each alone: parse, then parse to apply over the memory store.
//!
//! `cd benches && cargo bench --bench ingest`. Bodies of 500 points, 4,000 series of 3 tags, every series known.

use std::hint::black_box;
use std::sync::Arc;

use basalt_ingest::{Door, Ingest, IngestLimits, decode_text, parse_put, parse_put_line};
use basalt_schema::{Schema, SchemaConfig};
use basalt_store::{ManualClock, MemoryStore, Store};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const POINTS: usize = 500;
const SERIES: usize = 4_000;

/// Body `number` of a collector that goes round its series, a point of each in turn.
fn body(number: usize) -> String {
    let points: Vec<String> = (0..POINTS)
        .map(|at| {
            let at = number * POINTS + at;
            let (series, time) = (at % SERIES, 1_700_000_000 + at / SERIES * 10);
            format!(
                r#"{{"metric":"cpu.usage_user","timestamp":{time},"value":{}.{},"tags":{{"host":"host_{series}","region":"eu-central-1","os":"Ubuntu16.10"}}}}"#,
                at * 7 % 100,
                at % 10
            )
        })
        .collect();
    format!("[{}]", points.join(","))
}

fn parse(c: &mut Criterion) {
    let limits = IngestLimits::default();
    let text = body(0);
    let lines: Vec<String> = (0..POINTS)
        .map(|n| format!("put cpu.usage_user 1700000000 {n}.5 host=host_{n} region=eu-central-1 os=Ubuntu16.10"))
        .collect();
    let mut group = c.benchmark_group("parse");
    group.throughput(Throughput::Elements(POINTS as u64));
    group.bench_function("body", |b| {
        b.iter(|| parse_put(&decode_text(black_box(text.as_bytes())), &limits).map(|points| points.len()));
    });
    group.bench_function("lines", |b| {
        b.iter(|| lines.iter().filter(|line| parse_put_line(black_box(line)).is_ok()).count());
    });
    group.finish();
}

/// Parse to apply. The memory store is part of what is timed, and most of it.
fn submit(c: &mut Criterion) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
    let schema = Schema::open(Arc::clone(&store), SchemaConfig::default()).expect("an empty store");
    let ingest = Ingest::new(Arc::new(schema), store, IngestLimits::default());
    let put = |body: &str| {
        let points = ingest.parse_put(body).expect("a good body");
        ingest.submit(&points, Door::Http).expect("nothing else is under way").wait()
    };
    let rounds = SERIES / POINTS;
    assert!((0..rounds).all(|number| put(&body(number)).is_all_stored()));
    let mut group = c.benchmark_group("submit");
    group.throughput(Throughput::Elements(POINTS as u64));
    let known = body(1);
    // What no server of these bodies can do without, but for the socket.
    group.bench_function("known series, read and looked up only", |b| {
        b.iter(|| ingest.parse_put(&decode_text(black_box(known.as_bytes()))).map(|points| points.len()));
    });
    let mut number = 0;
    group.bench_function("known series, memory store", |b| {
        let next = || {
            number = (number + 1) % (100 * rounds);
            body(number)
        };
        b.iter_batched(next, |body| put(&body), BatchSize::LargeInput);
    });
    group.bench_function("every value bad", |b| {
        let body = body(0).replace("\"value\":", "\"value\":\"x\",\"was\":");
        b.iter(|| put(&body).rejected);
    });
    group.finish();
}

criterion_group!(benches, parse, submit);
criterion_main!(benches);
