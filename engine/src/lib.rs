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

pub mod io;

mod error;

pub use error::{Error, Result};
