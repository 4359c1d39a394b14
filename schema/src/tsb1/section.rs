//! The sections of a block: one byte stream each, stored as it is, as one byte repeated, by zstd, or by rANS.
//!
//! A stream goes on with zeros for ever: those at its end are not stored, and a stream of nothing else has no section.

use std::fmt;

use zstd::zstd_safe;

use super::number::{Input, fold_sign, low_byte, put_varint, unfold_sign};
use super::rans::{self, Frequencies};

/// Streams of a block. The numbers are the format's.
pub(super) mod id {
    /// Lengths of row keys, numbers.
    pub(in crate::tsb1) const KEY_BYTES: usize = 0;
    /// The first byte in each column of the keys.
    pub(in crate::tsb1) const KEY_HEADS: usize = 1;
    /// A bit for each column of the keys: whether it changes.
    pub(in crate::tsb1) const KEY_CHANGES: usize = 2;
    /// The columns that change, without their first bytes.
    pub(in crate::tsb1) const KEY_COLUMNS: usize = 3;
    /// A byte a row: how times and kinds are told, or that the row is verbatim.
    pub(in crate::tsb1) const FORMS: usize = 4;
    /// Cells of verbatim rows, numbers.
    pub(in crate::tsb1) const VERBATIM_CELLS: usize = 5;
    /// Bytes of verbatim rows, numbers.
    pub(in crate::tsb1) const VERBATIM_BYTES: usize = 6;
    /// Verbatim rows.
    pub(in crate::tsb1) const VERBATIM: usize = 7;
    /// Times of cells, numbers.
    pub(in crate::tsb1) const TIMESTAMPS: usize = 8;
    /// Sequence numbers of cells, numbers.
    pub(in crate::tsb1) const SEQS: usize = 9;
    /// Points of rows, numbers.
    pub(in crate::tsb1) const COUNTS: usize = 10;
    /// First offsets, numbers.
    pub(in crate::tsb1) const FIRSTS: usize = 11;
    /// Steps of offsets, numbers.
    pub(in crate::tsb1) const STEPS: usize = 12;
    /// A byte a row: exponent, predictor, exceptions.
    pub(in crate::tsb1) const MODES: usize = 13;
    /// Bases, numbers.
    pub(in crate::tsb1) const BASES: usize = 14;
    /// Centres, numbers.
    pub(in crate::tsb1) const CENTRES: usize = 15;
    /// A byte a row: planes of its offsets' and values' residuals.
    pub(in crate::tsb1) const WIDTHS: usize = 16;
    /// Exceptions: their number, then gaps, varints.
    pub(in crate::tsb1) const EXCEPTION_GAPS: usize = 17;
    /// Exceptions' words.
    pub(in crate::tsb1) const EXCEPTION_WORDS: usize = 18;
    /// A byte a point.
    pub(in crate::tsb1) const KINDS: usize = 19;
    /// The streams from here on have a byte a point, and are of use to who wants points alone.
    pub(in crate::tsb1) const OF_POINTS: usize = KINDS;
    /// The first plane of offsets' residuals of one byte; of k bytes: k (k − 1) / 2 further on.
    pub(in crate::tsb1) const TIME_PLANES: usize = 20;
    /// The first plane of values' residuals of one byte, likewise.
    pub(in crate::tsb1) const VALUE_PLANES: usize = 32;
    /// The streams from here on are told once a row again.
    pub(in crate::tsb1) const POINTS_END: usize = VALUE_PLANES + 36;
    /// A byte a row: 1 where it has a summary.
    pub(in crate::tsb1) const SUMMARIES: usize = POINTS_END;
    /// Last offsets less the first, of rows that are not regular, varints.
    pub(in crate::tsb1) const SUMMARY_SPANS: usize = SUMMARIES + 1;
    /// Least numbers less the base, folded varints.
    pub(in crate::tsb1) const SUMMARY_LOWS: usize = SUMMARIES + 2;
    /// Greatest numbers less the least, varints.
    pub(in crate::tsb1) const SUMMARY_HEIGHTS: usize = SUMMARIES + 3;
    /// Last numbers less the least, varints.
    pub(in crate::tsb1) const SUMMARY_LASTS: usize = SUMMARIES + 4;
    /// Sums of numbers less the least, varints.
    pub(in crate::tsb1) const SUMMARY_SUMS: usize = SUMMARIES + 5;
    /// What running sums of doubles miss, folded varints.
    pub(in crate::tsb1) const SUMMARY_ERRORS: usize = SUMMARIES + 6;
    /// How many there are.
    pub(in crate::tsb1) const COUNT: usize = SUMMARIES + 7;
}

