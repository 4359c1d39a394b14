//! The salt: the bucket byte (or bytes) in front of a data row's key.
//!
//! Rows of one hour would otherwise lie side by side and one region would take every write. The bucket is a hash of the
//! series (metric and tags, not the hour), so a series stays in one bucket for ever.

use crate::{Error, InlineBytes, Result};

/// A bucket number, 0 ≤ salt < buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Salt(pub u32);

/// How rows are salted: how many bytes the salt takes and how many buckets there are. Width 0 means not at all.
///
/// Fixed for the life of the tables: a row is found by its salt.
///
/// ```
/// use basalt_schema::Salting;
/// let salting = Salting::new(1, 20).unwrap();
/// assert_eq!(salting.salt_of(&[0, 0, 1], &[0, 0, 1, 0, 0, 1]).0, 8);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Salting {
    width: u8,
    buckets: u32,
}

impl Salting {
    /// Unsalted rows, OpenTSDB's default.
    pub const NONE: Self = Self { width: 0, buckets: 1 };
    /// What Basalt's own store uses unless told otherwise.
    pub const EMBEDDED: Self = Self { width: 1, buckets: 16 };
    /// The most buckets: a scanner and a region per bucket must stay affordable.
    pub const BUCKETS_MAX: u32 = 4096;

    /// `width` bytes (0 to 8) and `buckets` (1 to [`Salting::BUCKETS_MAX`]); with width 0 the buckets are ignored.
    ///
    /// # Errors
    /// `Invalid`: a width over 8, no bucket or too many, or more buckets than the width can number.
    pub const fn new(width: u8, buckets: u32) -> Result<Self> {
        if width == 0 {
            return Ok(Self::NONE);
        }
        let numbered = if width == 1 { 256 } else { Self::BUCKETS_MAX };
        if width > 8 || buckets == 0 || buckets > numbered {
            return Err(Error::InvalidSalting { width, buckets });
        }
        Ok(Self { width, buckets })
    }

    /// Bytes of a salt, 0 to 8.
    pub const fn width(self) -> usize {
        self.width as usize
    }

    /// Number of buckets; 1 for unsalted rows.
    pub const fn buckets(self) -> u32 {
        self.buckets
    }

    /// The bucket of a series, by the UID bytes of its metric and of its tags as they stand in the key.
    ///
    /// Global annotations (a metric of zeros) lie in bucket 0. *Cost*: one multiplication a byte. *Source*: OpenTSDB 2.4
    /// `RowKey.prefixKeyWithSalt`: Java's signed-byte array hash, truncated remainder, made positive.
    pub fn salt_of(self, metric: &[u8], tags: &[u8]) -> Salt {
        self.of_metric(metric).salt_of(TagsHash::of(tags))
    }

    /// The buckets of a metric's series, by the UID bytes of the metric: for many series of one metric, and tags whose hash is
    /// known. *Cost*: a multiplication a byte.
    pub fn of_metric(self, metric: &[u8]) -> MetricSalting {
        let is_salted = self.width > 0 && metric.iter().any(|byte| *byte != 0);
        MetricSalting {
            hash: metric.iter().copied().fold(1, java_hash_step),
            buckets: if is_salted { self.buckets } else { 1 },
        }
    }

    /// The bytes of `salt` in front of a key: big-endian on the salt's width.
    pub fn encode(self, salt: Salt) -> InlineBytes<8> {
        let bytes = u64::from(salt.0).to_be_bytes();
        InlineBytes::new(bytes.get(8 - self.width()..).unwrap_or(&[]))
    }
}

/// How the rows of one metric are salted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricSalting {
    hash: i32,
    /// 1 for rows that all lie in bucket 0.
    buckets: u32,
}

