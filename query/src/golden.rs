//! The query answers recorded from a real OpenTSDB (`tests/golden/`), asked of the engine without a daemon between.
//!
//! What only a daemon can answer (routes, methods, encodings) is passed over here and replayed in `tests/it`.

use std::path::Path;

use basalt_schema::Salting;
use serde_json::{Map, Value, json};

use crate::fixture::Fixture;
use crate::{Cancel, Error, GetParameters, Limits, Number, QueryRequest, Series, SubAnswer};

/// Any instant after all points of the scenarios.
const NOW_MS: i64 = 1_800_000_000_000;

struct Exchange<'a> {
    target: &'a str,
    body: Option<&'a Value>,
}

fn read(kind: &str, name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(kind).join(format!("{name}.json"));
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}

/// Replays a scenario; gives how many exchanges were compared, and of each that differs what it was.
fn replay(name: &str, strict: bool) -> (usize, Vec<String>) {
    let (scenario, answers) = (read("scenarios", name), read("answers", name));
    let salting = if scenario["profile"] == "salted" { Salting::new(1, 20).unwrap() } else { Salting::NONE };
    let mut fixture = Fixture::new(salting);
    let mut recorded = answers["exchanges"].as_array().unwrap().iter();
    let (mut compared, mut wrong) = (0, Vec::new());
    for step in scenario["steps"].as_array().unwrap() {
        if let Some(lines) = step["seed"].as_array() {
            for line in lines {
                fixture.put(line.as_str().unwrap());
            }
            continue;
        }
        let expected = recorded.next().unwrap();
        for line in step["telnet"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if let Some(point) = line.strip_prefix("put ") {
                fixture.put(point);
            }
        }
        let get;
        let exchange = if let Some(query) = step["get"].as_str() {
            get = format!("/api/query?{}&{query}", scenario["range"].as_str().unwrap());
            Exchange { target: &get, body: None }
        } else if let Some(("GET", target)) = step["http"].as_str().and_then(|line| line.split_once(' ')) {
            Exchange { target, body: None }
        } else if let (Some(("POST", target)), body @ Value::Object(_)) =
            (step["http"].as_str().unwrap_or_default().split_once(' '), &step["json"])
        {
            Exchange { target, body: Some(body) }
        } else {
            continue;
        };
        if exchange.target.split('?').next() != Some("/api/query") || step.get("method_override").is_some() {
            continue;
        }
        compared += 1;
        let (status, mut found) = ask(&fixture, &exchange, strict);
        let mut wanted = expected["json"].clone();
        for free in step["free"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            for value in [&mut wanted, &mut found] {
                value.pointer_mut(free).map(Value::take);
            }
        }
        if expected["status"] != status || !same(&wanted, &found, "") {
            wrong.push(format!(
                "{}\n  expected {} {wanted}\n  found    {status} {found}",
                expected["request"], expected["status"]
            ));
        }
    }
    (compared, wrong)
}

fn ask(fixture: &Fixture, exchange: &Exchange<'_>, strict: bool) -> (u16, Value) {
    let parameters = parameters(exchange.target);
    let has = |name: &str| parameters.iter().any(|(key, _)| key == name);
    let all =
        |name: &str| parameters.iter().filter(|(key, _)| key == name).map(|(_, v)| v.as_str()).collect::<Vec<_>>();
    let request = match exchange.body {
        Some(body) => QueryRequest::from_json(body.to_string().as_bytes()),
        None => QueryRequest::from_get(&GetParameters {
            start: all("start").first().copied(),
            end: all("end").first().copied(),
            metrics: &all("m"),
            tsuids: &all("tsuid"),
            timezone: None,
            use_calendar: false,
            show_tsuids: has("show_tsuids"),
            show_query: has("show_query"),
            ms: has("ms"),
            no_annotations: has("no_annotations"),
            ..GetParameters::default()
        }),
    };
    let request = match request {
        Ok(request) => QueryRequest { arrays: has("arrays"), ..request },
        Err(error) => return refusal(&error),
    };
    match fixture.engine(strict, Limits::default()).run(&request, NOW_MS, &Cancel::new()) {
        Ok(answers) => (200, json!(answers.iter().flat_map(|answer| written(&request, answer)).collect::<Vec<_>>())),
        Err(error) => refusal(&error),
    }
}

fn parameters(target: &str) -> Vec<(String, String)> {
    let (_, query) = target.split_once('?').unwrap_or((target, ""));
    let decode = |text: &str| {
        let mut bytes = text.bytes();
        let mut out = Vec::new();
        while let Some(byte) = bytes.next() {
            let decoded = match byte {
                b'%' => {
                    let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                b'+' => b' ',
                other => other,
            };
            out.push(decoded);
        }
        String::from_utf8(out).unwrap()
    };
    query
        .split('&')
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(k, v)| (decode(k), decode(v)))
        .collect()
}

