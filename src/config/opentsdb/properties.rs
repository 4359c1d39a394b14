//! Java's properties form, as `java.util.Properties.load` reads it from a stream.
//!
//! ```text
//! bytes, each a letter of Latin-1 ─► lines, joined over backslashes ─► key, separator, value ─► escapes
//! ```
//!
//! One thing is not as in Java: blanks at the end of a value are no part of it, unless escaped. OpenTSDB drops them from
//! numbers and switches; in a text they are a slip.

/// What may stand between words.
const BLANKS: [char; 3] = [' ', '\t', '\u{c}'];

/// The keys and values of a file, in its order.
///
/// # Errors
///
/// A `\u` without its four hexadecimal digits, in words.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    lines(&text).iter().map(|line| pair(line)).collect()
}

/// Lines without comments and empty ones. A line that ends in an odd number of backslashes goes on in the next one,
/// without that one's leading blanks.
fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut begun: Option<String> = None;
    for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
        let line = line.trim_start_matches(BLANKS);
        if begun.as_ref().is_none_or(String::is_empty) && line.starts_with(['#', '!']) {
            continue;
        }
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let mut whole = begun.take().unwrap_or_default() + line;
        if backslashes % 2 == 1 {
            whole.pop();
            begun = Some(whole);
        } else if !whole.is_empty() {
            lines.push(whole);
        }
    }
    lines.extend(begun);
    lines
}

/// A key ends at the first `=`, `:` or blank that is not escaped; one `=` or `:` and blanks about it are no value yet.
fn pair(line: &str) -> Result<(String, String), String> {
    let mut is_escaped = false;
    let end = line.find(|letter| {
        let is_end = !is_escaped && (matches!(letter, '=' | ':') || BLANKS.contains(&letter));
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    let (key, rest) = end.and_then(|end| line.split_at_checked(end)).unwrap_or((line, ""));
    let rest = rest.trim_start_matches(BLANKS);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(BLANKS);
    let unescaped = |text: &str| unescaped(text).map_err(|why| format!("key `{key}`: {why}"));
    Ok((unescaped(key)?, unescaped(value)?))
}

/// The text that is meant, without blanks at its end. Java's texts are UTF-16: two `\u` may make one letter.
fn unescaped(text: &str) -> Result<String, String> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut length = 0;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\' {
            let Some(escape) = letters.next() else { break };
            units.push(match escape {
                't' => 0x9,
                'n' => 0xa,
                'f' => 0xc,
                'r' => 0xd,
                'u' => unit(&letters.by_ref().take(4).collect::<String>())?,
                other => of_latin1(other),
            });
            length = units.len();
        } else {
            units.push(of_latin1(letter));
            if !BLANKS.contains(&letter) {
                length = units.len();
            }
        }
    }
    units.truncate(length);
    Ok(String::from_utf16_lossy(&units))
}

fn of_latin1(letter: char) -> u16 {
    u16::try_from(u32::from(letter)).unwrap_or(u16::MAX)
}

fn unit(digits: &str) -> Result<u16, String> {
    let is_unit = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let unit = is_unit.then(|| u16::from_str_radix(digits, 16).ok()).flatten();
    unit.ok_or_else(|| format!("`\\u{digits}` is not `\\u` and four hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &[u8], expected: &[(&str, &str)]) {
        let pairs = read(file).unwrap();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, expected, "{:?}", String::from_utf8_lossy(file));
    }

    #[test]
    fn a_backslash_escapes_the_letter_behind_it() {
        check(br"a = ^sys\\..*", &[("a", r"^sys\..*")]);
        check(br"a = \t\n\r\f|\q\:\=\ \#", &[("a", "\t\n\r\u{c}|q:= #")]);
        check(br"a = \u00fc\u20AC\ud83d\uDE00", &[("a", "ü€😀")]);
        check(br"a\:b\=c\ d = 1", &[("a:b=c d", "1")]);
        check(br"a\\=1", &[(r"a\", "1")]);
        for wrong in [&br"a = \u12"[..], br"a = \u12g4", br"a = \u+123", br"\u = 1"] {
            let why = read(wrong).unwrap_err();
            assert!(why.contains("key `") && why.contains("four hexadecimal digits"), "{why}");
        }
    }

    #[test]
    fn a_key_ends_at_a_separator_or_a_blank() {
        for file in ["a=1", "a:1", "a 1", " \t\u{c}a \t = \t1", "a : 1", "a\u{c}1"] {
            check(file.as_bytes(), &[("a", "1")]);
        }
        check(b"a = = 1", &[("a", "= 1")]);
        check(b"a:b = c", &[("a", "b = c")]);
        check(b"a\nb =\n= c", &[("a", ""), ("b", ""), ("", "c")]);
    }

    #[test]
    fn an_odd_number_of_backslashes_joins_two_lines() {
        check(b"a = 1\\\n  2\\\r\n\t3\nb = 4", &[("a", "123"), ("b", "4")]);
        check(b"a = 1\\\\\nb = 2", &[("a", r"1\"), ("b", "2")]);
        check(b"a = 1\\\\\\\n2", &[("a", r"1\2")]);
        check(b"a \\\n = 1", &[("a", "1")]);
        check(b"a = 1\\\n\nb = 2", &[("a", "1"), ("b", "2")]);
        check(b"a = 1\\\n# 2", &[("a", "1# 2")]);
        check(b"a = 1\\", &[("a", "1")]);
    }

    #[test]
    fn comments_go_on_in_no_other_line() {
        check(b"# a = 1\\\nb = 2\r  ! c\r\n\n \t\nd = 3 # 4", &[("b", "2"), ("d", "3 # 4")]);
    }

    #[test]
    fn bytes_are_latin_1() {
        check(b"# \xfc\na = \xfc\xff", &[("a", "üÿ")]);
        check("a = ü".as_bytes(), &[("a", "Ã¼")]);
    }

    #[test]
    fn blanks_at_the_end_go_unless_escaped() {
        check(b"a = 1 \t\nb = \\ \nc = 1\\  ", &[("a", "1"), ("b", " "), ("c", "1 ")]);
    }
}
