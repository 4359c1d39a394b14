//! The texts of times, as every query parameter takes them.
//!
//! Relative (`5m-ago`), absolute in seconds, milliseconds, dotted or with `ms`, dates in a time zone, `now`. The clock
//! comes by argument. *Source*: OpenTSDB 2.4 `DateTime.parseDateTimeString`.

use chrono::{NaiveDate, NaiveDateTime, TimeDelta};
use chrono_tz::Tz;

use crate::duration::parse_duration_as;
use crate::error::TimeFault;
use crate::zone::resolve_local;
use crate::{Compat, Error, Result};

/// Numbers of at most this many characters are seconds, longer ones milliseconds.
const SECONDS_CHARS_MAX: usize = 10;
/// Digits of the largest 64-bit number.
const NUMBER_CHARS_MAX: usize = 19;

/// What makes a duration a time.
const AGO: &str = "-ago";

/// Against what a time is read.
#[derive(Debug, Clone, Copy)]
pub struct TimeContext {
    /// The clock, milliseconds since the epoch.
    pub now_ms: i64,
    /// The zone of dates.
    pub zone: Tz,
    /// Whose quirks to keep.
    pub compat: Compat,
}

/// Reads a time; milliseconds since the epoch, and negative where a date or a duration reaches behind it: as in OpenTSDB whoever
/// asks finds that no point can be there.
///
/// # Errors
/// `Invalid`: none of the known forms, or a negative number.
pub fn parse_time(text: &str, context: &TimeContext) -> Result<i64> {
    if let Some(digits) = text.strip_suffix("ms")
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        return parse_number(digits, text);
    }
    if text.eq_ignore_ascii_case("now") {
        return Ok(context.now_ms);
    }
    let (length, ago) = text.split_at_checked(text.len().saturating_sub(AGO.len())).unwrap_or((text, ""));
    if ago.eq_ignore_ascii_case(AGO) {
        let duration = parse_duration_as(length, context.compat)?;
        return Ok(context.now_ms.saturating_sub(duration.millis));
    }
    if text.contains(['/', ':']) {
        return parse_date(text, context.zone);
    }
    let time_ms = if let Some((seconds, fraction)) = text.split_once('.') {
        parse_dotted(text, seconds, fraction, context.compat)?
    } else {
        let number = parse_number(text, text)?;
        if text.chars().count() <= SECONDS_CHARS_MAX { number.saturating_mul(1000) } else { number }
    };
    if time_ms < 0 {
        return Err(fault(text, TimeFault::Negative));
    }
    Ok(time_ms)
}

/// `seconds.fraction` of ten digits and one to three.
///
/// OpenTSDB takes the dot out and reads the rest as milliseconds, so that `.4` is read as a time in 1970. Ours is
/// 400 ms unless strict; with three digits, which is what clients send, both agree.
fn parse_dotted(text: &str, seconds: &str, fraction: &str, compat: Compat) -> Result<i64> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if seconds.len() != 10 || !(1..=3).contains(&fraction.len()) || !digits(seconds) || !digits(fraction) {
        return Err(fault(text, TimeFault::Dotted));
    }
    if compat.strict {
        return parse_number(&format!("{seconds}{fraction}"), text);
    }
    parse_number(&format!("{seconds}{fraction:0<3}"), text)
}

/// Reads a signed decimal number as OpenTSDB's `Tags.parseLong`; `whole` is the text that errors name.
fn parse_number(digits: &str, whole: &str) -> Result<i64> {
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    if unsigned.is_empty() {
        return Err(fault(whole, TimeFault::JustASign));
    }
    if unsigned.len() > NUMBER_CHARS_MAX {
        return Err(fault(whole, TimeFault::TooLong));
    }
    if let Some(found) = unsigned.chars().find(|c| !c.is_ascii_digit()) {
        return Err(fault(whole, TimeFault::Character(found)));
    }
    digits.parse().map_err(|_| fault(whole, TimeFault::Overflow))
}

fn fault(text: &str, fault: TimeFault) -> Error {
    Error::Time { text: text.into(), fault }
}

