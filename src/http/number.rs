//! Doubles as OpenTSDB's JSON writes them: Java's `Double.toString` (rule `Q-NUMFMT`).
//!
//! From 10⁻³ up to 10⁷ a plain decimal with at least one digit after the point (`25.0`), outside of
//! that one digit, a point, at least one digit and an exponent (`4.15E8`, `1.0E-4`); the digits are
//! the fewest that read back as the same number. Not-a-number and the infinities are JSON texts.

use std::io::Write as _;

/// Room for any double: sign, 17 digits, point, `E-324`.
const LENGTH_MAX: usize = 32;

/// Appends `value`.
pub(crate) fn write_double(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        let word: &[u8] = match value {
            _ if value.is_nan() => b"\"NaN\"",
            _ if value > 0.0 => b"\"Infinity\"",
            _ => b"\"-Infinity\"",
        };
        out.extend_from_slice(word);
        return;
    }
    out.reserve(LENGTH_MAX);
    let size = value.abs();
    let start = out.len();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        // Writing into a Vec cannot fail.
        write!(out, "{value}").unwrap_or_default();
        if !out.iter().skip(start).any(|byte| *byte == b'.') {
            out.extend_from_slice(b".0");
        }
        return;
    }
    let text = format!("{value:E}");
    let (digits, exponent) = text.split_once('E').unwrap_or((text.as_str(), "0"));
    out.extend_from_slice(digits.as_bytes());
    if !digits.contains('.') {
        out.extend_from_slice(b".0");
    }
    out.push(b'E');
    out.extend_from_slice(exponent.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, expected: &str) {
        let mut out = Vec::new();
        write_double(&mut out, value);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// The expected texts are Java's (`Q-NUMFMT`).
    #[test]
    fn doubles_look_as_java_writes_them() {
        check(25.0, "25.0");
        check(0.0, "0.0");
        check(-0.0, "-0.0");
        check(-1.5, "-1.5");
        check(0.1, "0.1");
        check(0.001, "0.001");
        check(0.000_999, "9.99E-4");
        check(1e-4, "1.0E-4");
        check(9_999_999.5, "9999999.5");
        check(1e7, "1.0E7");
        check(4.15e8, "4.15E8");
        check(-1.234_567_89e15, "-1.23456789E15");
        check(f64::MAX, "1.7976931348623157E308");
        check(f64::NAN, "\"NaN\"");
        check(f64::INFINITY, "\"Infinity\"");
        check(f64::NEG_INFINITY, "\"-Infinity\"");
    }
}
