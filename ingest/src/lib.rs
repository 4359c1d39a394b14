//! Text in, mutations out: the first half of the road of a point.
//!
//! ```text
//! body, line ─ parse ─► RawPoint ─ check ─ resolve ─► series ─ encode ─► batch ─► Store::apply ─► Submission ─► PutReport
//!             put_body  names,     number  schema,             stage                              IngestStats
//!             put_line  borrowed   check   series_cache
//! ```
//!
//! | word of the drawing | file |
//! |---|---|
//! | put body | [`put_body`](parse_put), over `scanner` |
//! | put line, import line | [`put_line`](parse_put_line); blocks of put lines of known series, `put_lines` |
//! | histogram, rollup | [`histogram`](parse_histograms), [`rollup`](parse_rollups), written by `cells` |
//! | raw point | [`raw_point`](RawPoint), [`raw_text`](RawText) |
//! | check | `check`, [`number`](parse_value), [`problem`](Problem) |
//! | series known by their bytes | `spelling`, `series_cache` |
//! | points by row, one batch | `stage`, its `row` |
//! | facade, what is under way | [`ingest`](Ingest), `inflight`, [`submission`](Submission) |
//! | report, accounting | [`report`](PutReport), [`stats`](IngestStats) |
//!
//! Absent by design: HTTP, sockets, statuses, async runtimes, files, clocks.

mod cells;
mod check;
mod door;
mod encoding;
mod error;
#[cfg(any(test, fuzzing))]
pub mod foreign;
mod histogram;
mod inflight;
mod ingest;
mod java_text;
mod lead;
mod limits;
mod number;
mod problem;
mod put_body;
mod put_line;
mod put_lines;
mod raw_point;
mod raw_text;
mod report;
mod rollup;
mod scanner;
mod series_cache;
mod spelling;
mod stage;
mod stats;
mod submission;

#[cfg(test)]
mod cell_tests;
#[cfg(test)]
mod golden;

pub use door::Door;
pub use encoding::{decode_latin1, decode_line, decode_text};
pub use error::{Error, Result};
pub use histogram::{HistogramEcho, RawHistogram, parse_histogram_line, parse_histograms};
pub use inflight::Permit;
pub use ingest::{Ingest, IngestLevels, RowListener};
pub use limits::IngestLimits;
pub use number::{NumberError, parse_value};
pub use problem::{Problem, ProblemClass, REFUSED_FOR_GOOD};
pub use put_body::parse_put;
pub use put_line::{parse_import_line, parse_put_line};
pub use raw_point::{Form, RawPoint, RawTags, Tag};
pub use raw_text::RawText;
pub use report::{DatapointEcho, PointError, PutReport};
pub use rollup::{RawRollup, RollupEcho, parse_rollup_line, parse_rollups};
pub use stats::{DoorCounts, IngestCounts, IngestStats, Outcome};
pub use submission::Submission;