/// `2012/12/20`, then a space or `-` and `12:42` or `12:42:42`; the length says which.
///
/// As Java's lenient `SimpleDateFormat`: blanks may stand before a number (`2012/12/ 4`), what is beyond its range rolls over, and
/// what follows the pattern does not count. Ours takes no exponents and no digits but ASCII's, which Java does.
fn parse_date(text: &str, zone: Tz) -> Result<i64> {
    let mut rest = text;
    let separator = if text.contains('-') { '-' } else { ' ' };
    let before: &[char] = match text.encode_utf16().count() {
        10 => &['/', '/'],
        16 => &['/', '/', separator, ':'],
        19 => &['/', '/', separator, ':', ':'],
        _ => return Err(fault(text, TimeFault::AbsoluteDate)),
    };
    let unparsable = || fault(text, TimeFault::Unparsable);
    let mut numbers = [0; 6];
    numbers[0] = date_number(&mut rest).ok_or_else(unparsable)?;
    for (slot, literal) in numbers[1..].iter_mut().zip(before) {
        rest = rest.strip_prefix(*literal).ok_or_else(unparsable)?;
        *slot = date_number(&mut rest).ok_or_else(unparsable)?;
    }
    let local = local_time(numbers).ok_or_else(unparsable)?;
    Ok(resolve_local(zone, local).timestamp_millis())
}

/// Takes a number from the start of `rest`, with the blanks before it.
fn date_number(rest: &mut &str) -> Option<i64> {
    let text = rest.trim_start_matches([' ', '\t']);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    // Java reads on here: `1E1` is its ten.
    let has_exponent =
        after.strip_prefix('E').is_some_and(|e| e.strip_prefix('-').unwrap_or(e).starts_with(char::is_numeric));
    if has_exponent || after.starts_with(char::is_numeric) {
        return None;
    }
    *rest = after;
    text.strip_suffix(after)?.parse().ok()
}

