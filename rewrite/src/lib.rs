//! The row rewriter: an hour of points folded into one cell.
//!
//! ```text
//! t:0000  t:0010  t:F0007D00  t:01000A (annotation)        a row as it was written
//!    └──────┴────────┴─ RowFold ─► t:00000010F0007D00  t:01000A      the same row, folded
//! ```
//!
//! OpenTSDB calls it compaction: a thread reads each row after its hour, writes the joined cell, deletes the parts. The
//! embedded store runs [`HourFold`] on every row it flushes or compacts anyway: no read before a write, no tombstone, no
//! hourly storm. Over HBase, which has no such hook, a [`Rewriter`] does as OpenTSDB's daemon does. What a query reads is
//! the same before and after, point for point.
//!
//! | part | file |
//! |---|---|
//! | the fold that a store runs | [`hour_fold`](HourFold) |
//! | rows that wait for their hour's end | `queue` |
//! | read, fold, put, delete | [`rewriter`](Rewriter), `row_plan` |
//!
//! What a folded cell is, byte for byte, is the schema's ([`basalt_schema::RowFold`]); *when* a row may be folded is told
//! here, and by the store, which never hands over a row with a tombstone in it.
//!
//! Absent by design: files, threads, clocks but the one given, any knowledge of how a store merges.

mod hour_fold;
mod queue;
mod rewriter;
mod row_plan;

pub use hour_fold::HourFold;
pub use rewriter::{RewriteCounts, RewriteLimits, Rewriter};
