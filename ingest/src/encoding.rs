//! Bytes as text. What is stored is UTF-8; senders may have written ISO-8859-1, which OpenTSDB takes.

use std::borrow::Cow;

/// The text of a body as UTF-8; bytes that are not UTF-8 become U+FFFD, which no name may hold.
pub fn decode_text(bytes: &[u8]) -> Cow<'_, str> {
    // To check a whole text at once is several times as fast as to decode it piece by piece.
    simdutf8::basic::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The text of a telnet line: UTF-8, or ISO-8859-1 where it is no UTF-8. OpenTSDB reads every line as ISO-8859-1, so that
/// it makes two characters of each `é` of a sender that writes UTF-8. *Cost*: as [`decode_text`] of UTF-8.
pub fn decode_line(line: &[u8]) -> Cow<'_, str> {
    simdutf8::basic::from_utf8(line).map_or_else(|_| Cow::Owned(decode_latin1(line)), Cow::Borrowed)
}

/// The text of ISO-8859-1, in which every byte is a character: up to twice as many bytes of UTF-8.
pub fn decode_latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `T-PUT`: a line that is UTF-8 stays so, any other is ISO-8859-1.
    #[test]
    fn t_put_a_line_is_utf_8_or_latin_1() {
        assert_eq!(decode_line("put é".as_bytes()), "put é");
        assert_eq!(decode_line(b"put \xe9\xff"), "put éÿ");
        assert_eq!(decode_latin1("é".as_bytes()), "Ã©");
        assert_eq!(decode_text(b"\xe9"), "\u{fffd}");
    }
}
