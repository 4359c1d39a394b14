//! The hours of a window: the base times of the rows that there can be in it. Of rollups an hour is what a row holds: a day, a
//! month, a year.

use basalt_schema::{BaseTime, Rollup, RowSpan};

use crate::window::Window;

/// The hours of a window: `from` is the first, `to` is behind the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hours<'a> {
    pub(crate) from: BaseTime,
    pub(crate) count: u32,
    /// Where a scan stops.
    pub(crate) to: BaseTime,
    /// The rollup whose rows are read, if any: such a row holds more than an hour.
    pub(crate) rollup: Option<&'a Rollup>,
}

impl<'a> Hours<'a> {
    /// `None` when the window has no hour.
    pub(crate) fn of(window: &Window, rollup: Option<&'a Rollup>) -> Option<Self> {
        let seconds = |time_ms: i64| u32::try_from(time_ms / 1000).unwrap_or(u32::MAX);
        let base = |time_ms: i64| BaseTime::from_be_bytes(seconds(time_ms).to_be_bytes());
        if let Some(rollup) = rollup {
            let (from, to) = (base(window.scan_start_ms), base(window.read_end_ms));
            let count = u32::try_from(bases(rollup.span(), from, to).count()).ok()?;
            return (count > 0).then_some(Self { from, count, to, rollup: Some(rollup) });
        }
        let from = BaseTime::of_seconds(seconds(window.scan_start_ms));
        // The last hour that a row key can hold ends beyond 32 bits of seconds. So `to` is clamped to `u32::MAX`, which is no base
        // time.
        let to = BaseTime::from_be_bytes(seconds(window.read_end_ms).to_be_bytes());
        let count = to.seconds().checked_sub(from.seconds())?.div_ceil(BaseTime::SPAN_S);
        (count > 0).then_some(Self { from, count, to, rollup: None })
    }

    pub(crate) fn iter(self) -> Box<dyn Iterator<Item = BaseTime> + 'a> {
        if let Some(rollup) = self.rollup {
            return Box::new(bases(rollup.span(), self.from, self.to));
        }
        let hours = std::iter::successors(Some(self.from), |base| base.next());
        Box::new(hours.take(usize::try_from(self.count).unwrap_or(usize::MAX)))
    }
}

/// The base times of rows in a window.
pub(crate) fn bases(span: RowSpan, from: BaseTime, to: BaseTime) -> impl Iterator<Item = BaseTime> + use<> {
    std::iter::successors(Some(from.seconds()), move |base| {
        let next = span.base(base.checked_add(span.seconds_max())?);
        (next > *base).then_some(next)
    })
    .take_while(move |base| *base < to.seconds())
    .map(|base| BaseTime::from_be_bytes(base.to_be_bytes()))
}
