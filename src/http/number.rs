//! Doubles as OpenTSDB's JSON writes them: Java's `Double.toString` (rule `Q-NUMFMT`).
//!
//! From 10⁻³ up to 10⁷ a plain decimal with at least one digit after the point (`25.0`), outside of
//! that one digit, a point, at least one digit and an exponent (`4.15E8`, `1.0E-4`); the digits are
//! the fewest that read back as the same number. Not-a-number and the infinities are JSON texts.

/// Room for any double: sign, 17 digits, point, `E-324`.
const LENGTH_MAX: usize = 32;
/// Where plain decimals end.
const PLAIN_END: u32 = 10_000_000;

/// Appends `value`.
pub(crate) fn write_integer(out: &mut Vec<u8>, value: i64) {
    // Fast path: what most points are, percentages and counts of little.
    match u8::try_from(value) {
        Ok(ones @ 0..10) => out.push(b'0' + ones),
        Ok(tens @ 10..100) => out.extend_from_slice(&[b'0' + tens / 10, b'0' + tens % 10]),
        // Into a Vec this cannot fail.
        _ => serde_json::to_writer(out, &value).unwrap_or_default(),
    }
}

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
    // Fast path: whole numbers, as a downsampling of integers often gives.
    if let Some(whole) = whole(value) {
        write_integer(out, whole.into());
        out.extend_from_slice(b".0");
        return;
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..PLAIN_END.into()).contains(&size) {
        // Within these bounds the JSON library's text is Java's: the fewest digits, one of them after the point.
        serde_json::to_writer(out, &value).unwrap_or_default();
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

/// The integer that a double is, if its text is plain; none for a negative zero.
#[expect(clippy::cast_possible_truncation, reason = "whether anything is lost is the question asked")]
fn whole(value: f64) -> Option<i32> {
    let whole = value as i32;
    (f64::from(whole).to_bits() == value.to_bits() && whole.unsigned_abs() < PLAIN_END).then_some(whole)
}

#[cfg(test)]
mod tests {
    use basalt_engine::io::{Rng as _, SplitMix};

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
        check(-7.0, "-7.0");
        check(-9_999_999.0, "-9999999.0");
        check(-1e7, "-1.0E7");
        check(2_147_483_648.0, "2.147483648E9");
    }

    /// `Q-NUMFMT`: plain decimals of every size are the fewest digits that read back, with one after the point.
    #[test]
    fn plain_decimals_are_the_shortest() {
        let mut random = SplitMix::new(7);
        for round in 0..20_000 {
            let scale = 10_f64.powi(round % 11 - 4);
            let value = f64::from(u32::try_from(random.below(1 << 32)).unwrap()) / f64::from(u32::MAX) * scale;
            if (1e-3..1e7).contains(&value) {
                let shortest = value.to_string();
                let point = if shortest.contains('.') { "" } else { ".0" };
                check(-value, &format!("-{shortest}{point}"));
            }
        }
    }

    #[test]
    fn integers_of_every_length_are_decimal() {
        for value in [0, 9, 10, 99, 100, 255, 256, -1, -99, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_integer(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
