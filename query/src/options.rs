//! Settings of the query side that are the daemon's to choose.

use chrono_tz::Tz;

use crate::aggregate::PercentileRule;

/// Whose behaviour to keep where OpenTSDB's surprises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Compat {
    /// OpenTSDB's own, surprises and all: an unknown tag value is an error, the dot of a time is taken out, a glob open
    /// at no end is anchored at none, `ep…r3` is plain on doubles, a series' first value is rated against the epoch.
    pub strict: bool,
}

/// How requests are read and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whose quirks to keep.
    pub compat: Compat,
    /// Zone of dates when the request names none.
    pub default_zone: Tz,
    /// `tsd.query.skip_unresolved_tagvs`: an unknown tag value is no error even when strict.
    pub skip_unresolved_tagvs: bool,
    /// Whether the tables have the salt that OpenTSDB's would have; else strict answers come as from tables without one.
    pub salt_is_theirs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { compat: Compat::default(), default_zone: Tz::UTC, skip_unresolved_tagvs: false, salt_is_theirs: false }
    }
}

impl Options {
    /// How percentiles are estimated on doubles.
    pub(crate) fn percentile_rule(self) -> PercentileRule {
        if self.compat.strict { PercentileRule::Plain } else { PercentileRule::AsNamed }
    }
}
