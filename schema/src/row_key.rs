//! Row keys of the data table.
//!
//! ```text
//! [salt: 0..8][metric UID: 1..8][base time: 4, big-endian seconds]([tagk UID: 1..8][tagv UID: 1..8])+
//! ```
//!
//! Tag pairs are sorted by the bytes of their UIDs, not by their names. A key with a metric of zeros and no tags holds the
//! global annotations of its hour. *Source*: OpenTSDB 2.4 `RowKey`, `IncomingDataPoints.rowKeyTemplate`.

use crate::tsuid::tag_pairs;
use crate::{BaseTime, Error, Result, Salt, Salting, TagPair, Tsuid, Uid, UidWidths, hex};

/// How the data table's keys are laid out. Copied into whatever encodes or decodes keys; it never changes.
///
/// ```
/// use basalt_schema::{BaseTime, KeyLayout, Salting, Tsuid, UidWidths};
/// let layout = KeyLayout { salting: Salting::new(1, 20).unwrap(), widths: UidWidths::default() };
/// let tsuid = Tsuid::parse("000001000001000001", layout.widths).unwrap();
/// let key = layout.series_key(&tsuid).row_key(BaseTime::of_seconds(1_700_000_000));
/// assert_eq!(key, [8, 0, 0, 1, 0x65, 0x53, 0xED, 0xE0, 0, 0, 1, 0, 0, 1]);
/// let decoded = layout.decode(&key).unwrap();
/// assert_eq!((decoded.salt().0, decoded.base().seconds(), decoded.tsuid()), (8, 1_699_999_200, tsuid));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyLayout {
    /// How rows are salted.
    pub salting: Salting,
    /// Widths of UIDs.
    pub widths: UidWidths,
}

impl KeyLayout {
    /// Where the base time begins in a key.
    pub const fn base_offset(&self) -> usize {
        self.salting.width() + self.widths.metric.bytes()
    }

    /// Where the tags begin in a key.
    pub const fn tags_offset(&self) -> usize {
        self.base_offset() + BaseTime::BYTES
    }

    /// Splits a key into its parts. *Cost*: no allocation.
    ///
    /// # Errors
    /// `Corrupt`: too short for salt, metric and base time, or tags that are not whole pairs.
    pub fn decode<'a>(&self, key: &'a [u8]) -> Result<RowKey<'a>> {
        self.split(key).ok_or_else(|| Error::CorruptRowKey { length: key.len(), key: hex::lower(key).into() })
    }

    fn split<'a>(&self, key: &'a [u8]) -> Option<RowKey<'a>> {
        let (salt, rest) = key.split_at_checked(self.salting.width())?;
        let (metric, rest) = rest.split_at_checked(self.widths.metric.bytes())?;
        let (base, tags) = rest.split_first_chunk()?;
        let whole = tags.len().is_multiple_of(self.widths.pair_bytes());
        whole.then_some(RowKey { salt, metric, base: BaseTime::from_be_bytes(*base), tags, widths: self.widths })
    }

    /// The template of a series' keys. Do it once a series, not once a point.
    pub fn series_key(&self, tsuid: &Tsuid) -> SeriesKey {
        let (metric, tags) = tsuid.as_bytes().split_at(self.widths.metric.bytes());
        let salt = self.salting.salt_of(metric, tags);
        let mut template = Vec::with_capacity(self.tags_offset() + tags.len());
        template.extend_from_slice(&self.salting.encode(salt));
        template.extend_from_slice(metric);
        template.extend_from_slice(&BaseTime::default().to_be_bytes());
        template.extend_from_slice(tags);
        let base_offset = u8::try_from(self.base_offset()).unwrap_or(u8::MAX);
        SeriesKey { template: template.into(), base_offset, salt }
    }

    /// The bucket of a series. *Cost*: one multiplication a byte.
    pub fn salt_of(&self, tsuid: &Tsuid) -> Salt {
        let (metric, tags) = tsuid.as_bytes().split_at(self.widths.metric.bytes());
        self.salting.salt_of(metric, tags)
    }

    /// Where a bucket's rows of a metric begin: the key of `base` without tags. A scan from `range_start(b, m, from)` to
    /// `range_start(b, m, to)` has the hours from `from` on up to `to`, without `to` itself.
    pub fn range_start(&self, salt: Salt, metric: Uid, base: BaseTime) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.tags_offset());
        key.extend_from_slice(&self.salting.encode(salt));
        metric.encode_into(self.widths.metric, &mut key);
        key.extend_from_slice(&base.to_be_bytes());
        key
    }

    /// The row of an hour's global annotations.
    pub fn global_annotations_key(&self, base: BaseTime) -> Vec<u8> {
        self.range_start(Salt(0), Uid::ZERO, base)
    }

    /// The bucket numbers: one scanner each.
    pub fn salts(&self) -> impl ExactSizeIterator<Item = Salt> + use<> {
        (0..self.salting.buckets()).map(Salt)
    }
}

/// A row key in its parts, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct RowKey<'a> {
    salt: &'a [u8],
    metric: &'a [u8],
    base: BaseTime,
    tags: &'a [u8],
    widths: UidWidths,
}

