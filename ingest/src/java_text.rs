//! Values as Java prints them in OpenTSDB's error texts: byte arrays as signed numbers, or as text with escapes.
//!
//! Clients and people search for these texts, so they are the same in every character.

use std::fmt::{self, Write as _};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_signed() {
        assert_eq!(bytes_text(&[63, 0xF8, 0, 0]), "[63, -8, 0, 0]");
        assert_eq!(bytes_text(&[]), "[]");
    }
}
