//! The clock on the wall.
//!
//! Everything below `src/` takes times as arguments, so that tests and simulations own them.

pub(crate) use basalt_engine::io::SystemClock as WallClock;
use basalt_store::Clock as _;

/// Milliseconds since 1970-01-01 00:00 UTC; 0 if the machine's clock stands before it.
pub(crate) fn now_ms() -> u64 {
    WallClock.now().0
}

/// The same as queries count them.
pub(crate) fn signed_now_ms() -> i64 {
    i64::try_from(now_ms()).unwrap_or(i64::MAX)
}
