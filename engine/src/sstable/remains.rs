//! What can be had of a file that does not open: its blocks, found by their frames.
//!
//! Each frame proves by itself, as its checksum binds file and offset. Where one does not, the next that does is looked for byte by byte.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_store::{CellRef, FamilyDescriptor};
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::id::FileId;
use crate::io::{File, IoOp};
use crate::loss::Loss;

use super::block::Block;
use super::codec::{self, find_codec};
use super::format::{self, FOOTER_BYTES, FRAME_HEAD_BYTES, Footer, Frame, HEADER_BYTES, Layout, SectionKind, Version};
use super::place::Place;
use super::proof::{prove_cells, tell_missing, walk_cells};
use super::writer::LastCell;
use super::{BlockCodec, BlockCodecs, Metadata, Sstable};

/// Frames are looked for in pieces of so many bytes: of a piece that the disk does not give none is found.
const PIECE_BYTES: u64 = 4096;

/// A damaged file.
#[derive(Debug)]
pub(crate) struct Remains {
    file: Arc<dyn File>,
    path: PathBuf,
    file_id: FileId,
    layout: Layout,
    codec: Option<Arc<dyn BlockCodec>>,
    family: Bytes,
    /// Of the data blocks that prove, in file order: where they begin, and how long they are.
    blocks: Vec<(u64, usize)>,
    /// What does not prove of the place where blocks lie.
    gaps: Vec<Loss>,
    /// What the file told of itself, where that proves.
    metadata: Option<Metadata>,
}

/// The frames of a file that prove.
#[derive(Debug, Default)]
struct Frames {
    found: Vec<(SectionKind, u64, usize)>,
    /// From where to where none does, and why.
    gaps: Vec<(u64, u64, Error)>,
}

impl Remains {
    /// Looks for the frames of a file that had `file_bytes`, of a family if one is known; `None` where neither header nor footer tells its
    /// version.
    ///
    /// Cost: the whole file is read.
    ///
    /// # Errors
    /// `UnknownCodec`; the file has no length.
    pub(crate) fn find(
        file: Arc<dyn File>,
        path: &Path,
        (file_id, file_bytes): (FileId, u64),
        family: Option<&FamilyDescriptor>,
        codecs: &BlockCodecs,
    ) -> Result<Option<Remains>> {
        let start = Place { path, file_id, offset: 0 };
        let Some(footer_at) = file_bytes.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
        let footer = read_footer(&*file, &start.at(footer_at));
        let header = start.read_array(&*file).and_then(|header| format::check_header(&start, &header));
        let Some(version) = header.ok().or(footer.map(|(version, _)| version)) else { return Ok(None) };
        let len = file.len().map_err(Error::io(IoOp::Len, path))?;
        let Frames { found, mut gaps } = Frames::find(&*file, &start.at(HEADER_BYTES as u64), footer_at.min(len));
        if len < footer_at {
            gaps.push((len, footer_at, start.corrupt("file length", file_bytes, len)));
        }
        // Where neither proves, nothing tells where blocks end.
        let is_behind = |kind: SectionKind| !matches!(kind, SectionKind::Data | SectionKind::IndexLeaf);
        let behind = || found.iter().find(|(kind, ..)| is_behind(*kind)).map(|(_, offset, _)| *offset);
        let blocks_end = footer.map(|(_, footer)| footer.index_offset).or_else(behind).unwrap_or(footer_at);
        let gaps = gaps
            .into_iter()
            .filter(|(from, ..)| *from < blocks_end)
            .map(|(from, to, damage)| Loss::of(damage, from, to.min(blocks_end) - from));
        let blocks = found.iter().filter(|(kind, offset, _)| *kind == SectionKind::Data && *offset < blocks_end);
        let metadata = found.iter().find(|(kind, ..)| *kind == SectionKind::Metadata);
        let metadata = metadata.and_then(|(_, offset, length)| read_metadata(&*file, &start.at(*offset), *length));
        let codec = match (&metadata, family) {
            (Some(metadata), _) => find_codec(path, &metadata.codec, codecs)?,
            (None, family) => family.and_then(|family| codecs.find(&family.block_encoding)).map(Arc::clone),
        };
        let family = family.map(|family| family.name.clone()).unwrap_or_default();
        let (blocks, gaps) = (blocks.map(|(_, offset, length)| (*offset, *length)).collect(), gaps.collect());
        let (path, layout) = (path.to_path_buf(), version.layout());
        Ok(Some(Remains { file, path, file_id, layout, codec, family, blocks, gaps, metadata }))
    }

    /// What lies in a range of an open file, where data blocks do and the index does not tell of them.
    pub(super) fn within(table: &Sstable, range: Range<u64>) -> Remains {
        let Frames { found, gaps } = Frames::find(&*table.file, &table.place(range.start), range.end);
        let data = found.into_iter().filter(|(kind, ..)| *kind == SectionKind::Data);
        let gaps = gaps.into_iter().map(|(from, to, damage)| Loss::of(damage, from, to - from));
        Remains {
            file: Arc::clone(&table.file),
            path: table.path.clone(),
            file_id: table.file_id,
            layout: table.version.layout(),
            codec: table.codec.clone(),
            family: table.metadata.family.clone(),
            blocks: data.map(|(_, offset, length)| (offset, length)).collect(),
            gaps: gaps.collect(),
            metadata: None,
        }
    }

