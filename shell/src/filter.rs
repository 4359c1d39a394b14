//! HBase's filter language: `PrefixFilter('a') AND (KeyOnlyFilter() OR RowFilter(=, 'regexstring:x$'))`.
//!
//! ```text
//! any    = all { "OR" all }
//! all    = one { "AND" one }
//! one    = ( "SKIP" | "WHILE" ) one | "(" any ")" | NAME "(" [ argument { "," argument } ] ")"
//! argument = "'" text "'" with '' for a quote | comparison | number | true | false
//! ```
//!
//! Filters that the store does not have are refused by name.

mod build;

use basalt_store::{Filter, ListOperator};

/// How deep brackets may lie in each other.
const DEPTH_MAX: usize = 32;

/// Filters in one text: each regular expression among them takes memory of its own.
const FILTERS_MAX: usize = 512;

/// The filter that `text` describes; else what is wrong and at which byte.
pub(crate) fn parse(text: &[u8]) -> Result<Filter, String> {
    let mut parser = Parser { text, at: 0, filters_count: 0 };
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
    filters_count: usize,
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
            "SKIP" => return Ok(Filter::Skip(Box::new(self.one(depth + 1)?))),
            "WHILE" => return Ok(Filter::WhileMatch(Box::new(self.one(depth + 1)?))),
            _ => {}
        }
        if !self.sign(b'(') {
            return Err(self.wrong(&format!("`(` is expected after {name}")));
        }
        self.filters_count += 1;
        if self.filters_count > FILTERS_MAX {
            return Err(self.wrong(&format!("there are more than {FILTERS_MAX} filters")));
        }
        let mut arguments = Vec::new();
        while !self.sign(b')') {
            if !arguments.is_empty() && !self.sign(b',') {
                return Err(self.wrong("`,` or `)` is expected"));
            }
            arguments.push(self.argument()?);
        }
        build::filter(&name, &arguments).map_err(|reason| format!("{reason} (byte {begin} of the filter)"))
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
    fn skip_and_while_bind_tightest() {
        check(
            "SKIP KeyOnlyFilter() AND WHILE (FirstKeyOnlyFilter() OR PageFilter(3))",
            "List(All, [Skip(KeyOnly), WhileMatch(List(One, [FirstKeyOnly, Page(3)]))])",
        );
    }

    #[test]
    fn each_filter_has_its_arguments() {
        check("RowFilter(=,'binary:r')", "Row(Equal, Binary(b\"r\"))");
        check("RowFilter (>, 'binaryprefix:a:b')", "Row(Greater, BinaryPrefix(b\"a:b\"))");
        check("ValueFilter(!=, 'regexstring:^r[0-9]')", "Value(NotEqual, Regex(Regex(\"^r[0-9]\")))");
        check("QualifierFilter(=, 'substring:a.b')", "Qualifier(Equal, Substring(\"a.b\"))");
        check("FamilyFilter(<=, 'binary:f')", "Family(LessOrEqual, Binary(b\"f\"))");
        check("MultipleColumnPrefixFilter('a', 'b')", "ColumnPrefixes([b\"a\", b\"b\"])");
        check("ColumnPaginationFilter(10, 2)", "ColumnPage { limit: 10, offset: 2 }");
        check("TimestampsFilter(5, 7)", "Timestamps([Timestamp(5), Timestamp(7)])");
        check("InclusiveStopFilter('r')", "InclusiveStop(b\"r\")");
        let single = "SingleColumnValueFilter('f', 'q', =, 'binary:v'";
        let told = |if_missing, latest_only| {
            format!(
                "SingleColumnValue {{ test: ColumnTest {{ family: b\"f\", qualifier: b\"q\", comparison: Equal, \
                 comparator: Binary(b\"v\") }}, if_missing: {if_missing}, latest_only: {latest_only}, exclude: false }}"
            )
        };
        check(&format!("{single})"), &told(false, true));
        check(&format!("{single}, true, false)"), &told(true, false));
    }

    #[test]
    fn what_is_wrong_is_told() {
        check_wrong("", "a filter is expected at byte 0 of the filter");
        check_wrong("KeyOnlyFilter()x", "AND, OR or the end is expected at byte 15 of the filter");
        check_wrong("PrefixFilter('a", "the string at byte 13 of the filter has no end");
        check_wrong("KeyOnlyFilter(1)", "KeyOnlyFilter takes no argument (byte 0 of the filter)");
        check_wrong(
            "RowFilter(<, 'substring:x')",
            "'substring:…' is found or not: it takes = or != (byte 0 of the filter)",
        );
        check_wrong(
            "RowFilter(==, 'binary:x')",
            "`==` is no comparison; there are < <= = != >= > (byte 0 of the filter)",
        );
        check_wrong("PageFilter(x)", "PageFilter is called as in PageFilter(10) (byte 0 of the filter)");
        check_wrong("(KeyOnlyFilter()", "`)` is expected at byte 16 of the filter");
        assert!(
            parse(b"DependentColumnFilter('f', 'q')").unwrap_err().starts_with("DependentColumnFilter is not supp")
        );
        assert!(parse("SKIP ".repeat(100_000).as_bytes()).unwrap_err().contains("more than 32 deep"));
        assert!(parse(b"RowFilter(=, 'regexstring:(')").unwrap_err().contains("unclosed group"));
        let several = |regex: &str, count: usize| {
            parse(vec![format!("RowFilter(=, 'regexstring:{regex}')"); count].join(" OR ").as_bytes())
        };
        assert!(several("a", 512).is_ok());
        assert!(several("a", 513).unwrap_err().contains("more than 512 filters"));
        assert!(several(r"\w{400}", 1).unwrap_err().contains("exceeds size limit"));
        assert!(parse("(".repeat(100_000).as_bytes()).unwrap_err().contains("more than 32 deep"));
    }
}
