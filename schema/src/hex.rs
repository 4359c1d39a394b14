//! Bytes as hexadecimal text: upper case where users see TSUIDs and UIDs, lower case in errors.

/// `FF00`, the form of TSUIDs and UIDs in answers.
pub(crate) fn upper(bytes: &[u8]) -> String {
    digits(bytes, b"0123456789ABCDEF")
}

/// `ff00`, the form of dumps.
pub(crate) fn lower(bytes: &[u8]) -> String {
    digits(bytes, b"0123456789abcdef")
}

/// Reads digits of either case; `None` for an odd number of them or any other character.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?)).collect()
}

fn digits(bytes: &[u8], alphabet: &[u8; 16]) -> String {
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    nibbles.map(|nibble| char::from(alphabet.get(usize::from(nibble)).copied().unwrap_or(b'?'))).collect()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&upper(&bytes)), Some(bytes.clone()));
        assert_eq!(decode(&lower(&bytes)), Some(bytes));
        for bad in ["0", "0g", "é", " 0", "+1"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
