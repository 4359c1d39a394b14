//! The clock on the wall, read in this file only.
//!
//! Everything below `src/` takes times as arguments, so that tests and simulations own them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 00:00 UTC; 0 if the machine's clock stands before it.
#[expect(clippy::disallowed_methods, reason = "the one place where the program reads the wall clock")]
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The wall clock for the crates below, which take time as an argument.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WallClock;

impl basalt_store::Clock for WallClock {
    fn now(&self) -> basalt_store::Timestamp {
        basalt_store::Timestamp(now_ms())
    }
}
