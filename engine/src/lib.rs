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
//! | SSTable | `sstable`, its filters `bloom`, its blocks in memory `block_cache` |
//! | many sorted streams as one | `merge` |

#![expect(dead_code, reason = "the parts come before the facade that calls them")]

pub mod io;

mod block_cache;
mod bloom;
mod error;
mod field;
mod health;
mod merge;
mod record;
mod reserve;
mod sstable;
mod wal;

pub use error::{Error, Result};
pub use health::{Health, PoisonHook};
pub use sstable::{BlockCodec, BlockCodecs};
