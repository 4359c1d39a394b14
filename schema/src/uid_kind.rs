//! The three spaces of UIDs, by name.

use std::fmt;

/// Which of the three spaces a UID or a name belongs to.
///
/// *Source*: OpenTSDB 2.4 `UniqueId.UniqueIdType`, `TSDB.METRICS_QUAL`, `TAG_NAME_QUAL`, `TAG_VALUE_QUAL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UidKind {
    /// Names of metrics.
    Metric,
    /// Names of tags: `host` of `host=web01`.
    Tagk,
    /// Values of tags: `web01` of `host=web01`.
    Tagv,
}

impl UidKind {
    /// The three kinds, in the order of a row key.
    pub const ALL: [Self; 3] = [Self::Metric, Self::Tagk, Self::Tagv];

    /// The qualifier of this kind in the UID table: `metrics`, `tagk`, `tagv`.
    pub const fn qualifier(self) -> &'static str {
        match self {
            Self::Metric => "metrics",
            Self::Tagk => "tagk",
            Self::Tagv => "tagv",
        }
    }

    /// The qualifier of this kind's meta object: `metric_meta`, `tagk_meta`, `tagv_meta`.
    pub const fn meta_qualifier(self) -> &'static str {
        match self {
            Self::Metric => "metric_meta",
            Self::Tagk => "tagk_meta",
            Self::Tagv => "tagv_meta",
        }
    }

    /// Reads the spellings users write: `metric`, `metrics`, `tagk`, `tagv`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "metric" | "metrics" => Some(Self::Metric),
            "tagk" => Some(Self::Tagk),
            "tagv" => Some(Self::Tagv),
            _ => None,
        }
    }
}

impl fmt::Display for UidKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.qualifier())
    }
}
