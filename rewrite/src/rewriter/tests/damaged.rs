//! A store one row of which cannot be read: a get of it and of others fails as a whole.

use std::sync::Mutex;

use basalt_store::{Get, MemoryStore, Pending, RowBatch, Store, TableName};

#[derive(Debug)]
pub(super) struct DamagedStore {
    pub(super) store: MemoryStore,
    /// The row, and why; guards nothing else.
    pub(super) row: Mutex<Option<(Vec<u8>, basalt_store::Error)>>,
}

impl basalt_store::Forward for DamagedStore {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch> {
        match &*self.row.lock().unwrap() {
            Some((row, error)) if get.rows.iter().any(|asked| asked == row) => Pending::ready(Err(error.clone())),
            _ => self.store.get(table, get),
        }
    }
}
