//! Decoded blocks, also those of indexes, that are kept in memory, up to a number of bytes; and room for the bloom filters of open files.
//!
//! Keyed by file id and block offset. A file id is never used twice, so an entry can be useless but never wrong: the
//! blocks of a file that is gone leave as others push them out.
//!
//! Invariant: what is evicted depends on the calls alone, not on chance: shards and hash are fixed, so that a
//! simulated history repeats.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use basalt_store::FamilyDescriptor;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use super::index::IndexBlock;
use super::packed::Loaded;
use crate::id::FileId;

/// Eight locks: enough for as many readers as cores, few enough that a small cache still holds a block a shard.
const SHARDS: usize = 8;
/// By which the number of entries is foretold; a wrong guess costs a rehash.
const BLOCK_BYTES_TYPICAL: u64 = 64 * 1024;

/// Of the bytes, in hundredths, what blocks of families that are `IN_MEMORY` have for themselves, as soon as there is
/// one (HBase: `hbase.lru.blockcache.memory.percentage`).
const IN_MEMORY_PERCENT: u64 = 25;

/// The largest part of their bytes that one filter may have. A small file's filter rules out more than one of a file that has most
/// rows, so that many small ones go before a large one.
const FILTER_PART: u64 = 8;

type Key = (FileId, u64);
type Blocks = Cache<Key, Cached, Weight, FixedHash, DefaultLifecycle<Key, Cached>>;

/// What is kept in memory of a file, until others need its place.
#[derive(Debug, Clone)]
pub(crate) enum Cached {
    Data(Loaded),
    Leaf(Arc<IndexBlock>),
}

impl Cached {
    /// Bytes of memory that it keeps.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Data(Loaded::Image(block)) => block.memory_bytes(),
            Self::Data(Loaded::Packed(columns)) => columns.memory_bytes(),
            Self::Leaf(leaf) => leaf.memory_bytes(),
        }
    }
}

/// Where a block that is read from a file goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Nowhere: a compaction's, an inspection's.
    Bypass,
    /// Nowhere, but leaves of the index among all: a scan's that asks for it, a family's without `BLOCKCACHE`.
    IndexOnly,
    /// Among all.
    Normal,
    /// Among those that only others of their kind push out.
    InMemory,
}

impl Caching {
    /// How a family asks for its blocks to be kept.
    pub(crate) fn of(family: &FamilyDescriptor) -> Caching {
        match (family.block_cache, family.in_memory) {
            (false, _) => Caching::IndexOnly,
            (true, false) => Caching::Normal,
            (true, true) => Caching::InMemory,
        }
    }

    /// Where a leaf of the index goes, without which each read of a row reads it anew.
    pub(crate) fn of_leaf(self) -> Caching {
        if self == Caching::IndexOnly { Caching::Normal } else { self }
    }
}

/// Keeps blocks up to a weight in bytes; least wanted ones go first (Clock-PRO, by `quick_cache`).
///
/// Each of its shards holds an eighth of the bytes; a block larger than that is not kept. A capacity of 0 keeps none.
#[derive(Debug)]
pub(crate) struct BlockCache {
    normal: Blocks,
    /// Made when it is needed; its bytes are then taken from the others.
    in_memory: OnceLock<Blocks>,
    capacity_bytes: u64,
    filter_bytes_max: u64,
    /// Relaxed: nothing is read by it.
    filter_bytes: AtomicU64,
    /// Relaxed, both: only shown. One addition a block, of which a reader decodes thousands of cells.
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
}

impl BlockCache {
    /// A cache of `capacity_bytes`, beside as many filters as `filter_bytes_max` has room for.
    pub(crate) fn new(capacity_bytes: u64, filter_bytes_max: u64) -> Self {
        let (filter_bytes, hits, misses) = Default::default();
        let (normal, in_memory) = (blocks(capacity_bytes), OnceLock::new());
        Self { normal, in_memory, capacity_bytes, filter_bytes_max, filter_bytes, hits, misses }
    }