/// Year, month, day, hour, minute and second, each of which may be beyond its range; `None` beyond what a calendar has.
fn local_time([year, month, day, hour, minute, second]: [i64; 6]) -> Option<NaiveDateTime> {
    let months = year.checked_mul(12)?.checked_add(month)?.checked_sub(1)?;
    let (year, month) = (i32::try_from(months.div_euclid(12)).ok()?, u32::try_from(months.rem_euclid(12)).ok()?);
    let days = TimeDelta::try_days(day.checked_sub(1)?)?;
    let seconds = hour.checked_mul(60)?.checked_add(minute)?.checked_mul(60)?.checked_add(second)?;
    let midnight = NaiveDate::from_ymd_opt(year, month + 1, 1)?.and_hms_opt(0, 0, 0)?;
    midnight.checked_add_signed(days)?.checked_add_signed(TimeDelta::try_seconds(seconds)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::parse_zone;

    const NOW_MS: i64 = 1_700_000_000_000;

    fn read(text: &str, zone: &str, strict: bool) -> Result<i64> {
        let context = TimeContext { now_ms: NOW_MS, zone: parse_zone(zone).unwrap(), compat: Compat { strict } };
        parse_time(text, &context)
    }

    fn check(text: &str, expected: i64) {
        assert_eq!(read(text, "UTC", false).unwrap(), expected, "{text}");
    }

    fn check_error(text: &str, expected: &str) {
        assert_eq!(read(text, "UTC", false).unwrap_err().to_string(), expected, "{text}");
    }

    #[test]
    fn q_time_rel() {
        check("now", NOW_MS);
        check("NOW", NOW_MS);
        check("1ms-ago", NOW_MS - 1);
        check("30s-ago", NOW_MS - 30_000);
        check("5m-ago", NOW_MS - 300_000);
        check("2h-ago", NOW_MS - 7_200_000);
        check("1d-ago", NOW_MS - 86_400_000);
        check("1w-ago", NOW_MS - 604_800_000);
        check("1n-ago", NOW_MS - 2_592_000_000);
        check("1y-ago", NOW_MS - 31_536_000_000);
        check("1H-AGO", NOW_MS - 3_600_000);
        check("60y-ago", NOW_MS - 60 * 31_536_000_000);
        check("100MS-ago", NOW_MS - 100);
        for text in ["1.5h-ago", "10mins-ago", "1day-ago", "1-s-ago"] {
            assert!(read(text, "UTC", false).is_err(), "{text}");
        }
    }

    /// `Q-TIME-REL`: what OpenTSDB makes of a unit that it does not know.
    #[test]
    fn q_time_rel_strictly_the_last_letter_is_the_unit() {
        let before = |text: &str| NOW_MS - read(text, "UTC", true).unwrap();
        assert_eq!(before("1.5h-ago"), 3_600_000);
        assert_eq!(before("10mins-ago"), 10_000);
        assert_eq!(before("1day-Ago"), 31_536_000_000);
        assert_eq!(before("100ms-ago"), 100);
        assert_eq!(before("100xms-ago"), 100);
        assert_eq!(before("100mS-ago"), 100);
        assert_eq!(before("100MS-ago"), 100_000);
        assert_eq!(before("1-s-ago"), 1_000);
        assert_eq!(before("1éY-ago"), 31_536_000_000);
        assert_eq!(read("1s5-ago", "UTC", true).unwrap_err().to_string(), "Invalid duration (suffix): 1s5");
        assert!(read("ms-ago", "UTC", true).is_err() && read("é", "UTC", true).is_err());
    }

    #[test]
    fn q_time_unix() {
        check("0", 0);
        check("1355961600", 1_355_961_600_000);
        check("1355961603418", 1_355_961_603_418);
        check("13559616000", 13_559_616_000);
        check("1355961603.418", 1_355_961_603_418);
        check("1355961603.4", 1_355_961_603_400);
        check("123123ms", 123_123);
        assert_eq!(read("1355961603.4", "UTC", true).unwrap(), 13_559_616_034, "OpenTSDB takes the dot out");
        assert_eq!(read("1355961603.418", "UTC", true).unwrap(), 1_355_961_603_418);
    }

    #[test]
    fn q_time_abs() {
        check("2012/12/20", 1_355_961_600_000);
        check("2012/12/20 12:42", 1_356_007_320_000);
        check("2012/12/20-12:42", 1_356_007_320_000);
        check("2012/12/20 12:42:42", 1_356_007_362_000);
        check("2012/12/20-12:42:42", 1_356_007_362_000);
        check("2012/02/30", 1_330_560_000_000);
        check("2012/00/10", 1_323_475_200_000);
        check("1960/01/01", -315_619_200_000);
    }

    /// `Q-TIME-ABS`: as `SimpleDateFormat` of a Java 17 answers.
    #[test]
    fn q_time_abs_is_lenient_as_java() {
        check("2023/11/ 4- 9:13:10", 1_699_089_190_000);
        check("2023/11/ 4", 1_699_056_000_000);
        check("2023/11/4 ", 1_699_056_000_000);
        check(" 2023/1/ 4", 1_672_790_400_000);
        check("2023/11/1T", 1_698_796_800_000);
        check("2023/11/1E", 1_698_796_800_000);
        check("2023/1/1E-", 1_672_531_200_000);
        check("2023/1/1.5", 1_672_531_200_000);
        check("2023/11/1é", 1_698_796_800_000);
        check("2023/1/4-2:13:10", 1_672_798_380_000);
        check("2023/1/4 2:13:10xxx", 1_672_798_390_000);
        check("2023/11/14-9:13:10Z", 1_699_953_190_000);
        check("2023/11/14 9:13 ", 1_699_953_180_000);
        check("2023/11/14  9:13", 1_699_953_180_000);
        check("2023/11/14-\t9:13", 1_699_953_180_000);
        check("2023/11/14  9: 3", 1_699_952_580_000);
        check("2023/11/-4", 1_698_364_800_000);
        check("2023/-1/10", 1_668_038_400_000);
        check("2023/1/\t-4", 1_672_099_200_000);
        check("2023/99/99", 1_938_556_800_000);
        check("99999/1/1Z", 3_093_496_444_800_000);
        check("2023/11/14-9:13:-10", 1_699_953_170_000);
        check("2023/11/14--9:13:10", 1_699_888_390_000);
        check("2023/1/1--9:-3:-4xx", 1_672_498_616_000);
        check("2023/1/9-1:1:999999", 1_674_226_059_000);
        for text in [
            "2023 /1/ 4",
            "2023/11 /4",
            "2023/+1/10",
            "2023/1/--4",
            "2023/11/ T",
            "2023/11/  ",
            "1/99999999",
            "2023,11/14",
            "2023/11/14T09:13",
            "2023/11/14\t09:13",
            "2023/11/14-09:13Z00",
            "0000000/01/01-00:00",
        ] {
            check_error(text, &format!("Invalid date: {text}. Unparseable date: \"{text}\""));
        }
        check_error("2023/11/é", "Invalid absolute date: 2023/11/é");
        // Java takes these numbers, for the 10th, the 12th and much later.
        for text in ["2023/1/1E1", "2023/1/1١Z", "2023/11/∞5", "9999999999/1/1-1:1"] {
            assert!(read(text, "UTC", false).is_err(), "{text}");
        }
    }

    #[test]
    fn q_time_tz() {
        let at = |text, zone| read(text, zone, false).unwrap();
        assert_eq!(at("2012/12/20 12:42", "America/New_York"), 1_356_007_320_000 + 5 * 3_600_000);
        assert_eq!(at("2012/07/20 12:42", "America/New_York"), 1_342_802_520_000);
        // A gap: 02:30 did not occur on 11 March 2012; it is 03:30 daylight time.
        assert_eq!(at("2012/03/11 02:30", "America/New_York"), 1_331_451_000_000);
        // An overlap: 01:30 occurred twice on 4 November 2012; standard time is the second.
        assert_eq!(at("2012/11/04 01:30", "America/New_York"), 1_352_010_600_000);
    }

    /// `Q-TIME-TZ`: OpenTSDB takes Java's short names too; three of them are IANA's own, without summer time.
    #[test]
    fn q_time_tz_short_names_are_javas() {
        let at = |zone| read("2012/07/20 12:42", zone, false).unwrap();
        for (short, long) in [("PST", "America/Los_Angeles"), ("IST", "Asia/Kolkata"), ("BST", "Asia/Dhaka")] {
            assert_eq!(at(short), at(long), "{short}");
        }
        assert_eq!(at("MST"), at("America/Phoenix"));
    }

    #[test]
    fn q_time_err() {
        check_error("-1", "Invalid time: -1. Negative timestamps are not supported.");
        check_error("1s", "Invalid time: 1s. Invalid character 's' in 1s");
        check_error(
            "1355961603.4181",
            "Invalid time: 1355961603.4181. Millisecond timestamps must be in the format <seconds>.<ms> where the \
             milliseconds are limited to 3 digits",
        );
        assert!(read("135596160.418", "UTC", false).is_err());
        assert!(read("1355961603.4.1", "UTC", false).is_err());
        check_error("2012/12", "Invalid absolute date: 2012/12");
        check_error("2012/12/ab", "Invalid date: 2012/12/ab. Unparseable date: \"2012/12/ab\"");
        check_error("-ago", "Cannot parse null or empty duration");
        check_error("1-ago", "Invalid duration, must have an integer and unit: 1");
        check_error("0s-ago", "Zero or negative duration: 0s");
        check_error("1x-ago", "Invalid duration (suffix): 1x");
        check_error("h-ago", "Invalid duration (number): h");
        check_error("99999999999999999999", "Invalid time: 99999999999999999999. Value too long: 99999999999999999999");
        check_error("9999999999999999999", "Invalid time: 9999999999999999999. Overflow in 9999999999999999999");
        check_error("-", "Invalid time: -. Just a sign, no value: -");
        assert!(read("é/", "UTC", false).is_err() && read("ééééé/ééé", "UTC", false).is_err());
    }
}
