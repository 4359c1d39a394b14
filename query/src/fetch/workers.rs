//! The threads of a fan-out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

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
    run_all_after(Duration::ZERO, tasks, rows, budget, run)
}

/// [`run_all`], but for so long by the caller's thread alone: for rows of which so little is read that they are mostly done before
/// others would have begun. Where they come from a disk or a network, the first tasks take longer than that.
pub(crate) fn run_all_after<'a, K: Sync, T: Send>(
    alone: Duration,
    tasks: &'a [K],
    rows: u64,
    budget: &Budget,
    run: impl Fn(&'a K) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work_until = |end: Option<Instant>| {
        let mut done = Vec::new();
        // Relaxed: the workers share only this number.
        while end.is_none_or(|end| Instant::now() < end)
            && let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
        {
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
    let work = || work_until(None);
    if workers <= 1 {
        return work();
    }
    let mut answers = if alone.is_zero() { Vec::new() } else { work_until(Some(Instant::now() + alone))? };
    let workers = workers.min(tasks.len().saturating_sub(next.load(Ordering::Relaxed)));
    if workers <= 1 {
        answers.extend(work()?);
        return Ok(answers);
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::{ThreadId, current, yield_now};

    use super::*;
    use crate::memory::MemoryPool;
    use crate::{Cancel, Limits};

    const HOUR: Duration = Duration::from_secs(3_600);

    /// The threads that did the tasks, of which each waits for `together` of them to be under way, and the first for some of the
    /// time alone.
    fn check(alone: Duration, tasks: usize, together: usize) -> HashSet<ThreadId> {
        let budget = Budget::new(Limits::default(), &Cancel::new(), &MemoryPool::new(0));
        let (begun, since) = (AtomicUsize::new(0), Instant::now());
        let tasks: Vec<usize> = (0..tasks).collect();
        let run = |task: &usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            while *task == 0 && since.elapsed() < alone.min(Duration::from_millis(40)) {
                yield_now();
            }
            while begun.load(Ordering::SeqCst) < together && since.elapsed() < Duration::from_secs(20) {
                yield_now();
            }
            Ok((*task, current().id()))
        };
        let mut done = run_all_after(alone, &tasks, 1 << 20, &budget, run).unwrap();
        done.sort_unstable_by_key(|(task, _)| *task);
        assert!(done.iter().map(|(task, _)| task).eq(&tasks), "each once");
        done.into_iter().map(|(_, thread)| thread).collect()
    }

    #[test]
    fn others_help_where_one_thread_is_not_done_for_so_long() {
        assert_eq!(check(HOUR, 100, 1), HashSet::from([current().id()]));
        for alone in [Duration::ZERO, Duration::from_nanos(1)] {
            assert_eq!(check(alone, 2, 2).len(), 2, "{alone:?}");
        }
        assert!(!check(Duration::from_millis(20), 40, 1).is_empty(), "what one thread did is not lost");
        assert_eq!((check(Duration::ZERO, 1, 1).len(), check(HOUR, 0, 1).len()), (1, 0));
    }

    #[test]
    fn a_task_that_fails_ends_those_of_one_thread_and_of_many() {
        for alone in [Duration::ZERO, HOUR] {
            let budget = Budget::new(Limits::default(), &Cancel::new(), &MemoryPool::new(0));
            let run = |task: &u32| if *task == 7 { Err(Error::WorkerPanicked) } else { Ok(*task) };
            let tasks: Vec<u32> = (0..50).collect();
            let failed = run_all_after(alone, &tasks, 1 << 20, &budget, run);
            assert!(matches!(failed, Err(Error::WorkerPanicked)), "{alone:?}: {failed:?}");
        }
    }
}
