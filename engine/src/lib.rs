//! The embedded store: a data folder as a [`Store`](basalt_store::Store), durable by default.
//!
//! ```text
//!                     write                                    read
//!   MutationBatch ─► WAL ─► memtable ─► flush ─► SSTable ─► merge ─► RowBatch
//!                     │                            │  ▲
//!                     └────── manifest ────────────┘  └─ compaction
//! ```
//!
//! | word of the drawing | file |
//! |---|---|
//! | the facade | [`Engine`], its [`EngineOptions`] and [`Limits`], opened by `recovery`; a closed folder's lock and files are had through `data_folder` |
//! | write | `write`, as `mutation`s in `record`s; what waits to be written together is `gathered` |
//! | WAL | `wal` |
//! | memtable | `memtable` |
//! | flush, compaction | `flush`, `compaction`, both through `output`, on the threads of `background` |
//! | SSTable | `sstable`, with its blocks in memory; its filters `bloom` |
//! | merge | `merge` over the streams of `source` |
//! | read | `read` |
//! | backup and restore; proof of an open folder | `backup`, which keeps files by `held_files`; `scrub` |
//! | proof, look and repair of a closed folder | `audit`, `inspect`, `repair` |
//! | manifest | `manifest`; tables and regions at work are `table`, `region`, changed by `reshape` and `admin` |
//! | what others derive from rows | `side_log` |
//! | files, clock, chance | [`io`] |
//!
//! What is absent: no async and no runtime; no file but through [`io`]; no rule
//! about what a reader sees, which `basalt_store` alone knows; no wall time but
//! that of the clock that was given.

pub mod io;

mod admin;
mod audit;
mod background;
mod backup;
mod beside;
mod block_count;
mod bloom;
mod compaction;
mod core;
mod data_folder;
mod engine;
mod error;
mod failed_merges;
mod field;
mod flush;
#[cfg(any(test, fuzzing))]
pub mod foreign;
mod gathered;
mod header;
mod heads;
mod health;
mod held_files;
mod id;
mod inspect;
mod jobs;
mod key_range;
mod loss;
mod manifest;
mod memtable;
mod merge;
mod mutation;
mod options;
mod output;
mod progress;
mod read;
mod record;
mod recovery;
mod region;
mod repair;
mod reserve;
mod reshape;
mod scan_threads;
mod scrub;
mod side_log;
#[cfg(any(test, feature = "sim"))]
pub mod simulation;
mod snapshot;
mod source;
mod split;
mod sstable;
mod stats;
mod table;
mod wal;
mod write;

pub use audit::{AuditedFile, FileKind, Folder, Owner};
pub use backup::{BackedUp, restore};
pub use engine::Engine;
pub use error::{Error, Result};
pub use health::{Health, PoisonHook};
pub use inspect::{SstableFigures, SstableFile};
pub use loss::Loss;
pub use options::{EngineOptions, Limits, Workers};
pub use progress::Progress;
pub use repair::Repair;
pub use scrub::Scrubbed;
pub use sstable::{BlockCodec, BlockCodecs, BlockFigures, PackedBlock};
pub use stats::Stats;
