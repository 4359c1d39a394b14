//! How a section's bytes are stored: as they are, by zstd, or by a block codec that a column family names.
//!
//! A codec works under the row-wise image of a block and gives back the very same bytes; it knows no cell semantics
//! beyond them. Each block carries its own tag, so a codec may decline a block, which is then stored by zstd.
//!
//! Invariant: what a named codec wrote has been decoded and compared before it is stored, and what it tells of whole rows held against
//! their points.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use basalt_store::PackedPoint;
use bytes::Bytes;
use zstd::zstd_safe;

use crate::error::{Error, Result};

use super::format::Frame;
use super::packed::{PackedBlock, wrong_summary};
use super::place::Place;

/// The payload is the image.
const PLAIN: u8 = 1;
/// The payload is one zstd frame.
const ZSTD: u8 = 2;
/// The payload is written by the codec that the file's metadata names.
const NAMED: u8 = 3;

/// Level 3 gives most of zstd's ratio on row-wise blocks at flush speed.
const ZSTD_LEVEL: i32 = 3;

/// A registered layout of a block (`DATA_BLOCK_ENCODING`), under the row-wise image of `docs/formats/sstable.md`.
pub trait BlockCodec: Send + Sync + fmt::Debug {
    /// The name that column families and files carry.
    fn name(&self) -> &str;

    /// Appends the encoded `image` to `out`; false, with `out` as it likes, to decline.
    fn encode_into(&self, image: &[u8], out: &mut Vec<u8>) -> bool;

    /// Fills `image`, which has the right length, from what `encode_into` wrote; false when `stored` makes no sense.
    /// Any bytes may come: it must not panic.
    fn decode_into(&self, stored: &[u8], image: &mut [u8]) -> bool;

    /// The version of what does not decode, if it is one of a later program: such a block is not damaged.
    fn later_version(&self, stored: &[u8]) -> Option<u32> {
        let _ = stored;
        None
    }

    /// Opens what `encode_into` wrote of an image of so many bytes by columns; `None` where a row of it is not one put, or
    /// the codec has no columns. Any bytes may come.
    fn open(&self, stored: &[u8], image_bytes: usize) -> Option<Arc<dyn PackedBlock>> {
        let _ = (stored, image_bytes);
        None
    }

    /// The point of a row by columns that a put is, if it is one point and no more: by it rows of memtables, which no codec
    /// encoded yet, are lent by columns too. Any bytes may come.
    ///
    /// Of points whose qualifiers are of one length, that of the lesser one is not later, and between two of them lie points alone.
    fn point(&self, qualifier: &[u8], value: &[u8]) -> Option<PackedPoint> {
        let _ = (qualifier, value);
        None
    }
}

/// The codecs known to this process, by name.
#[derive(Debug, Clone, Default)]
pub struct BlockCodecs(Vec<Arc<dyn BlockCodec>>);

impl BlockCodecs {
    /// Adds a codec.
    ///
    /// # Panics
    /// When one of its name is there already.
    pub fn register(&mut self, codec: Arc<dyn BlockCodec>) {
        assert!(self.find(codec.name()).is_none(), "BUG: two block codecs are named {}", codec.name());
        self.0.push(codec);
    }

    /// The codec of a name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn BlockCodec>> {
        self.0.iter().find(|codec| codec.name() == name)
    }
}

/// The codec that a file names, if it names one.
///
/// # Errors
/// `UnknownCodec` for one that is not registered here.
pub(super) fn find_codec(path: &Path, name: &str, codecs: &BlockCodecs) -> Result<Option<Arc<dyn BlockCodec>>> {
    if name.is_empty() {
        return Ok(None);
    }
    let found = codecs.find(name).map(Arc::clone);
    found.map(Some).ok_or_else(|| Error::UnknownCodec { file: path.to_path_buf(), codec: name.into() })
}

/// Encodes sections; keeps its buffers and zstd's context from one to the next.
pub(super) struct Encoder {
    named: Option<Arc<dyn BlockCodec>>,
    zstd: Option<zstd_safe::CCtx<'static>>,
    stored: Vec<u8>,
    check: Vec<u8>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("named", &self.named)
            .field("zstd", &self.zstd.is_some())
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// Tries `named`, then zstd when `compress`, then stores plainly.
    pub(super) fn new(named: Option<Arc<dyn BlockCodec>>, compress: bool) -> Self {
        let zstd = compress.then(zstd_safe::CCtx::create);
        Self { named, zstd, stored: Vec::new(), check: Vec::new() }
    }

