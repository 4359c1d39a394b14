//! Where an axis has its marks: round numbers of values, round moments of time, powers of ten.

use chrono::{
    DateTime, Datelike as _, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeZone as _, Timelike as _,
};
use chrono_tz::Tz;

/// Most marks of an axis, whatever is asked.
const MARKS_MAX: usize = 200;

/// An axis of values: what it spans, and where its marks are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) log: bool,
    pub(crate) marks: Vec<f64>,
}

impl Scale {
    /// An axis over values from `low` to `high`, with room for `count` marks. Ends that are `fixed` stay as they are, the
    /// others move out to a mark.
    pub(crate) fn new((low, high): (f64, f64), fixed: (Option<f64>, Option<f64>), log: bool, count: usize) -> Self {
        let (mut low, mut high) = (fixed.0.unwrap_or(low), fixed.1.unwrap_or(high));
        if log {
            return Self::powers(low, high, fixed);
        }
        if low > high {
            // One end was given beyond all values.
            if fixed.0.is_some() { high = low + 1.0 } else { low = high - 1.0 }
        }
        if (high - low).abs() <= f64::EPSILON * high.abs().max(low.abs()) {
            let room = if low.abs() < f64::MIN_POSITIVE { 1.0 } else { low.abs() * 0.1 };
            low = fixed.0.unwrap_or(low - room);
            high = fixed.1.unwrap_or(high + room).max(low + room);
        }
        let count = f64_of(count.clamp(2, MARKS_MAX));
        let step = round_step(high / count - low / count);
        if fixed.0.is_none() {
            low = ((low / step).floor() * step).max(f64::MIN);
        }
        if fixed.1.is_none() {
            high = ((high / step).ceil() * step).min(f64::MAX);
        }
        let first = (low / step - 1e-9).ceil();
        let marks = (0..=MARKS_MAX).map(|place| (first + f64_of(place)) * step);
        let marks = marks.take_while(|mark| *mark <= (high + step * 1e-9).min(f64::MAX));
        // Steps that are no binary fractions would make 0 a 1e-17.
        let marks = marks.map(|mark| if mark.abs() < step * 1e-6 { 0.0 } else { mark }).collect();
        Self { low, high, log, marks }
    }

    /// Powers of ten, and twice and five times them where there are few. What is not above zero has no place.
    fn powers(low: f64, high: f64, fixed: (Option<f64>, Option<f64>)) -> Self {
        let fixed_low = fixed.0.filter(|low| *low > 0.0);
        // One end may be given beyond all values.
        let high = if high > 0.0 { high } else { 10.0 }.max(fixed_low.map_or(0.0, |low| (low * 10.0).min(f64::MAX)));
        let low = if low > 0.0 && low < high { low } else { high / 1_000.0 };
        let (first, last) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
        let low = fixed_low.unwrap_or(10_f64.powf(first));
        let high = fixed.1.filter(|high| *high > low).unwrap_or(10_f64.powf(last).min(f64::MAX));
        let decades = last - first;
        let steps: &[f64] = if decades <= 4.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = (decades / 12.0).ceil().max(1.0);
        let powers = (0..=MARKS_MAX).map(|place| first + f64_of(place) * every).take_while(|power| *power <= last);
        let marks = powers.flat_map(|power| steps.iter().map(move |step| step * 10_f64.powf(power)));
        let marks = marks.filter(|mark| (low..=high).contains(mark)).take(MARKS_MAX).collect();
        Self { low, high, log: true, marks }
    }

    /// Where a value lies, from 0 at the low end to 1 at the high one. `None`: nowhere on this axis.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let place = if self.log {
            (value > 0.0).then(|| (value.log10() - self.low.log10()) / (self.high.log10() - self.low.log10()))?
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.is_finite().then_some(place)
    }
}

fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let of = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| rough <= step * power * (1.0 + 1e-9)).unwrap_or(10.0);
    of * power
}

#[expect(clippy::cast_precision_loss, reason = "counts of marks and pixels are far below 2^52")]
pub(crate) fn f64_of(count: usize) -> f64 {
    count as f64
}

/// Seconds between marks that fall on round moments within a day.
const STEPS_S: &[i64] = &[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200];

/// Round moments of clocks in `zone` from `start_s` to `end_s`, at most about `count`.
pub(crate) fn moments(start_s: i64, end_s: i64, zone: Tz, count: usize) -> Vec<i64> {
    let range = (end_s - start_s).max(1);
    let rough = (range / i64::try_from(count.clamp(1, MARKS_MAX)).unwrap_or(1)).max(1);
    let begin = match zone.timestamp_opt(start_s, 0).earliest() {
        Some(time) => DateTime::naive_local(&time),
        None => return Vec::new(),
    };
    let midnight = begin.date().and_time(NaiveTime::MIN);
    let mut moments = Vec::new();
    let mut take = |time: NaiveDateTime| {
        // An hour that clocks skip has no moment.
        if let Some(moment) = zone.from_local_datetime(&time).earliest().map(|time| time.timestamp())
            && (start_s..=end_s).contains(&moment)
            && moments.last().is_none_or(|last| *last < moment)
        {
            moments.push(moment);
        }
    };
    if let Some(step) = STEPS_S.iter().find(|step| **step >= rough) {
        let mut seconds = i64::from(begin.num_seconds_from_midnight()) / step * step;
        for _ in 0..=MARKS_MAX {
            let Some(time) = midnight.checked_add_signed(chrono::TimeDelta::seconds(seconds)) else { break };
            take(time);
            seconds += step;
        }
        return moments;
    }
    let days = rough.unsigned_abs().div_ceil(86_400);
    let mut date = begin.date();
    for _ in 0..=MARKS_MAX {
        take(date.and_time(NaiveTime::MIN));
        let next = match days {
            ..=15 => {
                date.checked_add_days(Days::new([1, 2, 7, 14].into_iter().find(|step| *step >= days).unwrap_or(15)))
            }
            16..=180 => months_on(date, [1, 2, 3].into_iter().find(|step| u64::from(*step) * 31 >= days).unwrap_or(6)),
            _ => NaiveDate::from_ymd_opt(
                date.year().saturating_add(i32::try_from(days.div_ceil(366)).unwrap_or(i32::MAX)),
                1,
                1,
            ),
        };
        match next {
            Some(next) => date = next,
            None => break,
        }
    }
    moments
}

