//! Bloom filters of an SSTable: which rows, and which columns, are certainly not in the file.
//!
//! A filter is of blocks of 256 bits; a key sets one bit in each of a block's eight words, so a look-up touches one
//! cache line (split block bloom filter: Putze, Sanders, Singler 2007; Apache Parquet uses the same shape). Hash and
//! layout are part of the file format: `docs/formats/sstable.md`, "Bloom filter".
//!
//! The section is cut into chunks of [`CHUNK_KEYS`] keys, each with the rows it covers, so that the writer's memory
//! does not grow with the file and the rate of false positives does not depend on its size.
//!
//! Invariants: no false negative; a family tombstone of a row counts for each of its columns.

use std::ops::RangeInclusive;

use basalt_store::{BloomFilter, CellKind, CellRef};
use bytes::Bytes;

/// Keys of one chunk: 8 MiB of hashes while it is collected.
const CHUNK_KEYS: usize = 1 << 20;
/// Bits a key, rounded up to whole blocks; measured false positives: 0.6 %.
const BITS_PER_KEY: usize = 12;
const BLOCK_WORDS: usize = 8;
const WORD_BYTES: usize = 4;
const BLOCK_BYTES: usize = BLOCK_WORDS * WORD_BYTES;
/// One odd multiplier a word of the block.
const WORD_SALTS: [u32; BLOCK_WORDS] =
    [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1, 0xd3a2_646d, 0xfd70_46c5, 0xb55a_4f09];

const HASH_SEED: u64 = 0x6261_7361_6c74_0001;
const HASH_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const HASH_LENGTH: u64 = 0xd6e8_feb8_6659_fd93;
const HASH_END: u64 = 0xa076_1d64_78bd_642f;
/// Told apart from every column: the hash of a row's family tombstones.
const HASH_FAMILY_TOMBSTONE: u64 = 0xe703_7ed1_a0b4_28db;

/// Hash of a row key.
pub(crate) fn hash_row(row: &[u8]) -> u64 {
    hash(HASH_SEED, row)
}

/// Hash of a column of the row that hashes to `row_hash`.
pub(crate) fn hash_column(row_hash: u64, qualifier: &[u8]) -> u64 {
    hash(row_hash, qualifier)
}

fn hash_family_tombstone(row_hash: u64) -> u64 {
    multiply_fold(row_hash ^ HASH_FAMILY_TOMBSTONE, HASH_END)
}

/// Multiply and fold, eight bytes a step, little-endian, the last step padded with zeros; the length goes in first.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = seed ^ (bytes.len() as u64).wrapping_mul(HASH_LENGTH);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        state = multiply_fold(state ^ u64::from_le_bytes(*word), HASH_STEP);
    }
    let padded = tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    multiply_fold(multiply_fold(state ^ padded, HASH_STEP) ^ HASH_LENGTH, HASH_END)
}

fn multiply_fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ (product & 0xffff_ffff_ffff_ffff) as u64
}

/// Which block of a filter of `blocks` a hash falls in, and the bit of each word there.
fn place(hash: u64, blocks: usize) -> (usize, [u32; BLOCK_WORDS]) {
    let scaled = (u128::from(hash) * blocks as u128) >> 64;
    let low = (hash & 0xffff_ffff) as u32;
    (scaled as u64 as usize, WORD_SALTS.map(|salt| 1 << (low.wrapping_mul(salt) >> 27)))
}

/// Collects the filter of a file whose cells come in cell order.
#[derive(Debug)]
pub(crate) struct BloomBuilder {
    kind: BloomFilter,
    row_hash: u64,
    hashes: Vec<u64>,
    chunk_first_row: Vec<u8>,
    last_row: Vec<u8>,
    chunks: Vec<Chunk>,
    /// What the filter may have.
    bytes_max: usize,
}

/// The filter of some neighbouring rows. A row of very many columns may lie in several chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// First and last row that it covers.
    pub(crate) rows: RangeInclusive<Bytes>,
    /// Blocks of eight little-endian 32-bit words.
    pub(crate) bits: Bytes,
}

impl BloomBuilder {
    /// An empty filter; of kind `None` it stays so, and one that needs more than `bytes_max` is given up.
    pub(crate) fn new(kind: BloomFilter, bytes_max: usize) -> Self {
        Self {
            kind,
            row_hash: 0,
            hashes: Vec::new(),
            chunk_first_row: Vec::new(),
            last_row: Vec::new(),
            chunks: Vec::new(),
            bytes_max,
        }
    }

    /// Adds a cell; `new_row` and `new_column` tell whether the cell before it was of another one.
    pub(crate) fn push(&mut self, cell: &CellRef<'_>, new_row: bool, new_column: bool) {
        if self.kind == BloomFilter::None {
            return;
        }
        if new_row {
            self.row_hash = hash_row(cell.row);
            self.last_row.clear();
            self.last_row.extend_from_slice(cell.row);
            self.add(self.row_hash);
        }
        if self.kind == BloomFilter::RowColumn {
            if new_row || new_column {
                self.add(hash_column(self.row_hash, cell.qualifier));
            }
            if matches!(cell.kind, CellKind::DeleteFamily | CellKind::DeleteFamilyVersion) {
                self.add(hash_family_tombstone(self.row_hash));
            }
        }
    }

