//! Bodies made odd: members of another type, unknown and doubled ones, and text that is JSON to some readers alone.

pub(super) mod target;

use serde_json::{Value, json};

use super::draw::Draw;
use crate::golden::scenario::Step;

/// Stands in a body for what JSON's own types cannot say; in no name and no value.
const MARK: &str = "@mark@";

/// What stands in the place of a value, as text: of each type, at the ends of its range, and what only lenient readers take.
const ODD_VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-1",
    "-0",
    "1.5",
    "1e3",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "123456789012345678901234567890",
    "1e400",
    "\"\"",
    "\" \"",
    "\"x\"",
    "\"1\"",
    "\" 1 \"",
    "\"1.5\"",
    "\"true\"",
    "\"True\"",
    "\"null\"",
    "\"NaN\"",
    "[]",
    "{}",
    "[null]",
    "[[]]",
    "[1]",
    "[\"x\"]",
    "{\"x\":1}",
    "[{}]",
    "NaN",
    "Infinity",
    "-Infinity",
    "01",
    "+1",
    ".5",
    "1.",
    "0x10",
    "'x'",
    "x",
    "TRUE",
    "None",
    "",
    "\"\\u0041\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"\\x\"",
    "\"\\'\"",
    "\"a\tb\"",
    "\"a\nb\"",
    "\"\\t\"",
    "\"\u{e9}\"",
    "\"\u{4e16}\u{1f600}\"",
    "1,2",
    "\"a\"\"b\"",
    "/*c*/1",
    "1//c\n",
    "#c\n1",
];

/// How often an odd body is drawn until one will do.
const TRIES: usize = 100;

/// The step with its JSON body made odd, and nothing behind the JSON: what changes something refuses that here, and OpenTSDB takes it.
/// As it was, where none of many will do.
pub(super) fn whole_body(draw: &mut Draw, step: &Step) -> Step {
    let is_whole = |odd: &Step| {
        let text = odd.body.as_deref().unwrap_or_default();
        // What OpenTSDB alone takes would show in all later answers.
        let is_lenient = ["NaN", "Infinity", "\\ud83d\""].iter().any(|word| text.contains(word));
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
        let is_first = values.next().is_some_and(|value| value.is_ok());
        !is_lenient && (!is_first || text[values.byte_offset()..].trim().is_empty())
    };
    (0..TRIES).map(|_| body(draw, step.clone())).find(is_whole).unwrap_or_else(|| step.clone())
}

/// The step with its JSON body made odd.
pub(super) fn body(draw: &mut Draw, step: Step) -> Step {
    let Some(json) = step.json.clone() else { return step };
    let text = match draw.below(10) {
        0..5 => with_odd_value(draw, json),
        5 => with_odd_member(draw, json),
        _ => whole(draw, &json.to_string()),
    };
    // Beyond ASCII these are no UTF-8.
    let latin1 = text.chars().all(|sign| u32::from(sign) < 256) && draw.chance(50);
    Step { json: None, body: Some(text), latin1, ..step }
}

/// Whether a request that makes up points got another range, which may be one of decades: these are millions of points, for which
/// OpenTSDB takes minutes.
pub(super) fn widens(step: &Step, odd: &Step) -> bool {
    let (before, after) = (step.describe(""), odd.describe(""));
    let fills = ["-nan", "-null", "-zero"].iter().any(|fill| before.contains(fill));
    fills && ranges(&before) != ranges(&after)
}

/// Where a request begins and ends, by query string or body.
fn ranges(request: &str) -> Vec<&str> {
    let pieces = request.split(['?', '&', ';', ',', '{', '}', ' ']);
    pieces
        .filter(|piece| ["start=", "end=", "\"start\"", "\"end\""].iter().any(|name| piece.starts_with(name)))
        .collect()
}

/// One value, at any depth, is another.
fn with_odd_value(draw: &mut Draw, mut json: Value) -> String {
    let place = draw.index(count(&json));
    if let Some(value) = nth(&mut json, &mut place.clone()) {
        *value = json!(MARK);
    }
    json.to_string().replacen(&format!("\"{MARK}\""), draw.word(ODD_VALUES), 1)
}

/// One object, at any depth, has a member that nobody knows, or one twice.
fn with_odd_member(draw: &mut Draw, mut json: Value) -> String {
    let place = draw.index(count(&json));
    let mut member = format!("\"nosuch\":{}", draw.word(ODD_VALUES));
    if let Some(Value::Object(object)) = nth(&mut json, &mut place.clone()) {
        if let Some(key) = object.keys().nth(draw.index(object.len().max(1))) {
            let value = if draw.chance(50) { draw.word(ODD_VALUES).to_owned() } else { object[key].to_string() };
            let key = match draw.below(4) {
                0 => key.to_uppercase(),
                1 => format!("{key} "),
                _ => key.clone(),
            };
            member = format!("\"{key}\":{value}");
        }
        object.insert(MARK.to_owned(), Value::Null);
    }
    json.to_string().replacen(&format!("\"{MARK}\":null"), &member, 1)
}