    /// The frame of a data block's image.
    pub(super) fn encode_block<'a>(&'a mut self, image: &'a [u8]) -> Frame<'a> {
        if self.encode_named(image) {
            return Frame { encoding: NAMED, raw_bytes: image.len(), payload: &self.stored };
        }
        self.encode_section(image)
    }

    /// The frame of any other section's image.
    pub(super) fn encode_section<'a>(&'a mut self, image: &'a [u8]) -> Frame<'a> {
        let raw_bytes = image.len();
        if self.encode_zstd(image) {
            return Frame { encoding: ZSTD, raw_bytes, payload: &self.stored };
        }
        plain(image)
    }

    fn encode_named(&mut self, image: &[u8]) -> bool {
        let Some(codec) = &self.named else { return false };
        self.stored.clear();
        if !codec.encode_into(image, &mut self.stored) {
            return false;
        }
        self.check.clear();
        self.check.resize(image.len(), 0);
        codec.decode_into(&self.stored, &mut self.check)
            && self.check == image
            && codec.open(&self.stored, image.len()).is_none_or(|block| wrong_summary(&*block).is_none())
    }

    /// False when zstd is off, fails, or gains nothing.
    fn encode_zstd(&mut self, image: &[u8]) -> bool {
        let Some(zstd) = &mut self.zstd else { return false };
        self.stored.clear();
        self.stored.reserve(zstd_safe::compress_bound(image.len()));
        zstd.compress(&mut self.stored, image, ZSTD_LEVEL).is_ok() && self.stored.len() < image.len()
    }
}

/// The frame of bytes that are stored as they are.
pub(super) fn plain(image: &[u8]) -> Frame<'_> {
    Frame { encoding: PLAIN, raw_bytes: image.len(), payload: image }
}

/// The image of a section whose checksum is proved.
///
/// Cost: one allocation of the image's length. `named` is the codec of the file, if it names one.
///
/// # Errors
/// `Corrupt` for a tag that is unknown or a payload that does not give exactly the promised bytes; `UnknownCodec` for one that a later
/// program's codec wrote.
pub(super) fn decode(place: &Place<'_>, frame: &Frame<'_>, named: Option<&dyn BlockCodec>) -> Result<Vec<u8>> {
    let mut image = Vec::new();
    let filled = match (frame.encoding, named) {
        (PLAIN, _) => {
            image.extend_from_slice(frame.payload);
            true
        }
        (ZSTD, _) => decode_zstd(frame, &mut image),
        (NAMED, Some(codec)) => {
            image.resize(frame.raw_bytes, 0);
            let is_read = codec.decode_into(frame.payload, &mut image);
            if let Some(version) = codec.later_version(frame.payload).filter(|_| !is_read) {
                let codec = format!("{} of version {version}", codec.name()).into();
                return Err(Error::UnknownCodec { file: place.path.to_path_buf(), codec });
            }
            is_read
        }
        (tag, _) => return Err(place.corrupt("encoding", ZSTD.into(), tag.into())),
    };
    if !filled || image.len() != frame.raw_bytes {
        return Err(place.corrupt("decoded length", frame.raw_bytes as u64, image.len() as u64));
    }
    Ok(image)
}

/// The columns of a block whose checksum is proved, if its codec has any of it.
pub(super) fn open_packed(frame: &Frame<'_>, named: Option<&dyn BlockCodec>) -> Option<Arc<dyn PackedBlock>> {
    let codec = named.filter(|_| frame.encoding == NAMED)?;
    codec.open(frame.payload, frame.raw_bytes)
}

/// The same of a frame in `stored`: a payload that is the image is lent, not copied.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_shared(
    place: &Place<'_>,
    frame: &Frame<'_>,
    stored: &Bytes,
    named: Option<&dyn BlockCodec>,
) -> Result<Bytes> {
    if frame.encoding == PLAIN && frame.payload.len() == frame.raw_bytes {
        return Ok(stored.slice_ref(frame.payload));
    }
    decode(place, frame, named).map(Bytes::from)
}

fn decode_zstd(frame: &Frame<'_>, image: &mut Vec<u8>) -> bool {
    thread_local! {
        /// zstd's decoder is 100 kB of tables: one a thread, not one a block.
        static DECODER: RefCell<Option<zstd_safe::DCtx<'static>>> = const { RefCell::new(None) };
    }
    image.reserve_exact(frame.raw_bytes);
    DECODER.with_borrow_mut(|decoder| {
        let decoder = decoder.get_or_insert_with(zstd_safe::DCtx::create);
        decoder.decompress(image, frame.payload).is_ok()
    })
}
