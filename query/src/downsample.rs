//! Downsampling: many points of one series become one a bucket.
//!
//! Buckets are aligned to the epoch (weeks begin on Thursday), or follow a calendar, or are the whole range (`0all`). A
//! bucket's stamp is its start and its value always a double. *Source*: OpenTSDB 2.4 `DownsamplingSpecification`,
//! `Downsampler`, `FillingDownsampler`.

mod bucket_value;
mod calendar;
mod hours;
mod kernel;
mod rollups;
mod row;

use calendar::Bucket;
use chrono_tz::Tz;

pub(crate) use kernel::{begins_at_multiples, buckets, buckets_len, downsample, filled, grid_len, of_doubles};
pub(crate) use rollups::downsample_rollups;
pub(crate) use row::RowDownsample;

use crate::duration::{Duration, parse_duration, parse_duration_as};
use crate::error::DownsampleFault;
use crate::{Aggregator, Compat, Error, Result};

/// Counts beyond this are no calendar interval; it keeps dates within the range that can be computed with.
const CALENDAR_COUNT_MAX: i64 = 100_000;

/// A checked downsampling specifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Downsample {
    /// The buckets.
    pub interval: Interval,
    /// What makes one value of a bucket's many; never `none`.
    pub function: Aggregator,
    /// What an empty bucket holds.
    pub fill: Fill,
}

/// How time is cut into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// The whole range is one bucket: start in, end out.
    All,
    /// Buckets of this many ms from the epoch on, 1 or more.
    Fixed(i64),
    /// Buckets of a calendar.
    Calendar {
        /// How long; its fixed length widens the scan.
        duration: Duration,
        /// Where.
        zone: Tz,
        /// Whether buckets are told apart as OpenTSDB does: each series' from its first point on, those of a fill up to where the
        /// widened scan ends. Else from the scan's start on for all, up to the bucket that holds the end.
        is_strict: bool,
    },
}

/// What an empty bucket holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fill {
    /// No point: other series are interpolated there.
    #[default]
    None,
    /// NaN, written as `"NaN"`.
    Nan,
    /// NaN, written as `null`.
    Null,
    /// Zero.
    Zero,
}

impl Downsample {
    /// Reads `<n><unit>[c]-<function>[-<fill>]` or `0all-<function>`; strictly a unit is known by its last letter, but for
    /// a calendar.
    ///
    /// # Errors
    /// `Invalid`: too few or too many parts, or one that nobody knows.
    pub fn parse(text: &str, zone: Tz, use_calendar: bool, compat: Compat) -> Result<Self> {
        let fault = |fault| Error::Downsample { text: text.into(), fault };
        // Java's split forgets empty parts at the end.
        let parts: Vec<&str> = text.trim_end_matches('-').split('-').collect();
        let (interval, function, fill) = match *parts.as_slice() {
            [interval, function] => (interval, function, None),
            [interval, function, fill] => (interval, function, Some(fill)),
            [] | [_] => return Err(fault(DownsampleFault::TooFewParts)),
            _ => return Err(fault(DownsampleFault::TooManyParts)),
        };
        let interval = if interval.contains("all") {
            Interval::All
        } else {
            let (length, has_suffix) = interval.strip_suffix('c').map_or((interval, false), |length| (length, true));
            let is_calendar = has_suffix || use_calendar;
            let duration = parse_duration_as(length, compat)?;
            if is_calendar && parse_duration(length).is_err() {
                return Err(fault(DownsampleFault::CalendarCount(count_text(length).into())));
            }
            match is_calendar {
                false => Interval::Fixed(duration.millis),
                true if duration.count > CALENDAR_COUNT_MAX => return Err(fault(DownsampleFault::CalendarInterval)),
                true => Interval::Calendar { duration, zone, is_strict: compat.strict },
            }
        };
        let function = match Aggregator::by_name(function) {
            Some(Aggregator::None) => return Err(fault(DownsampleFault::None)),
            Some(function) => function,
            None => return Err(fault(DownsampleFault::Function(function.into()))),
        };
        let fill = match fill.map(str::to_ascii_lowercase).as_deref() {
            None | Some("none") => Fill::None,
            Some("nan") => Fill::Nan,
            Some("null") => Fill::Null,
            Some("zero") => Fill::Zero,
            Some("scalar") => return Err(fault(DownsampleFault::Scalar)),
            Some(_) => return Err(fault(DownsampleFault::Fill(fill.unwrap_or_default().into()))),
        };
        Ok(Self { interval, function, fill })
    }

    /// The start of the bucket that holds an instant, ms, those of a calendar counted from an earlier instant; the instant itself
    /// where the whole range is one.
    pub(crate) fn bucket_start_ms(&self, from_ms: i64, time_ms: i64) -> i64 {
        match self.interval {
            Interval::All => time_ms,
            Interval::Fixed(millis) => time_ms - time_ms.rem_euclid(millis),
            Interval::Calendar { duration, zone, .. } => {
                Bucket::counted(Some(from_ms), time_ms, duration, zone).start_ms()
            }
        }
    }

    /// The fixed length by which a scan is widened, ms; 0 for the whole range.
    pub(crate) fn fixed_ms(&self) -> i64 {
        match self.interval {
            Interval::All => 0,
            Interval::Fixed(millis) => millis,
            Interval::Calendar { duration, .. } => duration.millis,
        }
    }
}

/// What OpenTSDB takes for the count of a calendar's units: all but the unit.
fn count_text(length: &str) -> &str {
    length.strip_suffix("ms").or_else(|| length.get(..length.len().checked_sub(1)?)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