/// The whole text: cut, framed, nested, or of signs that do not belong there.
fn whole(draw: &mut Draw, text: &str) -> String {
    let at = draw.index(text.len());
    let cut = text.char_indices().map(|(place, _)| place).take_while(|&place| place <= at).last().unwrap_or_default();
    match draw.below(20) {
        0..3 => text[..cut].to_owned(),
        3 => format!("\u{feff}{text}"),
        4 => format!("{text}{}", draw.word(&[" ", "x", ",", "}", "]", "{}", "null", "\0", "//c", "\n\n"])),
        5 => format!("{}{text}", draw.word(&[" ", "\n\t", "x", ",", "[", "{", "\0", "/*c*/", "//c\n", "\u{a0}"])),
        6 => text.replacen('}', ",}", 1),
        7 => text.replacen(']', ",]", 1),
        8 => text.replace('"', "'"),
        9 => text.replacen('"', "", 2),
        10 => text.replacen(':', draw.word(&["", "=", "::", " : ", ":,"]), 1),
        11 => text.replacen(',', draw.word(&["", ";", ",,", " , ", ",\n"]), 1),
        12 => format!("[{text}]"),
        13 => format!("{{\"a\":{text}}}"),
        14 => format!("[{text},{text}]"),
        15 => {
            let depth = *draw.pick(&[10, 200, 1100]);
            let (open, close) = *draw.pick(&[("[", "]"), ("{\"a\":", "}")]);
            format!("{}1{}", open.repeat(depth), close.repeat(depth))
        }
        16 => {
            draw.word(&["", " ", "null", "true", "1", "\"x\"", "[]", "{}", "[[]]", "[null]", "\"\"", "1.5"]).to_owned()
        }
        17 => [&text[..cut], draw.word(&["\0", "\u{7f}", "\u{e9}", "\\", "\"", "{", "}", "\u{1f600}"]), &text[cut..]]
            .concat(),
        18 => escaped(text),
        _ => text.replacen('{', "{\"nosuch\":{\"a\":[1,{\"b\":null}]},", 1),
    }
}

/// The same JSON with each letter of its strings as an escape.
fn escaped(text: &str) -> String {
    let mut within = false;
    let sign = |sign: char| {
        within ^= sign == '"';
        if within && sign.is_ascii_lowercase() { format!("\\u{:04x}", u32::from(sign)) } else { sign.to_string() }
    };
    text.chars().map(sign).collect()
}

/// How many values there are, of all depths.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(object) => object.values().map(count).sum(),
        _ => 0_usize,
    }
}

/// The `place`th of them.
fn nth<'a>(value: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, place)),
        Value::Object(object) => object.values_mut().find_map(|item| nth(item, place)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{body, count, escaped, nth, widens};
    use crate::differential::draw::Draw;
    use crate::golden::scenario::Step;

    #[test]
    fn made_up_points_keep_their_range() {
        let step = |line: &str| Step { http: Some(line.to_owned()), ..Step::default() };
        let filled = step("GET /q?start=1&end=2&m=sum:1s-avg-nan:a");
        let check = |line: &str, expected: bool| assert_eq!(widens(&filled, &step(line)), expected, "{line}");
        check("GET /q?start=1&end=2&m=sum:1s-avg-nan:b", false);
        check("GET /q?start=1&m=sum:1s-avg-nan:a", true);
        check("GET /q?start=1&end=2&m=sum:1s-avg-nan:a&end=", true);
        assert!(!widens(&step("GET /q?start=1&end=2&m=sum:a"), &step("GET /q?start=0&m=sum:a")));
    }

    #[test]
    fn every_value_has_a_place() {
        let mut value = json!({"a": [1, {"b": 2}], "c": null});
        assert_eq!(count(&value), 6);
        let mut found: Vec<_> = (0..6).map(|place| nth(&mut value, &mut place.clone()).unwrap().to_string()).collect();
        found.sort();
        assert_eq!(found, ["1", "2", r#"[1,{"b":2}]"#, "null", r#"{"a":[1,{"b":2}],"c":null}"#, r#"{"b":2}"#]);
        assert!(nth(&mut value, &mut 6).is_none());
    }

    #[test]
    fn a_body_is_made_odd_and_no_mark_is_left() {
        let step = Step { json: Some(json!({"m": [{"x": "y"}], "n": 1})), ..Step::default() };
        for seed in 0..500 {
            let odd = body(&mut Draw::new(seed), step.clone());
            let text = odd.body.unwrap();
            assert!(odd.json.is_none() && !text.contains("@mark@"), "{text}");
        }
        assert_eq!(escaped(r#"{"ab":"c1"}"#), r#"{"\u0061\u0062":"\u00631"}"#);
    }
}