/// After the last section.
const END: u8 = 0xFF;

const RAW: u8 = 0;
const ZSTD: u8 = 1;
const RANS: u8 = 2;
const REPEATED: u8 = 3;

const ZSTD_LEVEL: i32 = 3;
/// zstd is tried on so many bytes before it gets all.
const SAMPLE_BYTES: usize = 8 * 1024;

/// The streams of one block, written or read from their beginnings.
#[derive(Debug)]
pub(super) struct Streams([Stream; id::COUNT]);

/// One stream. Numbers in it are kept as the difference to the one before.
#[derive(Debug, Default)]
struct Stream {
    bytes: Vec<u8>,
    /// How far it is read.
    at: usize,
    last: u64,
}

impl Default for Streams {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Stream::default()))
    }
}

impl Streams {
    /// Empties them and keeps their memory.
    pub(super) fn clear(&mut self) {
        for stream in &mut self.0 {
            stream.bytes.clear();
            stream.at = 0;
            stream.last = 0;
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "ids are constants of `id`, or planes below their count, which is at most 8"
    )]
    fn stream(&mut self, id: usize) -> &mut Stream {
        &mut self.0[id]
    }

    pub(super) fn put_byte(&mut self, id: usize, byte: u8) {
        self.stream(id).bytes.push(byte);
    }

    pub(super) fn put_bytes(&mut self, id: usize, bytes: &[u8]) {
        self.stream(id).bytes.extend_from_slice(bytes);
    }

    pub(super) fn put_varint(&mut self, id: usize, value: u64) {
        put_varint(&mut self.stream(id).bytes, value);
    }

    pub(super) fn put_number(&mut self, id: usize, value: u64) {
        let stream = self.stream(id);
        put_varint(&mut stream.bytes, fold_sign(value.wrapping_sub(stream.last).cast_signed()));
        stream.last = value;
    }

    /// Puts residuals into as many planes as the largest needs bytes, at least one; that number.
    pub(super) fn put_planes(&mut self, first: usize, residuals: &[u64]) -> u8 {
        let all = residuals.iter().fold(0, |all, residual| all | residual);
        let width = all.checked_ilog2().unwrap_or(0) / 8 + 1;
        for plane in 0..width {
            let bytes = &mut self.stream(plane_id(first, width) + plane as usize).bytes;
            bytes.extend(residuals.iter().map(|residual| low_byte(residual >> (8 * plane))));
        }
        low_byte(width.into())
    }

    pub(super) fn byte(&mut self, id: usize) -> u8 {
        let stream = self.stream(id);
        let byte = stream.bytes.get(stream.at).copied().unwrap_or(0);
        stream.at += 1;
        byte
    }

    /// The next bytes. The caller bounds their number; zeros are made where the stream has ended.
    pub(super) fn bytes(&mut self, id: usize, length: usize) -> Option<&[u8]> {
        let stream = self.stream(id);
        let (start, end) = (stream.at, stream.at.checked_add(length)?);
        if stream.bytes.len() < end {
            stream.bytes.resize(end, 0);
        }
        stream.at = end;
        stream.bytes.get(start..end)
    }

