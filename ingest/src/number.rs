//! What OpenTSDB reads as a number, and its error texts for everything else.
//!
//! *Source*: OpenTSDB 2.4 `Tags.looksLikeInteger`, `Tags.parseLong`; Java's `Double.parseDouble`.

use basalt_schema::Value;

/// Digits of the largest 64-bit integer.
const DIGITS_MAX: usize = 19;

/// Why a text is no number. The texts are OpenTSDB's and Java's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// No character.
    #[error("Empty string")]
    Empty,
    /// `+` or `-` alone.
    #[error("Just a sign, no value: {0}")]
    JustASign(Box<str>),
    /// More than 19 digits.
    #[error("Value too long: {0}")]
    TooLong(Box<str>),
    /// A character that is no digit.
    #[error("Invalid character '{character}' in {text}")]
    InvalidCharacter {
        /// The first such character.
        character: char,
        /// The whole text.
        text: Box<str>,
    },
    /// An integer beyond 64 bits.
    #[error("Overflow in {0}")]
    Overflow(Box<str>),
    /// A float of blanks alone.
    #[error("empty String")]
    EmptyFloat,
    /// A float with two points.
    #[error("multiple points")]
    MultiplePoints,
    /// Any other text that is no float.
    #[error("For input string: \"{0}\"")]
    NotAFloat(Box<str>),
}

/// Reads a value: a float if it has a `.`, `e` or `E`, else an integer (rule S-VAL-INTLOOK).
///
/// The float may be infinite (`1e999`), which the caller must refuse to store. It may be hexadecimal (`0x1.8p3`).
///
/// # Errors
/// A text that is no number, in OpenTSDB's words.
#[inline]
pub fn parse_value(text: &str) -> Result<Value, NumberError> {
    // Fast path: most values are digits and few of them.
    short_integer(text.as_bytes()).map_or_else(|| parse_long_value(text), |number| Ok(Value::Int(number)))
}

fn parse_long_value(text: &str) -> Result<Value, NumberError> {
    if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        parse_float(text).map(Value::Float)
    } else {
        parse_integer(text).map(Value::Int)
    }
}

/// Reads an integer of an optional `-` and so few digits that it cannot overflow.
#[inline]
pub(crate) fn short_integer(text: &[u8]) -> Option<i64> {
    let (digits, negative) = text.strip_prefix(b"-").map_or((text, false), |digits| (digits, true));
    if digits.is_empty() || digits.len() >= DIGITS_MAX {
        return None;
    }
    let mut number = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if negative { -number } else { number })
}

/// [`leading_digits`] reads no more digits than this.
const LEADING_DIGITS_MAX: usize = 16;

