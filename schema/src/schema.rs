//! The schema over a store: tables opened, names resolved, series known.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use basalt_store::{ErrorKind, MutationBatch, Store, TableName};

use crate::index::{Departed, Departures, Forget, Keeping, Rows};
use crate::tables::{DATA_FAMILY, rollup_tables};
use crate::tree::LiveTrees;
use crate::{
    Error, KeyLayout, LogRead, NameRules, RebuildReport, Result, SchemaConfig, SeriesIndex, Tables, TagPair, Tsuid,
    Uid, UidDice, UidKind, Uids, UidsFound,
};

/// OpenTSDB's tables on a store. One a process; shared by `Arc`.
///
/// ```
/// use std::sync::Arc;
/// use basalt_schema::{Schema, SchemaConfig};
/// use basalt_store::{ManualClock, MemoryStore};
/// let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
/// let schema = Schema::open(store, SchemaConfig::default())?;
/// let tsuid = schema.resolve("sys.cpu.user", &[("host", "web01")])?;
/// assert_eq!(tsuid.to_string(), "000001000001000001");
/// assert_eq!(&*schema.names(&tsuid)?.metric, "sys.cpu.user");
/// # Ok::<(), basalt_schema::Error>(())
/// ```
#[derive(Debug)]
pub struct Schema {
    store: Arc<dyn Store>,
    config: SchemaConfig,
    tables: Tables,
    layout: KeyLayout,
    rules: Arc<NameRules>,
    uids: Uids,
    index: SeriesIndex,
    keeping: Keeping,
    departures: Departures,
    rebuilt: RebuildReport,
    /// Of those that were looked for.
    uids_found: Vec<UidsFound>,
    /// May raise counters.
    is_assigning: bool,
    live_trees: LiveTrees,
    /// How often meta objects, counters or places in trees could not be kept. Relaxed: it orders nothing.
    realtime_failures: AtomicU64,
}

/// What tables are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// All there is: those that are absent are made.
    Serve,
    /// To read or mend: none is made, and no counter raised.
    Read,
    /// To give names their UIDs: those that are absent are made.
    Assign,
}

/// A series in names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesNames {
    /// Its metric.
    pub metric: Arc<str>,
    /// Its tags, key and value, in the order of its row keys.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
}

impl Schema {
    /// Makes the tables that are absent, checks the families of the others and the settings that they record, and reads the
    /// series index, but for tables that others write too.
    ///
    /// *Cost*: the series index's log, and a scan of the row keys that came after it; of all, and of the UID table, where there is no
    /// such log, of none of [shared](SchemaConfig::is_shared) tables.
    ///
    /// # Errors
    /// `Invalid`: table names that the store refuses, salt and UID widths other than those the tables were made with, a table without
    /// one of its families, or a table of points without that of UIDs, which is not made then. The store's own.
    pub fn open(store: Arc<dyn Store>, config: SchemaConfig) -> Result<Self> {
        Self::over(store, config, Purpose::Serve)
    }

    /// As [`Schema::open`] for one who only reads or mends: makes no table and raises no counter of UIDs.
    ///
    /// *Cost*: as [`Schema::open`].
    ///
    /// # Errors
    /// As [`Schema::open`]. `NotFound`: the table of points, of UIDs or of rollups is absent.
    pub fn open_existing(store: Arc<dyn Store>, config: SchemaConfig) -> Result<Self> {
        Self::over(store, config, Purpose::Read)
    }

    /// As [`Schema::open_existing`] for one who works on names and rows: no series is read, and no log of the index written. From here
    /// on the tables count as [shared](SchemaConfig::is_shared), so that who asks for series all the same has them read from row keys.
    ///
    /// *Cost*: reads no row.
    ///
    /// # Errors
    /// As [`Schema::open_existing`].
    pub fn open_without_series(store: Arc<dyn Store>, config: SchemaConfig) -> Result<Self> {
        Self::over(store, SchemaConfig { is_shared: true, ..config }, Purpose::Read)
    }

    /// As [`Schema::open`] for one who gives names their UIDs, and writes no rows of points: as [`Schema::open_without_series`] where the
    /// index's log tells that no name was lost, and UIDs are given out by the counter.
    ///
    /// *Cost*: the log's bytes; as [`Schema::open`] where it does not tell.
    ///
    /// # Errors
    /// As [`Schema::open`].
    pub fn open_to_assign(store: Arc<dyn Store>, config: SchemaConfig) -> Result<Self> {
        Self::over(store, config, Purpose::Assign)
    }