fn refusal(error: &Error) -> (u16, Value) {
    let status = if error.is_server_error_in_opentsdb() { 500 } else { 400 };
    (status, json!({"error": {"code": status, "message": error.to_string()}}))
}

fn written(request: &QueryRequest, answer: &SubAnswer) -> Vec<Value> {
    let one = |series: &Series| {
        let mut out = Map::new();
        out.insert("metric".into(), json!(*series.metric));
        let tags: Map<_, _> = series.tags.iter().map(|(key, value)| (key.to_string(), json!(**value))).collect();
        out.insert("tags".into(), tags.into());
        out.insert("aggregateTags".into(), series.aggregate_tags.iter().map(|key| json!(**key)).collect());
        if request.show_query {
            out.insert(
                "query".into(),
                json!(request.queries[answer.index].echo(answer.index, answer.rollup.as_deref())),
            );
        }
        if request.show_tsuids {
            out.insert("tsuids".into(), json!(series.tsuids));
        }
        let value = |number: Number| match number {
            Number::Integer(value) => json!(value),
            Number::Double(value) if value.is_nan() && answer.nan_as_null => Value::Null,
            Number::Double(value) if value.is_nan() => json!("NaN"),
            Number::Double(value) => json!(value),
        };
        let time = |time_ms: i64| if request.ms_resolution { time_ms } else { time_ms / 1000 };
        let points = series.points.iter().map(|point| (time(point.time_ms), value(point.number)));
        let dps: Value = if request.arrays {
            points.map(|(time, value)| json!([time, value])).collect()
        } else {
            Value::Object(points.map(|(time, value)| (time.to_string(), value)).collect())
        };
        out.insert("dps".into(), dps);
        Value::Object(out)
    };
    answer.series.iter().map(one).collect()
}

/// Equality by the rules of `tests/golden/README.md`.
fn same(expected: &Value, found: &Value, key: &str) -> bool {
    match (expected, found) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a == b,
            _ => a.as_f64().unwrap().to_bits() == b.as_f64().unwrap().to_bits() || a.as_f64() == b.as_f64(),
        },
        (Value::Array(a), Value::Array(b)) if matches!(key, "aggregateTags" | "tsuids") => {
            let sorted = |list: &[Value]| {
                let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
                texts.sort_unstable();
                texts
            };
            sorted(a) == sorted(b)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, key)),
        // The message and the code are compared; details are the daemon's to write.
        (Value::Object(a), Value::Object(b)) if key == "error" => {
            a.get("message") == b.get("message") && a.get("code") == b.get("code")
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| key == "filterTagKs" || b.get(key).is_some_and(|b| same(a, b, key)))
        }
        (a, b) => a == b,
    }
}

macro_rules! scenarios {
    ($($name:ident: $file:literal, $count:literal;)*) => {$(
        #[test]
        fn $name() {
            let (compared, wrong) = replay($file, true);
            assert!(wrong.is_empty(), "{} of {compared} differ\n{}", wrong.len(), wrong.join("\n"));
            assert!(compared >= $count, "only {compared} exchanges were compared");
        }
    )*};
}

scenarios! {
    agg_int: "agg-int", 35;
    agg_double: "agg-double", 35;
    agg_mixed: "agg-mixed", 20;
    calendar: "calendar", 85;
    combined: "combined", 20;
    downsample: "downsample", 80;
    duplicates: "duplicates", 10;
    filters: "filters", 55;
    hours: "hours", 40;
    query_basic: "query-basic", 35;
    query_errors: "query-errors", 30;
    query_times: "query-times", 60;
    random: "random", 250;
    rate: "rate", 30;
    salted: "salted", 5;
}

/// Where `compat.strict` is off, these many recorded answers are not ours, and no others: `ep…r3` and `ep…r7` mean what
/// they say on doubles (9), a late series adds nothing before its first rate (7), an unknown tag value matches nothing
/// (3), a fill of a calendar goes up to the bucket that holds the end (25), `not_key` works, a glob is anchored, one
/// digit of a dotted time is a tenth of a second, explicit tags read no further hour (4).
#[test]
fn the_saner_defaults_differ_where_they_should() {
    let expected = [
        ("agg-double", 7),
        ("agg-int", 0),
        ("agg-mixed", 0),
        ("calendar", 25),
        ("combined", 1),
        ("downsample", 2),
        ("filters", 2),
        ("hours", 4),
        ("query-basic", 0),
        ("query-errors", 3),
        ("query-times", 1),
        ("rate", 6),
        ("salted", 0),
    ];
    for (name, count) in expected {
        let (_, wrong) = replay(name, false);
        assert_eq!(wrong.len(), count, "{name}\n{}", wrong.join("\n"));
    }
}
