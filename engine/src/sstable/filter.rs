//! The bloom filter's section: its chunks, each with the rows it covers.
//!
//! Layout: `docs/formats/sstable.md`, "Bloom filter".

use bytes::Bytes;

use crate::bloom::Chunk;

use super::format::width_u32;
use super::index::width_u16;
use super::input::{Input, Parsed};

/// The section's image.
pub(super) fn encode(chunks: &[Chunk]) -> Vec<u8> {
    let mut out = width_u32(chunks.len()).to_le_bytes().to_vec();
    for chunk in chunks {
        let (first, last) = (chunk.rows.start(), chunk.rows.end());
        out.extend_from_slice(&width_u32(chunk.bits.len()).to_le_bytes());
        out.extend_from_slice(&width_u16(first.len()).to_le_bytes());
        out.extend_from_slice(&width_u16(last.len()).to_le_bytes());
        for part in [first, last, &chunk.bits] {
            out.extend_from_slice(part);
        }
    }
    out
}

/// Reads an image; the chunks share its memory.
pub(super) fn decode(image: &Bytes) -> Parsed<Vec<Chunk>> {
    let mut input = Input::new(image, 0);
    let mut chunks = Vec::new();
    for _ in 0..input.u32()? {
        let bits_bytes = input.u32()? as usize;
        let [first_bytes, last_bytes] = [input.u16()?, input.u16()?];
        let mut part = |length: usize| input.bytes(length).map(|bytes| image.slice_ref(bytes));
        let rows = part(first_bytes.into())?..=part(last_bytes.into())?;
        chunks.push(Chunk { rows, bits: part(bits_bytes)? });
    }
    if input.position() == image.len() { Ok(chunks) } else { Err(input.malformed()) }
}