    /// The filter; `None` when nothing was to be collected, or too much.
    pub(crate) fn finish(mut self) -> Option<Bloom> {
        self.seal_chunk();
        (self.kind != BloomFilter::None && !self.chunks.is_empty())
            .then_some(Bloom { kind: self.kind, chunks: self.chunks })
    }

    fn add(&mut self, hash: u64) {
        if self.hashes.len() == CHUNK_KEYS {
            self.seal_chunk();
        }
        if self.hashes.is_empty() {
            self.chunk_first_row.clone_from(&self.last_row);
            // The row's hash is asked first of every chunk that may hold one of its columns.
            if hash != self.row_hash {
                self.hashes.push(self.row_hash);
            }
        }
        // Versions of a tombstone repeat its key.
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    fn seal_chunk(&mut self) {
        if self.hashes.is_empty() {
            return;
        }
        let blocks = (self.hashes.len() * BITS_PER_KEY).div_ceil(BLOCK_BYTES * 8);
        let mut words = vec![[0_u32; BLOCK_WORDS]; blocks];
        for hash in self.hashes.drain(..) {
            let (block, bits) = place(hash, blocks);
            for (word, bit) in words.get_mut(block).into_iter().flatten().zip(bits) {
                *word |= bit;
            }
        }
        let bits: Vec<u8> = words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let rows = Bytes::copy_from_slice(&self.chunk_first_row)..=Bytes::copy_from_slice(&self.last_row);
        self.chunks.push(Chunk { rows, bits: bits.into() });
        if self.chunks.iter().map(|chunk| chunk.bits.len()).sum::<usize>() > self.bytes_max {
            self.kind = BloomFilter::None;
            self.chunks.clear();
        }
    }
}

/// The bloom filter of a file, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bloom {
    kind: BloomFilter,
    chunks: Vec<Chunk>,
}

impl Bloom {
    /// Puts a filter together from its chunks, which are in row order.
    ///
    /// `None` when the bits of one are not whole blocks, at least one, or the rows are out of order.
    pub(crate) fn from_chunks(kind: BloomFilter, chunks: Vec<Chunk>) -> Option<Self> {
        let whole = |chunk: &Chunk| {
            !chunk.bits.is_empty() && chunk.bits.len().is_multiple_of(BLOCK_BYTES) && !chunk.rows.is_empty()
        };
        let sorted = chunks.is_sorted_by(|a, b| a.rows.end() <= b.rows.start());
        (kind != BloomFilter::None && sorted && chunks.iter().all(whole)).then_some(Self { kind, chunks })
    }

    /// Its chunks, in row order.
    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Bytes of memory that it keeps.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bits.len() + size_of::<Chunk>()).sum()
    }

    /// False when the file certainly has no cell of the row.
    pub(crate) fn may_contain_row(&self, row: &[u8]) -> bool {
        let hash = hash_row(row);
        self.chunks_of(row).any(|chunk| chunk.may_contain(hash))
    }

    /// False when the file certainly has neither a cell of the column nor a tombstone over its whole family. A
    /// filter of rows answers for the row.
    pub(crate) fn may_contain_column(&self, row: &[u8], qualifier: &[u8]) -> bool {
        let row_hash = hash_row(row);
        if self.kind == BloomFilter::Row {
            return self.chunks_of(row).any(|chunk| chunk.may_contain(row_hash));
        }
        self.chunks_of(row).any(|chunk| {
            chunk.may_contain(row_hash)
                && (chunk.may_contain(hash_column(row_hash, qualifier))
                    || chunk.may_contain(hash_family_tombstone(row_hash)))
        })
    }

    fn chunks_of<'a>(&'a self, row: &'a [u8]) -> impl Iterator<Item = &'a Chunk> {
        let first = self.chunks.partition_point(|chunk| chunk.rows.end()[..] < *row);
        self.chunks.iter().skip(first).take_while(move |chunk| chunk.rows.start()[..] <= *row)
    }
}

