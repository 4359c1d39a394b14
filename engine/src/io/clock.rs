//! The machine's own wall clock, behind the store's [`Clock`] trait.
//!
//! Nothing about order depends on it: sequence numbers do that. It may jump
//! either way; the engine keeps the times it assigns from going back.

use basalt_store::{Clock, Timestamp};

/// The clock on the wall, as the operating system tells it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that the rest takes by argument")]
    fn now(&self) -> Timestamp {
        // A clock set before 1970 reads 0: the engine's high-water mark holds then.
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
