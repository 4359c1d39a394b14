//! Unique identifiers: the few bytes that stand for a name in keys.
//!
//! Metrics, tag keys and tag values are three spaces of their own; each has a width in bytes fixed for the life of the
//! tables (3, 3, 3 unless configured). A UID is big-endian because the order of keys is its meaning. Zero is never
//! assigned: a row whose metric is zero holds global annotations.

use crate::{Error, InlineBytes, Result, UidKind};

/// A UID as a number; how many bytes it takes is its kind's width ([`UidWidths`]).
///
/// ```
/// use basalt_schema::{Uid, UidWidth};
/// let width = UidWidth::new(3).unwrap();
/// assert_eq!(&*Uid::new(258).encode(width), &[0, 1, 2]);
/// assert_eq!(Uid::decode(&[0, 1, 2]), Some(Uid::new(258)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uid(u64);

impl Uid {
    /// The UID that is never assigned.
    pub const ZERO: Self = Self(0);

    /// A UID by its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Reads 1 to 8 big-endian bytes; `None` for any other length.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > 8 {
            return None;
        }
        Some(Self(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))))
    }

    /// The bytes of this UID in keys.
    ///
    /// # Panics
    /// If the number needs more bytes than `width`: UIDs are checked against their width where they are assigned.
    pub fn encode(self, width: UidWidth) -> InlineBytes<8> {
        assert!(self.0 <= width.uid_max().0, "BUG: UID {} on {} bytes", self.0, width.bytes());
        let bytes = self.0.to_be_bytes();
        InlineBytes::new(bytes.get(8 - width.bytes()..).unwrap_or(&bytes))
    }

    /// Appends [`Uid::encode`] to `out`.
    pub fn encode_into(self, width: UidWidth, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encode(width));
    }
}

/// How many bytes the UIDs of one kind take: 1 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UidWidth(u8);

impl UidWidth {
    /// OpenTSDB's default.
    pub const DEFAULT: Self = Self(3);

    /// # Errors
    /// `Invalid`: not 1 to 8.
    pub const fn new(bytes: u8) -> Result<Self> {
        match bytes {
            1..=8 => Ok(Self(bytes)),
            _ => Err(Error::InvalidUidWidth { width: bytes }),
        }
    }

    /// Bytes.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// The largest UID of this width.
    pub const fn uid_max(self) -> Uid {
        Uid(u64::MAX >> (64 - 8 * self.0 as u32))
    }
}

impl Default for UidWidth {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The widths of the three kinds; part of the layout of every key, recorded in the store and never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UidWidths {
    /// Width of metrics.
    pub metric: UidWidth,
    /// Width of tag keys.
    pub tagk: UidWidth,
    /// Width of tag values.
    pub tagv: UidWidth,
}

impl UidWidths {
    /// The width of one kind.
    pub const fn of(self, kind: UidKind) -> UidWidth {
        match kind {
            UidKind::Metric => self.metric,
            UidKind::Tagk => self.tagk,
            UidKind::Tagv => self.tagv,
        }
    }

    /// Bytes of one tag pair in a key.
    pub const fn pair_bytes(self) -> usize {
        self.tagk.bytes() + self.tagv.bytes()
    }
}

/// One tag of a series, resolved.
///
/// *Shape*: ordered by the key's UID, then the value's: the order of pairs in a row key. By number and by bytes are the
/// same order, since all UIDs of a kind have one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagPair {
    /// UID of the tag's key.
    pub key: Uid,
    /// UID of the tag's value.
    pub value: Uid,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_bound_their_uids() {
        // S-UID-WIDTH
        assert_eq!(UidWidth::new(1).unwrap().uid_max(), Uid::new(255));
        assert_eq!(UidWidth::DEFAULT.uid_max(), Uid::new(16_777_215));
        assert_eq!(UidWidth::new(8).unwrap().uid_max(), Uid::new(u64::MAX));
        assert!(UidWidth::new(0).is_err() && UidWidth::new(9).is_err());
        assert_eq!(Uid::decode(&[]), None);
        assert_eq!(Uid::decode(&[0; 9]), None);
    }

    #[test]
    #[should_panic(expected = "BUG: UID 256 on 1 bytes")]
    fn a_uid_is_never_cut() {
        Uid::new(256).encode(UidWidth::new(1).unwrap());
    }
}
