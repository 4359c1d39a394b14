//! Buckets of a calendar: local days of 23 to 25 hours, weeks from Sunday, months and years as they come.
//!
//! A bucket is found by snapping to the start of the enclosing larger unit and stepping from there; later buckets step
//! on from it without snapping again. Milliseconds to hours step by their fixed length, days and longer by the local
//! date. *Source*: OpenTSDB 2.4 `DateTime.previousInterval`, `Calendar.add` of Java.

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveTime, TimeZone, Timelike, Weekday};
use chrono_tz::Tz;

use crate::duration::{Duration, Unit};
use crate::zone::resolve_local;

/// The day a week begins with: the server locale's in OpenTSDB, that of the United States here.
const WEEK_START: Weekday = Weekday::Sun;
/// Days of a week.
const WEEK_DAYS: i64 = 7;
/// Steps from [`Bucket::near`] an instant to the bucket that holds it: days, from the one before the date in UTC to the one after.
const STEPS_MAX: u32 = 3;

/// A bucket of a calendar, and the way to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    duration: Duration,
    zone: Tz,
    start: Start,
}

#[derive(Debug, Clone, Copy)]
enum Start {
    /// An instant; steps are of fixed length.
    Instant(i64),
    /// A local midnight; steps are of the calendar.
    Midnight(NaiveDate),
}

impl Bucket {
    /// The bucket that holds an instant.
    pub(super) fn holding(time_ms: i64, duration: Duration, zone: Tz) -> Self {
        let local =
            zone.timestamp_millis_opt(time_ms).latest().unwrap_or_else(|| DateTime::UNIX_EPOCH.with_timezone(&zone));
        let start = match duration.unit {
            Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour => {
                let base_ms = enclosing_ms(&local, duration);
                Start::Instant(time_ms - (time_ms - base_ms).rem_euclid(duration.millis))
            }
            Unit::Day | Unit::Week | Unit::Month | Unit::Year => {
                Start::Midnight(first_day(local.date_naive(), duration))
            }
        };
        Self { duration, zone, start }
    }

    /// The bucket that holds an instant, stepped to from the one that holds an earlier instant, if there is one to count from.
    pub(super) fn counted(from_ms: Option<i64>, time_ms: i64, duration: Duration, zone: Tz) -> Self {
        let holding = Self::holding(time_ms, duration, zone);
        match (from_ms, holding.start) {
            (None, _) => holding,
            // Days and longer that come one by one are the same wherever they are stepped from.
            (Some(_), Start::Midnight(_)) if duration.count == 1 => holding,
            (Some(from_ms), _) => Self::holding(from_ms, duration, zone).onto(time_ms.max(from_ms)).0,
        }
    }

    /// Its first instant, ms.
    pub(super) fn start_ms(&self) -> i64 {
        match self.start {
            Start::Instant(time_ms) => time_ms,
            Start::Midnight(date) => midnight_ms(self.zone, date),
        }
    }

    /// The bucket that holds an instant not before this one's start, and the one after it. *Cost*: a few steps, however far it is.
    pub(super) fn onto(self, time_ms: i64) -> (Self, Self) {
        if let Start::Instant(start_ms) = self.start {
            let past_ms = time_ms.saturating_sub(start_ms).checked_rem(self.duration.millis).unwrap_or(0);
            let holding = Self { start: Start::Instant(time_ms.saturating_sub(past_ms)), ..self };
            return (holding, holding.next());
        }
        let near = self.near(time_ms);
        let (mut holding, mut next, mut steps) = (near, near.next(), 0);
        while time_ms >= next.start_ms() {
            (holding, next, steps) = (next, next.next(), steps + 1);
            debug_assert!(steps <= STEPS_MAX, "BUG: {steps} steps from {near:?} to {time_ms}");
        }
        (holding, next)
    }

    /// The last bucket on the way to an instant that for sure begins by then in any zone; or this one.
    fn near(self, time_ms: i64) -> Self {
        let (Start::Midnight(date), Some(time)) = (self.start, DateTime::from_timestamp_millis(time_ms)) else {
            return self;
        };
        // Offsets are less than a day: all that begins on the day before, by the date in UTC, or earlier has begun.
        let begun = time.date_naive().pred_opt().unwrap_or(date);
        // Months and years begin on their first day, so its days do not matter.
        let months =
            || i64::from(begun.year() - date.year()) * 12 + i64::from(begun.month0()) - i64::from(date.month0());
        let units = match self.duration.unit {
            Unit::Year => months() / 12,
            Unit::Month => months(),
            Unit::Week => (begun - date).num_days() / WEEK_DAYS,
            _ => (begun - date).num_days(),
        };
        u32::try_from(units / self.duration.count).map_or(self, |steps| self.after(steps))
    }

    /// The bucket after it.
    pub(super) fn next(self) -> Self {
        self.after(1)
    }

