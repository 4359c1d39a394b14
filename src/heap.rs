//! Memory that was given back to the allocator and nobody took again: for how long it is kept before the system gets it.
//!
//! jemalloc keeps it for ten seconds, which spares faults. A burst of queries then holds three times what it counts: where memory is
//! scarce that is what the process is killed for. So there the time is shorter (`docs/decisions/0029-budgets-share-half-of-the-memory.md`).

use tikv_jemalloc_ctl::{Access as _, AsName as _, arenas};

/// As jemalloc has it.
const KEPT_MS: isize = 10_000;
/// Memory with which nothing changes, in parts of ten thousand.
const PART_BYTES: u64 = (5 << 30) / 10_000;

/// For how long memory is kept where the process may use so much: a quarter as long with half of it. In proportion, a process of 256 MiB
/// still held 40 MiB that nobody used.
fn kept_ms(memory_bytes: u64) -> isize {
    let parts = (memory_bytes / PART_BYTES).min(10_000);
    isize::try_from(parts * parts / 10_000).unwrap_or(KEPT_MS)
}

/// Keeps what is given back for less long where the process may use little memory. A time that the environment gives jemalloc stays
/// (`_RJEM_MALLOC_CONF=dirty_decay_ms:…`). Call it early: for the arenas of threads that start later it is a default.
pub(crate) fn fit(memory_bytes: Option<u64>) {
    let Some(memory_bytes) = memory_bytes else { return };
    let (of_new, ms) = (b"arenas.dirty_decay_ms\0".name(), kept_ms(memory_bytes));
    let is_default = of_new.read().is_ok_and(|now: isize| now == KEPT_MS);
    if !is_default || ms == KEPT_MS {
        return;
    }
    if let Err(cause) = of_new.write(ms) {
        tracing::debug!(%cause, "memory that is given back is kept as long as ever");
    }
    for arena in 0..arenas::narenas::read().unwrap_or(0) {
        // Those that no thread has yet are refused, and take the default later.
        format!("arena.{arena}.dirty_decay_ms\0").name().write(ms).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With little memory less of it lies idle; with much all is as ever.
    #[test]
    fn what_is_given_back_is_kept_for_less_long_where_memory_is_scarce() {
        for (mib, expected) in [(1 << 20, 10_000), (5 << 10, 10_000), (1 << 10, 400), (256, 25), (0, 0)] {
            assert_eq!(kept_ms(mib << 20), expected, "{mib} MiB");
        }
        let times = || -> [isize; 2] {
            ["arenas.dirty_decay_ms\0", "arena.0.dirty_decay_ms\0"].map(|name| name.name().read().unwrap())
        };
        fit(Some(1 << 40));
        assert_eq!(times(), [10_000; 2]);
        fit(Some(256 << 20));
        assert_eq!(times(), [25; 2]);
        // Somebody said so.
        fit(Some(512 << 20));
        assert_eq!(times(), [25; 2]);
    }
}
