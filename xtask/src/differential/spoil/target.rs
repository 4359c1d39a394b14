//! Request lines made odd: parameters repeated, empty, escaped, unknown or of another kind; paths and methods in other words.

use super::super::draw::Draw;
use crate::golden::scenario::Step;

/// What stands in the place of a parameter's value. No broken escape: OpenTSDB gives no answer to one.
const ODD_VALUES: &[&str] = &[
    "",
    "x",
    "0",
    "-1",
    "1",
    "1.5",
    "%2B1",
    "+1",
    "%20",
    "true",
    "TRUE",
    "false",
    "null",
    "99999999999",
    "2147483648",
    "1,2",
    "%00",
    "%E9",
    "%C3%A9",
    "a%20b",
    "a=b",
    "a%26b",
    "a%3Bb",
    "a:b",
    "{",
    "}",
    "{}",
    "a{b=c}",
    "*",
    "'",
    "%22",
    "now",
    "1h-ago",
];

/// Parameters that some endpoint reads, or all do.
const PARAMETERS: &[&str] = &[
    "nosuch",
    "nosuch=1",
    "ms",
    "arrays",
    "start=1",
    "end",
    "m",
    "tsuid",
    "exp",
    "jsonp=cb",
    "jsonp=a.b",
    "serializer=json",
    "serializer=nosuch",
    "serializer=",
    "method_override=get",
    "method_override=POST",
    "method_override=delete",
    "method_override=put",
    "method_override=patch",
    "method_override=",
    "type=metrics",
    "uid=000001",
    "max=1",
    "limit=1",
    "json",
    "ascii",
    "tz=UTC",
    "=x",
    "=",
    "&",
    ";",
];

/// The step with its request line made odd, once or twice; one that reads does not become one that deletes.
pub(in super::super) fn reading(draw: &mut Draw, step: &Step) -> Step {
    let deletes = |step: &Step| {
        let headers = step.headers.iter().map(|(_, value)| value.as_str());
        headers.chain(step.http.as_deref()).any(|text| text.to_lowercase().contains("delete"))
    };
    loop {
        let odd = line(draw, step.clone());
        if deletes(step) || !deletes(&odd) {
            return odd;
        }
    }
}