    /// The bucket so many steps after it.
    fn after(self, steps: u32) -> Self {
        let count = u32::try_from(self.duration.count).unwrap_or(u32::MAX);
        let months = |per_unit: u32| Months::new(count.saturating_mul(steps).saturating_mul(per_unit));
        let start = match (self.start, self.duration.unit) {
            (Start::Instant(time_ms), _) => {
                Start::Instant(time_ms.saturating_add(self.duration.millis.saturating_mul(steps.into())))
            }
            (Start::Midnight(date), Unit::Month) => {
                Start::Midnight(date.checked_add_months(months(1)).unwrap_or(NaiveDate::MAX))
            }
            (Start::Midnight(date), Unit::Year) => {
                Start::Midnight(date.checked_add_months(months(12)).unwrap_or(NaiveDate::MAX))
            }
            (Start::Midnight(date), unit) => {
                let unit_days = if unit == Unit::Week { WEEK_DAYS.unsigned_abs() } else { 1 };
                let days = u64::from(count).saturating_mul(steps.into()).saturating_mul(unit_days);
                Start::Midnight(date.checked_add_days(Days::new(days)).unwrap_or(NaiveDate::MAX))
            }
        };
        Self { start, ..self }
    }
}

/// The first instant of a day, ms: the earlier of two midnights, the end of the gap where there is none.
fn midnight_ms(zone: Tz, date: NaiveDate) -> i64 {
    // No zone reaches the last day that can be computed with; it stands for "never".
    if date == NaiveDate::MAX {
        i64::MAX
    } else {
        let midnight = date.and_time(NaiveTime::MIN);
        let first = zone.from_local_datetime(&midnight).earliest();
        first.unwrap_or_else(|| resolve_local(zone, midnight)).timestamp_millis()
    }
}

/// Start of the enclosing unit that intervals of a fixed length are counted from: the next larger unit when the
/// interval divides it, else the one above that.
fn enclosing_ms(local: &DateTime<Tz>, duration: Duration) -> i64 {
    let divides = |whole: i64| whole % duration.count == 0;
    let millis_of_second = i64::from(local.timestamp_subsec_millis().min(999));
    let second = i64::from(local.second()) * 1000 + millis_of_second;
    let minute = i64::from(local.minute()) * 60_000 + second;
    let time_ms = local.timestamp_millis();
    let date = local.date_naive();
    match duration.unit {
        Unit::Millisecond if divides(1000) => time_ms - millis_of_second,
        Unit::Second if !divides(60) => time_ms - minute,
        Unit::Millisecond | Unit::Second => time_ms - second,
        Unit::Minute if divides(60) => time_ms - minute,
        Unit::Hour if !divides(24) => midnight_ms(local.timezone(), date.with_day(1).unwrap_or(date)),
        _ => midnight_ms(local.timezone(), date),
    }
}

