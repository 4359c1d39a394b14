//! Histograms: how many measurements fell into each bucket, at one instant of one series.
//!
//! ```text
//! row        the data row of the series and hour
//! qualifier  seconds: 06, 2 bytes of offset in seconds       milliseconds: 06, 4 bytes of offset in ms
//! value      codec's ID: 1 byte, then what the codec writes
//! simple     buckets: 2 bytes, then for each lower bound: 4-byte float, upper bound: 4-byte float, count: varint;
//!            underflow: varint, overflow: varint
//! varint     7 bits a byte, the lowest first, the high bit: more follows; a ninth byte has 8 bits
//! ```
//!
//! *Source*: OpenTSDB 2.4 `SimpleHistogram`, `HistogramCodecManager` (rule S-HISTO); the varint is Kryo's.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::annotation::{remark_column, remark_offset_ms};
use crate::{AnnotationQualifier, BaseTime, ColumnKind, PointTime};

/// Bytes that a simple histogram has at least.
const BYTES_MIN: usize = 6;
/// Bytes of a varint.
const VARINT_BYTES_MAX: usize = 9;

/// The bounds of a bucket, ordered by the lower one and then by the upper one, as Java orders floats.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// From here.
    pub lower: f32,
    /// To here.
    pub upper: f32,
}

impl Ord for Bounds {
    fn cmp(&self, other: &Self) -> Ordering {
        self.lower.total_cmp(&other.lower).then(self.upper.total_cmp(&other.upper))
    }
}

impl PartialOrd for Bounds {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bounds {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Bounds {}

/// A histogram of the simple codec.
///
/// ```
/// use basalt_schema::{Bounds, Histogram};
/// let mut histogram = Histogram::default();
/// histogram.set(Bounds { lower: 0.0, upper: 1.5 }, 12);
/// histogram.set(Bounds { lower: 1.5, upper: 3.5 }, 16);
/// assert_eq!(histogram.percentile(50.0), 2.5);
/// let stored = histogram.encode(42);
/// assert_eq!(stored[..3], [42, 0, 2]);
/// assert_eq!(Histogram::decode(&stored[1..]).unwrap(), histogram);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: BTreeMap<Bounds, i64>,
    /// Measurements below all buckets.
    pub underflow: i64,
    /// Measurements above all buckets.
    pub overflow: i64,
}

/// Why bytes are no simple histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistogramDamage {
    /// Fewer bytes than any has.
    TooShort,
    /// They end within a bucket or a count.
    CutShort,
}

impl Histogram {
    /// The most buckets that the two bytes of their number tell of.
    pub const BUCKETS_MAX: usize = i16::MAX as usize;

    /// Sets the count of a bucket.
    pub fn set(&mut self, bounds: Bounds, count: i64) {
        self.buckets.insert(bounds, count);
    }

    /// How many buckets it has.
    pub fn buckets_count(&self) -> usize {
        self.buckets.len()
    }

    /// The buckets with their counts, in the order of their bounds.
    pub fn buckets(&self) -> impl Iterator<Item = (Bounds, i64)> {
        self.buckets.iter().map(|(bounds, count)| (*bounds, *count))
    }

    /// The count of a bucket; 0 where there is none.
    pub fn count(&self, bounds: Bounds) -> i64 {
        self.buckets.get(&bounds).copied().unwrap_or_default()
    }

    /// Adds another histogram, bucket to bucket. *Cost*: linear in the other's buckets.
    pub fn add(&mut self, other: &Self) {
        for (bounds, count) in &other.buckets {
            let sum = self.buckets.entry(*bounds).or_default();
            *sum = sum.wrapping_add(*count);
        }
        self.underflow = self.underflow.wrapping_add(other.underflow);
        self.overflow = self.overflow.wrapping_add(other.overflow);
    }

