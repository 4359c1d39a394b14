//! Memory that only grows: row keys, and those bytes and stamps of cells that do not fit into their entries. Keeping one of
//! them needs no allocation of its own.

use basalt_store::{SeqNo, Timestamp};

use super::slab::width;
use super::stamps::{Stamped, Stamps};

/// Size of a chunk; a larger piece of bytes gets a chunk of its own.
const CHUNK_BYTES: usize = 256 * 1024;

/// Where some bytes begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    chunk: u32,
    offset: u32,
}

impl Place {
    /// The place as bytes without alignment, for types of which there are many.
    pub(super) fn packed(self) -> [u8; 8] {
        (u64::from(self.chunk) << 32 | u64::from(self.offset)).to_le_bytes()
    }

    pub(super) fn unpacked(bytes: [u8; 8]) -> Place {
        let word = u64::from_le_bytes(bytes);
        let half = |word| u32::try_from(word).unwrap_or(u32::MAX);
        Place { chunk: half(word >> 32), offset: half(word & u64::from(u32::MAX)) }
    }
}

/// The bytes and stamps that the rows and cells of one family of a memtable refer to.
#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
    stamps: Stamps,
}

impl Arena {
    /// Keeps some pieces of bytes, one right behind the other; answers where the first begins.
    pub(super) fn keep(&mut self, pieces: &[&[u8]]) -> Place {
        let needed = pieces.iter().map(|piece| piece.len()).sum();
        if self.chunks.last().is_none_or(|last| last.capacity() - last.len() < needed) {
            self.chunks.push(Vec::with_capacity(needed.max(CHUNK_BYTES)));
        }
        let chunk = self.chunks.len() - 1;
        let mut offset = 0;
        if let Some(last) = self.chunks.last_mut() {
            offset = last.len();
            for piece in pieces {
                last.extend_from_slice(piece);
            }
        }
        Place { chunk: width(chunk), offset: width(offset) }
    }

    /// `len` bytes, from `skip` bytes behind a place on.
    pub(super) fn bytes(&self, place: Place, skip: u32, len: u32) -> &[u8] {
        let start = place.offset as usize + skip as usize;
        self.chunks
            .get(place.chunk as usize)
            .and_then(|chunk| chunk.get(start..start + len as usize))
            .unwrap_or_default()
    }

    /// Keeps a cell's time and sequence number.
    #[inline]
    pub(super) fn stamp(&mut self, timestamp: Timestamp, sequence: SeqNo) -> Stamped {
        self.stamps.keep(timestamp, sequence)
    }

    /// A cell's time and sequence number.
    #[inline]
    pub(super) fn stamped(&self, stamped: Stamped) -> (Timestamp, SeqNo) {
        self.stamps.get(stamped)
    }

    /// How many stamps it keeps.
    pub(super) fn stamps_count(&self) -> u32 {
        self.stamps.len()
    }
}
