//! What one request may take, and which metrics have limits of their own (`Q-LIMIT`, `P-LIMITS`).

use std::sync::{PoisonError, RwLock};

use basalt_schema::java_pattern;
use regex::Regex;
use serde::Deserialize;

use crate::Error;

/// Points that fill policies or expressions may make up at once; some gigabytes at most.
const MADE_UP_POINTS_MAX: u64 = 1 << 26;

/// What one request may take. Zero means no bound, but for `scans_at_once_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Points that one sub query may read.
    pub points_max: u64,
    /// Bytes of keys, qualifiers and values that one sub query may read.
    pub bytes_max: u64,
    /// Milliseconds until the answer is computed.
    pub deadline_ms: u64,
    /// Series that one sub query, or one request of the newest points, may mean: those that its filters keep.
    pub series_max: usize,
    /// Scans under way at one time.
    pub scans_at_once_max: usize,
    /// Bytes of memory that all requests of an engine may hold together.
    pub memory_bytes: u64,
    /// Whether a request may lift the budget of points (`tsd.query.limits.data_points.allow_override`).
    pub points_may_be_lifted: bool,
    /// Whether a request may lift the budget of bytes (`tsd.query.limits.bytes.allow_override`).
    pub bytes_may_be_lifted: bool,
}

impl Default for Limits {
    /// No bound of points, bytes, memory and time, as in OpenTSDB; a million series; sixteen scans.
    fn default() -> Self {
        Self {
            points_max: 0,
            bytes_max: 0,
            deadline_ms: 0,
            series_max: 1_000_000,
            scans_at_once_max: 16,
            memory_bytes: 0,
            points_may_be_lifted: false,
            bytes_may_be_lifted: false,
        }
    }
}

impl Limits {
    /// The limits where a metric is read that may have some of its own.
    pub(crate) fn of_metric(self, own: Option<MetricLimits>) -> Self {
        own.map_or(self, |MetricLimits { points_max, bytes_max }| Self { points_max, bytes_max, ..self })
    }

    /// Refuses more series than the bound.
    ///
    /// # Errors
    /// [`Error::TooManySeries`].
    pub(crate) fn check_series(&self, series: u64) -> crate::Result<()> {
        let limit = self.series_max;
        if limit > 0 && series > limit as u64 { Err(Error::TooManySeries { limit }) } else { Ok(()) }
    }

    /// Points that fill policies or expressions may make up at once.
    pub(crate) fn made_up_points_max(&self) -> u64 {
        if self.points_max == 0 { MADE_UP_POINTS_MAX } else { self.points_max.min(MADE_UP_POINTS_MAX) }
    }
}

/// A metric's own budgets; zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MetricLimits {
    pub(crate) points_max: u64,
    pub(crate) bytes_max: u64,
}

/// Limits by metric, which may be exchanged while queries run. *Source*: OpenTSDB 2.4 `QueryLimitOverride`.
///
/// ```
/// let overrides = basalt_query::LimitOverrides::default();
/// overrides.replace(r#"[{"regex": "^web\\.", "byteLimit": 1048576, "dataPointsLimit": 1000}]"#)?;
/// assert!(overrides.replace(r#"[{"regex": "("}]"#).is_err(), "and the list before stays in force");
/// # Ok::<(), basalt_query::LimitOverridesError>(())
/// ```
#[derive(Debug, Default)]
pub struct LimitOverrides {
    /// Guards the list for one look or one exchange; nothing else is locked under it.
    list: RwLock<Vec<(Regex, MetricLimits)>>,
}

/// An entry of the file. A name that is none of these is a slip that would lift a limit, hence an error.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    regex: String,
    #[serde(default)]
    byte_limit: u64,
    #[serde(default)]
    data_points_limit: u64,
}

/// Why a list of limits is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitOverridesError {
    /// Not the JSON of such a list.
    #[error("the limits are not a list of {{regex, byteLimit, dataPointsLimit}}: {0}")]
    Json(#[source] serde_json::Error),
    /// A regular expression that is none.
    #[error("the regular expression of a limit: {0}")]
    Regex(#[source] regex::Error),
}

impl LimitOverrides {
    /// Exchanges the list for that of a JSON text; returns its length. Of several that match a metric the first counts,
    /// where OpenTSDB's choice is open.
    ///
    /// # Errors
    /// The text is no such list; the list in force stays.
    pub fn replace(&self, json: &str) -> Result<usize, LimitOverridesError> {
        let entries: Vec<Entry> = serde_json::from_str(json).map_err(LimitOverridesError::Json)?;
        let compile = |entry: Entry| {
            let limits = MetricLimits { points_max: entry.data_points_limit, bytes_max: entry.byte_limit };
            Ok((Regex::new(&java_pattern(&entry.regex)).map_err(LimitOverridesError::Regex)?, limits))
        };
        let list = entries.into_iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        let length = list.len();
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
        Ok(length)
    }

    /// Whether no metric has limits of its own.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The limits of a metric of its own, if it has some.
    pub(crate) fn of(&self, metric: &str) -> Option<MetricLimits> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.iter().find(|(regex, _)| regex.is_match(metric)).map(|(_, limits)| *limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `P-LIMITS`: the first that is found anywhere in the name counts; a bad list changes nothing.
    #[test]
    fn p_limits_a_metric_may_have_limits_of_its_own() {
        let overrides = LimitOverrides::default();
        assert!(overrides.is_empty());
        let list = r#"[{"regex":"cpu$","dataPointsLimit":5},{"regex":"^\\Qsys.\\E","byteLimit":7}]"#;
        assert_eq!(overrides.replace(list).unwrap(), 2);
        for bad in
            ["{", "[{\"regex\":\"(\"}]", "[{\"regex\":\"a\",\"bytelimit\":1}]", "[{\"regex\":\"a\",\"byteLimit\":-1}]"]
        {
            assert!(overrides.replace(bad).is_err(), "{bad}");
        }
        let of = |metric| overrides.of(metric).map(|limits| (limits.points_max, limits.bytes_max));
        assert_eq!(of("sys.cpu"), Some((5, 0)));
        assert_eq!(of("sys.mem"), Some((0, 7)));
        assert_eq!(of("web"), None);
        overrides.replace("[]").unwrap();
        assert_eq!(of("sys.cpu"), None);
    }
}
