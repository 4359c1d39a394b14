//! Block encoding `TSB1`: a block of rows of points, column by column.
//!
//! It lies under the row-wise image of a data block (`docs/formats/sstable.md`) and gives back the very same bytes; its own
//! byte map is `docs/formats/tsb1.md`. Row keys, write times, counts, offsets and values of all rows go into separate
//! streams; values become exact decimal integers less the best guess of five, cut into byte planes; each stream is entropy-coded
//! on its own, so that rows share one table.
//!
//! ```text
//! image ─ rows ─┬─ keys ───────────────────── by column ─────────┐
//!               ├─ times, sequence numbers ── steps ─────────────┤
//!               ├─ lone cell of points ─ model ─ planes, heads ──┼─ streams ─ raw │ repeated │ zstd │ rANS
//!               └─ anything else ──────────── verbatim ──────────┘
//! ```
//!
//! Invariants: a cell is taken apart only if its model gives it back bit for bit, else its row is verbatim. No bytes panic the
//! decoder, and its memory is bounded by a multiple of the image's length.

mod columns;
mod decimal;
mod head;
mod image;
mod keys;
mod model;
mod number;
mod predict;
mod rans;
mod section;
mod summary;
mod times;

use std::cell::RefCell;

use basalt_store::PackedPoint;
pub use columns::Tsb1Block;
use head::VERBATIM;
use image::{Base, ImageWriter, LoneCell, ROW_BYTES_MIN, Rows};
use keys::Keys;
use model::Model;
use number::{Input, put_varint};
use section::{Coder, Sections, Streams, id};

use crate::Qualifier;
use crate::value::decode_word;

/// The version that is written.
const VERSION: u8 = 2;
/// The version without summaries, which is read.
const VERSION_1: u8 = 1;
/// Flags: none is given out.
const FLAGS: u8 = 0;

/// Bytes of a point in an image, at least: a qualifier and a value.
const POINT_BYTES_MIN: usize = 3;
/// The streams of a block are at most so many times its image, and so much more: 8 planes of values, 4 of offsets and a kind
/// beside 3 bytes of a point.
const STREAMS_PER_IMAGE: usize = 5;
const STREAMS_BYTES_MORE: usize = 4096;
/// Row keys, put together, are at most so many times the image, which holds what they do not share.
const KEYS_PER_IMAGE: usize = 16;
/// The longest key times the number of keys is at most so many times the image in what is written: the columns take that long.
const COLUMNS_PER_IMAGE: usize = 64;
/// Keys and streams of a large image are not more than it by more than this, whatever its multiple is.
const BYTES_MORE_MAX: usize = 256 << 20;
/// Working memory for a larger image is given back.
const KEPT_IMAGE_BYTES_MAX: usize = 1 << 20;

/// The codec. It holds nothing: working memory is kept for each thread.
///
/// ```
/// use basalt_schema::Tsb1;
/// // One row, "k", of one cell: 360 points, each 7, ten seconds apart.
/// let qualifier: Vec<u8> = (0..360_u16).flat_map(|n| (n * 10 << 4).to_be_bytes()).collect();
/// let mut image = [[5; 8], [1; 8]].concat(); // base time and sequence number
/// image.extend([0, 1, 1, b'k', 0x26, 0xD0, 0x05]); // the row's head, the cell's flags, 720 bytes of qualifier
/// image.extend(&qualifier);
/// image.extend([0xE9, 0x02]); // 361 bytes of value
/// image.extend([7; 360]);
/// image.extend([0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]); // its last byte; the row table, one row, one cell
///
/// let mut stored = Vec::new();
/// assert!(Tsb1.encode_into(&image, &mut stored) && stored.len() < 64);
/// let mut again = vec![0; image.len()];
/// assert!(Tsb1.decode_into(&stored, &mut again) && again == image);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Tsb1;

