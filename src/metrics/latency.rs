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

    /// Durations recorded, and their sum at the histogram's two digits: summed when it is asked for, so that a record costs
    /// no more.
    pub(super) fn sum(&self) -> (u64, Duration) {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let us = histogram.iter_recorded().map(|step| {
            histogram.median_equivalent(step.value_iterated_to()).saturating_mul(step.count_since_last_iteration())
        });
        (histogram.len(), Duration::from_micros(us.fold(0, u64::saturating_add)))
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
    }
}
