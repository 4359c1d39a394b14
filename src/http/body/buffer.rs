//! A body while it is read: a vector while it is small, then a mapping of its own.
//!
//! An allocator keeps what large buffers were given for those to come, in each of its arenas: with glibc's the process held
//! 120 MB more after some bodies of the full size than before them. A mapping is given back whole, and it grows
//! without being copied, since only the pages that are written cost memory.

use std::io::{self, Write};

use bytes::Bytes;
use memmap2::MmapMut;

/// Bytes from which a body lives in a mapping.
const MAPPED_BYTES_MIN: usize = 1 << 20;

/// Bytes that refuse to grow over their limit.
#[derive(Debug)]
pub(super) struct Buffer {
    limit: usize,
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
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.map.get(..self.length).unwrap_or_default()
    }
}

impl Buffer {
    /// An empty one of at most `limit` bytes, with room for those that are announced unless it will be a mapping.
    pub(super) fn new(limit: usize, announced: Option<u64>) -> Self {
        let announced = announced.and_then(|bytes| usize::try_from(bytes).ok());
        let room = announced.filter(|bytes| *bytes < MAPPED_BYTES_MIN && *bytes <= limit).unwrap_or_default();
        Self { limit, place: Place::Heap(Vec::with_capacity(room)) }
    }

    /// All that was written.
    pub(super) fn into_bytes(self) -> Bytes {
        match self.place {
            Place::Heap(bytes) => Bytes::from(bytes),
            Place::Mapped(mapped) => Bytes::from_owner(mapped),
        }
    }

    fn length(&self) -> usize {
        match &self.place {
            Place::Heap(bytes) => bytes.len(),
            Place::Mapped(mapped) => mapped.length,
        }
    }

    /// Moves to a mapping as large as the limit, of which nothing is touched yet.
    fn map(&mut self) -> io::Result<()> {
        if let Place::Heap(bytes) = &self.place {
            let mut map = MmapMut::map_anon(self.limit)?;
            let length = bytes.len();
            assert!(length <= self.limit, "BUG: {length} bytes passed the limit of {}", self.limit);
            map.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            self.place = Place::Mapped(Mapped { map, length });
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
        if length >= MAPPED_BYTES_MIN {
            self.map()?;
        }
        match &mut self.place {
            Place::Heap(bytes) => bytes.extend_from_slice(piece),
            Place::Mapped(mapped) => {
                let room = mapped.map.get_mut(mapped.length..length).ok_or(io::ErrorKind::FileTooLarge)?;
                room.copy_from_slice(piece);
                mapped.length = length;
            }
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

    #[test]
    fn what_is_written_is_read_however_large_and_never_over_the_limit() {
        for size in [0, 1, MAPPED_BYTES_MIN - 1, MAPPED_BYTES_MIN, 3 * MAPPED_BYTES_MIN + 17] {
            let expected: Vec<u8> = (0..size).map(|place| u8::try_from(place % 251).unwrap()).collect();
            let mut buffer = Buffer::new(size, None);
            for piece in expected.chunks(70_001) {
                buffer.write_all(piece).unwrap();
            }
            assert_eq!(buffer.write_all(b"x").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
            assert!(buffer.into_bytes() == expected, "{size}");
        }
    }
}