    /// Checks the settings that those of the tables record that are there. Makes none and reads no row.
    ///
    /// # Errors
    /// `Invalid`: table names that the store refuses, or salt and UID widths other than those the tables were made with. The store's
    /// own.
    pub fn check_tables(store: &dyn Store, config: &SchemaConfig) -> Result<()> {
        Tables::named(config)?.check_fixed(store, config)
    }

    /// Takes into the settings what the tables that are there record of salt and UID widths, but for what `is_set` answers to by its
    /// name in the tables, such as `salt.buckets`. Makes no table and reads no row.
    ///
    /// # Errors
    /// `Invalid`: a table name that the store refuses. The store's own.
    pub fn take_recorded(store: &dyn Store, config: &mut SchemaConfig, is_set: impl Fn(&str) -> bool) -> Result<()> {
        Tables::named(config)?.take_recorded(store, config, is_set)
    }

    /// Has the table of points, where it is there and says how its rows are folded, say it as the settings do, which decide by it who
    /// wins of two values at one instant. Gives the fold until now where it was another.
    ///
    /// *Cost*: then waits for compactions of the table.
    ///
    /// # Errors
    /// `Invalid`: a table name that the store refuses. The store's own.
    pub fn keep_fold(store: &dyn Store, config: &SchemaConfig) -> Result<Option<Box<str>>> {
        Tables::named(config)?.keep_fold(store, config)
    }

    fn over(store: Arc<dyn Store>, mut config: SchemaConfig, purpose: Purpose) -> Result<Self> {
        let width = config.widths.metric.bytes();
        if config.random_metrics.is_some() && width > UidDice::WIDTH_MAX {
            return Err(Error::RandomWidth { width, max: UidDice::WIDTH_MAX });
        }
        let tables = Tables::named(&config)?;
        match purpose {
            Purpose::Read => tables.find(&*store, &config)?,
            Purpose::Serve | Purpose::Assign => tables.open(&*store, &config)?,
        }
        let layout = KeyLayout { salting: config.salting, widths: config.widths };
        let mut is_doubtful = false;
        if purpose == Purpose::Assign && !config.is_shared && config.random_metrics.is_none() {
            let rows = Rows { store: &*store, tables: tables_of_series(&tables, &config), layout };
            config.is_shared = Keeping::is_whole(&rows);
            // By now what was damaged of it is cut off, and it reads as if it were whole.
            is_doubtful = !config.is_shared;
        }
        let rules = Arc::new(NameRules::new(&config.extra_characters, config.tags_max));
        let uids = Uids::new(&store, &tables.uid, &config, &rules);
        let mut index = SeriesIndex::new(config.widths, config.series_max);
        let (keeping, mut rebuilt) = if config.is_shared {
            Default::default()
        } else {
            let rows = Rows { store: &*store, tables: tables_of_series(&tables, &config), layout };
            Keeping::open(&mut index, &rows, &tables.uid)?
        };
        if is_doubtful && rebuilt.log == LogRead::Whole {
            rebuilt.log = LogRead::Cut;
        }
        let (departures, uids_found, live_trees, realtime_failures) = Default::default();
        let mut schema = Self {
            store,
            config,
            tables,
            layout,
            rules,
            uids,
            index,
            keeping,
            departures,
            rebuilt,
            uids_found,
            is_assigning: purpose != Purpose::Read,
            live_trees,
            realtime_failures,
        };
        schema.meet_uids()?;
        Ok(schema)
    }

    /// Has no UID given out that occurs, as far as the index was read: see [`UidsFound`].
    fn meet_uids(&mut self) -> Result<()> {
        if self.config.is_shared {
            return Ok(());
        }
        if self.config.random_metrics.is_some() {
            self.uids.of(UidKind::Metric).avoid(self.index.metrics());
        }
        if self.rebuilt.log != LogRead::Whole {
            self.uids_found = self.find_uids()?;
            self.uids_found.iter().for_each(|found| self.uids.of(found.kind).begin_after(found.largest));
        }
        Ok(())
    }

    /// Whether no counter of UIDs is behind, so that the next open need not look for what occurs.
    fn hold_counters(&self) -> Result<bool> {
        if self.is_assigning {
            self.raise_counters(&self.uids_found)?;
            return Ok(true);
        }
        Ok(self.uids_found.iter().all(|found| found.counter_behind.is_none()))
    }