    /// The middle of the bucket in which the `wanted` percent of the measurements end; −1 where `wanted` is below 1 or
    /// above 100, 0 where nothing was measured. Counts beyond 32 bits wrap, as they do in OpenTSDB.
    pub fn percentile(&self, wanted: f64) -> f64 {
        if !(1.0..=100.0).contains(&wanted) {
            return -1.0;
        }
        #[expect(clippy::cast_possible_truncation, reason = "as Java's Long.intValue")]
        let narrow = |count: &i64| *count as i32;
        let sum = self.buckets.values().map(narrow).fold(0i32, i32::wrapping_add);
        let mut running = 0i64;
        for (bounds, count) in &self.buckets {
            running = running.wrapping_add(i64::from(narrow(count)));
            #[expect(clippy::cast_precision_loss, reason = "a sum of 32-bit numbers")]
            if running as f64 * 100.0 / f64::from(sum) >= wanted {
                #[expect(clippy::manual_midpoint, reason = "the sum is rounded first, as in OpenTSDB")]
                let middle = (bounds.lower + bounds.upper) / 2.0;
                return f64::from(middle);
            }
        }
        0.0
    }

    /// The cell's value, with the codec's ID in front. Buckets beyond [`Self::BUCKETS_MAX`] have no place in it.
    pub fn encode(&self, id: u8) -> Vec<u8> {
        let count = self.buckets.len().min(Self::BUCKETS_MAX);
        let mut out = Vec::with_capacity(1 + BYTES_MIN + count * 10);
        out.push(id);
        out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
        for (bounds, count) in self.buckets.iter().take(Self::BUCKETS_MAX) {
            out.extend_from_slice(&bounds.lower.to_be_bytes());
            out.extend_from_slice(&bounds.upper.to_be_bytes());
            push_varint(*count, &mut out);
        }
        push_varint(self.underflow, &mut out);
        push_varint(self.overflow, &mut out);
        out
    }

    /// Reads what follows the codec's ID. Bytes after the end are passed over, as in OpenTSDB.
    ///
    /// # Errors
    /// Too few bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, HistogramDamage> {
        // What OpenTSDB calls too short counts the ID where there is one, which cannot be told apart here.
        if bytes.len() < BYTES_MIN - 1 {
            return Err(HistogramDamage::TooShort);
        }
        let mut rest = bytes;
        let mut histogram = Self::default();
        let read = (|| {
            let count = i16::from_be_bytes(take(&mut rest)?);
            for _ in 0..count {
                let lower = f32::from_be_bytes(take(&mut rest)?);
                let upper = f32::from_be_bytes(take(&mut rest)?);
                let count = take_varint(&mut rest)?;
                histogram.set(Bounds { lower, upper }, count);
            }
            histogram.underflow = take_varint(&mut rest)?;
            histogram.overflow = take_varint(&mut rest)?;
            Some(())
        })();
        read.map(|()| histogram).ok_or(HistogramDamage::CutShort)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}

fn push_varint(value: i64, out: &mut Vec<u8>) {
    let mut left = value.cast_unsigned();
    for _ in 1..VARINT_BYTES_MAX {
        let [low, ..] = left.to_le_bytes();
        left >>= 7;
        if left == 0 {
            out.push(low & 0x7F);
            return;
        }
        out.push(low | 0x80);
    }
    let [low, ..] = left.to_le_bytes();
    out.push(low);
}

fn take_varint(rest: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..).step_by(7).take(VARINT_BYTES_MAX - 1) {
        let [byte] = take(rest)?;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value.cast_signed());
        }
    }
    let [byte] = take(rest)?;
    Some((value | u64::from(byte) << (7 * (VARINT_BYTES_MAX - 1))).cast_signed())
}

/// The row's hour and the qualifier of a histogram at `time`. A millisecond stamp that is a whole second is stored as
/// seconds.
pub fn histogram_column(time: PointTime) -> (BaseTime, AnnotationQualifier) {
    remark_column(ColumnKind::HISTOGRAM, time)
}