impl Chunk {
    fn may_contain(&self, hash: u64) -> bool {
        let (block, bits) = place(hash, self.bits.len() / BLOCK_BYTES);
        let start = block * BLOCK_BYTES;
        let words = self.bits.get(start..start + BLOCK_BYTES).unwrap_or_default();
        let (words, _) = words.as_chunks::<WORD_BYTES>();
        words.iter().zip(bits).all(|(word, bit)| u32::from_le_bytes(*word) & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use basalt_store::{SeqNo, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn cell<'a>(row: &'a [u8], qualifier: &'a [u8], kind: CellKind) -> CellRef<'a> {
        CellRef { row, family: b"t", qualifier, timestamp: Timestamp(1), kind, seq: SeqNo(1), value: b"" }
    }

    fn filter_of_rows(rows: impl Iterator<Item = u32>) -> Bloom {
        let mut builder = BloomBuilder::new(BloomFilter::Row, usize::MAX);
        for row in rows {
            builder.push(&cell(&row.to_be_bytes(), b"q", CellKind::Put), true, true);
        }
        builder.finish().unwrap()
    }

    /// S-PERF-1: under 1 % of absent rows pass, and every present one does.
    #[test]
    fn s_perf_1_false_positives_stay_under_one_in_a_hundred() {
        let filter = filter_of_rows((0..100_000).map(|row| row * 2));
        assert!((0..100_000_u32).all(|row| filter.may_contain_row(&(row * 2).to_be_bytes())));
        let passed = (0..100_000_u32).filter(|row| filter.may_contain_row(&(row * 2 + 1).to_be_bytes())).count();
        assert!((100..1000).contains(&passed), "{passed} of 100,000");
        assert!(filter.memory_bytes() < 200_000);
    }

    #[test]
    fn s_perf_1_a_file_of_many_chunks_is_as_exact() {
        let filter = filter_of_rows((0..1_500_000).map(|row| row * 2));
        assert_eq!(filter.chunks().len(), 2);
        assert!((0..1_500_000_u32).step_by(97).all(|row| filter.may_contain_row(&(row * 2).to_be_bytes())));
        let passed =
            (0..1_500_000_u32).step_by(15).filter(|row| filter.may_contain_row(&(row * 2 + 1).to_be_bytes())).count();
        assert!(passed < 1000, "{passed} of 100,000");
    }

    #[test]
    fn s_perf_1_a_filter_that_a_file_has_no_room_for_is_not_collected() {
        // At its end, and before it.
        for rows in [1_500_000_u32, 2_100_000] {
            let mut builder = BloomBuilder::new(BloomFilter::Row, 2_000_000);
            (0..rows).for_each(|row| builder.push(&cell(&row.to_be_bytes(), b"q", CellKind::Put), true, true));
            assert_eq!(builder.finish(), None, "{rows}");
        }
    }

    /// S-DEL-4: a get of one column must not pass a file by that deletes its family.
    #[test]
    fn s_del_4_a_family_tombstone_counts_for_every_column() {
        let mut builder = BloomBuilder::new(BloomFilter::RowColumn, usize::MAX);
        builder.push(&cell(b"deleted", b"", CellKind::DeleteFamily), true, true);
        builder.push(&cell(b"kept", b"q", CellKind::Put), true, true);
        let filter = builder.finish().unwrap();
        assert!((0..1000_u32).all(|column| filter.may_contain_column(b"deleted", &column.to_be_bytes())));
        assert!(filter.may_contain_row(b"kept") && filter.may_contain_column(b"kept", b"q"));
        let passed = (0..1000_u32).filter(|column| filter.may_contain_column(b"kept", &column.to_be_bytes())).count();
        assert!(passed < 100, "{passed} of 1,000");
    }

    #[test]
    fn a_row_over_several_chunks_is_found_in_each() {
        let mut builder = BloomBuilder::new(BloomFilter::RowColumn, usize::MAX);
        for column in 0..1_200_000_u32 {
            builder.push(&cell(b"wide", &column.to_be_bytes(), CellKind::Put), column == 0, true);
        }
        let filter = builder.finish().unwrap();
        assert_eq!(filter.chunks().len(), 2);
        assert!((0..1_200_000_u32).step_by(101).all(|c| filter.may_contain_column(b"wide", &c.to_be_bytes())));
    }

    /// The hash is part of the format: it may never change.
    #[test]
    fn the_hash_is_what_files_were_written_with() {
        let check = |row: &[u8], hash: u64| assert_eq!(hash_row(row), hash, "{:#x} of {row:?}", hash_row(row));
        check(b"", 0x7154_5fae_72ba_0282);
        check(b"a", 0x471f_fa3b_1d62_ff4b);
        check(b"12345678", 0xbe74_6faf_ab0f_3dac);
        check(b"a row key of a data table", 0x0fc3_ccb0_b726_b70e);
        assert_eq!(hash_column(hash_row(b"row"), b"qualifier"), 0x7e3a_d90a_2759_3a99);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn nothing_that_was_added_is_denied(
            mut keys in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..20), any::<u8>()), 1..300),
        ) {
            keys.sort();
            keys.dedup();
            let mut builder = BloomBuilder::new(BloomFilter::RowColumn, usize::MAX);
            let mut last: &[u8] = b"";
            for (row, qualifier) in &keys {
                builder.push(&cell(row, &[*qualifier], CellKind::Put), last != row, true);
                last = row;
            }
            let filter = builder.finish().unwrap();
            for (row, qualifier) in &keys {
                prop_assert!(filter.may_contain_row(row) && filter.may_contain_column(row, &[*qualifier]));
            }
        }
    }
}