/// The same of any step.
pub(in super::super) fn line(draw: &mut Draw, mut step: Step) -> Step {
    for _ in 0..draw.between(1, 2) {
        let Some(line) = step.http.clone() else { return step };
        let (method, target) = line.split_once(' ').unwrap_or((&line, ""));
        let line = match draw.below(10) {
            0 => format!("{} {target}", draw.word(&["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])),
            1 => format!("{method} {}", odd_path(draw, target)),
            2 => {
                step.headers.push(header(draw));
                line
            }
            _ => format!("{method} {}", odd_query(draw, target)),
        };
        step.http = Some(line);
    }
    step
}

fn header(draw: &mut Draw) -> (String, String) {
    let (name, value) = *draw.pick(&[
        ("X-HTTP-Method-Override", "GET"),
        ("X-HTTP-Method-Override", "delete"),
        ("X-HTTP-Method-Override", "nosuch"),
        ("Accept-Encoding", "gzip"),
        ("Accept-Encoding", "identity"),
        ("Accept-Encoding", "*"),
        ("Accept", "text/html"),
        ("Accept", "application/xml"),
        ("Content-Type", "application/json"),
        ("Content-Type", "application/json; charset=utf-8"),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Type", "application/nosuch"),
        ("Content-Type", ""),
        ("Origin", "http://elsewhere"),
        ("Cookie", "a=b"),
        ("If-Modified-Since", "Sat, 29 Oct 2033 19:43:31 GMT"),
        ("Range", "bytes=0-1"),
    ]);
    (name.to_owned(), value.to_owned())
}

fn odd_path(draw: &mut Draw, target: &str) -> String {
    let (path, query) =
        target.split_once('?').map_or((target, String::new()), |(path, query)| (path, format!("?{query}")));
    let path = match draw.below(9) {
        0 => path.replacen("/api", "/api/v1", 1),
        1 => path.replacen(
            "/api",
            draw.word(&["/api/v2", "/api/v01", "/api/v", "/api/vx", "/api/V1", "/api/v1.0", "/api/v1x"]),
            1,
        ),
        2 => path.to_uppercase(),
        3 => format!("{path}/"),
        4 => format!("{path}/{}", draw.word(&["x", "1", "exp", "bulk", "last"])),
        5 => path.replacen('a', "%61", 1),
        6 => path.replacen("/api", draw.word(&["/apis", "/ap", "/api.", ""]), 1),
        7 => format!("{path}%20"),
        _ => format!("{path}x"),
    };
    format!("{path}{query}")
}

fn odd_query(draw: &mut Draw, target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut pieces: Vec<String> = query.split('&').filter(|piece| !piece.is_empty()).map(str::to_owned).collect();
    let added = draw.word(PARAMETERS).to_owned();
    if pieces.is_empty() || draw.chance(20) {
        let place = draw.index(pieces.len() + 1);
        pieces.insert(place, added);
        return format!("{path}?{}", pieces.join("&"));
    }
    let place = draw.index(pieces.len());
    let (name, value) = pieces[place]
        .split_once('=')
        .map_or((pieces[place].clone(), None), |(n, v)| (n.to_owned(), Some(v.to_owned())));
    let given = value.clone().unwrap_or_default();
    match draw.below(12) {
        0..4 => pieces[place] = format!("{name}={}", draw.word(ODD_VALUES)),
        4 => pieces.insert(place, format!("{name}={}", draw.word(ODD_VALUES))),
        5 => pieces.push(format!("{name}={}", draw.word(ODD_VALUES))),
        6 => pieces.push(format!("{name}={given}")),
        7 => pieces[place].clone_from(&name),
        8 => pieces[place] = format!("{}={given}", name.to_uppercase()),
        9 => pieces[place] = format!("{name}={}", escaped(draw, &given)),
        10 => pieces[place] = format!("{}={given}", escaped(draw, &name)),
        _ => drop(pieces.remove(place)),
    }
    let between = if draw.chance(10) { ";" } else { "&" };
    format!("{path}?{}", pieces.join(between))
}

/// The text with some or all of its signs as escapes.
fn escaped(draw: &mut Draw, text: &str) -> String {
    let (all, upper) = (draw.chance(30), draw.chance(50));
    let sign = |byte: u8| match (all || draw.chance(20), upper) {
        (false, _) => char::from(byte).to_string(),
        (true, true) => format!("%{byte:02X}"),
        (true, false) => format!("%{byte:02x}"),
    };
    text.bytes().filter(|byte| byte.is_ascii() && *byte != b'%').map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::{line, reading};
    use crate::differential::draw::Draw;
    use crate::golden::scenario::Step;

    #[test]
    fn what_reads_does_not_become_what_deletes() {
        for (line, deletes) in [("GET /api/query?start=1", false), ("DELETE /api/nosuch", true)] {
            let step = Step { http: Some(line.to_owned()), ..Step::default() };
            let odd: Vec<Step> = (0..300).map(|seed| reading(&mut Draw::new(seed), &step)).collect();
            let found = odd.iter().any(|step| step.describe("").to_lowercase().contains("delete"));
            assert_eq!(found, deletes, "{line}");
        }
    }

    #[test]
    fn a_line_stays_one_line_of_a_method_and_a_target() {
        let step = Step { http: Some("GET /api/query?start=1&m=sum:a{b=*}".to_owned()), ..Step::default() };
        for seed in 0..500 {
            let odd = line(&mut Draw::new(seed), step.clone()).http.unwrap();
            let (method, target) = odd.split_once(' ').unwrap();
            assert!(!method.is_empty() && target.starts_with('/'), "{odd}");
            assert!(!target.contains([' ', '\r', '\n']) && target.is_ascii(), "{odd}");
        }
    }
}