impl MetricSalting {
    /// The bucket of the series with these tags. *Cost*: a multiplication and a division.
    pub fn salt_of(self, tags: TagsHash) -> Salt {
        let hash = self.hash.wrapping_mul(tags.factor).wrapping_add(tags.own);
        // The remainder's size is all that counts: |h| mod n = |h mod n| for the truncated remainder.
        Salt(hash.unsigned_abs() % self.buckets)
    }
}

/// What tags do to the hash of the metric before them: what they multiply it by, and what they add. Many metrics have the same
/// tags, which so are hashed once.
///
/// ```
/// use basalt_schema::{Salting, TagsHash};
/// let (metric, tags) = ([0, 0, 2], [0, 0, 1, 0, 0, 1]);
/// let salting = Salting::EMBEDDED;
/// assert_eq!(salting.of_metric(&metric).salt_of(TagsHash::of(&tags)), salting.salt_of(&metric, &tags));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagsHash {
    factor: i32,
    own: i32,
}

impl TagsHash {
    /// Of tags' UID bytes, as they stand in the key. *Cost*: two multiplications a byte.
    pub fn of(tags: &[u8]) -> Self {
        let step = |Self { factor, own }: Self, byte: &u8| Self {
            factor: factor.wrapping_mul(JAVA_HASH_FACTOR),
            own: java_hash_step(own, *byte),
        };
        tags.iter().fold(Self::default(), step)
    }
}

impl Default for TagsHash {
    /// Of no tags.
    fn default() -> Self {
        Self { factor: 1, own: 0 }
    }
}

const JAVA_HASH_FACTOR: i32 = 31;

/// One byte of `java.util.Arrays.hashCode(byte[])`.
fn java_hash_step(hash: i32, byte: u8) -> i32 {
    hash.wrapping_mul(JAVA_HASH_FACTOR).wrapping_add(i32::from(byte.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(metric: [u8; 3], tags: &[u8], hash: i32, salt: u32) {
        assert_eq!(metric.iter().chain(tags).copied().fold(1, java_hash_step), hash);
        assert_eq!(Salting::new(1, 20).unwrap().salt_of(&metric, tags), Salt(salt));
    }

    #[test]
    fn salts_of_the_real_server() {
        // S-KEY-SALT
        check([0, 0, 1], &[0, 0, 1, 0, 0, 1], 691_019_968, 8);
        check([0, 0, 1], &[0, 0, 1, 0, 0, 2], 691_019_969, 9);
        check([0, 0, 1], &[0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1], -112_917_216, 16);
        check([0, 0, 1], &[0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1], 1_299_521_920, 0);
        check([0, 0, 1], &[0, 0, 1, 0, 0, 1, 0, 0, 2, 0, 0, 3], -112_887_423, 3);
        check([0, 0, 2], &[0, 0, 1, 0, 0, 1], 1_578_523_649, 9);
        check([0, 0, 3], &[0, 0, 1, 0, 0, 1], -1_828_939_966, 6);
        check([0, 0, 0xFF], &[0, 0, 0xFE, 0, 0, 0x80], -1_084_076_896, 16);
        check([0, 0, 1], &[], 29_792, 12);
    }

    #[test]
    fn global_annotations_lie_in_bucket_zero() {
        assert_eq!(Salting::EMBEDDED.salt_of(&[0, 0, 0], &[]), Salt(0));
    }

    #[test]
    fn a_salt_is_big_endian_on_its_width() {
        assert_eq!(&*Salting::new(2, 300).unwrap().encode(Salt(258)), &[1, 2]);
        assert_eq!(&*Salting::NONE.encode(Salt(0)), &[] as &[u8]);
    }

    #[test]
    fn impossible_saltings_are_refused() {
        for (width, buckets) in [(9, 20), (1, 0), (1, 257), (2, Salting::BUCKETS_MAX + 1)] {
            let told = Salting::new(width, buckets).unwrap_err().to_string();
            assert!(told.contains(&format!("width {width} with {buckets} buckets")) && told.contains("256"), "{told}");
        }
    }
}
