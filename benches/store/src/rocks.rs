//! RocksDB: a cell is a key (row and qualifier joined) and a value.

use std::path::Path;

use anyhow::Result;
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, ReadOptions, WriteBatch, WriteOptions};

use crate::cells::{self, Row};
use crate::subject::{BLOCK_BYTES, CACHE_BYTES, Durability, MEMTABLE_BYTES, MEMTABLES, Rows, Seen, Subject};

/// Bits of the bloom filter a key.
const BLOOM_BITS: f64 = 10.0;

pub(crate) struct Rocks {
    db: DB,
}

impl Rocks {
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES as usize)?);
        blocks.set_block_size(BLOCK_BYTES as usize);
        blocks.set_bloom_filter(BLOOM_BITS, false);
        blocks.set_format_version(5);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_compression_type(DBCompressionType::None);
        options.set_write_buffer_size(MEMTABLE_BYTES as usize);
        options.set_max_write_buffer_number(MEMTABLES as i32);
        // One that flushes, one that compacts.
        options.set_max_background_jobs(2);
        options.set_block_based_table_factory(&blocks);
        Ok(Self { db: DB::open(&options, dir)? })
    }

    /// Sums up to `cells` cells that an iterator gives from where it stands.
    fn walk(mut cells: rocksdb::DBRawIterator<'_>, most: u64) -> Result<Seen> {
        let mut seen = Seen::default();
        while let Some((key, value)) = cells.item() {
            seen.cells += 1;
            seen.bytes += (key.len() + value.len()) as u64;
            if seen.cells == most {
                break;
            }
            cells.next();
        }
        cells.status()?;
        Ok(seen)
    }
}

impl Subject for Rocks {
    fn put(&mut self, rows: Rows, durability: Durability) -> Result<()> {
        let mut batch = WriteBatch::default();
        for number in rows.from..rows.to {
            let row = cells::row(rows.order, number);
            for column in 0..rows.columns {
                batch.put(cells::joined(&row, cells::qualifier(column)), cells::value(number, column));
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Fsync);
        Ok(self.db.write_opt(batch, &options)?)
    }

    fn get(&mut self, row: &Row, qualifier: [u8; 4]) -> Result<Option<[u8; 8]>> {
        let found = self.db.get_pinned(cells::joined(row, qualifier))?;
        Ok(found.map(|value| value[..].try_into()).transpose()?)
    }

    fn scan_all(&mut self) -> Result<Seen> {
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        let mut cells = self.db.raw_iterator_opt(options);
        cells.seek_to_first();
        Self::walk(cells, u64::MAX)
    }

    fn scan_some(&mut self, from: &Row, rows: u64, columns: u64) -> Result<Seen> {
        let mut cells = self.db.raw_iterator();
        cells.seek(from);
        Self::walk(cells, rows * columns)
    }

    fn compact(&mut self) -> Result<()> {
        self.db.flush()?;
        // Also the lowest level, as the others do.
        let mut options = rocksdb::CompactOptions::default();
        options.set_bottommost_level_compaction(rocksdb::BottommostLevelCompaction::ForceOptimized);
        self.db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }

    fn is_data(&self, file: &Path) -> bool {
        file.extension().is_some_and(|extension| extension == "sst")
    }
}
