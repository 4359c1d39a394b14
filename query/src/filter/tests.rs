//! Each filter on values of every kind.

use super::*;
use crate::Compat;

fn takes(filter: &TagFilter, value: &str) -> bool {
    Matcher::compile(filter, Compat::default()).unwrap().takes(value)
}

/// Checks a filter given as a bare value: the values it takes, and those it does not.
fn check(text: &str, taken: &[&str], left: &[&str]) {
    let filter = TagFilter::from_value("host", text).unwrap();
    for value in taken {
        assert!(takes(&filter, value), "{text} must take {value}");
    }
    for value in left {
        assert!(!takes(&filter, value), "{text} must leave {value}");
    }
}

fn check_error(text: &str, expected: &str) {
    assert_eq!(TagFilter::from_value("host", text).unwrap_err().to_string(), expected);
}

#[test]
fn q_filter_literals() {
    check("web01", &["web01"], &["WEB01", "web011", ""]);
    check("literal_or(a|b)", &["a", "b"], &["A", "a|b"]);
    check("iliteral_or(Web|db)", &["WEB", "DB"], &["webs"]);
    check("not_literal_or(a|b)", &["A", "c"], &["a", "b"]);
    check("not_iliteral_or(a|B)", &["c"], &["A", "b"]);
    check("LITERAL_OR(a)", &["a"], &["b"]);
    check("||a||", &["a"], &[""]);
}

#[test]
fn q_filter_wildcard() {
    check("wildcard(web*)", &["web", "web01"], &["Web01", "aweb"]);
    check("wildcard(*.lga)", &["a.lga", ".lga"], &["a.lga.b"]);
    check("wildcard(web*.lga*x)", &["web01.lga.x", "web.lgax"], &["web.x", "web.lga.y"]);
    check("wildcard(*mti*)", &["amtib", "mti"], &["mt"]);
    // Ours is anchored at both ends; OpenTSDB's is not when no star is at an end.
    check("wildcard(a*b)", &["ab", "a1b"], &["xab", "abx", "b"]);
    check("wildcard(aba*aba)", &["abaaba"], &["aba", "ababa"]);
    check("wildcard(*)", &["", "x"], &[]);
    check("iwildcard(WEB*)", &["web01", "Web"], &["aweb"]);
}

#[test]
fn q_filter_wildcard_strict_is_not_anchored() {
    let filter = TagFilter::from_value("host", "wildcard(a*b)").unwrap();
    let matcher = Matcher::compile(&filter, Compat { strict: true }).unwrap();
    assert!(matcher.takes("xaby") && !matcher.takes("x"));
}

#[test]
fn q_filter_iwildcard_shorthand_ignores_case() {
    check("web*", &["WEB01", "web"], &["aweb"]);
    let filter = TagFilter::from_value("host", "web*").unwrap();
    assert_eq!((filter.kind_name(), filter.text()), ("wildcard", "web*"));
    assert!(TagFilter::from_value("host", "**").unwrap().is_any_value());
}

#[test]
fn q_filter_regexp_finds_anywhere() {
    check("regexp(web[0-9]+)", &["web1", "xweb12y"], &["web"]);
    check("regexp(^web$)", &["web"], &["web1"]);
    let error = TagFilter::from_value("host", "regexp((?=a)b)").unwrap_err().to_string();
    assert!(error.starts_with("The regular expression '(?=a)b' is not one we can run: look-around"), "{error}");
}

#[test]
fn q_filter_regexp_is_javas() {
    check(r"regexp(^\w+$)", &["web_1"], &["é"]);
    check(r"regexp(^\Qa.b\E\Z)", &["a.b"], &["axb"]);
    check(r"regexp(^[\p{XDigit}.]+$)", &["0f.A"], &["g"]);
    check("regexp((?i)^WEBÉ)", &["webÉ"], &["webé"]);
    for text in [r"(\w", r"\w(?=a)"] {
        let error = TagFilter::new("regexp", "host", text, false).unwrap_err().to_string();
        assert!(error.starts_with(&format!("The regular expression '{text}' is not one we can run: ")), "{error}");
    }
}

#[test]
fn q_filter_refusals() {
    check_error("literal_or(a", "Filter must end with a ')': literal_or(a");
    check_error("nosuch(a)", "Could not find a tag value filter of the type: nosuch");
    check_error("literal_or()", "Filter cannot be null or empty");
    check_error("literal_or(|)", "Filter must contain more than just a pipe");
    check_error("wildcard(a)", "Filter must contain an asterisk");
    check_error("not_key(a)", "The filter must be empty for the not_key filter");
    assert!(TagFilter::new("", "host", "a", false).is_err());
    assert!(TagFilter::new("regexp", "", "a", false).is_err());
}

#[test]
fn q_filter_tags_the_same_filter_twice_is_one_that_groups() {
    let mut filters = vec![TagFilter::from_value("host", "a").unwrap()];
    TagFilter::add_grouping(&mut filters, TagFilter::from_value("host", "a").unwrap());
    TagFilter::add_grouping(&mut filters, TagFilter::from_value("host", "b").unwrap());
    assert_eq!(filters.iter().map(|filter| filter.group_by).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn q_filter_tags_a_list_is_the_set_of_its_values() {
    let check = |first: &str, second: &str, expected: usize| {
        let mut filters = vec![TagFilter::from_value("host", first).unwrap()];
        TagFilter::add_grouping(&mut filters, TagFilter::from_value("host", second).unwrap());
        assert_eq!(filters.len(), expected, "{first} {second}");
        assert_eq!(filters[0].group_by, expected == 1, "{first} {second}");
    };
    check("a", "a|a", 1);
    check("b|a", "a|b", 1);
    check("literal_or(a)", "literal_or(A)", 2);
    check("iliteral_or(a)", "iliteral_or(A|a)", 1);
    check("literal_or(a)", "not_literal_or(a)", 2);
    check("regexp(a|b)", "regexp(b|a)", 2);
}

#[test]
fn every_kind_is_described() {
    assert_eq!(filter_descriptions().len(), FilterKind::ALL.len());
    assert!(
        filter_descriptions().all(|filter| filter.examples.contains(filter.name) && !filter.description.is_empty())
    );
}

/// A request may have many, and a body is long.
#[test]
fn regular_expressions_are_bounded_in_length_and_memory() {
    let filter = |text: &str| TagFilter::new("regexp", "h", text, false);
    for text in ["a".repeat(20_000), "(".repeat(500)] {
        assert!(filter(&text).is_err(), "{}", text.len());
    }
    assert!(filter("(").unwrap_err().is_server_error_in_opentsdb());
    let compiled = |text| Matcher::compile(&filter(text).unwrap(), Compat::default());
    // None of these is compiled while it is read.
    for text in ["(x{1000}){1000}", r"(\pL{100}){100}", r"\p{javaLowerCase}"] {
        let error = compiled(text).unwrap_err();
        // Java may know it.
        assert!(!error.is_server_error_in_opentsdb());
        let error = error.to_string();
        assert!(error.starts_with(&format!("The regular expression '{text}' is not one we can run: ")), "{error}");
    }
    assert!(compiled(r"^(\w+\s?)*$").is_ok());
    assert!(TagFilter::new("literal_or", "h", &"a|".repeat(1 << 20), false).is_err());
}
