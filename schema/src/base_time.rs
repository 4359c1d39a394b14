//! The base time of a row: the hour a data row holds.
//!
//! Every data row spans 3600 s, whatever the resolution of its points. The base time is written into the row key as
//! four big-endian bytes because their order is the order of time.

use std::fmt;

/// Start of a data row's hour, in seconds since the epoch; always a multiple of [`BaseTime::SPAN_S`].
///
/// *Source*: OpenTSDB 2.4 `Const.MAX_TIMESPAN`, `IncomingDataPoints.baseTime`.
///
/// ```
/// use basalt_schema::BaseTime;
/// assert_eq!(BaseTime::of_seconds(1_700_000_000).seconds(), 1_699_999_200);
/// assert_eq!(BaseTime::of_seconds(1_700_000_000).to_be_bytes(), [0x65, 0x53, 0xED, 0xE0]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BaseTime(u32);

impl BaseTime {
    /// Seconds in a data row.
    pub const SPAN_S: u32 = 3600;
    /// Milliseconds in a data row.
    pub const SPAN_MS: u32 = Self::SPAN_S * 1000;
    /// Bytes of a base time in a row key.
    pub const BYTES: usize = 4;

    /// The hour that holds `seconds`.
    pub const fn of_seconds(seconds: u32) -> Self {
        Self(seconds - seconds % Self::SPAN_S)
    }

    /// Seconds since the epoch.
    pub const fn seconds(self) -> u32 {
        self.0
    }

    /// Milliseconds since the epoch.
    pub const fn millis(self) -> u64 {
        self.0 as u64 * 1000
    }

    /// The hour after this one, or `None` at the end of time (the year 2106).
    pub const fn next(self) -> Option<Self> {
        match self.0.checked_add(Self::SPAN_S) {
            Some(seconds) => Some(Self(seconds)),
            None => None,
        }
    }

    /// As it stands in a row key.
    pub const fn to_be_bytes(self) -> [u8; Self::BYTES] {
        self.0.to_be_bytes()
    }

    /// Reads a base time of a row key. Bytes that are no multiple of an hour are taken as they stand: rollup tables
    /// and foreign writers have such rows, and a reader must find their points where they are.
    pub const fn from_be_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(u32::from_be_bytes(bytes))
    }
}

impl fmt::Debug for BaseTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseTime({})", self.0)
    }
}

impl fmt::Display for BaseTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_starts_at_its_first_second() {
        // S-KEY-BASE
        for (seconds, base) in [(0, 0), (3599, 0), (3600, 3600), (1_357_001_999, 1_356_998_400)] {
            assert_eq!(BaseTime::of_seconds(seconds).seconds(), base);
        }
        assert_eq!(BaseTime::of_seconds(u32::MAX).seconds(), 4_294_965_600);
        assert_eq!(BaseTime::of_seconds(u32::MAX).next(), None);
    }
}
