//! Each pattern as `Pattern.compile(…).matcher(value).find()` of a Java 17 answers.

use proptest::prelude::*;
use regex::Regex;

use super::*;

/// Checks the values that a pattern finds something in, and those that it does not.
fn check(pattern: &str, found: &[&str], left: &[&str]) {
    let translated = java_pattern(pattern);
    let regex = Regex::new(&translated).unwrap();
    for (values, expected) in [(found, true), (left, false)] {
        for value in values {
            assert_eq!(regex.is_match(value), expected, "{pattern} as {translated} on {value:?}");
        }
    }
}

fn check_refused(pattern: &str) {
    let translated = java_pattern(pattern);
    assert!(Regex::new(&translated).is_err(), "{pattern} as {translated}");
}

#[test]
fn classes_are_of_ascii() {
    check(r"^\w+$", &["aZ_9"], &["é", "a-b", "٢"]);
    check(r"\W", &["é", "-"], &["a", "_"]);
    check(r"\d", &["9"], &["٢"]);
    check(r"\D", &["٢"], &["9"]);
    check(r"\s", &["\t", "\x0B", " "], &["\u{A0}", "\u{85}"]);
    check(r"\S", &["\u{A0}"], &[" "]);
    check(r"^[\w.-]+$", &["a-b.c"], &["é"]);
    check(r"[^\W\d]", &["a"], &["9", "é"]);
    check(r"\p{Alpha}", &["k"], &["é", "9"]);
    check(r"\P{Alpha}", &["é", "9"], &["k"]);
    check(r"[\p{Upper}\d]", &["Z", "9"], &["É", "z", "٢"]);
    check(r"\p{Punct}", &["$", "~"], &["a", "«"]);
    check(r"\p{XDigit}", &["f", "9"], &["g"]);
    check(r"\p{Graph}", &["!"], &[" ", "é"]);
    check(r"\p{Print}", &[" "], &["\t"]);
    check(r"\p{Blank}", &["\t"], &["\n"]);
    check(r"\p{Cntrl}", &["\x7F"], &["\u{85}"]);
    check(r"\P{ASCII}", &["é"], &["a"]);
    check(r"\p{L1}", &["é"], &["λ"]);
    // Unicode's own stay.
    check(r"\pL\p{IsLatin}\p{IsAlphabetic}\p{Lu}", &["éééÉ"], &["éééé"]);
}