impl<'a> RowKey<'a> {
    /// The bucket.
    pub fn salt(&self) -> Salt {
        let number = self.salt.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        Salt(number)
    }

    /// The metric; zero for global annotations.
    pub fn metric(&self) -> Uid {
        Uid::decode(self.metric).unwrap_or_default()
    }

    /// The metric's bytes.
    pub const fn metric_bytes(&self) -> &'a [u8] {
        self.metric
    }

    /// The hour.
    pub const fn base(&self) -> BaseTime {
        self.base
    }

    /// The bytes of the tag pairs.
    pub const fn tags_bytes(&self) -> &'a [u8] {
        self.tags
    }

    /// The tag pairs in the key's order.
    pub fn pairs(&self) -> impl Iterator<Item = TagPair> + use<'a> {
        tag_pairs(self.tags, self.widths)
    }

    /// Whether the row holds global annotations.
    pub fn is_global_annotations(&self) -> bool {
        self.metric.iter().all(|byte| *byte == 0)
    }

    /// The series.
    pub fn tsuid(&self) -> Tsuid {
        Tsuid::from_key_parts(self.metric, self.tags)
    }
}

/// The row keys of one series: all bytes but the four of the base time.
///
/// *Shape*: 24 bytes and the key's own. There is one for each series that writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SeriesKey {
    template: Box<[u8]>,
    salt: Salt,
    base_offset: u8,
}

/// Salt and metric take 8 bytes at most, each.
const _: () = assert!(size_of::<SeriesKey>() == 24);

impl SeriesKey {
    /// The row key of an hour.
    pub fn row_key(&self, base: BaseTime) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.template.len());
        self.encode_into(base, &mut key);
        key
    }

    /// Appends the row key of an hour to `out`. *Cost*: no allocation when `out` has room.
    #[inline]
    pub fn encode_into(&self, base: BaseTime, out: &mut Vec<u8>) {
        let start = out.len() + usize::from(self.base_offset);
        out.extend_from_slice(&self.template);
        if let Some(place) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
            *place = base.to_be_bytes();
        }
    }

    /// Reads both its ends and does nothing with them: whoever is about to encode keys of many series has the memory of all of
    /// them come at the same time.
    #[inline]
    pub fn touch(&self) {
        std::hint::black_box((self.template.first().copied(), self.template.last().copied()));
    }

    /// Bytes of every row key of the series.
    pub const fn bytes_count(&self) -> usize {
        self.template.len()
    }

    /// The bucket of the series.
    pub const fn salt(&self) -> Salt {
        self.salt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UidWidth;
    use proptest::prelude::*;

    #[test]
    fn an_unsalted_key() {
        // S-KEY-BASE
        let layout = KeyLayout { salting: Salting::NONE, widths: UidWidths::default() };
        let tsuid = Tsuid::parse("000001000001000001", layout.widths).unwrap();
        let key = layout.series_key(&tsuid).row_key(BaseTime::of_seconds(1_356_998_400));
        assert_eq!(hex::upper(&key), "00000150E22700000001000001");
        let global = layout.global_annotations_key(BaseTime::of_seconds(1_356_998_400));
        assert_eq!(hex::upper(&global), "00000050E22700");
        assert!(layout.decode(&global).unwrap().is_global_annotations());
    }

    #[test]
    fn keys_that_fit_no_series_are_corrupt() {
        let layout = KeyLayout { salting: Salting::EMBEDDED, widths: UidWidths::default() };
        for length in [0, 1, 7, 9, 13, 15, 19] {
            assert!(layout.decode(&vec![1; length]).is_err(), "{length}");
        }
        assert!(layout.decode(&[1; 8]).is_ok() && layout.decode(&[1; 14]).is_ok());
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            widths in (1u8..=8, 1u8..=8, 1u8..=8),
            salt in 0u8..=8,
            metric in 1u64..256,
            pairs in proptest::collection::vec((1u64..256, 1u64..256), 0..9),
            seconds: u32,
        ) {
            let width = |bytes| UidWidth::new(bytes).unwrap();
            let widths = UidWidths { metric: width(widths.0), tagk: width(widths.1), tagv: width(widths.2) };
            let layout = KeyLayout { salting: Salting::new(salt, 20).unwrap(), widths };
            let mut pairs: Vec<TagPair> =
                pairs.into_iter().map(|(key, value)| TagPair { key: Uid::new(key), value: Uid::new(value) }).collect();
            let tsuid = Tsuid::new(Uid::new(metric), &pairs, widths);
            let series = layout.series_key(&tsuid);
            let base = BaseTime::of_seconds(seconds);
            let key = series.row_key(base);
            prop_assert_eq!(key.len(), series.bytes_count());
            let decoded = layout.decode(&key).unwrap();
            pairs.sort_unstable();
            prop_assert_eq!(decoded.pairs().collect::<Vec<_>>(), pairs);
            prop_assert_eq!((decoded.salt(), decoded.metric(), decoded.base()), (series.salt(), Uid::new(metric), base));
            prop_assert_eq!(decoded.tsuid(), tsuid);
        }
    }
}
