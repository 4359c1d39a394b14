//! Reads every byte of a file and proves what the sections say of each other.

use std::cmp::Ordering;

use basalt_store::{CellRef, TimeRange};
use bytes::Bytes;

use crate::bloom::Bloom;
use crate::error::{Error, Result};

use super::Sstable;
use super::block::{Block, BlockCursor, Next};
use super::block_cache::Caching;
use super::codec;
use super::format::{Frame, SectionKind};
use super::input::Parsed;
use super::metadata::Metadata;
use super::packed::wrong_summary;
use super::place::Place;
use super::span::TimeSpan;

impl Sstable {
    /// Reads every data block and leaf of the index past the cache and proves: its checksum, its layout to the last byte, cell order within
    /// and between blocks, the index's keys and times, the metadata's counts and ranges, that the bloom filter
    /// knows every cell, and that what rows are told to be together is what their points are.
    ///
    /// Cost: the whole file is read and decoded, by columns too; memory for one block at a time, and for the bloom filter.
    ///
    /// # Errors
    /// `Corrupt` or `WrongSummary` for the first thing that does not fit; `Io`.
    pub(crate) fn verify(&self) -> Result<()> {
        self.verify_while(|_| Ok(()))
    }

    /// The same, given up where `check`, which is asked behind each block and gets its bytes, says so.
    ///
    /// # Errors
    /// As [`Sstable::verify`]; that of `check`.
    pub(crate) fn verify_while(&self, check: impl FnMut(usize) -> Result<()>) -> Result<()> {
        self.check_index()?;
        // Told last: damage of cells is the worse.
        let read = if self.bloom().is_some() { Ok(None) } else { self.read_filter() };
        self.prove_cells(self.bloom().or_else(|| read.as_ref().ok()?.as_ref()), check)?;
        read.map(drop)
    }

    /// The same, but for a bloom filter that memory has no room for.
    ///
    /// # Errors
    /// As [`Sstable::verify_while`].
    pub(crate) fn verify_but_filter(&self, check: impl FnMut(usize) -> Result<()>) -> Result<()> {
        self.check_index()?;
        self.prove_cells(self.bloom(), check)?;
        self.damage_of_filter().map_or(Ok(()), Err)
    }

    fn prove_cells(&self, bloom: Option<&Bloom>, mut check: impl FnMut(usize) -> Result<()>) -> Result<()> {
        let mut seen = Seen::new(&self.metadata);
        let blocks = self.blocks_of(Caching::Bypass, TimeRange::ALL);
        let mut next = blocks.first()?;
        while let Some(at) = next {
            let entry = at.entry();
            let place = self.place(entry.offset);
            let stored = self.read_stored(entry)?;
            let frame = Frame::open(&place, SectionKind::Data, &stored)?;
            let image = self.parse_block(entry, &frame, &stored)?;
            let walked =
                self.walk(&image, &place, bloom, &mut seen).map_err(|malformed| place.malformed(malformed))??;
            let keys_fit = walked.first_row == at.first_row() && seen.last_row == at.last_row();
            place.require("keys in the block index", 1, keys_fit.into())?;
            place.require("times in the block index", 1, u64::from(walked.times == entry.times))?;
            place.require("number of cells", entry.count.into(), walked.cells_count)?;
            self.check_summaries(&place, &frame)?;
            check(stored.len())?;
            next = blocks.after(&at)?;
        }
        self.check_metadata(seen)
    }

    fn check_summaries(&self, place: &Place<'_>, frame: &Frame<'_>) -> Result<()> {
        let Some(block) = codec::open_packed(frame, self.codec.as_deref()) else { return Ok(()) };
        wrong_summary(&*block).map_or(Ok(()), |row| {
            let (file, row) = (place.path.to_path_buf(), block.row_key(row).into());
            Err(Error::WrongSummary { file, offset: place.offset, row })
        })
    }

    fn walk(&self, block: &Block, place: &Place<'_>, bloom: Option<&Bloom>, seen: &mut Seen) -> Parsed<Result<Walked>> {
        let mut cursor = BlockCursor::at_row(block.clone(), 0, Vec::new())?;
        let mut walked = Walked { first_row: cursor.row().to_vec(), times: TimeSpan::default(), cells_count: 0 };
        loop {
            let cell = cursor.cell(&self.metadata.family);
            walked.times.include(&cell);
            walked.cells_count += 1;
            if !seen.push(&cell) {
                return Ok(Err(place.corrupt("cell order", 1, 0)));
            }
            if !bloom.is_none_or(|bloom| bloom.may_contain_column(cell.row, cell.qualifier)) {
                return Ok(Err(place.corrupt("bloom filter", 1, 0)));
            }
            if cursor.next()? == Next::End {
                return Ok(Ok(walked));
            }
        }
    }

    fn check_metadata(&self, mut seen: Seen) -> Result<()> {
        seen.counted.last_row = Bytes::from(seen.last_row);
        seen.counted.blocks_count = self.metadata.blocks_count;
        seen.counted.bloom = self.metadata.bloom;
        let place = self.place(self.footer.metadata_offset);
        place.require("counts and ranges in the metadata", 1, u64::from(seen.counted == self.metadata))
    }
}

/// One block, walked.
struct Walked {
    first_row: Vec<u8>,
    times: TimeSpan,
    cells_count: u64,
}

/// All blocks so far.
struct Seen {
    counted: Metadata,
    last_row: Vec<u8>,
    last_qualifier: Vec<u8>,
    last_rest: Option<Rest>,
}

/// The parts of a cell's address that need no memory of their own.
struct Rest {
    timestamp: basalt_store::Timestamp,
    kind: basalt_store::CellKind,
    seq: basalt_store::SeqNo,
}

impl Seen {
    fn new(metadata: &Metadata) -> Self {
        let counted = Metadata::new(metadata.family.clone(), metadata.codec.clone());
        Self { counted, last_row: Vec::new(), last_qualifier: Vec::new(), last_rest: None }
    }

    /// Counts a cell; false when it does not come after the one before.
    fn push(&mut self, cell: &CellRef<'_>) -> bool {
        let in_order = self.last_rest.as_ref().is_none_or(|rest| {
            let last = CellRef {
                row: &self.last_row,
                family: cell.family,
                qualifier: &self.last_qualifier,
                timestamp: rest.timestamp,
                kind: rest.kind,
                seq: rest.seq,
                value: &[],
            };
            last.order(cell) == Ordering::Less
        });
        let new_row = self.last_rest.is_none() || self.last_row != cell.row;
        self.counted.include(cell, new_row);
        cell.row.clone_into(&mut self.last_row);
        cell.qualifier.clone_into(&mut self.last_qualifier);
        self.last_rest = Some(Rest { timestamp: cell.timestamp, kind: cell.kind, seq: cell.seq });
        in_order
    }
}