    /// Writes down what the index knows more than its log beside the tables says, so that the next start reads that and looks at
    /// the rows that came after. A store without such logs does nothing. Raises counters of UIDs that were found behind first, or
    /// writes nothing where it may not.
    ///
    /// *Cost*: by the number of new series; blocks on I/O.
    ///
    /// # Errors
    /// The store's own; what the log says stays true.
    pub fn checkpoint(&self) -> Result<()> {
        if !self.hold_counters()? {
            return Ok(());
        }
        let tables = tables_of_series(&self.tables, &self.config);
        self.keeping.checkpoint(&self.index, &Rows { store: &*self.store, tables, layout: self.layout })
    }

    /// As [`Schema::checkpoint`] at the end, which is not to wait: where all row keys would have to be read, nothing is written.
    ///
    /// # Errors
    /// As [`Schema::checkpoint`].
    pub fn last_checkpoint(&self) -> Result<()> {
        if !self.hold_counters()? {
            return Ok(());
        }
        let tables = tables_of_series(&self.tables, &self.config);
        self.keeping.last_checkpoint(&self.index, &Rows { store: &*self.store, tables, layout: self.layout })
    }

    /// Empties what [`Schema::checkpoint`] wrote, so that the next open reads all row keys and looks which UIDs occur, unless a checkpoint
    /// comes before.
    ///
    /// # Errors
    /// The store's own.
    pub fn forget_checkpoints(&self) -> Result<()> {
        self.keeping.forget()
    }

    /// Has the next [`Schema::checkpoint`] read all row keys, as rows that were too old may be seen again: the clock was set back.
    pub fn read_rows_again(&self) {
        self.keeping.doubt();
    }

