//! How long something is tried for, and the pauses between attempts.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use crate::options::HBaseOptions;

/// How many pauses each attempt waits: HBase's own table (`HConstants.RETRY_BACKOFF`).
const STEPS: [u32; 9] = [1, 2, 3, 5, 10, 20, 40, 100, 100];

/// A number that nobody foresees: the keys that the standard library draws from the operating system.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// One operation's time.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    deadline: Instant,
    pause: Duration,
    busy_pause: Duration,
    attempts: usize,
}

impl Patience {
    /// For a read or a change.
    pub(crate) fn of_operation(options: &HBaseOptions) -> Self {
        Self::new(options, options.operation_timeout)
    }

    /// For a change of tables.
    pub(crate) fn of_admin(options: &HBaseOptions) -> Self {
        Self::new(options, options.admin_timeout)
    }

    /// For what may take so long in all.
    pub(crate) fn new(options: &HBaseOptions, timeout: Duration) -> Self {
        let HBaseOptions { pause, busy_pause, .. } = *options;
        Self { deadline: Instant::now() + timeout, pause, busy_pause, attempts: 0 }
    }

    /// When one call that begins now is given up.
    pub(crate) fn call_deadline(&self, call_timeout: Duration) -> Instant {
        self.deadline.min(Instant::now() + call_timeout)
    }

    /// Whether there is time left.
    pub(crate) fn is_left(&self) -> bool {
        Instant::now() < self.deadline
    }

    /// Begins the time anew: something was done.
    pub(crate) fn renew(&mut self, options: &HBaseOptions) {
        *self = Self::of_operation(options);
    }

    /// Waits before the next attempt; `false`, at once, where there is no time for one.
    pub(crate) async fn pause(&mut self, is_busy: bool) -> bool {
        let step = STEPS.get(self.attempts).or(STEPS.last()).copied().unwrap_or(1);
        self.attempts += 1;
        let pause = if is_busy { self.busy_pause } else { self.pause } * step;
        // A tenth more or less, so that those who were refused together do not come back together.
        let pause = pause.mul_f64(0.9 + f64::from(u8::try_from(random() % 200).unwrap_or(100)) / 1000.0);
        if Instant::now() + pause >= self.deadline {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_and_end_with_the_time() {
        let options = HBaseOptions::of_masters([]);
        let (begun, mut patience) = (Instant::now(), Patience::of_operation(&options));
        let mut pauses = Vec::new();
        loop {
            let before = Instant::now();
            if !patience.pause(false).await {
                break;
            }
            pauses.push(before.elapsed());
        }
        assert!(pauses.len() > 8, "{pauses:?}");
        assert!(pauses[7] > pauses[0] * 50, "{pauses:?}");
        assert!(begun.elapsed() <= options.operation_timeout);
    }
}
