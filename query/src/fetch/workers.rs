//! The threads of a fan-out.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cancel::Budget;
use crate::{Error, Result};

/// One more thread is started for each of this many rows: starting it takes as long as reading some of them.
const ROWS_PER_WORKER: u64 = 512;

/// Runs all tasks, on as many threads as the limits allow and `rows` (about how many there are to read) are worth. The
/// answers come in any order.
pub(crate) fn run_all<'a, K: Sync, T: Send>(
    tasks: &'a [K],
    rows: u64,
    budget: &Budget,
    run: impl Fn(&'a K) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        // Relaxed: the workers share only this number.
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            match run(task) {
                Ok(answer) => done.push(answer),
                Err(error) => {
                    budget.fail();
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    let worth = usize::try_from(rows.div_ceil(ROWS_PER_WORKER)).unwrap_or(usize::MAX);
    let workers = tasks.len().min(budget.limits().scans_at_once_max.max(1)).min(worth);
    if workers <= 1 {
        return work();
    }
    let outcomes: Vec<Result<Vec<T>>> = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(workers - 1);
        for _ in 1..workers {
            // With fewer threads the work is slower, not wrong.
            let Ok(thread) = std::thread::Builder::new().name("query-fetch".to_owned()).spawn_scoped(scope, work)
            else {
                break;
            };
            threads.push(thread);
        }
        let mut outcomes = vec![work()];
        outcomes.extend(threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Error::WorkerPanicked))));
        outcomes
    });
    let mut answers = Vec::new();
    let mut stopped = None;
    for outcome in outcomes {
        match outcome {
            Ok(done) => answers.extend(done),
            // A worker that was stopped says "cancelled"; the reason is the error of another one.
            Err(error @ Error::Cancelled) => stopped = stopped.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    stopped.map_or(Ok(answers), Err)
}
