//! The three UID spaces together.

use std::sync::Arc;

use basalt_store::{Store, TableName};

use crate::generation::Generation;
use crate::uid_table::{UidTable, UidTableParts};
use crate::{NameRules, Result, SchemaConfig, UidKind};

/// The maps between names and UIDs, one for each kind.
#[derive(Debug)]
pub struct Uids {
    metric: UidTable,
    tagk: UidTable,
    tagv: UidTable,
    generation: Arc<Generation>,
}

impl Uids {
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        table: &TableName,
        config: &SchemaConfig,
        rules: &Arc<NameRules>,
    ) -> Self {
        let generation = Arc::new(Generation::default());
        let filter = Arc::new(config.uid_filter.clone());
        let of = |kind| {
            UidTable::new(UidTableParts {
                dice: config.random_metrics.clone().filter(|_| kind == UidKind::Metric),
                filter: Arc::clone(&filter),
                meta_clock: config.realtime.names.then(|| Arc::clone(&config.clock)),
                store: Arc::clone(store),
                table: table.clone(),
                kind,
                width: config.widths.of(kind),
                rules: Arc::clone(rules),
                cache_entries: config.uid_cache_entries,
                generation: Arc::clone(&generation),
            })
        };
        Self { metric: of(UidKind::Metric), tagk: of(UidKind::Tagk), tagv: of(UidKind::Tagv), generation }
    }

    /// The map of one kind.
    pub const fn of(&self, kind: UidKind) -> &UidTable {
        match kind {
            UidKind::Metric => &self.metric,
            UidKind::Tagk => &self.tagk,
            UidKind::Tagv => &self.tagv,
        }
    }

    /// A number that grows with every rename, delete and [`Uids::drop_caches`]. Whoever keeps resolved names reads it
    /// *before* resolving, keeps it with them, and resolves again once it has changed.
    pub fn generation(&self) -> u64 {
        self.generation.read()
    }

    /// Makes what was resolved be resolved again.
    pub(crate) fn raise_generation(&self) {
        self.generation.raise();
    }

    /// Reads up to `max` names of each kind into memory (`tsd.core.preload_uid_cache`), and says how many it read.
    ///
    /// *Cost*: a scan of the reverse maps.
    ///
    /// # Errors
    /// The store's own.
    pub fn preload(&self, max: u64) -> Result<u64> {
        UidKind::ALL.into_iter().try_fold(0, |read, kind| Ok(read + self.of(kind).preload(max)?))
    }

    /// Forgets every name and UID kept in memory; the tables are asked again. What is being read from them is not kept; this does
    /// not wait for it.
    pub fn drop_caches(&self) {
        for kind in UidKind::ALL {
            self.of(kind).clear_caches();
        }
        self.generation.raise();
    }
}