/// Milliseconds into the row of a histogram; `None` if the qualifier is none of a histogram.
pub fn histogram_offset_ms(qualifier: &[u8]) -> Option<u32> {
    remark_offset_ms(ColumnKind::HISTOGRAM, qualifier)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(buckets: &[(f32, f32, i64)]) -> Histogram {
        let mut histogram = Histogram::default();
        for (lower, upper, count) in buckets {
            histogram.set(Bounds { lower: *lower, upper: *upper }, *count);
        }
        histogram
    }

    /// S-HISTO: the cell of section 14 of the dump.
    #[test]
    fn s_histo_the_cell_is_the_servers_byte_for_byte() {
        let mut histogram = of(&[(1.75, 3.5, 16), (0.0, 1.75, 12)]);
        histogram.overflow = 1;
        let dump = include_str!("../../tests/golden/raw-rows.txt");
        let cell = format!("t 060320 {}", crate::hex::lower(&histogram.encode(42)));
        assert!(dump.lines().any(|line| line.ends_with(&cell)), "{cell}");
        let (base, qualifier) = histogram_column(PointTime::from_number(1_700_000_000_000).unwrap());
        assert_eq!((base.seconds(), &*qualifier), (1_699_999_200, &[6, 3, 0x20][..]));
        assert_eq!(histogram_offset_ms(&qualifier), Some(800_000));
        assert_eq!(histogram_offset_ms(&[1, 3, 0x20]), None);
    }

    #[test]
    fn s_histo_percentiles_are_the_middles_of_buckets() {
        let histogram = of(&[(0.0, 1.0, 10), (1.0, 2.0, 80), (2.0, 5.0, 10)]);
        for (wanted, value) in
            [(0.9, -1.0), (1.0, 0.5), (10.0, 0.5), (10.1, 1.5), (90.0, 1.5), (99.9, 3.5), (100.0, 3.5)]
        {
            assert!((histogram.percentile(wanted) - value).abs() < f64::EPSILON, "{wanted}");
        }
        assert!(histogram.percentile(100.1) < 0.0 && histogram.percentile(f64::NAN) < 0.0);
        assert!(
            of(&[]).percentile(50.0).abs() < f64::EPSILON && of(&[(0.0, 1.0, 0)]).percentile(50.0).abs() < f64::EPSILON
        );
    }

    #[test]
    fn s_histo_sums_go_bucket_to_bucket() {
        let mut sum = of(&[(0.0, 1.0, 1), (1.0, 2.0, 2)]);
        let mut other = of(&[(1.0, 2.0, 5), (2.0, 3.0, 7)]);
        (other.underflow, other.overflow) = (3, 4);
        sum.add(&other);
        assert_eq!(sum.buckets().map(|(_, count)| count).collect::<Vec<_>>(), [1, 7, 7]);
        assert_eq!((sum.underflow, sum.overflow), (3, 4));
    }

    #[test]
    fn s_histo_bytes_that_are_none_are_told() {
        assert_eq!(Histogram::decode(&[0, 1, 0]), Err(HistogramDamage::TooShort));
        assert_eq!(Histogram::decode(&[0, 1, 0, 0, 0, 0, 0, 0]), Err(HistogramDamage::CutShort));
        assert_eq!(Histogram::decode(&[0, 0, 0x80, 0x80, 0x80]), Err(HistogramDamage::CutShort));
        assert_eq!(Histogram::decode(&[0, 0, 1, 2, 0]).map(|h| (h.underflow, h.overflow)), Ok((1, 2)));
        assert_eq!(Histogram::decode(&[0xFF, 0xFF, 1, 2, 0]).map(|h| h.buckets_count()), Ok(0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn s_histo_what_is_written_is_read(
            buckets in proptest::collection::vec((any::<f32>(), any::<f32>(), any::<i64>()), 0..20),
            ends in any::<(i64, i64)>(),
        ) {
            let mut histogram = of(&buckets);
            (histogram.underflow, histogram.overflow) = ends;
            prop_assert_eq!(Histogram::decode(&histogram.encode(7)[1..]), Ok(histogram));
        }

        #[test]
        fn s_histo_any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(histogram) = Histogram::decode(&bytes) {
                let _middle = histogram.percentile(50.0);
            }
        }
    }
}