    /// Hands over every cell of the blocks that prove whole, in cell order, as [`Sstable::salvage`] does; answers what is lost.
    ///
    /// Cost: the whole file is read, and decoded twice.
    ///
    /// # Errors
    /// `UnknownCodec` for a block of a later program; what `take` answers.
    pub(crate) fn salvage(mut self, take: &mut dyn FnMut(&CellRef<'_>) -> Result<()>) -> Result<Vec<Loss>> {
        let (mut last, mut taken, metadata) = (LastCell::default(), 0, self.metadata.take());
        let mut lost = self.take_cells((&mut last, &mut taken), take)?;
        if let Some(metadata) = metadata {
            // The index may be what does not prove.
            tell_missing(&mut lost, &metadata, taken);
        }
        Ok(lost)
    }

    /// The same of cells behind `last`, which are counted; what is lost has no count.
    pub(super) fn take_cells(
        mut self,
        (last, taken): (&mut LastCell, &mut u64),
        take: &mut dyn FnMut(&CellRef<'_>) -> Result<()>,
    ) -> Result<Vec<Loss>> {
        let mut lost = std::mem::take(&mut self.gaps);
        for (offset, length) in &self.blocks {
            let place = self.place(*offset);
            match self.prove(&place, *length, last) {
                Ok((block, its_last)) => {
                    *taken += u64::from(block.cells_count());
                    walk_cells(&place, block, &self.family, take)?;
                    *last = its_last;
                }
                Err(damage) if damage.is_unreadable() => lost.push(Loss::of(damage, *offset, *length as u64)),
                Err(error) => return Err(error),
            }
        }
        lost.sort_by_key(|loss| loss.offset);
        Ok(lost)
    }

    fn prove(&self, place: &Place<'_>, length: usize, last: &LastCell) -> Result<(Block, LastCell)> {
        let bytes = Bytes::from(place.read_vec(&*self.file, length)?);
        let frame = Frame::open(place, SectionKind::Data, &bytes)?;
        let image = codec::decode_shared(place, &frame, &bytes, self.codec.as_deref())?;
        let block = Block::parse(image, self.layout).map_err(|malformed| place.malformed(malformed))?;
        let last = prove_cells(place, &block, (&self.family, last), None)?;
        Ok((block, last))
    }

    fn place(&self, offset: u64) -> Place<'_> {
        Place { path: &self.path, file_id: self.file_id, offset }
    }
}

impl Frames {
    /// Those between two places of a file.
    fn find(file: &dyn File, start: &Place<'_>, end: u64) -> Frames {
        let mut frames = Frames::default();
        let mut offset = start.offset;
        while offset < end {
            let place = start.at(offset);
            let next = match prove_frame(file, &place, end) {
                Ok((kind, length)) => {
                    frames.found.push((kind, offset, length));
                    offset + length as u64
                }
                Err(damage) => {
                    let next = next_frame(file, &start.at(offset + 1), end);
                    frames.gaps.push((offset, next, damage));
                    next
                }
            };
            assert!(next > offset, "BUG: a frame without a byte");
            offset = next;
        }
        frames
    }
}

/// What a frame that proves holds, and its length.
fn prove_frame(file: &dyn File, place: &Place<'_>, end: u64) -> Result<(SectionKind, usize)> {
    let room = end - place.offset;
    let head = place.read_array::<FRAME_HEAD_BYTES>(file)?;
    let (kind, length) = Frame::measure(&head).ok_or_else(|| place.corrupt("section head", 1, 0))?;
    if length as u64 > room {
        return Err(place.corrupt("section length", room, length as u64));
    }
    Frame::open(place, kind, &place.read_vec(file, length)?)?;
    Ok((kind, length))
}

/// The first place from `from` on where a frame proves, else `end`.
fn next_frame(file: &dyn File, from: &Place<'_>, end: u64) -> u64 {
    let (mut read_to, mut window) = (from.offset, Vec::new());
    while read_to < end {
        let length = (PIECE_BYTES - read_to % PIECE_BYTES).min(end - read_to);
        match from.at(read_to).read_vec(file, usize::try_from(length).unwrap_or_default()) {
            Ok(piece) => window.extend_from_slice(&piece),
            Err(_) => window.clear(),
        }
        read_to += length;
        let window_at = read_to - window.len() as u64;
        let heads = window.array_windows::<FRAME_HEAD_BYTES>().zip(window_at..);
        let mut likely = heads.filter(|(head, _)| Frame::measure(head).is_some()).map(|(_, offset)| offset);
        if let Some(found) = likely.find(|offset| prove_frame(file, &from.at(*offset), end).is_ok()) {
            return found;
        }
        // A head may begin in one piece and end in the next.
        window.drain(..window.len().saturating_sub(FRAME_HEAD_BYTES - 1));
    }
    end
}

/// A footer that proves, with the version that it tells.
fn read_footer(file: &dyn File, place: &Place<'_>) -> Option<(Version, Footer)> {
    let bytes = place.read_array(file).ok()?;
    Version::ALL.into_iter().find_map(|version| Some((version, Footer::decode(place, &bytes, version).ok()?)))
}

fn read_metadata(file: &dyn File, place: &Place<'_>, length: usize) -> Option<Metadata> {
    let bytes = place.read_vec(file, length).ok()?;
    let frame = Frame::open(place, SectionKind::Metadata, &bytes).ok()?;
    Metadata::decode(&codec::decode(place, &frame, None).ok()?).ok()
}
