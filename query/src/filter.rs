//! Filters of tags: which series of a metric take part, and by which keys they are grouped.
//!
//! A [`TagFilter`] is what a request says, checked; compiled to a [`Matcher`] it answers for one tag value. Filters are
//! joined by AND, and each but `not_key` asks that its key be present. *Source*: OpenTSDB 2.4 `net.opentsdb.query.filter`.

mod listing;
mod matcher;

pub use listing::{FilterDescription, filter_descriptions};
pub use matcher::Matcher;

use std::collections::BTreeSet;
use std::sync::Arc;

use basalt_schema::java_pattern;
use regex_syntax::ast::parse::Parser;

use crate::error::FilterFault;
use crate::{Error, Result};

/// Longest text of a filter: half a million values between pipes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Longest regular expression: a request may have many.
const REGEX_TEXT_BYTES_MAX: usize = 16 << 10;

/// A type of filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilterKind {
    /// One of some values.
    LiteralOr,
    /// One of some values, ignoring case.
    ILiteralOr,
    /// None of some values.
    NotLiteralOr,
    /// None of some values, ignoring case.
    NotILiteralOr,
    /// A glob.
    Wildcard,
    /// A glob, ignoring case.
    IWildcard,
    /// A regular expression found anywhere in the value.
    Regexp,
    /// The key must be absent.
    NotKey,
}

impl FilterKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::LiteralOr,
        Self::ILiteralOr,
        Self::NotLiteralOr,
        Self::NotILiteralOr,
        Self::Wildcard,
        Self::IWildcard,
        Self::Regexp,
        Self::NotKey,
    ];

    /// Its name in requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LiteralOr => "literal_or",
            Self::ILiteralOr => "iliteral_or",
            Self::NotLiteralOr => "not_literal_or",
            Self::NotILiteralOr => "not_iliteral_or",
            Self::Wildcard => "wildcard",
            Self::IWildcard => "iwildcard",
            Self::Regexp => "regexp",
            Self::NotKey => "not_key",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A filter of one tag key, checked as far as that takes no time: it is compiled when a query is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagFilter {
    kind: FilterKind,
    /// Shared, as the text: a set of filters may be that of each of many metrics.
    tagk: Arc<str>,
    text: Arc<str>,
    /// Written as a bare value: `host=web*` ignores case and yet calls itself `wildcard`.
    shorthand: bool,
    /// Whether series are grouped by this key.
    pub group_by: bool,
}

impl TagFilter {
    /// A filter by the name of its type.
    ///
    /// # Errors
    /// `Invalid`: no type, an unknown one, no key, or a text that the type refuses.
    pub fn new(kind: &str, tagk: &str, text: &str, group_by: bool) -> Result<Self> {
        if kind.is_empty() {
            return Err(fault("", FilterFault::NoType));
        }
        let known = FilterKind::by_name(kind).ok_or_else(|| fault(kind, FilterFault::UnknownType));
        Self::checked(known?, tagk, text, group_by)
    }

    /// A filter of a bare value: `*`, a glob, `a|b`, or `type(text)`. It does not group yet.
    ///
    /// # Errors
    /// As [`TagFilter::new`]; also a parenthesis that is not closed.
    pub fn from_value(tagk: &str, value: &str) -> Result<Self> {
        if tagk.is_empty() {
            return Err(fault("", FilterFault::NoTagk));
        }
        if value.is_empty() {
            return Err(fault("", FilterFault::Empty));
        }
        if let Some((kind, text)) = value.split_once('(') {
            let text = text.strip_suffix(')').ok_or_else(|| fault(value, FilterFault::Unclosed))?;
            return Self::new(&kind.to_lowercase(), tagk, text, false);
        }
        if value.contains('*') {
            let filter = Self::checked(FilterKind::IWildcard, tagk, value, false)?;
            return Ok(Self { shorthand: true, ..filter });
        }
        Self::checked(FilterKind::LiteralOr, tagk, value, false)
    }

    /// Adds a filter that groups; one that is there already is made to group instead.
    pub(crate) fn add_grouping(filters: &mut Vec<Self>, filter: Self) {
        match filters.iter_mut().find(|known| known.is_same(&filter)) {
            Some(known) => known.group_by = true,
            None => filters.push(Self { group_by: true, ..filter }),
        }
    }

