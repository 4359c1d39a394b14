//! Texts as OpenTSDB's tools print them, which scripts read: Java's.

use std::fmt::Write as _;

use basalt_schema::java_map_order;

use crate::http::number::write_double;

/// `Arrays.toString` of bytes, which Java takes as signed: `[0, -1]`.
pub(super) fn bytes(bytes: &[u8]) -> String {
    let signed: Vec<i8> = bytes.iter().map(|byte| byte.cast_signed()).collect();
    format!("{signed:?}")
}

/// `Double.toString`.
pub(super) fn double(value: f64) -> String {
    let mut out = Vec::new();
    write_double(&mut out, value);
    String::from_utf8_lossy(&out).trim_matches('"').to_owned()
}

/// `String.format("%f")`: six digits after the point, the shortest decimal rounded half up.
pub(super) fn fixed(value: f64) -> String {
    const DIGITS: i32 = 6;
    if !value.is_finite() {
        return double(value);
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let text = format!("{:e}", value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    // Digit i stands at the power exponent - i of ten; those down to -6 stay.
    let kept = exponent + DIGITS + 1;
    let digit_at = |place: i32| usize::try_from(place).ok().and_then(|at| digits.get(at)).copied().unwrap_or(0);
    let first = exponent.max(0);
    let mut out: Vec<u8> = (exponent - first..kept).map(digit_at).collect();
    let mut carry = digit_at(kept) >= 5;
    for digit in out.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == 9;
        *digit = if carry { 0 } else { *digit + 1 };
    }
    if carry {
        out.insert(0, 1);
    }
    let mut whole: String = out.iter().map(|digit| char::from(b'0' + digit)).collect();
    whole.insert(whole.len().saturating_sub(6), '.');
    format!("{sign}{whole}")
}

/// The entries of a Java `HashMap` made with room for them all, in the order it gives them.
pub(super) fn hash_order<'a>(entries: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut sorted = entries.to_vec();
    java_map_order(&mut sorted, entries.len(), |(key, _)| key);
    sorted
}

/// Tags as a Java map prints itself: `{host=a, dc=b}`.
pub(super) fn map(entries: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = hash_order(entries).iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", pairs.join(", "))
}

/// `Date.toString` in UTC: `Tue Jan 01 00:00:00 UTC 2013`.
pub(super) fn date(ms: i64) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let name = |names: &[&'static str], at: i64| usize::try_from(at).ok().and_then(|at| names.get(at)).copied();
    let mut text = String::new();
    write!(
        text,
        "{} {} {day:02} {:02}:{:02}:{:02} UTC {year}",
        name(&WEEKDAYS, days.rem_euclid(7)).unwrap_or_default(),
        name(&MONTHS, month - 1).unwrap_or_default(),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
    .unwrap_or_default();
    text
}

/// Year, month and day of a day since 1970-01-01, by the Gregorian calendar (years counted from March).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_signed() {
        assert_eq!(bytes(&[0, 1, 255]), "[0, 1, -1]");
        assert_eq!(bytes(&[]), "[]");
    }

    #[test]
    fn six_digits_after_the_point_round_half_up() {
        for (value, text) in [
            (0.0, "0.000000"),
            (1.5, "1.500000"),
            (-42.125, "-42.125000"),
            (5e-7, "0.000001"),
            (4.9e-7, "0.000000"),
            (0.999_999_5, "1.000000"),
            (1e15, "1000000000000000.000000"),
            (123.456_789_5, "123.456790"),
            (1e-10, "0.000000"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(fixed(value), text);
        }
    }

    #[test]
    fn dates_are_javas() {
        assert_eq!(date(1_356_998_400_000), "Tue Jan 01 00:00:00 UTC 2013");
        assert_eq!(date(951_782_399_999), "Mon Feb 28 23:59:59 UTC 2000");
        assert_eq!(date(951_868_799_000), "Tue Feb 29 23:59:59 UTC 2000");
    }

    #[test]
    fn maps_print_in_hash_order() {
        assert_eq!(map(&[("host", "a"), ("dc", "b")]), "{host=a, dc=b}");
        assert_eq!(map(&[]), "{}");
    }
}