/// Powers of ten.
const TENS: [i64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The number of the digits that `text` begins with, and how many these are; `None` without a digit, and with more than 16.
///
/// *Source*: eight digits at once as in Lemire, "Number parsing at a gigabyte per second" (2021), §6.
#[inline]
pub(crate) fn leading_digits(text: &[u8]) -> Option<(i64, usize)> {
    let (first, count) = digits_of(head(text));
    if count < 8 {
        return (count > 0).then_some((i64::from(first), count));
    }
    let (second, more) = digits_of(head(text.get(8..)?));
    let count = 8 + more;
    if count == LEADING_DIGITS_MAX && text.get(count).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    Some((i64::from(first) * TENS.get(more)? + i64::from(second), count))
}

/// The number of the digits that `text` begins with, and how many these are, if they are fewer than eight.
#[inline]
pub(crate) fn few_digits(text: &[u8]) -> Option<(u32, usize)> {
    Some(digits_of(head(text))).filter(|(_, count)| (1..8).contains(count))
}

/// Eight bytes of `0`.
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// The first eight bytes; zeros in place of those that are not there.
#[inline]
fn head(text: &[u8]) -> u64 {
    // Fast path: nearly all texts go on behind the number.
    match text.first_chunk() {
        Some(head) => u64::from_le_bytes(*head),
        None => text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// How many of eight bytes, less `0` each, are digits, up to the first that is not.
#[inline]
const fn digits_count(numbers: u64) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // Sets the top bit of the first byte that is over 9; bits above it mean nothing.
    let other = (numbers.wrapping_add(ONES * (0x80 - 10)) | numbers) & (ONES * 0x80);
    (other.trailing_zeros() / 8) as usize
}

/// The number of the digits that eight bytes begin with, and how many these are.
#[inline]
fn digits_of(word: u64) -> (u32, usize) {
    let numbers = word ^ ZEROS;
    let count = digits_count(numbers);
    if count == 0 {
        return (0, 0);
    }
    // Moves the last digit to the top, with zeros before the first.
    let numbers = numbers << (64 - 8 * count);
    let pairs = (numbers * 10).wrapping_add(numbers >> 8);
    let (even, odd) = (pairs & 0x0000_00FF_0000_00FF, (pairs >> 16) & 0x0000_00FF_0000_00FF);
    let sum = even.wrapping_mul(100 + (1_000_000 << 32)).wrapping_add(odd.wrapping_mul(1 + (10_000 << 32)));
    (u32::try_from(sum >> 32).unwrap_or(0), count)
}

/// Reads a signed 64-bit integer: a sign, then 1 to 19 digits; no blanks.
///
/// # Errors
/// A text that is none, in OpenTSDB's words.
pub(crate) fn parse_integer(text: &str) -> Result<i64, NumberError> {
    // Fast path: few digits.
    if let Some(number) = short_integer(text.as_bytes()) {
        return Ok(number);
    }
    if text.is_empty() {
        return Err(NumberError::Empty);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() {
        return Err(NumberError::JustASign(text.into()));
    }
    // Java counts characters, not bytes.
    if digits.len() > DIGITS_MAX && digits.chars().count() > DIGITS_MAX {
        return Err(NumberError::TooLong(text.into()));
    }
    if let Some(character) = digits.chars().find(|c| !c.is_ascii_digit()) {
        return Err(NumberError::InvalidCharacter { character, text: text.into() });
    }
    // The text is well-formed now, so it can only be too large. Rust reads the same sign and digits.
    text.parse().map_err(|_| NumberError::Overflow(text.into()))
}

/// Reads what Java's `Double.parseDouble` reads.
fn parse_float(text: &str) -> Result<f64, NumberError> {
    // Java's trim takes every character up to the blank.
    let trimmed = text.trim_matches(|c: char| c <= ' ');
    if trimmed.is_empty() {
        return Err(NumberError::EmptyFloat);
    }
    let bare = trimmed.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(trimmed);
    bare.parse::<f64>().ok().or_else(|| parse_hexadecimal(bare)).ok_or_else(|| {
        let mantissa = trimmed.trim_start_matches(['+', '-']).bytes();
        let points = mantissa.take_while(|byte| byte.is_ascii_digit() || *byte == b'.').filter(|byte| *byte == b'.');
        if points.count() > 1 { NumberError::MultiplePoints } else { NumberError::NotAFloat(trimmed.into()) }
    })
}

/// Reads a float of hexadecimal digits and a power of two: `0x1.8p-3`, with a sign or none, the `p` always.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    /// Beyond any float, whatever the digits of a body add to it.
    const POWER_MAX: i64 = 1 << 40;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, power) =
        unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"))?.split_once(['p', 'P'])?;
    let count = power.strip_prefix(['+', '-']).unwrap_or(power);
    if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let beyond = if power.starts_with('-') { -POWER_MAX } else { POWER_MAX };
    let mut power = power.parse::<i64>().map_or(beyond, |power| power.clamp(-POWER_MAX, POWER_MAX));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    power -= 4 * i64::try_from(fraction.len()).ok()?;
    let mut mantissa = 0_u64;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            // Digits without room count only as more than nothing.
            mantissa |= u64::from(digit != 0);
            power += 4;
        }
    }
    let float = scaled(mantissa, power);
    Some(if text.starts_with('-') { -float } else { float })
}