/// The first of the month that is so many months after the month of `date`.
fn months_on(date: NaiveDate, months: u32) -> Option<NaiveDate> {
    date.with_day(1)?.checked_add_months(Months::new(months))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(range: (f64, f64), fixed: (Option<f64>, Option<f64>), log: bool, ends: (f64, f64), marks: &[f64]) {
        let scale = Scale::new(range, fixed, log, 5);
        let close = |left: f64, right: f64| (left - right).abs() <= 1e-9 * right.abs().max(1.0);
        assert!(close(scale.low, ends.0) && close(scale.high, ends.1), "{scale:?}");
        assert_eq!(scale.marks.len(), marks.len(), "{scale:?}");
        assert!(scale.marks.iter().zip(marks).all(|(found, expected)| close(*found, *expected)), "{scale:?}");
    }

    /// `O-Q-PNG`.
    #[test]
    fn o_q_png_marks_are_round_numbers() {
        let free = (None, None);
        check((0.3, 9.7), free, false, (0.0, 10.0), &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        check((-0.1, 0.4), free, false, (-0.1, 0.4), &[-0.1, 0.0, 0.1, 0.2, 0.3, 0.4]);
        check((5.0, 5.0), free, false, (4.4, 5.6), &[4.4, 4.6, 4.8, 5.0, 5.2, 5.4, 5.6]);
        check((0.0, 0.0), free, false, (-1.0, 1.0), &[-1.0, -0.5, 0.0, 0.5, 1.0]);
        check((3.0, 9.0), (Some(0.0), Some(8.5)), false, (0.0, 8.5), &[0.0, 2.0, 4.0, 6.0, 8.0]);
        check((3.0, 9.0), (Some(20.0), None), false, (20.0, 21.0), &[20.0, 20.2, 20.4, 20.6, 20.8, 21.0]);
        check(
            (3.0, 900.0),
            free,
            true,
            (1.0, 1_000.0),
            &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0],
        );
        check((1.0, 100.0), (Some(1_000.0), None), true, (1_000.0, 10_000.0), &[1_000.0, 2_000.0, 5_000.0, 10_000.0]);
        check((-5.0, -1.0), free, true, (0.01, 10.0), &[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]);
    }

    /// `O-Q-PNG`: an axis ends, and its marks are within it, wherever its ends are.
    #[test]
    fn o_q_png_absurd_ends_have_few_marks() {
        let ends =
            [f64::MIN, -1e307, -1.0, -f64::MIN_POSITIVE, 0.0, 5e-324, 1e-300, 1.0, 1.7e307, 2e307, 3e307, f64::MAX];
        let fixed = || ends.iter().copied().map(Some).chain([None]);
        let ranges = [(0.0, 10.0), (f64::MIN, f64::MAX), (5e-324, 1e-323)];
        for (low, high) in fixed().flat_map(|low| fixed().map(move |high| (low, high))) {
            for (range, log) in ranges.into_iter().flat_map(|range| [(range, false), (range, true)]) {
                let scale = Scale::new(range, (low, high), log, 5);
                assert!(scale.marks.len() <= MARKS_MAX + 1, "{low:?} {high:?} {range:?} {log}");
                assert!(scale.marks.iter().all(|mark| mark.is_finite()), "{low:?} {high:?} {range:?} {log}: {scale:?}");
            }
        }
    }

    /// `O-Q-PNG`: days begin where clocks strike midnight, summer time or not.
    #[test]
    fn o_q_png_moments_are_those_of_clocks() {
        let start = 1_700_000_000;
        assert_eq!(moments(start, start + 60, Tz::UTC, 4), [start + 10, start + 25, start + 40, start + 55]);
        let days = moments(1_711_750_000, 1_711_750_000 + 3 * 86_400, Tz::Europe__Rome, 3);
        assert_eq!(days, [1_711_753_200, 1_711_839_600, 1_711_922_400, 1_712_008_800], "one of them has 23 hours");
        let years = moments(0, 1_700_000_000, Tz::UTC, 6);
        assert!((3..=7).contains(&years.len()) && years.iter().all(|time| time % 86_400 == 0), "{years:?}");
        let months = moments(1_672_531_200, 1_688_169_600, Tz::UTC, 7);
        assert_eq!(
            months,
            [1_672_531_200, 1_675_209_600, 1_677_628_800, 1_680_307_200, 1_682_899_200, 1_685_577_600, 1_688_169_600]
        );
        assert_eq!(moments(0, 0, Tz::UTC, 5), [0]);
    }
}
