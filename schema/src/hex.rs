//! Bytes as hexadecimal text: upper case where users see TSUIDs and UIDs, lower case in errors.

/// `FF00`, the form of TSUIDs and UIDs in answers.
pub(crate) fn upper(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(2 * bytes.len());
    upper_into(bytes, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends bytes in upper-case hexadecimal, the form of TSUIDs and UIDs in answers.
pub fn upper_into(bytes: &[u8], out: &mut Vec<u8>) {
    let digit = |nibble: u8| nibble + if nibble < 10 { b'0' } else { b'A' - 10 };
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    let (pairs, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<2>();
    for (pair, byte) in pairs.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 0xF)];
    }
}

/// `ff00`, the form of dumps and errors.
pub fn lower(bytes: &[u8]) -> String {
    upper(bytes).to_ascii_lowercase()
}

/// Reads digits of either case; `None` for an odd number of them or any other character.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?)).collect()
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
        assert_eq!(decode(&lower(&bytes)), Some(bytes.clone()));
        let mut appended = b"id ".to_vec();
        upper_into(&bytes, &mut appended);
        assert_eq!(appended, format!("id {}", upper(&bytes)).into_bytes());
        for bad in ["0", "0g", "é", " 0", "+1"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
