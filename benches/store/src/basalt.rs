//! Basalt's engine behind its `Store`.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use basalt_engine::{Engine, EngineOptions, Limits};
use basalt_store::{
    Columns, Compaction, Compression, ErrorKind, FamilyDescriptor, Get, MutationBatch, RowBatch, Scan, Store,
    TableDescriptor, TableName,
};
use bytes::Bytes;

use crate::cells::{self, Row};
use crate::subject::{BLOCK_BYTES, CACHE_BYTES, Durability, MEMTABLE_BYTES, MEMTABLES, Rows, Seen, Subject};

const FAMILY: &[u8] = b"f";

pub(crate) struct Basalt {
    engine: Arc<Engine>,
    table: TableName,
}

impl Basalt {
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let limits = Limits {
            memtable_bytes: MEMTABLE_BYTES,
            // Writers wait at twice this.
            memtables_bytes: MEMTABLE_BYTES * MEMTABLES / 2,
            block_cache_bytes: CACHE_BYTES,
            ..Limits::default()
        };
        let engine = Engine::open(EngineOptions { limits, ..EngineOptions::new(dir) })?;
        let table: TableName = "bench".parse()?;
        let mut family = FamilyDescriptor::new(FAMILY);
        family.block_bytes = BLOCK_BYTES;
        family.compression = Compression::None;
        engine.create_table(TableDescriptor::new(table.clone(), vec![family]), &[])?;
        Ok(Self { engine, table })
    }

    fn scan(&self, scan: Scan) -> Result<Seen> {
        let mut scanner = self.engine.scan(&self.table, scan)?;
        let mut seen = Seen::default();
        while let Some(batch) = scanner.next_wait() {
            seen.add(&batch?);
        }
        Ok(seen)
    }
}

impl Seen {
    fn add(&mut self, batch: &RowBatch) {
        for row in batch.rows() {
            for cell in row.cells() {
                self.cells += 1;
                self.bytes += (row.key().len() + cell.qualifier.len() + cell.value.len()) as u64;
            }
        }
    }
}

impl Subject for Basalt {
    fn put(&mut self, rows: Rows, durability: Durability) -> Result<()> {
        let level = match durability {
            Durability::Os => basalt_store::Durability::Os,
            Durability::Fsync => basalt_store::Durability::Fsync,
        };
        loop {
            let mut batch = MutationBatch::new(level);
            for number in rows.from..rows.to {
                let mut row = batch.row(&cells::row(rows.order, number))?;
                for column in 0..rows.columns {
                    row.put(FAMILY, &cells::qualifier(column), None, &cells::value(number, column))?;
                }
            }
            match self.engine.apply(&self.table, batch).wait() {
                Ok(applied) => {
                    ensure!(applied.failed.is_empty(), "rows were refused");
                    return Ok(());
                }
                // The memtables are full: the others make their writer wait within the call.
                Err(error) if error.kind() == ErrorKind::Throttled => thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn get(&mut self, row: &Row, qualifier: [u8; 4]) -> Result<Option<[u8; 8]>> {
        let columns = Columns::column(FAMILY, Bytes::copy_from_slice(&qualifier));
        let batch = self.engine.get(&self.table, Get::row(Bytes::copy_from_slice(row)).with_columns(columns)).wait()?;
        let Some(row) = batch.row(0) else { return Ok(None) };
        Ok(row.cells().next().map(|cell| cell.value.try_into()).transpose()?)
    }

    fn scan_all(&mut self) -> Result<Seen> {
        self.scan(Scan { cache_blocks: false, ..Scan::all() })
    }

    fn scan_some(&mut self, from: &Row, rows: u64, _columns: u64) -> Result<Seen> {
        let scan = Scan::range(Bytes::copy_from_slice(from), Bytes::new());
        self.scan(Scan { limit_rows: Some(rows), ..scan })
    }

    fn compact(&mut self) -> Result<()> {
        Ok(self.engine.compact(&self.table, Compaction::Major)?)
    }

    fn is_data(&self, file: &Path) -> bool {
        file.extension().is_some_and(|extension| extension == "sst")
    }
}
