//! Values as Java prints them in OpenTSDB's error texts: maps in the order of Java's hash table, byte arrays as signed numbers.
//!
//! Clients and people search for these texts, so they are the same in every character.

use std::fmt::{self, Write as _};

/// At most this many tags are printed: a body of a million tags must not give a text of a million tags.
const TAGS_PRINTED_MAX: usize = 64;

/// `{host=a, dc=b}` in the order in which `java.util.HashMap` gives its entries.
pub(crate) fn tags_text<'t>(tags: impl Iterator<Item = (&'t str, Option<&'t str>)>) -> String {
    let mut tags: Vec<_> = tags.take(TAGS_PRINTED_MAX).collect();
    let buckets = table_size(tags.len());
    // Stable: entries of one bucket stay in the order in which they were put.
    tags.sort_by_key(|(key, _)| bucket_of(key, buckets));
    let mut text = String::from("{");
    for (index, (key, value)) in tags.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        append(&mut text, format_args!("{comma}{key}={}", value.unwrap_or("null")));
    }
    text.push('}');
    text
}

/// `[63, -8, 0, 0]`.
pub(crate) fn bytes_text(bytes: &[u8]) -> String {
    let mut text = String::from("[");
    for (index, byte) in bytes.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        append(&mut text, format_args!("{comma}{}", byte.cast_signed()));
    }
    text.push(']');
    text
}

/// Bytes as asynchbase's `Bytes.pretty` prints them: as text with escapes where half of them are letters, else as
/// numbers.
pub(crate) fn bytes_pretty(bytes: &[u8]) -> String {
    let printable = bytes.iter().filter(|byte| (b' '..=b'~').contains(*byte)).count();
    if printable < bytes.len() / 2 {
        return bytes_text(bytes);
    }
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b' '..=b'~' => text.push(char::from(*byte)),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            other => append(&mut text, format_args!("\\x{other:02X}")),
        }
    }
    text.push('"');
    text
}

/// Bytes from base 64 as Java's `DatatypeConverter` reads them: it skips characters that are not of base 64, and an incomplete
/// group at the end.
pub(crate) fn from_base64(text: &str) -> Vec<u8> {
    const PADDING: u8 = 64;
    let digits = text.bytes().filter_map(|byte| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        b'=' => Some(PADDING),
        _ => None,
    });
    let digits: Vec<u8> = digits.collect();
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for four in digits.chunks_exact(4) {
        let [a, b, c, d] = *four else { continue };
        bytes.push((a << 2) | (b >> 4));
        if c != PADDING {
            bytes.push((b << 4) | (c >> 2));
        }
        if d != PADDING {
            bytes.push((c << 6) | d);
        }
    }
    bytes
}

fn append(text: &mut String, arguments: fmt::Arguments<'_>) {
    let written = text.write_fmt(arguments);
    debug_assert!(written.is_ok(), "BUG: a string refused to grow");
}

/// How many buckets a hash map of `entries` has: a power of two, 16 at least, doubled when more than three quarters full.
fn table_size(entries: usize) -> usize {
    let mut buckets = 16;
    while entries > buckets / 4 * 3 {
        buckets *= 2;
    }
    buckets
}

fn bucket_of(key: &str, buckets: usize) -> usize {
    let hash = key.encode_utf16().fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
    (hash ^ (hash >> 16)) as usize & (buckets - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[&str], expected: &str) {
        assert_eq!(tags_text(keys.iter().map(|key| (*key, Some("a")))), expected);
    }

    #[test]
    fn maps_print_in_the_order_that_opentsdb_was_seen_to_print() {
        check(
            &["h1", "h2", "h3", "h4", "host", "dc", "rack", "zone", "cpu"],
            "{rack=a, zone=a, host=a, h1=a, cpu=a, h2=a, h3=a, h4=a, dc=a}",
        );
        check(&["host", "dc"], "{host=a, dc=a}");
        check(&["dc", "host"], "{host=a, dc=a}");
        check(&[], "{}");
        assert_eq!(tags_text([("host", None)].into_iter()), "{host=null}");
    }

    #[test]
    fn bytes_print_signed() {
        assert_eq!(bytes_text(&[63, 0xF8, 0, 0]), "[63, -8, 0, 0]");
        assert_eq!(bytes_text(&[]), "[]");
    }

    #[test]
    fn a_long_map_is_cut() {
        let keys: Vec<String> = (0..1000).map(|key| key.to_string()).collect();
        let text = tags_text(keys.iter().map(|key| (key.as_str(), Some("v"))));
        assert_eq!(text.matches('=').count(), TAGS_PRINTED_MAX);
    }
}
