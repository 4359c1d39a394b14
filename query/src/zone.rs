//! Time zones by name, and what a zone's clock means.

use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone};
use chrono_tz::Tz;

use crate::{Error, Result};

/// Three letters that Java takes for a zone, beside those that IANA has too. *Source*: `java.time.ZoneId.SHORT_IDS`.
const SHORT_ZONES: &[(&str, Tz)] = &[
    ("ACT", Tz::Australia__Darwin),
    ("AET", Tz::Australia__Sydney),
    ("AGT", Tz::America__Argentina__Buenos_Aires),
    ("ART", Tz::Africa__Cairo),
    ("AST", Tz::America__Anchorage),
    ("BET", Tz::America__Sao_Paulo),
    ("BST", Tz::Asia__Dhaka),
    ("CAT", Tz::Africa__Harare),
    ("CNT", Tz::America__St_Johns),
    ("CST", Tz::America__Chicago),
    ("CTT", Tz::Asia__Shanghai),
    ("EAT", Tz::Africa__Addis_Ababa),
    ("ECT", Tz::Europe__Paris),
    ("IET", Tz::America__Indiana__Indianapolis),
    ("IST", Tz::Asia__Kolkata),
    ("JST", Tz::Asia__Tokyo),
    ("MIT", Tz::Pacific__Apia),
    ("NET", Tz::Asia__Yerevan),
    ("NST", Tz::Pacific__Auckland),
    ("PLT", Tz::Asia__Karachi),
    ("PNT", Tz::America__Phoenix),
    ("PRT", Tz::America__Puerto_Rico),
    ("PST", Tz::America__Los_Angeles),
    ("SST", Tz::Pacific__Guadalcanal),
    ("VST", Tz::Asia__Ho_Chi_Minh),
];

/// A zone by its IANA name, or by one of Java's short ones.
///
/// # Errors
/// `Invalid`: nobody knows it.
pub fn parse_zone(name: &str) -> Result<Tz> {
    let short = || SHORT_ZONES.iter().find(|(short, _)| *short == name).map(|(_, zone)| *zone);
    name.parse().ok().or_else(short).ok_or_else(|| Error::UnknownTimezone { name: name.into() })
}

/// The instant of a local time. As Java's calendar: what occurs twice is the later one (standard time), what never
/// occurs is read with the offset in force before the gap.
pub(crate) fn resolve_local(zone: Tz, local: NaiveDateTime) -> DateTime<Tz> {
    /// Longer than any gap that a zone ever had.
    const BEYOND_GAP: TimeDelta = TimeDelta::hours(26);
    zone.from_local_datetime(&local)
        .latest()
        .or_else(|| Some(zone.from_local_datetime(&(local - BEYOND_GAP)).latest()? + BEYOND_GAP))
        .unwrap_or_else(|| zone.from_utc_datetime(&local))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Q-TIME-TZ`: three of Java's short names are IANA's own, without summer time.
    #[test]
    fn q_time_tz_short_names_beside_ianas() {
        assert!(SHORT_ZONES.iter().all(|(short, _)| short.parse::<Tz>().is_err()), "IANA's go first");
        for name in ["pst", "XYZ", "GMT+1", "", "Nowhere/Land"] {
            assert!(parse_zone(name).is_err(), "{name}");
        }
    }
}
