//! What `/api/config/filters` tells of each filter, in our words; clients show it in their editors. The keys are OpenTSDB's,
//! and `not_key` besides, which it documents and does not list.

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
                r#"host=literal_or(web01|web02) or {"type":"literal_or","tagk":"host","filter":"web01|web02"}"#,
                "Series whose tag has one of these values, parted by |. Upper and lower case differ.",
            ),
            Self::ILiteralOr => (
                r#"host=iliteral_or(WEB01|web02) or {"type":"iliteral_or","tagk":"host","filter":"WEB01|web02"}"#,
                "Series whose tag has one of these values, parted by |, in any case.",
            ),
            Self::NotLiteralOr => (
                r#"host=not_literal_or(web01) or {"type":"not_literal_or","tagk":"host","filter":"web01"}"#,
                "Series that have the tag with none of these values, parted by |. Upper and lower case differ.",
            ),
            Self::NotILiteralOr => (
                r#"host=not_iliteral_or(WEB01) or {"type":"not_iliteral_or","tagk":"host","filter":"WEB01"}"#,
                "Series that have the tag with none of these values, parted by |, in any case.",
            ),
            Self::Wildcard => (
                r#"host=wildcard(web*.lga) or {"type":"wildcard","tagk":"host","filter":"web*.lga"}"#,
                "Series whose tag's value fits, where each * stands for any run of characters. Upper and lower case \
                 differ. A lone * fits every value.",
            ),
            Self::IWildcard => (
                r#"host=iwildcard(WEB*.lga) or {"type":"iwildcard","tagk":"host","filter":"WEB*.lga"}"#,
                "Series whose tag's value fits in any case, where each * stands for any run of characters.",
            ),
            Self::Regexp => (
                r#"host=regexp(web[0-9]+) or {"type":"regexp","tagk":"host","filter":"web[0-9]+"}"#,
                "Series in whose tag's value the regular expression finds a match, anywhere unless anchored by ^ and $. \
                 Look-around and back-references are not supported. In a URL, braces must be percent-encoded.",
            ),
            Self::NotKey => (
                r#"host=not_key() or {"type":"not_key","tagk":"host","filter":""}"#,
                "Series that do not have the tag at all. The filter text stays empty.",
            ),
        }
    }
}
