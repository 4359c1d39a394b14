//! HBase's filter language: `PrefixFilter('a') AND (KeyOnlyFilter() OR RowFilter(=, 'regexstring:x$'))`.
//!
//! ```text
//! any    = all { "OR" all }
//! all    = one { "AND" one }
//! one    = "(" any ")" | NAME "(" [ argument { "," argument } ] ")"
//! argument = "'" text "'" with '' for a quote | comparison | number | true | false
//! ```
//!
//! Filters that the store does not have are refused by name.

use basalt_store::{Filter, ListOperator, RowRange};
use bytes::Bytes;

/// How deep brackets may lie in each other.
const DEPTH_MAX: usize = 32;

/// The filter that `text` describes; else what is wrong and at which byte.
pub(crate) fn parse(text: &[u8]) -> Result<Filter, String> {
    let mut parser = Parser { text, at: 0 };
    let filter = parser.any(0)?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(parser.wrong("AND, OR or the end is expected"));
    }
    Ok(filter)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

/// What a filter is given in its brackets.
#[derive(Debug, PartialEq, Eq)]
enum Argument {
    Text(Vec<u8>),
    Word(String),
}

impl Parser<'_> {
    fn any(&mut self, depth: usize) -> Result<Filter, String> {
        let mut list = vec![self.all(depth)?];
        while self.keyword(b"OR") {
            list.push(self.all(depth)?);
        }
        Ok(joined(ListOperator::One, list))
    }

    fn all(&mut self, depth: usize) -> Result<Filter, String> {
        let mut list = vec![self.one(depth)?];
        while self.keyword(b"AND") {
            list.push(self.one(depth)?);
        }
        Ok(joined(ListOperator::All, list))
    }

    fn one(&mut self, depth: usize) -> Result<Filter, String> {
        if depth > DEPTH_MAX {
            return Err(self.wrong(&format!("brackets lie more than {DEPTH_MAX} deep")));
        }
        if self.sign(b'(') {
            let filter = self.any(depth + 1)?;
            return if self.sign(b')') { Ok(filter) } else { Err(self.wrong("`)` is expected")) };
        }
        self.blanks();
        let begin = self.at;
        let name = self.word();
        match name.as_str() {
            "" => return Err(self.wrong("a filter is expected")),
            "SKIP" | "WHILE" => return Err(format!("{name} is not supported yet")),
            _ => {}
        }
        if !self.sign(b'(') {
            return Err(self.wrong(&format!("`(` is expected after {name}")));
        }
        let mut arguments = Vec::new();
        while !self.sign(b')') {
            if !arguments.is_empty() && !self.sign(b',') {
                return Err(self.wrong("`,` or `)` is expected"));
            }
            arguments.push(self.argument()?);
        }
        filter(&name, &arguments).map_err(|reason| format!("{reason} (byte {begin} of the filter)"))
    }

    fn argument(&mut self) -> Result<Argument, String> {
        self.blanks();
        if self.text.get(self.at) != Some(&b'\'') {
            let begin = self.at;
            while self.text.get(self.at).is_some_and(|byte| !matches!(byte, b',' | b')' | b'(' | b'\'')) {
                self.at += 1;
            }
            let word = self.text.get(begin..self.at).unwrap_or_default();
            let word = String::from_utf8_lossy(word).trim().to_owned();
            return if word.is_empty() { Err(self.wrong("an argument is expected")) } else { Ok(Argument::Word(word)) };
        }
        let begin = self.at;
        let mut text = Vec::new();
        loop {
            self.at += 1;
            match self.text.get(self.at) {
                None => return Err(format!("the string at byte {begin} of the filter has no end")),
                Some(b'\'') if self.text.get(self.at + 1) == Some(&b'\'') => {
                    self.at += 1;
                    text.push(b'\'');
                }
                Some(b'\'') => break,
                Some(byte) => text.push(*byte),
            }
        }
        self.at += 1;
        Ok(Argument::Text(text))
    }

    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn sign(&mut self, sign: u8) -> bool {
        self.blanks();
        let is_it = self.text.get(self.at) == Some(&sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn word(&mut self) -> String {
        self.blanks();
        let begin = self.at;
        while self.text.get(self.at).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            self.at += 1;
        }
        String::from_utf8_lossy(self.text.get(begin..self.at).unwrap_or_default()).into_owned()
    }

    fn keyword(&mut self, keyword: &[u8]) -> bool {
        let before = self.at;
        let is_it = self.word().as_bytes() == keyword;
        if !is_it {
            self.at = before;
        }
        is_it
    }

    fn wrong(&self, what: &str) -> String {
        format!("{what} at byte {} of the filter", self.at)
    }
}

/// A list of filters, or the only one.
fn joined(operator: ListOperator, mut list: Vec<Filter>) -> Filter {
    match list.pop() {
        Some(only) if list.is_empty() => only,
        Some(last) => {
            list.push(last);
            Filter::List(operator, list)
        }
        None => Filter::List(operator, list),
    }
}

fn filter(name: &str, arguments: &[Argument]) -> Result<Filter, String> {
    match (name, arguments) {
        ("KeyOnlyFilter", []) => Ok(Filter::KeyOnly),
        ("FirstKeyOnlyFilter", []) => Ok(Filter::FirstKeyOnly),
        ("PrefixFilter", [Argument::Text(prefix)]) => Ok(Filter::Prefix(prefix.clone().into())),
        ("ColumnPrefixFilter", [Argument::Text(prefix)]) => Ok(Filter::ColumnPrefix(prefix.clone().into())),
        ("RowFilter", [Argument::Word(comparison), Argument::Text(comparator)]) => row(comparison, comparator),
        ("KeyOnlyFilter" | "FirstKeyOnlyFilter", _) => Err(format!("{name} takes no argument")),
        ("PrefixFilter" | "ColumnPrefixFilter", _) => Err(format!("{name} takes one string, as in {name}('abc')")),
        ("RowFilter", _) => {
            Err("RowFilter takes a comparison and a comparator, as in RowFilter(=, 'binary:abc')".into())
        }
        _ => {
            let known = "KeyOnlyFilter, FirstKeyOnlyFilter, PrefixFilter, ColumnPrefixFilter, RowFilter";
            Err(format!("{name} is not supported yet; there are: {known}"))
        }
    }
}

