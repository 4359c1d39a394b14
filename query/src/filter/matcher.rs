//! A filter compiled: does it take this tag value?

use std::collections::HashSet;

use basalt_schema::java_pattern;
use regex::{Regex, RegexBuilder};

use super::{FilterKind, TagFilter, alternatives, fault, last_line};
use crate::error::FilterFault;
use crate::{Compat, Result};

/// The most memory that a regular expression, or its search, may take: a request may have many.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// A filter ready to run.
#[derive(Debug, Clone)]
pub struct Matcher(Test);

#[derive(Debug, Clone)]
enum Test {
    Any,
    OneOf { values: HashSet<Box<str>>, wanted: bool, ignore_case: bool },
    Glob { glob: Glob, ignore_case: bool },
    Regex(Regex),
    Never,
}

impl Matcher {
    /// Of a filter. *Cost*: seconds for some regular expressions.
    ///
    /// # Errors
    /// `Invalid`: a regular expression that does not compile here: it has a class that nobody knows, or takes too much memory.
    pub fn compile(filter: &TagFilter, compat: Compat) -> Result<Self> {
        let text = filter.text();
        let one_of = |wanted: bool, ignore_case: bool| Test::OneOf {
            values: alternatives(text).map(|v| if ignore_case { v.to_lowercase().into() } else { v.into() }).collect(),
            wanted,
            ignore_case,
        };
        let glob = |ignore_case: bool| Test::Glob {
            glob: Glob::compile(&if ignore_case { text.to_lowercase() } else { text.to_owned() }, compat),
            ignore_case,
        };
        Ok(Self(match filter.kind() {
            FilterKind::LiteralOr => one_of(true, false),
            FilterKind::ILiteralOr => one_of(true, true),
            FilterKind::NotLiteralOr => one_of(false, false),
            FilterKind::NotILiteralOr => one_of(false, true),
            FilterKind::Wildcard | FilterKind::IWildcard if filter.is_any_value() => Test::Any,
            FilterKind::Wildcard => glob(false),
            FilterKind::IWildcard => glob(true),
            FilterKind::Regexp => Test::Regex(
                RegexBuilder::new(&java_pattern(text))
                    .size_limit(REGEX_BYTES_MAX)
                    .dfa_size_limit(REGEX_BYTES_MAX)
                    .build()
                    .map_err(|error| fault(text, FilterFault::RegexRefused(last_line(&error.to_string()).into())))?,
            ),
            FilterKind::NotKey => Test::Never,
        }))
    }

    /// Whether a series whose tag has this value may take part. A `not_key` takes none.
    pub fn takes(&self, value: &str) -> bool {
        match &self.0 {
            Test::Any => true,
            Test::Never => false,
            Test::OneOf { values, wanted, ignore_case: false } => values.contains(value) == *wanted,
            Test::OneOf { values, wanted, ignore_case: true } => {
                values.contains(value.to_lowercase().as_str()) == *wanted
            }
            Test::Glob { glob, ignore_case: false } => glob.takes(value),
            Test::Glob { glob, ignore_case: true } => glob.takes(&value.to_lowercase()),
            Test::Regex(regex) => regex.is_match(value),
        }
    }
}

/// Literal pieces with anything between them.
#[derive(Debug, Clone)]
struct Glob {
    pieces: Vec<String>,
    open_start: bool,
    open_end: bool,
    strict: bool,
}

impl Glob {
    fn compile(text: &str, compat: Compat) -> Self {
        let trimmed = text.trim_matches('*');
        // OpenTSDB keeps the empty piece between two stars; both match alike.
        let pieces = trimmed.split('*').filter(|piece| !piece.is_empty()).map(str::to_owned).collect();
        Self { pieces, open_start: text.starts_with('*'), open_end: text.ends_with('*'), strict: compat.strict }
    }

    fn takes(&self, value: &str) -> bool {
        let (Some(first), Some(last)) = (self.pieces.first(), self.pieces.last()) else {
            return true;
        };
        // OpenTSDB looks at no end of a glob that is open at none.
        let anchors = !self.strict || self.open_start || self.open_end;
        let anchored_start = !self.open_start && anchors;
        let anchored_end = !self.open_end && anchors;
        if anchored_start && !value.starts_with(first.as_str()) || anchored_end && !value.ends_with(last.as_str()) {
            return false;
        }
        if self.strict { self.finds_loosely(value) } else { self.finds_in_order(value, anchored_start, anchored_end) }
    }

    /// The pieces in order without overlap, the anchored ones at their ends.
    fn finds_in_order(&self, value: &str, anchored_start: bool, anchored_end: bool) -> bool {
        let mut rest = value;
        let mut pieces = self.pieces.as_slice();
        if anchored_start && let Some((first, others)) = pieces.split_first() {
            let Some(after) = rest.strip_prefix(first.as_str()) else { return false };
            (rest, pieces) = (after, others);
        }
        if anchored_end && let Some((last, others)) = pieces.split_last() {
            let Some(before) = rest.strip_suffix(last.as_str()) else { return false };
            (rest, pieces) = (before, others);
        }
        for piece in pieces {
            let Some((_, after)) = rest.split_once(piece.as_str()) else { return false };
            rest = after;
        }
        true
    }

    /// As OpenTSDB: each piece is looked for from where the lengths of those before it end, not from where they were
    /// found.
    fn finds_loosely(&self, value: &str) -> bool {
        let mut from = 0;
        for piece in &self.pieces {
            let tail = value.get(from..).or_else(|| (from > value.len()).then_some("")).unwrap_or(value);
            if !tail.contains(piece.as_str()) {
                return false;
            }
            from += piece.len();
        }
        true
    }
}
