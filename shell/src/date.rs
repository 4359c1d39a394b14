//! A cell's time as a date.

use std::fmt::Write as _;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;
/// Days of 400 years.
const ERA_DAYS: u64 = 146_097;

/// Milliseconds since the epoch as date and time in UTC, as HBase 2.6 prints them: seconds and milliseconds are left
/// out where they are zero, and years over 9999 have a sign.
///
/// *Source*: `java.time.LocalDateTime.toString`; days to dates as in Howard Hinnant's `civil_from_days`.
pub(crate) fn date_time(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    let days = days + EPOCH_DAYS;
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months count from March, so that the leap day is a year's last.
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);

    let sign = if year > 9_999 { "+" } else { "" };
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    let mut text = format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}");
    if milli > 0 {
        write!(text, ":{second:02}.{milli:03}").unwrap_or_default();
    } else if second > 0 {
        write!(text, ":{second:02}").unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_javas() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00"),
            (5, "1970-01-01T00:00:00.005"),
            (1_421_762_485_768, "2015-01-20T14:01:25.768"),
            (951_782_400_000, "2000-02-29T00:00"),
            (1_709_164_801_000, "2024-02-29T00:00:01"),
            (253_402_300_800_000, "+10000-01-01T00:00"),
            (i64::MAX as u64, "+292278994-08-17T07:12:55.807"),
        ] {
            assert_eq!(date_time(ms), expected);
        }
    }
}
