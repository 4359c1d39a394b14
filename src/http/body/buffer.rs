//! A body while it is read: a vector while it is small, then a mapping of its own.
//!
//! An allocator keeps what large buffers were given for those to come, in each of its arenas: with glibc's the process held
//! 120 MB more after some bodies of the full size than before them. A mapping is given back whole, and it grows
//! without being copied, since only the pages that are written cost memory. Those are a share of what all bodies may hold: the mapping
//! owns it, so it is given back with the memory, after whoever reads the body is done with it.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use memmap2::MmapMut;

use crate::bodies::{BodyPool, Share};

/// Bytes that refuse to grow over their limit, or over what all bodies may hold.
#[derive(Debug)]
pub(super) struct Buffer {
    limit: usize,
    pool: Arc<BodyPool>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Heap(Vec<u8>),
    Mapped(Mapped),
}

/// A mapping of which the first bytes are written.
#[derive(Debug)]
struct Mapped {
    map: MmapMut,
    length: usize,
    /// Behind `map`, so that it is given back after the memory.
    share: Share,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.map.get(..self.length).unwrap_or_default()
    }
}

impl Mapped {
    /// A mapping of `limit` bytes, of which the first are `bytes` and nothing else is touched yet.
    fn new(limit: usize, bytes: &[u8], share: Share) -> io::Result<Self> {
        let mut map = MmapMut::map_anon(limit)?;
        let length = bytes.len();
        assert!(length <= limit, "BUG: {length} bytes passed the limit of {limit}");
        map.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Ok(Self { map, length, share })
    }

    fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        let (length, limit) = (self.length + piece.len(), self.map.len());
        let room = self.map.get_mut(self.length..length).ok_or(io::ErrorKind::FileTooLarge)?;
        self.share.cover(length, limit)?;
        room.copy_from_slice(piece);
        self.length = length;
        Ok(())
    }
}

impl Buffer {
    /// An empty one of at most `limit` bytes, with room for those that are announced unless it will be a mapping.
    pub(super) fn new(limit: usize, announced: Option<u64>, pool: &Arc<BodyPool>) -> Self {
        let announced = announced.and_then(|bytes| usize::try_from(bytes).ok());
        let room = announced.filter(|bytes| *bytes < pool.small_bytes() && *bytes <= limit).unwrap_or_default();
        Self { limit, pool: Arc::clone(pool), place: Place::Heap(Vec::with_capacity(room)) }
    }

    /// All that was written.
    pub(super) fn into_bytes(self) -> Bytes {
        match self.place {
            Place::Heap(bytes) => Bytes::from(bytes),
            Place::Mapped(mapped) => Bytes::from_owner(mapped),
        }
    }

    /// How much was written.
    pub(super) fn length(&self) -> usize {
        match &self.place {
            Place::Heap(bytes) => bytes.len(),
            Place::Mapped(mapped) => mapped.length,
        }
    }

    /// Moves to a mapping as large as the limit, with a share for `length` bytes.
    fn map(&mut self, length: usize) -> io::Result<()> {
        if let Place::Heap(bytes) = &self.place {
            let mut share = self.pool.share();
            share.cover(length, self.limit)?;
            self.place = Place::Mapped(Mapped::new(self.limit, bytes, share)?);
        }
        Ok(())
    }
}

impl Write for Buffer {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let length = self.length() + piece.len();
        if length > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if length >= self.pool.small_bytes() {
            self.map(length)?;
        }
        match &mut self.place {
            Place::Heap(bytes) => bytes.extend_from_slice(piece),
            Place::Mapped(mapped) => mapped.append(piece)?,
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::SMALL_BYTES_MAX as MAPPED_BYTES_MIN;

    #[test]
    fn what_is_written_is_read_however_large_and_never_over_the_limit() {
        for size in [0, 1, MAPPED_BYTES_MIN - 1, MAPPED_BYTES_MIN, 3 * MAPPED_BYTES_MIN + 17] {
            let expected: Vec<u8> = (0..size).map(|place| u8::try_from(place % 251).unwrap()).collect();
            let mut buffer = Buffer::new(size, None, &BodyPool::new(size));
            for piece in expected.chunks(70_001) {
                buffer.write_all(piece).unwrap();
            }
            assert_eq!(buffer.write_all(b"x").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
            assert!(buffer.into_bytes() == expected, "{size}");
        }
    }

    #[test]
    fn a_share_is_kept_as_long_as_the_body_is_read_and_its_parts_too() {
        let pool = BodyPool::new(4 * MAPPED_BYTES_MIN);
        let filled = |bytes: usize| {
            let mut buffer = Buffer::new(4 * MAPPED_BYTES_MIN, None, &pool);
            buffer.write_all(&vec![7; bytes]).map(|()| buffer.into_bytes()).map_err(|cause| cause.kind())
        };
        let small = filled(MAPPED_BYTES_MIN - 1).unwrap();
        assert_eq!(pool.used_bytes(), 0);
        let large = filled(3 * MAPPED_BYTES_MIN).unwrap();
        assert!(filled(MAPPED_BYTES_MIN + 1).is_err_and(|kind| kind == io::ErrorKind::QuotaExceeded));
        assert_eq!(pool.used_bytes(), 3 << 20, "what was refused gave its own back");
        let part = large.slice(5..9);
        drop((small, large));
        assert!(filled(MAPPED_BYTES_MIN + 1).is_err_and(|kind| kind == io::ErrorKind::QuotaExceeded));
        drop(part);
        assert_eq!(pool.used_bytes(), 0);
        assert_eq!(filled(4 * MAPPED_BYTES_MIN).unwrap().len(), 4 * MAPPED_BYTES_MIN);
        assert_eq!(pool.used_bytes(), 0);
    }
}
