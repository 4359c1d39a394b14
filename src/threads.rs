//! Whether the system lets a process have its threads: a server asks before it starts them, as some of those who start threads end
//! with a panic where there are none to be had, and others wait for good.
//! Who starts threads by hand tells a failure by [`too_few`]; who has nothing to wait for takes a [`pause`].

use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, available_parallelism, park_timeout, scope};
use std::time::{Duration, Instant};

use memmap2::MmapMut;
use rayon::ThreadPoolBuilder;
use rustix::process::{Resource, getrlimit};

use crate::exit::{Exit, Failure};

/// Threads besides those whose number goes by processors: the store's own, the log's, some that answer queries.
const OTHERS: usize = 16;

/// Address space that is to be left beside each thread. Where it runs out whoever wants a byte ends the process, and no error is told.
const ROOM_BYTES: usize = 64 << 20;

/// Processors that the process may use.
pub(crate) fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Starts as many threads as a server of so many `worker_threads` (0: one a processor) for so many `processors` (`None`: all) has
/// when it is busy, ends them again, and starts those of [`start_pool`] for good.
///
/// *Cost*: some 40 microseconds a thread.
///
/// # Errors
///
/// Exit code 1: the system does not let the process have as many; which limit is to be raised.
pub(crate) fn check(worker_threads: usize, processors: Option<usize>) -> Result<(), Failure> {
    let count = processors.unwrap_or_else(self::processors);
    let workers = if worker_threads > 0 { worker_threads } else { count };
    let wanted = 2 * workers + 2 * count + OTHERS;
    let started = started_of(wanted);
    if started < wanted {
        Err(too_few(&format!("{started} of {wanted} could be started")))
    } else {
        start_pool(processors)
    }
}

/// Starts the threads that aggregate groups of series, one for each of so many `processors` (`None`: of all). Nobody else starts them
/// before; whoever uses them would end with a panic where they cannot be had.
///
/// # Errors
///
/// As [`check`].
pub(crate) fn start_pool(processors: Option<usize>) -> Result<(), Failure> {
    ThreadPoolBuilder::new()
        .num_threads(processors.unwrap_or(0))
        .build_global()
        .map_err(|cause| too_few(&cause.to_string()))
}

/// Threads that were there at once, up to `wanted`.
fn started_of(wanted: usize) -> usize {
    let door = Mutex::new(());
    scope(|scope| {
        let closed = door.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = || drop(door.lock().unwrap_or_else(PoisonError::into_inner));
        let has_room = || MmapMut::map_anon(ROOM_BYTES).is_ok();
        let started =
            (0..wanted).take_while(|_| has_room() && Builder::new().spawn_scoped(scope, wait).is_ok()).count();
        drop(closed);
        started
    })
}

/// Lets so much time pass, whoever wakes the thread meanwhile.
pub(crate) fn pause(time: Duration) {
    let until = Instant::now() + time;
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        park_timeout(left);
    }
}

/// That threads could not be started: which limit is to be raised.
pub(crate) fn too_few(why: &str) -> Failure {
    let bound = |resource| getrlimit(resource).current;
    let limits = limits(bound(Resource::As), bound(Resource::Nproc));
    Failure::new(
        Exit::Failure,
        format!("the system does not let this process have its threads ({why}): raise {limits}"),
    )
}

/// What may keep a process from starting threads, with the limits in force: bytes of address space and processes of the user.
fn limits(address_bytes: Option<u64>, processes: Option<u64>) -> String {
    let address =
        address_bytes.map(|bytes| format!("the limit of address space (`ulimit -v`, now {} KiB), ", bytes >> 10));
    let processes = processes.map(|count| format!("the user's limit of processes (`ulimit -u`, now {count}), "));
    let tasks = "or the limit of tasks (TasksMax of systemd, the container's limit of processes)";
    [address.as_deref(), processes.as_deref(), Some(tasks)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_in_force_are_named() {
        let text = limits(Some(2 << 20), Some(30));
        assert!(text.contains("`ulimit -v`, now 2048 KiB") && text.contains("`ulimit -u`, now 30"), "{text}");
        let text = limits(None, None);
        assert!(!text.contains("ulimit") && text.contains("TasksMax"), "{text}");
        assert_eq!(started_of(3), 3);
    }
}