thread_local! {
    /// A thread's working memory: blocks are decoded by the million.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[derive(Debug, Default)]
struct Scratch {
    streams: Streams,
    coder: Coder,
    keys: Keys,
    model: Model,
    qualifier: Vec<u8>,
    value: Vec<u8>,
    offsets: Vec<u32>,
}

/// Works with the thread's memory, which is kept unless the image is so large that hardly another one needs as much.
fn with_scratch<T>(image_bytes: usize, work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        let done = work(scratch);
        if image_bytes > KEPT_IMAGE_BYTES_MAX {
            *scratch = Scratch::default();
        }
        done
    })
}

impl Tsb1 {
    /// The name that column families and files carry.
    pub const NAME: &'static str = "TSB1";
    /// The BLOCKSIZE it is used with: more rows share their columns' models than in HBase's 64 KiB, and a question for one row
    /// still decodes little.
    pub const BLOCK_BYTES: u32 = 96 * 1024;

    /// Appends the encoded `image` to `out`; false, with `out` as it likes, for an image that is none, has no row of
    /// points, or gains nothing.
    ///
    /// The last word is the caller's: an image that is not in its writer's own form comes back in that form, so compare.
    ///
    /// *Cost*: some 10 to 30 ns a point.
    pub fn encode_into(self, image: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let encoded = with_scratch(image.len(), |scratch| scratch.encode(image, out));
        encoded.is_some() && out.len() - start < image.len()
    }

    /// The point that a cell is, if it is one and no more, on as many bytes as its qualifier says.
    pub fn point(self, qualifier: &[u8], value: &[u8]) -> Option<PackedPoint> {
        let (Qualifier { offset_ms, kind }, length) = Qualifier::decode_first(qualifier)?;
        let word = decode_word(kind, value).filter(|_| length == qualifier.len())?;
        Some(PackedPoint { offset_ms, word, is_float: kind.is_float() })
    }

    /// Fills `image`, which has the right length, from what [`Tsb1::encode_into`] wrote; false when `stored` makes no sense.
    ///
    /// Any bytes may come. *Cost*: some 3 to 10 ns a point; memory of at most some 25 times the image is kept for
    /// the thread, and of an image over 1 MiB none.
    pub fn decode_into(self, stored: &[u8], image: &mut [u8]) -> bool {
        with_scratch(image.len(), |scratch| scratch.decode(stored, image)).is_some()
    }

    /// The version of what was stored, if it is later than those that are read here.
    pub fn later_version(stored: &[u8]) -> Option<u32> {
        stored.first().filter(|version| **version > VERSION).map(|version| (*version).into())
    }
}

impl Scratch {
    fn encode(&mut self, image: &[u8], out: &mut Vec<u8>) -> Option<()> {
        self.streams.clear();
        self.keys.clear();
        let rows = Rows::of(image)?;
        let mut is_of_points = false;
        for row in rows.iter() {
            let row = row?;
            self.keys.push(row.shared, row.suffix)?;
            if let Some(cell) = row.lone_cell(rows.base).filter(|cell| self.take(cell)) {
                self.model.put(&mut self.streams);
                self.streams.put_number(id::TIMESTAMPS, cell.at.timestamp.wrapping_sub(rows.base.timestamp));
                self.streams.put_number(id::SEQS, cell.at.seq.wrapping_sub(rows.base.seq));
                is_of_points = true;
            } else {
                self.streams.put_byte(id::FORMS, VERBATIM);
                self.streams.put_number(id::VERBATIM_CELLS, row.cells_count);
                self.streams.put_number(id::VERBATIM_BYTES, row.cells.len() as u64);
                self.streams.put_bytes(id::VERBATIM, row.cells);
            }
        }
        let are_bounded = self.keys.bytes_count() <= keys_bytes_max(image.len())
            && self.keys.places_count() <= image.len().saturating_mul(COLUMNS_PER_IMAGE);
        if !is_of_points || !are_bounded {
            return None;
        }
        self.keys.encode(&mut self.streams);
        if self.streams.bytes_count() > streams_bytes_max(image.len()) {
            return None;
        }
        out.extend([VERSION, FLAGS]);
        put_varint(out, rows.count() as u64);
        put_varint(out, rows.base.timestamp);
        put_varint(out, rows.base.seq);
        self.coder.encode_into(&self.streams, out);
        Some(())
    }

