//! Budgets of memory: settings that bound what a part of the program may hold, and how they share the memory of a small machine.
//!
//! A budget that is not set is its fixed default, or its share of the memory that the process may use if that is less. All shares
//! together are half of what is beyond [`BASE_BYTES`] (`docs/decisions/0029-budgets-share-half-of-the-memory.md`). One that is set stays as it is.

use super::keys::Key;
use super::{Config, StoreKind};

/// Budgets are whole numbers of these, for people.
const MIB: u64 = 1 << 20;

/// Memory that is nobody's share: for the program itself and some series.
pub(super) const BASE_BYTES: u64 = 64 * MIB;

/// One setting that bounds memory.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) name: &'static str,
    /// Where it is not set, it is at most one part of so many of the memory beyond [`BASE_BYTES`].
    pub(super) part: u64,
    /// How many times as much its part of the program may hold.
    times: u64,
    /// What it is at least, however little memory there is: with less the program would refuse what small senders and dashboards ask.
    pub(super) bytes_min: u64,
    /// Whether only the embedded store has it.
    is_of_folder: bool,
}

impl Budget {
    const fn new(name: &'static str, part: u64, bytes_min: u64) -> Self {
        Self { name, part, times: 1, bytes_min, is_of_folder: false }
    }

    const fn of_folder(name: &'static str, part: u64, bytes_min: u64) -> Self {
        Self { is_of_folder: true, ..Self::new(name, part, bytes_min) }
    }

    fn key(&self) -> Option<&'static Key> {
        Key::named(self.name)
    }
}

/// All of them.
pub(super) const BUDGETS: [Budget; 5] = [
    Budget { times: 2, ..Budget::of_folder("store.memtables_bytes", 20, 8 * MIB) },
    Budget::of_folder("store.block_cache_bytes", 20, 8 * MIB),
    Budget::of_folder("store.bloom_filters_bytes", 20, 8 * MIB),
    Budget::new("query.memory_bytes", 5, 32 * MIB),
    // One body of the default's length fits.
    Budget::new("http.bodies_bytes_max", 10, 32 * MIB),
];

/// Memory that budgets, and threads, were fitted to.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    memory_bytes: u64,
    /// Settings that have less than their fixed default, by name.
    pub(super) lessened: Vec<&'static str>,
    /// For how many processors it is, where the process may use more.
    pub(super) processors: Option<usize>,
}

/// All of them as settings.
pub(super) fn keys() -> impl Iterator<Item = &'static Key> {
    BUDGETS.iter().filter_map(Budget::key)
}

/// Gives each budget that is not set its share of so much memory, where that is less than its default.
pub(super) fn fit(config: &mut Config, memory_bytes: u64) {
    let (shared_bytes, mut lessened) = (memory_bytes.saturating_sub(BASE_BYTES), Vec::new());
    for budget in &BUDGETS {
        let share = (shared_bytes / budget.part / MIB * MIB).max(budget.bytes_min);
        let Some(key) = budget.key().filter(|key| !config.is_set(key.name)) else { continue };
        if share < bytes(key, config) && key.take(config, &share.to_string()).is_ok() {
            lessened.push(key.name);
        }
    }
    config.fitted = Some(Fitted { memory_bytes, lessened, processors: None });
}

/// Bytes that a budget is now.
fn bytes(key: &Key, config: &Config) -> u64 {
    (key.get)(config).parse().unwrap_or(0)
}