    /// The block at an offset of a file.
    pub(crate) fn get(&self, file: FileId, offset: u64) -> Option<Cached> {
        let in_memory = || self.in_memory.get()?.get(&(file, offset));
        let found = self.normal.get(&(file, offset)).or_else(in_memory);
        let count = if found.is_some() { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Keeps a block, if it fits.
    pub(crate) fn insert(&self, file: FileId, offset: u64, block: Cached, caching: Caching) {
        match caching {
            Caching::Bypass | Caching::IndexOnly => {}
            Caching::Normal => self.normal.insert((file, offset), block),
            Caching::InMemory => self.in_memory().insert((file, offset), block),
        }
    }

    /// Room for a filter of so many bytes, given back when dropped; none where filters have all that they may.
    pub(crate) fn filter_room(self: &Arc<Self>, bytes: u64) -> Option<FilterRoom> {
        let fits = |held: u64| held.checked_add(bytes).filter(|held| *held <= self.filter_bytes_max);
        let is_small = bytes <= self.filter_bytes_max / FILTER_PART;
        let taken = is_small && self.filter_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        taken.then(|| FilterRoom { cache: Arc::clone(self), bytes })
    }

    fn in_memory(&self) -> &Blocks {
        self.in_memory.get_or_init(|| {
            let bytes = self.capacity_bytes / 100 * IN_MEMORY_PERCENT;
            self.normal.set_capacity(self.capacity_bytes - bytes);
            blocks(bytes)
        })
    }

    /// Bytes kept now.
    pub(crate) fn bytes(&self) -> u64 {
        self.normal.weight() + self.in_memory.get().map_or(0, Blocks::weight)
    }
}

/// What a filter takes of the bytes that all may have.
#[derive(Debug)]
pub(crate) struct FilterRoom {
    cache: Arc<BlockCache>,
    bytes: u64,
}

impl Drop for FilterRoom {
    fn drop(&mut self) {
        self.cache.filter_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn blocks(capacity_bytes: u64) -> Blocks {
    let items = usize::try_from(capacity_bytes / BLOCK_BYTES_TYPICAL).unwrap_or(usize::MAX).max(SHARDS);
    let options =
        OptionsBuilder::new().shards(SHARDS).estimated_items_capacity(items).weight_capacity(capacity_bytes).build();
    match options {
        Ok(options) => Cache::with_options(options, Weight, FixedHash, DefaultLifecycle::default()),
        // Only a missing option is refused, and all are given; a plain cache of the same bounds serves as well.
        Err(_) => Cache::with(items, capacity_bytes, Weight, FixedHash, DefaultLifecycle::default()),
    }
}

/// A block weighs the memory that it keeps.
#[derive(Debug, Clone)]
struct Weight;

impl Weighter<Key, Cached> for Weight {
    fn weight(&self, _key: &Key, block: &Cached) -> u64 {
        block.memory_bytes() as u64
    }
}

/// The same hash in every process: keys are our own numbers, nobody can aim them at one shard.
#[derive(Debug, Clone, Copy)]
struct FixedHash;

impl BuildHasher for FixedHash {
    type Hasher = FixedHasher;

    fn build_hasher(&self) -> FixedHasher {
        FixedHasher(0)
    }
}

/// Multiply and fold over the numbers of a key.
#[derive(Debug)]
struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = (product >> 64) as u64 ^ (product & 0xffff_ffff_ffff_ffff) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sstable::Block;

    fn block() -> Cached {
        Cached::Data(Loaded::Image(Block::of_one_row(b"row", 1000)))
    }

    #[test]
    fn it_never_keeps_more_than_its_bytes() {
        let cache = BlockCache::new(100_000, 0);
        for offset in 0..2000 {
            let caching = if offset % 3 == 0 { Caching::InMemory } else { Caching::Normal };
            cache.insert(FileId(1), offset, block(), caching);
            assert!(cache.bytes() <= 100_000);
        }
        assert!(cache.bytes() > 50_000, "{}", cache.bytes());
        assert!(cache.get(FileId(1), 1999).is_some() && cache.get(FileId(2), 1999).is_none());
        let counted = [&cache.hits, &cache.misses].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(counted, [1, 1]);
    }

    #[test]
    fn s_perf_5_blocks_in_memory_are_pushed_out_by_their_kind_only() {
        let cache = BlockCache::new(400_000, 0);
        for offset in 0..50 {
            cache.insert(FileId(1), offset, block(), Caching::InMemory);
        }
        for offset in 0..5000 {
            cache.insert(FileId(2), offset, block(), Caching::Normal);
            cache.insert(FileId(3), offset, block(), Caching::Bypass);
        }
        let kept = (0..50).filter(|offset| cache.get(FileId(1), *offset).is_some()).count();
        assert!(kept >= 48, "{kept} of 50");
        assert!((0..5000).all(|offset| cache.get(FileId(3), offset).is_none()));
    }

    #[test]
    fn filters_have_so_many_bytes_and_one_an_eighth_of_them() {
        let cache = Arc::new(BlockCache::new(0, 8000));
        assert!(cache.filter_room(1001).is_none());
        let mut held: Vec<_> = (0..8).map(|_| cache.filter_room(1000)).collect();
        assert!(held.iter().all(Option::is_some) && cache.filter_room(1).is_none());
        held.pop();
        assert!(cache.filter_room(1001).is_none() && cache.filter_room(1000).is_some());
        drop(held);
        assert_eq!(cache.filter_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_cache_of_no_bytes_keeps_nothing() {
        let cache = BlockCache::new(0, 0);
        for caching in [Caching::Normal, Caching::InMemory] {
            cache.insert(FileId(1), 0, block(), caching);
        }
        assert!(cache.get(FileId(1), 0).is_none() && cache.bytes() == 0);
    }
}
