//! What a query answers: per sub query a list of series, each ready to be written one after the other.

use std::sync::Arc;
use std::time::Duration;

use basalt_schema::Value;

use crate::aggregate::to_double;
use crate::memory::Reservation;

/// A value of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Printed as an integer.
    Integer(i64),
    /// Printed as Java prints a double; NaN as `"NaN"`, or `null` where [`SubAnswer::nan_as_null`] says so.
    Double(f64),
}

impl From<Value> for Number {
    fn from(value: Value) -> Self {
        match value {
            Value::Int(value) => Self::Integer(value),
            Value::Float(value) => Self::Double(value),
        }
    }
}

impl Number {
    /// The value of a word: two's complement or the bits of a double.
    pub(crate) fn of_word(word: u64, is_double: bool) -> Self {
        if is_double { Self::Double(f64::from_bits(word)) } else { Self::Integer(word.cast_signed()) }
    }

    /// The value as a double; of integers beyond 2⁵³ the nearest.
    pub fn as_double(self) -> f64 {
        match self {
            Self::Integer(value) => to_double(value),
            Self::Double(value) => value,
        }
    }
}

/// A point of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Milliseconds since the epoch.
    pub time_ms: i64,
    /// Its value.
    pub number: Number,
}

/// The answer of one sub query.
#[derive(Debug, Clone, Default)]
pub struct SubAnswer {
    /// The sub query's place in the request.
    pub index: usize,
    /// NaN is `null`: the fill policy is `null`.
    pub nan_as_null: bool,
    /// The interval of the rollups that were read last; `None` where it was points.
    pub rollup: Option<Arc<str>>,
    /// The groups, in the order of their tag values' UIDs; without aggregation the series in the order of their TSUIDs.
    /// A group without a point in the range is there all the same.
    pub series: Vec<Series>,
    /// What it took, all scans together.
    pub stats: ScanStats,
    /// What each step of it took.
    pub steps: Steps,
    /// The request's part of the memory of all queries.
    pub held: Held,
}

/// Memory that a request holds until its answers are dropped, that is written. Nothing by default.
#[derive(Debug, Clone, Default)]
pub struct Held(#[expect(dead_code, reason = "held to be dropped, which gives it back")] Option<Arc<Reservation>>);

impl From<&Arc<Reservation>> for Held {
    fn from(held: &Arc<Reservation>) -> Self {
        Self(Some(Arc::clone(held)))
    }
}

/// One output series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// Name of the metric, shared by all series of the sub query.
    pub metric: Arc<str>,
    /// Tags whose value all members share that have them; in the order of their keys' UIDs.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// Keys of tags whose values differ; in the order of their UIDs.
    pub aggregate_tags: Vec<Arc<str>>,
    /// TSUIDs of the members, upper-case hex, sorted.
    pub tsuids: Vec<String>,
    /// Annotations of the members within the range, as stored: JSON texts, by start time.
    pub annotations: Vec<SeriesAnnotation>,
    /// The list of annotations is written even where it is empty, as OpenTSDB writes it after a function of several
    /// series, and where annotations lie beside the range.
    pub lists_annotations: bool,
    /// Points with start ≤ time ≤ end, by time; no time twice.
    pub points: Vec<Point>,
}

/// An annotation of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesAnnotation {
    /// When it starts, ms.
    pub start_ms: i64,
    /// Its JSON as stored.
    pub json: Box<[u8]>,
}

impl SeriesAnnotation {
    /// When it ends, as stored: seconds or milliseconds; none if it says nothing of it.
    pub(crate) fn end_time(&self) -> Option<i64> {
        let json: serde_json::Value = serde_json::from_slice(&self.json).ok()?;
        json.get("endTime")?.as_i64()
    }
}

/// What a sub query, or one scan of it, took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanStats {
    /// Rows read.
    pub rows: u64,
    /// Rows of series that are wanted.
    pub rows_kept: u64,
    /// Cells read.
    pub cells: u64,
    /// Cells of rows of other series; these are not decoded.
    pub cells_left_out: u64,
    /// Bytes of keys, qualifiers and values read.
    pub bytes: u64,
    /// Points of the rows that were kept, also where their summary was all that was read.
    pub points: u64,
    /// How many of them were not read: their row's summary stood for them.
    pub points_unread: u64,
    /// Series that took part.
    pub series: u64,
    /// Points answered.
    pub emitted_points: u64,
    /// Time waiting for rows.
    pub store_time: Duration,
    /// Time decoding them.
    pub decode_time: Duration,
}

impl ScanStats {
    /// Points that were read, a summary as one.
    pub(crate) const fn points_read(&self) -> u64 {
        self.points.saturating_sub(self.points_unread)
    }

    /// Adds what another worker took.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.rows_kept += other.rows_kept;
        self.cells += other.cells;
        self.cells_left_out += other.cells_left_out;
        self.bytes += other.bytes;
        self.points += other.points;
        self.points_unread += other.points_unread;
        self.series += other.series;
        self.emitted_points += other.emitted_points;
        self.store_time += other.store_time;
        self.decode_time += other.decode_time;
    }
}

/// How long the steps of a sub query took, and its scans one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps {
    /// Each scan or run of gets: what it read, in words, and what it took.
    pub scans: Vec<(String, ScanStats)>,
    /// All scans, from the first to the last.
    pub scan_time: Duration,
    /// Joining what the scans read.
    pub merge_time: Duration,
    /// Sorting series into groups.
    pub group_time: Duration,
    /// Downsampling, rates and aggregation.
    pub compute_time: Duration,
    /// Looking up the names of UIDs.
    pub name_time: Duration,
}
