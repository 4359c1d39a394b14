//! Puts wait a moment for room, in place of being refused: who is refused comes again with the same points.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long one waits; then the store says what it has to say.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks. A region's flush takes about as long.
const LOOK: Duration = Duration::from_millis(20);

/// Looks now and then whether `is_there`, for two seconds; whether it was.
pub(crate) async fn until(mut is_there: impl FnMut() -> bool) -> bool {
    if is_there() {
        return true;
    }
    let late = Instant::now() + PATIENCE;
    while Instant::now() < late {
        sleep(LOOK).await;
        if is_there() {
            return true;
        }
    }
    false
}

/// Whether there is room for points: flushes do not lag.
pub(crate) struct Room {
    is_pressed: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Room {
    /// There is while not `is_pressed`.
    pub(crate) fn unless(is_pressed: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_pressed: Box::new(is_pressed) }
    }

    /// Returns when there is room, or after two seconds.
    pub(crate) async fn wait(&self) {
        until(|| !(self.is_pressed)()).await;
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("is_pressed", &(self.is_pressed)()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    impl Room {
        /// For a test: none for so many looks; how many are left is told.
        pub(crate) fn after(looks: u32) -> (Self, Arc<AtomicU32>) {
            let left = Arc::new(AtomicU32::new(looks));
            let looked = Arc::clone(&left);
            let less = |left: u32| left.checked_sub(1);
            let is_pressed = move || looked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
            (Self::unless(is_pressed), left)
        }
    }

    /// `W-PUT-THROTTLE`
    #[tokio::test(start_paused = true)]
    async fn w_put_throttle_one_waits_until_there_is_room_and_not_for_good() {
        for (looks, waited_ms) in [(0, 0), (5, 100), (u32::MAX, 2_000)] {
            let began = Instant::now();
            Room::after(looks).0.wait().await;
            assert_eq!(began.elapsed().as_millis(), waited_ms, "{looks}");
        }
    }
}