    pub(super) fn varint(&mut self, id: usize) -> Option<u64> {
        let stream = self.stream(id);
        let Some(rest) = stream.bytes.get(stream.at..).filter(|rest| !rest.is_empty()) else { return Some(0) };
        let mut input = Input::new(rest);
        let value = input.varint()?;
        stream.at += rest.len() - input.rest().len();
        Some(value)
    }

    pub(super) fn number(&mut self, id: usize) -> Option<u64> {
        let step = unfold_sign(self.varint(id)?).cast_unsigned();
        let stream = self.stream(id);
        stream.last = stream.last.wrapping_add(step);
        Some(stream.last)
    }

    /// Residuals out of `width` planes, 1 to 8 of values, 1 to 4 of offsets. The caller bounds their number.
    pub(super) fn planes(&mut self, first: usize, width: u8, count: usize, residuals: &mut Vec<u64>) -> Option<()> {
        residuals.clear();
        let lowest = plane_id(first, width.into());
        residuals.extend(self.bytes(lowest, count)?.iter().map(|byte| u64::from(*byte)));
        for plane in 1..usize::from(width) {
            let bytes = self.bytes(lowest + plane, count)?;
            residuals.iter_mut().zip(bytes).for_each(|(residual, byte)| *residual |= u64::from(*byte) << (8 * plane));
        }
        Some(())
    }

    /// Puts a section's bytes into its stream, which must be empty.
    pub(super) fn fill(&mut self, section: &Section<'_>, coder: &mut Coder) -> Option<()> {
        let bytes = &mut self.stream(section.id).bytes;
        bytes.resize(section.length, 0);
        coder.decode(section, bytes)
    }

    /// Whether nothing is left of any stream: what a reader that understood all finds at its end.
    pub(super) fn are_read(&self) -> bool {
        self.0.iter().all(|stream| stream.at >= stream.bytes.len())
    }

    /// Bytes of memory that they keep.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.iter().map(|stream| stream.bytes.capacity()).sum()
    }

    /// Bytes of all of them.
    pub(super) fn bytes_count(&self) -> usize {
        self.0.iter().map(|stream| stream.bytes.len()).sum()
    }
}

fn put_head(mode: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(mode);
    put_varint(out, bytes.len() as u64);
}

/// The first of the planes of residuals of that width.
pub(super) const fn plane_id(first: usize, width: u32) -> usize {
    let width = width as usize;
    first + width * (width - 1) / 2
}

/// One stored section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    /// Its stream, below [`id::COUNT`].
    pub(super) id: usize,
    mode: u8,
    /// Bytes of the stream.
    pub(super) length: usize,
    /// What is stored of them; as many where they are stored as they are.
    pub(super) stored: &'a [u8],
}

/// Walks the sections of a block, and decodes none.
#[derive(Debug)]
pub(super) struct Sections<'a> {
    input: Input<'a>,
    /// Bytes that the streams may still have.
    left: usize,
    next: u8,
    /// How many streams the version has.
    streams: usize,
}

impl<'a> Sections<'a> {
    /// The sections in `stored` of a version with so many streams, which are at most `bytes_max` bytes together.
    pub(super) fn new(stored: &'a [u8], streams: usize, bytes_max: usize) -> Self {
        Self { input: Input::new(stored), left: bytes_max, next: 0, streams }
    }

    /// The next section, in ascending order of streams; the inner `None` at the end. The outer: they make no sense.
    #[expect(clippy::option_option, reason = "the outer says that the bytes are wrong, the inner that they end")]
    pub(super) fn next(&mut self) -> Option<Option<Section<'a>>> {
        let id = self.input.u8()?;
        if id == END {
            return self.input.rest().is_empty().then_some(None);
        }
        if id < self.next || usize::from(id) >= self.streams {
            return None;
        }
        self.next = id + 1;
        let mode = self.input.u8()?;
        let length = self.input.length()?;
        self.left = self.left.checked_sub(length)?;
        let stored_bytes = match mode {
            RAW => length,
            REPEATED => 1,
            _ => self.input.length()?,
        };
        Some(Some(Section { id: id.into(), mode, length, stored: self.input.bytes(stored_bytes)? }))
    }
}

