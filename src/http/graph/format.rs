//! How numbers and times are written at the axes of a graph.
//!
//! A format of a request is read into pieces first: what is no conversion known here is refused, so that nothing of it
//! reaches a formatter that could fail.

use std::fmt::Write as _;

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, TimeZone as _};
use chrono_tz::Tz;

/// Most digits after the point.
const DIGITS_MAX: usize = 20;

/// A format of numbers, as `gnuplot` has them: `%.2f`, `%g`, `%.1s%cB`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NumberFormat(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    /// `%f`: digits after the point.
    Fixed(usize),
    /// `%e`.
    Exponent(usize),
    /// `%g`: significant digits.
    Short(usize),
    /// `%d`, which `gnuplot` lacks and people write.
    Whole,
    /// `%s`: the number over the power of thousand below it.
    Scaled(usize),
    /// `%c`: the letter of that power.
    Prefix,
}

impl NumberFormat {
    /// What `gnuplot` takes if nothing is said.
    pub(crate) fn short() -> Self {
        Self(vec![Piece::Short(6)])
    }

    /// Reads a format; `None` for a conversion that is not known.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                match pieces.last_mut() {
                    Some(Piece::Text(text)) => text.push(letter),
                    _ => pieces.push(Piece::Text(letter.to_string())),
                }
                continue;
            }
            let mut head = String::new();
            while let Some(sign) = letters.next_if(|sign| sign.is_ascii_digit() || *sign == '.') {
                head.push(sign);
            }
            let digits = match head.split_once('.') {
                None => None,
                Some((_, "")) => Some(0),
                Some((_, digits)) => Some(digits.parse::<usize>().ok().filter(|digits| *digits <= DIGITS_MAX)?),
            };
            pieces.push(match letters.next()? {
                '%' if head.is_empty() => Piece::Text("%".to_owned()),
                'f' => Piece::Fixed(digits.unwrap_or(6)),
                'e' | 'E' => Piece::Exponent(digits.unwrap_or(6)),
                'g' | 'G' => Piece::Short(digits.unwrap_or(6).max(1)),
                'd' | 'i' => Piece::Whole,
                's' => Piece::Scaled(digits.unwrap_or(0)),
                'c' => Piece::Prefix,
                _ => return None,
            });
        }
        Some(Self(pieces))
    }

    /// Writes a number.
    pub(crate) fn show(&self, value: f64) -> String {
        const PREFIXES: [&str; 17] =
            ["y", "z", "a", "f", "p", "n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Z", "Y"];
        let power = (-8_i32..=8).rev().find(|power| value.abs() >= 1_000_f64.powi(*power)).unwrap_or(0);
        let mut shown = String::new();
        for piece in &self.0 {
            let written = match piece {
                Piece::Text(text) => write!(shown, "{text}"),
                Piece::Fixed(digits) => write!(shown, "{value:.digits$}"),
                Piece::Exponent(digits) => write!(shown, "{}", exponent(value, *digits)),
                Piece::Short(digits) => write!(shown, "{}", short(value, *digits)),
                Piece::Whole => write!(shown, "{:.0}", value.trunc()),
                Piece::Scaled(digits) => write!(shown, "{:.digits$}", value / 1_000_f64.powi(power)),
                Piece::Prefix => {
                    let place = usize::try_from(power + 8).unwrap_or_default();
                    write!(shown, "{}", PREFIXES.get(place).copied().unwrap_or_default())
                }
            };
            // Writing to a String cannot fail.
            written.unwrap_or_default();
        }
        shown
    }
}

/// C's `%e`: at least two digits of the exponent, and its sign.
fn exponent(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let Some((mantissa, power)) = text.split_once('e') else { return text };
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{mantissa}e{sign}{power:0>2}")
}

/// C's `%g`: `digits` significant ones, no zeros at the end, an exponent where it is shorter.
fn short(value: f64, digits: usize) -> String {
    if value.abs() < f64::MIN_POSITIVE {
        return "0".to_owned();
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let power: i32 = scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    let trimmed = |text: String| {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    let before_point = usize::try_from(power);
    if power < -4 || before_point.is_ok_and(|power| power >= digits) {
        let (mantissa, _) = scientific.split_once('e').unwrap_or((&scientific, ""));
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa.to_owned()), power.abs());
    }
    let after = i32::try_from(digits).unwrap_or(6) - 1 - power;
    trimmed(format!("{value:.*}", usize::try_from(after).unwrap_or(0)))
}

/// A format of times that is known to be one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimeFormat(String);

impl TimeFormat {
    /// Reads a format of `strftime`'s; `None` for a conversion that is not known.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let known = StrftimeItems::new(text).all(|item| !matches!(item, Item::Error));
        known.then(|| Self(text.to_owned()))
    }

    /// What suits a range of so many seconds. *Source*: OpenTSDB 2.4 `Plot.xFormat`.
    pub(crate) fn for_range(seconds: i64) -> Self {
        let text = match seconds {
            ..2_100 => "%H:%M:%S",
            2_100..86_400 => "%H:%M",
            86_400..604_800 => "%a %H:%M",
            604_800..1_209_600 => "%a %d %H:%M",
            1_209_600..7_776_000 => "%b %d",
            _ => "%Y/%m/%d",
        };
        Self(text.to_owned())
    }

    /// Writes an instant as clocks in `zone` show it.
    pub(crate) fn show(&self, seconds: i64, zone: Tz) -> String {
        let Some(time) = zone.timestamp_opt(seconds, 0).earliest() else { return String::new() };
        let time: DateTime<Tz> = time;
        let mut shown = String::new();
        write!(shown, "{}", time.format(&self.0)).unwrap_or_default();
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, value: f64, expected: &str) {
        assert_eq!(NumberFormat::parse(format).unwrap().show(value), expected, "{format} of {value}");
    }

    /// `O-Q-PNG`: what C and gnuplot print.
    #[test]
    fn o_q_png_numbers_are_written_as_gnuplot_writes_them() {
        check("%.2f", 1.005_1, "1.01");
        check("%.0f%%", 99.6, "100%");
        check("%g", 0.0, "0");
        check("%g", 1_500_000.0, "1.5e+06");
        check("%g", 150_000.0, "150000");
        check("%g", 0.000_01, "1e-05");
        check("%g", 0.1 + 0.2, "0.3");
        check("%.3g", -1234.0, "-1.23e+03");
        check("%e", 12.0, "1.200000e+01");
        check("%d ms", -2.7, "-2 ms");
        check("%.1s%cB", 1_234_567.0, "1.2MB");
        check("%s%c", 0.0, "0");
        check("%.0s %c", 0.002, "2 m");
        for bad in ["%x", "%", "%.f%", "%.99f", "%5", "%l"] {
            assert_eq!(NumberFormat::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn o_q_png_times_are_written_by_the_zone() {
        let time = TimeFormat::parse("%Y/%m/%d %H:%M").unwrap();
        assert_eq!(time.show(1_700_000_000, Tz::UTC), "2023/11/14 22:13");
        assert_eq!(time.show(1_700_000_000, Tz::Asia__Tokyo), "2023/11/15 07:13");
        assert_eq!(TimeFormat::for_range(3_600).show(1_700_000_000, Tz::UTC), "22:13");
        assert_eq!(TimeFormat::parse("%Q"), None);
        assert_eq!(TimeFormat::parse("%"), None);
    }
}
