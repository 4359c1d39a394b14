//! `basalt bench`: a client that writes and asks as TSBS does, of any server that speaks OpenTSDB, and says what it saw.
//!
//! ```text
//! cli/bench ─┬─ ingest ─┬─ data (what is written)      ┌─ report (table, JSON)
//!            └─ query  ─┼─ link, telnet (by what)      │
//!                       └─ recorder (what was seen) ───┴─ page (HTML with plots)
//! ```
//!
//! It must not be what is measured: a connection is a thread that fills one buffer again and again, without a look-up or
//! an allocation a point, and every report says what the client itself used of the processor.

pub(crate) mod data;
pub(crate) mod ingest;
mod link;
pub(crate) mod page;
pub(crate) mod query;
pub(crate) mod recorder;
pub(crate) mod report;
mod telnet;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use self::recorder::Recorder;
use crate::exit::{Exit, Failure};
use crate::threads;

/// Clock ticks a second in `/proc`; `USER_HZ` is 100 on every Linux.
const TICKS_PER_SECOND: u64 = 100;

/// What a run and whoever watches it tell each other. Orderings are relaxed: a number to be shown, and a wish.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Points or questions so far.
    pub(crate) done: AtomicU64,
    /// The run is to end, though work is left.
    pub(crate) ends: AtomicBool,
}

impl Watch {
    /// Whether the run is to end.
    pub(crate) fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// What all connections saw.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) seen: Recorder,
    /// From when the last of them was ready to the end of the last.
    pub(crate) took: Duration,
    /// What the client used of the processor meanwhile.
    pub(crate) cpu: Duration,
}

/// Has each connection made ready, and when all are, has each work, from a moment that they share; both on a thread a
/// connection. So what the client needs to begin counts as nobody's latency. What one saw is kept whatever befell others.
///
/// # Errors
///
/// The first that could not be made ready, and then none works.
pub(crate) fn run<T: Send>(
    connections: u64,
    ready: impl Fn(u64) -> Result<T, Failure> + Sync,
    work: impl Fn(u64, Instant, T) -> Recorder + Sync,
) -> Result<Run, Failure> {
    let ready = on_threads(0..connections, ready)?;
    let (begun, cpu) = (Instant::now(), own_cpu());
    let each = on_threads((0..connections).zip(ready), |(connection, ready)| Ok(work(connection, begun, ready)))?;
    let (mut seen, took) = (Recorder::sum(&each), begun.elapsed());
    // Seconds in which nothing was done are told as well, to the end.
    seen.reach(took);
    Ok(Run { seen, took, cpu: own_cpu().saturating_sub(cpu) })
}

/// Runs `work` on each, every one on a thread of its own, and gives what they made, or the first failure.
fn on_threads<I: Send, T: Send>(
    each: impl Iterator<Item = I>,
    work: impl Fn(I) -> Result<T, Failure> + Sync,
) -> Result<Vec<T>, Failure> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads = each.map(|one| Builder::new().spawn_scoped(scope, move || work(one)));
        let threads: Vec<_> =
            threads.collect::<Result<_, _>>().map_err(|cause| threads::too_few(&cause.to_string()))?;
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::new(Exit::Failure, "BUG: a connection's thread panicked")))
        });
        ended.collect()
    })
}

/// What this process used of the processor since it began, user and system together; nothing where there is no `/proc`.
fn own_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold blanks; utime and stime are the 12th and 13th words after it.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u64 = after.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_run_begins_when_all_are_ready() {
        let last = Mutex::new(None);
        let make = |_| {
            *last.lock().unwrap() = Some(Instant::now());
            Ok(())
        };
        let work = |_, begun, ()| {
            assert!(Some(begun) >= *last.lock().unwrap());
            Recorder::default()
        };
        run(8, make, work).unwrap();
    }

    #[test]
    fn none_works_where_one_is_not_ready() {
        let make = |connection| if connection == 1 { Err(Failure::new(Exit::Failure, "no")) } else { Ok(()) };
        assert_eq!(run(3, make, |_, _, ()| panic!("it works")).unwrap_err().line, "no");
    }
}