    /// How long points are kept at least, in seconds, where those of any table go by themselves.
    ///
    /// # Errors
    /// The store's own.
    pub fn ttl_seconds(&self) -> Result<Option<u64>> {
        let mut shortest = None;
        for table in tables_of_series(&self.tables, &self.config) {
            let found = match self.store.describe_table(table) {
                Ok(found) => found,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            let ttl = found.family(DATA_FAMILY).and_then(|(_, family)| family.ttl_seconds);
            shortest = shortest.into_iter().chain(ttl).min();
        }
        Ok(shortest)
    }

    /// Does a part of letting series without rows go, which leave the index by that; `forget` makes who remembers series found before
    /// forget some. To be called again and again while it is under way. Of a store without logs beside its tables none leaves.
    ///
    /// *Cost*: about `rows_max` row keys read, or a flush of the tables, or a microsecond for each tag of the series that leave; blocks on
    /// I/O.
    ///
    /// # Errors
    /// The store's own; nothing left then, and the next call begins anew.
    pub fn let_series_go(&self, rows_max: u64, forget: &mut Forget<'_>) -> Result<Departed> {
        let tables = tables_of_series(&self.tables, &self.config);
        let rows = Rows { store: &*self.store, tables, layout: self.layout };
        self.departures.turn((&self.index, &self.keeping), &rows, rows_max, forget)
    }

    /// Whether a table's rows are those of series.
    pub(crate) fn has_series(&self, table: &TableName) -> bool {
        tables_of_series(&self.tables, &self.config).contains(&table)
    }

    /// Adds every series that has a row to the index.
    ///
    /// # Errors
    /// As [`SeriesIndex::rebuild`].
    pub(crate) fn read_index(&self) -> Result<()> {
        let mut tables = tables_of_series(&self.tables, &self.config).into_iter();
        tables.try_for_each(|table| self.index.rebuild(&*self.store, table, self.layout).map(drop))
    }

    /// The tables in which a series may have rollups and no points.
    pub(crate) fn tables_of_rollups_alone(&self) -> impl Iterator<Item = &TableName> {
        rollup_tables(&self.config).filter(|table| **table != self.tables.data)
    }

    /// The store below.
    pub const fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Applies a batch, if it has rows.
    ///
    /// # Errors
    /// The store's own; a row that is refused, the others then being stored.
    pub(crate) fn apply(&self, table: &TableName, batch: MutationBatch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        Ok(self.store.apply(table, batch).wait()?.all_stored()?)
    }

    /// What it was opened with.
    pub const fn config(&self) -> &SchemaConfig {
        &self.config
    }

    /// The names of the tables.
    pub const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// How row keys are laid out.
    pub const fn layout(&self) -> KeyLayout {
        self.layout
    }

    /// Which names are allowed.
    pub fn rules(&self) -> &NameRules {
        &self.rules
    }

    /// Names and UIDs.
    pub const fn uids(&self) -> &Uids {
        &self.uids
    }

    /// Every series; of shared tables, every series that was seen so far.
    pub const fn index(&self) -> &SeriesIndex {
        &self.index
    }

    /// What was read to fill the index at open; nothing of shared tables.
    pub const fn rebuilt(&self) -> RebuildReport {
        self.rebuilt
    }

    /// What was found of UIDs at open, where the index's log did not tell that nothing was lost; then of each kind.
    pub fn uids_found(&self) -> &[UidsFound] {
        &self.uids_found
    }

    pub(crate) const fn live_trees(&self) -> &LiveTrees {
        &self.live_trees
    }

    pub(crate) const fn realtime_failures_count(&self) -> &AtomicU64 {
        &self.realtime_failures
    }

    /// The UID of a name for writing: an unknown one is given a UID, if the configuration creates names of this kind.
    ///
    /// # Errors
    /// As [`crate::UidTable::uid_or_create`] or, where nothing is created, [`crate::UidTable::uid`].
    pub fn uid_for_write(&self, kind: UidKind, name: &str) -> Result<Uid> {
        let table = self.uids.of(kind);
        if self.config.auto_create.allows(kind) { table.uid_or_create(name) } else { table.uid(name) }
    }

    /// The series of a point to be written: its names checked, resolved and sorted. It is not added to the index:
    /// whoever writes rows of it does that first. A series without rows costs a look-up, a row without its series is not
    /// found.
    ///
    /// # Errors
    /// `Invalid`: names or numbers of tags that the rules refuse. `NotFound`: an unknown name of a kind that is not
    /// created. The store's own.
    pub fn resolve(&self, metric: &str, tags: &[(&str, &str)]) -> Result<Tsuid> {
        self.rules.check_point(metric, tags)?;
        self.resolve_by(metric, tags, |kind, name| self.uid_for_write(kind, name))
    }

    /// The pairs of a point's tags to be written, in the order of row keys: for one who met the tags with one metric and meets
    /// them with others. [`Schema::resolve`] is this and a metric's UID; it checks the names, which here is the caller's.
    ///
    /// # Errors
    /// `Invalid`: a new name that the rules refuse. `NotFound`: an unknown name of a kind that is not created. The store's own.
    pub fn pairs_for_write(&self, tags: &[(&str, &str)]) -> Result<Vec<TagPair>> {
        let mut pairs = pairs_by(tags, |kind, name| self.uid_for_write(kind, name))?;
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// The series of these names, if all of them are known.
    ///
    /// # Errors
    /// `NotFound`: an unknown name. The store's own.
    pub fn find(&self, metric: &str, tags: &[(&str, &str)]) -> Result<Tsuid> {
        self.resolve_by(metric, tags, |kind, name| self.uids.of(kind).uid(name))
    }

    fn resolve_by(
        &self,
        metric: &str,
        tags: &[(&str, &str)],
        uid: impl Fn(UidKind, &str) -> Result<Uid>,
    ) -> Result<Tsuid> {
        let metric = uid(UidKind::Metric, metric)?;
        Ok(Tsuid::new(metric, &pairs_by(tags, uid)?, self.layout.widths))
    }

    /// The names of a series.
    ///
    /// # Errors
    /// `NotFound`: a UID without a name. The store's own.
    pub fn names(&self, tsuid: &Tsuid) -> Result<SeriesNames> {
        let widths = self.layout.widths;
        let tags = tsuid.pairs(widths).map(|pair| {
            Ok((self.uids.of(UidKind::Tagk).name(pair.key)?, self.uids.of(UidKind::Tagv).name(pair.value)?))
        });
        let tags = tags.collect::<Result<_>>()?;
        Ok(SeriesNames { metric: self.uids.of(UidKind::Metric).name(tsuid.metric(widths))?, tags })
    }
}

fn pairs_by(tags: &[(&str, &str)], uid: impl Fn(UidKind, &str) -> Result<Uid>) -> Result<Vec<TagPair>> {
    let pair =
        |(key, value): &(&str, &str)| Ok(TagPair { key: uid(UidKind::Tagk, key)?, value: uid(UidKind::Tagv, value)? });
    tags.iter().map(pair).collect()
}

/// The tables whose rows are those of series: one may have rollups and no points.
fn tables_of_series<'a>(tables: &'a Tables, config: &'a SchemaConfig) -> Vec<&'a TableName> {
    let rollups = rollup_tables(config).filter(|table| **table != tables.data);
    std::iter::once(&tables.data).chain(rollups).collect()
}

#[cfg(test)]
mod tests;