/// Rows compared by their keys: equal to a key, a prefix, a regular expression or a substring; before or after a key.
fn row(comparison: &str, comparator: &[u8]) -> Result<Filter, String> {
    let wrong = || "a comparator is 'binary:', 'binaryprefix:', 'regexstring:' or 'substring:' and a text".to_owned();
    let colon = comparator.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
    let (kind, operand) = comparator.split_at_checked(colon).ok_or_else(wrong)?;
    let operand = operand.get(1..).unwrap_or_default();
    let key = Bytes::copy_from_slice(operand);
    let after: Bytes = [operand, b"\0"].concat().into();
    let range = |start, stop| Filter::MultiRowRange(vec![RowRange { start, stop }]);
    match (kind, comparison) {
        (b"binaryprefix", "=") => Ok(Filter::Prefix(key)),
        (b"binary", "=") => Ok(range(key, after)),
        (b"binary", ">=") => Ok(range(key, Bytes::new())),
        (b"binary", ">") => Ok(range(after, Bytes::new())),
        // An empty stop would be the table's end, and no key is before the empty one.
        (b"binary", "<") if !key.is_empty() => Ok(range(Bytes::new(), key)),
        (b"binary", "<=") if !key.is_empty() => Ok(range(Bytes::new(), after)),
        (b"regexstring", "=") => matching(operand, str::to_owned),
        (b"substring", "=") => matching(operand, |text| format!("(?i){}", regex::escape(text))),
        (b"binary" | b"binaryprefix" | b"regexstring" | b"substring", _) => {
            Err(format!("RowFilter({comparison}, '{}:…') is not supported yet", String::from_utf8_lossy(kind)))
        }
        _ => Err(wrong()),
    }
}

fn matching(operand: &[u8], pattern: impl FnOnce(&str) -> String) -> Result<Filter, String> {
    let text = std::str::from_utf8(operand).map_err(|_| "the comparator's text is not UTF-8".to_owned())?;
    let regex = regex::bytes::Regex::new(&pattern(text)).map_err(|cause| {
        let cause = cause.to_string();
        format!("wrong regular expression: {}", cause.lines().last().unwrap_or_default())
    })?;
    Ok(Filter::RowRegex(regex))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(format!("{:?}", parse(text.as_bytes()).unwrap()), expected, "{text}");
    }

    fn check_wrong(text: &str, expected: &str) {
        assert_eq!(parse(text.as_bytes()).unwrap_err(), expected, "{text}");
    }

    #[test]
    fn and_binds_tighter_than_or() {
        check(
            "KeyOnlyFilter() OR PrefixFilter('a''b') AND FirstKeyOnlyFilter( )",
            "List(One, [KeyOnly, List(All, [Prefix(b\"a'b\"), FirstKeyOnly])])",
        );
        check(
            "(KeyOnlyFilter() OR FirstKeyOnlyFilter()) AND ColumnPrefixFilter('x')",
            "List(All, [List(One, [KeyOnly, FirstKeyOnly]), ColumnPrefix(b\"x\")])",
        );
        check("((KeyOnlyFilter()))", "KeyOnly");
    }

    #[test]
    fn row_filters_are_ranges_prefixes_and_patterns() {
        check("RowFilter(=, 'binaryprefix:r')", "Prefix(b\"r\")");
        check("RowFilter(=,'binary:r')", r#"MultiRowRange([RowRange { start: b"r", stop: b"r\0" }])"#);
        check("RowFilter (>, 'binary:a:b')", r#"MultiRowRange([RowRange { start: b"a:b\0", stop: b"" }])"#);
        check("RowFilter(=, 'regexstring:^r[0-9]')", "RowRegex(Regex(\"^r[0-9]\"))");
        check("RowFilter(=, 'substring:a.b')", "RowRegex(Regex(\"(?i)a\\\\.b\"))");
    }

    #[test]
    fn what_is_wrong_is_told() {
        check_wrong("", "a filter is expected at byte 0 of the filter");
        check_wrong("KeyOnlyFilter()x", "AND, OR or the end is expected at byte 15 of the filter");
        check_wrong("PrefixFilter('a", "the string at byte 13 of the filter has no end");
        check_wrong("KeyOnlyFilter(1)", "KeyOnlyFilter takes no argument (byte 0 of the filter)");
        check_wrong(
            "RowFilter(!=, 'binary:x')",
            "RowFilter(!=, 'binary:…') is not supported yet (byte 0 of the filter)",
        );
        check_wrong("SKIP KeyOnlyFilter()", "SKIP is not supported yet");
        check_wrong("(KeyOnlyFilter()", "`)` is expected at byte 16 of the filter");
        assert!(parse(b"ValueFilter(=, 'binary:x')").unwrap_err().starts_with("ValueFilter is not supported yet"));
        assert!(parse(b"RowFilter(=, 'regexstring:(')").unwrap_err().contains("unclosed group"));
        assert!(parse("(".repeat(100_000).as_bytes()).unwrap_err().contains("more than 32 deep"));
    }
}
