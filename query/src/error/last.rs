//! What is wrong with a request of `/api/query/last`, in OpenTSDB's words.

/// What is wrong with a request of `/api/query/last`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LastFault {
    /// `back_scan` is no number.
    #[error("Unable to parse back_scan parameter")]
    BackScan,
    /// `back_scan` is below zero.
    #[error("Backscan must be zero or a positive number")]
    NegativeBackScan,
    /// Neither metric nor TSUIDs.
    #[error("Metric cannot be null or empty")]
    NoMetric,
    /// A metric alone, and strictly it takes tags to look back.
    #[error("Tags cannot be null or empty when getting a TSUID")]
    NoTags,
    /// No TSUID.
    #[error("UID was empty")]
    EmptyTsuid,
    /// A TSUID that is not hex.
    #[error("contains illegal character for hexBinary: {0}")]
    NotHex(Box<str>),
    /// A TSUID without a tag.
    #[error("TSUID must not be null and must have a metric and at least one tag pair")]
    ShortTsuid,
}

impl LastFault {
    /// The second line of an answer; OpenTSDB says most things twice.
    pub(super) fn details(&self) -> Option<String> {
        (*self != Self::BackScan).then(|| self.to_string())
    }
}