#[test]
fn escapes_are_javas() {
    check(r"\h\v", &["\u{A0}\u{85}", "\t\n"], &["\n\n", "\t\t"]);
    check(r"^[\H]$", &["a"], &["\t"]);
    check(r"^a\Rb$", &["a\r\nb", "a\u{2028}b"], &["ab"]);
    check(r"a\Z", &["a", "ba", "a\n", "a\r\n"], &["ab", "a\n\n"]);
    check(r"^\e\cA\07\0101\01234\x41\u0041\x{e9}$", &["\x1B\x01\x07AS4AAé"], &[]);
    check(r"^\\w$", &[r"\w"], &["a"]);
    check(r"^[\\w]$", &["\\", "w"], &["a"]);
    check(r"^\<\é\_\-$", &["<é_-"], &[]);
    for pattern in
        [r"\", r"\y", r"\c", r"\0", r"\08", r"\xé", r"\u0", r"\p", r"\p{", r"[\p{L", r"[\R]", r"[a-\w]", r"[+-\w]"]
    {
        check_refused(pattern);
    }
}

#[test]
fn quotes_are_literal() {
    check(r"^\Qa.b\E$", &["a.b"], &["axb"]);
    check(r"\Qa.b", &["a.b"], &["axb"]);
    check(r"^\Qab\E+$", &["abb"], &["abab"]);
    check(r"^\Q\w\\E$", &[r"\w\"], &["a"]);
    check(r"a\Q", &["a"], &["b"]);
    check(r"^\x41\Q1\E$", &["A1"], &[]);
    check(r"^\\Q$", &[r"\Q"], &["Q"]);
    check(r"^[\Q^-]\E]$", &["^", "-", "]"], &["a", "\\"]);
    check(r"^[a\Q-\Ez]$", &["a", "-", "z"], &["b"]);
    check(r"(?x)^\Q \E$", &[" "], &[""]);
    for pattern in [r"\E", r"a\E", r"\Qa\E\E", r"\x4\Q1\E"] {
        check_refused(pattern);
    }
}

/// The crate has more signs that mean something in a class.
#[test]
fn classes_are_unions_ranges_and_intersections() {
    check("[[:alpha:]]", &["a", ":"], &["b"]);
    check("^[+--]$", &["+", ",", "-"], &["."]);
    check("^[--/]$", &["-", ".", "/"], &["+"]);
    check("^[a~~b]$", &["a", "~", "b"], &[]);
    check("^[a-c-e]$", &["b", "-", "e"], &["d"]);
    check(r"^[\w-.]$", &["a", "-", "."], &[","]);
    check("^[ -~]$", &["a", " "], &["\t", "é"]);
    check(r"^[\x61-\x7a]$", &["k"], &["K"]);
    check("^[a-z&&[^k]]$", &["a"], &["k", "&"]);
    check("^[a-z&&^b]$", &["b"], &["a", "^"]);
    check("^[a&b]$", &["&", "b"], &[]);
    check("^[&&a]$", &["a"], &["&"]);
    check("^[]a]$", &["]", "a"], &[]);
    check("^[^]a]$", &["b"], &["]", "a"]);
    check("^[a[b[^c-z]]d]$", &["a", "b", "d", "é"], &["e"]);
    check("(?x)^[a b]$", &["a"], &[" "]);
    for pattern in ["[", "[a", "[]", "[^]", "[&&]", "[z-a]", "[a-"] {
        check_refused(pattern);
    }
}

#[test]
fn flags_are_javas() {
    check("(?i)^ks$", &["KS", "ks"], &["\u{212A}s", "k\u{17F}"]);
    check("(?i)é+λ", &["ééλ"], &["Éλ", "éΛ"]);
    check(r"(?i)^\Qké\E$", &["Ké"], &["KÉ"]);
    check(r"(?i)^\w\p{Lower}$", &["aA"], &["\u{212A}a", "a\u{212A}"]);
    check(r"(?i)^\W$", &["\u{212A}"], &["k"]);
    check("(?iu)é", &["É"], &[]);
    check(r"(?U)^\w$", &["é"], &["-"]);
    check(r"(?i:a)\p{Lower}", &["Aa"], &["aA"]);
    check(r"((?i)a\p{Upper})b(\p{Upper})", &["AabA"], &["aAba", "AABA"]);
    check(r"(?i)a(?-i)\p{Upper}", &["AA"], &["Aa"]);
    check(r"(?i)a(?-i:\p{Upper}(?i)\p{Upper})\p{Upper}", &["aAaa"], &["aaaa"]);
    check("(?i)(?-i:k)k(?U:\\w)(?x: [a b] # (\n)[a b]", &["kKéa ", "kkéaa"], &["KKéa ", "kKé a"]);
    check("(?iu:é(?-U)é)", &["Éé"], &["éÉ"]);
    check("(?u)(?d)(?)(?-)(?i-)^a(?:b)(?<ks>c)$", &["abc", "ABC"], &["ab"]);
}

/// `a*+a` is nothing's match in Java.
#[test]
fn what_gives_nothing_back_is_refused() {
    for pattern in ["a*+a", "a++", "a?+", "a{1,2}+", "(?>a)"] {
        check_refused(pattern);
    }
    check(r"^a+?b*?c??d{2}[*]+\++$", &["add*+"], &["ad"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_translated_within_its_bound(
        parts in proptest::collection::vec(r"\\[a-zA-Z0-9]|\\Q|\\E|\[\^?|\]|&&|-|\(\?[a-z]|\{|\}|[*+?]|k|é|\PC", 0..24),
    ) {
        let text = parts.concat();
        let translated = java_pattern(&text);
        prop_assert!(translated.len() <= 40 * text.len(), "{}", translated);
        drop(Regex::new(&translated));
    }
}
