//! For how many processors the program has threads: where there is little memory, for fewer than the process may use.
//!
//! A thread has a stack, memory that the allocator keeps for it, and what it works on. In a container of 256 MiB on a machine of 64
//! processors these were more than budgets leave (`docs/decisions/0029-budgets-share-half-of-the-memory.md`).

use super::Config;
use super::keys::Key;

/// Memory for each processor.
const BYTES_EACH: u64 = 64 << 20;

/// However little memory there is.
const LEAST: usize = 2;

/// Settings that go by processors, and how many each one counts for.
const SETTINGS: [(&str, usize); 2] = [("server.worker_threads", 1), ("query.max_concurrent", 2)];

/// Lessens each setting that goes by `processors` and is not set, where the memory is for fewer of them. Call it when budgets are
/// fitted to that.
pub(super) fn fit(config: &mut Config, processors: usize) {
    let Some(memory_bytes) = config.memory_bytes() else { return };
    let share = usize::try_from(memory_bytes / BYTES_EACH).unwrap_or(usize::MAX).max(LEAST);
    if share >= processors {
        return;
    }
    let mut lessened = Vec::new();
    for (name, each) in SETTINGS {
        let Some(key) = Key::named(name).filter(|key| !config.is_set(key.name)) else { continue };
        if key.take(config, &(share * each).to_string()).is_ok() {
            lessened.push(key.name);
        }
    }
    if let Some(fitted) = &mut config.fitted {
        fitted.lessened.extend(lessened);
        fitted.processors = Some(share);
    }
}

impl Config {
    /// For how many processors there is memory; `None` where there is for all.
    pub(crate) fn processors(&self) -> Option<usize> {
        self.fitted.as_ref()?.processors
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Layers};

    /// With so many MiB of memory, so many processors and these settings.
    fn config(memory_mib: u64, processors: usize, set: &[(&'static str, &str)]) -> Config {
        let flags = set.iter().map(|(name, value)| ("--x", *name, (*value).to_owned())).collect();
        let memory_bytes = Some(memory_mib << 20);
        Config::load(&Layers { flags, memory_bytes, processors: Some(processors), ..Layers::default() }).unwrap()
    }

    /// 64 MiB are for one, and two there are always.
    #[test]
    fn little_memory_is_for_few_processors() {
        for (memory_mib, processors, expected) in [
            (256, 64, Some(4)),
            (1 << 10, 64, Some(16)),
            (64, 64, Some(2)),
            (4 << 10, 64, None),
            (256, 4, None),
            (16, 2, None),
            (16, 1, None),
        ] {
            let (some, unless) = (config(memory_mib, processors, &[]), Config::default());
            assert_eq!(some.processors(), expected, "{memory_mib} MiB, {processors}");
            let counts = |of: &Config| [of.server.worker_threads, of.query.max_concurrent];
            let fitted = expected.map(|count| [count, 2 * count]);
            assert_eq!(counts(&some), fitted.unwrap_or(counts(&unless)), "{memory_mib} MiB, {processors}");
        }
    }

    /// `O-CONFIG`
    #[test]
    fn o_config_what_is_set_stays_and_the_others_are_told() {
        let some = config(256, 64, &[("server.worker_threads", "64")]);
        assert_eq!((some.server.worker_threads, some.query.max_concurrent, some.processors()), (64, 8, Some(4)));
        let note = some.memory_note().unwrap();
        assert!(note.contains("query.max_concurrent are shares") && !note.contains("worker"), "{note}");
        assert!(some.changed().any(|line| line.starts_with("`query.max_concurrent` is `8`, from the memory of this")));
    }
}