    /// Whether both take the same of the same key by the same way: a list is the set of its values.
    fn is_same(&self, other: &Self) -> bool {
        let lists =
            [FilterKind::LiteralOr, FilterKind::ILiteralOr, FilterKind::NotLiteralOr, FilterKind::NotILiteralOr];
        let values = |filter: &Self| -> BTreeSet<String> {
            let ignores_case = matches!(filter.kind, FilterKind::ILiteralOr | FilterKind::NotILiteralOr);
            let value = |value: &str| if ignores_case { value.to_lowercase() } else { value.to_owned() };
            alternatives(&filter.text).map(value).collect()
        };
        let same_text =
            || if lists.contains(&self.kind) { values(self) == values(other) } else { self.text == other.text };
        self.kind == other.kind && self.tagk == other.tagk && same_text()
    }

    fn checked(kind: FilterKind, tagk: &str, text: &str, group_by: bool) -> Result<Self> {
        if tagk.is_empty() {
            return Err(fault("", FilterFault::NoTagk));
        }
        match kind {
            FilterKind::NotKey if !text.is_empty() => return Err(fault(text, FilterFault::NotKeyWithText)),
            FilterKind::NotKey => {}
            _ if text.is_empty() => return Err(fault(text, FilterFault::Empty)),
            FilterKind::LiteralOr | FilterKind::ILiteralOr | FilterKind::NotLiteralOr | FilterKind::NotILiteralOr
                if text == "|" =>
            {
                return Err(fault(text, FilterFault::JustAPipe));
            }
            FilterKind::Wildcard | FilterKind::IWildcard if !text.contains('*') => {
                return Err(fault(text, FilterFault::NoStar));
            }
            _ => {}
        }
        check_text(kind, text)?;
        Ok(Self { kind, tagk: tagk.into(), text: text.into(), shorthand: false, group_by })
    }

    /// Its kind.
    pub fn kind(&self) -> FilterKind {
        self.kind
    }

    /// The name of its kind as OpenTSDB echoes it: a bare glob is called `wildcard` although it ignores case.
    pub fn kind_name(&self) -> &'static str {
        if self.shorthand { FilterKind::Wildcard.name() } else { self.kind.name() }
    }

    /// The tag key.
    pub fn tagk(&self) -> &str {
        &self.tagk
    }

    /// The text between the parentheses.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The values of a `literal_or`, which is looked up by UID; `None` for other kinds.
    pub(crate) fn literals(&self) -> Option<impl Iterator<Item = &str>> {
        (self.kind == FilterKind::LiteralOr).then(|| alternatives(&self.text))
    }

    /// Whether a `literal_or` has an empty value before its last one, which OpenTSDB looks up too.
    pub(crate) fn has_empty_literal(&self) -> bool {
        let text = self.text.trim_end_matches('|');
        self.kind == FilterKind::LiteralOr && !text.is_empty() && text.split('|').any(str::is_empty)
    }

    /// Whether any value will do, so that only the key's presence is asked.
    pub fn is_any_value(&self) -> bool {
        matches!(self.kind, FilterKind::Wildcard | FilterKind::IWildcard) && self.text.bytes().all(|b| b == b'*')
    }
}

/// Refuses a text that is too long, and what is no regular expression: one of a few KiB may take seconds to compile, by the classes in it,
/// and a request has many.
fn check_text(kind: FilterKind, text: &str) -> Result<()> {
    let is_regex = kind == FilterKind::Regexp;
    let limit = if is_regex { REGEX_TEXT_BYTES_MAX } else { TEXT_BYTES_MAX };
    if text.len() > limit {
        return Err(Error::TooMany { what: "bytes in such a filter", limit });
    }
    if is_regex {
        Parser::new()
            .parse(&java_pattern(text))
            .map_err(|error| fault(text, FilterFault::Regex(last_line(&error.to_string()).into())))?;
    }
    Ok(())
}

/// The values between pipes; empty ones do not count.
fn alternatives(text: &str) -> impl Iterator<Item = &str> {
    text.split('|').filter(|value| !value.is_empty())
}

/// The last line of a compiler's many: the one that says what is wrong.
fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ")
}

pub(crate) fn fault(text: &str, fault: FilterFault) -> Error {
    Error::Filter { text: text.into(), fault }
}

#[cfg(test)]
mod tests;
