//! The three kinds of names, in this program's own words until a crate is asked.

/// What a name names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// A metric.
    Metric,
    /// A tag key.
    Tagk,
    /// A tag value.
    Tagv,
}
