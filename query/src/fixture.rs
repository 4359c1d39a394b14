//! A schema over the memory store, filled with points of lines such as `sys.cpu 1700000000 42 host=web01`.

mod counted;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use basalt_schema::{
    DATA_FAMILY, Door, PointTime, Salting, Schema, SchemaConfig, Value, annotation_column, point_cell,
};
use basalt_store::{ManualClock, MemoryStore, MutationBatch, TableName, Timestamp};

use counted::CountedStore;

use crate::{Cancel, Compat, Limits, Number, Options, QueryEngine, QueryRequest, Series, SubQuery};

pub(crate) struct Fixture {
    pub(crate) schema: Arc<Schema>,
    store: Arc<CountedStore>,
    clock: Arc<ManualClock>,
    names: HashSet<String>,
}

impl Fixture {
    pub(crate) fn new(salting: Salting) -> Self {
        Self::of(SchemaConfig { salting, ..SchemaConfig::default() })
    }

    pub(crate) fn of(config: SchemaConfig) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(1_000)));
        let store = MemoryStore::new(Arc::clone(&clock) as Arc<dyn basalt_store::Clock>);
        let store = Arc::new(CountedStore {
            store,
            rows_asked: 0.into(),
            rows_scanned: Arc::default(),
            point_scans: 0.into(),
            point_gets: 0.into(),
            get_bytes_max: 0.into(),
            meta_gets: 0.into(),
            name_gets_left: 0.into(),
        });
        let schema = Arc::new(Schema::open(Arc::clone(&store) as Arc<dyn basalt_store::Store>, config).unwrap());
        Self { schema, store, clock, names: HashSet::new() }
    }

    /// Rows that gets asked for and rows that scans gave since this was asked last.
    pub(crate) fn take_counts(&self) -> (u64, u64) {
        let taken = |count: &std::sync::atomic::AtomicU64| count.swap(0, Ordering::Relaxed);
        (taken(&self.store.rows_asked), taken(&self.store.rows_scanned))
    }

    /// Scans of points since this was asked last.
    pub(crate) fn take_scans(&self) -> u64 {
        self.store.point_scans.swap(0, Ordering::Relaxed)
    }

    /// Gets of points since this was asked last, and the most bytes that one of them gave.
    pub(crate) fn take_gets(&self) -> (u64, u64) {
        let taken = |count: &std::sync::atomic::AtomicU64| count.swap(0, Ordering::Relaxed);
        (taken(&self.store.point_gets), taken(&self.store.get_bytes_max))
    }

    /// Gets of what is said of series since this was asked last.
    pub(crate) fn take_meta_gets(&self) -> u64 {
        self.store.meta_gets.swap(0, Ordering::Relaxed)
    }

    /// Has the `nth` get of names from now on fail.
    pub(crate) fn fail_name_get(&self, nth: u64) {
        self.store.name_gets_left.store(nth, Ordering::Relaxed);
    }

    pub(crate) fn with(lines: &[&str]) -> Self {
        let mut fixture = Self::new(Salting::EMBEDDED);
        for line in lines {
            fixture.put(line);
        }
        fixture
    }

    /// The same tables opened once more: by their only daemon, or by one of many.
    pub(crate) fn another(&self, is_shared: bool) -> Arc<Schema> {
        let config = SchemaConfig { is_shared, ..self.schema.config().clone() };
        Arc::new(Schema::open(Arc::clone(self.schema.store()), config).unwrap())
    }

    pub(crate) fn put(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [metric, time, value, tags @ ..] = words.as_slice() else { panic!("{line}") };
        let tags: Vec<(&str, &str)> = tags.iter().map(|tag| tag.split_once('=').unwrap()).collect();
        self.introduce(&tags);
        let tsuid = self.schema.resolve(metric, &tags).unwrap();
        let value = value.parse().map_or_else(|_| Value::Float(value.parse().unwrap()), Value::Int);
        let cell = point_cell(PointTime::from_number(time.parse().unwrap()).unwrap(), value, Door::Http).unwrap();
        let key = self.schema.layout().series_key(&tsuid).row_key(cell.base);
        self.store(&key, &cell.qualifier_bytes(), &cell.value());
        self.schema.index().add(&tsuid).unwrap();
    }

    /// As the recorder of the golden answers: of a new series with several new tags each goes ahead alone, in a point
    /// of `golden.names`.
    fn introduce(&mut self, tags: &[(&str, &str)]) {
        let is_new = |(key, value): &&(&str, &str)| {
            !self.names.contains(&format!(" {key}")) || !self.names.contains(&format!("={value}"))
        };
        let new: Vec<(&str, &str)> = tags.iter().filter(is_new).copied().collect();
        for (key, value) in &new {
            self.names.insert(format!(" {key}"));
            self.names.insert(format!("={value}"));
        }
        if new.len() > 1 {
            for pair in new {
                self.schema.resolve("golden.names", &[pair]).unwrap();
            }
        }
    }

    /// A point that another daemon wrote: in the store and not in the index.
    pub(crate) fn put_unseen(&self, metric: &str, tag: (&str, &str), time: i64, value: i64) {
        let tsuid = self.schema.resolve(metric, &[tag]).unwrap();
        let cell = point_cell(PointTime::from_number(time).unwrap(), Value::Int(value), Door::Http).unwrap();
        let key = self.schema.layout().series_key(&tsuid).row_key(cell.base);
        self.store(&key, &cell.qualifier_bytes(), &cell.value());
    }

    pub(crate) fn annotate(&self, metric: &str, tag: (&str, &str), time: i64, json: &str) {
        let tsuid = self.schema.resolve(metric, &[tag]).unwrap();
        let (base, qualifier) = annotation_column(PointTime::from_number(time).unwrap());
        self.store(&self.schema.layout().series_key(&tsuid).row_key(base), &qualifier, json.as_bytes());
        self.schema.index().add(&tsuid).unwrap();
    }

    pub(crate) fn annotate_globally(&self, time: i64, json: &str) {
        let (base, qualifier) = annotation_column(PointTime::from_number(time).unwrap());
        self.store(&self.schema.layout().global_annotations_key(base), &qualifier, json.as_bytes());
    }

    /// Lets time pass.
    pub(crate) fn advance(&self, ms: u64) {
        self.clock.advance(ms);
    }

    pub(crate) fn store(&self, key: &[u8], qualifier: &[u8], value: &[u8]) {
        self.store_in(&self.schema.tables().data, key, qualifier, value);
    }

    pub(crate) fn store_in(&self, table: &TableName, key: &[u8], qualifier: &[u8], value: &[u8]) {
        self.clock.advance(1);
        let mut batch = MutationBatch::default();
        batch.row(key).unwrap().put(DATA_FAMILY, qualifier, None, value).unwrap();
        let applied = self.schema.store().apply(table, batch).wait().unwrap();
        assert!(applied.failed.is_empty());
    }

    pub(crate) fn engine(&self, strict: bool, limits: Limits) -> QueryEngine {
        let options = Options { compat: Compat { strict }, salt_is_theirs: true, ..Options::default() };
        QueryEngine::new(Arc::clone(&self.schema), options, limits)
    }

    /// Answers one `m=` between two seconds.
    pub(crate) fn ask(&self, start: &str, end: &str, metric: &str) -> crate::Result<Vec<Series>> {
        self.ask_with(start, end, SubQuery::from_metric_text(metric)?, Limits::default())
    }

    pub(crate) fn ask_with(&self, start: &str, end: &str, sub: SubQuery, limits: Limits) -> crate::Result<Vec<Series>> {
        ask(&self.engine(false, limits), (start, end), sub)
    }

    /// As [`Fixture::ask`], of one of many daemons, which has asked nothing before.
    pub(crate) fn ask_shared(&self, start: &str, end: &str, metric: &str) -> crate::Result<Vec<Series>> {
        let engine = QueryEngine::new(self.another(true), Options::default(), Limits::default());
        ask(&engine, (start, end), SubQuery::from_metric_text(metric)?)
    }
}

fn ask(engine: &QueryEngine, (start, end): (&str, &str), sub: SubQuery) -> crate::Result<Vec<Series>> {
    let request = QueryRequest {
        start: Some(start.to_owned()),
        end: Some(end.to_owned()),
        queries: vec![sub],
        ..QueryRequest::default()
    };
    let mut answers = engine.run(&request, 0, &Cancel::new())?;
    assert_eq!(answers.len(), 1);
    Ok(answers.remove(0).series)
}

/// A series' points as `second value` lines, doubles with a dot.
pub(crate) fn text(series: &Series) -> String {
    let line = |point: &crate::Point| match point.number {
        Number::Integer(value) => format!("{} {value}", point.time_ms / 1000),
        Number::Double(value) => format!("{} {value:?}", point.time_ms / 1000),
    };
    series.points.iter().map(line).collect::<Vec<_>>().join(", ")
}
