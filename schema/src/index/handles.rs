//! What stands for a row of a series: its id and hour, in a number.
//!
//! ```text
//! [index: 11 bits, from 1][hour: 21][series: 32]
//! ```

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_store::RowHandle;

use super::SeriesId;
use crate::BaseTime;

const HOUR_BITS: u32 = 21;
const INDEX_BITS: u32 = 11;

const _: () = assert!(u32::MAX / BaseTime::SPAN_S < 1 << HOUR_BITS);
const _: () = assert!(INDEX_BITS + HOUR_BITS + u32::BITS == u64::BITS);

/// The next index's number. Relaxed: it orders nothing.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Handles of the rows of one index's series: no two indexes of a process give the same.
#[derive(Debug, Clone, Copy)]
pub struct RowHandles {
    /// `None` where the process has had more indexes than there are numbers.
    index: Option<u64>,
}

impl RowHandles {
    pub(super) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { index: Some(number).filter(|number| *number < 1 << INDEX_BITS) }
    }

    /// What stands for a series' row of an hour; `None` for a base time that is no hour's.
    #[inline]
    pub fn of(self, series: SeriesId, base: BaseTime) -> Option<RowHandle> {
        let (hour, rest) = (base.seconds() / BaseTime::SPAN_S, base.seconds() % BaseTime::SPAN_S);
        let number = (self.index? << HOUR_BITS | u64::from(hour)) << u32::BITS | u64::from(series.0);
        NonZeroU64::new(number).filter(|_| rest == 0).map(RowHandle)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_rows_have_one_handle() {
        let hours = [0, 3600, 1_699_999_200, u32::MAX - u32::MAX % 3600].map(BaseTime::of_seconds);
        let series = [0, 1, 2, 1 << 21, u32::MAX].map(SeriesId);
        let all: Vec<_> = [RowHandles::new(), RowHandles::new()]
            .iter()
            .flat_map(|handles| hours.map(|hour| series.map(|series| handles.of(series, hour).unwrap())))
            .flatten()
            .collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn what_has_no_number_of_its_own_has_no_handle() {
        let (series, hour) = (SeriesId(7), BaseTime::of_seconds(7200));
        assert_eq!(RowHandles::new().of(series, BaseTime::from_be_bytes([0, 0, 0, 1])), None);
        assert_eq!(RowHandles { index: None }.of(series, hour), None);
    }
}
