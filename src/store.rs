//! Opens the store that the configuration names, and speaks for it: health, numbers, end.

mod columns;
mod data_times;
mod derived;
mod failure;
mod folder;
mod hbase;
#[cfg(test)]
mod overwrites;
pub(crate) mod recorded;
pub(crate) mod series;
mod settings;
mod tables;
pub(crate) mod uid_space;
mod upkeep;

use std::sync::Arc;

use basalt_engine::{Engine, EngineOptions, Health, Limits, Stats};
use basalt_hbase::HBaseStore;
use basalt_rewrite::HourFold;
use basalt_schema::{Schema, SchemaConfig, Tsb1};
use basalt_store::{ErrorKind, Fold, MemoryStore, Store, with_causes};
use tokio::sync::watch;

use self::columns::Columns;
use self::failure::no_tables;
pub(crate) use self::failure::{exit_of, exit_of_cause, failed, refused};
use self::folder::DiskSpace;
pub(crate) use self::folder::{check_no_folders, check_outside, check_target};
use self::settings::settings;
pub(crate) use self::tables::OpenTables;
pub(crate) use self::upkeep::{backed_up, compacted, compacted_unless_told, scrubbed};
use crate::clock::WallClock;
use crate::config::{self, Config, StoreKind};
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::room::Room;

/// An open store as it is, without OpenTSDB's tables.
#[derive(Debug)]
pub(crate) struct OpenStore {
    store: Arc<dyn Store>,
    /// The store, if it is the embedded one.
    engine: Option<Arc<Engine>>,
    /// The store, if it is a cluster.
    cluster: Option<Arc<HBaseStore>>,
    /// Why nothing can be acknowledged any more, once that is so.
    poisoned: watch::Receiver<Option<String>>,
    schema: SchemaConfig,
    disk: DiskSpace,
}

impl OpenStore {
    /// Opens the store for a tool, which goes by what the data table says of values at one instant, if it says it.
    ///
    /// *Cost*: recovery of the log; call it on a thread that may block.
    ///
    /// # Errors
    ///
    /// One line with exit code 4 (folder in use), 5 (damage), 74 (a failed sync), 75 (disk full), 3 (settings that cannot
    /// be), 1 for the rest.
    pub(crate) fn open(config: &Config) -> Result<Self, Failure> {
        let what = match config.store.kind {
            StoreKind::Hbase => "looking for the cluster".to_owned(),
            _ => format!("opening {}, whose log is read", config.store.data_dir.display()),
        };
        let mut store = meanwhile(&what, || Self::as_set(config))?;
        data_times::take(&*store.store, &mut store.schema)?;
        Ok(store)
    }

    /// Opens the store by its settings, and where they say nothing of salt and UID widths by what its folder records.
    fn as_set(config: &Config) -> Result<Self, Failure> {
        let mut schema = settings(config)?;
        let (raise, poisoned) = watch::channel(None);
        let mut cluster = None;
        let (store, engine): (Arc<dyn Store>, _) = match config.store.kind {
            StoreKind::Memory => (Arc::new(MemoryStore::new(Arc::new(WallClock))), None),
            StoreKind::Embedded => {
                folder::check_reserve(config)?;
                schema.fold = Some(HourFold::new(schema.data_times).name().into());
                schema.block_encoding = Tsb1::NAME.into();
                schema.block_bytes = Tsb1::BLOCK_BYTES;
                let mut options = folder_options(config);
                options.on_poison = Some(Arc::new(move |reason: &str| {
                    raise.send_replace(Some(reason.to_owned()));
                }));
                let engine = Engine::open(options).map_err(|cause| refused(&cause))?;
                recorded::take(&*engine, config, &mut schema)?;
                (Arc::clone(&engine) as Arc<dyn Store>, Some(engine))
            }
            StoreKind::Hbase => {
                let store = Arc::new(hbase::open(&config.hbase)?);
                cluster = Some(Arc::clone(&store));
                schema.is_shared = true;
                schema.joins = config.schema.fix_duplicates;
                (store, None)
            }
        };
        let disk = DiskSpace { dir: config.store.data_dir.clone(), bytes_max: limits(&config.store).room_bytes() };
        Ok(Self { store, engine, cluster, poisoned, schema, disk })
    }

    /// The embedded store itself, if that is the store.
    pub(crate) const fn engine(&self) -> Option<&Arc<Engine>> {
        self.engine.as_ref()
    }

    /// The store.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// The settings of OpenTSDB's tables.
    pub(crate) const fn schema_config(&self) -> &SchemaConfig {
        &self.schema
    }

    /// Checks that those of OpenTSDB's tables that the store has were made with these settings: with others, a flush
    /// or compaction would misread their rows. Makes none, asks for none, and reads no row: who only gives the shell's commands
    /// may mend what keeps rows from being read.
    ///
    /// # Errors
    ///
    /// As [`OpenTables::open`].
    pub(crate) fn check_tables(&self) -> Result<(), Failure> {
        Schema::check_tables(&*self.store, &self.schema).map_err(|cause| no_tables(&cause))
    }

    /// As [`no_tables`]; a new folder on a disk that is too small for a store is told how much that needs.
    fn no_tables(&self, cause: &basalt_schema::Error) -> Failure {
        match self.engine.as_ref().map(|engine| engine.health()) {
            Some(Health::DiskFull) if cause.kind() == ErrorKind::ReadOnly => {
                Failure::new(Exit::TryLater, format!("cannot open the tables: {}", self.disk.lack()))
            }
            _ => no_tables(cause),
        }
    }

