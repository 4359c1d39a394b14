//! How long things take, since the process began.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;

/// Durations in microseconds, from 1 µs to an hour at two digits.
///
/// The lock guards the histogram for one record or one look; nothing else is locked under it.
#[derive(Debug)]
pub(crate) struct Latency(Mutex<Histogram<u64>>);

/// The longest duration a histogram keeps; longer ones count as this.
const LATENCY_US_MAX: u64 = 3_600_000_000;

impl Default for Latency {
    #[expect(clippy::expect_used, reason = "constant bounds: 1 ≤ low, 2·low ≤ high, digits ≤ 5")]
    fn default() -> Self {
        Self(Mutex::new(Histogram::new_with_bounds(1, LATENCY_US_MAX, 2).expect("BUG: constant bounds")))
    }
}

impl Latency {
    pub(crate) fn record(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(LATENCY_US_MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(us.clamp(1, LATENCY_US_MAX));
    }

    /// Durations recorded, and the one below which `quantile` of them lie, in microseconds.
    pub(crate) fn read(&self, quantile: f64) -> (u64, u64) {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (histogram.len(), histogram.value_at_quantile(quantile))
    }

    /// What was recorded so far, bucket by bucket.
    ///
    /// *Cost*: a copy of 26 KiB with the lock held, then a walk over it without, as that takes twenty times as long or more.
    /// A record knows no buckets, so that it costs no more.
    pub(super) fn look(&self) -> Look {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut look = Look::default();
        for step in histogram.iter_recorded() {
            let (us, count) = (step.value_iterated_to(), step.count_since_last_iteration());
            look.add(histogram.lowest_equivalent(us), histogram.median_equivalent(us), count);
        }
        look
    }
}

/// Upper bounds of the buckets in microseconds. They must not change from one scrape to the next, so they are the same for
/// all that is timed.
const BUCKETS_US: [u64; 18] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

const _: () = assert!(matches!(BUCKETS_US, [.., last] if last < LATENCY_US_MAX));

/// What a [`Latency`] held at one moment: count, sum and buckets are of the same durations, and none of them ever falls.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Durations within each of [`BUCKETS_US`] and in no lower one. At two digits: up to 0.8 % above a bound counts as within.
    within: [u64; BUCKETS_US.len()],
    /// All durations, those beyond the last bound too.
    pub(super) count: u64,
    sum_us: u64,
}

impl Look {
    /// Adds durations that differ by less than the digits kept: the least of them, and what to take for each.
    fn add(&mut self, lowest_us: u64, median_us: u64, count: u64) {
        let bucket = BUCKETS_US.partition_point(|bound| *bound < lowest_us);
        if let Some(within) = self.within.get_mut(bucket) {
            *within += count;
        }
        self.count += count;
        self.sum_us = self.sum_us.saturating_add(median_us.saturating_mul(count));
    }

    /// The sum at two digits.
    pub(super) fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }

    /// Each bound, and how many durations are at most that long.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let counts = self.within.iter().scan(0, |so_far, within| {
            *so_far += within;
            Some(*so_far)
        });
        BUCKETS_US.map(Duration::from_micros).into_iter().zip(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_out_of_bounds_is_kept_at_the_bound() {
        let latency = Latency::default();
        latency.record(Duration::ZERO);
        latency.record(Duration::from_secs(1_000_000));
        assert_eq!(latency.read(1.0).0, 2);
        assert!(latency.read(1.0).1 >= LATENCY_US_MAX);
        let look = latency.look();
        assert_eq!(look.buckets().map(|(_, count)| count).collect::<Vec<_>>(), [1; BUCKETS_US.len()]);
        assert_eq!(look.count, 2);
    }

    /// A bound is within its bucket, what is a hundredth longer is not.
    #[test]
    fn a_bucket_has_all_up_to_its_bound() {
        let latency = Latency::default();
        for us in BUCKETS_US {
            latency.record(Duration::from_micros(us));
            latency.record(Duration::from_micros(us + us.div_ceil(100)));
        }
        let look = latency.look();
        for (at, (bound, count)) in (0..).zip(look.buckets()) {
            assert_eq!(count, 2 * at + 1, "{bound:?}");
        }
        assert_eq!(look.count, 2 * BUCKETS_US.len() as u64);
    }

    /// What alerts rest on: the growth between two looks is what came between them, however much came before.
    #[test]
    fn the_growth_of_the_buckets_is_of_the_time_between() {
        let latency = Latency::default();
        (0..10_000).for_each(|_| latency.record(Duration::from_millis(2)));
        let before = latency.look();
        (0..10).for_each(|_| latency.record(Duration::from_secs(2)));
        let after = latency.look();
        let grown: Vec<_> =
            after.buckets().zip(before.buckets()).map(|((bound, now), (_, then))| (bound, now - then)).collect();
        assert!(grown.iter().all(|(bound, count)| *count == if bound.as_secs() < 2 { 0 } else { 10 }), "{grown:?}");
        assert_eq!(after.count - before.count, 10);
        assert!(after.sum().as_secs_f64() - before.sum().as_secs_f64() > 19.8);
        // While the quantile of the whole life has not moved.
        assert!(latency.read(0.99).1 < 3_000);
    }

    /// However much is recorded meanwhile, a look is of one moment.
    #[test]
    fn a_look_is_of_one_moment() {
        let latency = Latency::default();
        let us = 200;
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000).for_each(|_| latency.record(Duration::from_micros(us))));
            for _ in 0..200 {
                let look = latency.look();
                assert_eq!(look.sum(), Duration::from_micros(us * look.count));
                assert_eq!(look.buckets().last().unwrap().1, look.count);
            }
        });
        assert_eq!(latency.look().count, 200_000);
    }
}