/// The first day of the bucket that holds `date`.
fn first_day(date: NaiveDate, duration: Duration) -> NaiveDate {
    let new_year = NaiveDate::from_ymd_opt(date.year(), 1, 1).unwrap_or(date);
    match duration.unit {
        Unit::Week => date.week(WEEK_START).checked_first_day().unwrap_or(date),
        Unit::Month => {
            let months = i64::from(date.month0()) / duration.count * duration.count;
            new_year.checked_add_months(Months::new(u32::try_from(months).unwrap_or(0))).unwrap_or(new_year)
        }
        Unit::Year => new_year,
        // A single day is counted from the first of the month, which comes to the same.
        _ => {
            let days = i64::from(date.ordinal0()) / duration.count * duration.count;
            new_year.checked_add_days(Days::new(days.unsigned_abs())).unwrap_or(new_year)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::duration::parse_duration;
    use crate::zone::parse_zone;

    const START_MS: i64 = 1_700_000_000_123;

    fn bucket(interval: &str) -> Bucket {
        Bucket::holding(START_MS, parse_duration(interval).unwrap(), parse_zone("Europe/Berlin").unwrap())
    }

    /// Havana's clock goes from midnight to one in March, and from one to midnight in November.
    #[test]
    fn q_ds_cal_a_day_begins_at_its_first_instant() {
        const SPRING_MS: i64 = 1_710_046_800_000;
        const AUTUMN_MS: i64 = 1_730_606_400_000;
        const HOUR_MS: i64 = 3_600_000;
        let (day, havana) = (parse_duration("1d").unwrap(), parse_zone("America/Havana").unwrap());
        let days = |noon_ms: i64| {
            let first = Bucket::holding(noon_ms, day, havana);
            [first, first.next(), first.next().next()].map(|bucket| bucket.start_ms())
        };
        let spring = [SPRING_MS - 24 * HOUR_MS, SPRING_MS, SPRING_MS + 23 * HOUR_MS];
        assert_eq!(days(SPRING_MS - 12 * HOUR_MS), spring);
        let autumn = [AUTUMN_MS - 24 * HOUR_MS, AUTUMN_MS, AUTUMN_MS + 25 * HOUR_MS];
        assert_eq!(days(AUTUMN_MS - 12 * HOUR_MS), autumn);
    }

    /// An interval of a millisecond would be stepped through for hours.
    #[test]
    fn a_gap_of_years_is_a_few_steps() {
        const DAY_MS: i64 = 24 * 3_600_000;
        let far_ms = START_MS + DAY_MS * 365 * 100;
        let (holding, next) = bucket("1ms").onto(far_ms);
        assert_eq!((holding.start_ms(), next.start_ms()), (far_ms, far_ms + 1));
        for interval in ["2d", "3w", "2n", "3y"] {
            let far_ms = START_MS + DAY_MS * 365 * 200_000;
            let (holding, next) = bucket(interval).onto(far_ms);
            assert!((holding.start_ms()..next.start_ms()).contains(&far_ms), "{interval}");
        }
    }

    /// What [`Bucket::onto`] gives, one bucket after the other, and how many there were.
    fn step_by_step(first: Bucket, time_ms: i64) -> ((Bucket, Bucket), u32) {
        let (mut holding, mut next, mut steps) = (first, first.next(), 0);
        while time_ms >= next.start_ms() {
            (holding, next, steps) = (next, next.next(), steps + 1);
        }
        ((holding, next), steps)
    }

    /// Zones whose days are of 23 to 25 hours, without a midnight, or left out (Apia's 2011-12-30, Kwajalein's 1993-08-21,
    /// Kiritimati's 1994-12-31).
    const ZONES: [&str; 12] = [
        "UTC",
        "Europe/Berlin",
        "America/Havana",
        "America/Santiago",
        "Africa/Cairo",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "Antarctica/Troll",
        "Pacific/Apia",
        "Pacific/Kwajalein",
        "Pacific/Kiritimati",
        "America/Anchorage",
    ];

    proptest! {
        /// Bit for bit, also by the dates of buckets, which begin at one instant where a day is left out.
        #[test]
        fn q_ds_cal_as_step_by_step(
            zone in prop::sample::select(&ZONES[..]),
            unit in prop::sample::select(vec!["s", "m", "h", "d", "w", "n", "y"]),
            count in 1..=40_i64,
            from_ms in prop_oneof![Just(0_i64), 0..3_000_000_000_000_i64],
            gap_days in prop_oneof![0..800_i64, 0..15_000_i64],
            // By the hour and around it, which is where days begin.
            (hours, more_ms) in (0..24_i64, prop_oneof![Just(-1_i64), Just(0), Just(1), 0..3_600_000_i64]),
        ) {
            let duration = parse_duration(&format!("{count}{unit}")).unwrap();
            let first = Bucket::holding(from_ms, duration, parse_zone(zone).unwrap());
            // Those of a fixed length are many.
            let gap_days = if matches!(first.start, Start::Instant(_)) { gap_days % 3 } else { gap_days };
            let time_ms = (from_ms / 3_600_000 + gap_days * 24 + hours) * 3_600_000 + more_ms;
            let time_ms = time_ms.max(first.start_ms());
            let (stepped, _) = step_by_step(first, time_ms);
            prop_assert_eq!(format!("{:?}", first.onto(time_ms)), format!("{stepped:?}"));
            if let Start::Midnight(_) = first.start {
                prop_assert!(step_by_step(first.near(time_ms), time_ms).1 <= STEPS_MAX);
            }
        }

        /// Around days that a zone left out.
        #[test]
        fn q_ds_cal_as_step_by_step_where_a_day_is_left_out(
            (zone, day) in prop::sample::select(vec![
                ("Pacific/Apia", (2011, 12, 30)),
                ("Pacific/Kwajalein", (1993, 8, 21)),
                ("Pacific/Kiritimati", (1994, 12, 31)),
            ]),
            unit in prop::sample::select(vec!["d", "w", "n", "y"]),
            count in 1..=40_i64,
            days_before in 0..500_i64,
            minutes in -5_000..5_000_i64,
            more_ms in prop_oneof![Just(-1_i64), Just(0)],
        ) {
            let noon = NaiveDate::from_ymd_opt(day.0, day.1, day.2).unwrap().and_hms_opt(12, 0, 0).unwrap();
            let time_ms = noon.and_utc().timestamp_millis() + minutes / 30 * 30 * 60_000 + more_ms;
            let duration = parse_duration(&format!("{count}{unit}")).unwrap();
            let first = Bucket::holding(time_ms - days_before * 86_400_000, duration, parse_zone(zone).unwrap());
            let (stepped, _) = step_by_step(first, time_ms);
            prop_assert_eq!(format!("{:?}", first.onto(time_ms)), format!("{stepped:?}"));
        }
    }
}
