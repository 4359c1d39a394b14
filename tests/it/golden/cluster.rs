//! The HBase that scenarios are replayed on, and their tables on it.
//!
//! Making and dropping a table takes HBase half a second each, so that tables are made once for each profile of the oracle, and
//! emptied before a scenario by tombstones over every row, as the recorder empties OpenTSDB's own.

use basalt_hbase::{HBaseOptions, HBaseStore};
use basalt_store::{Durability, Filter, ListOperator, MutationBatch, Scan, Store as _, TableName};

/// A cluster without tables but the replays'. Dropped, it has none.
pub(super) struct Cluster {
    pub(super) store: HBaseStore,
    pub(super) masters: String,
}

impl Cluster {
    pub(super) fn open(masters: String) -> Self {
        let options = HBaseOptions::of_masters(masters.split(',').map(str::to_owned));
        Self { store: HBaseStore::open(options).unwrap(), masters }
    }

    /// Empties the tables that begin with `prefix`; these settings, with such tables on this cluster.
    pub(super) fn emptied(&self, prefix: &str, settings: &str) -> String {
        for table in self.store.list_tables().unwrap() {
            if table.to_string().starts_with(prefix) {
                self.empty(&table);
            }
        }
        let names = ["data", "uid", "tree", "meta"].map(|kind| {
            let end = if kind == "data" { String::new() } else { format!("-{kind}") };
            format!("{kind}_table = '{prefix}tsdb{end}'\n")
        });
        // The tables of rollups are named in text of their own.
        let settings = settings.replace("\"tsdb", &format!("\"{prefix}tsdb"));
        let settings = settings.replace("[schema]\n", &format!("[schema]\n{}", names.concat()));
        format!("[hbase]\nmasters = '{}'\n{settings}", self.masters)
    }

    /// A tombstone over each family of each row, by the server's time: what is written from then on is not under it, as a
    /// daemon takes longer to start than the millisecond that it is of.
    fn empty(&self, table: &TableName) {
        let families = self.store.describe_table(table).unwrap().families;
        let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
        let mut scanner = self.store.scan(table, Scan::all().with_filter(keys_only)).unwrap();
        let mut batch = MutationBatch::new(Durability::Fsync);
        while let Some(rows) = scanner.next_wait() {
            for row in rows.unwrap().rows() {
                let mut row = batch.row(row.key()).unwrap();
                for family in &families {
                    row.delete_family(&family.name, None).unwrap();
                }
            }
        }
        let applied = self.store.apply(table, batch).wait().unwrap();
        assert!(applied.failed.is_empty(), "{table}: {:?}", applied.failed);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let tables = self.store.list_tables().unwrap_or_default();
        // Each waits for its own. A panic's way out: what stays is told by the next run.
        std::thread::scope(|scope| {
            for table in &tables {
                scope.spawn(|| drop(self.store.drop_table(table)));
            }
        });
    }
}
