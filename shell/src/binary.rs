//! Bytes as HBase prints them: what is printable as it is, the rest as `\xNN`.

use std::fmt::Write as _;

/// Bytes as text that a double-quoted string gives back.
///
/// *Source*: HBase `Bytes.toStringBinary`.
pub(crate) fn string_binary(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if matches!(byte, b' '..=b'~') && byte != b'\\' {
            text.push(char::from(byte));
        } else {
            write!(text, "\\x{byte:02X}").unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `S-CNT-4`
    #[test]
    fn strings_where_they_can_be_read() {
        assert_eq!(string_binary(b"abc\x01"), "abc\\x01");
        assert_eq!(string_binary(b"\0\xff\\ ~\x7f"), "\\x00\\xFF\\x5C ~\\x7F");
    }
}
