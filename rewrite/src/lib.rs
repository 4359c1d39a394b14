//! The row rewriter: an hour of points folded into one cell.
//!
//! ```text
//! t:0000  t:0010  t:F0007D00  t:01000A (annotation)        a row as it was written
//!    └──────┴────────┴─ RowFold ─► t:00000010F0007D00  t:01000A      the same row, folded
//! ```
//!
//! OpenTSDB calls it compaction: a thread reads each row after its hour, writes the joined cell, deletes the parts. Here
//! the engine runs [`HourFold`] on every row it flushes or compacts anyway: no read before a write, no tombstone, no
//! hourly storm. What a query reads is the same before and after, point for point.
//!
//! What a folded cell is, byte for byte, is the schema's ([`basalt_schema::RowFold`]); *when* a row may be folded is told
//! here, and by the store, which never hands over a row with a tombstone in it.
//!
//! Absent by design: files, threads, clocks, any knowledge of how a store merges.

mod hour_fold;

pub use hour_fold::HourFold;
