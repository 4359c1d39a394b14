//! The threads of a fan-out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use basalt_schema::Schema;

use crate::cancel::Budget;
use crate::{Error, Result};

/// One more thread is started for each of this many rows: starting it takes as long as reading some of them.
const ROWS_PER_WORKER: u64 = 512;
/// How long a thread a processor is enough: several times what one task takes where its blocks are in the cache.
const PROCESSORS_ALONE: Duration = Duration::from_millis(3);

/// How many threads begin with the tasks, and how long they are alone. Then as many help as the limits allow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    threads: usize,
    alone: Duration,
}

impl Start {
    /// All threads at once: for rows that are waited for, as those of other machines are. The more wait at the same time the better.
    pub(crate) const TOGETHER: Self = Self { threads: usize::MAX, alone: Duration::ZERO };

    /// A thread a processor for tables of our own, whose rows are in memory as a rule: more only get in each other's way. Rows that
    /// come from a disk take longer than these few threads are alone, as one of their first tasks does. [`Start::TOGETHER`] for
    /// tables that other daemons write too, which lie across a network.
    pub(crate) fn of(schema: &Schema) -> Self {
        if schema.config().is_shared {
            return Self::TOGETHER;
        }
        Self { threads: rayon::current_num_threads().max(1), alone: PROCESSORS_ALONE }
    }
}

/// Runs all tasks, on as many threads as the limits allow and `rows` (about how many there are to read) are worth. The
/// answers come in any order.
pub(crate) fn run_all<'a, K: Sync, T: Send>(
    tasks: &'a [K],
    start: Start,
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
    let outcomes: Vec<Result<Vec<T>>> = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(workers - 1);
        let mut add_threads = |count: usize| {
            for _ in 0..count {
                // With fewer threads the work is slower, not wrong.
                let Ok(thread) = std::thread::Builder::new().name("query-fetch".to_owned()).spawn_scoped(scope, work)
                else {
                    break;
                };
                threads.push(thread);
            }
        };
        let first = start.threads.clamp(1, workers);
        add_threads(first - 1);
        let mut outcomes = Vec::with_capacity(workers + 1);
        if first < workers {
            outcomes.push(work_until(Some(Instant::now() + start.alone)));
            // This thread takes one of those that are left.
            let left = tasks.len().saturating_sub(next.load(Ordering::Relaxed));
            add_threads(if outcomes.iter().all(Result::is_ok) {
                left.min(workers - first + 1).saturating_sub(1)
            } else {
                0
            });
        }
        if outcomes.iter().all(Result::is_ok) {
            outcomes.push(work());
        }
        outcomes.extend(threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Error::WorkerPanicked))));
        outcomes
    });
    let (mut answers, mut stopped) = (Vec::with_capacity(tasks.len()), None);
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

    const HOUR: Duration = Duration::from_hours(1);

    fn start(threads: usize, alone: Duration) -> Start {
        Start { threads, alone }
    }

    /// The threads that did the tasks, of which each waits for `together` of them to be under way, and the first for some of the
    /// time alone.
    fn check(start: Start, tasks: usize, together: usize) -> HashSet<ThreadId> {
        let budget = Budget::new(Limits::default(), &Cancel::new(), &MemoryPool::new(0));
        let (begun, since) = (AtomicUsize::new(0), Instant::now());
        let tasks: Vec<usize> = (0..tasks).collect();
        let run = |task: &usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            while *task == 0 && since.elapsed() < start.alone.min(Duration::from_millis(40)) {
                yield_now();
            }
            while begun.load(Ordering::SeqCst) < together && since.elapsed() < Duration::from_secs(20) {
                yield_now();
            }
            Ok((*task, current().id()))
        };
        let mut done = run_all(&tasks, start, 1 << 20, &budget, run).unwrap();
        done.sort_unstable_by_key(|(task, _)| *task);
        assert!(done.iter().map(|(task, _)| task).eq(&tasks), "each once");
        done.into_iter().map(|(_, thread)| thread).collect()
    }

    #[test]
    fn others_help_where_the_first_are_not_done_for_so_long() {
        assert_eq!(check(start(1, HOUR), 100, 1), HashSet::from([current().id()]));
        for first in [Start::TOGETHER, start(1, Duration::ZERO), start(1, Duration::from_nanos(1))] {
            assert_eq!(check(first, 2, 2).len(), 2, "{first:?}");
        }
        assert!(!check(start(1, Duration::from_millis(20)), 40, 1).is_empty(), "what one thread did is not lost");
        assert_eq!((check(Start::TOGETHER, 1, 1).len(), check(start(1, HOUR), 0, 1).len()), (1, 0));
    }

    /// Of a quick store no more than the first threads read, of a slow one as many as may.
    #[test]
    fn as_many_read_at_once_as_a_slow_store_needs() {
        let most = Limits::default().scans_at_once_max;
        assert_eq!(check(start(3, HOUR), 60, 3).len(), 3);
        assert_eq!(check(Start::TOGETHER, most, most).len(), most);
        // The first thread's first task is over after so long; each other task waits until all threads are there.
        let budget = Budget::new(Limits::default(), &Cancel::new(), &MemoryPool::new(0));
        let (under_way, since) = (AtomicUsize::new(0), Instant::now());
        let (of_caller, tasks): (_, Vec<usize>) = (current().id(), (0..40).collect());
        let waits = |_: &usize| {
            let is_first = under_way.fetch_add(1, Ordering::SeqCst) < 3 && current().id() == of_caller;
            while !is_first && under_way.load(Ordering::SeqCst) < most && since.elapsed() < Duration::from_secs(20) {
                yield_now();
            }
            while is_first && since.elapsed() < Duration::from_millis(5) {
                yield_now();
            }
            Ok(current().id())
        };
        let threads = run_all(&tasks, start(3, Duration::from_millis(1)), 1 << 20, &budget, waits).unwrap();
        assert_eq!(threads.len(), tasks.len());
        assert!(threads.into_iter().collect::<HashSet<_>>().len() > 3, "others came");
        assert!(since.elapsed() < Duration::from_secs(20), "all came");
    }

    #[test]
    fn a_task_that_fails_ends_those_of_one_thread_and_of_many() {
        for first in [Start::TOGETHER, start(1, HOUR), start(3, HOUR), start(3, Duration::ZERO)] {
            let budget = Budget::new(Limits::default(), &Cancel::new(), &MemoryPool::new(0));
            let run = |task: &u32| if *task == 7 { Err(Error::WorkerPanicked) } else { Ok(*task) };
            let tasks: Vec<u32> = (0..50).collect();
            let failed = run_all(&tasks, first, 1 << 20, &budget, run);
            assert!(matches!(failed, Err(Error::WorkerPanicked)), "{first:?}: {failed:?}");
        }
    }
}
