//! Where random UIDs come from (`tsd.core.uid.random_metrics`, rule S-UID-RANDOM).

use std::fmt;
use std::sync::Arc;

use crate::{Uid, UidWidth};

/// A source of random numbers, given from outside so that tests know what comes.
#[derive(Clone)]
pub struct UidDice(Arc<dyn Fn() -> u64 + Send + Sync>);

impl UidDice {
    /// Bytes of a random UID at most, as in OpenTSDB.
    pub const WIDTH_MAX: usize = 7;

    /// `roll` gives 64 random bits at each call.
    pub fn new(roll: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(roll))
    }

    /// A UID of this width that is not 0.
    pub(crate) fn roll(&self, width: UidWidth) -> Uid {
        Uid::new(((self.0)() & width.uid_max().number()).max(1))
    }
}

impl fmt::Debug for UidDice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UidDice")
    }
}
