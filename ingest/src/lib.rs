//! Text in, mutations out: the first half of a point's road.
//!
//! ```text
//! body, line ─ parse ──► RawPoint ─ check ─ resolve ──► series ─ encode, batch ──► MutationBatch ─► Store::apply
//!             put_body   names,      number    series_cache       submit                 │
//!             put_line   borrowed    check     (then schema)                             ▼
//!                                                                  Submission ──► PutReport, IngestStats
//! ```
//!
//! | word of the drawing | file |
//! |---|---|
//! | put body | [`put_body`](parse_put), over [`scanner`] |
//! | put line | [`put_line`](parse_put_line) |
//! | raw point | [`raw_point`](RawPoint) |
//! | number | [`number`](parse_value) |
//! | problem of a point, report of a batch | [`problem`](Problem), [`report`](PutReport) |
//! | accounting | [`stats`](IngestStats) |
//!
//! Absent by design: HTTP, sockets, statuses, async runtimes, files, clocks.

mod door;
mod error;
mod java_text;
mod limits;
mod number;
mod problem;
mod put_body;
mod put_line;
mod raw_point;
mod report;
mod scanner;
mod stats;

pub use door::Door;
pub use error::{Error, Result};
pub use limits::IngestLimits;
pub use number::{NumberError, parse_integer, parse_value};
pub use problem::{Problem, ProblemClass};
pub use put_body::{decode_text, parse_put};
pub use put_line::{parse_import_line, parse_put_line};
pub use raw_point::{Form, RawPoint, RawTags, RawText, Tag};
pub use report::{DatapointEcho, PointError, PutReport};
pub use stats::{DoorCounts, IngestCounts, IngestStats, Outcome};
