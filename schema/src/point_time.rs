//! When a point was measured: seconds or milliseconds, told apart by size.
//!
//! OpenTSDB has one number for both. It is *milliseconds* exactly when a bit above the low 32 is set, so the smallest
//! millisecond stamp is 4294967296 (19 February 1970) and everything below is seconds.

use crate::{BaseTime, Error, Result};

/// A point's time, with the resolution it was sent in: the resolution chooses the qualifier's width.
///
/// *Bounds*: seconds 0 ..= 4294967295, milliseconds 4294967296 ..= 4294967295999. OpenTSDB takes milliseconds up to
/// 9999999999999 and stores those beyond the year 2106 under a wrapped base time, where no query finds them; here they
/// are refused. *Source*: OpenTSDB 2.4 `Const.SECOND_MASK`, `TSDB.addPointInternal`.
///
/// ```
/// use basalt_schema::PointTime;
/// let second = PointTime::from_number(1_700_000_000).unwrap();
/// let milli = PointTime::from_number(1_700_000_000_000).unwrap();
/// assert_eq!(second.millis(), milli.millis());
/// assert!(milli.is_millis() && !second.is_millis());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PointTime(u64);

impl PointTime {
    /// The smallest number that is read as milliseconds.
    pub const MILLIS_MIN: u64 = 1 << 32;
    /// The largest number of milliseconds whose base time fits into a row key.
    pub const MILLIS_MAX: u64 = u32::MAX as u64 * 1000 + 999;

    /// Reads the number of a put, a query or an annotation. Zero is legal here; the doors refuse it for puts.
    ///
    /// # Errors
    /// `Invalid`: negative, or beyond [`PointTime::MILLIS_MAX`].
    #[inline]
    pub fn from_number(number: i64) -> Result<Self> {
        match u64::try_from(number) {
            Ok(value) if value <= Self::MILLIS_MAX => Ok(Self(value)),
            _ => Err(Error::InvalidTimestamp { timestamp: number }),
        }
    }

    /// Whether the number was sent as milliseconds.
    pub const fn is_millis(self) -> bool {
        self.0 >= Self::MILLIS_MIN
    }

    /// The number as it was sent.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Milliseconds since the epoch, whatever the resolution.
    pub const fn millis(self) -> u64 {
        if self.is_millis() { self.0 } else { self.0 * 1000 }
    }

    /// The hour and the milliseconds into it.
    #[inline]
    pub fn split(self) -> (BaseTime, u32) {
        let seconds = u32::try_from(self.millis() / 1000).unwrap_or(u32::MAX);
        let base = BaseTime::of_seconds(seconds);
        let offset_ms = u32::try_from(self.millis() - base.millis()).unwrap_or(u32::MAX);
        debug_assert!(offset_ms < BaseTime::SPAN_MS, "BUG: {offset_ms} ms into an hour");
        (base, offset_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_33rd_bit_makes_milliseconds() {
        // S-TS-MSRULE
        let check = |number: i64, is_millis: bool, base: u32, offset_ms: u32| {
            let timestamp = PointTime::from_number(number).unwrap();
            assert_eq!(timestamp.is_millis(), is_millis, "{number}");
            let (found, offset) = timestamp.split();
            assert_eq!((found.seconds(), offset), (base, offset_ms), "{number}");
        };
        check(0, false, 0, 0);
        check(1_356_998_400, false, 1_356_998_400, 0);
        check(1_357_001_999, false, 1_356_998_400, 3_599_000);
        check(1_356_998_400_500, true, 1_356_998_400, 500);
        check(4_294_967_295, false, 4_294_965_600, 1_695_000);
        check(4_294_967_296, true, 4_294_800, 167_296);
        check(4_294_967_295_999, true, 4_294_965_600, 1_695_999);
    }

    #[test]
    fn what_no_row_key_can_hold_is_refused() {
        for number in [-1, i64::MIN, 4_294_967_296_000, 9_999_999_999_999, i64::MAX] {
            assert!(PointTime::from_number(number).is_err(), "{number}");
        }
    }
}