/// Writes and reads sections; keeps tables and buffers.
#[derive(Default)]
pub(super) struct Coder {
    rans: rans::Decoder,
    words: Vec<u16>,
    packed: Vec<u8>,
    compressor: Option<zstd_safe::CCtx<'static>>,
    decompressor: Option<zstd_safe::DCtx<'static>>,
}

impl fmt::Debug for Coder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coder").finish_non_exhaustive()
    }
}

impl Coder {
    /// Appends the sections of all streams.
    pub(super) fn encode_into(&mut self, streams: &Streams, out: &mut Vec<u8>) {
        for (id, stream) in streams.0.iter().enumerate() {
            let used = stream.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let bytes = stream.bytes.get(..used).unwrap_or_default();
            if !bytes.is_empty() {
                out.push(low_byte(id as u64));
                self.encode_section(bytes, out);
            }
        }
        out.push(END);
    }

    fn encode_section(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if bytes.iter().all(|byte| Some(byte) == bytes.first()) {
            put_head(REPEATED, bytes, out);
            out.extend(bytes.first());
            return;
        }
        let counts = rans::count(bytes);
        let frequencies = Frequencies::of(&counts);
        let by_rans = frequencies.as_ref().map_or(usize::MAX, |found| found.estimate_bytes(&counts));
        let mode = if self.zstd_wins(bytes, by_rans.min(bytes.len())) {
            ZSTD
        } else {
            self.packed.clear();
            if let Some(frequencies) = frequencies.filter(|_| by_rans < bytes.len()) {
                rans::encode_into(bytes, &frequencies, &mut self.words, &mut self.packed);
            }
            RANS
        };
        if self.packed.is_empty() || self.packed.len() >= bytes.len() {
            put_head(RAW, bytes, out);
            out.extend_from_slice(bytes);
            return;
        }
        put_head(mode, bytes, out);
        put_varint(out, self.packed.len() as u64);
        out.extend_from_slice(&self.packed);
    }

    /// Whether zstd needs fewer than `limit` bytes, which are then in `packed`. A sample must promise a twentieth less.
    fn zstd_wins(&mut self, bytes: &[u8], limit: usize) -> bool {
        let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
        let Some(found) = self.zstd(sample) else { return false };
        if found * bytes.len() / sample.len() * 21 / 20 >= limit {
            return false;
        }
        sample.len() == bytes.len() || self.zstd(bytes).is_some_and(|found| found < limit)
    }

    /// Compresses into `packed`; its length.
    fn zstd(&mut self, bytes: &[u8]) -> Option<usize> {
        let compressor = self.compressor.get_or_insert_with(zstd_safe::CCtx::create);
        self.packed.clear();
        self.packed.reserve(zstd_safe::compress_bound(bytes.len()));
        compressor.compress(&mut self.packed, bytes, ZSTD_LEVEL).ok()
    }

    /// Reads all sections into the streams, which must be empty. `None`: they make no sense.
    pub(super) fn decode_into(&mut self, mut sections: Sections<'_>, streams: &mut Streams) -> Option<()> {
        while let Some(section) = sections.next()? {
            streams.fill(&section, self)?;
        }
        Some(())
    }

    /// Fills `bytes`, which has the section's length.
    pub(super) fn decode(&mut self, section: &Section<'_>, bytes: &mut [u8]) -> Option<()> {
        match section.mode {
            RAW => bytes.copy_from_slice(section.stored),
            REPEATED => bytes.fill(*section.stored.first()?),
            ZSTD => {
                let decompressor = self.decompressor.get_or_insert_with(zstd_safe::DCtx::create);
                decompressor.decompress(bytes, section.stored).ok().filter(|found| *found == section.length)?;
            }
            RANS => self.rans.decode_into(section.stored, bytes)?,
            _ => return None,
        }
        Some(())
    }
}
