//! The TSUID: a series' name in UIDs, as users see it.

use std::fmt;

use smallvec::SmallVec;

use crate::{Error, Result, TagPair, Uid, UidWidths, hex};

/// Bytes of a TSUID kept in place: a metric and four tags of the default widths; longer ones are allocated.
const INLINE_BYTES: usize = 27;

/// Metric UID, then tag pairs sorted by UID: a row key without salt and base time.
///
/// *Shape*: ordered as bytes, which is the order of row keys within one bucket and hour. Shown as upper-case hex.
///
/// ```
/// use basalt_schema::{Tsuid, UidWidths};
/// let tsuid = Tsuid::parse("000001000001000002", UidWidths::default()).unwrap();
/// assert_eq!(tsuid.to_string(), "000001000001000002");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tsuid(SmallVec<[u8; INLINE_BYTES]>);

impl Tsuid {
    /// Of a metric and its tag pairs, in any order.
    pub fn new(metric: Uid, pairs: &[TagPair], widths: UidWidths) -> Self {
        let mut sorted: SmallVec<[TagPair; 8]> = pairs.into();
        sorted.sort_unstable();
        let mut bytes = SmallVec::from_slice(&metric.encode(widths.metric));
        for pair in sorted {
            bytes.extend_from_slice(&pair.key.encode(widths.tagk));
            bytes.extend_from_slice(&pair.value.encode(widths.tagv));
        }
        Self(bytes)
    }

    /// From the two parts of a row key that are the series: already in order.
    pub(crate) fn from_key_parts(metric: &[u8], tags: &[u8]) -> Self {
        let mut bytes = SmallVec::from_slice(metric);
        bytes.extend_from_slice(tags);
        Self(bytes)
    }

    /// Of a metric and the bytes of its tag pairs, already in order.
    pub(crate) fn from_parts(metric: Uid, tags: &[u8], widths: UidWidths) -> Self {
        Self::from_key_parts(&metric.encode(widths.metric), tags)
    }

    /// The metric, and the bytes of the tag pairs.
    pub fn parts(&self, widths: UidWidths) -> (Uid, &[u8]) {
        let tags = self.0.get(widths.metric.bytes()..).unwrap_or_default();
        (self.metric(widths), tags)
    }

    /// From bytes.
    ///
    /// # Errors
    /// `Invalid`: not a metric and whole tag pairs.
    pub fn from_bytes(bytes: &[u8], widths: UidWidths) -> Result<Self> {
        let tags = bytes.len().checked_sub(widths.metric.bytes());
        match tags {
            Some(tags) if tags.is_multiple_of(widths.pair_bytes()) => Ok(Self(SmallVec::from_slice(bytes))),
            _ => Err(Error::InvalidTsuid {
                text: hex::upper(bytes).into(),
                reason: "its length is not that of a metric and whole tag pairs",
            }),
        }
    }

    /// From hex of either case.
    ///
    /// # Errors
    /// `Invalid`: no hex, or not a metric and whole tag pairs.
    pub fn parse(text: &str, widths: UidWidths) -> Result<Self> {
        let bytes = hex::decode(text)
            .ok_or_else(|| Error::InvalidTsuid { text: text.into(), reason: "it is no hexadecimal number" })?;
        Self::from_bytes(&bytes, widths)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The metric.
    pub fn metric(&self, widths: UidWidths) -> Uid {
        self.0.get(..widths.metric.bytes()).and_then(Uid::decode).unwrap_or_default()
    }

    /// The tag pairs in order.
    pub fn pairs(&self, widths: UidWidths) -> impl Iterator<Item = TagPair> + '_ {
        tag_pairs(self.0.get(widths.metric.bytes()..).unwrap_or_default(), widths)
    }
}

/// The pairs of a key's tag bytes, in order.
pub fn tag_pairs(tags: &[u8], widths: UidWidths) -> impl Iterator<Item = TagPair> + '_ {
    tags.chunks_exact(widths.pair_bytes()).filter_map(move |pair| {
        let (key, value) = pair.split_at_checked(widths.tagk.bytes())?;
        Some(TagPair { key: Uid::decode(key)?, value: Uid::decode(value)? })
    })
}

impl fmt::Display for Tsuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::upper(&self.0))
    }
}

impl fmt::Debug for Tsuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tsuid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_sorted_by_uid() {
        // S-KEY-TAGSORT, S-KEY-TSUID
        let widths = UidWidths::default();
        let pair = |key, value| TagPair { key: Uid::new(key), value: Uid::new(value) };
        let tsuid = Tsuid::new(Uid::new(8), &[pair(3, 3), pair(1, 0xABC), pair(2, 2)], widths);
        assert_eq!(tsuid.to_string(), "000008000001000ABC000002000002000003000003");
        assert_eq!(tsuid.metric(widths), Uid::new(8));
        assert_eq!(tsuid.pairs(widths).collect::<Vec<_>>(), [pair(1, 0xABC), pair(2, 2), pair(3, 3)]);
        assert_eq!(Tsuid::parse("000008000001000abc000002000002000003000003", widths).unwrap(), tsuid);
    }

    #[test]
    fn what_is_no_tsuid_is_refused() {
        for text in ["", "0000", "0000010", "00000100000100000", "zz0001", "000001000001"] {
            assert!(Tsuid::parse(text, UidWidths::default()).is_err(), "{text}");
        }
    }
}
