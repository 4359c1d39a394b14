//! The window of a query: what is asked, and the whole hours that are read for it.
//!
//! The scan reaches from `start` down to its downsample interval and then to the hour, and from `end` up to the next
//! interval and then to the next hour, always beyond `end`. Every point of that window takes part in downsampling,
//! rates and interpolation; only stamps of `start..=end` are answered. *Source*: OpenTSDB 2.4
//! `TsdbQuery.getScanStartTimeSeconds`, `getScanEndTimeSeconds`.

use std::ops::RangeInclusive;

/// Seconds of a row.
const HOUR_S: i64 = 3600;
/// The hour after the last that a row key can hold.
const SCAN_END_S_MAX: i64 = (u32::MAX as i64 / HOUR_S + 1) * HOUR_S;

/// A query's times in ms.
#[expect(clippy::struct_field_names, reason = "the unit is part of the name")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// First instant answered.
    pub(crate) start_ms: i64,
    /// Last instant answered.
    pub(crate) end_ms: i64,
    /// First instant read; a whole hour.
    pub(crate) scan_start_ms: i64,
    /// First instant that no group holds; a whole hour.
    pub(crate) scan_end_ms: i64,
    /// First instant not read: `scan_end_ms`, or an hour after it.
    pub(crate) read_end_ms: i64,
    /// Where buckets of a calendar are counted from; `None`: from where the scan begins.
    pub(crate) buckets_from_ms: Option<i64>,
}

impl Window {
    /// The window of a range, downsampled by a fixed length of `interval_ms` (0: not).
    pub(crate) fn new(start_ms: i64, end_ms: i64, interval_ms: i64) -> Self {
        let start_s = start_ms / 1000;
        let past_ms = if interval_ms > 0 { (start_s * 1000) % interval_ms } else { 0 };
        let scan_start_s = floor_hour(start_s - past_ms / 1000).max(0);
        // OpenTSDB rounds the end up by a second even when it is whole.
        let end_s = end_ms / 1000 + 1;
        let scan_end_s = if interval_ms > 0 {
            let past_ms = (end_s * 1000) % interval_ms;
            let aligned_s = end_s.saturating_add((interval_ms - past_ms) / 1000);
            if aligned_s % HOUR_S == 0 { aligned_s } else { floor_hour(aligned_s).saturating_add(HOUR_S) }
        } else {
            floor_hour(end_s) + HOUR_S
        };
        Self {
            start_ms,
            end_ms,
            scan_start_ms: scan_start_s.min(SCAN_END_S_MAX) * 1000,
            scan_end_ms: scan_end_s.min(SCAN_END_S_MAX) * 1000,
            read_end_ms: scan_end_s.min(SCAN_END_S_MAX) * 1000,
            buckets_from_ms: None,
        }
    }

    /// The window of the same range, downsampled by another fixed length of `interval_ms`.
    pub(crate) fn downsampled_by(self, interval_ms: i64) -> Self {
        let window = Self::new(self.start_ms, self.end_ms, interval_ms);
        if self.read_end_ms > self.scan_end_ms { window.with_row_after() } else { window }
    }

    /// The stamps that are answered: those asked for, or of all rows read.
    pub(crate) fn answered(&self, whole_window: bool) -> RangeInclusive<i64> {
        if whole_window { self.scan_start_ms..=self.scan_end_ms } else { self.start_ms..=self.end_ms }
    }

    /// The window with one more hour read at its end, as OpenTSDB reads where tags are explicit: the stop key of its
    /// fuzzy scan ends in the highest tag values and so takes in the row it should stop before. A series with older
    /// points too is interpolated towards those of that hour. *Source*: `QueryUtil.setDataTableScanFilter`.
    pub(crate) fn with_row_after(self) -> Self {
        Self { read_end_ms: (self.scan_end_ms + HOUR_S * 1000).min(SCAN_END_S_MAX * 1000), ..self }
    }
}

fn floor_hour(seconds: i64) -> i64 {
    seconds - seconds.rem_euclid(HOUR_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start_s: i64, end_s: i64, interval_ms: i64, scan: (i64, i64)) {
        let window = Window::new(start_s * 1000, end_s * 1000, interval_ms);
        assert_eq!(
            (window.scan_start_ms / 1000, window.scan_end_ms / 1000),
            scan,
            "{start_s}..{end_s} by {interval_ms}"
        );
    }

    #[test]
    fn q_trim_the_scan_is_of_whole_hours() {
        const HOUR: i64 = 1_356_998_400;
        check(HOUR, HOUR + 10, 0, (HOUR, HOUR + 3600));
        check(HOUR + 10, HOUR + 3599, 0, (HOUR, HOUR + 7200));
        check(HOUR, HOUR + 3600, 0, (HOUR, HOUR + 7200));
        check(HOUR, HOUR + 3598, 0, (HOUR, HOUR + 3600));
        check(HOUR + 10, HOUR + 20, 60_000, (HOUR, HOUR + 3600));
        check(HOUR + 7300, HOUR + 7400, 7_200_000, (HOUR + 7200, HOUR + 14_400));
        check(HOUR + 3600, HOUR + 3700, 86_400_000, (HOUR, HOUR + 86_400));
        // Seven minutes do not tile an hour.
        check(HOUR, HOUR + 60, 420_000, (HOUR - 3600, HOUR + 3600));
        check(0, 1, 0, (0, 3600));
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        let window = Window::new(9_999_999_999_000, 9_999_999_999_999, 0);
        assert_eq!((window.scan_start_ms, window.scan_end_ms), (window.scan_end_ms, SCAN_END_S_MAX * 1000));
        assert_eq!(Window::new(1, 9_999_999_999_999, i64::MAX).scan_end_ms, SCAN_END_S_MAX * 1000);
    }
}
