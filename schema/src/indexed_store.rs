//! The store for those who write rows and know no series: the shell, above all.

use std::sync::Arc;

use basalt_store::{
    Append, Applied, CheckAndMutate, Increment, MutationBatch, Pending, Result, Store, TableDescriptor, TableName,
    TruncatedRegions, check_row_key,
};
use bytes::Bytes;

use crate::{Error, Schema, Tables};

/// The store below a schema, which tells the series index of every row of a series before it is written, and of all rows of a
/// snapshot that comes back. What the schema keeps in memory of other rows is read again after a change of these.
#[derive(Debug, Clone)]
pub struct IndexedStore(Arc<Schema>);

impl IndexedStore {
    /// The store of a schema.
    pub const fn new(schema: Arc<Schema>) -> Self {
        Self(schema)
    }

    fn store(&self) -> &dyn Store {
        &**self.0.store()
    }

    /// Tells the index of a table's rows; those whose keys are none of a series are nothing to it.
    fn index<'a>(&self, table: &TableName, keys: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        if !self.0.has_series(table) {
            return Ok(());
        }
        let mut series =
            keys.filter_map(|key| self.0.layout().decode(key).ok()).filter(|key| !key.is_global_annotations());
        series.try_for_each(|key| self.0.index().add(&key.tsuid()).map(drop).map_err(into_store))
    }

    fn indexed<T>(&self, table: &TableName, key: &[u8], change: impl FnOnce(&dyn Store) -> Pending<T>) -> Pending<T> {
        let _writing = self.0.index().writing();
        // A row that has no key is not written, and its series has no row.
        match check_row_key(key).and_then(|()| self.index(table, std::iter::once(key))) {
            Ok(()) => self.forgotten(table, change(self.store())),
            Err(error) => Pending::ready(Err(error)),
        }
    }

    /// The tables of whose rows something is kept in memory, beside the index.
    fn kept(&self) -> [&TableName; 3] {
        let Tables { uid, tree, meta, .. } = self.0.tables();
        [uid, tree, meta]
    }

    /// Forgets what is kept of a table once a change of its rows is there, which is waited for.
    fn forgotten<T>(&self, table: &TableName, change: Pending<T>) -> Pending<T> {
        if !self.kept().contains(&table) {
            return change;
        }
        let changed = change.wait();
        self.forget(table);
        Pending::ready(changed)
    }

    /// Forgets what is kept in memory of a table. Called after a change, also after one that failed: it may have been made all
    /// the same, or be made yet.
    fn forget(&self, table: &TableName) {
        let [uid, tree, meta] = self.kept();
        if table == uid {
            self.0.uids().drop_caches();
        }
        if table == tree {
            self.0.live_trees().forget();
        }
        if table == meta {
            // Series that are known get no meta object.
            self.0.uids().raise_generation();
        }
    }

    fn forgotten_table(&self, table: &TableName, change: impl FnOnce(&dyn Store) -> Result<()>) -> Result<()> {
        let changed = change(self.store());
        self.forget(table);
        changed
    }

    /// Rows may have come back by a snapshot, and with them the fold of its day, which may let another of two values at one instant win.
    fn restored(&self) -> Result<()> {
        self.0.tables().keep_fold(self.store(), self.0.config()).map_err(into_store)?;
        self.refresh();
        Ok(())
    }

    /// Rows may have come back. Should they not be readable now, as those of a disabled table, a later checkpoint reads them.
    fn refresh(&self) {
        self.0.checkpoint().unwrap_or_default();
    }
}

fn into_store(error: Error) -> basalt_store::Error {
    match error {
        Error::Store(error) => error,
        other => basalt_store::Error::backend(other.kind(), other),
    }
}

impl basalt_store::Forward for IndexedStore {
    fn inner(&self) -> &dyn Store {
        self.store()
    }

    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
        let _writing = self.0.index().writing();
        match self.index(table, batch.rows().map(|row| row.key())) {
            Ok(()) => self.forgotten(table, self.store().apply(table, batch)),
            Err(error) => Pending::ready(Err(error)),
        }
    }

    fn increment(&self, table: &TableName, increment: Increment) -> Pending<i64> {
        let key = increment.row.clone();
        self.indexed(table, &key, |store| store.increment(table, increment))
    }

    fn append(&self, table: &TableName, append: Append) -> Pending<Bytes> {
        let key = append.row.clone();
        self.indexed(table, &key, |store| store.append(table, append))
    }

    fn check_and_mutate(&self, table: &TableName, check: CheckAndMutate) -> Pending<bool> {
        let key = check.row.clone();
        self.indexed(table, &key, |store| store.check_and_mutate(table, check))
    }

    fn create_table(&self, table: TableDescriptor, splits: &[Bytes]) -> Result<()> {
        let name = table.name.clone();
        self.forgotten_table(&name, |store| store.create_table(table, splits))
    }

    fn alter_table(&self, table: TableDescriptor) -> Result<()> {
        let name = table.name.clone();
        self.forgotten_table(&name, |store| store.alter_table(table))
    }

    fn truncate_table(&self, table: &TableName, regions: TruncatedRegions) -> Result<()> {
        self.forgotten_table(table, |store| store.truncate_table(table, regions))
    }

    fn enable_table(&self, table: &TableName) -> Result<()> {
        self.forgotten_table(table, |store| store.enable_table(table))?;
        self.refresh();
        Ok(())
    }

    fn disable_table(&self, table: &TableName) -> Result<()> {
        // Whoever is to give a table other rows disables it first: by then no point is on its way under the UIDs of before.
        self.forgotten_table(table, |store| store.disable_table(table))
    }

    fn drop_table(&self, table: &TableName) -> Result<()> {
        self.forgotten_table(table, |store| store.drop_table(table))
    }

    fn restore_snapshot(&self, name: &str) -> Result<()> {
        // The snapshot knows its table, which may be any.
        let restored = self.store().restore_snapshot(name);
        self.kept().into_iter().for_each(|table| self.forget(table));
        restored?;
        self.restored()
    }

    fn clone_snapshot(&self, name: &str, table: &TableName) -> Result<()> {
        self.forgotten_table(table, |store| store.clone_snapshot(name, table))?;
        self.restored()
    }
}

#[cfg(test)]
mod tests;
