//! The laws of an SSTable's sections.

use crate::id::FileId;
use std::path::Path;

use bytes::Bytes;

use super::block::{Block, BlockCursor, Next};
use super::format::{FOOTER_BYTES, Footer, Frame, Layout, SectionKind, Version};
use super::index::IndexBlock;
use super::metadata::Metadata;
use super::place::Place;
use super::{codec, filter};

/// A block's image, in either layout.
pub(crate) fn block(bytes: &[u8]) {
    for layout in [Layout::V1, Layout::V2] {
        if let Ok(block) = Block::parse(Bytes::copy_from_slice(bytes), layout) {
            walk_and_search(&block, bytes.len());
        }
    }
}

fn walk_and_search(block: &Block, bytes_count: usize) {
    for target in [&b""[..], b"a", &[0xFF; 9]] {
        if let Ok(row) = block.find_row(target) {
            assert!(row <= block.rows_count(), "BUG: row {row} of {}", block.rows_count());
        }
    }
    for row in [0, block.rows_count() - 1] {
        let Ok(mut cursor) = BlockCursor::at_row(block.clone(), row, Vec::new()) else { continue };
        let mut cells = 0;
        while let Ok(Next::InRow | Next::NewRow) = cursor.next() {
            cells += 1;
            assert!(cells <= bytes_count, "BUG: more cells than bytes");
            let cell = cursor.cell(b"t");
            let fits = cell.value.len() <= bytes_count && cell.row.len() <= 2 * bytes_count;
            assert!(fits, "BUG: more than there is");
        }
    }
}

/// A leaf of a block index, or its root: what is read is in order and can be searched.
pub(crate) fn index(bytes: &[u8]) {
    let image = Bytes::copy_from_slice(bytes);
    let leaf = IndexBlock::decode_leaf(image.clone(), 64).ok();
    leaf.into_iter().chain(IndexBlock::decode_root(image).ok()).for_each(|index| search(&index));
}

fn search(index: &IndexBlock) {
    for target in [&b""[..], b"a", &[0xFF; 9]] {
        assert!(index.find(target, target) < index.len(), "BUG: a block beyond the last");
        assert!(index.find_reverse(target).is_none_or(|block| block < index.len()), "BUG: a block beyond the last");
    }
    assert!((1..index.len()).all(|block| index.last_row(block - 1) <= index.first_row(block)), "BUG: out of order");
}

/// A bloom filter's chunks.
pub(crate) fn bloom(bytes: &[u8]) {
    if let Ok(chunks) = filter::decode(&Bytes::copy_from_slice(bytes)) {
        assert!(chunks.len() <= bytes.len(), "BUG: more chunks than bytes");
    }
}

/// A file's metadata.
pub(crate) fn metadata(bytes: &[u8]) {
    drop(Metadata::decode(bytes));
}

/// A footer with its checksum mended, behind a file of any length.
pub(crate) fn footer(bytes: &[u8]) {
    let Some((parts, _)) = bytes.split_first_chunk::<FOOTER_BYTES>() else { return };
    let word = |at: usize| parts.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes);
    let offset = word(0) % (1 << 40);
    let place = Place { path: Path::new("fuzz"), file_id: FileId(1), offset };
    drop(Footer::decode(&place, parts, Version::NEWEST));
    let made = Footer {
        index_offset: word(8),
        bloom_offset: word(16),
        metadata_offset: word(24),
        file_bytes: offset + FOOTER_BYTES as u64,
    };
    if let Ok(read) = Footer::decode(&place, &made.encode(&place, Version::NEWEST), Version::NEWEST) {
        assert!(read.index_offset <= read.metadata_offset && read.metadata_offset <= offset, "BUG: out of order");
    }
}

/// A section: its frame with a checksum that holds, then its payload unpacked.
pub(crate) fn frame(bytes: &[u8]) {
    let place = Place { path: Path::new("fuzz"), file_id: FileId(1), offset: 64 };
    drop(Frame::open(&place, SectionKind::Data, bytes));
    let Some((head, payload)) = bytes.split_first_chunk::<4>() else { return };
    let [low, high, encoding, _] = *head;
    let raw_bytes = usize::from(u16::from_le_bytes([low, high]));
    let frame = Frame { encoding: encoding % 4, raw_bytes, payload };
    if let Ok(image) = codec::decode(&place, &frame, None) {
        assert_eq!(image.len(), raw_bytes, "BUG: not as long as it says");
    }
}
