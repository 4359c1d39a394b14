//! Comparators: how stored bytes are held against what a filter was given.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::Comparison;

/// What stored bytes are held against (`ByteArrayComparable` and its kin).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Comparator {
    /// All the bytes, unsigned (`BinaryComparator`).
    Binary(Bytes),
    /// As many bytes as these are (`BinaryPrefixComparator`).
    BinaryPrefix(Bytes),
    /// Equal where a match is found anywhere (`RegexStringComparator`); orders mean nothing.
    Regex(regex::bytes::Regex),
    /// Equal where the text is found, whatever the case (`SubstringComparator`); orders mean nothing.
    Substring(String),
}

impl Comparator {
    /// Whether a pattern is held against bytes: how it begins says so, in Java's words, too. Any other is held against the text
    /// that bytes are in UTF-8, with U+FFFD for what is none (`RegexStringComparator`'s charset).
    pub fn is_of_bytes(pattern: &str) -> bool {
        ["(?s-u)", "(?-u)"].iter().any(|flags| pattern.starts_with(flags))
    }
}

/// A comparison and what to compare with.
#[derive(Debug, Clone)]
pub(super) struct Test {
    comparison: Comparison,
    comparator: Comparator,
}

impl Test {
    pub(super) fn new(comparison: Comparison, comparator: &Comparator) -> Self {
        let comparator = match comparator {
            Comparator::Substring(text) => Comparator::Substring(text.to_lowercase()),
            other => other.clone(),
        };
        Self { comparison, comparator }
    }

    /// Whether `stored <comparison> expected`.
    pub(super) fn holds(&self, stored: &[u8]) -> bool {
        self.comparison.holds(self.order(stored))
    }

    /// How the stored bytes lie to the expected ones. Where a pattern is not found HBase calls them less.
    fn order(&self, stored: &[u8]) -> Ordering {
        let found = |found| if found { Ordering::Equal } else { Ordering::Less };
        match &self.comparator {
            Comparator::Binary(expected) => stored.cmp(expected),
            Comparator::BinaryPrefix(expected) => stored.get(..expected.len()).unwrap_or(stored).cmp(expected),
            Comparator::Regex(regex) if Comparator::is_of_bytes(regex.as_str()) => found(regex.is_match(stored)),
            Comparator::Regex(regex) => found(regex.is_match(String::from_utf8_lossy(stored).as_bytes())),
            Comparator::Substring(text) => found(String::from_utf8_lossy(stored).to_lowercase().contains(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_scan_8_each_comparison_of_each_comparator() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let all = [Less, LessOrEqual, Equal, NotEqual, GreaterOrEqual, Greater];
        let holding = |comparator: Comparator, stored: &[u8]| -> Vec<Comparison> {
            all.into_iter().filter(|&comparison| Test::new(comparison, &comparator).holds(stored)).collect()
        };
        let less = [Less, LessOrEqual, NotEqual];
        let equal = [LessOrEqual, Equal, GreaterOrEqual];
        let greater = [NotEqual, GreaterOrEqual, Greater];
        assert_eq!(holding(Comparator::Binary("b".into()), b"a\xff"), less);
        assert_eq!(holding(Comparator::Binary("b".into()), b"b"), equal);
        assert_eq!(holding(Comparator::Binary("b".into()), b"b\x00"), greater);
        assert_eq!(holding(Comparator::BinaryPrefix("bc".into()), b"bcd"), equal);
        assert_eq!(holding(Comparator::BinaryPrefix("bc".into()), b"b"), less);
        assert_eq!(holding(Comparator::BinaryPrefix("bc".into()), b"c"), greater);
        assert_eq!(holding(Comparator::Regex(regex::bytes::Regex::new("b.d").unwrap()), b"abcde"), equal);
        assert_eq!(holding(Comparator::Regex(regex::bytes::Regex::new("^b").unwrap()), b"abcde"), less);
        let regex = |pattern: &str| Comparator::Regex(regex::bytes::Regex::new(pattern).unwrap());
        assert_eq!(
            holding(regex("^a.\u{fffd}.b$"), b"a\xff\xfe\x00b"),
            equal,
            "bytes that are no text are letters, too"
        );
        assert_eq!(holding(regex("(?s-u)^a.\\xfe.b$"), b"a\xff\xfe\x00b"), equal);
        assert_eq!(holding(Comparator::Substring("BC".into()), b"abCd\xff"), equal);
    }
}