    /// Makes the model of a cell and proves it: what comes out of it is the cell.
    fn take(&mut self, cell: &LoneCell<'_>) -> bool {
        let given = (self.model.take(cell.qualifier, cell.value))
            .and_then(|()| self.model.give(&mut self.qualifier, &mut self.value));
        given.is_some() && self.qualifier == cell.qualifier && self.value == cell.value
    }

    fn decode(&mut self, stored: &[u8], image: &mut [u8]) -> Option<()> {
        let image_bytes = image.len();
        let mut input = Input::new(stored);
        let streams_count = streams_count(input.array()?)?;
        let rows = input.length().filter(|rows| *rows <= image_bytes / ROW_BYTES_MIN)?;
        let base = Base { timestamp: input.varint()?, seq: input.varint()? };
        self.streams.clear();
        let sections = Sections::new(input.rest(), streams_count, streams_bytes_max(image_bytes));
        self.coder.decode_into(sections, &mut self.streams)?;
        self.keys.decode(rows, keys_bytes_max(image_bytes), &mut self.streams)?;
        let mut writer = ImageWriter::start(image, base, &mut self.offsets)?;
        for row in 0..rows {
            let form = self.streams.byte(id::FORMS);
            if form == VERBATIM {
                let cells = self.streams.number(id::VERBATIM_CELLS)?;
                let length = usize::try_from(self.streams.number(id::VERBATIM_BYTES)?).ok()?;
                writer.row(self.keys.parted(row), cells)?;
                if length > writer.bytes_left() {
                    return None;
                }
                writer.put(self.streams.bytes(id::VERBATIM, length)?)?;
                continue;
            }
            self.model.read(form, writer.bytes_left() / POINT_BYTES_MIN, &mut self.streams)?;
            self.model.give(&mut self.qualifier, &mut self.value)?;
            let timestamp = base.timestamp.wrapping_add(self.streams.number(id::TIMESTAMPS)?);
            let seq = base.seq.wrapping_add(self.streams.number(id::SEQS)?);
            writer.row(self.keys.parted(row), 1)?;
            let at = Base { timestamp, seq };
            writer.cell(LoneCell { at, qualifier: &self.qualifier, value: &self.value })?;
        }
        writer.finish()?;
        self.streams.are_read().then_some(())
    }
}

/// A length as it stands in an image.
#[cfg(any(test, fuzzing))]
pub(crate) fn put_length(out: &mut Vec<u8>, length: usize) {
    put_varint(out, length as u64);
}

/// How many streams a block with this head has; `None`: it is of no version that is known.
const fn streams_count(head: [u8; 2]) -> Option<usize> {
    match head {
        [VERSION, FLAGS] => Some(id::COUNT),
        [VERSION_1, FLAGS] => Some(id::POINTS_END),
        _ => None,
    }
}

const fn streams_bytes_max(image_bytes: usize) -> usize {
    bounded(image_bytes, image_bytes.saturating_mul(STREAMS_PER_IMAGE).saturating_add(STREAMS_BYTES_MORE))
}

const fn keys_bytes_max(image_bytes: usize) -> usize {
    bounded(image_bytes, image_bytes.saturating_mul(KEYS_PER_IMAGE))
}

/// The bound of an image's multiple.
const fn bounded(image_bytes: usize, multiple: usize) -> usize {
    let most = image_bytes.saturating_add(BYTES_MORE_MAX);
    if multiple < most { multiple } else { most }
}

#[cfg(test)]
mod tests;
