//! `basalt bench`: a client that writes and asks as TSBS does, of any server that speaks OpenTSDB, and says what it saw.
//!
//! ```text
//! cli/bench ─┬─ ingest ─┬─ data (what is written)      ┌─ report (table, JSON)
//!            └─ query  ─┴─ recorder (what was seen) ───┴─ page (HTML with plots)
//! ```
//!
//! It must not be what is measured: a connection is a thread that fills one buffer again and again, without a look-up or
//! an allocation a point, and every report says what the client itself used of the processor.

pub(crate) mod data;
pub(crate) mod ingest;
pub(crate) mod page;
pub(crate) mod query;
pub(crate) mod recorder;
pub(crate) mod report;

use std::time::Duration;

use crate::exit::{Exit, Failure};

/// Clock ticks a second in `/proc`; `USER_HZ` is 100 on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// Runs `work` once a connection, each on a thread of its own, and gives what they made.
///
/// # Errors
///
/// The first that failed.
pub(crate) fn on_threads<T: Send>(
    connections: u64,
    work: impl Fn(u64) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..connections).map(|connection| scope.spawn(move || work(connection))).collect();
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::new(Exit::Failure, "BUG: a connection's thread panicked")))
        });
        ended.collect()
    })
}

/// What this process used of the processor since it began, user and system together; nothing where there is no `/proc`.
pub(crate) fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold blanks; utime and stime are the 12th and 13th words after it.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u64 = after.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}