    fn check_rows(&self) -> Result<(), Failure> {
        if self.schema.is_shared { hbase::check_rows(&*self.store, &self.schema) } else { Ok(()) }
    }

    /// Ends when nothing can be acknowledged any more, with the line to end the process by.
    pub(crate) async fn poisoned(&self) -> Failure {
        let mut poisoned = self.poisoned.clone();
        let reason = match poisoned.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // No engine, or one that was closed: it will never say so.
            Err(_) => std::future::pending().await,
        };
        Failure::new(Exit::Disk, format!("nothing more can be made durable, restart to recover: {reason}"))
    }

    /// Whether nothing can be acknowledged any more.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.borrow().is_some()
    }

    /// Whether there is room for points: in a cluster, and in a store without files, there always is.
    pub(crate) fn room(&self) -> Room {
        match self.engine.clone() {
            Some(engine) => Room::unless(move || engine.is_pressed()),
            None => Room::unless(|| false),
        }
    }

    /// Why writes are not taken now, if they are not.
    pub(crate) fn not_ready(&self) -> Option<String> {
        if let Some(cluster) = &self.cluster {
            return cluster.unreachable();
        }
        match self.engine.as_ref()?.health() {
            Health::Ok => None,
            Health::DiskFull => Some(self.disk.lack()),
            Health::NoDescriptors => Some(basalt_engine::Error::NoDescriptors.to_string()),
            Health::Poisoned { reason } => Some(reason.to_string()),
            _ => Some("the store takes no writes; the log says why".to_owned()),
        }
    }

    /// The state in one word, for those who count: `ok`, `disk_full`, `no_descriptors`, `poisoned` or `unreachable`.
    pub(crate) fn health(&self) -> &'static str {
        if self.cluster.as_ref().is_some_and(|cluster| cluster.unreachable().is_some()) {
            return "unreachable";
        }
        match self.engine.as_ref().map(|engine| engine.health()) {
            None | Some(Health::Ok) => "ok",
            Some(Health::DiskFull) => "disk_full",
            Some(Health::NoDescriptors) => "no_descriptors",
            // No other state is known yet, and none of them would be better.
            Some(_) => "poisoned",
        }
    }

    /// What was asked of the cluster, if that is the store.
    pub(crate) fn cluster_figures(&self) -> Option<basalt_hbase::Figures> {
        self.cluster.as_ref().map(|cluster| cluster.figures())
    }

    /// The embedded store's figures.
    pub(crate) fn stats(&self) -> Option<Stats> {
        self.engine.as_ref().map(|engine| engine.stats())
    }

    /// Makes everything durable and lets go of the folder; call it on a thread that may block.
    ///
    /// # Errors
    ///
    /// What could not be written; what was acknowledged is in the log all the same. On a full disk only if anything was written since
    /// the store was opened: else the log holds what it held then.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        let Some(engine) = &self.engine else { return Ok(()) };
        let Err(cause) = engine.close() else { return Ok(()) };
        if cause.is_disk_full() && engine.stats().wal_records == 0 {
            tracing::warn!("what was read from the log stays there: {}", with_causes(&cause));
            return Ok(());
        }
        let failure = refused(&cause);
        Err(Failure::new(failure.exit, format!("cannot close the store cleanly: {failure}")))
    }
}

/// What the data folder of a configuration is opened with.
pub(crate) fn folder_options(config: &Config) -> EngineOptions {
    let mut options = EngineOptions::new(&config.store.data_dir);
    options.clock = Arc::new(WallClock);
    options.limits = limits(&config.store);
    options.codecs.register(Arc::new(Columns));
    // By name: which one a table wants is the table's to say.
    options.folds = HourFold::ALL.map(|fold| Arc::new(fold) as Arc<dyn Fold>).into();
    options
}

/// The engine's bounds: those that are settings, and its own defaults for the rest.
fn limits(config: &config::Store) -> Limits {
    Limits {
        memtable_bytes: config.memtable_bytes,
        memtables_bytes: config.memtables_bytes,
        wal_segment_bytes: config.wal_segment_bytes,
        wal_bytes_max: config.wal_bytes_max,
        block_cache_bytes: config.block_cache_bytes,
        bloom_filters_bytes: config.bloom_filters_bytes,
        reserve_bytes: config.reserve_bytes,
        scrub_interval: config.scrub_interval_ms,
        ..Limits::default()
    }
}

/// Checks the settings of the tables without the tables: on a store that is empty and only in memory.
///
/// # Errors
///
/// Exit code 3: what [`OpenTables::open`] would refuse whatever the store holds.
pub(crate) fn check(config: &Config) -> Result<(), Failure> {
    let schema = settings(config)?;
    folder::check_reserve(config)?;
    if config.store.kind == StoreKind::Hbase {
        hbase::check(&config.hbase)?;
    }
    let empty = Arc::new(MemoryStore::new(Arc::new(WallClock)));
    derived::make_namespaces(&*empty, &schema).map_err(|cause| no_tables(&cause.into()))?;
    Schema::open(empty, schema).map(drop).map_err(|cause| no_tables(&cause))
}

/// What a person should know of the tables' settings, one line each; none of settings that [`check`] refuses.
///
/// *Cost*: reads the file that `rollups.config` names.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    derived::rollups(config).ok().flatten().map_or_else(Vec::new, |rollups| derived::warnings(&rollups))
}

#[cfg(test)]
mod tests;
