//! Durations (`5m`): lengths of time by OpenTSDB's units. *Source*: OpenTSDB 2.4 `DateTime.parseDuration`.

use crate::error::DurationFault;
use crate::{Compat, Error, Result};

/// A unit of a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// `ms`
    Millisecond,
    /// `s`
    Second,
    /// `m`
    Minute,
    /// `h`
    Hour,
    /// `d`
    Day,
    /// `w`
    Week,
    /// `n`: 30 days, or a month of the calendar.
    Month,
    /// `y`: 365 days, or a year of the calendar.
    Year,
}

impl Unit {
    /// Its fixed length; months are 30 days and years 365.
    pub const fn millis(self) -> i64 {
        match self {
            Self::Millisecond => 1,
            Self::Second => 1000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
            Self::Week => 7 * 86_400_000,
            Self::Month => 30 * 86_400_000,
            Self::Year => 365 * 86_400_000,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let unit = match text.to_ascii_lowercase().as_str() {
            "ms" => Self::Millisecond,
            "s" => Self::Second,
            "m" => Self::Minute,
            "h" => Self::Hour,
            "d" => Self::Day,
            "w" => Self::Week,
            "n" => Self::Month,
            "y" => Self::Year,
            _ => return None,
        };
        Some(unit)
    }

    /// What OpenTSDB sees of a unit: its last letter, and of `ms` a small `m` before it. So `1.5h` is an hour, `10mins`
    /// are ten seconds and `1day` is a year.
    fn of_last_letter(text: &str) -> Option<Self> {
        let mut letters = text.chars().rev();
        match letters.next()?.to_ascii_lowercase() {
            's' if letters.next() == Some('m') => Some(Self::Millisecond),
            's' => Some(Self::Second),
            'm' => Some(Self::Minute),
            'h' => Some(Self::Hour),
            'd' => Some(Self::Day),
            'w' => Some(Self::Week),
            'n' => Some(Self::Month),
            'y' => Some(Self::Year),
            _ => None,
        }
    }
}

/// A count of units, such as `5m`; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duration {
    /// How many, 1 or more.
    pub count: i64,
    /// Of what.
    pub unit: Unit,
    /// Fixed length in milliseconds, 1 or more.
    pub millis: i64,
}

/// Reads `<n><unit>`.
///
/// # Errors
/// `Invalid`: no number, zero, no unit, an unknown one, or beyond 64 bits of milliseconds.
pub fn parse_duration(text: &str) -> Result<Duration> {
    parse_duration_as(text, Compat::default())
}

/// [`parse_duration`]; strictly any text may stand between the number and the last letter.
pub(crate) fn parse_duration_as(text: &str, compat: Compat) -> Result<Duration> {
    let fault = |fault| Error::Duration { text: text.into(), fault };
    if text.is_empty() {
        return Err(fault(DurationFault::Empty));
    }
    let Some(at) = text.find(|c: char| !c.is_ascii_digit()) else {
        return Err(fault(DurationFault::NoUnit));
    };
    let (number, unit) = text.split_at(at);
    let count: i64 = number.parse().map_err(|_| fault(DurationFault::Number))?;
    if count <= 0 {
        return Err(fault(DurationFault::Zero));
    }
    let unit = if compat.strict { Unit::of_last_letter(unit) } else { Unit::parse(unit) };
    let unit = unit.ok_or_else(|| fault(DurationFault::Suffix))?;
    let millis = count.checked_mul(unit.millis()).ok_or_else(|| fault(DurationFault::TooLong))?;
    Ok(Duration { count, unit, millis })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_time_err_a_duration_is_within_64_bits_of_milliseconds() {
        assert_eq!(
            parse_duration("9223372036854775807y").unwrap_err().to_string(),
            "Duration must be < Long.MAX_VALUE ms: 9223372036854775807y"
        );
    }
}
