//! What `/api/config/filters` tells of each filter: descriptions and examples as recorded from OpenTSDB 2.4.1, which
//! clients show in their editors, and ours for `not_key`, which 2.4.1 documents and does not list.

use super::FilterKind;

/// A filter as users are told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterDescription {
    /// Its type in requests.
    pub name: &'static str,
    /// Spellings in a URL and in JSON.
    pub examples: &'static str,
    /// What it does.
    pub description: &'static str,
}

/// Every filter.
pub fn filter_descriptions() -> impl ExactSizeIterator<Item = FilterDescription> {
    FilterKind::ALL.into_iter().map(|kind| {
        let (examples, description) = kind.texts();
        FilterDescription { name: kind.name(), examples, description }
    })
}

impl FilterKind {
    /// Examples and description.
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::LiteralOr => (
                "host=literal_or(web01),  host=literal_or(web01|web02|web03)  \
                 {\"type\":\"literal_or\",\"tagk\":\"host\",\"filter\":\"web01|web02|web03\",\"groupBy\":false}",
                "Accepts one or more exact values and matches if the series contains any of them. Multiple values\
                  can be included and must be separated by the | (pipe) character. The filter is case sensitive \
                 and will not allow characters that TSDB does not allow at write time.",
            ),
            Self::ILiteralOr => (
                "host=iliteral_or(web01),  host=iliteral_or(web01|web02|web03)  \
                 {\"type\":\"iliteral_or\",\"tagk\":\"host\",\"filter\":\"web01|web02|web03\",\"groupBy\":false}",
                "Accepts one or more exact values and matches if the series contains any of them. Multiple values\
                  can be included and must be separated by the | (pipe) character. The filter is case insensitive\
                  and will not allow characters that TSDB does not allow at write time.",
            ),
            Self::NotLiteralOr => (
                "host=not_literal_or(web01),  host=not_literal_or(web01|web02|web03)  \
                 {\"type\":\"not_literal_or\",\"tagk\":\"host\",\"filter\":\"web01|web02|web03\",\"groupBy\":false}",
                "Accepts one or more exact values and matches if the series does NOT contain any of them. \
                 Multiple values can be included and must be separated by the | (pipe) character. The filter is \
                 case sensitive and will not allow characters that TSDB does not allow at write time.",
            ),
            Self::NotILiteralOr => (
                "host=not_iliteral_or(web01),  host=not_iliteral_or(web01|web02|web03)  \
                 {\"type\":\"not_iliteral_or\",\"tagk\":\"host\",\"filter\":\"web01|web02|web03\",\"groupBy\":false}",
                "Accepts one or more exact values and matches if the series does NOT contain any of them. \
                 Multiple values can be included and must be separated by the | (pipe) character. The filter is \
                 case insensitive and will not allow characters that TSDB does not allow at write time.",
            ),
            Self::Wildcard => (
                "host=wildcard(web*),  host=wildcard(web*.tsdb.net)  \
                 {\"type\":\"wildcard\",\"tagk\":\"host\",\"filter\":\"web*.tsdb.net\",\"groupBy\":false}",
                "Performs pre, post and in-fix glob matching of values. The globs are case sensitive and multiple\
                  wildcards can be used. The wildcard character is the * (asterisk). At least one wildcard must \
                 be present in the filter value. A wildcard by itself can be used as well to match on any value \
                 for the tag key.",
            ),
            Self::IWildcard => (
                "host=iwildcard(web*),  host=iwildcard(web*.tsdb.net)  \
                 {\"type\":\"iwildcard\",\"tagk\":\"host\",\"filter\":\"web*.tsdb.net\",\"groupBy\":false}",
                "Performs pre, post and in-fix glob matching of values. The globs are case insensitive and \
                 multiple wildcards can be used. The wildcard character is the * (asterisk). Case insensitivity \
                 is achieved by dropping all values to lower case. At least one wildcard must be present in the \
                 filter value. A wildcard by itself can be used as well to match on any value for the tag key.",
            ),
            Self::Regexp => (
                "host=regexp(.*)  {\"type\":\"regexp\",\"tagk\":\"host\",\"filter\":\".*\",\"groupBy\":false}",
                "Provides full, POSIX compliant regular expression using the built in Java Pattern class. Note \
                 that an expression containing curly braces {} will not parse properly in URLs. If the pattern is\
                  not a valid regular expression then an exception will be raised.",
            ),
            Self::NotKey => (
                "host=not_key()  {\"type\":\"not_key\",\"tagk\":\"host\",\"filter\":\"\",\"groupBy\":false}",
                "Skips any time series with the given tag key, regardless of the value. NOTE: The filter value \
                 must be null or an empty string.",
            ),
        }
    }
}
