//! What a file knows about itself: counts and ranges, by which a reader leaves it out and a compaction plans.
//!
//! Layout: `docs/formats/sstable.md`, "Metadata".

use basalt_store::{BloomFilter, CellRef, SeqNo};
use bytes::Bytes;

use super::index::width_u16;
use super::input::{Input, Malformed, Parsed};
use super::span::TimeSpan;

/// Counts and ranges over all cells of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// The column family's name.
    pub(crate) family: Bytes,
    /// Name of the block codec that blocks may be written with; empty when none was set.
    pub(crate) codec: Box<str>,
    /// Which keys the bloom filter holds; `None` also when the filter was left out for its size.
    pub(crate) bloom: BloomFilter,
    /// Number of different rows.
    pub(crate) rows_count: u64,
    /// Number of cells, tombstones included; at least 1.
    pub(crate) cells_count: u64,
    /// Number of tombstones.
    pub(crate) tombstones_count: u64,
    /// Number of data blocks.
    pub(crate) blocks_count: u32,
    /// Bytes of row keys (each cell's), qualifiers and values, before any compression.
    pub(crate) cell_bytes: u64,
    /// Times of the cells; `max` is the newest cell's time, by which TTL drops a whole file.
    pub(crate) times: TimeSpan,
    /// The smallest sequence number.
    pub(crate) seq_min: SeqNo,
    /// The largest sequence number.
    pub(crate) seq_max: SeqNo,
    /// The first row key.
    pub(crate) first_row: Bytes,
    /// The last row key.
    pub(crate) last_row: Bytes,
}

/// The bloom filter kinds of the file; 0 is none of them.
const BLOOM_CODES: [(u8, BloomFilter); 3] =
    [(1, BloomFilter::None), (2, BloomFilter::Row), (3, BloomFilter::RowColumn)];

impl Metadata {
    /// Of no cell yet.
    pub(super) fn new(family: Bytes, codec: Box<str>) -> Self {
        Self {
            family,
            codec,
            bloom: BloomFilter::None,
            rows_count: 0,
            cells_count: 0,
            tombstones_count: 0,
            blocks_count: 0,
            cell_bytes: 0,
            times: TimeSpan::default(),
            seq_min: SeqNo(u64::MAX),
            seq_max: SeqNo(0),
            first_row: Bytes::new(),
            last_row: Bytes::new(),
        }
    }

    /// Counts a cell.
    pub(super) fn include(&mut self, cell: &CellRef<'_>, new_row: bool) {
        if self.cells_count == 0 {
            self.first_row = Bytes::copy_from_slice(cell.row);
        }
        self.rows_count += u64::from(new_row);
        self.cells_count += 1;
        self.tombstones_count += u64::from(cell.kind.is_tombstone());
        self.cell_bytes += (cell.row.len() + cell.qualifier.len() + cell.value.len()) as u64;
        self.times.include(cell);
        self.seq_min = self.seq_min.min(cell.seq);
        self.seq_max = self.seq_max.max(cell.seq);
    }

    /// The section's image.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let numbers = [
            self.rows_count,
            self.cells_count,
            self.tombstones_count,
            self.cell_bytes,
            self.times.min,
            self.times.max,
            self.seq_min.0,
            self.seq_max.0,
        ];
        for number in numbers {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.blocks_count.to_le_bytes());
        let code = BLOOM_CODES.iter().find(|(_, kind)| *kind == self.bloom).map_or(0, |(code, _)| *code);
        out.extend_from_slice(&[code, 0]);
        let parts: [&[u8]; 4] = [&self.family, self.codec.as_bytes(), &self.first_row, &self.last_row];
        for part in parts {
            out.extend_from_slice(&width_u16(part.len()).to_le_bytes());
        }
        for part in parts {
            out.extend_from_slice(part);
        }
        out
    }

    /// Reads an image.
    pub(super) fn decode(image: &[u8]) -> Parsed<Self> {
        let mut input = Input::new(image, 0);
        let mut metadata = Self::new(Bytes::new(), "".into());
        metadata.rows_count = input.u64()?;
        metadata.cells_count = input.u64()?;
        metadata.tombstones_count = input.u64()?;
        metadata.cell_bytes = input.u64()?;
        metadata.times = TimeSpan { min: input.u64()?, max: input.u64()? };
        metadata.seq_min = SeqNo(input.u64()?);
        metadata.seq_max = SeqNo(input.u64()?);
        metadata.blocks_count = input.u32()?;
        let refusal = input.malformed();
        let (bloom, reserved) = (input.u8()?, input.u8()?);
        let known = BLOOM_CODES.iter().find(|(code, _)| *code == bloom && reserved == 0);
        metadata.bloom = known.ok_or(refusal)?.1;
        let [family, codec, first_row, last_row] = [input.u16()?, input.u16()?, input.u16()?, input.u16()?];
        metadata.family = Bytes::copy_from_slice(input.bytes(family.into())?);
        let refusal = input.malformed();
        metadata.codec = std::str::from_utf8(input.bytes(codec.into())?).map_err(|_| refusal)?.into();
        metadata.first_row = Bytes::copy_from_slice(input.bytes(first_row.into())?);
        metadata.last_row = Bytes::copy_from_slice(input.bytes(last_row.into())?);
        if input.position() != image.len() || metadata.cells_count == 0 || metadata.first_row > metadata.last_row {
            return Err(Malformed { position: input.position() });
        }
        Ok(metadata)
    }
}
