//! Regular expressions that take a backtracking engine for ever, or an automaton all memory.

use serde_json::json;

use super::attack::Attack;
use crate::cve::escaped;

/// From the literature on catastrophic backtracking and on the size of automata; the last ones are Java's own
/// and no regular language.
const EXPRESSIONS: [&str; 56] = [
    r"(a+)+$",
    r"(a+)+b",
    r"([a-zA-Z]+)*$",
    r"(a|aa)+$",
    r"(a|a?)+$",
    r"(.*a){25}$",
    r"(a*)*b",
    r"(a*)+b",
    r"(a|a)*b",
    r"(.*)*x",
    r"(.*.*)*x",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(x+x+)+y",
    r"((a*)*)*b",
    r"((((a+)+)+)+)+b",
    r"(\d+)*x",
    r"^(\w+\s?)*$",
    r"^([0-9]+)*$",
    r"(a?){50}a{50}",
    r"a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?aaaaaaaaaaaaaaaaaaaa",
    r"([\s\S]*)*!",
    r"(?:a|b|ab)*c",
    r"(ab|a|b)*c",
    r"^(?:.?.?.?.?.?.?.?.?)*x$",
    r"([^a]|[^b])*c",
    r"(\w|\d|_)*!",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"^[a-zA-Z]+(([\'\,\.\-][a-zA-Z ])?[a-zA-Z]*)*$",
    r"(a{1,100}){1,100}$",
    r"^((ab)*)+$",
    r"(.*?,){50}P",
    r"<(?:[^>]+)*>",
    r"\s*#?\s*$",
    r"(?i)(é+)+$",
    r"(\p{L}+)+\d",
    r"[[:alpha:]]*[[:alpha:]]*!",
    r"(x{1000}){1000}",
    r"(x{1000}){1000}{1000}",
    r"((a{100}){100}){100}",
    r"(\pL{100}){100}",
    r"\w{2000}",
    r"(.{1,1000}){1000}",
    r"[\u{0}-\u{10FFFF}]{5000}",
    r"(?:\pL|\pN|\pS){3000}",
    r"((((((((((a{9}){9}){9}){9}){9}){9}){9}){9}){9}){9}){9}",
    r"a{4294967296}",
    r"a{99999999999999999999}",
    r"(((((((((((((((((((((((((((((a",
    r"[",
    r"(?<n>a)\k<n>",
    r"(a+)\1+$",
    r"(?=a+)+b",
    r"(?<!a)b",
    r"(?>a+)b",
    r"a++b",
    r"\Qa\E+",
];

pub(super) fn all() -> impl Iterator<Item = Attack> {
    EXPRESSIONS.into_iter().flat_map(|text| {
        let body = json!({ "start": 1_699_999_999, "end": 1_700_000_100, "queries": [{ "metric": "m", "aggregator": "none",
            "filters": [{ "type": "regexp", "tagk": "h", "filter": text, "groupBy": true }] }] });
        let escaped = escaped(text);
        let target = format!("/api/query?start=1699999999&end=1700000100&m=sum:m%7Bh=regexp({escaped})%7D");
        [
            Attack::post(text, "/api/query", "", body.to_string().into_bytes()),
            Attack::get(text, &target),
        ]
        .map(|attack| attack.answered_by(&[200, 400]))
    })
    .chain(long())
}

/// Those that only their length makes bad.
fn long() -> impl Iterator<Item = Attack> {
    let texts = [
        "(".repeat(100_000),
        "a|".repeat(500_000),
        "(a?)".repeat(100_000),
        "[a-z]".repeat(200_000),
        "\\pL".repeat(100_000),
    ];
    texts.into_iter().map(|text| {
        let body = json!({ "start": 1, "queries": [{ "metric": "m", "aggregator": "sum",
            "filters": [{ "type": "regexp", "tagk": "h", "filter": text }] }] });
        Attack::post("a long one", "/api/query", "", body.to_string().into_bytes()).answered_by(&[200, 400, 413])
    })
}