impl Config {
    /// Bytes of memory that budgets were fitted to; `None` where nobody tells.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.fitted.as_ref().map(|fitted| fitted.memory_bytes)
    }

    /// What the parts of the program may hold together, as far as budgets bound it; none of what has no limit.
    fn budgets_bytes(&self) -> u64 {
        let is_embedded = self.store.kind == StoreKind::Embedded;
        let used = BUDGETS.iter().filter(|budget| is_embedded || !budget.is_of_folder);
        let held = used.filter_map(|budget| Some(bytes(budget.key()?, self).saturating_mul(budget.times)));
        // The largest body fits, whatever all may hold.
        let body_bytes = self.http.bodies_bytes() - self.http.bodies_bytes_max;
        held.fold(body_bytes as u64, u64::saturating_add)
    }

    /// What one connection may hold of what its peer sends, without a share of `http.bodies_bytes_max`: 1 MiB, or less where there is
    /// little memory. A thousand connections hold a fifth of it then.
    pub(crate) fn connection_bytes(&self) -> usize {
        const BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 20;
        const PART: u64 = 5 * 1024;
        let share = self.memory_bytes().map_or(u64::MAX, |bytes| bytes / PART);
        usize::try_from(share).unwrap_or(usize::MAX).clamp(*BYTES.start(), *BYTES.end())
    }

    /// That budgets are less than their defaults, and why; `None` where they are not.
    pub(crate) fn memory_note(&self) -> Option<String> {
        let fitted = self.fitted.as_ref().filter(|fitted| !fitted.lessened.is_empty())?;
        let (memory, names) = (fitted.memory_bytes / MIB, fitted.lessened.join(", "));
        Some(format!("this process may use {memory} MiB of memory: {names} are shares of it, unless they are set"))
    }

    /// That the memory is not enough for the budgets; `None` where it is.
    pub(crate) fn memory_warning(&self) -> Option<String> {
        let memory_bytes = self.fitted.as_ref()?.memory_bytes;
        let budgets_bytes = self.budgets_bytes();
        if budgets_bytes <= memory_bytes {
            return None;
        }
        let (memory, budgets) = (memory_bytes / MIB, budgets_bytes.div_ceil(MIB));
        let names = BUDGETS.map(|budget| budget.name).join(", ");
        Some(format!(
            "budgets of memory are {budgets} MiB together and this process may use {memory} MiB: under load the system may \
             kill it; give it more memory, or lower the budgets that are set ({names})"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    /// With so many MiB of memory and these settings.
    fn config(memory_mib: u64, set: &[(&'static str, &str)]) -> Config {
        let flags = set.iter().map(|(name, value)| ("--x", *name, (*value).to_owned())).collect();
        Config::load(&Layers { flags, memory_bytes: Some(memory_mib * MIB), ..Layers::default() }).unwrap()
    }

    /// MiB of all budgets, in their order.
    fn budgets(config: &Config) -> [u64; 5] {
        BUDGETS.map(|budget| bytes(budget.key().unwrap(), config) / MIB)
    }

    /// Budgets that nobody set are half of the memory together, and never more than their fixed defaults.
    #[test]
    fn budgets_share_half_of_the_memory() {
        let fixed = budgets(&Config::default());
        assert_eq!(fixed, [256, 256, 256, 1024, 512]);
        for (memory_mib, expected) in [
            (1 << 20, fixed),
            ((5 << 10) + 64, fixed),
            (2 << 10, [99, 99, 99, 396, 198]),
            (512, [22, 22, 22, 89, 44]),
            (320, [12, 12, 12, 51, 32]),
            (64, [8, 8, 8, 32, 32]),
        ] {
            let config = config(memory_mib, &[]);
            assert_eq!(budgets(&config), expected, "{memory_mib} MiB");
            let sum = config.budgets_bytes() / MIB;
            assert!(sum <= (memory_mib / 2).max(96), "{sum} of {memory_mib} MiB");
            assert_eq!(config.memory_note().is_some(), expected != fixed, "{memory_mib} MiB");
            assert_eq!(config.memory_warning().is_some(), memory_mib < 96, "{memory_mib} MiB");
        }
        // Where nobody tells how much there is.
        let unknown = Config::load(&Layers::default()).unwrap();
        assert_eq!((budgets(&unknown), unknown.memory_note(), unknown.memory_warning()), (fixed, None, None));
    }

    /// What is set stays as it is, and is warned of where the memory is not enough for it.
    #[test]
    fn a_budget_that_is_set_stays_as_it_is() {
        let set = [("store.memtables_bytes", "268435456"), ("query.memory_bytes", "0")];
        let some = config(1024, &set);
        assert_eq!(budgets(&some), [256, 48, 48, 0, 96]);
        assert_eq!(some.memory_warning(), None);
        let note = some.memory_note().unwrap();
        assert!(note.contains("1024 MiB") && note.contains("store.block_cache_bytes, store.bloom"), "{note}");
        assert!(!note.contains("memtables"), "{note}");
        let warning = config(512, &set).memory_warning().unwrap();
        assert!(warning.contains("600 MiB together") && warning.contains("may use 512 MiB"), "{warning}");
        // A cluster's memtables and blocks are not here.
        let over = config(512, &[set[0], set[1], ("store.kind", "hbase")]);
        assert_eq!(over.memory_warning(), None);
        // One body may be larger than what is set for all.
        let body = config(512, &[("http.max_body_bytes", "1073741824")]).memory_warning().unwrap();
        assert!(body.contains("1201 MiB together"), "{body}");
    }

    #[test]
    fn a_connection_holds_less_where_memory_is_scarce() {
        for (memory_mib, expected) in [(1 << 20, 1 << 20), (5 << 10, 1 << 20), (1 << 10, 209_715), (256, 64 << 10)] {
            assert_eq!(config(memory_mib, &[]).connection_bytes(), expected, "{memory_mib} MiB");
        }
        assert_eq!(Config::default().connection_bytes(), 1 << 20);
    }

    /// `O-CONFIG`: whoever looks sees the numbers in force, and that they are the machine's.
    #[test]
    fn o_config_the_budgets_in_force_are_told() {
        let small = config(512, &[("store.bloom_filters_bytes", "7")]);
        let changed: Vec<String> = small.changed().collect();
        assert!(
            changed[0].starts_with("`http.bodies_bytes_max` is `46137344`, from the memory of this"),
            "{changed:?}"
        );
        assert!(changed.iter().any(|line| line == "`store.bloom_filters_bytes` is `7`, from flag --x"), "{changed:?}");
        let told = crate::config::as_opentsdb(&small);
        assert_eq!((&*told["store.memtables_bytes"], &*told["store.bloom_filters_bytes"]), ("23068672", "7"));
        let large = config(1 << 20, &[]);
        assert_eq!(large.changed().count(), 0);
        assert!(large.entries().all(|(_, _, origin)| origin == "default"));
    }
}
