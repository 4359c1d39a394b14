//! What a refused name was for.

use std::fmt;

/// What a name is for: the words of the error text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameRole {
    /// A metric.
    Metric,
    /// A tag's key.
    TagName,
    /// A tag's value.
    TagValue,
}

impl fmt::Display for NameRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Metric => "metric name",
            Self::TagName => "tag name",
            Self::TagValue => "tag value",
        })
    }
}
