//! The store with OpenTSDB's tables in it, opened for a server, for a tool, or for who copies tables.

use std::sync::Arc;

use basalt_schema::{Schema, SchemaConfig};
use basalt_store::Store;

use super::failure::{failed, no_tables};
use super::{OpenStore, data_times, series};
use crate::config::Config;
use crate::exit::Failure;
use crate::progress::{meanwhile, meanwhile_logged};

/// An open store with OpenTSDB's tables in it.
#[derive(Debug)]
pub(crate) struct OpenTables {
    /// The tables.
    pub(crate) schema: Arc<Schema>,
    /// The store below.
    pub(crate) store: OpenStore,
}

impl OpenTables {
    /// Opens store and tables for a server: its settings decide who wins of two values at one instant, and the data table says so
    /// from here on.
    ///
    /// *Cost*: as [`OpenTables::open`].
    ///
    /// # Errors
    ///
    /// As [`OpenTables::open`].
    pub(crate) fn serve(config: &Config) -> Result<Self, Failure> {
        let store = OpenStore::as_set(config)?;
        if store.cluster.is_some() {
            return Self::over(store, Schema::open)?.told_of_uids().preloaded(config);
        }
        // Before the index is read, which may take a while: rows are folded meanwhile.
        store.check_tables()?;
        data_times::keep(&*store.store, &store.schema).map_err(|cause| no_tables(&cause))?;
        let tables = meanwhile_logged("the series index is being read", || Self::over(store, Schema::open));
        tables?.told_of_uids().preloaded(config)
    }

    /// Opens store and tables for a tool that makes those that are absent.
    ///
    /// *Cost*: recovery of the log, then reading the series index's log and the keys of rows changed after it; of a cluster's
    /// tables no keys are read. Call it on a thread that may block.
    ///
    /// # Errors
    ///
    /// As [`OpenStore::open`]; exit code 3 also for settings other than those the tables were made with, and for a table of points without
    /// that of UIDs.
    pub(crate) fn open(config: &Config) -> Result<Self, Failure> {
        Self::open_for_copy(config)?.told_of_uids().preloaded(config)
    }

    /// As [`OpenTables::open`], for who copies tables into these: what lacks of their names before is to come, so that nothing is told of
    /// it until [`OpenTables::look_at_copy`].
    ///
    /// # Errors
    ///
    /// As [`OpenTables::open`].
    pub(crate) fn open_for_copy(config: &Config) -> Result<Self, Failure> {
        Self::for_tool(config, Schema::open)
    }

    /// As [`OpenTables::open`], for who only reads or mends: makes no table.
    ///
    /// # Errors
    ///
    /// As [`OpenTables::open`]; exit code 1 where a table of points or of UIDs is absent.
    pub(crate) fn open_existing(config: &Config) -> Result<Self, Failure> {
        Ok(Self::for_tool(config, Schema::open_existing)?.told_of_uids())
    }

    /// As [`OpenTables::open_existing`], for who works on names and rows and asks for no series.
    ///
    /// *Cost*: recovery of the log.
    ///
    /// # Errors
    ///
    /// As [`OpenTables::open_existing`].
    pub(crate) fn open_without_series(config: &Config) -> Result<Self, Failure> {
        Self::for_tool(config, Schema::open_without_series)
    }

    /// As [`OpenTables::open`], for who gives names their UIDs and no more: reads the series index only where UIDs may be lost.
    ///
    /// # Errors
    ///
    /// As [`OpenTables::open`].
    pub(crate) fn open_to_assign(config: &Config) -> Result<Self, Failure> {
        Ok(Self::for_tool(config, Schema::open_to_assign)?.told_of_uids())
    }

    /// Opens store and tables, and tells a person who waits for it what for.
    fn for_tool(
        config: &Config,
        tables: impl Fn(Arc<dyn Store>, SchemaConfig) -> basalt_schema::Result<Schema>,
    ) -> Result<Self, Failure> {
        let store = OpenStore::open(config)?;
        let what = if store.cluster.is_some() { "opening the tables" } else { "reading the series index" };
        meanwhile(what, || Self::over(store, tables))
    }

    /// Says in the log what the tables of UIDs have lost, as the open found it.
    fn told_of_uids(self) -> Self {
        series::tell_of_uids(self.schema.uids_found());
        self
    }

    /// Takes the log of the series index away before the first row is copied: where the copy does not come to its end, the next open
    /// looks which names did not come, also of tables that were served before.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub(crate) fn begin_copy(&self) -> Result<(), Failure> {
        self.schema.forget_checkpoints().map_err(|cause| failed("cannot empty the log of the series index", &cause))
    }

    /// Says in the log what the tables of UIDs lack that were copied into these, as the source did, and has no UID of a copied row given
    /// out; a cluster's other daemons look for themselves.
    ///
    /// # Errors
    ///
    /// What the store says.
    pub(crate) fn look_at_copy(&self) -> Result<(), Failure> {
        if self.store.engine.is_some() {
            let found = self.schema.find_uids_again();
            series::tell_of_uids(&found.map_err(|cause| failed("cannot look for the UIDs that were copied", &cause))?);
        }
        Ok(())
    }

    fn over(
        store: OpenStore,
        tables: impl Fn(Arc<dyn Store>, SchemaConfig) -> basalt_schema::Result<Schema>,
    ) -> Result<Self, Failure> {
        store.check_rows()?;
        let schema = Arc::new(tables(store.store(), store.schema.clone()).map_err(|cause| store.no_tables(&cause))?);
        // Of tables that count as shared none was read.
        if !schema.config().is_shared {
            series::tell(&schema);
        }
        Ok(Self { schema, store })
    }

    /// Reads names into memory, where the settings say so, for one who meets many points.
    fn preloaded(self, config: &Config) -> Result<Self, Failure> {
        if config.uid.preload {
            let read = self.schema.uids().preload(config.uid.preload_entries).map_err(|cause| no_tables(&cause))?;
            tracing::info!("read {read} names into memory");
        }
        Ok(self)
    }

    /// As [`OpenStore::close`], with the series index written down.
    ///
    /// # Errors
    ///
    /// As [`OpenStore::close`].
    pub(crate) fn close(&self) -> Result<(), Failure> {
        if self.store.engine.is_some() {
            series::keep(&self.schema);
        }
        self.store.close()
    }

    /// The same for who copied tables into these, and not all of them: the series index is not written down, so that the next open looks
    /// which names did not come.
    ///
    /// # Errors
    ///
    /// As [`OpenStore::close`].
    pub(crate) fn close_unfinished(&self) -> Result<(), Failure> {
        self.store.close()
    }
}
