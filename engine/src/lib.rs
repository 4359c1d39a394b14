//! The embedded store: WAL, memtable, `SSTable`, manifest, regions, compaction.
//!
//! ```text
//! MutationBatch ─► WAL ─► memtable ─► flush ─► SSTable ─► compaction
//!                   └──────── manifest: which files are there ────────┘
//! ```
//!
//! | word of the drawing | file |
//! |---|---|
//! | files, clock, chance | [`io`] |

#![expect(dead_code, reason = "the parts come before the facade that calls them")]

pub mod io;

mod error;
mod field;
mod health;
mod record;
mod reserve;
mod wal;

pub use error::{Error, Result};
pub use health::{Health, PoisonHook};
