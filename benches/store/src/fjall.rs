//! fjall: a cell is a key (row and qualifier joined) and a value.

use std::path::Path;

use anyhow::Result;
use fjall::config::{BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::cells::{self, Row};
use crate::subject::{BLOCK_BYTES, CACHE_BYTES, Durability, MEMTABLE_BYTES, Rows, Seen, Subject};

/// Bits of the bloom filter a key.
const BLOOM_BITS: f32 = 10.0;

pub(crate) struct Fjall {
    database: Database,
    cells: Keyspace,
}

impl Fjall {
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let database = Database::builder(dir)
            .cache_size(CACHE_BYTES)
            // One that flushes, one that compacts.
            .worker_threads(2)
            .open()?;
        let options = || {
            let bloom = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(BLOOM_BITS));
            KeyspaceCreateOptions::default()
                .max_memtable_size(MEMTABLE_BYTES)
                .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
                .data_block_compression_policy(CompressionPolicy::disabled())
                .index_block_compression_policy(CompressionPolicy::disabled())
                .filter_policy(FilterPolicy::all(bloom))
        };
        let cells = database.keyspace("bench", options)?;
        Ok(Self { database, cells })
    }

    fn walk(cells: impl Iterator<Item = fjall::Guard>) -> Result<Seen> {
        let mut seen = Seen::default();
        for cell in cells {
            let (key, value) = cell.into_inner()?;
            seen.cells += 1;
            seen.bytes += (key.len() + value.len()) as u64;
        }
        Ok(seen)
    }
}

impl Subject for Fjall {
    fn put(&mut self, rows: Rows, durability: Durability) -> Result<()> {
        let mode = match durability {
            Durability::Os => PersistMode::Buffer,
            Durability::Fsync => PersistMode::SyncData,
        };
        let mut batch = self.database.batch().durability(Some(mode));
        for number in rows.from..rows.to {
            let row = cells::row(rows.order, number);
            for column in 0..rows.columns {
                let key = cells::joined(&row, cells::qualifier(column));
                batch.insert(&self.cells, key, cells::value(number, column));
            }
        }
        Ok(batch.commit()?)
    }

    fn get(&mut self, row: &Row, qualifier: [u8; 4]) -> Result<Option<[u8; 8]>> {
        let found = self.cells.get(cells::joined(row, qualifier))?;
        Ok(found.map(|value| value[..].try_into()).transpose()?)
    }

    fn scan_all(&mut self) -> Result<Seen> {
        Self::walk(self.cells.iter())
    }

    fn scan_some(&mut self, from: &Row, rows: u64, columns: u64) -> Result<Seen> {
        let most = usize::try_from(rows * columns)?;
        Self::walk(self.cells.range(&from[..]..).take(most))
    }

    fn compact(&mut self) -> Result<()> {
        self.cells.rotate_memtable_and_wait()?;
        Ok(self.cells.major_compact()?)
    }

    fn is_data(&self, file: &Path) -> bool {
        file.components().any(|part| part.as_os_str() == "tables")
    }
}