/// The float nearest to `mantissa * 2^power`, the even one of two; infinity beyond the largest.
fn scaled(mantissa: u64, power: i64) -> f64 {
    const LEAST: i64 = -1022;
    if mantissa == 0 {
        return 0.0;
    }
    let zeros = mantissa.leading_zeros();
    let (mantissa, exponent) = (mantissa << zeros, power + 63 - i64::from(zeros));
    if exponent > 1023 {
        return f64::INFINITY;
    }
    // 53 bits stay, fewer below the least exponent.
    let dropped = 11 + (LEAST - exponent).max(0);
    let Some(dropped) = u32::try_from(dropped).ok().filter(|dropped| *dropped <= 64) else { return 0.0 };
    let kept = mantissa.checked_shr(dropped).unwrap_or(0);
    let (rest, half) = (mantissa - kept.checked_shl(dropped).unwrap_or(0), 1_u64 << (dropped - 1));
    let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // The first bit of 53, and a carry, count into the exponent.
    let biased = u64::try_from(exponent - LEAST).unwrap_or(0);
    f64::from_bits((biased << 52) + rounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: Result<Value, &str>) {
        assert_eq!(parse_value(text).map_err(|e| e.to_string()), expected.map_err(String::from), "{text:?}");
    }

    #[test]
    fn leading_digits_are_read_eight_at_a_time() {
        for (text, expected) in [
            ("", None),
            ("x1", None),
            ("7", Some((7, 1))),
            ("0012x", Some((12, 4))),
            ("1234567/", Some((1_234_567, 7))),
            ("12345678:", Some((12_345_678, 8))),
            ("1700000000,\"value\"", Some((1_700_000_000, 10))),
            ("9999999999999999 ", Some((9_999_999_999_999_999, 16))),
            ("99999999999999999", None),
            ("12\u{e9}4567890", Some((12, 2))),
        ] {
            assert_eq!(leading_digits(text.as_bytes()), expected, "{text}");
            let few = expected.filter(|(_, count)| *count < 8);
            assert_eq!(few_digits(text.as_bytes()).map(|(number, count)| (i64::from(number), count)), few, "{text}");
        }
    }

    proptest! {
        #[test]
        fn leading_digits_are_as_the_standard_library_reads_them(number in 0..10_i64.pow(16), rest in "[^0-9].{0,9}") {
            let text = format!("{number}{rest}");
            prop_assert_eq!(leading_digits(text.as_bytes()), Some((number, number.to_string().len())));
        }
    }

    #[test]
    fn s_val_intlook_integers() {
        check("42", Ok(Value::Int(42)));
        check("+5", Ok(Value::Int(5)));
        check("-0", Ok(Value::Int(0)));
        check("007", Ok(Value::Int(7)));
        check("9223372036854775807", Ok(Value::Int(i64::MAX)));
        check("-9223372036854775808", Ok(Value::Int(i64::MIN)));
    }

    #[test]
    fn s_val_intlook_floats() {
        for (text, value) in [("1.5", 1.5), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("-1E-2", -0.01), ("+.5e1", 5.0)]
        {
            check(text, Ok(Value::Float(value)));
        }
        check(" 4.2 ", Ok(Value::Float(4.2)));
        check("1.5f", Ok(Value::Float(1.5)));
        check("1.5D", Ok(Value::Float(1.5)));
        check("1e999", Ok(Value::Float(f64::INFINITY)));
    }

    /// `S-VAL-INTLOOK`: what the real one stored of each.
    #[test]
    fn s_val_intlook_hexadecimal_floats() {
        for (text, value) in [
            ("0x1.8p1", 3.0),
            ("0X.8P1", 1.0),
            (" 0x1.p+3 ", 8.0),
            ("-0x1.p0", -1.0),
            ("+0x1e1p1", 962.0),
            ("0x1.fffffffffffff8p1", 4.0),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000081p0f", 1.000_000_000_000_000_2),
            ("0x123456789abcdef01e.1p-3", 4.197_659_095_884_129e19),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1.0p1024", f64::INFINITY),
            ("0x1.0p99999999999999999999", f64::INFINITY),
            ("0x1.0p-99999999999999999999", 0.0),
            ("0x.0p99999999999999999999", 0.0),
            ("0x1.0p-1022", f64::MIN_POSITIVE),
            ("0x1.8p-1074", 1e-323),
            ("0x1.0p-1074", 5e-324),
            ("0x1.8p-1075", 5e-324),
            ("0x1.0p-1075", 0.0),
        ] {
            check(text, Ok(Value::Float(value)));
        }
        for broken in ["0x1.8", "0x.p1", "0x1.p", "0x1.p+", "0x1.p1.0", "x1.p1", "0x1.gp1", "0x-1.p1", "-+0x1.p1"] {
            assert!(parse_value(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn t_put_err_texts_as_the_real_one_wrote_them() {
        check("", Err("Empty string"));
        check("-", Err("Just a sign, no value: -"));
        check("x", Err("Invalid character 'x' in x"));
        check("5x", Err("Invalid character 'x' in 5x"));
        check("NaN", Err("Invalid character 'N' in NaN"));
        check("0x1p", Err("Invalid character 'x' in 0x1p"));
        check("٣", Err("Invalid character '٣' in ٣"));
        check("--5", Err("Invalid character '-' in --5"));
        check("-5-", Err("Invalid character '-' in -5-"));
        check("-+", Err("Invalid character '+' in -+"));
        check(" 42", Err("Invalid character ' ' in  42"));
        check("9223372036854775808", Err("Overflow in 9223372036854775808"));
        check("-9223372036854775809", Err("Overflow in -9223372036854775809"));
        check("9999999999999999999", Err("Overflow in 9999999999999999999"));
        check("999999999999999999x", Err("Invalid character 'x' in 999999999999999999x"));
        check("99999999999999999999", Err("Value too long: 99999999999999999999"));
        check("12345678901234567890123", Err("Value too long: 12345678901234567890123"));
        check("1e", Err("For input string: \"1e\""));
        check(".", Err("For input string: \".\""));
        check("1.5e", Err("For input string: \"1.5e\""));
        check("1.2.3", Err("multiple points"));
        check("1.nan", Err("For input string: \"1.nan\""));
        check("infinitE", Err("For input string: \"infinitE\""));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn every_integer_is_read_back(value: i64) {
            prop_assert_eq!(parse_integer(&value.to_string()), Ok(value));
        }

        #[test]
        fn every_float_is_read_back_bit_for_bit(value in any::<f64>()) {
            let Ok(Value::Float(read)) = parse_value(&format!("{value:e}")) else {
                prop_assert!(value.is_nan());
                return Ok(());
            };
            prop_assert_eq!(read.to_bits(), value.to_bits());
        }

        #[test]
        fn every_hexadecimal_float_is_read_back_bit_for_bit(mantissa in 0..1_u64 << 52, biased in 1..2047_u64) {
            let float = f64::from_bits(biased << 52 | mantissa);
            let text = format!("0x1.{mantissa:013x}p{}", i64::try_from(biased).unwrap() - 1023);
            prop_assert_eq!(parse_value(&text), Ok(Value::Float(float)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9.eEfd ٣xp]{0,24}") {
            let read = parse_value(&text);
            if let Ok(model) = text.parse::<i64>() {
                prop_assert_eq!(read, Ok(Value::Int(model)));
            }
        }
    }
}
